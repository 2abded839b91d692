"""lgamma and digamma without branches, so that LLVM vectorises the loops they stand in.

Method, lgamma, of a = abs(x):

- below 2.5, near its zeros at 1 and 2, t P(t) with t = a - 1 or a - 2 exactly; below 3/4 by
  lgamma(a) = lgamma(1 + a) - ln a;
- up to 8 the same of a - n from 3/2 to 5/2, plus the logarithm of the product of the n factors;
- from there a (ln a - 1) - ln(a)/2 + ln(2 pi)/2 + Q(1/a**2)/a, Stirling's series made minimax.

For negative x it is ln(pi / (a abs(sin(pi a)))) - lgamma(a), where near its zeros, which are not at
1 and 2, digits cancel: the error is then one of the larger term.

Method, digamma: (a - r) P(a) from 1 to 2, where r is its zero, as the sum of two numbers; above,
the sum of n reciprocals, as one quotient, or ln a - 1/(2 a) - Q(1/a**2)/a**2; below 1 and for
negative x, digamma(1 + a) - 1/a and digamma(1 + a) + pi cot(pi a).

Error bounds, measured in tests/math/special and in benchmarks/accuracy: lgamma 3 ulp, digamma 4
ulp for positive x, for float64 and float32; for negative x so many of the largest term.

Sources: NIST Digital Library of Mathematical Functions, 5.5.1 and 5.5.3 (recurrence, reflection),
5.5.2 and 5.5.4 those of digamma, 5.11.1 and 5.11.2 the series for large arguments. The polynomials
are minimax (Remez, benchmarks/accuracy).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numba import from_dtype

from numgrad.codegen.llvm.scalar_ir import copysign, floor, where
from numgrad.math.real.bits import fma
from numgrad.math.real.double_word import fast_two_sum
from numgrad.math.real.formats import Format, for_each
from numgrad.math.real.logarithms import make_log_pair
from numgrad.math.real.trigonometry import SIN_NEAR, TAN_NEAR

__all__ = ["DIGAMMA", "LGAMMA", "LGAMMA_OF_ONE_AND"]

# lgamma(1 + t)/t for t from -1/4 to 1/2, and lgamma(2 + t)/t from -1/2 to 1/2, by powers of t from
# the highest down.
_ONE_SINGLE = (
    0.029184708,
    -0.07733398,
    0.10507651,
    -0.11456661,
    0.12566279,
    -0.14386223,
    0.16953391,
    -0.20738973,
    0.2705814,
    -0.4006856,
    0.822467,
    -0.5772157,
)
_ONE_DOUBLE = (
    0.00503277511493693,
    -0.020614823202964035,
    0.03975324695307788,
    -0.050644850981791494,
    0.05276893878458499,
    -0.05313844683507126,
    0.05530867716567001,
    -0.05870495394415136,
    0.06250122094176738,
    -0.06667804878823798,
    0.07143414424700074,
    -0.07693215330421328,
    0.0833537580231704,
    -0.09095402399827113,
    0.10009946019038421,
    -0.11133426583604414,
    0.12550966947766107,
    -0.14404989676806906,
    0.1695571769978453,
    -0.20738555102868503,
    0.2705808084277827,
    -0.4006856343865314,
    0.8224670334241132,
    -0.5772156649015329,
)
_TWO_SINGLE = (
    0.00012236307,
    -0.000253618,
    0.0005015176,
    -0.0011859594,
    0.0028917324,
    -0.0073861587,
    0.020580735,
    -0.06735228,
    0.32246703,
    0.42278433,
)
_TWO_DOUBLE = (
    -3.346089881471143e-08,
    6.46665302022676e-08,
    -9.233066433918192e-08,
    2.0200855840429518e-07,
    -4.5254387487120936e-07,
    9.583856360106688e-07,
    -2.038399857472325e-06,
    4.374233059645112e-06,
    -9.439616472031703e-06,
    2.0507290442042062e-05,
    -4.4926223891562973e-05,
    9.945750684033125e-05,
    -0.0002231547592530352,
    0.0005096695250154152,
    -0.001192753911674283,
    0.0028905103307346786,
    -0.007385551028674524,
    0.020580808427784626,
    -0.06735230105319809,
    0.3224670334241132,
    0.42278433509846713,
)
# What follows ln(2 pi)/2 in Stirling's series, times a, by powers of 1/a**2.
_TAIL_SINGLE = (
    -0.0027655193,
    0.083333306,
)
_TAIL_DOUBLE = (
    0.005069270266069499,
    -0.0018905408365808521,
    0.000841472862181485,
    -0.0005952366070261517,
    0.0007936507898349698,
    -0.002777777777774099,
    0.08333333333333333,
)
# digamma(z) / (z - r) by powers of z - 3/2, for z from 1 to 2.
_DIGAMMA_SINGLE = (
    0.011120271,
    -0.016383868,
    0.016979424,
    -0.02578117,
    0.040879548,
    -0.062057037,
    0.094982065,
    -0.14839879,
    0.24054262,
    -0.4236275,
    0.9510559,
)
_DIGAMMA_DOUBLE = (
    -8.315687794986513e-05,
    0.0001223712347991947,
    -5.883391295582015e-05,
    9.164929517286285e-05,
    -0.00021931707556019443,
    0.000326857067156061,
    -0.0004594471739941334,
    0.0006899548909284274,
    -0.0010423766281853397,
    0.0015635714998525484,
    -0.002344633333813784,
    0.003518079602711852,
    -0.0052800194183542995,
    0.007927024108629334,
    -0.011908215074769059,
    0.017907248193786453,
    -0.026975796847933033,
    0.0407608339446949,
    -0.061922133271581116,
    0.09498872445282891,
    -0.14840492305391834,
    0.24054248424078736,
    -0.42362742128146047,
    0.9510558760318328,
)
# (ln a - 1/(2 a) - digamma(a)) a**2 by powers of 1/a**2.
_DIGAMMA_TAIL_SINGLE = (
    0.0038479248,
    -0.008332258,
    0.08333333,
)
_DIGAMMA_TAIL_DOUBLE = (
    -0.2870654334673058,
    0.07927973975971646,
    -0.021033040156142924,
    0.007575235260375867,
    -0.004166663977823861,
    0.00396825396055236,
    -0.008333333333322632,
    0.08333333333333333,
)
_ROOT = Fraction("1.461632144968362341262659542325721328468")  # of digamma
_STIRLING_FROM = 8  # from where on arguments are large
# Beyond these lgamma is too large for the type.
_MOST_SINGLE, _MOST_DOUBLE = 4.085003e36, 2.5599833278516383e305


def _one_of(
    format: Format, first: tuple[float, ...], second: tuple[float, ...]
) -> Callable[[Any, Any], Any]:
    """Return a function that gives one of two polynomials, chosen by a condition."""
    count = max(len(first), len(second))
    columns = [[format.number(c) for c in (0.0,) * (count - len(p)) + p] for p in (first, second)]
    *pairs, slope, constant = zip(*columns, strict=True)

    def polynomial(is_first, t):  # type: ignore[no-untyped-def]
        square = t * t
        chains = []
        for part in (pairs[-1::-2][::-1], pairs[-2::-2][::-1]):
            value = where(is_first, *part[0])
            for pair in part[1:]:
                value = fma(value, square, where(is_first, *pair))
            chains.append(value)
        # The last two one by one, because they may cancel.
        value = fma(fma(chains[1], t, chains[0]), t, where(is_first, *slope))
        return fma(value, t, where(is_first, *constant))

    return polynomial


def _make_lgamma(format: Format) -> Any:
    number = format.number
    sin, log_pair = SIN_NEAR[from_dtype(np.dtype(number))], make_log_pair(format)
    near_zeros = _one_of(
        format,
        format.choose(_ONE_SINGLE, _ONE_DOUBLE),
        format.choose(_TWO_SINGLE, _TWO_DOUBLE),
    )
    tail = format.polynomial(_TAIL_SINGLE, _TAIL_DOUBLE)
    zero, half, one, two, infinity = (number(c) for c in (0, 0.5, 1, 2, math.inf))
    quarter_off, first_end, second_end, series = (
        number(c) for c in (0.75, 1.5, 2.5, _STIRLING_FROM)
    )
    most = number(format.choose(_MOST_SINGLE, _MOST_DOUBLE))
    pi, inverse_pi = number(math.pi), number(1 / math.pi)
    constant = number(math.log(2 * math.pi) / 2)

    def lgamma(x):  # type: ignore[no-untyped-def]
        a, negative = abs(x), x < zero
        small, large = a < quarter_off, a >= series
        # From 3/2 to 5/2 what is left of `a` without n, and the product of the factors between.
        count = where((a < second_end) | large, zero, floor(a - first_end))
        y = a - count
        product = where(count > zero, y, one)
        for k in range(1, _STIRLING_FROM - 2):
            product = product * where(count > number(k), y + number(k), one)
        is_first = (a < half) | ((a >= quarter_off) & (a < first_end))
        t = where(a < half, a, where(is_first | small, y - one, y - two))
        near = t * near_zeros(is_first, t)
        # sin(pi a)/pi without a sign
        part = a - floor(a)
        sine = sin(pi * where(part > half, one - part, part)) * inverse_pi
        reflected = a * sine
        high, low = log_pair(
            where(
                small,
                where(negative, sine, a),
                where(large, a, where(negative, product * reflected, product)),
            )
        )
        far_high, far_low = log_pair(where(negative & large, reflected, one))
        stirling_high, stirling_low = fast_two_sum(high, low)
        main = a * (stirling_high - one)
        rest = fma(a, stirling_high - one, -main)
        rest = rest + fma(a, stirling_low, constant - half * stirling_high)
        inverse = one / a
        stirling = main + fma(inverse, tail(inverse * inverse), rest)
        far = where(negative, -(far_high + (stirling + far_low)), stirling)
        below = where(negative, -near, near) - low - high
        between = high + (near + low)
        result = where(small, below, where(negative, -between, between))
        result = where(large, far, result)
        result = where(a > most, infinity, result)
        return where(x == x, result, x)

    return lgamma


def _make_near_one(format: Format) -> Any:
    """Return lgamma(1 + t) for t from -1/4 to 1/2, with all its digits near 0."""
    polynomial = format.polynomial(_ONE_SINGLE, _ONE_DOUBLE)

    def lgamma_of_one_and(t):  # type: ignore[no-untyped-def]
        return t * polynomial(t)

    return lgamma_of_one_and


def _make_digamma(format: Format) -> Any:
    number = format.number
    tan, log_pair = TAN_NEAR[from_dtype(np.dtype(number))], make_log_pair(format)
    near_root = format.polynomial(_DIGAMMA_SINGLE, _DIGAMMA_DOUBLE, chains=2)
    tail = format.polynomial(_DIGAMMA_TAIL_SINGLE, _DIGAMMA_TAIL_DOUBLE)
    root, root_rest = format.pair(_ROOT - 1)
    zero, half, one, two, infinity = (number(c) for c in (0, 0.5, 1, 2, math.inf))
    quarter = number(0.25)
    series, pi, nan = number(_STIRLING_FROM), number(math.pi), number(math.nan)

    def digamma(x):  # type: ignore[no-untyped-def]
        a, negative = abs(x), x < zero
        small = a < one
        z = where(negative | small, a + one, a)
        large = z >= series
        count = where((z < two) | large, zero, floor(z - one))
        t = where(small, a, (z - count) - one)
        near = ((t - root) - root_rest) * near_root(t - half)
        # The sum of 1/(t + 1 + k) for k below `count`, as a quotient.
        above, below = zero * t, zero * t + one
        for k in range(_STIRLING_FROM - 2):
            factor = t + number(k + 1)
            wanted = count > number(k)
            above = where(wanted, fma(above, factor, below), above)
            below = where(wanted, below * factor, below)
        lifted = small & ~negative
        inverse = where(large, one, where(lifted, -one, above)) / where(
            large, z, where(lifted, a, below)
        )
        high, low = log_pair(z)
        square = inverse * inverse
        far = high + (low - fma(square, tail(square), half * inverse))
        result = where(large, far, near + inverse)
        part = a - floor(a)
        distance = where(part > half, one - part, part)
        # Near its zeros the cotangent is the tangent of the rest, which is exact.
        is_far = distance > quarter
        tangent = tan(pi * where(is_far, half - distance, distance))
        cotangent = where(is_far, pi * tangent, pi / tangent)
        cotangent = where(part > half, -cotangent, cotangent)
        result = where(negative, result + cotangent, result)
        result = where(negative & (part == zero), nan, result)
        result = where(a == infinity, where(negative, nan, infinity), result)
        result = where(a == zero, copysign(infinity, -x), result)
        return where(x == x, result, x)

    return digamma


# The function for each type, for the overloads in numgrad.math.scalar.
LGAMMA, DIGAMMA, LGAMMA_OF_ONE_AND = for_each(
    lambda f: (_make_lgamma(f), _make_digamma(f), _make_near_one(f))
)
