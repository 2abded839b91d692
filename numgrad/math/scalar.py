"""Scalar functions: the vocabulary of elementwise kernels, numbers in, one number out.

Each works for float32, float64 and, where that makes sense, integers and complex numbers, and
returns the type it was given. Functions of `numgrad.math.real` stand in for those here where the
types are theirs; those that are no more than arithmetic stand in `numgrad.math.arithmetic`.
Formulas made of these functions belong in the catalogue, not here.
"""

from __future__ import annotations

import importlib
import math
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numba import from_dtype, types

from numgrad.codegen.compile.dispatchers import part
from numgrad.codegen.numba_private import cpu_target
from numgrad.math.arithmetic import (  # noqa: F401 (by these names kernels call them, of one module)
    abs,
    bitwise_left_shift,
    bitwise_not,
    bitwise_right_shift,
    ceil,
    complex_of,
    conj,
    copysign,
    floor,
    floor_divide,
    fmod,
    imag,
    isfinite,
    isinf,
    isnan,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    real,
    remainder,
    round,
    sgn,
    sign,
    signbit,
    to_int32,
    to_int64,
    to_uint32,
    to_uint64,
    trunc,
    trunc_divide,
    where,
)
from numgrad.math.by_type import COMPLEX_TYPES, REAL_TYPES, for_types, stands_in
from numgrad.math.complex import complex_function, divide
from numgrad.math.real import (
    activations,
    error_functions,
    exponentials,
    hyperbolic,
    inverse_error,
    inverse_hyperbolic,
    inverse_trigonometry,
    logarithms,
    powers,
    roots,
    trigonometry,
)
from numgrad.math.real.bits import fma as rounded_once
from numgrad.math.real.formats import for_each

# --- arithmetic -------------------------------------------------------------------------------


(_FMA,) = for_each(lambda _: (lambda a, b, c: rounded_once(a, b, c),))


@for_types(_FMA)
def fma(a, b, c):  # type: ignore[no-untyped-def]
    """Return ``a * b + c``; of real floating point numbers, rounded once."""
    return a * b + c


# --- powers and exponentials ------------------------------------------------------------------


@part
def sqrt(x):  # type: ignore[no-untyped-def]
    """Return the square root; nan for negative real numbers."""
    return np.sqrt(x)


_double_cbrt = roots.CBRT[types.float64]


@for_types(roots.CBRT)
def cbrt(x):  # type: ignore[no-untyped-def]
    """Return the cube root of a real number, negative for negative ones."""
    return _double_cbrt(float(x))


@for_types(exponentials.EXP, is_complex=True)
def exp(x):  # type: ignore[no-untyped-def]
    """Return e to the power `x`."""
    return np.exp(x)


@for_types(exponentials.EXP2, is_complex=True)
def exp2(x):  # type: ignore[no-untyped-def]
    """Return 2 to the power `x`."""
    return np.exp2(x)


complex_divide = divide


@for_types(exponentials.EXPM1, is_complex=True)
def expm1(x):  # type: ignore[no-untyped-def]
    """Return exp(x) - 1, exact near 0."""
    return np.expm1(x)


_double_sigmoid = activations.SIGMOID[types.float64]


@for_types(activations.SIGMOID, is_complex=True)
def sigmoid(x):  # type: ignore[no-untyped-def]
    """Return 1/(1 + exp(-x))."""
    return _double_sigmoid(float(x))


_double_softplus = activations.SOFTPLUS[types.float64]


@for_types(activations.SOFTPLUS)
def softplus(x):  # type: ignore[no-untyped-def]
    """Return log(1 + exp(x)) for real `x`, without overflow or loss of digits on the way."""
    return _double_softplus(float(x))


_double_logsigmoid = activations.LOGSIGMOID[types.float64]


@for_types(activations.LOGSIGMOID)
def logsigmoid(x):  # type: ignore[no-untyped-def]
    """Return log(sigmoid(x)) for real `x`, without overflow or loss of digits on the way."""
    return _double_logsigmoid(float(x))


@for_types(logarithms.LOG, is_complex=True)
def log(x):  # type: ignore[no-untyped-def]
    """Return the natural logarithm."""
    return np.log(x)


@for_types(logarithms.LOG1P, is_complex=True)
def log1p(x):  # type: ignore[no-untyped-def]
    """Return log(1 + x), exact near 0."""
    return np.log1p(x)


@for_types(logarithms.LOG2, is_complex=True)
def log2(x):  # type: ignore[no-untyped-def]
    """Return the logarithm to base 2."""
    return np.log2(x)


@for_types(logarithms.LOG10, is_complex=True)
def log10(x):  # type: ignore[no-untyped-def]
    """Return the logarithm to base 10."""
    return np.log10(x)


def pow(base, exponent):  # type: ignore[no-untyped-def]
    """Return `base` to the power `exponent`."""
    return base**exponent


