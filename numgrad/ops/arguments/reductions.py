"""The arguments of reductions and scans: dims and `dtype`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.float_errors import silent
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.arguments.dims import read_dims

__all__ = ["in_dtype", "read_dtype", "reduced_dims"]

Array = np.ndarray[Any, Any]
_astype = silent(np.ndarray.astype)


def reduced_dims(input: Tensor, dim: Sequence[int] | None) -> tuple[int, ...]:
    """Return the dims to reduce, counted from the front; None and no dims at all mean all of them.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice.
    """
    ndim = input._array.ndim
    if not dim:
        return tuple(range(ndim))
    dims = read_dims(dim, ndim)
    return dims if ndim else ()


def read_dtype(input: Tensor, dtype: dtypes.dtype | None) -> np.dtype[Any] | None:
    """Return the NumPy dtype to compute in, or None for the input's own.

    Raises
    ------
    RuntimeError
        If a gradient would have to pass through integers.
    """
    if dtype is None:
        return None
    if dtype.category < dtypes.FLOATING and modes.grad and input.requires_grad:
        raise RuntimeError(f"Autograd not support dtype: {dtype.scalar_name}")
    if dtype.numpy == input._array.dtype and dtype.category >= dtypes.FLOATING:
        return None  # integers and bools would be added in int64
    return dtype.numpy


def in_dtype(array: Array, dtype: np.dtype[Any] | None) -> Array:
    """Return an array in a dtype; of complex numbers that become real, the real part."""
    if dtype is None or array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        warn("Casting complex values to real discards the imaginary part")
        array = array.real
    return _astype(array, dtype)
