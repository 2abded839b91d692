"""What the scalar operations take and give: how many operands, of which dtypes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["REAL_OF", "SIGNATURES", "Signature"]

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
