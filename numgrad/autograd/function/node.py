"""The node of a custom Function: runs the user's backward pass, and checks what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from numgrad.autograd.function.context import FunctionCtx
from numgrad.base.tuning import NESTED_PASSES
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.backward.nested import elsewhere
from numgrad.graph.modes.state import modes, restore
from numgrad.graph.node import FREED, Node, modified_message
from numgrad.graph.saved_attributes import SavedTensor
from numgrad.graph.saved_tensors import (
    PackedTensor,
    PackHook,
    UnpackHook,
    pack_tensor,
    restore_tensor,
)
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, fresh, wrap
from numgrad.graph.upward import upward
from numgrad.runtime.holders import nobody_else_holds

__all__ = ["NOTHING", "NO_TENSOR", "DelayedError", "FunctionNode", "Kept"]

# What stands for the shape and the dtype of an output that is no tensor.
NO_TENSOR: tuple[tuple[int, ...], Any] = ((), np.dtype(object))


# What is kept of a tensor that was saved: the tensor, or of an output (which has the node) only its
# array, or what a hook made of it; its version counter; its version; and where it hung in the
# graph, or which output of the node it is.
Kept = tuple[Any, list[Any], int, "Edge | int"]


class _SavedArgument(SavedTensor):
    """A place where the node of a custom Function saved a tensor."""

    __slots__ = ()

    def _entry(self) -> Any:
        kept = (self._node.saved or ())[self._index or 0]
        return kept[0] if kept is not None and isinstance(kept[0], PackedTensor) else kept

    def _pack(self, hooks: tuple[PackHook, UnpackHook]) -> None:
        node: Any = self._node
        kept, index = list(node.saved), self._index or 0
        value, counter, version, where = kept[index]
        tensor = node.restore(kept[index])
        if isinstance(value, Tensor):
            where = gradient_edge(tensor)
        kept[index] = (pack_tensor(tensor.detach(), hooks), counter, version, where)
        node.saved = tuple(kept)
        node.attach()


class FunctionNode(Node):
    """The node of one call of a `Function`.

    Attributes
    ----------
    ctx : FunctionCtx
    input_metas : tuple of ((shape, dtype) or None)
        For each argument of ``apply``; None for what is no tensor.
    output_metas : tuple of (shape, dtype)
        For each output.
    saved_for_forward : tuple or None
        What ``jvp`` finds in ``ctx.saved_tensors``.
    """

    __slots__ = ("ctx", "input_metas", "num_outputs", "output_metas", "saved_for_forward")

    function: ClassVar[Any]  # the subclass of Function
    computes_all: ClassVar[bool] = True
    ctx: FunctionCtx
    input_metas: tuple[tuple[tuple[int, ...], Any] | None, ...]
    output_metas: tuple[tuple[tuple[int, ...], Any], ...]
    saved_for_forward: tuple[Kept | None, ...] | None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def __call__(self, *gradients: Any, **keywords: Any) -> Any:
        """Raise: as in PyTorch, only nodes of built-in operations can be called."""
        raise TypeError(f"'{type(self).__name__}' object is not callable")

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved, checked for writes since then."""
        saved: Any = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        if saved is ACCESSED:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True "
                "is set on the autograd.Function. Either access saved_tensors only once, or set "
                "clear_saved_tensors_on_access=False."
            )
        if self.function.clear_saved_tensors_on_access and saved:
            self.saved = ACCESSED
        return tuple([None if kept is None else self.restore(kept) for kept in saved])

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        """The places where tensors are saved; hooks can be registered on them."""
        if self.saved is None:
            raise RuntimeError(FREED)
        return tuple([_SavedArgument(self, index) for index in range(len(self.saved))])

    def restore(self, kept: Kept) -> Tensor:
        """Return a tensor that was kept, hanging in the graph where it hung then."""
        value, counter, version, where = kept
        if isinstance(value, Tensor):
            if counter[0] != version:
                saved = (value._array, counter, version)
                raise RuntimeError(modified_message(saved, value._edge or NO_EDGE, None))
            return value
        edge = where if isinstance(where, tuple) else self.output_edge(where)
        owner = self if edge[0] is self else None
        if type(value) is PackedTensor:
            return value.unpack_at(edge, owner)
        return restore_tensor((value, counter, version), edge, owner)

    def output_edge(self, number: int) -> Edge:
        """Return where an output hangs in the graph."""
        return (self, number)

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Run the user's backward pass on tensors; the engine keeps it from being recorded.

        What the user returns and keeps nothing of, the engine may write to.
        """
        found = self.run_tensors([None if each is None else wrap(each) for each in gradients])
        arrays = [None if each is None else each._array for each in found]
        del found
        count = range(len(arrays))
        owned = [arrays[i] is not None and nobody_else_holds(arrays, i) for i in count]
        return arrays, owned

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the user's backward pass."""
        ctx, function = self.ctx, self.function
        given: Sequence[Any] = gradients
        if ctx.materialize_grads:
            for gradient in gradients:
                if gradient is None:
                    given = self._materialized(gradients)
                    break
        backward = function._backward_rule()
        if function.boxed_grads_call:
            given = (list(given),)
        depth = modes.depth
        if depth >= NESTED_PASSES:
            found = elsewhere(backward, ctx, *given)
        else:
            modes.depth = depth + 1
            state = modes.__dict__
            before = state.copy()
            try:
                found = backward(ctx, *given)
            finally:
                if state != before:
                    restore(before)
                modes.depth = depth
        return self.checked(found if isinstance(found, tuple) else (found,))

    def _materialized(self, gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return gradients with zeros for those that did not come; none for what is no tensor."""
        return [
            zeros(*meta) if gradient is None and meta is not NO_TENSOR else gradient
            for gradient, meta in zip(gradients, self.output_metas, strict=True)
        ]

    def checked(self, found: tuple[Any, ...]) -> list[Tensor | None]:
        """Return for each tensor among the arguments its gradient, in its shape and dtype.

        Raises
        ------
        RuntimeError
            In PyTorch's words, if the number of gradients is wrong or one of them does not fit.
        """
        metas = self.input_metas
        expected = len(metas)
        if len(found) != expected and (
            len(found) < expected or any(each is not None for each in found[expected:])
        ):
            raise RuntimeError(
                f"function {type(self).__name__} returned an incorrect number of gradients "
                f"(expected {expected}, got {len(found)})"
            )
        results: list[Tensor | None] = []
        for position, meta in enumerate(metas):
            gradient = found[position]
            if meta is None:
                if gradient is not None:
                    raise RuntimeError(
                        f"function {type(self).__name__} returned a gradient different than None "
                        f"at position {position + 1}, but the corresponding forward input was not "
                        "a Variable"
                    )
                continue
            if gradient is None:
                results.append(None)
                continue
            if type(gradient) is not Tensor and not isinstance(gradient, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(gradient).__name__})")
            index = len(results)
            if self.targets[index] is None:
                results.append(None)
                continue
            array = gradient._array
            if array.shape != meta[0] or array.dtype is not meta[1]:
                gradient = self.fitted(gradient, meta, index)
            results.append(gradient)
        return results

    def fitted(self, gradient: Tensor, meta: tuple[tuple[int, ...], Any], index: int) -> Tensor:
        """Return a gradient summed to its input's shape, and in its dtype."""
        shape, dtype = meta
        array = gradient._array
        if array.shape != shape:
            if not _is_expandable(shape, array.shape):
                raise RuntimeError(
                    f"Function {type(self).__name__} returned an invalid gradient at index {index} "
                    f"- got {list(array.shape)} but expected shape compatible with {list(shape)}"
                )
            gradient = upward.sum_to_size(gradient, shape)
        if array.dtype != dtype:
            if array.dtype.kind == "c" and dtype.kind != "c":
                raise RuntimeError(
                    "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == "
                    "grad_is_complex) to be true, but got false.  (Could this error message be "
                    "improved?  If so, please report an enhancement request to PyTorch.)"
                )
            gradient = upward.cast(gradient, dtype)
        return gradient

    def run_tangents(self, tangents: Sequence[Tensor | None]) -> Sequence[Tensor | None] | None:
        """Run the user's ``jvp``, if there is one."""
        ctx, function = self.ctx, self.function
        if not function._has_jvp():
            return None
        remaining = iter(tangents)
        given: list[Tensor | None] = []
        for meta in self.input_metas:
            tangent = None if meta is None else next(remaining)
            if tangent is None and meta is not None and ctx.materialize_grads:
                tangent = zeros(*meta)
            given.append(tangent)
        saved = self.saved
        if self.saved_for_forward is not None:
            self.saved = self.saved_for_forward
        try:
            found = function.jvp(ctx, *given)
        finally:
            self.saved = saved
        results = found if isinstance(found, tuple) else (found,)
        if len(results) != self.num_outputs:
            raise RuntimeError(
                "Function's jvp returned an invalid number of forward gradients (expected "
                f"{self.num_outputs} but got {len(results)})"
            )
        for position, (tangent, (shape, _)) in enumerate(
            zip(results, self.output_metas, strict=True)
        ):
            if tangent is None:
                continue
            if not isinstance(tangent, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(tangent).__name__}) for grad output "
                    f"{position}."
                )
            if tangent._array.shape != shape:
                raise RuntimeError(
                    "Trying to set a forward gradient that has a different size than that of the "
                    f"original Tensor, this is not supported. Tensor is of size {list(shape)} "
                    f"while the given forward gradient is of size {list(tangent._array.shape)}."
                )
        return list(results)


