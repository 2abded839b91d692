"""Python numbers as arrays, if the dtype can hold them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.recorder import note_given

__all__ = ["IN_EVERY_DTYPE", "check_fits", "number_for", "overflow_error", "scalar_array"]

Array = np.ndarray[Any, Any]

IN_EVERY_DTYPE = 1 << 7  # a positive number below fits into every dtype
_NARROW = (np.float16, np.float32, np.complex64)
_GREATEST = {np.dtype(kind): float(np.finfo(kind).max) for kind in _NARROW}
_ROUNDS_TO_INF = 65520.0  # the numbers from here on are nearer to what float16 has no room for


def scalar_array(value: Any, dtype: np.dtype[Any], checks_half: bool = True) -> Array:
    """Return a Python number as a 0-d array.

    Parameters
    ----------
    value : number
    dtype : numpy.dtype
    checks_half : bool
        False where PyTorch lets float16 overflow to inf: in assignments, and in factors that it
        takes as float32.

    Raises
    ------
    RuntimeError
        If the dtype cannot hold the number.
    """
    kind = type(value)
    if (
        (kind is float or kind is int)
        and -IN_EVERY_DTYPE < value < IN_EVERY_DTYPE
        and dtype.kind == "f"
    ):
        return np.asarray(value, dtype)
    note_given(value)
    if isinstance(value, (complex, np.complexfloating)) and dtype.kind not in "bc":
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
    if dtype in _GREATEST and _is_beyond(value, _GREATEST[dtype]):
        if checks_half or dtype.kind != "f" or dtype.itemsize != 2:
            raise overflow_error(dtype)
        value = math.copysign(math.inf, value) if abs(value) >= _ROUNDS_TO_INF else value
    return np.asarray(value, dtype)


def _is_beyond(value: Any, greatest: float) -> bool:
    """Whether a part of a number is finite, but larger than the greatest one that there is."""
    parts = (value.real, value.imag)
    return any(math.isfinite(part) and abs(part) > greatest for part in parts)


def check_fits(value: Any, dtype: np.dtype[Any]) -> None:
    """Raise unless a dtype can hold a number, which may be a factor or a parameter."""
    if not (isinstance(value, (int, float)) and 0 <= value < IN_EVERY_DTYPE):
        scalar_array(value, dtype)


def number_for(value: Any, dtype: dtypes.dtype) -> Any:
    """Return a Python number in the category of a dtype, as PyTorch converts a factor.

    Unsigned dtypes take negative integers round the corner.

    Raises
    ------
    RuntimeError
        If the dtype cannot hold it, or a complex number would lose its imaginary part.
    """
    if dtype.is_complex:
        return complex(value)
    if isinstance(value, (int, float)) and 0 <= value < IN_EVERY_DTYPE:
        return float(value) if dtype.is_floating_point else int(value)
    held = scalar_array(value, dtype.numpy, checks_half=False)
    if not dtype.is_floating_point:
        return int(held)
    return float(value.real if isinstance(value, complex) else value)


def overflow_error(dtype: np.dtype[Any]) -> RuntimeError:
    """Return the error of a number that a dtype cannot hold."""
    return RuntimeError(
        f"value cannot be converted to type {dtypes.of_numpy(dtype).c_name} without overflow"
    )
