"""Python numbers as arrays, if the dtype can hold them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.recorder import note_given

__all__ = ["overflow_error", "scalar_array"]

Array = np.ndarray[Any, Any]

_GREATEST = {np.dtype(kind): float(np.finfo(kind).max) for kind in (np.float16, np.float32)}


def scalar_array(value: Any, dtype: np.dtype[Any]) -> Array:
    """Return a Python number as a 0-d array.

    Raises
    ------
    RuntimeError
        If the dtype cannot hold the number.
    """
    note_given(value)
    if isinstance(value, (complex, np.complexfloating)) and dtype.kind != "c":
        if value.imag != 0:
            raise overflow_error(dtype)
        value = value.real
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        is_float = isinstance(value, (float, np.floating))
        if is_float and not limits.min <= float(value) <= limits.max:  # before it is truncated
            raise overflow_error(dtype)
        value = int(value)
        if value > limits.max:
            raise overflow_error(dtype)
        # Unsigned types take negative integers that fit when they wrap around.
        if value < (limits.min if dtype.kind == "i" else -int(limits.max)):
            raise overflow_error(dtype)
        return np.asarray(value & limits.max if dtype.kind == "u" else value, dtype)
    if dtype in _GREATEST and math.isfinite(value) and abs(value) > _GREATEST[dtype]:
        raise overflow_error(dtype)
    return np.asarray(value, dtype)


def overflow_error(dtype: np.dtype[Any]) -> RuntimeError:
    """Return the error of a number that a dtype cannot hold."""
    return RuntimeError(
        f"value cannot be converted to type {dtypes.of_numpy(dtype).c_name} without overflow"
    )