@part
def _integer_power(base, exponent):  # type: ignore[no-untyped-def]
    """Square and multiply, wrapping like the hardware; a negative exponent is 1 / base**n."""
    if exponent < 0:
        if base == 1:
            return base * 1
        if base * 1 == -1:
            return -1 if exponent & 1 else base * base
        return base * 0
    result, factor, left = base * 0 + 1, base * 1, exponent * 1
    while left > 0:
        if left & 1:
            result *= factor
        factor *= factor
        left >>= 1
    return result


@cache
def _complex_power(number: Any) -> Any:
    """Return the power of two numbers that become complex ones of a type."""
    power = complex_function("pow", from_dtype(np.dtype(number)))

    @part
    def complex_power(base, exponent):  # type: ignore[no-untyped-def]
        return power(number(base), number(exponent))

    return complex_power


@part
def _mixed_power(base, exponent):  # type: ignore[no-untyped-def]
    return math.pow(base, exponent)


def _choose_power(base: Any, exponent: Any) -> Any:
    if isinstance(base, (types.Integer, types.Boolean)):
        return _integer_power
    if {base, exponent} & COMPLEX_TYPES.keys():
        # A Python number has all digits, an array beside it may have fewer: those decide.
        is_single = {base, exponent} & {types.complex64, types.float32}
        return _complex_power(np.complex64 if is_single else np.complex128)
    return powers.POW.get(base, _mixed_power) if base == exponent else _mixed_power


stands_in(pow, _choose_power)


# --- trigonometry -----------------------------------------------------------------------------


@for_types(trigonometry.SIN, is_complex=True)
def sin(x):  # type: ignore[no-untyped-def]
    """Return the sine of an angle in radians."""
    return np.sin(x)


@for_types(trigonometry.COS, is_complex=True)
def cos(x):  # type: ignore[no-untyped-def]
    """Return the cosine of an angle in radians."""
    return np.cos(x)


@for_types(trigonometry.SIN_NEAR)
def sin_near(x):  # type: ignore[no-untyped-def]
    """Return the sine of an angle that is not far; the same bits as `sin`, without a branch."""
    return np.sin(x)


@for_types(trigonometry.COS_NEAR)
def cos_near(x):  # type: ignore[no-untyped-def]
    """Return the cosine of an angle that is not far; the same bits as `cos`, without a branch."""
    return np.cos(x)


@for_types(trigonometry.SIN_COS_NEAR)
def sin_cos_near(x):  # type: ignore[no-untyped-def]
    """Return `sin_near` and `cos_near` of an angle, which share most of their work."""
    return np.sin(x), np.cos(x)


@for_types(trigonometry.TAN_NEAR)
def tan_near(x):  # type: ignore[no-untyped-def]
    """Return the tangent of an angle that is not far; the same bits as `tan`, without a branch."""
    return np.tan(x)


@for_types(trigonometry.SIN_APART)
def sin_apart(x):  # type: ignore[no-untyped-def]
    """Return the sine of any angle by a call; the same bits as `sin`, for what runs seldom."""
    return np.sin(x)


@for_types(trigonometry.COS_APART)
def cos_apart(x):  # type: ignore[no-untyped-def]
    """Return the cosine of any angle by a call; the same bits as `cos`, for what runs seldom."""
    return np.cos(x)


@for_types(trigonometry.TAN_APART)
def tan_apart(x):  # type: ignore[no-untyped-def]
    """Return the tangent of any angle by a call; the same bits as `tan`, for what runs seldom."""
    return np.tan(x)


@for_types(trigonometry.IS_FAR)
def is_far(x):  # type: ignore[no-untyped-def]
    """Whether an angle is too large for `sin_near`, `cos_near` and `tan_near`."""
    return np.isnan(x)


@for_types(trigonometry.TAN, is_complex=True)
def tan(x):  # type: ignore[no-untyped-def]
    """Return the tangent of an angle in radians."""
    return np.tan(x)


@for_types(inverse_trigonometry.ASIN, is_complex=True)
def asin(x):  # type: ignore[no-untyped-def]
    """Return the angle whose sine is `x`."""
    return np.arcsin(x)


@for_types(inverse_trigonometry.ACOS, is_complex=True)
def acos(x):  # type: ignore[no-untyped-def]
    """Return the angle whose cosine is `x`."""
    return np.arccos(x)


@for_types(inverse_trigonometry.ATAN, is_complex=True)
def atan(x):  # type: ignore[no-untyped-def]
    """Return the angle whose tangent is `x`."""
    return np.arctan(x)


@for_types(inverse_trigonometry.ATAN2)
def atan2(y, x):  # type: ignore[no-untyped-def]
    """Return the angle of the point (x, y)."""
    return math.atan2(y, x)


