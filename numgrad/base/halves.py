"""float16 (half precision): stored in two bytes, computed in float32.

No kernel knows the dtype. What computes with such arrays widens them first, and rounds the result;
both are for all operations together done where they call their kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent

__all__ = [
    "HALF",
    "HALVES",
    "WIDE",
    "add_halves",
    "as_halves",
    "narrowed",
    "sum_of_halves",
    "wide_dtype",
    "widened",
]

Array = np.ndarray[Any, Any]

HALF, WIDE = np.dtype(np.float16), np.dtype(np.float32)
# To ask whether a dtype is among these takes less than to ask whether it equals one.
HALVES = frozenset((HALF,))


def wide_dtype(dtype: Any) -> Any:
    """Return the dtype to compute in."""
    return WIDE if dtype == HALF else dtype


def widened(value: Any) -> Any:
    """Return an array in the dtype to compute in; anything else as it is.

    >>> widened(np.array([1.5], np.float16)).dtype, widened(2)
    (dtype('float32'), 2)
    """
    if type(value) is np.ndarray and value.dtype == HALF:
        return value.astype(WIDE)
    return value


@silent
def narrowed(array: Array) -> Array:
    """Return an array of float32 rounded to float16: to the nearest, ties to even.

    >>> narrowed(np.array([0.1], np.float32))
    array([0.1], dtype=float16)
    """
    return array.astype(HALF)


@silent
def as_halves(array: Array) -> Array:
    """Return real numbers of any dtype as float16 holds them; complex ones as they are.

    >>> as_halves(np.array([70000]))
    array([inf], dtype=float16)
    """
    return array if array.dtype == HALF or array.dtype.kind == "c" else array.astype(HALF)


@silent
def add_halves(target: Array, source: Array) -> None:
    """Add to an array of float16 in place."""
    target[...] = narrowed(target.astype(WIDE) + source.astype(WIDE))


@silent
def sum_of_halves(left: Array, right: Array) -> Array:
    """Return the sum of two arrays of float16 as a new array, one without dims too.

    >>> sum_of_halves(np.array(0.5, np.float16), np.array(1.0, np.float16))
    array(1.5, dtype=float16)
    """
    return np.asarray(left + right)
