"""Functions of complex numbers, made of the real ones of `numgrad.math.real`.

Each is written once, in a `make` that takes a `Format`. Results are accurate as a whole: the error
is a few ulp of the absolute value (measured in tests/math/test_complex.py), and where
nothing cancels also of each part. Infinities, nans and signs of zeros are those of C99, annex G:
where a part is 0 its product with an infinite function of the other part is left out, for it would
be nan.

Sources: W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign
bit" (1987), for tanh; R. L. Smith, "Algorithm 116: Complex division", CACM 5 (1962).
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numba import types

from numgrad.codegen.compile.dispatchers import part
from numgrad.math.real import (
    exponentials,
    hyperbolic,
    inverse_trigonometry,
    logarithms,
    powers,
    roots,
    trigonometry,
)
from numgrad.math.real.bits import fma
from numgrad.math.real.double_word import two_product, two_sum
from numgrad.math.real.formats import DOUBLE, LN_2, SINGLE, Format

__all__ = ["complex_function", "divide"]

PI = math.pi


def _compiled(function: Callable[..., Any]) -> Any:
    """Make a function a part of kernels, which LLVM may call: no such loop is vectorised anyway."""
    return part(function, inlined=False)


def _of(functions: dict[Any, Any], format: Format) -> Any:
    """Return the real function for a format."""
    return functions[types.float32 if format is SINGLE else types.float64]


@_compiled
def divide(a, b):  # type: ignore[no-untyped-def]
    """Return the quotient of complex numbers by Smith's method; that by 0 is inf or nan."""
    if abs(b.real) >= abs(b.imag):
        if b.real == 0:
            size = abs(b.real)
            return complex(a.real / size, a.imag / size)
        ratio = b.imag / b.real
        scale = b.real + b.imag * ratio
        return complex((a.real + a.imag * ratio) / scale, (a.imag - a.real * ratio) / scale)
    ratio = b.real / b.imag
    scale = b.real * ratio + b.imag
    return complex((a.real * ratio + a.imag) / scale, (a.imag * ratio - a.real) / scale)


# --- exponentials -----------------------------------------------------------------------------


def _make_turned(format: Format) -> Any:
    """Return a function that gives ``size * (cos(angle) + i sin(angle))`` for a size >= 0."""
    sin, cos = _of(trigonometry.SIN, format), _of(trigonometry.COS, format)
    zero, infinity, nan = (format.number(value) for value in (0, math.inf, math.nan))

    @_compiled
    def turned(size, angle):  # type: ignore[no-untyped-def]
        if angle == zero:
            return complex(size, angle)
        if not np.isfinite(angle):
            if size == zero:
                return complex(zero, zero)
            return complex(infinity if size == infinity else nan, nan)
        return complex(size * cos(angle), size * sin(angle))

    return turned


