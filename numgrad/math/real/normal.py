"""The normal distribution and the scaled complementary error function, without branches.

Method: what erfc is made of, a power of e and a polynomial that are each the sum of two numbers
(`numgrad.math.real.error_functions`). The exponent of the distribution function, -x**2/2, is that
of the exact square, so that the rounding of x/sqrt(2) matters in the polynomial alone. Its
logarithm is that of erfc(t) e**(t*t) less x**2/2 below 0, and log1p of the other tail above. The
quantile is p - 1/2 times a piecewise polynomial of sqrt(-ln(4 p (1 - p))), which is nearly a line
in the tails and flat in the middle: errors of its argument count for little.

Error bounds are those of `numgrad.codegen.scalar_ops`, measured in tests/math/real and in
benchmarks/accuracy. The polynomials of the quantile were fitted by benchmarks/accuracy/pieces.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import from_dtype

from numgrad.codegen.llvm.scalar_ir import sqrt, where
from numgrad.math.real.bits import fma
from numgrad.math.real.double_word import fast_two_sum, two_product
from numgrad.math.real.error_functions import PARTS
from numgrad.math.real.formats import Format, for_each
from numgrad.math.real.logarithms import LOG, make_log_of_sum
from numgrad.math.real.pieces import limited, make_locate, make_pieces
from numgrad.math.real.polynomials import make_polynomial

__all__ = ["ERFCX", "LOG_NDTR", "NDTR", "NDTRI", "make_quantile"]


# (-1)**n (2n - 1)!! from n = 7 down to 0, without the 1 of n = 0: DLMF 7.12.1, in 1/(2 x**2).
_ASYMPTOTIC = (-135135.0, 10395.0, -945.0, 105.0, -15.0, 3.0, -1.0, 0.0)


def _make_erfcx(format: Format) -> Any:
    """Return exp(x**2) erfc(x)."""
    number = format.number
    gaussian, scaled, product = PARTS[number]
    zero, half, one, two = number(0), number(0.5), number(1), number(2)
    root = number(1 / math.sqrt(math.pi))
    # What erfc is made of holds up to where that is 0; e**(x*x) of less than minus that is inf.
    large = number(format.choose(10, 27))
    lowest = -large - half
    asymptotic = make_polynomial(number, _ASYMPTOTIC)

    def erfcx(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        factor, factor_rest = scaled(where(size < large, size, large))
        inverse = one / size
        far = root * inverse
        far = fma(far, asymptotic(half * inverse * inverse), far)
        value = where(size < large, factor + factor_rest, far)
        square, square_rest = two_product(*[where(x < lowest, lowest, x)] * 2)
        head, tail, k = gaussian(-square, -square_rest)
        reflected = product((head, tail, k), two, zero) - value
        return where(x < zero, reflected, value)

    return erfcx


def _make_tail(format: Format) -> Any:
    """Return a function that gives the probability of normal numbers above a positive one."""
    number = format.number
    gaussian, scaled, product = PARTS[number]
    half, root, most = number(0.5), number(math.sqrt(0.5)), number(format.choose(15, 39))

    def tail(size):  # type: ignore[no-untyped-def]
        size = where(size > most, most, size)
        square, square_rest = two_product(size, size)
        factor, factor_rest = scaled(size * root)
        power = gaussian(square * half, square_rest * half)
        return product(power, factor * half, factor_rest * half)

    return tail


def _make_ndtr(format: Format) -> Any:
    """Return the distribution function."""
    tail, zero, one = _make_tail(format), format.number(0), format.number(1)

    def ndtr(x):  # type: ignore[no-untyped-def]
        value = tail(abs(x))
        return where(x > zero, one - value, value)

    return ndtr


def _make_log_ndtr(format: Format) -> Any:
    """Return the logarithm of the distribution function."""
    number = format.number
    erfcx, tail, log_of_sum = _make_erfcx(format), _make_tail(format), make_log_of_sum(format)
    zero, half, one, root = number(0), number(0.5), number(1), number(math.sqrt(0.5))
    small, infinity = number(2.0 ** -(format.mantissa + 2)), number(math.inf)
    # Behind it the square is so large that the logarithm of the rest is lost.
    far = number(format.choose(1e8, 1e18))

    def log_ndtr(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        above = tail(size)
        square, square_rest = two_product(half * size, size)
        square_rest = where(square < infinity, square_rest, zero)
        u, rest = fast_two_sum(one, -above)
        is_below = x < zero
        u = where(is_below, half * erfcx(where(size < far, size, far) * root), u)
        value = log_of_sum(u, where(is_below, zero, rest), zero)
        value = where(is_below, value - square - square_rest, value)
        return where((x > zero) & (above < small), -above, where(x == x, value, x))

    return log_ndtr


def make_quantile(format: Format) -> Any:
    """Return the quantile over p - 1/2, as a function of 4 p (1 - p)."""
    log = LOG[from_dtype(np.dtype(format.number))]
    zero, most = format.number(0), format.number(27.5)
    locate, pieces = make_locate(format, 0.125), make_pieces(format, "QUANTILE")

    def quantile(rest):  # type: ignore[no-untyped-def]
        return pieces(*locate(limited(sqrt(-log(rest)), zero, most)))

    return quantile


def _make_ndtri(format: Format) -> Any:
    """Return the quantile."""
    number = format.number
    zero, half, one, four = (number(v) for v in (0, 0.5, 1, 4))
    infinity, nan = number(math.inf), number(math.nan)
    quantile = make_quantile(format)

    def ndtri(p):  # type: ignore[no-untyped-def]
        is_below = p < half
        smaller = where(is_below, p, one - p)
        value = (p - half) * quantile(four * smaller * (one - smaller))
        value = where(smaller > zero, value, where(is_below, -infinity, infinity))
        return where(smaller >= zero, value, nan)

    return ndtri


# The function for each type, for numgrad.math.scalar.
ERFCX, NDTR, LOG_NDTR, NDTRI = for_each(
    lambda f: (_make_erfcx(f), _make_ndtr(f), _make_log_ndtr(f), _make_ndtri(f))
)
