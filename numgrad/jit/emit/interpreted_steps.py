"""Steps of standalone dispatchers that the interpreter does: compiled code calls it back."""

from __future__ import annotations

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
STEPS: dict[int, Any] = {}


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
    """Have the interpreter call one of our functions: return the call of the helper that does it.

    Numba takes long to compile a helper, so that there is one for all steps that take as many
    arrays and give arrays of the same types. It is no kernel of ours: where the GIL was released,
    Numba warns of calls of the interpreter.
    """
    arrays = [f"given_{k}" for k in range(len(given))]
    found = {f"found_{k}": kind for k, kind in enumerate(results.values())}
    # The interpreter looks names up in another module than this one.
    module = call(Name("__import__"), Number(__name__), None, None, Number(["STEPS"]))
    step = call(Load(Attribute(module, "STEPS"), Name("key"), True), *arrays)
    returned = Tuple(tuple(Name(result) for result in found)) if found else Number(None)
    body: list[Statement] = [
        Interpreted(tuple(found.items()), [_unpacked(found, step)]),
        Return(returned),
    ]
    parameters = ["key", *arrays]
    same = [each for each in helpers if (each.parameters, each.body) == (parameters, body)]
    if not same:
        name = f"step_{sum(helper.name.startswith('step_') for helper in helpers)}"
        same = [Function(name, parameters, body)]
        helpers += same
    return _unpacked(results, call(Name(same[0].name), Number(_enter(function)), *given))


def _unpacked(results: dict[str, str], value: Call) -> Statement:
    return Unpack(tuple(results), value) if results else Do(value)


def _enter(function: Any) -> int:
    key = int.from_bytes(os.urandom(7), "big")
    STEPS[key] = function
    return key


def _numba_type(value: Value) -> str:
    # "bool" is Python's own, unless NumPy has that name, too.
    dtype = "boolean" if value.dtype.kind == "b" else value.dtype.name
    if not value.shape:
        return f"Array({dtype}, 0, 'C')"
    dims = [*[":"] * (len(value.shape) - 1), "::1"]
    return f"{dtype}[{', '.join(dims)}]"
