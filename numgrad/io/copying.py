"""Copy and pickle tensors: ``copy.copy``, ``copy.deepcopy``, ``pickle``."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np

from numgrad.graph.recorder import TracedTensor, TraceError, at_hand, is_traced_array, note_numbers
from numgrad.graph.storage import array_within, compact, span_of, tensor_within
from numgrad.graph.tensor import Tensor, holder_of, wrap
from numgrad.runtime.frames import where_user_is

__all__ = ["attributes_of", "deep_copy", "reduce_tensor", "shallow_copy", "warn_of_hooks"]

# What a tensor is; anything else in its __dict__ was put there by the user.
_OWN = frozenset((*Tensor.__annotations__, *TracedTensor.__annotations__))
# Where `copy.deepcopy` notes which memory it has copied already.
_COPIED = "numgrad: spans of memory and their copies"


def attributes_of(tensor: Tensor) -> dict[str, Any]:
    """Return the attributes that the user gave a tensor."""
    return {name: value for name, value in vars(tensor).items() if name not in _OWN}


def warn_of_hooks(tensor: Tensor) -> None:
    """Warn, as PyTorch does, of hooks that are not written with a tensor."""
    for hook in (tensor._hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning",
                UserWarning,
                stacklevel=4,
            )


def shallow_copy(self: Tensor) -> Tensor:
    """Return another tensor on the same memory: a leaf, without the gradient."""
    made = wrap(self._array)
    if self._base is not None or self._owner is not None:
        made._owner = holder_of(self)
    if self.requires_grad:
        made._edge = None
    vars(made).update(attributes_of(self))
    return made


def deep_copy(self: Tensor, memo: dict[Any, Any]) -> Tensor:
    """Copy a leaf with its gradient; what shares memory shares it in the copy, too.

    Raises
    ------
    RuntimeError
        If the tensor is no leaf, as in PyTorch.
    """
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        known: Tensor = memo[id(self)]
        return known
    copied = memo[id(self)] = _copied(self, memo)
    if self.requires_grad:
        copied._edge = None
    if self._grad is not None:
        copied._grad = copy.deepcopy(self._grad, memo)
    vars(copied).update(copy.deepcopy(attributes_of(self), memo))
    return copied


def _copied(tensor: Tensor, memo: dict[Any, Any]) -> Tensor:
    """Return a tensor in a copy of another one's memory, one copy for all that lie in it."""
    array = at_hand(tensor._array)  # in a traced function it is copied in every call
    copies: list[tuple[Any, Any]] = memo.setdefault(_COPIED, [])
    if is_traced_array(array):
        whole = tensor if tensor._base is None else tensor._base
        if any(known is whole for known, _ in copies):
            raise TraceError(
                f"{where_user_is()}jit: two tensors that share memory are copied together, so that "
                "the copies would share theirs. That can't be compiled: copy one of them, and make "
                "the other one of the copy"
            )
        copies.append((whole, None))
        return wrap(array.copy("K"))
    span = span_of(tensor)
    found = next((entry for entry in copies if entry[0].contains(span)), None)
    if found is None:
        found = (span, span.copy())
        copies.append(found)
    span, memory = found
    offset = array.__array_interface__["data"][0] - span.start
    within = array_within(memory, array.dtype, array.shape, array.strides, offset)
    return tensor_within(within, memory)


def reduce_tensor(self: Tensor, protocol: Any) -> tuple[Any, ...]:
    """Pickle the elements, their order in memory, whether they require grad, and attributes.

    The graph, the gradient, and what shares the memory are not pickled.
    """
    warn_of_hooks(self)
    note_numbers(self._array)
    array = np.asarray(self._array)  # raises what there is to say in a traced function
    flat, strides = compact(array)
    attributes = attributes_of(self) or None
    return _rebuild, (flat, array.shape, strides, self.requires_grad, attributes)


def _rebuild(
    flat: np.ndarray[Any, Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    requires_grad: bool,
    attributes: dict[str, Any] | None,
) -> Tensor:
    """Return an unpickled tensor, a leaf."""
    tensor = wrap(array_within(flat, flat.dtype, shape, strides, 0))
    if requires_grad:
        tensor.requires_grad = True
    if attributes:
        vars(tensor).update(attributes)
    return tensor
