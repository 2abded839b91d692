"""sin, cos and tan: without branches for arguments that are not far from 0, exact for all others.

Method: write x = k pi/2 + r with an integer k and abs(r) <= pi/4; polynomials of sin r and cos r;
and of these the one, and the sign, that the two low bits of k choose (for tan, their quotient). r
is the sum of two numbers, since near a multiple of pi/2 most of its bits come from the far digits
of pi. pi/2 is split in three parts: a fused multiply-add subtracts k times the first exactly, and
the rounding error of k times the second is known. k is rounded by adding 1.5 * 2**(mantissa bits),
which leaves it in the low bits.

Where abs(x) is above 2**27 (float32: 2**13) three parts are too few: `is_far` tells, and
`numgrad.math.real.far_angles` reduces instead. A loop asks once for a block of its operand. r
is then the same to much less than an ulp, but it is the argument alone that decides. That reduction
is ten times as much code as all else, and hardly ever runs: it stands in a function of its own, one
in a kernel, which does both reductions and is called where an angle is far.

Error bounds, measured in tests/kernels/vector over the whole range and next to the zeros of the
functions, and in benchmarks/accuracy: sin and cos 0.8 ulp, tan 1 ulp, for float64
and float32.

Sources: Cody and Waite, *Software Manual for the Elementary Functions* (1980), for the reduction;
S. Boldo, M. Daumas and R.-C. Li, "Formally verified argument reduction with a fused multiply-add",
IEEE Transactions on Computers 58 (2009), for why its first step is exact. The polynomials were
fitted for this file by the Remez algorithm in 60 digits, to the least relative error of the
function; each coefficient was rounded and those after it fitted again.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numba import types

from numgrad.codegen.llvm.scalar_ir import branch_free, rarely, where
from numgrad.math.real.bits import fma, to_bits
from numgrad.math.real.double_word import fast_two_sum
from numgrad.math.real.far_angles import HALF_PI, make_far_reduction
from numgrad.math.real.polynomials import make_polynomial

__all__ = [
    "COS",
    "COS_APART",
    "COS_NEAR",
    "IS_FAR",
    "SIN",
    "SIN_APART",
    "SIN_COS_NEAR",
    "SIN_NEAR",
    "TAN",
    "TAN_APART",
    "TAN_NEAR",
]

# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2/2) / r**4, by powers of r**2 from the highest down.
_SINE_SINGLE = (-0.00019518616, 0.008332191, -0.16666655)
_COSINE_SINGLE = (2.443067e-05, -0.0013887301, 0.041666646)
_SINE_DOUBLE = (
    1.5896888026816316e-10,
    -2.5050759909258356e-08,
    2.755731370514287e-06,
    -0.00019841269829853455,
    0.008333333333322486,
    -0.16666666666666632,
)
_COSINE_DOUBLE = (
    -1.1359920024943443e-11,
    2.0875729031598032e-09,
    -2.7557314399430587e-07,
    2.4801587289667132e-05,
    -0.001388888888887447,
    0.0416666666666666,
)


def _half_pi(number: Any) -> list[Any]:
    """Return three numbers of a type that add up to pi/2."""
    parts: list[Any] = []
    rest = HALF_PI
    for _ in range(3):
        parts.append(number(float(rest)))
        rest -= Fraction(float(parts[-1]))
    return parts


def _make(
    number: Any,
    integer: Any,
    mantissa: int,
    limit: float,
    polynomials: tuple[tuple[float, ...], tuple[float, ...]],
    window: int,
) -> Any:
    """Return sin, cos and tan, each everywhere, for near arguments only, and apart; and `is_far`.

    Parameters
    ----------
    number, integer : numpy scalar types
        The floating point type, and the integer of its size.
    mantissa : int
        Stored bits of the significand.
    limit : float
        The largest argument that is near.
    polynomials : tuple of tuple of float
        Coefficients of sin and cos.
    window : int
        Words of 2/pi that far arguments are multiplied with.
    """
    first, second, third = _half_pi(number)
    two_over_pi = number(float(1 / HALF_PI))
    magic = number(1.5 * 2.0**mantissa)
    magic_bits = np.asarray(magic).view(integer)[()]
    sine, cosine = (make_polynomial(number, coefficients) for coefficients in polynomials)
    zero, half, one = number(0), number(0.5), number(1)
    largest, infinity = number(limit), number(np.inf)
    low_bit, sign_bit, quarter = integer(1), integer(2), integer(1)
    reduce_far = make_far_reduction(number, integer, mantissa, window)

    def is_far(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        return (size > largest) & (size < infinity)

    def reduce_near(x):  # type: ignore[no-untyped-def]
        """Return r, a correction of r, and k; nan for infinities."""
        shifted = fma(x, two_over_pi, magic)
        k = to_bits(shifted) - magic_bits
        whole = shifted - magic
        exact = fma(-whole, first, x)
        product = whole * second
        # `exact` is a multiple of the last bit of `product`, so this sum is exact too.
        r, rest = fast_two_sum(exact, -product)
        return r, fma(-whole, third, rest - fma(whole, second, -product)), k

    def sine_cosine_parts(r, rest):  # type: ignore[no-untyped-def]
        """Return the sine and the cosine of r + rest, each as a large and a small part."""
        square = r * r
        s, c = sine(square), cosine(square)
        # 1 - square/2 loses bits that the small part gives back.
        main = fma(-half, square, one)
        lost = fma(-half, square, one - main)
        return (
            r,
            fma(r * square, s, rest * main),
            main,
            fma(square * square, c, fma(-r, rest, lost)),
        )

    def signed(value, k):  # type: ignore[no-untyped-def]
        """Return the value with the sign that it has after k quarters of a turn."""
        return where((k & sign_bit) == sign_bit, -value, value)

    def sine_after_quarters(r, rest, k):  # type: ignore[no-untyped-def]
        """Return sin(r + rest + k pi/2)."""
        sin_r, sin_small, cos_r, cos_small = sine_cosine_parts(r, rest)
        is_odd = (k & low_bit) == low_bit
        return signed(where(is_odd, cos_r + cos_small, sin_r + sin_small), k)

    def slope(r, rest, k):  # type: ignore[no-untyped-def]
        """Return tan(r + rest + k pi/2): the quotient, corrected by its remainder."""
        sin_r, sin_small, cos_r, cos_small = sine_cosine_parts(r, rest)
        sin_r, sin_small = fast_two_sum(sin_r, sin_small)
        cos_r, cos_small = fast_two_sum(cos_r, cos_small)
        is_odd = (k & low_bit) == low_bit
        above, above_small = where(is_odd, -cos_r, sin_r), where(is_odd, -cos_small, sin_small)
        below, below_small = where(is_odd, sin_r, cos_r), where(is_odd, sin_small, cos_small)
        inverse = one / below
        quotient = above * inverse
        remainder = fma(-quotient, below, above) + fma(-quotient, below_small, above_small)
        return fma(remainder, inverse, quotient)

    def sin_of(x, r, rest, k):  # type: ignore[no-untyped-def]
        return where(x == zero, x, sine_after_quarters(r, rest, k))

    def cos_of(x, r, rest, k):  # type: ignore[no-untyped-def]
        return sine_after_quarters(r, rest, k + quarter)

    def sin_cos_near(x):  # type: ignore[no-untyped-def]
        """Return both, which share all but the choice of a polynomial."""
        r, rest, k = reduce_near(x)
        sin_r, sin_small, cos_r, cos_small = sine_cosine_parts(r, rest)
        s, c, is_odd = sin_r + sin_small, cos_r + cos_small, (k & low_bit) == low_bit
        sine = where(x == zero, x, signed(where(is_odd, c, s), k))
        return sine, signed(where(is_odd, s, c), k + quarter)

    def tan_of(x, r, rest, k):  # type: ignore[no-untyped-def]
        return where(x == zero, x, slope(r, rest, k))

    def make(name: str, of: Any) -> tuple[Any, Any, Any]:
        """Return a function, that for near arguments only, and the one that is called."""

        def near(x):  # type: ignore[no-untyped-def]
            return of(x, *reduce_near(x))

        def apart(x):  # type: ignore[no-untyped-def]
            far = is_far(x)
            return of(x, *where(far, reduce_far(where(far, x, largest)), reduce_near(x)))

        def everywhere(x):  # type: ignore[no-untyped-def]
            return rarely(is_far(x), functions[2], x, near(x))

        for function, suffix in ((everywhere, ""), (near, "_near"), (apart, "_apart")):
            function.__name__ = function.__qualname__ = name + suffix
        functions = branch_free(everywhere), branch_free(near), branch_free(apart, inlined=False)
        return functions

    each = *make("sin", sin_of), *make("cos", cos_of), *make("tan", tan_of)
    return *each, branch_free(sin_cos_near), branch_free(is_far)


_SINGLE = _make(np.float32, np.int32, 23, 2.0**13, (_SINE_SINGLE, _COSINE_SINGLE), 4)
_DOUBLE = _make(np.float64, np.int64, 52, 2.0**27, (_SINE_DOUBLE, _COSINE_DOUBLE), 7)

# The function for each type, for the overloads in numgrad.math.scalar.
(
    SIN,
    SIN_NEAR,
    SIN_APART,
    COS,
    COS_NEAR,
    COS_APART,
    TAN,
    TAN_NEAR,
    TAN_APART,
    SIN_COS_NEAR,
    IS_FAR,
) = (
    {types.float32: single, types.float64: double}
    for single, double in zip(_SINGLE, _DOUBLE, strict=True)
)
