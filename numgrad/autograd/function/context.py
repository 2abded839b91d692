"""The context of a custom Function: what its forward pass leaves to its backward pass."""

from __future__ import annotations

import warnings
import weakref
from typing import Any, ClassVar

from numgrad.graph.node import Node
from numgrad.graph.tensor import Edge, Tensor

__all__ = ["FunctionCtx"]


class FunctionCtx:
    """What a `Function` gets as ``ctx``; any attribute may be set on it.

    Mirrors ``torch.autograd.function.FunctionCtx``. There the context is the node of the graph
    itself; here it belongs to the node, so that no attribute is taken already. What one asks
    ``y.grad_fn`` for and the node does not have, it asks its context.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each argument of ``apply`` whether it requires grad.
    saved_tensors : tuple of (Tensor or None)
        What `save_for_backward` was called with.
    """

    needs_input_grad: tuple[bool, ...] = ()
    to_save: tuple[Tensor | None, ...] | None = None
    saved_for_forward: tuple[Tensor | None, ...] | None = None
    dirty_tensors: tuple[Tensor, ...] | None = None
    non_differentiable: tuple[Tensor, ...] | None = None
    materialize_grads: bool = True
    _forward_cls: ClassVar[Any]
    # Weak, because the node has the context.
    _node: weakref.ref[Any] | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for the backward pass, where ``ctx.saved_tensors`` returns them.

        They are checked there: if one was written to in between, that raises. Call it once.

        Parameters
        ----------
        *tensors : Tensor or None
            Arguments, outputs, or others; through others no second derivative flows.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for ``jvp``, where ``ctx.saved_tensors`` returns them.

        Raises
        ------
        AssertionError
            If one is no tensor.
        """
        for tensor in tensors:
            if not (isinstance(tensor, Tensor) or tensor is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save "
                    "non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which arguments the forward pass writes to; it has to return them."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs do not require grad; the backward pass still gets zeros for them."""
        self.non_differentiable = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Do nothing: views are found without being told; deprecated."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether the backward pass gets zeros, and not None, where no gradient came.

        Raises
        ------
        TypeError
            If that is no bool.
        """
        if not isinstance(value, bool):
            raise TypeError(
                "set_materialize_grads received an invalid combination of arguments - got "
                f"({type(value).__name__}), but expected (bool)"
            )
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved; raises if it was written to since, or freed."""
        node = None if self._node is None else self._node()
        saved: tuple[Tensor | None, ...] = () if node is None else node.saved_tensors
        return saved

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """Return `saved_tensors`; deprecated."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """The nodes that this one hands its gradients to, each with its output number."""
        node = self._live_node()
        return () if node is None else node.next_functions

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes about the node."""
        node = self._live_node()
        return {} if node is None else node.metadata

    def name(self) -> str:
        """Return the node's name."""
        return type(self).__name__

    def _live_node(self) -> Node | None:
        return None if self._node is None else self._node()
