"""Scalar functions: the vocabulary of elementwise kernels, numbers in, one number out.

Each works for float32, float64 and, where that makes sense, integers and complex numbers, and
returns the type it was given. A bare literal in such a function would turn float32 into float64:
`like` gives a constant the type of a value. Functions of `numgrad.math.real` stand in for
those here where the types are theirs. Formulas made of these functions belong in the catalogue, not
here.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numba import from_dtype, types
from numba.extending import overload

from numgrad.codegen.compile.dispatchers import part
from numgrad.codegen.numba_private import AbstractTemplate, as_dtype, cpu_target, infer_global
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

_REAL_TYPES = {types.float32: np.float32, types.float64: np.float64}
_COMPLEX_TYPES = {types.complex64: np.float32, types.complex128: np.float64}


def like(value: Any, constant: Any) -> Any:
    """Return `constant` in the type of `value` (for a complex value, in its real type)."""
    return type(value)(constant)


@overload(like)
def _like(value, constant):  # type: ignore[no-untyped-def]
    number = types.unliteral(value)
    if number in _REAL_TYPES:
        real_type = _REAL_TYPES[number]
    elif number in _COMPLEX_TYPES:
        real_type = _COMPLEX_TYPES[number]
    else:
        return lambda value, constant: constant
    return lambda value, constant: real_type(constant)


def in_type_of(value: Any, number: Any) -> Any:
    """Return `number` in the type of `value`, cut off if that is one of integers."""
    return type(value)(number)


@overload(in_type_of)
def _in_type_of(value, number):  # type: ignore[no-untyped-def]
    of_type = as_dtype(types.unliteral(value)).type
    return lambda value, number: of_type(number)


def is_integer(value: Any) -> bool:
    """Whether a value is of an integer or bool type; a compile-time constant in kernels."""
    return isinstance(value, int)


@overload(is_integer)
def _is_integer(value):  # type: ignore[no-untyped-def]
    answer = isinstance(types.unliteral(value), (types.Integer, types.Boolean))
    return lambda value: answer


def width(value: Any) -> int:
    """Return how many bits a value of an integer type has; a compile-time constant in kernels."""
    return 8 * np.asarray(value).itemsize


@overload(width)
def _width(value):  # type: ignore[no-untyped-def]
    bits = getattr(types.unliteral(value), "bitwidth", 8)
    return lambda value: bits


def stands_in(function: Any, choose: Callable[..., Any], *, loads: bool = False) -> None:
    """Have compiled code call ``choose(*types)`` in the place of a function, where that is one.

    With `loads`, that may load modules which declare functions to Numba.
    """

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            chosen = None if kws else choose(*map(types.unliteral, args))
            if chosen is None:
                return None
            if loads:
                self.context.refresh()
            self.chosen = self.context.resolve_value_type(chosen)
            return self.chosen.get_call_type(self.context, args, {})

        def get_impl_key(self, sig: Any) -> Any:
            return self.chosen.get_impl_key(sig)

    infer_global(function, types.Function(Template))


def for_types(own: dict[Any, Any], *, is_complex: bool = False) -> Any:
    """Return a decorator for a function of one or two numbers, which has others for some types.

    Kernels call those in its place where all arguments are of one such type. With `is_complex`
    there is one of its name for complex numbers, too.
    """

    def decorate(function: Any) -> Any:
        generic = cache(lambda: part(function))

        def choose(x: Any, *others: Any) -> Any:
            if any(y != x for y in others):
                return generic()
            chosen = own.get(x)
            if chosen is None and is_complex:
                chosen = complex_function(function.__name__, x)
            return generic() if chosen is None else chosen

        stands_in(function, choose)
        return function

    return decorate


# --- casts ----------------------------------------------------------------------------------------


@part
def to_int32(x):  # type: ignore[no-untyped-def]
    """Return a floating point number as an int32: the least one if it does not fit, or is nan.

    That is what x86's instructions give; LLVM's own conversion may give anything.
    """
    fits = (x > like(x, -2147483649.0)) & (x < like(x, 2147483648.0))
    return np.int32(x if fits else like(x, -2147483648.0))


@part
def to_int64(x):  # type: ignore[no-untyped-def]
    """Return a floating point number as an int64: the least one if it does not fit, or is nan."""
    fits = (x >= like(x, -9223372036854775808.0)) & (x < like(x, 9223372036854775808.0))
    return np.int64(x if fits else like(x, -9223372036854775808.0))


@part
def to_uint32(x):  # type: ignore[no-untyped-def]
    """Return a floating point number as a uint32, as C does on x86: negative ones wrap around."""
    half = like(x, 2147483648.0)
    if x >= half:
        return np.uint32(to_int32(x - half)) ^ np.uint32(1 << 31)
    return np.uint32(to_int32(x))


@part
def to_uint64(x):  # type: ignore[no-untyped-def]
    """Return a floating point number as a uint64, as C does on x86: negative ones wrap around."""
    half = like(x, 9223372036854775808.0)
    if x >= half:
        return np.uint64(to_int64(x - half)) ^ np.uint64(1 << 63)
    return np.uint64(to_int64(x))


# --- choosing ---------------------------------------------------------------------------------


@part
def where(condition, a, b):  # type: ignore[no-untyped-def]
    """Return `a` if `condition` holds, else `b`; both are computed."""
    return a if condition else b


@part
def maximum(a, b):  # type: ignore[no-untyped-def]
    """Return the larger number, `a` of equal ones (0.0 and -0.0), nan if either is nan."""
    return a if (a >= b) | (a != a) else b


@part
def minimum(a, b):  # type: ignore[no-untyped-def]
    """Return the smaller number, `a` of equal ones (0.0 and -0.0), nan if either is nan."""
    return a if (a <= b) | (a != a) else b


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
    if {base, exponent} & _COMPLEX_TYPES.keys():
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


# --- sign, rounding, division -----------------------------------------------------------------


@part
def abs(x):  # type: ignore[no-untyped-def]
    """Return the absolute value, a real number for complex `x`."""
    return np.abs(x)


@part
def sign(x):  # type: ignore[no-untyped-def]
    """Return -1, 0 or 1; 0 for nan, as PyTorch does."""
    return like(x, x > like(x, 0)) - like(x, x < like(x, 0))


@part
def sgn(x):  # type: ignore[no-untyped-def]
    """Return x / abs(x) for complex `x`, 0 at 0."""
    size, zero = np.abs(x), like(x, 0)
    return complex(zero, zero) if size == zero else complex(x.real / size, x.imag / size)


@part
def signbit(x):  # type: ignore[no-untyped-def]
    """Whether the sign of `x` is a minus, that of -0.0 too."""
    if is_integer(x):
        return x < 0
    return math.copysign(like(x, 1), x) < like(x, 0)


@part
def copysign(x, sign):  # type: ignore[no-untyped-def]
    """Return the size of `x` with the sign of `sign`."""
    return math.copysign(x, sign)


@part
def conj(x):  # type: ignore[no-untyped-def]
    """Return the complex conjugate."""
    return np.conj(x)


@part
def real(x):  # type: ignore[no-untyped-def]
    """Return the real part."""
    return x.real


@part
def imag(x):  # type: ignore[no-untyped-def]
    """Return the imaginary part."""
    return x.imag


@part
def complex_of(real_part, imaginary_part):  # type: ignore[no-untyped-def]
    """Return the complex number of two real ones."""
    return complex(real_part, imaginary_part)


@part
def floor(x):  # type: ignore[no-untyped-def]
    """Return the largest integer not above `x`."""
    return np.floor(x)


@part
def ceil(x):  # type: ignore[no-untyped-def]
    """Return the smallest integer not below `x`."""
    return np.ceil(x)


@part
def round(x):  # type: ignore[no-untyped-def]
    """Return the nearest integer, the even one at ties."""
    return np.rint(x)


@part
def trunc(x):  # type: ignore[no-untyped-def]
    """Return `x` without its fraction."""
    return np.trunc(x)


@part
def fmod(a, b):  # type: ignore[no-untyped-def]
    """Return the remainder of the division truncated towards 0; it has the sign of `a`."""
    if is_integer(a):
        remainder_ = a % b
        return remainder_ - b if (remainder_ != 0) & ((a < 0) != (b < 0)) else remainder_
    return np.fmod(a, b)


@part
def remainder(a, b):  # type: ignore[no-untyped-def]
    """Return the remainder of the division rounded down; it has the sign of `b`."""
    if is_integer(a):
        return a % b
    zero = like(a, 0)
    left = np.fmod(a, b)
    return left + b if (left != zero) & ((b < zero) != (left < zero)) else left


@part
def floor_divide(a, b):  # type: ignore[no-untyped-def]
    """Return the quotient rounded down, Python's ``//`` (the nearest integer to exact division)."""
    if is_integer(a):
        # The quotient of the least number by -1 does not fit; it wraps around as others do.
        return like(a, 0) - a if b == -1 else a // b
    zero, half, one = like(a, 0), like(a, 0.5), like(a, 1)
    # Numba gives one type to all that a function returns, for integers as well.
    if b == zero:
        return in_type_of(a, a / b)
    left = np.fmod(a, b)
    quotient = (a - left) / b
    if (left != zero) & ((b < zero) != (left < zero)):
        quotient -= one
    if quotient == zero:
        return in_type_of(a, math.copysign(zero, a / b))
    down = np.floor(quotient)
    return in_type_of(a, down + one if quotient - down > half else down)


