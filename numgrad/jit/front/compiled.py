"""One compiled trace of a function: what it is for, and the functions that calls of it run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.base.pytree import TreeSpec
from numgrad.base.tuning import (
    SPECIALISED_AFTER_CALLS,
    SPECIALISED_OPERATIONS,
    UNSPECIALISED_OPERATIONS,
)
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor, wrap
from numgrad.jit.front.signature import Static, array_of
from numgrad.jit.front.trace_function import Trace
from numgrad.jit.front.unrolled import warn_of_unrolled
from numgrad.jit.front.watch import Watch
from numgrad.jit.ir.graph import Graph
from numgrad.jit.rolling.prepare import prepared
from numgrad.jit.run.program import Program, build
from numgrad.ops.creation.generator import Generator

__all__ = ["Compiled", "Leaf"]


class Leaf(NamedTuple):
    """What is known of a leaf of the arguments, for as long as a trace is used.

    Attributes
    ----------
    kind : type
    value : object
        What it is, if it is not traced.
    array : tuple or None
        Of its array, if it is traced: dtype, shape, strides, and the order as Numba writes it.
    requires_grad : bool
    """

    kind: type
    value: Any
    array: tuple[Any, ...] | None
    requires_grad: bool


class Compiled:
    """One trace of a function, compiled.

    Parameters
    ----------
    trace : Trace
    watch : Watch
    spec : TreeSpec
        The structure of the arguments that it is for, ``(args, kwargs)``.
    leaves : sequence
        Their leaves.

    Attributes
    ----------
    run : callable or None
        ``run(jitted, leaves)`` is a call of the compiled function; None before the first.
    front : type or None
        A class of compiled functions whose calls find out themselves whether this trace fits.
    calls_left : int
        How many calls it is until there is one.
    described : tuple
        What it depends on in its arguments, in words that `Jitted` has for it.
    """

    def __init__(
        self, trace: Trace, watch: Watch, spec: TreeSpec, leaves: Sequence[Any], described: Any
    ) -> None:
        # What it depends on as it was before the trace, and as that left it.
        self.watch = self.left = watch
        computed = list(trace.graph.outputs)
        for output in trace.outputs:
            if output.laid is not None:
                computed[output.which] = output.laid.in_memory(computed[output.which])
        graph = prepared(Graph(trace.graph.inputs, computed, trace.graph.unread))
        warn_of_unrolled(graph, trace.files, trace.caller)
        self.program: Program = build(graph)
        # The strides that it is for, by the numbers of leaves; and the traces for others.
        self.strides = trace.strides
        self.others: list[Compiled] = []
        self.traced = trace.traced
        self.outputs = trace.outputs
        self.sources = trace.sources
        self.unrecorded = trace.unrecorded
        self.spec = trace.spec
        self.outside = trace.outside
        self.required = trace.required
        self.arguments, self.described = spec, described
        self.leaves = [_leaf(each, k in trace.traced) for k, each in enumerate(leaves)]
        # The results that hang on a node, in this grad mode, and the leaves that it leads to.
        self.differentiable = [
            k for k, output in enumerate(trace.outputs) if output.requires_grad and modes.grad
        ]
        self.moving = tuple(
            [k for k, leaf in enumerate(self.leaves) if leaf.requires_grad or k in trace.required]
        )
        values = [trace.graph.outputs[trace.outputs[k].which] for k in self.differentiable]
        self.output_metas = tuple([(value.shape, value.dtype) for value in values])
        # What computes the gradients, and the captured tensors whose numbers that reads. It is made
        # when results require grad for the first time, so that it sees what the call saw.
        self.backward: Any = None
        self.read: list[Tensor] = []

        self.run: Any = None
        self.front: Any = None
        operations = len(self.program.graph.values())
        self.calls_left = SPECIALISED_AFTER_CALLS
        if self.is_specialised:
            self.calls_left = round(
                SPECIALISED_AFTER_CALLS * max(1.0, operations / SPECIALISED_OPERATIONS) ** 2
            )

    @property
    def is_specialised(self) -> bool:
        """Whether sizes are compiled in after some calls: where there is little to compute.

        Loops are compiled for their sizes in any case, and so from the first call on.
        """
        graph = self.program.graph
        is_small = self.program.is_small or self.program.calls_natively
        is_small = is_small and len(graph.values()) <= UNSPECIALISED_OPERATIONS
        is_small = is_small or self.program.is_native_loop
        is_new = all(output.operation not in ("input", "array") for output in graph.outputs)
        return is_small and is_new and len(set(graph.outputs)) == len(graph.outputs)

    def prepare_backward(self, make_backward: Callable[..., Any], leaves: Sequence[Any]) -> None:
        """Make what computes the gradients, seeing what the call of these traced leaves sees.

        Behind them come the states that it drew from.

        ``make_backward(compiled, leaves, cotangents)`` returns it.
        """
        cotangents = [wrap(np.broadcast_to(np.zeros((), d), s)) for s, d in self.output_metas]
        try:
            found = make_backward(self, leaves, cotangents)
        except Exception as error:  # of any kind: it is for who asks for the gradient
            found = (_raising(error.with_traceback(None)), [])
        self.backward, self.read = found


def _leaf(leaf: Any, is_traced: bool) -> Leaf:
    if isinstance(leaf, Generator):
        return Leaf(type(leaf), None, None, False)
    if not is_traced:
        value = leaf.value if type(leaf) is Static else leaf
        return Leaf(type(value), value, None, False)
    array = array_of(leaf)
    flags = array.flags
    order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    facts = (array.dtype, array.shape, array.strides, order)
    return Leaf(type(leaf), None, facts, isinstance(leaf, Tensor) and leaf.requires_grad)


def _raising(error: Exception) -> Callable[..., Any]:
    """Return a function that raises this error."""

    def fail(*_: Any) -> Any:
        raise error.with_traceback(None)

    return fail
