"""AccumulateGrad: where gradients of leaves end, and how gradients are added up."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.base.halves import HALF, sum_of_halves
from numgrad.base.layouts import contiguous_format
from numgrad.base.tuning import NESTED_PASSES
from numgrad.graph.backward.nested import elsewhere
from numgrad.graph.inplace import before_write, bump_version
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.node import Node, OutputMeta, next_sequence
from numgrad.graph.recorder import place_of
from numgrad.graph.tensor import Edge, Tensor, refresh_view, set_array, wrap
from numgrad.kernels.move.accumulate import add_arrays, add_into, private_copy
from numgrad.kernels.move.memory_order import copy_like, copy_with_gaps, empty_for
from numgrad.kernels.move.strides import (
    is_dense,
    layout_of,
    may_overlap,
    repeats_elements,
    strided_view,
)
from numgrad.runtime.forks import forkable_lock
from numgrad.runtime.memory import empty

__all__ = [
    "OVERLAPS_ITSELF",
    "AccumulateGrad",
    "add_retained",
    "copy_as_it_lies",
    "gradient_edge",
    "private_tensor",
    "sum_of",
]

_add_silently = silent(np.add)

OVERLAPS_ITSELF = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)
_new = object.__new__


# Held while a gradient is added to what a tensor has, so that no thread's part is lost. It is one
# for all tensors: what it costs is to be paid for every leaf in every pass. The same thread may
# take it again, because a finalizer can run anywhere.
_adding = forkable_lock()


class AccumulateGrad(Node):
    """Adds the gradient that arrives into ``variable.grad``."""

    __slots__ = ("variable",)

    variable: Tensor

    def accumulate_array(self, gradient: np.ndarray[Any, Any], owned: bool) -> None:
        """Add a gradient that carries no graph; keep the array itself if it is ours to keep."""
        leaf = self.variable
        with _adding:
            current = leaf._grad
            array = leaf._array if current is None else current._array
            if array.shape != gradient.shape:  # kernels rely on it
                raise RuntimeError(_misfit(array, gradient))
            if current is None:
                if leaf._level is None:
                    leaf._grad = wrap(_as_gradient_of(array, gradient, owned))
                else:  # of a transformation, which gives it as it comes
                    leaf._grad = wrap(gradient if owned else copy_as_it_lies(gradient))
            else:  # even if it is part of a graph, as in PyTorch; then its version tells
                if not array.flags.c_contiguous and may_overlap(layout_of(array)):
                    raise RuntimeError(OVERLAPS_ITSELF)
                if interceptors:
                    before_write(current)
                bump_version(current)
                add_into(array, gradient)
        if leaf._post_accumulate_hooks:
            self.call_post_accumulate_hooks()

    def accumulate_tensor(self, gradient: Tensor) -> None:
        """Add a gradient that may carry a graph of its own."""
        leaf = self.variable
        with _adding:
            current = leaf._grad
            array = leaf._array if current is None else current._array
            if array.shape != gradient._array.shape:
                raise RuntimeError(_misfit(array, gradient._array))
            if current is not None:
                leaf._grad = current + gradient
            elif modes.trace is None:
                leaf._grad = wrap(_like(leaf._array)).copy_(gradient)
            elif leaf._level is not None:
                leaf._grad = private_tensor(gradient)
            else:
                leaf._grad = copy = gradient.clone()
                set_array(copy, modes.trace.laid_out(copy._array, _like(place_of(array)), array))
        if leaf._post_accumulate_hooks:
            self.call_post_accumulate_hooks()

    def call_post_accumulate_hooks(self) -> None:
        """Call the hooks that get the leaf after its gradient was added."""
        if modes.depth > NESTED_PASSES:
            elsewhere(self.call_post_accumulate_hooks)
            return
        leaf = self.variable
        for hook in list((leaf._post_accumulate_hooks or {}).values()):
            result = hook(leaf)
            if result is not None and result is not leaf:
                if not isinstance(result, Tensor):
                    kind = type(result).__name__
                    raise TypeError(f"expected Variable, but hook returned '{kind}'")
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")

    def output_meta(self, number: int) -> OutputMeta | None:
        """Return the shape and the dtype of the leaf."""
        return self.variable._array.shape, self.variable._array.dtype

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Add the gradient, of who calls the node; the engine itself feeds leaves otherwise."""
        if gradients[0] is not None:
            self.accumulate_tensor(gradients[0])
        return ()


