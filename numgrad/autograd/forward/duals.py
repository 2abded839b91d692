"""Dual levels of forward mode: which tensors have a tangent, and what operations do with those.

A tangent belongs to an array, not to a tensor: what a node saves is the array, and so what a rule
works with has its tangent, too, which makes forward over backward mode. While a level is open,
every primitive tells it of each call (``modes.dual``); the level asks it for the node that backward
mode would have, and the node for the tangents of the outputs (`TangentMaps`). The level is hidden
meanwhile: a tangent has no tangent.

The tangent of a tensor's view is a view of its tangent, and is laid out as the tensor is. So a
write to either is a write to both, as it is for their tensors.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from numgrad.autograd.forward.push_forward import TangentMaps
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.state import intercept, modes, recording, stop_intercepting
from numgrad.graph.recorder import follow_strides, place_of
from numgrad.graph.tensor import NO_EDGE, Tensor, is_inference, set_array, wrap
from numgrad.graph.upward import upward
from numgrad.kernels.move.memory_order import zeros_with_gaps
from numgrad.kernels.move.strides import layout_of, may_overlap, repeats_elements
from numgrad.ops.movement.view_geometry import geometry_of, strided

__all__ = ["DualLevel", "laid_out_as", "lie_as", "own"]


class DualLevel:
    """An open level of forward mode.

    There is one at a time, for all threads, as in PyTorch.
    """

    def __init__(self) -> None:
        # By the id of an array: what keeps track of the array, and the tangent. None is for views
        # that have none although their base has one.
        self._tangents: dict[int, tuple[Any, Tensor | None]] = {}

    def open(self) -> None:
        """Let operations hand on tangents."""
        try:
            type(modes).dual = self
            intercept(self)
        except BaseException:  # Ctrl-C: nobody would close it
            self.close()
            raise

    def close(self) -> None:
        """Forget all tangents."""
        type(modes).dual = None
        stop_intercepting(self)
        self._tangents.clear()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Compute on this thread as if there were no level."""
        if modes.dual is None:
            yield
            return
        modes.dual = None
        try:
            yield
        finally:
            del modes.dual

    def tangent(self, tensor: Tensor) -> Tensor | None:
        """Return the tangent of a tensor, None if it has none.

        A view that has none gets that of the base, of which it may be an older view.
        """
        found = self._tangents.get(id(tensor._array))
        if found is not None:
            return found[1]
        base = tensor._base
        if base is None or tensor._array.dtype.kind not in "fc" or not self._has(base._array):
            return None
        with self.hidden():
            tangent = strided(self._laid_out(base), geometry_of(tensor, base))
        self.put(tensor._array, tangent)
        return tangent

    def _has(self, array: Any) -> bool:
        found = self._tangents.get(id(array))
        return found is not None and found[1] is not None

    def put(self, array: Any, tangent: Tensor | None) -> None:
        """Make a tensor the tangent of an array, or let that have none, as long as that lives."""
        key = id(array)
        forget = self._tangents.pop
        if isinstance(array, np.ndarray):
            kept: Any = weakref.ref(array, lambda _: forget(key, None))
        else:  # in a traced function: they all live as long as the trace
            kept = array
        self._tangents[key] = kept, tangent

    def copy_tangent(self, source: Any, target: Any) -> None:
        """Give an array, the copy of another before a write to that, the tangent of then."""
        found = self._tangents.get(id(source))
        if found is not None and found[1] is not None:
            with self.hidden():
                self.put(target, found[1].clone())

    def record(
        self,
        record: Callable[[Sequence[Any], Sequence[Tensor], int], None],
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
        view: Callable[[Tensor], Any] | None = None,
    ) -> None:
        """Record an operation where grad mode wants that, and hand on the tangents of its inputs.

        Parameters
        ----------
        record : callable
            ``record(inputs, outputs, moving)`` attaches a node to the outputs, if an input requires
            grad or is one of those whose bits are set in `moving`.
        inputs : sequence of tensor or number
        outputs : sequence of tensor
        view : callable, optional
            The operation itself, if it gives views of its input.
        """
        if modes.grad:
            record(inputs, outputs, 0)
        tangents = [self.tangent(each) if isinstance(each, Tensor) else None for each in inputs]
        moving = sum(1 << i for i, tangent in enumerate(tangents) if tangent is not None)
        if not moving or modes.inference:
            if view is not None and id(inputs[0]._array) in self._tangents:
                for output in outputs:
                    self.put(output._array, None)
            return
        records = modes.grad and _require_grad((*inputs, *tangents))
        with self.hidden(), recording(records):
            if view is not None:
                pushed = view(self._laid_out(inputs[0]))
                found = [pushed] if isinstance(pushed, Tensor) else list(pushed)
            else:
                found = self._push(record, inputs, outputs, tangents, moving)
            if view is None:
                found = [
                    None if tangent is None else lie_as(tangent, output._array)
                    for output, tangent in zip(outputs, found, strict=True)
                ]
        for output, tangent in zip(outputs, found, strict=True):
            if tangent is not None and output._array.dtype.kind in "fc":
                self.put(output._array, tangent)

    def _push(
        self,
        record: Callable[[Sequence[Any], Sequence[Tensor], int], None],
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
        tangents: Sequence[Tensor | None],
        moving: int,
    ) -> list[Tensor | None]:
        """Return the tangents of the outputs, by the tangent map of a node made for that."""
        # What this node saves has no tangents: what is computed here is of first order.
        primals = [_primal(each) if isinstance(each, Tensor) else each for each in inputs]
        results = [_primal(output) for output in outputs]
        for result in results:
            result._edge = NO_EDGE
        hooks, modes.saved_hooks = modes.saved_hooks, ()  # it is not saved for a backward pass
        try:
            record(primals, results, moving)
        finally:
            modes.saved_hooks = hooks
        edges = [result._edge for result in results if result._edge]
        node = next((node for node, _ in edges if node is not None), None)
        if node is None:
            return [None] * len(outputs)
        fitting = [
            None if tangent is None else _in_dtype(tangent, each._array.dtype)
            for tangent, each in zip(tangents, inputs, strict=True)
        ]
        # A node has no edges for parameters that are never tensors.
        found = TangentMaps().push(node, fitting[: len(node.targets)])
        return [own(tangent, tangents) for tangent in found]

    def _laid_out(self, tensor: Tensor) -> Tensor:
        """Return the tangent of a tensor, laid out in memory as the tensor is."""
        array, tangent = tensor._array, self._tangents[id(tensor._array)][1]
        if tangent is None:
            raise RuntimeError("a tensor without a tangent has none to lay out")
        if tangent._array.dtype == array.dtype and (
            not isinstance(array, np.ndarray) or layout_of(tangent._array) == layout_of(array)
        ):
            return tangent
        made = laid_out_as(tangent, array)
        self.put(array, made)
        return made

    def before_write(self, tensor: Tensor) -> Tensor:
        """Return a copy of a tensor and its tangent, to compute with what will be overwritten."""
        stand_in = wrap(tensor._array.copy("K"))
        tangent = self.tangent(tensor)
        if tangent is not None:
            with self.hidden():
                self.put(stand_in._array, tangent.clone())
        return stand_in

    def write(self, tensor: Tensor, result: Tensor) -> None:
        """Write the tangent of an in-place operation's result into that of its tensor.

        A view of a tensor without a tangent gives that one, which is zero elsewhere.
        """
        old, new = self.tangent(tensor), self.tangent(result)
        if (old is None and new is None) or modes.inference:
            return
        with self.hidden():
            if old is None and new is not None:
                base = tensor._base
                new = _in_dtype(new, tensor._array.dtype)
                if base is None:
                    self.put(tensor._array, new.clone())
                    return
                whole = wrap(zeros_with_gaps(base._array))  # so that the other is a view of it
                old = strided(whole, geometry_of(tensor, base))
                self.put(base._array, whole)
                self.put(tensor._array, old)
            if old is None:
                raise RuntimeError("one of two tangents is there")
            if new is None:
                old.zero_()
            else:
                old.copy_(new)

    def refuse_out(self, function: str, tensors: Sequence[Any]) -> None:
        """Raise if a function that shall write its result somewhere is given a tangent."""
        for tensor in tensors:
            if isinstance(tensor, Tensor) and self.tangent(tensor) is not None:
                raise NotImplementedError(
                    f"Trying to use forward AD with {function}_out that does not support it "
                    "because it is an out= function"
                )


