"""exp, exp2 and expm1 without branches, so that LLVM vectorises the loops they stand in.

Method: write x = k ln 2 + r with an integer k and abs(r) <= ln(2)/2; a polynomial for
(e**r - 1) / r; and a scaling by 2**k made of the bits of k, in two steps so that overflow and
subnormal results come out right. With a fused multiply-add x - k ln 2 is exact but for what the
second word of ln 2 adds.

Error bounds, measured in tests/kernels/vector and in benchmarks/accuracy: exp
and exp2 1 ulp, expm1 2 ulp, over the whole range, for float32 and float64; nan, infinities and
signs of zero exact.

Sources: the reduction is Cody and Waite, *Software Manual for the Elementary Functions* (1980); the
polynomials are minimax (Remez, benchmarks/accuracy), with a relative error of 2**-26 (float32)
and 2**-55 of e**r - 1.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numgrad.codegen.llvm.scalar_ir import where
from numgrad.math.real.bits import fma
from numgrad.math.real.formats import LN_2, Format, for_each

__all__ = [
    "EXP",
    "EXP2",
    "EXP2_DOUBLE",
    "EXP2_SINGLE",
    "EXPM1",
    "make_exp",
    "make_reduced",
    "make_rest",
]

# (e**r - 1 - r - r**2/2) / r**3 for abs(r) <= ln(2)/2, the highest power first.
_REST_SINGLE = (0.001394049, 0.00836643, 0.041666403, 0.16666545)
_REST_DOUBLE = (
    2.511237104077797e-08,
    2.7622290701090214e-07,
    2.755723512805538e-06,
    2.4801516191570975e-05,
    0.0001984126989430868,
    0.0013888888920628058,
    0.008333333333318982,
    0.04166666666661971,
    0.1666666666666668,
)
# (2**r - 1) / r for abs(r) <= 1/2.
EXP2_SINGLE = (
    1.5314927e-05,
    0.00015467108,
    0.0013333431,
    0.009618037,
    0.05550411,
    0.2402265,
    0.6931472,
)
EXP2_DOUBLE = (
    2.574172042416289e-11,
    4.4566704162913756e-10,
    7.054888317553313e-09,
    1.0178051229649301e-07,
    1.3215486832867025e-06,
    1.5252733856191438e-05,
    0.0001540353039334135,
    0.0013333558146390483,
    0.009618129107628494,
    0.0555041086648217,
    0.24022650695910072,
    0.6931471805599453,
)


@cache
def make_reduced(format: Format) -> Any:
    """Return a function that gives r and k for x = k ln 2 + r."""
    nearest = format.nearest()
    log2_e = format.number(float(1 / LN_2))
    high, low = format.pair(LN_2)

    def reduced(x):  # type: ignore[no-untyped-def]
        whole, k = nearest(x, log2_e)
        return fma(-whole, low, fma(-whole, high, x)), k

    return reduced


@cache
def make_rest(format: Format) -> Any:
    """Return a function that gives (e**r - 1 - r) / r**2."""
    polynomial, half = format.polynomial(_REST_SINGLE, _REST_DOUBLE, chains=2), format.number(0.5)

    def rest(r):  # type: ignore[no-untyped-def]
        return fma(polynomial(r), r, half)

    return rest


@cache
def make_exp(format: Format) -> Any:
    """Return exp for a format."""
    number, limits = format.number, format.limits
    reduced, rest, scaled = make_reduced(format), make_rest(format), format.scaled()
    # Beyond these the result is inf or 0 whatever the argument.
    highest = number(limits.maxexp * LN_2 + 1)
    lowest = number((limits.minexp - format.mantissa) * LN_2 - 2)
    one = number(1)

    def exp(x):  # type: ignore[no-untyped-def]
        x = where(x > highest, highest, x)
        x = where(x < lowest, lowest, x)
        r, k = reduced(x)
        return scaled(fma(fma(rest(r), r, one), r, one), k)

    return exp


def _make_exp2(format: Format) -> Any:
    number, limits = format.number, format.limits
    nearest, scaled = format.nearest(), format.scaled()
    polynomial = format.polynomial(EXP2_SINGLE, EXP2_DOUBLE)
    highest, lowest = number(limits.maxexp + 1), number(limits.minexp - format.mantissa - 2)
    one = number(1)

    def exp2(x):  # type: ignore[no-untyped-def]
        x = where(x > highest, highest, x)
        x = where(x < lowest, lowest, x)
        whole, k = nearest(x, one)
        r = x - whole
        return scaled(fma(polynomial(r), r, one), k)

    return exp2


def _make_expm1(format: Format) -> Any:
    number, integer = format.number, format.integer
    reduced, rest, power_of_two = make_reduced(format), make_rest(format), format.power_of_two()
    highest = number(format.limits.maxexp * LN_2 + 1)
    lowest = number(-0.8 * format.mantissa)  # e**x is below half an ulp of 1 there
    zero, step = number(0), integer(1)

    def expm1(x):  # type: ignore[no-untyped-def]
        clipped = where(x > highest, highest, x)
        clipped = where(clipped < lowest, lowest, clipped)
        r, k = reduced(clipped)
        # 2**k e**r - 1, where 2**k may overflow before the result does: 2**half stands outside.
        half = k >> step
        second = power_of_two(k - half)
        main = fma(second, r, second - power_of_two(-half))
        result = fma(second, rest(r) * (r * r), main) * power_of_two(half)
        return where(x == zero, x, result)

    return expm1


# The function for each type, for the overloads in numgrad.math.scalar.
EXP, EXP2, EXPM1 = for_each(lambda f: (make_exp(f), _make_exp2(f), _make_expm1(f)))