def _misfit(array: Any, gradient: Any) -> str:
    return (
        f"a gradient of size {list(gradient.shape)} came to a tensor that is of size "
        f"{list(array.shape)} now, or whose gradient is: one of them was given data of another "
        "size after the graph was recorded"
    )


def add_retained(tensor: Tensor, gradient: Any) -> None:
    """Add a gradient, an array or a tensor, to that which a computed tensor retains.

    The first one is copied row by row, as in PyTorch, however the tensor lies.
    """
    with _adding:
        present = tensor._grad
        if isinstance(gradient, Tensor):
            if present is None:
                tensor._grad = gradient.clone(memory_format=contiguous_format)
            else:
                tensor._grad = present + gradient
        elif present is None:
            tensor._grad = wrap(private_copy(gradient))
        else:
            array = present._array
            total = (sum_of_halves if array.dtype == HALF else add_arrays)(array, gradient)
            tensor._grad = wrap(total)


def copy_as_it_lies(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy of a gradient that lies as it does: what one element shows stays one."""
    if array.flags.c_contiguous:
        return private_copy(array)
    if not repeats_elements(array):
        return copy_with_gaps(array)
    shared = [step == 0 and n > 1 for step, n in zip(array.strides, array.shape, strict=True)]
    once = copy_like(array[tuple([slice(1 if each else None) for each in shared])])
    steps = zip(once.strides, shared, strict=True)
    strides = tuple([0 if each else step // once.itemsize for step, each in steps])
    return strided_view(once, (array.shape, strides, 0))


def private_tensor(gradient: Tensor) -> Tensor:
    """Return a copy of a gradient, which may be traced, that lies as it does."""
    copy = gradient.clone()
    array = gradient._array
    place = place_of(array)
    if place.flags.c_contiguous:
        return copy
    if modes.trace is None:
        set_array(copy, copy_as_it_lies(array))
    else:
        set_array(copy, modes.trace.laid_out(copy._array, copy_as_it_lies(place), array))
    return copy


def sum_of(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the sum of two gradients, laid out as a loop over them lays it out."""
    if left.ndim < 2 or left.flags.c_contiguous:
        return add_arrays(left, right)
    total = empty_for(left.shape, left.dtype, [left, right])
    _add_silently(left, right, out=total)
    return total


def _as_gradient_of(
    leaf: np.ndarray[Any, Any], gradient: np.ndarray[Any, Any], owned: bool
) -> np.ndarray[Any, Any]:
    """Return a gradient that is the leaf's to keep, with the leaf's strides if those are dense."""
    if gradient.ndim < 2 or leaf.flags.c_contiguous:
        return gradient if owned and gradient.flags.c_contiguous else private_copy(gradient)
    if owned and _lies_right(leaf, gradient):
        return gradient
    copy = _like(leaf)
    copy[...] = gradient
    return copy


def _lies_right(leaf: np.ndarray[Any, Any], gradient: np.ndarray[Any, Any]) -> bool:
    """Whether a gradient lies in memory as one that is made for the leaf would."""
    if not is_dense(leaf):
        return gradient.flags.c_contiguous
    steps = zip(leaf.strides, gradient.strides, leaf.shape, strict=True)
    return all(step == own or length == 1 for step, own, length in steps)


def _like(leaf: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return new memory for a gradient, in PyTorch's layout: a dense leaf's, else row by row."""
    return np.empty_like(leaf) if is_dense(leaf) else empty(leaf.shape, leaf.dtype)


def gradient_edge(tensor: Tensor) -> Edge:
    """Return where the gradient of `tensor` goes: a node and an output number, or NO_EDGE.

    The AccumulateGrad node of a leaf is made when a graph first needs it, and lives as long as
    some graph does: a leaf that held it would be a reference cycle.
    """
    if tensor._base is not None:
        refresh_view(tensor)
    edge = tensor._edge
    if edge is not None:
        return edge
    reference = tensor._accumulator
    node = None if reference is None else reference()
    if node is None:
        node = _new(AccumulateGrad)
        node.variable = tensor
        node.targets = node.numbers = node.saved = ()
        node.sequence = next_sequence()
        node.attached = None
        if tensor._hooks is not None:
            node.attach().hooks[0] = tensor._hooks
        tensor._accumulator = weakref.ref(node)
    return (node, 0)