@part
def trunc_divide(a, b):  # type: ignore[no-untyped-def]
    """Return the quotient truncated towards 0."""
    if is_integer(a):
        quotient = floor_divide(a, b)
        return quotient + 1 if (quotient < 0) & (quotient * b != a) else quotient
    return in_type_of(a, np.trunc(a / b))


# --- truth ------------------------------------------------------------------------------------


@part
def isnan(x):  # type: ignore[no-untyped-def]
    """Whether `x` is not a number."""
    return x != x


@part
def isinf(x):  # type: ignore[no-untyped-def]
    """Whether `x`, or a part of it, is infinite."""
    return np.isinf(x)


@part
def isfinite(x):  # type: ignore[no-untyped-def]
    """Whether `x`, in both parts, is neither infinite nor nan."""
    return np.isfinite(x)


@part
def logical_not(x):  # type: ignore[no-untyped-def]
    """Whether `x` is 0."""
    return not x


@part
def logical_and(a, b):  # type: ignore[no-untyped-def]
    """Whether neither is 0."""
    return bool(a) & bool(b)


@part
def logical_or(a, b):  # type: ignore[no-untyped-def]
    """Whether not both are 0."""
    return bool(a) | bool(b)


@part
def logical_xor(a, b):  # type: ignore[no-untyped-def]
    """Whether exactly one is 0."""
    return bool(a) ^ bool(b)


@part
def bitwise_not(x):  # type: ignore[no-untyped-def]
    """Return the bits of `x` inverted."""
    return ~x


@part
def bitwise_left_shift(a, b):  # type: ignore[no-untyped-def]
    """Return the bits of `a` moved up by `b`; 0 where `b` is negative or leaves none of them."""
    return a << b if (b >= 0) & (b < width(a)) else a ^ a


@part
def bitwise_right_shift(a, b):  # type: ignore[no-untyped-def]
    """Return the bits of `a` moved down by `b`, the sign kept.

    Where `b` is negative or leaves no bit, only the sign is left: -1 or 0.
    """
    return a >> b if (b >= 0) & (b < width(a)) else (a >> (width(a) - 1)) >> 1


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
        if x not in _REAL_TYPES:
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
