"""Trace a function: its graph, and how arguments and results map to it."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.base.pytree import TreeSpec, containers, flatten, unflatten
from numgrad.graph.node import next_sequence
from numgrad.graph.recorder import Traced, TraceError
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, plain
from numgrad.jit.capture.guards import own_dict
from numgrad.jit.front.argument_tensor import stand_for
from numgrad.jit.front.outside import edges_from_outside
from numgrad.jit.front.returned import refuse_hidden, refuse_text
from numgrad.jit.front.signature import Static, array_of, is_traced
from numgrad.jit.front.tracer import Tracer
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.ir.memory_order import Laid, laid
from numgrad.kernels.move.strides import layout_of, may_overlap
from numgrad.ops.arguments.nested import check_array
from numgrad.ops.creation.generator import Generator
from numgrad.runtime.frames import where_user_is

__all__ = ["Output", "Trace", "trace_function"]


class Output(NamedTuple):
    """Where a leaf of the result comes from: the program, the arguments, or the trace."""

    kind: str  # "computed", "argument" or "static"
    which: Any  # the number of the program's output or of the argument; or the value itself
    requires_grad: bool
    laid: Laid | None = None  # how it lies in memory, if not row by row
    counted: bool = False  # whether it is no inference tensor in that mode either


class Trace(NamedTuple):
    """What `trace_function` returns."""

    graph: Graph
    traced: tuple[int, ...]  # which leaves of the arguments are the graph's inputs
    outputs: tuple[Output, ...]
    spec: TreeSpec  # of the result
    outside: tuple[Edge, ...]  # where gradients go that leave the function, but for its arguments
    baked: dict[int, Any]  # arrays whose numbers the trace depends on, and what they held; by id
    copied: dict[int, Any]  # arrays of which the trace has copies; by id
    given: dict[int, Any]  # arrays and numbers of NumPy's that operations were given; by id
    required: tuple[int, ...]  # the leaves of which the function makes tensors that require grad
    strides: tuple[tuple[int, tuple[int, ...]], ...]  # that it goes by, of leaves of the arguments
    files: frozenset[str]  # of the lines that recorded it
    caller: str  # the line that called the function, as operations name it
    # What it draws from: leaves of the arguments, by number, and generators from outside. Where
    # they are is the last of the graph's inputs, and of its outputs.
    sources: tuple[int | Generator, ...]
    unrecorded: bool  # whether it switches recording off, which does not concern tangents


def trace_function(function: Callable[..., Any], spec: TreeSpec, leaves: Sequence[Any]) -> Trace:
    """Run a function on arrays without numbers, and return what it computes.

    Parameters
    ----------
    function : callable
    spec : TreeSpec
        The structure of its arguments, ``(args, kwargs)``.
    leaves : sequence
        The arguments' leaves; of those that are traced, shape, strides and dtype count, and whether
        they require grad.

    Raises
    ------
    TraceError
        If the function needs numbers, or writes to what it did not make.
    """
    tracer = Tracer()
    # A program has what several elements show once, so it is for arguments that show it, too.
    tracer.depend_on_strides(frozenset([k for k, leaf in enumerate(leaves) if _overlaps(leaf)]))
    return _trace(tracer, function, spec, leaves)


def _overlaps(leaf: Any) -> bool:
    """Whether an argument that is traced has elements that share memory."""
    if not is_traced(leaf):
        return False
    array = array_of(leaf)
    return not array.flags.c_contiguous and may_overlap(layout_of(array))


def _trace(
    tracer: Tracer, function: Callable[..., Any], spec: TreeSpec, leaves: Sequence[Any]
) -> Trace:
    caller = tracer.here()
    with tracer.open():
        start = next_sequence()
        traced = tuple([k for k, leaf in enumerate(leaves) if is_traced(leaf)])
        stand_ins, generators = _stand_ins(tracer, leaves, traced)
        args, kwargs = unflatten(spec, stand_ins)
        given = [(*each, dict(own_dict(each[0]))) for each in containers((args, kwargs))]
        found, result_spec = flatten(function(*args, **kwargs))
        _refuse_changes(function, given)
        values: list[Value] = []
        outputs = tuple([_output(tracer, leaf, stand_ins, traced, values) for leaf in found])
        for output in outputs:
            if output.kind == "static" and output.which is not None:
                refuse_hidden(tracer, output.which, _beginning(function))
        refuse_text(tracer, found, result_spec, _beginning(function))
        sources = tracer.states.inputs
        values += [tracer.value_of(tracer.random_state(source)) for source in sources]
        for k in traced:
            if stand_ins[k]._grad is not None:
                raise TraceError(
                    f"{_beginning(function)}jit: the function accumulates into the .grad of one of "
                    "its arguments. That can't be compiled: return the gradient that autograd.grad "
                    "gives"
                )
        required = tuple(
            [
                k
                for k in traced
                if isinstance(leaves[k], Tensor)
                and leaves[k]._edge is NO_EDGE
                and stand_ins[k]._edge is None
            ]
        )
        own = [stand_ins[k] for k in traced]
        outside = edges_from_outside(found, own, start)
    _refuse_leaks(function, tracer, values)
    strides = tuple([(k, array_of(leaves[k]).strides) for k in sorted(tracer.depends_on)])
    return Trace(
        Graph(tracer.inputs, values, frozenset(tracer.unread)),
        traced,
        outputs,
        result_spec,
        tuple(outside),
        tracer.baked,
        tracer.copied,
        tracer.given,
        required,
        strides,
        frozenset(tracer.files),
        caller,
        tuple([generators.get(source, source) for source in sources]),
        tracer.unrecorded,
    )


def _refuse_leaks(function: Callable[..., Any], tracer: Tracer, values: Sequence[Value]) -> None:
    """Raise if something was used outside of a loop that was made in its body."""
    own = set(tracer.inputs)
    for value in Graph([], values).values():
        if value.operation == "input" and value not in own:
            raise TraceError(
                f"{_beginning(function)}jit: a tensor was used that had left the body of its "
                "loop or branch. It has a value in each turn: return it from the body, as a carry "
                "or to be stacked"
            )


def _refuse_changes(function: Callable[..., Any], given: Sequence[Any]) -> None:
    """Raise if the containers among the arguments are not what they were: those are copies."""
    for container, children, context, own in given:
        try:
            now = containers(container)[0]
        except AttributeError:  # a field was deleted
            now = (container, (), None)
        before, after = (*children, *own.values()), (*now[1], *own_dict(container).values())
        is_same = len(before) == len(after) and all(map(operator.is_, before, after))
        if not is_same or now[2] != context or list(own) != list(own_dict(container)):
            raise TraceError(
                f"{_beginning(function)}jit: the function changes a {type(container).__name__} "
                "among its arguments. That can't be compiled: return what it is to hold, or copy "
                "it first"
            )


def _beginning(function: Callable[..., Any]) -> str:
    """Return the file and the line where a function begins, as a message begins."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return where_user_is() if code is None else f"{code.co_filename}:{code.co_firstlineno}: "


