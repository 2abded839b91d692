"""What a mask leaves: elements that do not count give way to the identity of the operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.movement.unit_dims import broadcast_to
from numgrad.ops.pointwise.selection import where

__all__ = ["dims_of", "left", "mask_of", "sum_dtype"]

# Integers that sums and products of are in int64.
_SMALL = frozenset({"uint8", "bool", "int8", "int16", "int32"})


def _end(dtype: dtypes.dtype, end: str) -> Any:
    """Return the least or the greatest number of a dtype; None of bools and wide unsigned ones."""
    if dtype.is_floating_point:
        return -np.inf if end == "min" else np.inf
    if dtype.is_signed or dtype is dtypes.uint8:
        return getattr(dtypes.iinfo(dtype), end)
    return None


# What does not change the result, of a dtype; None where PyTorch knows none.
IDENTITIES: dict[str, Callable[[dtypes.dtype], Any]] = {
    "sum": lambda dtype: 0,
    "prod": lambda dtype: 1,
    **dict.fromkeys(("amax", "argmax", "logaddexp"), lambda dtype: _end(dtype, "min")),
    **dict.fromkeys(("amin", "argmin"), lambda dtype: _end(dtype, "max")),
    "logsumexp": lambda dtype: -np.inf if dtype.is_complex else _end(dtype, "min"),
    "norm": lambda dtype: 0,
    "median": lambda dtype: np.nan,
}


def mask_of(input: Tensor, mask: Tensor) -> Tensor:
    """Return a mask as bools of the input's shape.

    Raises
    ------
    IndexError
        If it has more dims than the input.
    RuntimeError
        If it does not expand to the input's shape.
    """
    shape = input._array.shape
    if mask._array.shape != shape:
        if mask._array.ndim > len(shape):
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality higher than of "
                "the input)"
            )
        mask = broadcast_to(mask, shape)
    return mask.to(dtypes.bool_)


def left(name: str, input: Tensor, mask: Tensor | None, identity: Any = None) -> Tensor:
    """Return the input with the identity of an operation where the mask is False.

    Raises
    ------
    NotImplementedError
        If the operation has none in the input's dtype.
    """
    if mask is None:
        return input
    chosen = mask_of(input, mask)
    if identity is None:
        identity = IDENTITIES[name](input.dtype)
    if identity is None:
        raise NotImplementedError(f"identity of {name} on {input.dtype} input")
    return where(chosen, input, input._array.dtype.type(identity).item())


def dims_of(dim: Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Return the dims to reduce in order, counted from the front; none and None mean all.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice.
    """
    if not dim:
        return tuple(range(ndim))
    found: list[int] = []
    for each in dim:
        if each in found:
            raise RuntimeError(f"dim={each} appears multiple times in the list of dims")
        found.append(wrap_dim(each, ndim))
    return tuple(sorted(found))


def sum_dtype(input: Tensor, dtype: dtypes.dtype | None) -> dtypes.dtype:
    """Return the dtype of sums and products: the one asked for, the input's, or int64."""
    if dtype is not None:
        return dtype
    return dtypes.int64 if input._array.dtype.name in _SMALL else input.dtype
