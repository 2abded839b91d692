"""The scalar operations: one table of what each takes, gives, costs, and how it is written.

Eager kernels, the graphs of compiled functions and the loops they become are made of these. The
functions themselves are those of `numgrad.math.scalar`, by the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["QUICK", "REAL_OF", "SCALAR_OPS", "ScalarOp", "weight"]

# dtype of a complex number -> dtype of its parts; any other dtype is its own.
REAL_OF: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype("complex64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("float64"),
}


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """A scalar operation.

    Attributes
    ----------
    name : str
        Also that of its function in `numgrad.math.scalar`.
    operands : int
        How many. They are alike in dtype but for the condition of ``where``.
    kinds : str
        The kinds of dtypes that the operands may have.
    result : {"same", "bool", "real", "complex", "cast"}
        The result's dtype: the operands'; bool; that of the operands' real part; the complex one
        whose parts the operands are; any.
    flops : int
        What it counts for where floating point operations are counted. A polynomial of degree n
        has 2 n, and a division takes as long as about 4 products.
    symbol : str, optional
        The sign by which it is written, where it is an operator of Python: ``"+"``.
    exact : callable, optional
        A function of NumPy scalars that has the very bits of ours, for operands of `exact_kinds`.
    exact_kinds : str
        The kinds of dtypes for which it has.
    never_negative : bool
        Whether results are at least +0.0, or nan. (That of ``sqrt(-0.0)`` is -0.0.)
    ulps : float
        The greatest error of real results, in units in the last place, that tests against mpmath
        hold it to (`tests/math/real`); 0.5 where it is rounded correctly, 0 where nothing is.
    of_angle : bool
        Whether it is quick for angles near 0 and takes long for others: ``name_near`` is then its
        quick part.
    mirrored : str, optional
        The operation that gives the same bits for the two operands the other way round, where
        there is one. (Of 0.0 and -0.0 ``maximum`` gives the first.)
    identity : int, optional
        The number that it leaves alone, where there is one: what it gives of no operands.
    opposite : str, optional
        The operation whose truth values are the others.
    opposite_kinds : str
        The kinds of dtypes for which they are: of nan neither ``a < b`` holds nor ``a >= b``.
    chooses : bool
        Whether the result is one of the last two operands.
    rounds : bool
        Whether results are whole numbers, which it leaves as they are.
    divides : bool
        Whether there are integers for which it has no result.
    keeps_value : bool
        Whether the result is the same number in whichever dtype it is computed.
    gives_operand : bool
        Whether PyTorch answers for real numbers with the operand itself, or a view of it.
    """

    name: str
    operands: int
    kinds: str
    result: str = "same"
    flops: int = 1
    symbol: str | None = None
    exact: Callable[..., Any] | None = None
    exact_kinds: str = ""
    never_negative: bool = False
    ulps: float = 0.0
    of_angle: bool = False
    mirrored: str | None = None
    identity: int | None = None
    opposite: str | None = None
    opposite_kinds: str = ""
    chooses: bool = False
    rounds: bool = False
    divides: bool = False
    keeps_value: bool = False
    gives_operand: bool = False

    @property
    def is_truth(self) -> bool:
        """Whether it gives truth values."""
        return self.result == "bool"

    @property
    def is_real(self) -> bool:
        """Whether it gives real numbers, or truth values, whatever the operands are."""
        return self.result in ("real", "bool")

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of the result for operands of a dtype; of a cast, that one."""
        if self.result == "bool":
            return np.dtype(bool)
        if self.result == "real":
            return REAL_OF.get(dtype, dtype)
        return np.result_type(dtype, np.complex64) if self.result == "complex" else dtype


_NUMBERS, _REAL, _FLOATING, _ANY, _ORDERED = "iufc", "iuf", "fc", "biufc", "biuf"
_EXACT = "biu"


def _maximum(a: Any, b: Any) -> Any:
    return a if a >= b or a != a else b


def _minimum(a: Any, b: Any) -> Any:
    return a if a <= b or a != a else b


