"""asinh, acosh and atanh without branches.

Method: the first two are logarithms of a sum, taken with what its rounding lost:

    asinh x = log(1 + x + x**2 / (1 + sqrt(1 + x**2))),    acosh x = log(x + sqrt(x**2 - 1)),

and log(2 x) where x is so large that the root adds nothing. For atanh, with k an integer near
log2((1 + x) / (1 - x)) and j = 2**k,

    atanh x = k ln(2)/2 + atanh s,    s = (1 + x - j (1 - x)) / (1 + x + j (1 - x)),

with one division, and s = x near 0, where k is 0. All are computed for abs(x), and get its sign.

Error bounds, measured in tests/kernels/vector and in benchmarks/accuracy: 2
ulp for each over the whole range, for float32 and float64; nan, infinities and signs of zero exact.

Sources: the addition theorem of atanh; the polynomial is minimax (Remez, benchmarks/accuracy),
with a relative error of 2**-33 (float32) and 2**-59.
"""

from __future__ import annotations

import math
from typing import Any

from numgrad.codegen.llvm.scalar_ir import sqrt, where
from numgrad.math.real.bits import fma, from_bits, to_bits
from numgrad.math.real.double_word import fast_two_sum, two_sum
from numgrad.math.real.formats import LN_2, Format, for_each
from numgrad.math.real.logarithms import make_log_of_sum

__all__ = ["ACOSH", "ASINH", "ATANH"]

# (2 atanh s - 2 s) / s**3 in powers of s**2, the highest first, for abs(s) <= 0.201.
_TAIL_SINGLE = (0.24123348, 0.28505448, 0.40000895, 0.6666666)
_TAIL_DOUBLE = (
    0.13867139464646744,
    0.1316998819097349,
    0.15391330198349218,
    0.18181659071149836,
    0.22222224412449176,
    0.2857142855477726,
    0.40000000000061164,
    0.6666666666666659,
)


def _make_asinh(format: Format) -> Any:
    number = format.number
    log_of_sum = make_log_of_sum(format)
    large = number(2.0 ** (format.mantissa // 2 + 2))
    zero, one, infinity = number(0), number(1), number(math.inf)

    def asinh(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        is_large = size > large
        square = where(is_large, zero, size * size)
        z, z_rest = fast_two_sum(size, square / (one + sqrt(one + square)))
        u, rest = two_sum(one, z)
        u, rest = where(is_large, (size, zero), (u, rest + z_rest))
        result = log_of_sum(u, rest, where(is_large, one, zero))
        signed = where(x < zero, -result, result)
        return where((x != zero) & (size < infinity), signed, x)

    return asinh


def _make_acosh(format: Format) -> Any:
    number = format.number
    log_of_sum = make_log_of_sum(format)
    large = number(2.0 ** (format.mantissa // 2 + 2))
    zero, one, infinity, nan = number(0), number(1), number(math.inf), number(math.nan)

    def acosh(x):  # type: ignore[no-untyped-def]
        is_large = x > large
        u, rest = fast_two_sum(x, where(is_large, zero, sqrt(fma(x, x, -one))))
        result = log_of_sum(u, rest, where(is_large, one, zero))
        result = where(x < one, nan, result)
        return where(x < infinity, result, x)

    return acosh


def _make_atanh(format: Format) -> Any:
    number, integer = format.number, format.integer
    tail, power_of_two = format.polynomial(_TAIL_SINGLE, _TAIL_DOUBLE), format.power_of_two()
    shift, half_step = integer(format.mantissa), integer(1 << (format.mantissa - 1))
    magic = number(1.5 * 2.0**format.mantissa)
    magic_bits = format.bits(magic)
    high, low = format.pair(LN_2 / 2)
    zero, half, one = number(0), number(0.5), number(1)
    infinity, nan = number(math.inf), number(math.nan)

    def atanh(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        above, below = one + size, one - size
        # The bits of a number are nearly linear in its logarithm.
        distance = to_bits(above) - to_bits(below)
        k = (distance + half_step) >> shift
        j = power_of_two(k)
        # Above 1/2 `below` is exact, while 1 + j may not be.
        is_far = size > half
        sum_, difference = where(is_far, (above, above), (one + j, one - j))
        factor = where(is_far, below, size)
        s = fma(factor, where(is_far, -j, sum_), difference) / fma(
            factor, where(is_far, j, difference), sum_
        )
        square = s * s
        exponent = from_bits(magic_bits + k) - magic
        main = fma(exponent, high, s)
        lost = s + fma(exponent, high, -main)
        result = main + (lost + fma(half * s, square * tail(square), exponent * low))
        result = where(size == one, infinity, result)
        result = where(size > one, nan, result)
        signed = where(x < zero, -result, result)
        return where(x == zero, x, signed)

    return atanh


# The function for each type, for the overloads in numgrad.math.scalar.
ASINH, ACOSH, ATANH = for_each(lambda f: (_make_asinh(f), _make_acosh(f), _make_atanh(f)))
