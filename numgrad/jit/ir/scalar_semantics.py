"""The scalar operations: how many operands of which dtypes they take, and constant folding.

Constants are folded where the result has the very bits that a kernel would give. That holds for
the operations that IEEE 754 rounds correctly, for those that round nothing, and for integers.
NumPy's exp, sin and the like have other bits than ours: they stay in the graph, on constants, and
cost one evaluation a call. So do products and quotients of complex numbers, which are formulas and
not one rounding, and what NumPy and the processor may answer differently: division of integers by
0, and casts of floating point numbers that do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numgrad.jit.ir.graph import Value

__all__ = ["REAL_OF", "SIGNATURES", "Signature", "fold", "number_of", "wrap"]

# dtype of a complex number -> dtype of its parts; any other dtype is its own.
REAL_OF: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype("complex64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("float64"),
}


class Signature(NamedTuple):
    """How many operands there are, and how their dtypes make that of the result.

    Operands are alike but for the condition of ``where``. The result is (`result`)

    - ``"same"``: of the operands' dtype,
    - ``"bool"``: bool,
    - ``"real"``: of the dtype of the operands' real part,
    - ``"complex"``: complex, the operands its parts,
    - ``"cast"``: of any dtype.
    """

    operands: int
    kinds: str  # of dtypes that the operands may have
    result: str


_NUMBERS, _REAL, _FLOATING, _ANY = "iufc", "iuf", "fc", "biufc"

# (how many operands, kinds of their dtypes, the result's dtype, names)
_TABLE = (
    (2, _ANY, "same", "add mul"),
    (2, _NUMBERS, "same", "sub pow"),
    (2, _FLOATING, "same", "true_divide complex_divide"),
    (1, _NUMBERS, "same", "neg"),
    (2, _ANY, "bool", "eq ne logical_and logical_or logical_xor"),
    (2, "biuf", "bool", "lt le gt ge"),
    (2, "biu", "same", "bitwise_and bitwise_or bitwise_xor"),
    (1, "biu", "same", "bitwise_not"),
    (2, "iu", "same", "bitwise_left_shift bitwise_right_shift"),
    (2, "biuf", "same", "maximum minimum"),
    (3, _ANY, "same", "where"),
    (3, _NUMBERS, "same", "fma"),
    (1, _ANY, "cast", "cast"),
    (1, _ANY, "bool", "isnan isinf isfinite logical_not"),
    (1, "biuf", "bool", "signbit is_far"),
    (1, _ANY, "real", "abs real imag"),
    (1, "c", "real", "angle"),
    (2, "f", "complex", "complex_of"),
    (1, _ANY, "same", "conj sgn"),
    (1, "biuf", "same", "sign floor ceil round trunc"),
    (2, _REAL, "same", "fmod remainder floor_divide trunc_divide"),
    (2, "f", "same", "copysign hypot atan2"),
    (1, _FLOATING, "same", "sqrt exp exp2 expm1 log log1p log2 log10 sigmoid"),
    (1, _FLOATING, "same", "sin cos tan asin acos atan"),
    (1, _FLOATING, "same", "sinh cosh tanh asinh acosh atanh"),
    (1, "f", "same", "cbrt softplus logsigmoid erf erfc erfinv sin_near cos_near tan_near"),
)

SIGNATURES = {
    name: Signature(count, kinds, result)
    for count, kinds, result, names in _TABLE
    for name in names.split()
}


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