def _infix() -> Iterator[ScalarOp]:
    """Yield the operations that are operators of Python."""
    for name, sign, kinds, flops, exact_kinds, exact, identity in (
        ("add", "+", _ANY, 1, _ANY, np.add, 0),
        ("sub", "-", _NUMBERS, 1, _NUMBERS, np.subtract, None),
        ("mul", "*", _ANY, 1, _ORDERED, np.multiply, 1),
        ("true_divide", "/", _FLOATING, 4, "f", np.true_divide, None),
        ("bitwise_and", "&", "biu", 1, "biu", np.bitwise_and, None),
        ("bitwise_or", "|", "biu", 1, "biu", np.bitwise_or, 0),
        ("bitwise_xor", "^", "biu", 1, "biu", np.bitwise_xor, 0),
    ):
        yield ScalarOp(
            name,
            2,
            kinds,
            "same",
            flops,
            sign,
            exact,
            exact_kinds,
            ulps=0.5,
            mirrored=name if name not in ("sub", "true_divide") else None,
            identity=identity,
        )
    yield ScalarOp("neg", 1, _NUMBERS, "same", 1, "-", np.negative, _NUMBERS, keeps_value=True)
    for name, sign, kinds, compare, mirrored, opposite, opposite_kinds in (
        ("eq", "==", _ANY, np.equal, "eq", "ne", _ANY),
        ("ne", "!=", _ANY, np.not_equal, "ne", "eq", _ANY),
        ("lt", "<", _ORDERED, np.less, "gt", "ge", _EXACT),
        ("le", "<=", _ORDERED, np.less_equal, "ge", "gt", _EXACT),
        ("gt", ">", _ORDERED, np.greater, "lt", "le", _EXACT),
        ("ge", ">=", _ORDERED, np.greater_equal, "le", "lt", _EXACT),
    ):
        yield ScalarOp(
            name,
            2,
            kinds,
            "bool",
            1,
            sign,
            compare,
            kinds,
            mirrored=mirrored,
            opposite=opposite,
            opposite_kinds=opposite_kinds,
        )


def _light() -> Iterator[ScalarOp]:
    """Yield the functions that take no longer than arithmetic."""
    for name, count, kinds, result, exact_kinds, exact in (
        ("logical_not", 1, _ANY, "bool", _ANY, np.logical_not),
        ("bitwise_not", 1, "biu", "same", "", None),
        ("bitwise_left_shift", 2, "iu", "same", "", None),
        ("bitwise_right_shift", 2, "iu", "same", "", None),
        ("isnan", 1, _ANY, "bool", _ANY, np.isnan),
        ("isinf", 1, _ANY, "bool", _ANY, np.isinf),
        ("isfinite", 1, _ANY, "bool", _ANY, np.isfinite),
        ("signbit", 1, _ORDERED, "bool", "f", np.signbit),
        ("copysign", 2, "f", "same", "f", np.copysign),
        ("sign", 1, _ORDERED, "same", "", None),
    ):
        yield ScalarOp(name, count, kinds, result, 1, None, exact, exact_kinds)
    for name, count, kinds, choose in (
        ("maximum", 2, _ORDERED, _maximum),
        ("minimum", 2, _ORDERED, _minimum),
        ("where", 3, _ANY, lambda condition, a, b: a if condition else b),
    ):
        yield ScalarOp(
            name,
            count,
            kinds,
            "same",
            1,
            None,
            choose,
            kinds,
            chooses=True,
            keeps_value=name == "where",
        )
    for name, compute, identity in (
        ("logical_and", np.logical_and, True),
        ("logical_or", np.logical_or, False),
        ("logical_xor", np.logical_xor, False),
    ):
        yield ScalarOp(
            name, 2, _ANY, "bool", 1, None, compute, _ANY, mirrored=name, identity=identity
        )
    for name, rounded in (
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("round", np.rint),
        ("trunc", np.trunc),
    ):
        yield ScalarOp(name, 1, _ORDERED, "same", 1, None, rounded, "f", rounds=True)
    yield ScalarOp("abs", 1, _ANY, "real", 1, None, np.absolute, _REAL, never_negative=True)
    yield ScalarOp("fma", 3, _NUMBERS, "same", 2, ulps=0.5)
    yield ScalarOp("cast", 1, _ANY, "cast", 0, keeps_value=True)
    for name, result, part, exact_kinds in (
        ("real", "real", np.real, _ANY),
        ("imag", "real", np.imag, "c"),
        ("conj", "same", np.conj, _ANY),
    ):
        yield ScalarOp(
            name,
            1,
            _ANY,
            result,
            0,
            None,
            part,
            exact_kinds,
            keeps_value=True,
            gives_operand=name != "imag",
        )
    yield ScalarOp("complex_of", 2, "f", "complex", 0, None, complex, "f")
    yield ScalarOp("sqrt", 1, _FLOATING, "same", 4, None, np.sqrt, "f", ulps=0.5)


