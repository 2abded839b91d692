"""log, log1p, log2 and log10 without branches, so that LLVM vectorises the loops they stand in.

Method: write x = 2**k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2); with s = f / (2 + f),

    log(1 + f) = 2 atanh s = f - (f**2/2 - s (f**2/2 + s**2 g(s**2)))

where g is a polynomial. k and f are taken from the bits of x. k ln 2 + f, the large part of the
result, is kept with what its rounding loses; for the bases 2 and 10, so is its multiple.

log1p takes what the rounding of 1 + x loses into account: with it, call it l, log(1 + f + l) is
log(1 + f) + l / (1 + f), and 1 / (1 + f) is near enough to 1 - 2 s + 2 s**2.

Error bounds, measured in tests/kernels/vector and in benchmarks/accuracy: 1
ulp for each over the whole range, for float32 and float64; nan, infinities and signs of zero exact.

Sources: the identity with f**2/2 is that of W. J. Cody and of the logarithm in 4.3BSD (P. Tang and
K. C. Ng); the polynomial is minimax (Remez, benchmarks/accuracy), with a relative error of 2**-31
(float32) and 2**-58 of the logarithm.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

from numgrad.codegen.llvm.scalar_ir import where
from numgrad.math.real.bits import fma, from_bits, to_bits
from numgrad.math.real.double_word import two_sum
from numgrad.math.real.formats import LN_2, Format, for_each

__all__ = ["LOG", "LOG1P", "LOG2", "LOG10", "make_log_of_sum", "make_log_pair", "make_split"]

LOG2_E = 1 / LN_2
LOG10_E = Fraction("0.434294481903251827651128918916605082294397005803666566114454")
LOG10_2 = Fraction("0.301029995663981195213738894724493026768189881462108541310427")

# (2 atanh s - 2 s) / s**3 in powers of s**2, the highest first, for abs(s) <= tanh(ln(2) / 4).
_TAIL_SINGLE = (0.23582429, 0.28537294, 0.40000334, 0.6666666)
_TAIL_DOUBLE = (
    0.14796252319865158,
    0.15314021956705437,
    0.18183565376403782,
    0.2222219855434223,
    0.2857142874255703,
    0.3999999999941399,
    0.6666666666666734,
)


@cache
def make_split(format: Format, least: float) -> Any:
    """Return a function that gives m from `least` to 2 least, and k as a number: x = 2**k m.

    For positive x, subnormal numbers too; for others what it gives means nothing.
    """
    number, integer, mantissa = format.number, format.integer, format.mantissa
    shift, least_bits = integer(mantissa), format.bits(least)
    normal, grown = number(format.limits.smallest_normal), number(2.0 ** (mantissa + 1))
    zero, borrowed = number(0), number(mantissa + 1)
    magic = number(1.5 * 2.0**mantissa)
    magic_bits = format.bits(magic)

    def split(x):  # type: ignore[no-untyped-def]
        bits = to_bits(where(x < normal, x * grown, x))
        k = (bits - least_bits) >> shift
        m = from_bits(bits - (k << shift))
        # An integer below 2**mantissa in the low bits of `magic` is that number added to it.
        exponent = from_bits(magic_bits + k) - magic
        return m, exponent - where(x < normal, borrowed, zero)

    return split


@cache
def make_terms(format: Format) -> Any:
    """Return a function that gives s, and (f - log(1 + f)), for f."""
    tail = format.polynomial(_TAIL_SINGLE, _TAIL_DOUBLE)
    half, two = format.number(0.5), format.number(2)

    def terms(f):  # type: ignore[no-untyped-def]
        s = f / (f + two)
        half_f, w = half * f, s * s
        return s, fma(half_f, f, -(s * fma(w, tail(w), half_f * f)))

    return terms


@cache
def _make_finish(format: Format) -> Any:
    """Return a function that gives a logarithm its values at 0, inf and nan, and below 0."""
    zero, infinity, nan = format.number(0), format.number(math.inf), format.number(math.nan)

    def finish(x, result):  # type: ignore[no-untyped-def]
        result = where(x < infinity, result, x)
        result = where(x == zero, -infinity, result)
        return where(x < zero, nan, result)

    return finish


@cache
def make_log_pair(format: Format) -> Any:
    """Return a function that gives a logarithm as a number and what is to be added to it.

    At 0 that is -inf and 0; for negative numbers, inf and nan it has no meaning.
    """
    split, terms = make_split(format, 0.5**0.5), make_terms(format)
    zero, one, infinity = format.number(0), format.number(1), format.number(math.inf)
    high, low = format.pair(LN_2)

    def log_pair(x):  # type: ignore[no-untyped-def]
        m, k = split(x)
        f = m - one
        _, less = terms(f)
        main = fma(k, high, f)
        # What the rounding of `main` lost is exact: f has no bits below those of `high`.
        lost = f + fma(k, high, -main)
        is_zero = x == zero
        return where(is_zero, -infinity, main), where(is_zero, zero, lost + fma(k, low, -less))

    return log_pair


def _make_log(format: Format) -> Any:
    split, terms, finish = make_split(format, 0.5**0.5), make_terms(format), _make_finish(format)
    one, (high, low) = format.number(1), format.pair(LN_2)

    def log(x):  # type: ignore[no-untyped-def]
        m, k = split(x)
        f = m - one
        _, less = terms(f)
        main = fma(k, high, f)
        # What the rounding of `main` lost is exact: f has no bits below those of `high`.
        lost = f + fma(k, high, -main)
        return finish(x, main + (lost + fma(k, low, -less)))

    return log


def _make_log_to_base(format: Format, scale: Fraction, step: Fraction) -> Any:
    """Return the logarithm that is `scale` times the natural one, and `step` for 2."""
    split, terms, finish = make_split(format, 0.5**0.5), make_terms(format), _make_finish(format)
    (scale_high, scale_low), (step_high, step_low) = format.pair(scale), format.pair(step)
    one = format.number(1)

    def log(x):  # type: ignore[no-untyped-def]
        m, k = split(x)
        f = m - one
        _, less = terms(f)
        product = f * scale_high
        rest = fma(f, scale_low, fma(f, scale_high, -product))
        main = fma(k, step_high, product)
        lost = product + fma(k, step_high, -main)
        return finish(x, main + (lost + fma(k, step_low, fma(-less, scale_high, rest))))

    return log


@cache
def make_log_of_sum(format: Format) -> Any:
    """Return a function that gives log(2**more (u + rest)), for u at least about 1/2.

    `rest` is what the rounding of u lost. Where u is inf or not positive the result has no meaning.
    """
    number = format.number
    split, terms = make_split(format, 0.5**0.5), make_terms(format)
    one, two, most = number(1), number(2), number(2 * format.mantissa)
    (high, low), power_of_two, nearest = format.pair(LN_2), format.power_of_two(), format.nearest()

    def log_of_sum(u, rest, more):  # type: ignore[no-untyped-def]
        m, k = split(u)
        # Beside a u above 2**most there is no rest.
        _, exponent = nearest(where(k > most, most, k), one)
        f, rest = m - one, rest * power_of_two(-exponent)
        s, less = terms(f)
        k = k + more
        main = fma(k, high, f)
        lost = f + fma(k, high, -main)
        inner = fma(rest, fma(s, fma(two, s, -two), one), fma(k, low, -less))
        return main + (lost + inner)

    return log_of_sum


def _make_log1p(format: Format) -> Any:
    log_of_sum, finish = make_log_of_sum(format), _make_finish(format)
    zero, one = format.number(0), format.number(1)

    def log1p(x):  # type: ignore[no-untyped-def]
        u, rest = two_sum(one, x)
        result = finish(u, log_of_sum(u, rest, zero))
        return where(x == zero, x, result)

    return log1p


# The function for each type, for the overloads in numgrad.math.scalar.
LOG, LOG1P, LOG2, LOG10 = for_each(
    lambda f: (
        _make_log(f),
        _make_log1p(f),
        _make_log_to_base(f, LOG2_E, Fraction(1)),
        _make_log_to_base(f, LOG10_E, LOG10_2),
    )
)
