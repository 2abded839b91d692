"""sin and cos without branches, for arguments that are not far from 0.

Method: write x = k pi/2 + r with an integer k and abs(r) <= pi/4, pi/2 split in four parts so that
k times each of the first three is exact; the Taylor polynomials of sin r and cos r; and of these
the one, and the sign, that the two low bits of k choose. k is rounded as in
`numgrad.kernels.vector.exponentials`.

Where abs(x) is above 2**19 (float32: 2**11) the products are no longer exact: `is_far` tells, and
the C library's functions take over. A loop asks once for a whole chunk of its operand.

Error bounds, measured against mpmath in tests/kernels/vector: 2 ulp for float64 and float32,
around the zeros of the functions too.

Sources: Cody and Waite, *Software Manual for the Elementary Functions* (1980), for the reduction;
the polynomials are Taylor's, 1/n!.
"""

from __future__ import annotations

import math
from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np
from numba import njit, types

from numgrad.kernels.vector.bits import to_bits

__all__ = ["COS", "COS_NEAR", "IS_FAR", "SIN", "SIN_NEAR"]

HALF_PI = Fraction("1.57079632679489661923132169163975144209858469968755291048747")


def _parts(number: Any, bits: int) -> list[Any]:
    """Return four numbers that add up to pi/2; the first three have at most `bits` bits."""
    parts, rest, scale = [], HALF_PI, bits - 1
    for _ in range(3):
        part = Fraction(math.floor(rest * 2**scale), 2**scale)
        parts.append(number(float(part)))
        rest -= part
        scale += bits
    return [*parts, number(float(rest))]


def _make(number: Any, integer: Any, mantissa: int, degree: int, bits: int, limit: float) -> Any:
    """Return sin, cos, both for near arguments only, and `is_far`, for a floating point type.

    Parameters
    ----------
    number, integer : numpy scalar types
        The type, and the integer of its size.
    mantissa : int
        Stored bits of the significand.
    degree : int
        Of the polynomial of sin; that of cos has one less.
    bits : int
        Bits in a part of pi/2.
    limit : float
        The largest argument that is near.
    """
    first, second, third, fourth = _parts(number, bits)
    two_over_pi = number(float(1 / HALF_PI))
    magic = number(1.5 * 2.0**mantissa)
    magic_bits = np.asarray(magic).view(integer)[()]
    sine = tuple(number((-1) ** (n // 2) / factorial(n)) for n in range(degree, 2, -2))
    cosine = tuple(number((-1) ** (n // 2) / factorial(n)) for n in range(degree - 1, 3, -2))
    half, one, largest = number(0.5), number(1), number(limit)
    odd, twice, quarter = integer(1), integer(2), integer(1)
    compiled = njit(nogil=True, error_model="numpy")

    @compiled
    def wave(x, turn):  # type: ignore[no-untyped-def]
        """Return sin(x + turn pi/2)."""
        shifted = x * two_over_pi + magic
        k = integer(to_bits(shifted) - magic_bits)
        whole = shifted - magic
        r = (((x - whole * first) - whole * second) - whole * third) - whole * fourth
        square = r * r
        s = sine[0]
        for coefficient in sine[1:]:
            s = s * square + coefficient
        c = cosine[0]
        for coefficient in cosine[1:]:
            c = c * square + coefficient
        sin_r = r + r * square * s
        # 1 - square/2 loses bits that the second term gives back.
        main = one - half * square
        cos_r = main + ((one - main) - half * square + square * square * c)
        k = integer(k + turn)
        value = cos_r if integer(k & odd) == odd else sin_r
        return -value if integer(k & twice) == twice else value

    @compiled
    def sin_near(x):  # type: ignore[no-untyped-def]
        result = wave(x, integer(0))
        return x if x == number(0) else result

    @compiled
    def cos_near(x):  # type: ignore[no-untyped-def]
        return wave(x, quarter)

    @compiled
    def is_far(x):  # type: ignore[no-untyped-def]
        return not (abs(x) <= largest)

    @compiled
    def sin(x):  # type: ignore[no-untyped-def]
        return np.sin(x) if is_far(x) else sin_near(x)

    @compiled
    def cos(x):  # type: ignore[no-untyped-def]
        return np.cos(x) if is_far(x) else cos_near(x)

    return sin, cos, sin_near, cos_near, is_far


_SINGLE = _make(np.float32, np.int32, 23, 11, 11, 2.0**11)
_DOUBLE = _make(np.float64, np.int64, 52, 17, 33, 2.0**19)

# The function for each type, for the overloads in numgrad.kernels.scalar.
SIN, COS, SIN_NEAR, COS_NEAR, IS_FAR = (
    {types.float32: single, types.float64: double}
    for single, double in zip(_SINGLE, _DOUBLE, strict=True)
)
