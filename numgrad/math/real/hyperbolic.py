"""sinh, cosh and tanh without branches.

Method: with x = k ln 2 + r as in `numgrad.math.real.exponentials`, for abs(x)

    sinh x = a sinh r + b cosh r,    cosh x = a cosh r + b sinh r,

where a = cosh(k ln 2) and b = sinh(k ln 2) are sums of powers of two, and sinh r and cosh r are
polynomials in r**2. Nothing is divided, and near 0, where k is 0, sinh x is the polynomial itself.
tanh x is 1 - 2 / (e**(2 x) + 1) where that is at least 1/2, and below x + x**3 P(x**2) / Q(x**2)
with two polynomials; which numerator and which denominator is chosen before the one division.

Error bounds, measured in tests/kernels/vector and in benchmarks/accuracy: 2
ulp for each over the whole range, for float32 and float64; nan, infinities and signs of zero exact.

Sources: the addition theorems; the polynomials are minimax (Remez, benchmarks/accuracy), with a
relative error of 2**-26 (float32) and 2**-60, for tanh 2**-27 and 2**-57.
"""

from __future__ import annotations

from typing import Any

from numgrad.codegen.llvm.scalar_ir import copysign, where
from numgrad.math.real.bits import fma
from numgrad.math.real.exponentials import make_reduced, make_rest
from numgrad.math.real.formats import LN_2, Format, for_each

__all__ = ["COSH", "SINH", "TANH"]

# (sinh r - r) / r**3 and (cosh r - 1 - r**2/2) / r**4 in powers of r**2, the highest first.
_SINH_SINGLE = (0.008366586, 0.16666543)
_SINH_DOUBLE = (
    2.5109045869927332e-08,
    2.755724417907405e-06,
    0.00019841269886161322,
    0.008333333333321615,
    0.16666666666666677,
)
_COSH_SINGLE = (0.0013935404, 0.04166646)
_COSH_DOUBLE = (
    2.092164103881307e-09,
    2.75572522045343e-07,
    2.480158734879566e-05,
    0.0013888888888873461,
    0.041666666666666685,
)
# (tanh x - x) / x**3 in powers of x**2 for abs(x) <= 0.55: what stands above and below the line.
_ABOVE_SINGLE, _BELOW_SINGLE = (-0.0038350062, -0.8237608), (1.0, 2.4712832)
_ABOVE_DOUBLE = (-0.9643735109079433, -99.22231830406174, -1613.3373400858936)
_BELOW_DOUBLE = (1.0, 112.74083198325857, 2233.6717630152375, 4840.012020257681)


def _make_sinh_cosh(format: Format) -> tuple[Any, Any]:
    number, integer = format.number, format.integer
    reduced, power_of_two = make_reduced(format), format.power_of_two()
    sine, cosine = (
        format.polynomial(_SINH_SINGLE, _SINH_DOUBLE),
        format.polynomial(_COSH_SINGLE, _COSH_DOUBLE),
    )
    highest = number(format.limits.maxexp * LN_2 + 1)
    tiny = number(2.0 ** -(format.mantissa // 2 + 2))  # sinh x is x there, subnormal numbers too
    half, zero, four = number(0.5), number(0), number(4)
    two, most = integer(2), integer(4 * format.mantissa // 3)

    def parts(size):  # type: ignore[no-untyped-def]
        """Return r, sinh r - r, cosh r - 1, and a/4 and b/4, whose products do not overflow."""
        r, k = reduced(where(size > highest, highest, size))
        square = r * r
        s = sine(square) * square * r
        c = fma(cosine(square) * square, square, half * square)
        # The inverse of a large power is nothing beside it, so its exponent may stop at `most`.
        inverse = where(k > most, most, k)
        large = power_of_two(k - two) * half
        small = power_of_two(-inverse - two) * half
        return r, s, c, large + small, large - small

    def sinh(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        r, s, c, a, b = parts(size)
        result = (fma(a, r, b) + fma(b, c, a * s)) * four
        signed = where(x < zero, -result, result)
        return where(size < tiny, x, signed)

    def cosh(x):  # type: ignore[no-untyped-def]
        r, s, c, a, b = parts(abs(x))
        return (fma(a, c, b * (r + s)) + a) * four

    return sinh, cosh


def _make_tanh(format: Format) -> Any:
    number = format.number
    reduced, rest, power_of_two = make_reduced(format), make_rest(format), format.power_of_two()
    above = format.polynomial(_ABOVE_SINGLE, _ABOVE_DOUBLE)
    below = format.polynomial(_BELOW_SINGLE, _BELOW_DOUBLE)
    saturated = number(format.mantissa * 0.5)  # tanh is 1 there: e**(-2 x) is below half an ulp
    one, two, half = number(1), number(2), number(0.55)  # of which tanh is 1/2

    def tanh(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        r, k = reduced(two * where(size > saturated, saturated, size))
        growth = fma(fma(rest(r), r, one), r, one) * power_of_two(k)
        square = size * size
        is_small = size < half
        numerator = where(is_small, above(square) * (square * size), -two)
        denominator = where(is_small, below(square), growth + one)
        return copysign(where(is_small, size, one) + numerator / denominator, x)

    return tanh


# The function for each type, for the overloads in numgrad.math.scalar.
SINH, COSH, TANH = for_each(lambda f: (*_make_sinh_cosh(f), _make_tanh(f)))
