"""What tensors are asked about the memory that they lie in."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.recorder import address_of
from numgrad.graph.tensor import Tensor, holder_of
from numgrad.kernels.move.strides import extent, layout_of, strided_view
from numgrad.ops.mutation.storages import (
    LEGACY_STORAGES,
    NOT_SHARED,
    STORAGES,
    TypedStorage,
    UntypedStorage,
    as_typed,
    as_untyped,
    warn_once,
)
from numgrad.ops.signatures.declared import declare

__all__ = [
    "is_set_to",
    "is_shared",
    "is_storage",
    "share_memory_",
    "storage_type",
    "typed_storage",
    "untyped_storage",
]

Array = np.ndarray[Any, Any]


def _bytes_of(tensor: Tensor) -> Array:
    """Return the memory of a tensor, or what that is a part of, as bytes."""
    own = np.asarray(tensor._array)  # raises what there is to say of one without numbers
    holder = holder_of(tensor)
    low, high = extent(layout_of(holder))
    start = address_of(holder) + low * holder.itemsize
    end = start + (high - low) * holder.itemsize
    if own.size and not start <= address_of(own) <= end:
        holder = own  # it was given memory of its own
        low, high = extent(layout_of(holder))
    return strided_view(holder, ((high - low,), (1,), low)).view(np.uint8)


@declare("is_storage(object obj)", method=False)
def is_storage(obj: Any) -> bool:
    """Return whether an object is a storage.

    >>> import numgrad as ng
    >>> ng.is_storage(ng.ones(2).untyped_storage()), ng.is_storage(ng.ones(2))
    (True, False)
    """
    return isinstance(obj, STORAGES)


@declare("untyped_storage(Tensor self)", function=False)
def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the memory that the tensor lies in, with its views and its base, as bytes.

    >>> import numgrad as ng
    >>> ng.zeros(3)[1:].untyped_storage().size()
    12
    """
    return as_untyped(_bytes_of(self))


@declare("storage(Tensor self)", function=False)
def typed_storage(self: Tensor) -> TypedStorage:
    """Return the memory that the tensor lies in as elements of its dtype; PyTorch deprecates it.

    >>> import warnings
    >>> import numgrad as ng
    >>> with warnings.catch_warnings(action="ignore"):
    ...     ng.zeros(3)[1:].storage().size()
    3
    """
    warn_once(2)
    flat, dtype = _bytes_of(self), self._array.dtype
    return as_typed(flat[: flat.size // dtype.itemsize * dtype.itemsize].view(dtype))


@declare("storage_type(Tensor self)", function=False)
def storage_type(self: Tensor) -> type[TypedStorage]:
    """Return the legacy class of the tensor's storage; deprecated.

    >>> import warnings
    >>> import numgrad as ng
    >>> with warnings.catch_warnings(action="ignore"):
    ...     ng.zeros(3).storage_type().__name__
    'FloatStorage'
    """
    warn_once(2)
    found: type[TypedStorage] = LEGACY_STORAGES[f"{self.dtype.scalar_name}Storage"]
    return found


@declare("is_shared(Tensor self)", function=False)
def is_shared(self: Tensor) -> bool:
    """Return whether other processes see the memory: never.

    >>> import numgrad as ng
    >>> ng.zeros(3).is_shared()
    False
    """
    return False


@declare("share_memory_(Tensor self)", function=False)
def share_memory_(self: Tensor) -> Tensor:
    """Refuse: no process sees the memory of another one.

    Raises
    ------
    RuntimeError
        Always.
    """
    raise RuntimeError(NOT_SHARED)


@declare("is_set_to(Tensor self, Tensor tensor)", function=False)
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Return whether both tensors are the same elements of the same memory.

    >>> import numgrad as ng
    >>> x = ng.zeros(3)
    >>> x.detach().is_set_to(x), x[1:].is_set_to(x)
    (True, False)
    """
    return (
        self.untyped_storage() == tensor.untyped_storage()
        and self.data_ptr() == tensor.data_ptr()
        and self._array.shape == tensor._array.shape
        and self._array.strides == tensor._array.strides
    )