def _stand_ins(
    tracer: Tracer, leaves: Sequence[Any], traced: Sequence[int]
) -> tuple[list[Any], dict[Generator, int]]:
    """Return what the function is called with, and which leaves its generators stand for."""
    stand_ins = [leaf.value if type(leaf) is Static else leaf for leaf in leaves]
    for k in traced:
        leaf = leaves[k]
        array = leaf._array if isinstance(leaf, Tensor) else check_array(np.asarray(plain(leaf)))
        stand_ins[k] = stand_for(leaf, tracer.argument(array, k))
    generators = {}
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, Generator):  # whichever is given, it draws from that
            stand_ins[k] = Generator()
            generators[stand_ins[k]] = k
    return stand_ins, generators


def _output(
    tracer: Tracer, leaf: Any, stand_ins: Sequence[Any], traced: Sequence[int], values: list[Value]
) -> Output:
    array = leaf._array if isinstance(leaf, Tensor) else leaf
    if type(array) is not Traced:
        if isinstance(leaf, (np.ndarray, np.generic)):
            tracer.takes(leaf)
        return Output("static", leaf, False)
    for k in traced:
        if leaf is stand_ins[k]:
            tracer.depend_on_strides(array.storage.shared_by)  # else it may have been a copy
            return Output("argument", k, False)
    values.append(tracer.value_of(array))
    if array.ndim:
        tracer.depend_on_strides(array.storage.follows)
    requires_grad = isinstance(leaf, Tensor) and leaf.requires_grad
    counted = isinstance(leaf, Tensor) and len(leaf._counter) > 3  # a `level_counter`
    return Output("computed", len(values) - 1, requires_grad, laid(array.place), counted)
