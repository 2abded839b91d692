"""Steps of standalone dispatchers that the interpreter does: compiled code calls it back."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.codegen.loops import (
    Attribute,
    Call,
    Do,
    Function,
    Interpreted,
    Load,
    Name,
    Number,
    Return,
    Statement,
    Tuple,
    Unpack,
    call,
)
from numgrad.jit.emit.opaque_steps import as_compact, opaque_call, operand_reader
from numgrad.jit.emit.program_source import Emitted
from numgrad.jit.ir.graph import Graph, Value

__all__ = ["STEPS", "captured_array", "interpreted_step", "with_recipe"]

# What compiled code calls back, under keys that no other process has.
STEPS: dict[str, Any] = {}
_numbers = itertools.count()


def interpreted_step(
    emitted: Emitted, value: Value, build: Callable[[Graph], Any], helpers: list[Function]
) -> Statement:
    """Return what has the interpreter do a step; add the function that calls it to `helpers`."""
    plan, buffers = emitted.plan, emitted.buffers
    items = emitted.results_of(value)
    is_product = value.operation == "matmul"
    do: Any = np.ndarray.dot if is_product else opaque_call(value, tuple(items), build)
    operands = [
        operand_reader(operand, plan.elements, plan.kept, buffers, emitted.values)
        for operand in (*value.operands, *[value] * is_product)
    ]
    used = list(dict.fromkeys([name for name, _ in operands]))
    shapes = {array.name: array.shape for array in emitted.arrays}

    @silent
    def step(*arrays: Any) -> Any:
        pairs = zip(used, arrays, strict=True)
        memory = {name: array.reshape(shapes[name]) for name, array in pairs}
        results = do(*[read(memory[name]) for name, read in operands])
        return () if is_product else tuple(results)

    declared = {buffers[item]: _numba_type(item) for item in items.values()}
    return _call_back(step, used, declared, helpers)


def captured_array(name: str, value: Value, helpers: list[Function]) -> Statement:
    """Return what fetches an array that was captured."""
    array = value.attributes["array"]
    return _call_back(lambda: (as_compact(array),), [], {name: _numba_type(value)}, helpers)


def with_recipe(
    dispatcher: Any,
    helpers: Sequence[Function],
    build: Callable[..., Any],
    graph: Graph,
    sources: Sequence[tuple[int, int]],
) -> Any:
    """Let the dispatcher of a graph be made anew in another process, if it calls steps back."""
    if any(isinstance(line, Interpreted) for each in helpers for line in each.body):
        dispatcher.recipe = _dispatcher_of, (build, graph, sources)
    return dispatcher


def _dispatcher_of(
    build: Callable[..., Any], graph: Graph, sources: Sequence[tuple[int, int]]
) -> Any:
    return build(graph, sources).dispatcher


def _call_back(
    function: Callable[..., Any], given: list[str], results: dict[str, str], helpers: list[Function]
) -> Statement:
    """Add a function that has the interpreter call one of ours, and return the call of it.

    It is no kernel of ours: where the GIL was released, Numba warns of calls of the interpreter.
    """
    key = _enter(function)
    name = f"step_{sum(helper.name.startswith('step_') for helper in helpers)}"
    # The interpreter looks names up in another module than this one.
    module = call(Name("__import__"), Number(__name__), None, None, Number(["STEPS"]))
    step = call(Load(Attribute(module, "STEPS"), Number(key), True), *given)
    returned = Tuple(tuple(Name(result) for result in results)) if results else Number(None)
    done = Interpreted(tuple(results.items()), [_unpacked(results, step)])
    helpers.append(Function(name, given, [done, Return(returned)]))
    return _unpacked(results, call(Name(name), *given))


def _unpacked(results: dict[str, str], value: Call) -> Statement:
    return Unpack(tuple(results), value) if results else Do(value)


def _enter(function: Any) -> str:
    key = f"{os.getpid()}-{os.urandom(6).hex()}-{next(_numbers)}"
    STEPS[key] = function
    return key


def _numba_type(value: Value) -> str:
    # "bool" is Python's own, unless NumPy has that name, too.
    dtype = "boolean" if value.dtype.kind == "b" else value.dtype.name
    if not value.shape:
        return f"Array({dtype}, 0, 'C')"
    dims = [*[":"] * (len(value.shape) - 1), "::1"]
    return f"{dtype}[{', '.join(dims)}]"