@for_types(hyperbolic.SINH, is_complex=True)
def sinh(x):  # type: ignore[no-untyped-def]
    """Return the hyperbolic sine."""
    return np.sinh(x)


@for_types(hyperbolic.COSH, is_complex=True)
def cosh(x):  # type: ignore[no-untyped-def]
    """Return the hyperbolic cosine."""
    return np.cosh(x)


@for_types(hyperbolic.TANH, is_complex=True)
def tanh(x):  # type: ignore[no-untyped-def]
    """Return the hyperbolic tangent."""
    return np.tanh(x)


@for_types(inverse_hyperbolic.ASINH, is_complex=True)
def asinh(x):  # type: ignore[no-untyped-def]
    """Return the inverse hyperbolic sine."""
    return np.arcsinh(x)


@for_types(inverse_hyperbolic.ACOSH, is_complex=True)
def acosh(x):  # type: ignore[no-untyped-def]
    """Return the inverse hyperbolic cosine, not negative; nan below 1."""
    return np.arccosh(x)


@for_types(inverse_hyperbolic.ATANH, is_complex=True)
def atanh(x):  # type: ignore[no-untyped-def]
    """Return the inverse hyperbolic tangent; nan outside [-1, 1]."""
    return np.arctanh(x)


@for_types(roots.HYPOT)
def hypot(x, y):  # type: ignore[no-untyped-def]
    """Return the distance of the point (x, y) from the origin, without overflow on the way."""
    return np.hypot(x, y)


@part
def angle(x):  # type: ignore[no-untyped-def]
    """Return the angle of a complex number, from -pi to pi."""
    return math.atan2(x.imag, x.real)


# --- error functions --------------------------------------------------------------------------


@for_types(error_functions.ERF)
def erf(x):  # type: ignore[no-untyped-def]
    """Return the error function."""
    return math.erf(x)


@for_types(error_functions.ERFC)
def erfc(x):  # type: ignore[no-untyped-def]
    """Return 1 - erf(x), exact where erf(x) is near 1."""
    return math.erfc(x)


@for_types(inverse_error.ERFINV)
def erfinv(x):  # type: ignore[no-untyped-def]
    """Return the number whose error function is `x`; nan outside [-1, 1]."""
    return NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2)


# --- special functions ------------------------------------------------------------------------

# By the module that has them, which is loaded when one is compiled first: those of one number for
# each type, those of a number and a degree for all.
_LATER = {
    "real.normal": "erfcx ndtr log_ndtr ndtri",
    "real.modified_bessel": "i0 i0e i1 i1e k0 k0e k1 k1e",
    "real.bessel": "j0_near j1_near y0_near y1_near p0 p1 q0 q1",
    "orthogonal": "chebyshev_t chebyshev_u chebyshev_v chebyshev_w hermite_h hermite_he legendre"
    " gegenbauer laguerre",
}


def _loaded(module: str, name: str) -> Any:
    """Return a function of real numbers that stands in a module of its own."""

    def function(x: Any, *others: Any) -> Any:
        raise TypeError(f"{name} is a part of kernels: only these can call it")

    def choose(x: Any, *others: Any) -> Any:
        if x not in REAL_TYPES:
            return None
        loaded = importlib.import_module(f"numgrad.math.{module}")
        return getattr(loaded, name) if others else getattr(loaded, name.upper())[x]

    function.__name__ = function.__qualname__ = name
    stands_in(function, choose, loads=True)
    return function


globals().update(
    {name: _loaded(module, name) for module, names in _LATER.items() for name in names.split()}
)


# The module below `numgrad.math.special` that has a function: it is loaded when a kernel is written
# that calls one of its.
LATER = {
    "lgamma": "gamma_functions",
    "digamma": "gamma_functions",
    "zeta": "zeta",
    "zeta_slope": "zeta",
    "polygamma": "zeta",
    "mvlgamma": "zeta",
    "mvpolygamma": "zeta",
    "beta": "beta",
    "betaln": "beta",
    "gammainc": "incomplete_gamma",
    "gammaincc": "incomplete_gamma",
    "gammainc_slope": "incomplete_gamma",
    "gamma_density": "incomplete_gamma",
    "betainc": "incomplete_beta",
    "betainc_slope": "incomplete_beta",
    "beta_density": "incomplete_beta",
    "airy_ai": "airy",
    "airy_ai_slope": "airy",
    "gcd": "divisors",
    "lcm": "divisors",
    "ldexp": "exponents",
    "nextafter": "exponents",
    "nextafter_half": "exponents",
}


def __getattr__(name: str) -> Any:
    module = LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    loaded = importlib.import_module(f"numgrad.math.special.{module}")
    for context in (cpu_target.typing_context, cpu_target.target_context):
        context.refresh()  # who compiles now has looked at what there is before
    found = globals()[name] = getattr(loaded, name)
    return found
