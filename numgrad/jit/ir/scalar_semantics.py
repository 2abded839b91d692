"""Scalar operations on constants, where the result has the very bits that a kernel would give.

That holds for the operations that IEEE 754 rounds correctly, for those that round nothing, and for
integers. NumPy's exp, sin and the like have other bits than ours: they stay in the graph, on
constants, and cost one evaluation a call. So do products and quotients of complex numbers, which
are formulas and not one rounding, and what NumPy and the processor may answer differently:
division of integers by 0, and casts of floating point numbers that do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.semantics import REAL_OF

__all__ = ["fold", "number_of", "wrap"]


def _maximum(a: Any, b: Any) -> Any:
    return a if a >= b or a != a else b


def _minimum(a: Any, b: Any) -> Any:
    return a if a <= b or a != a else b


# operation -> (kinds of the operands' dtypes, function of NumPy scalars)
_FOLDED: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": ("biufc", np.add),
    "sub": ("iufc", np.subtract),
    "mul": ("biuf", np.multiply),
    "true_divide": ("f", np.true_divide),
    "neg": ("iufc", np.negative),
    "abs": ("iuf", np.absolute),
    "sqrt": ("f", np.sqrt),
    "maximum": ("biuf", _maximum),
    "minimum": ("biuf", _minimum),
    "where": ("biufc", lambda condition, a, b: a if condition else b),
    "eq": ("biufc", np.equal),
    "ne": ("biufc", np.not_equal),
    "lt": ("biuf", np.less),
    "le": ("biuf", np.less_equal),
    "gt": ("biuf", np.greater),
    "ge": ("biuf", np.greater_equal),
    "logical_not": ("biufc", np.logical_not),
    "logical_and": ("biufc", np.logical_and),
    "logical_or": ("biufc", np.logical_or),
    "logical_xor": ("biufc", np.logical_xor),
    "bitwise_and": ("biu", np.bitwise_and),
    "bitwise_or": ("biu", np.bitwise_or),
    "bitwise_xor": ("biu", np.bitwise_xor),
    "isnan": ("biufc", np.isnan),
    "isinf": ("biufc", np.isinf),
    "isfinite": ("biufc", np.isfinite),
    "signbit": ("f", np.signbit),
    "copysign": ("f", np.copysign),
    "floor": ("f", np.floor),
    "ceil": ("f", np.ceil),
    "round": ("f", np.rint),
    "trunc": ("f", np.trunc),
    "real": ("biufc", np.real),
    "imag": ("c", np.imag),
    "conj": ("biufc", np.conj),
    "complex_of": ("f", complex),
}


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
        entry = _FOLDED.get(value.operation)
        if entry is None or dtype.kind not in entry[0]:
            return None
        return value.dtype.type(entry[1](*numbers)).item()


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
