"""Evenly spaced numbers, each rounded once, and the powers of a number with such exponents.

Their bits are those of PyTorch on processors whose vectors are of 32 bytes and that multiply and
add at once; what NumPy and Numba compute is the same everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.base.halves import HALF
from numgrad.base.tuning import COUNTED_BY_NUMPY
from numgrad.codegen.compile.compile import kernel

__all__ = ["evenly", "in_lanes", "powers"]

Array = np.ndarray[Any, Any]

_SPLITS = 2.0**990  # beyond it numbers can't be split in two


def _fused(step: Any, count: Any, start: Any) -> Any:
    """Return ``start + step * count`` in float64, rounded once: of numbers, or of arrays.

    A step is the sum of two numbers whose products with a count below 2**27 are exact.
    """
    product = step * count
    high = step * 134217729.0 - (step * 134217729.0 - step)
    lost = (high * count - product) + (step - high) * count
    found = product + start
    behind = found - product
    return found + (lost + ((product - (found - behind)) + (start - behind)))


_fused_numbers = kernel(_fused)


@kernel
def _count_evenly(found: Any, start: float, step: float, first: int, by: int) -> None:
    """Write ``start + step * count`` for counts from the first one on."""
    for k in range(found.size):
        found[k] = _fused_numbers(step, float(first + k * by), start)


@kernel
def _count_in_lanes(found: Any, start: float, step: float) -> None:
    """Write vectors, one a row, whose first number is rounded and the others counted from there."""
    for row in range(found.shape[0]):
        found[row, 0] = _fused_numbers(step, float(row * found.shape[1]), start)
        base = float(found[row, 0])
        for lane in range(1, found.shape[1]):
            found[row, lane] = _fused_numbers(step, float(lane), base)


@silent
def _evenly(found: Array, start: float, step: float, first: int = 0, by: int = 1) -> None:
    """Write numbers counted from a start, each rounded once."""
    is_wide = abs(step) > _SPLITS or abs(start) > _SPLITS
    if found.size > COUNTED_BY_NUMPY and not is_wide:
        _count_evenly(found, start, step, first, by)
        return
    counts = first + by * np.arange(float(found.size))
    found[...] = start + step * counts if is_wide else _fused(step, counts, start)


@silent
def in_lanes(start: float, step: float, count: int, dtype: np.dtype[Any]) -> Array:
    """Return `count` numbers as PyTorch's vectors of 32 bytes have them.

    The first number of a vector is rounded to the dtype, and the others are counted from there.
    Vectors are taken two at a time, and what is left number by number.
    """
    if dtype == HALF:
        return _in_half_lanes(float(np.float32(start)), float(np.float32(step)), count)
    start, step = float(start), float(step)
    width = 32 // dtype.itemsize
    whole = count // (2 * width) * 2 * width
    found = np.empty(count, dtype)
    rows = found[:whole].reshape(-1, width)
    if abs(step) > _SPLITS or abs(start) > _SPLITS:
        whole = 0
    elif count <= COUNTED_BY_NUMPY:
        _evenly(rows[:, 0], start, step, 0, width)
        rows[:, 1:] = _fused(step, np.arange(1.0, width), rows[:, :1].astype(np.float64))
    else:
        _count_in_lanes(rows, start, step)
    _evenly(found[whole:], start, step, whole)
    return found


def _in_half_lanes(start: float, step: float, count: int) -> Array:
    """Do what `in_lanes` does in float16, for which all is computed in float32."""
    width = 32 // HALF.itemsize
    counts = np.arange(float(count))
    found: Array = (start + step * counts).astype(np.float32).astype(HALF)
    rows = found[: count // (2 * width) * 2 * width].reshape(-1, width)
    rows[:, 1:] = (rows[:, :1] + step * np.arange(1.0, width)).astype(np.float32)
    return found


@silent
def evenly(first: Any, last: Any, count: int) -> Array:
    """Return `count` numbers, counted from the nearer end, so that both ends are met exactly."""
    if isinstance(first, complex) or isinstance(last, complex):
        start, end = complex(first), complex(last)
        of_both = np.empty(count, np.complex128)
        of_both.real = evenly(start.real, end.real, count)
        of_both.imag = evenly(start.imag, end.imag, count)
        return of_both
    first, last = np.float64(first), np.float64(last)
    if count < 2:
        return np.full(count, first)
    step, half, found = (last - first) / (count - 1), count // 2, np.empty(count)
    if not np.isfinite(step):
        step = last / (count - 1) - first / (count - 1)
    _evenly(found[:half], float(first), float(step))
    _evenly(found[half:], float(last), -float(step), count - half - 1, -1)
    return found


def _exponents(first: float, last: float, count: int, dtype: np.dtype[Any]) -> Array:
    """Return exponents in float64, counted from the nearer end, each operation rounded.

    How far the ends are apart is rounded to a narrower dtype, as PyTorch has it.
    """
    if count < 2:
        return np.full(count, float(first))
    of_dtype = dtype.type if dtype.kind == "f" else np.float64
    step = float(of_dtype(last) - of_dtype(first)) / (count - 1)
    half = count // 2
    near, far = np.arange(float(half)), np.arange(count - half - 1.0, -1.0, -1.0)
    return np.concatenate([first + step * near, last - step * far])


@kernel
def _to_powers(base: Any, exponents: Any) -> Any:
    """Return a number to the power of each exponent, as the C library has it."""
    found = np.empty_like(exponents)
    for k in range(exponents.size):
        found[k] = base ** exponents[k]
    return found


@silent
def powers(base: float, first: float, last: float, count: int, dtype: np.dtype[Any]) -> Array:
    """Return a number to the power of `count` exponents from the first to the last."""
    found: Array = _to_powers(float(base), _exponents(first, last, count, dtype))
    return found.astype(dtype)