def _make_exponentials(format: Format) -> Sequence[Any]:
    exp, exp2, expm1 = (
        _of(functions, format)
        for functions in (exponentials.EXP, exponentials.EXP2, exponentials.EXPM1)
    )
    sin, cos = _of(trigonometry.SIN, format), _of(trigonometry.COS, format)
    turned = _make_turned(format)
    half, one, two, zero = (format.number(value) for value in (0.5, 1, 2, 0))
    largest = format.number(math.log(float(format.limits.max)))
    ln_2, ln_2_rest = format.pair(LN_2)
    infinity, little = format.number(math.inf), format.number(2.0 ** -(format.mantissa // 2))

    @_compiled
    def complex_exp(z):  # type: ignore[no-untyped-def]
        x, y = z.real, z.imag
        if (x > largest) & np.isfinite(x) & (y != zero) & np.isfinite(y):
            # e**x overflows, but its product with a small sine or cosine may not.
            root = exp(half * x)
            return complex(root * cos(y) * root, root * sin(y) * root)
        return turned(exp(x), y)

    @_compiled
    def complex_exp2(z):  # type: ignore[no-untyped-def]
        y = z.imag
        angle = y * ln_2
        size = exp2(z.real)
        found = turned(size, angle)
        # What the product lost turns the number a little further, by at most so much.
        rest = fma(y, ln_2, -angle) + y * ln_2_rest
        if (abs(rest) < little) & (rest != zero) & (size < infinity):
            return complex(found.real - rest * found.imag, found.imag + rest * found.real)
        return found

    @_compiled
    def complex_expm1(z):  # type: ignore[no-untyped-def]
        """Return expm1(x) cos(y) + (cos(y) - 1) + i e**x sin(y)."""
        x, y = z.real, z.imag
        sine = sin(half * y)
        return complex(expm1(x) * cos(y) - two * sine * sine, exp(x) * sin(y))

    @_compiled
    def complex_sigmoid(z):  # type: ignore[no-untyped-def]
        """Return 1/(1 + e**-z), and e**z/(1 + e**z) where that does not overflow."""
        if z.real < zero:
            grown = complex_exp(z)
            return divide(grown, complex(one + grown.real, grown.imag))
        left = complex_exp(-z)
        return divide(complex(one, zero), complex(one + left.real, left.imag))

    return complex_exp, complex_exp2, complex_expm1, complex_sigmoid


# --- logarithms and powers ----------------------------------------------------------------------


def _make_log_size(format: Format) -> Any:
    """Return a function that gives ln abs(x + i y).

    Near abs(z) = 1 the logarithm is that of 1 + d, where d = x**2 + y**2 - 1 cancels, so it is
    computed to twice the precision.
    """
    log, log1p = _of(logarithms.LOG, format), _of(logarithms.LOG1P, format)
    hypot = _of(roots.HYPOT, format)
    half, one = format.number(0.5), format.number(1)
    low, high = format.number(0.5), format.number(3)
    small, large = format.number(2.0) ** format.choose((-100, 120), (-960, 1000))
    exponent = format.choose(40, 80)
    up, down = format.number(2.0**exponent), format.number(2.0**-exponent)
    shift = format.number(exponent * math.log(2))

    @_compiled
    def log_size(x, y):  # type: ignore[no-untyped-def]
        x, y = abs(x), abs(y)
        big, rest = (x, y) if x > y else (y, x)
        square = big * big + rest * rest
        if (square > low) & (square < high):
            first, first_rest = two_product(big, big)
            second, second_rest = two_product(rest, rest)
            total, total_rest = two_sum(first - one, second)
            return half * log1p(total + (total_rest + (first_rest + second_rest)))
        if big > large:
            return log(hypot(x * down, y * down)) + shift
        if big < small:
            return log(hypot(x * up, y * up)) - shift
        return log(hypot(x, y))

    return log_size


def _make_logarithms(format: Format) -> Sequence[Any]:
    log_size, log1p = _make_log_size(format), _of(logarithms.LOG1P, format)
    atan2 = _of(inverse_trigonometry.ATAN2, format)
    half, one, two = format.number(0.5), format.number(1), format.number(2)
    low, high = format.number(0.5), format.number(3)
    ln_2, ln_10 = format.number(math.log(2)), format.number(math.log(10))

    @_compiled
    def complex_log(z):  # type: ignore[no-untyped-def]
        return complex(log_size(z.real, z.imag), atan2(z.imag, z.real))

    @_compiled
    def complex_log1p(z):  # type: ignore[no-untyped-def]
        """Return log(1 + z); near abs(1 + z) = 1 from abs(1 + z)**2 - 1 = 2 x + x**2 + y**2."""
        x, y = z.real, z.imag
        moved = one + x
        square = moved * moved + y * y
        if (square > low) & (square < high):
            first, first_rest = two_product(x, x)
            second, second_rest = two_product(y, y)
            total, total_rest = two_sum(two * x, first)
            total, last_rest = two_sum(total, second)
            rests = (total_rest + last_rest) + (first_rest + second_rest)
            size = half * log1p(total + rests)
        else:
            size = log_size(moved, y)
        return complex(size, atan2(y, moved))

    @_compiled
    def complex_log2(z):  # type: ignore[no-untyped-def]
        found = complex_log(z)
        return complex(found.real / ln_2, found.imag / ln_2)

    @_compiled
    def complex_log10(z):  # type: ignore[no-untyped-def]
        found = complex_log(z)
        return complex(found.real / ln_10, found.imag / ln_10)

    return complex_log, complex_log1p, complex_log2, complex_log10


def _make_powers(format: Format) -> Sequence[Any]:
    log_size, turned = _make_log_size(format), _make_turned(format)
    pow, exp = _of(powers.POW, format), _of(exponentials.EXP, format)
    hypot, atan2 = _of(roots.HYPOT, format), _of(inverse_trigonometry.ATAN2, format)
    zero, one, infinity, nan = (format.number(value) for value in (0, 1, math.inf, math.nan))

    @_compiled
    def complex_pow(base, exponent):  # type: ignore[no-untyped-def]
        """Return abs(z)**u e**(-v arg z), turned by u arg z + v ln abs(z), for w = u + i v."""
        u, v = exponent.real, exponent.imag
        if (u == zero) & (v == zero):
            return complex(one, zero)
        if (base.real == zero) & (base.imag == zero):
            if u > zero:
                return complex(zero, zero)
            return complex(infinity if u < zero else nan, nan)
        size, direction = hypot(base.real, base.imag), atan2(base.imag, base.real)
        if v == zero:
            return turned(pow(size, u), u * direction)
        logarithm = log_size(base.real, base.imag)
        grown = pow(size, u) * exp(-v * direction)
        if not ((grown > zero) & (grown < infinity)):  # the factors may have, the product not
            grown = exp(u * logarithm - v * direction)
        return turned(grown, u * direction + v * logarithm)

    return (complex_pow,)


# --- trigonometric and hyperbolic functions -----------------------------------------------------


def _make_hyperbolic(format: Format) -> Sequence[Any]:
    sin, cos, tan = (
        _of(functions, format)
        for functions in (trigonometry.SIN, trigonometry.COS, trigonometry.TAN)
    )
    sinh, cosh, tanh = (
        _of(functions, format) for functions in (hyperbolic.SINH, hyperbolic.COSH, hyperbolic.TANH)
    )
    exp = _of(exponentials.EXP, format)
    zero, half, one, four = (format.number(value) for value in (0, 0.5, 1, 4))
    infinity, nan, far = format.number(math.inf), format.number(math.nan), format.number(22)
    largest = format.number(math.log(float(format.limits.max)))

    @_compiled
    def halves(x):  # type: ignore[no-untyped-def]
        """Return two factors of e**abs(x) / 2 where that overflows."""
        root = exp(half * abs(x))
        return half * root, root

    @_compiled
    def complex_sinh(z):  # type: ignore[no-untyped-def]
        """Return sinh x cos y + i cosh x sin y."""
        x, y = z.real, z.imag
        if y == zero:
            return complex(sinh(x), y)
        if not np.isfinite(y):
            return complex(x if (x == zero) | (abs(x) == infinity) else nan, nan)
        if x == zero:
            return complex(math.copysign(zero, x * cos(y)), sin(y))
        if (abs(x) > largest) & np.isfinite(x):
            first, second = halves(x)
            return complex(math.copysign(first, x) * cos(y) * second, first * sin(y) * second)
        return complex(sinh(x) * cos(y), cosh(x) * sin(y))

    @_compiled
    def complex_cosh(z):  # type: ignore[no-untyped-def]
        """Return cosh x cos y + i sinh x sin y."""
        x, y = z.real, z.imag
        if y == zero:
            return complex(cosh(x), math.copysign(one, x) * y)
        if not np.isfinite(y):
            if x == zero:
                return complex(nan, x)
            return complex(infinity if abs(x) == infinity else nan, nan)
        if x == zero:
            return complex(cos(y), x * sin(y))
        if (abs(x) > largest) & np.isfinite(x):
            first, second = halves(x)
            return complex(first * cos(y) * second, math.copysign(first, x) * sin(y) * second)
        return complex(cosh(x) * cos(y), sinh(x) * sin(y))

    @_compiled
    def complex_tanh(z):  # type: ignore[no-untyped-def]
        """Return tanh(x + i y); where abs(x) is large, +-1 + 4 i sin y cos y e**(-2 abs(x))."""
        x, y = z.real, z.imag
        size = abs(x)
        if y == zero:
            return complex(tanh(x), y)
        if not np.isfinite(y):
            if size == infinity:
                return complex(math.copysign(one, x), math.copysign(zero, y))
            return complex(x if x == zero else nan, nan)
        if size > far:
            shrunk = exp(-size)
            return complex(math.copysign(one, x), four * sin(y) * cos(y) * shrunk * shrunk)
        slope = tan(y)
        growth = one + slope * slope
        s = sinh(x)
        divisor = one + growth * s * s
        return complex(growth * np.sqrt(one + s * s) * s / divisor, slope / divisor)

    # The trigonometric ones are these on the other axis: sin z = -i sinh(i z), and so on.
    @_compiled
    def complex_sin(z):  # type: ignore[no-untyped-def]
        found = complex_sinh(complex(-z.imag, z.real))
        return complex(found.imag, -found.real)

    @_compiled
    def complex_cos(z):  # type: ignore[no-untyped-def]
        return complex_cosh(complex(-z.imag, z.real))

    @_compiled
    def complex_tan(z):  # type: ignore[no-untyped-def]
        found = complex_tanh(complex(-z.imag, z.real))
        return complex(found.imag, -found.real)

    return complex_sinh, complex_cosh, complex_tanh, complex_sin, complex_cos, complex_tan


# --- their inverses -----------------------------------------------------------------------------


def _make_inverses(format: Format) -> Sequence[Any]:
    """Return functions around Numba's own, which are Kahan's; those take most nans for others'."""
    zero, nan, quarter_turn = format.number(0), format.number(math.nan), format.number(PI / 2)
    infinity = format.number(math.inf)

    @_compiled
    def complex_acos(z):  # type: ignore[no-untyped-def]
        if (z.real == zero) & np.isnan(z.imag):
            return complex(quarter_turn, nan)
        return cmath.acos(z)

    @_compiled
    def complex_acosh(z):  # type: ignore[no-untyped-def]
        """Return i acos(z) or -i acos(z), the one whose real part is not negative."""
        found = complex_acos(z)
        if math.copysign(1.0, z.imag) < 0:
            return complex(found.imag, -found.real)
        return complex(-found.imag, found.real)

    @_compiled
    def complex_asinh(z):  # type: ignore[no-untyped-def]
        if (z.imag == zero) & np.isnan(z.real):
            return z
        return cmath.asinh(z)

    @_compiled
    def complex_asin(z):  # type: ignore[no-untyped-def]
        found = complex_asinh(complex(-z.imag, z.real))
        return complex(found.imag, -found.real)

    @_compiled
    def complex_atanh(z):  # type: ignore[no-untyped-def]
        x, y = z.real, z.imag
        if np.isnan(x) | np.isnan(y):
            if abs(y) == infinity:
                return complex(math.copysign(zero, x), math.copysign(quarter_turn, y))
            keeps = (x == zero) | (abs(x) == infinity)
            return complex(math.copysign(zero, x) if keeps else nan, nan)
        return cmath.atanh(z)

    @_compiled
    def complex_atan(z):  # type: ignore[no-untyped-def]
        found = complex_atanh(complex(-z.imag, z.real))
        return complex(found.imag, -found.real)

    return complex_asin, complex_acos, complex_atan, complex_asinh, complex_acosh, complex_atanh


# Which functions each `make` returns.
_MAKERS: dict[Callable[[Format], Sequence[Any]], str] = {
    _make_exponentials: "exp exp2 expm1 sigmoid",
    _make_logarithms: "log log1p log2 log10",
    _make_powers: "pow",
    _make_hyperbolic: "sinh cosh tanh sin cos tan",
    _make_inverses: "asin acos atan asinh acosh atanh",
}
_FORMATS = {types.complex64: SINGLE, types.complex128: DOUBLE}


@cache
def _made(make: Callable[[Format], Sequence[Any]], format: Format) -> dict[str, Any]:
    return dict(zip(_MAKERS[make].split(), make(format), strict=True))


def complex_function(name: str, number: Any) -> Any:
    """Return the function of a name for a Numba type, None if it is not complex.

    The functions are made when a kernel first needs them: most programs need none.
    """
    if number not in _FORMATS:
        return None
    make = next(make for make, names in _MAKERS.items() if name in names.split())
    return _made(make, _FORMATS[number])[name]
