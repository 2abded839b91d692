"""exp, expm1 and tanh without branches, so that LLVM vectorises the loops they stand in.

Method: write x = k ln 2 + r with an integer k and abs(r) <= ln(2)/2, ln 2 split in two parts so
that the subtraction is exact enough; the Taylor polynomial of e**r - 1; and a scaling by 2**k made
of the bits of k, in two steps so that overflow and subnormal results come out right. k is rounded
by adding 1.5 * 2**(mantissa bits), which leaves it in the low bits (no float-to-integer
instruction, which AVX2 lacks for float64).

Error bounds, measured against mpmath in tests/kernels/vector: exp 1 ulp, expm1 2 ulp, tanh 3 ulp,
over the whole range, for float32 and float64; nan, infinities and signs of zero exact.

Sources: the reduction is Cody and Waite, *Software Manual for the Elementary Functions* (1980), and
the split of ln 2 keeps enough trailing zero bits that k times its upper part is exact; the
polynomials are Taylor's, 1/n!.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from numba import njit, types

from numgrad.kernels.vector.bits import from_bits, to_bits

__all__ = ["EXP", "EXPM1", "TANH"]


# Numba computes int32 with int32 in int64, so every integer result is cast back to `integer`.
def _make(number: Any, integer: Any, mantissa: int, degree: int, high_bits: int) -> Any:
    """Return exp, expm1 and tanh for a floating point type.

    Parameters
    ----------
    number, integer : numpy scalar types
        The type, and the integer of its size.
    mantissa : int
        Stored bits of the significand.
    degree : int
        Of the polynomial of e**r - 1.
    high_bits : int
        Bits kept in the upper part of ln 2.
    """
    limits = np.finfo(number)
    bias = integer(limits.maxexp - 1)
    shift = integer(mantissa)
    magic = number(1.5 * 2.0**mantissa)
    magic_bits = np.asarray(magic).view(integer)[()]
    log2_e = number(1.4426950408889634)
    ln2_exact = 0.6931471805599453094
    ln2_high = number(np.floor(ln2_exact * 2.0**high_bits) / 2.0**high_bits)
    # ln 2 - ln2_high to twice the precision: 0.693147180559945309417232121458176568
    ln2_low = number((ln2_exact - float(ln2_high)) + 2.319046813846299558e-17)
    # Beyond these the result is inf or 0 whatever the argument.
    highest = number(limits.maxexp * ln2_exact + 1)
    lowest = number((limits.minexp - mantissa) * ln2_exact - 2)
    coefficients = tuple(number(1 / factorial(n)) for n in range(degree, 1, -1))
    zero, one, two = number(0), number(1), number(2)
    saturated = number(mantissa * 0.5)  # tanh is 1 there: e**(-2 x) is below half an ulp
    step = integer(1)
    compiled = njit(nogil=True, error_model="numpy")

    @compiled
    def reduced(x):  # type: ignore[no-untyped-def]
        """Return e**r - 1 and k, for x = k ln 2 + r."""
        shifted = x * log2_e + magic
        k = integer(to_bits(shifted) - magic_bits)
        whole = shifted - magic
        r = (x - whole * ln2_high) - whole * ln2_low
        tail = coefficients[0]
        for coefficient in coefficients[1:]:
            tail = tail * r + coefficient
        return r + r * r * tail, k

    @compiled
    def power_of_two(k):  # type: ignore[no-untyped-def]
        return from_bits(integer((k + bias) << shift))

    @compiled
    def exp(x):  # type: ignore[no-untyped-def]
        x = highest if x > highest else x
        x = lowest if x < lowest else x
        fraction, k = reduced(x)
        half = integer(k >> step)
        return ((one + fraction) * power_of_two(half)) * power_of_two(integer(k - half))

    @compiled
    def expm1(x):  # type: ignore[no-untyped-def]
        clipped = highest if x > highest else x
        clipped = lowest if clipped < lowest else clipped
        fraction, k = reduced(clipped)
        half = integer(k >> step)
        first, second = power_of_two(half), power_of_two(integer(k - half))
        # 2**k (fraction + 1) - 1; where 2**k is large it would overflow before the result does.
        scale = first * second
        exact = scale * fraction + (scale - one)
        large = ((one + fraction) * first) * second - one
        result = large if k > shift else exact
        return x if x == zero else result

    @compiled
    def tanh(x):  # type: ignore[no-untyped-def]
        size = -x if x < zero else x
        size = saturated if size > saturated else size
        fraction, k = reduced(-two * size)
        scale = power_of_two(k)
        t = scale * fraction + (scale - one)
        result = -t / (t + two)
        signed = -result if x < zero else result
        return x if x == zero else signed

    return exp, expm1, tanh


_SINGLE = _make(np.float32, np.int32, 23, 7, 15)
_DOUBLE = _make(np.float64, np.int64, 52, 13, 32)

# The function for each type, for the overloads in numgrad.kernels.scalar.
EXP, EXPM1, TANH = (
    {types.float32: single, types.float64: double}
    for single, double in zip(_SINGLE, _DOUBLE, strict=True)
)