def _require_grad(tensors: Sequence[Any]) -> bool:
    return any(isinstance(each, Tensor) and each._edge is not NO_EDGE for each in tensors)


def _primal(tensor: Tensor) -> Tensor:
    """Return a tensor over the same memory, in the same place in the graph, without a tangent."""
    primal = wrap(tensor._array[...])
    if not is_inference(tensor):  # whose version nobody may save; here it is not needed
        primal._counter = tensor._counter
    primal._edge = gradient_edge(tensor)
    return primal


def _in_dtype(tangent: Tensor, dtype: np.dtype[Any]) -> Tensor:
    if tangent._array.dtype == dtype:
        return tangent
    cast: Tensor = upward.cast(tangent, dtype)
    return cast


def own(tangent: Tensor | None, given: Sequence[Tensor | None]) -> Tensor | None:
    """Return a tangent that shares no memory with those that it came from."""
    if tangent is None or not isinstance(tangent._array, np.ndarray):
        return tangent
    for each in given:
        if each is not None and np.may_share_memory(tangent._array, each._array):
            copied: Tensor = tangent.clone()
            return copied
    return tangent


def laid_out_as(tangent: Tensor, array: Any) -> Tensor:
    """Return a copy of a tangent, of an array's dtype and with its strides.

    Between the elements there is memory where there is some in the array: views of another dtype
    may take it in. Where elements share memory, the copy has none of their strides.
    """
    shared = not isinstance(array, np.ndarray) or repeats_elements(array)
    made = np.empty_like(array) if shared else zeros_with_gaps(array)
    copy: Tensor = wrap(made).copy_(tangent)
    return copy


def lie_as(tangent: Tensor, array: Any) -> Tensor:
    """Return a tangent that lies in memory as its tensor's array does, as PyTorch's do.

    What the array shows several times lies once. A tangent of an array with other elements that
    share memory, as of windows, stays as it is.
    """
    place, own = place_of(array), place_of(tangent._array)
    follow_strides(array, tangent._array)
    if place.size < 2 or _steps(own) == _steps(place):
        return tangent
    shared = [step == 0 and n > 1 for step, n in zip(place.strides, place.shape, strict=True)]
    once = place[tuple([slice(1 if each else None) for each in shared])]
    if may_overlap(layout_of(once)) or tangent._array.dtype != place.dtype:
        return tangent
    part = tangent
    for dim, each in enumerate(shared):
        part = part.narrow(dim, 0, 1) if each else part
    if modes.trace is None:
        part = wrap(zeros_with_gaps(once)).copy_(part)
    else:
        part = part.clone()
        set_array(part, modes.trace.laid_out(part._array, zeros_with_gaps(once), array))
    return part.expand(place.shape) if any(shared) else part


def _steps(place: Any) -> list[int]:
    """Return the strides that lead from one element to another."""
    return [step for step, n in zip(place.strides, place.shape, strict=True) if n > 1]