def _functions() -> Iterator[ScalarOp]:
    """Yield the others."""
    for count, kinds, flops, ulps, names in (
        (2, _FLOATING, 20, 0.0, "complex_divide"),
        (2, "f", 12, 1.0, "hypot"),
        (2, "f", 30, 1.0, "atan2"),
        (1, _ANY, 12, 0.0, "sgn"),
        (1, _FLOATING, 25, 1.0, "log log2 log10"),
        (1, _FLOATING, 30, 1.0, "log1p"),
        (1, _FLOATING, 30, 2.0, "expm1 tanh"),
        (1, _FLOATING, 40, 2.0, "sinh asinh acosh atanh"),
        (1, _FLOATING, 40, 1.5, "asin acos"),
        (1, _FLOATING, 40, 1.0, "atan"),
        (1, "f", 30, 1.0, "cbrt"),
        (1, "f", 30, 0.8, "sin_near cos_near"),
        (1, "f", 40, 1.0, "tan_near"),
        (1, "f", 40, 2.0, "softplus logsigmoid"),
        (1, "f", 60, 1.0, "erf"),
        (1, "f", 60, 1.8, "erfc"),
        (1, "f", 60, 3.0, "erfinv"),
        (1, "f", 200, 3.0, "lgamma"),
        (1, "f", 150, 4.0, "digamma"),
        (2, "f", 500, 6.0, "zeta polygamma mvlgamma"),
        (3, "f", 1000, 8.0, "mvpolygamma"),
        (2, "f", 200, 8.0, "beta betaln"),
        (2, "f", 500, 16.0, "gammainc gammaincc gamma_density"),
        (3, "f", 1000, 64.0, "gammainc_slope"),
        (3, "f", 1000, 16.0, "zeta_slope"),
        (3, "f", 1000, 16.0, "betainc beta_density"),
        (5, "f", 3000, 64.0, "betainc_slope"),
        (1, "f", 100, 4.0, "airy_ai airy_ai_slope"),
        (2, "iu", 100, 0.0, "gcd lcm"),
        (2, "f", 12, 0.5, "ldexp"),
        (2, "f", 6, 0.0, "nextafter nextafter_half"),
        (1, "f", 60, 2.5, "erfcx ndtr log_ndtr"),
        (1, "f", 60, 2.5, "ndtri"),
        (1, "f", 60, 3.5, "i0 i0e i1 i1e k0 k0e k1 k1e"),
        (1, "f", 60, 5.5, "j0_near j1_near y0_near y1_near"),
        (1, "f", 30, 1.5, "p0 p1 q0 q1"),
        (2, "f", 100, 0.0, "chebyshev_t chebyshev_u chebyshev_v chebyshev_w"),
        (2, "f", 100, 0.0, "hermite_h hermite_he legendre"),
        (3, "f", 100, 0.0, "gegenbauer laguerre"),
    ):
        for name in names.split():
            yield ScalarOp(name, count, kinds, "same", flops, ulps=ulps)
    for name in ("fmod", "remainder", "floor_divide", "trunc_divide"):
        yield ScalarOp(name, 2, _REAL, "same", 8, divides=True)
    for name, flops, ulps in (("exp", 25, 1.0), ("exp2", 25, 1.0), ("sigmoid", 25, 2.0)):
        yield ScalarOp(name, 1, _FLOATING, "same", flops, never_negative=True, ulps=ulps)
    yield ScalarOp("cosh", 1, _FLOATING, "same", 40, never_negative=True, ulps=2.0)
    for name, flops, ulps in (("sin", 30, 0.8), ("cos", 30, 0.8), ("tan", 40, 1.0)):
        yield ScalarOp(name, 1, _FLOATING, "same", flops, ulps=ulps, of_angle=True)
    yield ScalarOp("pow", 2, _NUMBERS, "same", 60, ulps=1.0, divides=True)
    yield ScalarOp("angle", 1, "c", "real", 40)
    yield ScalarOp("is_far", 1, _ORDERED, "bool", 5)


#: Every scalar operation by its name.
SCALAR_OPS = {op.name: op for declare in (_infix, _light, _functions) for op in declare()}

_DIVISION = SCALAR_OPS["true_divide"].flops
#: The names of those that take no longer than arithmetic.
QUICK = frozenset(name for name, op in SCALAR_OPS.items() if op.flops <= _DIVISION)


def weight(name: str, dtype: np.dtype[Any]) -> int:
    """Return about what an operation costs for each element of a dtype, where an addition is 1."""
    flops = SCALAR_OPS[name].flops
    if flops < _DIVISION:
        return 1 if dtype.kind != "c" else 2
    return 4 if flops == _DIVISION else 10
