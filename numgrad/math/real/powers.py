"""pow without branches, so that LLVM vectorises the loops it stands in.

Method: base**exponent = 2**(exponent log2 base). The logarithm needs as many more bits as the
exponent of the result has, so it is kept as an unevaluated sum of two numbers, as is the product:
with 2**k m = abs(base), m from sqrt(1/2) to sqrt(2), and s = (m - 1) / (m + 1),

    log2 base = k + s (2/ln 2 + s**2 (2/(3 ln 2) + s**2 e(s**2)))

where all but the polynomial e is in double-word arithmetic. 2**p for the product p is as in
`numgrad.math.real.exponentials`, the low word of p added to what is left of the high one.

Error bound, measured against mpmath in tests/kernels/vector: 1 ulp over the whole range, for
float32 and float64; so a power that is a number of the type is exact.
The special values are those of the C standard (C99, F.9.4.4).

Sources: the double-word steps are those of `numgrad.math.real.double_word`; the polynomial is
minimax (Remez, benchmarks/accuracy), with a relative error of 2**-35 (float32) and 2**-65 of the
logarithm.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from numgrad.codegen.llvm.scalar_ir import floor, where
from numgrad.math.real.bits import fma, to_bits
from numgrad.math.real.double_word import fast_two_sum
from numgrad.math.real.exponentials import EXP2_DOUBLE, EXP2_SINGLE
from numgrad.math.real.formats import LN_2, Format, for_each
from numgrad.math.real.logarithms import make_split

__all__ = ["POW"]

# (2 atanh s - 2 s - 2/3 s**3) / s**5 / ln 2 in powers of s**2, the highest first.
_TAIL_SINGLE = (0.33786133, 0.41184798, 0.5770802)
_TAIL_DOUBLE = (
    0.1903855103892615,
    0.19125516293623843,
    0.22198399717613373,
    0.2623077011495836,
    0.3205989022731498,
    0.41219858309194307,
    0.577078016355618,
)


def _make_log2(format: Format) -> Any:
    """Return a function that gives log2 of positive numbers as a sum of two."""
    number = format.number
    split = make_split(format, 0.5**0.5)
    tail = format.polynomial(_TAIL_SINGLE, _TAIL_DOUBLE, chains=2)
    one, two = number(1), number(2)
    first, first_rest = format.pair(2 / LN_2)
    third, third_rest = format.pair(Fraction(2, 3) / LN_2)

    def log2(x):  # type: ignore[no-untyped-def]
        m, k = split(x)
        above, below = m - one, m + one
        below_rest = m - (below - one)
        inverse = one / below
        s = above * inverse
        s_rest = fma(-s, below_rest, fma(-s, below, above)) * inverse
        square = s * s
        square_rest = fma(two * s, s_rest, fma(s, s, -square))
        b, b_rest = fast_two_sum(third, square * tail(square))
        b_rest = b_rest + third_rest
        product = square * b
        product_rest = fma(square, b, -product) + fma(square, b_rest, square_rest * b)
        c, c_rest = fast_two_sum(first, product)
        c_rest = c_rest + (first_rest + product_rest)
        fraction = s * c
        fraction_rest = fma(s, c, -fraction) + fma(s, c_rest, s_rest * c)
        high, low = fast_two_sum(k, fraction)
        return high, low + fraction_rest

    return log2


def _make_exp2(format: Format) -> Any:
    """Return a function that gives 2**(p + rest), nearly correctly rounded, where p is no nan."""
    one, nearest, scaled = format.number(1), format.nearest(), format.scaled()
    polynomial = format.polynomial(EXP2_SINGLE[:-1], EXP2_DOUBLE[:-1], chains=2)
    slope, slope_rest = format.pair(LN_2)

    def exp2(p, rest):  # type: ignore[no-untyped-def]
        whole, k = nearest(p, one)
        r, rest = fast_two_sum(p - whole, rest)
        main = fma(r, slope, one)
        lost = fma(r, slope, one - main)
        small = fma(rest, slope, fma(r, slope_rest, lost))
        return scaled(main + fma(r * r, polynomial(r), small), k)

    return exp2


def _make_pow(format: Format) -> Any:
    number, integer, limits = format.number, format.integer, format.limits
    log2, exp2 = _make_log2(format), _make_exp2(format)
    # The result is 0 or inf where the product is as large as this, whatever it is.
    bound = number(max(limits.maxexp, format.mantissa - limits.minexp) + 4)
    zero, half, one = number(0), number(0.5), number(1)
    infinity, nan, none = number(math.inf), number(math.nan), integer(0)

    def magnitude(size, exponent):  # type: ignore[no-untyped-def]
        """Return the power of a base that is not negative."""
        high, low = log2(size)
        high = where(size < infinity, high, infinity)
        high = where(size == zero, -infinity, high)
        product = exponent * high
        rest = fma(exponent, low, fma(exponent, high, -product))
        is_large = abs(product) > bound
        product = where(is_large, where(product > zero, bound, -bound), product)
        return exp2(product, where(is_large, zero, rest))

    def pow(base, exponent):  # type: ignore[no-untyped-def]
        size, halved = abs(base), exponent * half
        is_whole = floor(exponent) == exponent
        is_odd = is_whole & (floor(halved) != halved)
        result = magnitude(size, exponent)
        # 1**inf is 1, though inf * log 1 is nan.
        result = where(size == one, one, result)
        result = where(is_odd & (to_bits(base) < none), -result, result)
        result = where((base < zero) & (size < infinity) & ~is_whole, nan, result)
        result = where((base != base) | (exponent != exponent), base + exponent, result)
        return where((base == one) | (exponent == zero), one, result)

    return pow


# The function for each type, for the overloads in numgrad.math.scalar.
(POW,) = for_each(lambda f: (_make_pow(f),))
