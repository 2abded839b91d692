"""asin, acos, atan and atan2 without branches, so that LLVM vectorises the loops they stand in.

Method: asin is a polynomial up to 1/2, and beyond it asin x = pi/2 - 2 asin(sqrt((1 - x)/2)); acos
is made of the same parts. atan2 divides the smaller side by the larger, or, where their quotient is
above tan(pi/8), their difference by their sum, and adds the multiple of pi/4 that this took off;
the remainder of the one division corrects the quotient. atan x is atan2(x, 1) without the scaling
and the special values.

Error bounds, measured in tests/kernels/vector and in benchmarks/accuracy: asin
and acos 1.5 ulp, atan and atan2 1 ulp, for float64 and float32; nan, infinities and signs of zero
as in the C standard, F.10.1.4.

Sources: the identities are in Abramowitz and Stegun, *Handbook of Mathematical Functions*, 4.4. The
polynomials were fitted for this file by the Remez algorithm in 60 digits, to the least relative
error of the function; each coefficient was rounded and those after it fitted again.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numba import types

from numgrad.codegen.llvm.scalar_ir import branch_free, copysign, sqrt, where
from numgrad.math.real.bits import fma, to_bits
from numgrad.math.real.double_word import fast_two_sum
from numgrad.math.real.far_angles import HALF_PI
from numgrad.math.real.polynomials import make_polynomial

__all__ = ["ACOS", "ASIN", "ATAN", "ATAN2"]

# (asin(x) - x) / x**3 and (atan(x) - x) / x**3, by powers of x**2 from the highest down.
_ASIN_SINGLE = (0.042211708, 0.02415213, 0.045476038, 0.07495252, 0.16666754)
_ATAN_SINGLE = (-0.06092712, 0.10600166, -0.1424451, 0.19998533, -0.33333316)
_ASIN_DOUBLE = (
    0.03195941025380718,
    -0.016294629983014574,
    0.019574195999367675,
    0.006510773699533571,
    0.01217329090864279,
    0.013884597883368209,
    0.017359771027580937,
    0.022371753539780912,
    0.03038195932995801,
    0.04464285682353428,
    0.07500000000342946,
    0.16666666666665383,
)
_ATAN_DOUBLE = (
    -0.01791946130470861,
    0.038075361013771195,
    -0.05039713169865422,
    0.058479759065159155,
    -0.06663115332210476,
    0.07692061146101689,
    -0.09090897806131722,
    0.11111110784983978,
    -0.14285714280223338,
    0.19999999999953816,
    -0.333333333333332,
)


def _make(
    number: Any, integer: Any, polynomials: tuple[tuple[float, ...], tuple[float, ...]]
) -> Any:
    """Return asin, acos, atan and atan2 for a type.

    Parameters
    ----------
    number, integer : numpy scalar types
        The floating point type, and the integer of its size.
    polynomials : tuple of tuple of float
        Coefficients of asin and atan.
    """
    info = np.finfo(number)
    asin_terms, atan_terms = (make_polynomial(number, terms, chains=2) for terms in polynomials)
    zero, half, one, two = number(0), number(0.5), number(1), number(2)
    half_pi = number(float(HALF_PI))
    half_pi_rest = number(float(HALF_PI - Fraction(float(half_pi))))
    eighth = number(np.sqrt(2.0) - 1)  # tan(pi/8)
    quarter_pi, quarter_pi_rest = half_pi * half, half_pi_rest * half
    pi, pi_rest = half_pi * two, half_pi_rest * two
    infinity = number(np.inf)
    saturated = number(2.0 ** (2 * info.nmant))  # beyond it atan is pi/2
    # Sides are scaled so that neither their sum nor the remainder of their division leaves the
    # range; one that vanishes beside the other may do so.
    long, short = number(2.0 ** (info.maxexp * 7 // 8)), number(2.0 ** (info.minexp // 8))
    shrink, stretch = number(2.0 ** (-info.maxexp * 3 // 4)), number(2.0 ** (info.maxexp * 3 // 4))
    sign_bit = np.asarray(number(-0.0)).view(integer)[()]

    def arc(size):  # type: ignore[no-untyped-def]
        """Return t and asin(t) - t; t is `size`, or sqrt((1 - size)/2) if it is above 1/2."""
        is_small = size <= half
        square = where(is_small, size * size, half * (one - size))
        t = where(is_small, size, sqrt(square))
        return t, t * square * asin_terms(square)

    def asin(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        t, rest = arc(size)
        # Twice t has no more error than t, and pi/2 - 2 t is exact where it is small.
        head, tail = fast_two_sum(half_pi, -two * t)
        large = head + (tail + (half_pi_rest - two * rest))
        return copysign(where(size <= half, t + rest, large), x)

    def acos(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        t, rest = arc(size)
        is_small, is_negative = size <= half, x < zero
        # pi/2 - asin x; 2 asin(t); pi - 2 asin(t)
        factor = where(is_small, one, two)
        step, correction = factor * t, factor * rest
        start = where(is_small, half_pi, where(is_negative, pi, zero))
        start_rest = where(is_small, half_pi_rest, where(is_negative, pi_rest, zero))
        add = is_negative == is_small
        step = where(add, step, -step)
        correction = where(add, correction, -correction)
        head, tail = fast_two_sum(start, step)
        return head + (tail + (start_rest + correction))

    def direction(near, far, is_steep, is_behind):  # type: ignore[no-untyped-def]
        """Return the angle, from 0 to pi, of a point from its sides, 0 <= near <= far, 0 < far.

        It is steep if `far` is the ordinate, behind if the abscissa is negative.
        """
        is_wide = near > eighth * far
        difference, difference_rest = fast_two_sum(-far, near)
        total, total_rest = fast_two_sum(far, near)
        above, above_rest = (
            where(is_wide, difference, near),
            where(is_wide, difference_rest, zero),
        )
        below, below_rest = where(is_wide, total, far), where(is_wide, total_rest, zero)
        inverse = one / below
        quotient = above * inverse
        remainder = fma(-quotient, below, above) + fma(-quotient, below_rest, above_rest)
        rest = remainder * inverse
        square = quotient * quotient
        rest = fma(quotient * square, atan_terms(square), rest)
        # The angle is that of the quotient, or less than pi/4 by it; steep, it counts from pi/2;
        # behind, from pi.
        start, start_rest = (
            where(is_wide, quarter_pi, zero),
            where(is_wide, quarter_pi_rest, zero),
        )
        start, start_rest = (
            where(is_steep, half_pi - start, start),
            where(is_steep, half_pi_rest - start_rest, start_rest),
        )
        start, start_rest = (
            where(is_behind, pi - start, start),
            where(is_behind, pi_rest - start_rest, start_rest),
        )
        falls = is_steep != is_behind
        quotient, rest = where(falls, -quotient, quotient), where(falls, -rest, rest)
        head, tail = fast_two_sum(start, quotient)
        return head + (tail + (start_rest + rest))

    def atan(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        size = where(size > saturated, saturated, size)
        is_steep = size > one
        near, far = where(is_steep, one, size), where(is_steep, size, one)
        return copysign(direction(near, far, is_steep, False), x)

    def atan2(y, x):  # type: ignore[no-untyped-def]
        height, width = abs(y), abs(x)
        is_steep = height > width
        near, far = where(is_steep, width, height), where(is_steep, height, width)
        # Two infinite sides are as good as two of 1, one infinite side as 1 beside 0, no sides as 1
        # beside 0; 0 times nan stays nan.
        is_infinite = far == infinity
        alone = where(is_infinite, near * zero, near)
        near = where(near == infinity, one, alone)
        beside = where(far == zero, one, far)
        far = where(is_infinite, one, beside)
        scale = where(far > long, shrink, where(far < short, stretch, one))
        is_behind = (to_bits(x) & sign_bit) == sign_bit
        return copysign(direction(near * scale, far * scale, is_steep, is_behind), y)

    return asin, acos, atan, atan2


_SINGLE = _make(np.float32, np.int32, (_ASIN_SINGLE, _ATAN_SINGLE))
_DOUBLE = _make(np.float64, np.int64, (_ASIN_DOUBLE, _ATAN_DOUBLE))

# The function for each type, for the overloads in numgrad.math.scalar.
ASIN, ACOS, ATAN, ATAN2 = (
    {types.float32: branch_free(single), types.float64: branch_free(double)}
    for single, double in zip(_SINGLE, _DOUBLE, strict=True)
)
