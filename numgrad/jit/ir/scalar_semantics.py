"""Scalar operations on constants, where the result has the very bits that a kernel would give.

That holds for the operations that IEEE 754 rounds correctly, for those that round nothing, and for
integers. NumPy's exp, sin and the like have other bits than ours: they stay in the graph, on
constants, and cost one evaluation a call. So do products and quotients of complex numbers, which
are formulas and not one rounding, and what NumPy and the processor may answer differently:
division of integers by 0, and casts of floating point numbers that do not fit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.codegen.scalar_ops import REAL_OF, SCALAR_OPS
from numgrad.jit.ir.graph import Value

__all__ = ["fold", "number_of", "wrap"]


def number_of(value: Value) -> Any:
    """Return the number of a constant in its dtype, as a Python number."""
    return value.dtype.type(value.attributes["value"]).item()


def fold(value: Value) -> Any:
    """Return what a scalar operation on constants gives, None where that is left to the kernel."""
    operands = value.operands
    dtype = operands[-1].dtype
    with np.errstate(all="ignore"):
        numbers = [o.dtype.type(o.attributes["value"]) for o in operands]
        if value.operation == "cast":
            return _cast(numbers[0].item(), dtype, value.dtype)
        op = SCALAR_OPS[value.operation]
        if op.exact is None or dtype.kind not in op.exact_kinds:
            return None
        return value.dtype.type(op.exact(*numbers)).item()


def _cast(number: Any, given: np.dtype[Any], dtype: np.dtype[Any]) -> Any:
    """Return a number in another dtype; None if it is floating point and does not fit."""
    if given.kind == "c" and dtype.kind not in "cb":
        number, given = number.real, REAL_OF[given]
    if dtype.kind in "iu":
        if isinstance(number, float):
            info = np.iinfo(dtype)
            if not math.isfinite(number) or not info.min <= math.trunc(number) <= info.max:
                return None
        return wrap(int(number), dtype)
    return np.asarray(number, given).astype(dtype).item()  # one rounding, also from integers


def wrap(number: int, dtype: np.dtype[Any]) -> int:
    """Return the integer of a dtype that equals `number` modulo 2 to the number of bits."""
    bits = 8 * dtype.itemsize
    number &= (1 << bits) - 1
    return number - (1 << bits) if dtype.kind == "i" and number >> (bits - 1) else number
