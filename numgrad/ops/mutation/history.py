"""How a write enters the history of a tensor: its own, or that of the base it is a view of."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.anomaly import note_node
from numgrad.graph.modes.state import call_interceptors, interceptors, modes
from numgrad.graph.node import FREED, Node, OutputMeta, next_sequence
from numgrad.graph.tensor import Edge, Tensor, fresh, move_retained, wrap
from numgrad.kernels.move.strides import Layout, may_overlap, positions
from numgrad.ops.core.nodes import PrimitiveNode
from numgrad.ops.movement.copies import clone_contiguous
from numgrad.ops.movement.strided import move, read
from numgrad.ops.movement.view_geometry import (
    Geometry,
    geometry_of,
    inside_of,
    scattered,
    strided,
    strided_scatter,
)
from numgrad.ops.mutation.filling import copy
from numgrad.ops.pointwise.selection import where

__all__ = ["CopySlices", "enter_view", "rewrite_history"]


class CopySlices(Node):
    """The history of a base after a write to a view of it.

    Outside the view the gradient goes on to the base as it was; inside it goes through the
    operation that wrote there.
    """

    __slots__ = ("geometry",)

    geometry: Geometry

    def __init__(self, base_edge: Edge, function: Node, geometry: Geometry) -> None:
        target, number = base_edge
        self.targets = (target, *function.targets[1:])
        self.numbers = (number, *function.numbers[1:])
        self.saved = (function, None, 0)  # the operation is freed with what it saved
        self.sequence = next_sequence()
        self.attached = None
        self.geometry = geometry
        if interceptors:
            note_node(self)

    def output_meta(self, number: int) -> OutputMeta | None:
        """Return the shape of the base, and the dtype if the view's is the same."""
        base = self.edge(0)[0]
        return None if base is None else base.output_meta(self.numbers[0])

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Split the gradient, on tensors that record nothing, or on what lies as the base did."""
        (gradient,), saved, geometry = gradients, self.saved, self.geometry
        if gradient is not None and type(saved) is tuple and not call_interceptors:
            inside = inside_of(gradient, geometry)
            if inside is not None:
                rows = inside if inside.flags.c_contiguous else inside.copy()
                results, owned = saved[0].run_arrays([rows])
                through = 0 if results[0] is None else results[0]
                base = scattered(gradient, through, geometry)
                return [base, *results[1:]], [True, *[own is True for own in owned[1:]]]
        tensors = [None if gradient is None else wrap(gradient) for gradient in gradients]
        results = self.run_tensors(tensors)
        arrays = [None if result is None else result._array for result in results]
        return arrays, [False] * len(arrays)

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Split the gradient: the view's part through the operation, the rest to the base."""
        gradient = gradients[0]
        if gradient is None:
            return [None] * len(self.targets)
        if self.saved is None:
            raise RuntimeError(FREED)
        function = self.saved[0]
        inside = strided(gradient, self.geometry)
        overlaps = may_overlap(self.geometry.inner) and not _names(function)
        if overlaps:
            inside = where(fresh(_written_last(self.geometry.inner)), inside, 0)
        if not inside._array.flags.c_contiguous:
            inside = clone_contiguous(inside)
        results = list(function.run_tensors([inside]))
        through = results[0]
        if through is None:
            through = fresh(np.zeros(inside._array.shape, inside._array.dtype))
        if overlaps and not self.geometry.parts:  # several elements may have read what was there
            outer, inner = self.geometry.outer, self.geometry.inner
            through = read(move(through, inner, outer, outer), outer, inner)
        return [strided_scatter(gradient, through, self.geometry), *results[1:]]


def _names(function: Node) -> bool:
    """Whether an operation writes what an index or a mask names, not all elements of a window."""
    return isinstance(function, PrimitiveNode) and function.primitive.named is not None


def _written_last(layout: Layout) -> np.ndarray[Any, Any]:
    """Return which elements of a window are what their memory holds once all are written."""
    places = positions(layout)
    last = np.zeros(places.size, np.bool_)
    last[places.size - 1 - np.unique(places.reshape(-1)[::-1], return_index=True)[1]] = True
    return last.reshape(places.shape)


# What messages call an operation whose history is a `CopySlices`.
_OPERATION = ["torch::autograd::CopySlices"]


def rewrite_history(tensor: Tensor, before: Edge, edge: Edge, direct: bool) -> None:
    """Make `edge` the history of the tensor, or of its base where it is a view.

    Parameters
    ----------
    tensor : Tensor
        What was written to.
    before : edge
        Where it hung before.
    edge : edge
        Where what it holds now hangs.
    direct : bool
        Whether the node of `edge` may stand for the write itself: one operation made of the tensor
        what was written into it. Otherwise it is as if the result had been copied in.
    """
    function, output_nr = edge
    if function is None:
        raise RuntimeError("a write that is not recorded has no history")
    base = tensor._base
    if modes.level is not None:
        modes.level.written.append(weakref.ref(tensor if base is None else base))
    if base is None:
        move_retained(tensor, tensor._edge, edge)
        tensor._edge = edge
        tensor._counter[1:2] = [function.operation_name()]
        return
    if not (direct and function.edge(0) == before and function.num_outputs == 1):
        # The view's part came from several nodes: it is as if their result had been copied in.
        source = wrap(tensor._array)
        source._edge = (function, output_nr)
        target = wrap(tensor._array)
        target._edge = before
        copied = copy(target, source)._edge[0]
        function = copied
    enter_view(tensor, function)


def enter_view(view: Tensor, function: Node) -> None:
    """Make the node of a write to a view the history of what it is a view of."""
    base: Any = view._base
    before = gradient_edge(base)
    node = CopySlices(before, function, geometry_of(view, base))
    if base._retains_grad:
        move_retained(base, before, (node, 0))
    base._edge = (node, 0)
    base._counter[1:2] = _OPERATION