class _Nothing(tuple[Any, ...]):
    """Like the empty tuple but for being true: the engine frees it as it frees saved tensors."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


# What stands in ``node.saved`` of a call that saved nothing.
NOTHING = _Nothing()
# What stands in ``node.saved`` after the only access that `clear_saved_tensors_on_access` allows.
ACCESSED: tuple[Any, ...] = ("accessed",)


def zeros(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return zeros, in place of a gradient that did not come."""
    return fresh(np.zeros(shape, dtype))


def _is_expandable(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a tensor of one shape broadcasts to another one."""
    if len(shape) > len(wanted):
        return False
    tail = wanted[len(wanted) - len(shape) :]
    return all(length in (1, other) for length, other in zip(shape, tail, strict=True))


class DelayedError(Node):
    """The node of what has a history, but none that could be differentiated."""

    __slots__ = ("message", "num_outputs")

    message: str

    def __init__(self, edges: Sequence[Edge], message: str) -> None:
        super().__init__(edges)
        self.message = message
        self.num_outputs = len(self.targets)

    def name(self) -> str:
        """Return PyTorch's name."""
        return "torch::autograd::Error"

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Raise."""
        raise RuntimeError(self.message)

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Raise."""
        raise RuntimeError(self.message)


DelayedError.__name__ = DelayedError.__qualname__ = "Error"
