"""erf and erfc without branches, so that LLVM vectorises the loops they stand in.

Method, erf: tables of erf (up to 1/2 of erf(x) - x) and its derivative at the multiples of 1/64,
and from the nearest of them the first terms of Taylor's series, whose coefficients are polynomials
of that multiple (Hermite's).

Method, erfc: exp(-x**2) / (1 + 2 x) times a polynomial of 2 c/(c + x) - 1, which maps all of
[0, inf) to [-1, 1]. One division serves for both quotients. What the rounding of x**2 lost is made
good in the exponent, and the exponential, the quotient and their product are each carried as the
sum of two numbers. For negative x it is 2 - erfc(-x).

Error bounds, measured in tests/kernels/vector and in benchmarks/accuracy: erf 1
ulp, erfc 1.8 ulp, for float64 and float32, subnormal results too; nan, infinities and signs of zero
exact.

Sources: Abramowitz and Stegun, *Handbook of Mathematical Functions*, 7.1.19 and 22.5.18 for the
series; M. Shepherd and J. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc x",
Mathematics of Computation 36 (1981), for the shape of the second. The tables are computed below, in
integers. The polynomials were fitted for this file by the Remez algorithm in 60 digits, to the
least relative error of the function.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from numba import types

from numgrad.codegen.llvm.scalar_ir import branch_free, cast, copysign, pick, where
from numgrad.math.real.bits import fma, from_bits, to_bits
from numgrad.math.real.double_word import fast_two_sum, two_product, two_sum
from numgrad.math.real.far_angles import HALF_PI
from numgrad.math.real.polynomials import make_polynomial

__all__ = ["ERF", "ERFC", "PARTS"]

_NODES = 385  # of the tables, up to 6, where erf is 1
_STEPS = 64  # nodes from one integer to the next
_BITS = 104  # of the fixed point numbers in which the tables are computed

# (exp(r) - 1 - r) / r**2, by powers of r from the highest down.
_EXP_SINGLE = (0.0013946408, 0.0083692735, 0.041666377, 0.16666515, 0.5)
_EXP_DOUBLE = (
    2.5118084957860042e-08,
    2.7631330777282015e-07,
    2.7557215558232187e-06,
    2.480148981114556e-05,
    0.0001984126991826806,
    0.0013888888947131085,
    0.00833333333330676,
    0.041666666666515036,
    0.166666666666667,
    0.5000000000000013,
)
# (1 + 2 x) exp(x**2) erfc(x), by powers of 2 c/(c + x) - 1 from the highest down; the last two add
# up to the constant term, which for float64 was raised by 4e-17 to make erfc(0) exactly 1.
_CENTRE_SINGLE, _CENTRE_DOUBLE = 3.0, 4.0
_SCALED_SINGLE = (
    -0.00025977456,
    0.000756363,
    0.0020140414,
    -0.002559178,
    -0.023806263,
    -0.06829604,
    -0.11926931,
    -0.12964654,
    -0.0475625,
    0.13562115,
    5.206792e-08,
    1.253008,
)
_SCALED_DOUBLE = (
    -1.1983824563716055e-09,
    1.6778684273981085e-09,
    1.4070976837750372e-08,
    -1.7471505257270413e-08,
    -1.1033287705700422e-07,
    7.41078252793298e-08,
    8.259658772338858e-07,
    2.9415988484031903e-07,
    -5.710196163998538e-06,
    -1.1222182067653238e-05,
    2.4399441928102604e-05,
    0.00015062172316498184,
    0.00019925662561066723,
    -0.0007577732991749615,
    -0.005031969964896528,
    -0.016197734056217532,
    -0.03716751553897705,
    -0.06633036581235927,
    -0.09373283499825619,
    -0.10103906603629777,
    -0.06809705425469534,
    0.015379652102619623,
    0.13962111684056253,
    -4.5e-18,
    1.2329951186255526,
)


def _tables() -> tuple[list[float], list[float]]:
    """Return erf and its derivative, 2/sqrt(pi) exp(-x**2), at the nodes.

    At those up to 1/2 it is erf(x) - x instead, which has the smaller rounding error.
    """
    square = _STEPS * _STEPS
    decay = term = 1 << _BITS  # exp(-1/64**2)
    for n in range(1, 9):
        term = -term // (square * n)
        decay += term
    # Between x and x + 1/64 the derivative falls by exp(-(2 x + 1/64)/64).
    fall, fall_falls = decay, decay * decay >> _BITS
    value, slope = 0, isqrt(int((2 << 2 * _BITS) / HALF_PI))
    values, slopes = [], []
    for node in range(_NODES):
        known = (1 << _BITS) if node <= _STEPS // 2 else 0
        values.append((value - known * node // _STEPS) / (1 << _BITS))
        slopes.append((slope - known) / (1 << _BITS))
        # Taylor's series, its terms by the recurrence of Hermite's polynomials.
        before, term = 0, slope // _STEPS
        for n in range(11):
            value += term
            following = -2 * (node * term * (n + 1) + n * before)
            before, term = term, following // (square * (n + 1) * (n + 2))
        slope = slope * fall >> _BITS
        fall = fall * fall_falls >> _BITS
    return values, slopes


_VALUES, _SLOPES = _tables()


def _make(
    number: Any,
    integer: Any,
    unsigned: Any,
    limit: float,
    centre: float,
    polynomials: tuple[tuple[float, ...], tuple[float, ...]],
) -> Any:
    """Return erf and erfc for a type, and the parts of erfc.

    Parameters
    ----------
    number, integer, unsigned : numpy scalar types
        The floating point type, and the integers of its size.
    limit : float
        Where erfc is 0.
    centre : float
        What divides small from large arguments of erfc.
    polynomials : tuple of tuple of float
        Coefficients of exp and of the scaled erfc.
    """
    info = np.finfo(number)
    mantissa = integer(info.nmant)
    bias = integer(info.maxexp - 1)
    magic = number(1.5 * 2.0**info.nmant)
    magic_bits = np.asarray(magic).view(integer)[()]
    # As long as a mask of bits can tell, for the sake of nan.
    values, slopes = np.zeros(512, number), np.zeros(512, number)
    values[:_NODES], slopes[:_NODES] = _VALUES, _SLOPES
    last, steps, step = integer(511), number(_STEPS), number(1 / _STEPS)
    saturated = number((_NODES - 1) / _STEPS)
    is_double = number is np.float64
    two_thirds, third, half = number(2 / 3), number(1 / 3), number(1 / 2)
    # Of d**5, d**6 and d**7, for even powers of the node from the highest down.
    fifth = tuple(number(c / 30) for c in (4, -12, 3))
    sixth = tuple(number(c / 90) for c in (-4, 20, -15))
    seventh = tuple(number(c / 630) for c in (8, -60, 90, -15))

    exp_terms = make_polynomial(number, polynomials[0], chains=2)
    scaled_terms = make_polynomial(number, polynomials[1][:-1], chains=2)
    constant = number(polynomials[1][-1])
    zero, one, two = number(0), number(1), number(2)
    highest, shift, end_slope = number(limit), number(centre), number(-1.75)
    ln2_exact = Fraction("0.693147180559945309417232121458176568075500134360255254120680")
    ln2 = number(float(ln2_exact))
    ln2_rest = number(float(ln2_exact - Fraction(float(ln2))))
    log2_e = number(float(1 / ln2_exact))
    single = integer(1)

    def erf(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        size = where(size > saturated, saturated, size)
        shifted = fma(size, steps, magic)
        # nan has any bits; the mask keeps them in the table.
        index = cast(np.int64, (to_bits(shifted) - magic_bits) & last)
        node = (shifted - magic) * step
        d = size - node
        square = node * node
        cubic = fma(two_thirds, square, -third)
        if is_double:
            terms = fma(
                fma(fma(seventh[0], square, seventh[1]), square, seventh[2]), square, seventh[3]
            )
            terms = fma(terms, d, fma(fma(sixth[0], square, sixth[1]), square, sixth[2]) * node)
            terms = fma(terms, d, fma(fma(fifth[0], square, fifth[1]), square, fifth[2]))
            terms = fma(terms, d, fma(-third, square, half) * node)
            terms = fma(terms, d, cubic)
        else:
            terms = cubic
        terms = fma(terms, d, -node) * d
        # Of the small ones the tables give erf(x) - x.
        is_small = node <= half
        slope = pick(slopes, index)
        change = fma(slope, d, where(is_small, d, zero))
        rest = pick(values, index) + fma(slope, d, change * terms)
        return copysign(where(is_small, size, zero) + rest, x)

    def power_of_two(k):  # type: ignore[no-untyped-def]
        return from_bits((k + bias) << mantissa)

    def gaussian(square, square_rest):  # type: ignore[no-untyped-def]
        """Return two numbers and k: exp of minus a square is their sum times 2**k."""
        shifted = fma(-square, log2_e, magic)
        k = to_bits(shifted) - magic_bits
        whole = shifted - magic
        r, rest = fast_two_sum(fma(-whole, ln2, -square), fma(-whole, ln2_rest, -square_rest))
        head, tail = fast_two_sum(one, r)
        head, tail = fast_two_sum(head, tail + fma(r * r, exp_terms(r), rest))
        return head, tail, k

    def scaled(size):  # type: ignore[no-untyped-def]
        """Return a large and a small number: exp(x**2) erfc(x) is their sum."""
        # Exact for sizes up to `shift`; beyond it the polynomial is flat.
        difference, difference_rest = fast_two_sum(shift, -size)
        total, total_rest = fast_two_sum(shift, size)
        double, double_rest = two_sum(one, two * size)
        inverse = one / (total * double)
        part = double * inverse
        v = difference * part
        remainder = fma(-v, total, difference) + fma(-v, total_rest, difference_rest)
        v, v_rest = fast_two_sum(v, remainder * part)
        quotient = total * inverse
        remainder = fma(-quotient, double_rest, fma(-quotient, double, one))
        terms, terms_rest = fast_two_sum(constant, scaled_terms(v))
        # What v lost matters near 1 alone, where the slope is about -7/4 v**6.
        square = v * v
        terms_rest = fma(square * square, square * v_rest * end_slope, terms_rest)
        factor, factor_rest = two_product(terms, quotient)
        return factor, factor_rest + quotient * fma(terms, remainder, terms_rest)

    def product(power, factor, factor_rest):  # type: ignore[no-untyped-def]
        """Return the product of what `gaussian` returned and the sum of two numbers."""
        head, tail, k = power
        result, rest = two_product(head, factor)
        result = result + (rest + fma(head, factor_rest, tail * factor))
        # In two steps: the first factor is never subnormal.
        part = k >> single
        return result * power_of_two(part) * power_of_two(k - part)

    def erfc(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        size = where(size > highest, highest, size)
        factor, factor_rest = scaled(size)
        result = product(gaussian(*two_product(size, size)), factor, factor_rest)
        return where(x < zero, two - result, result)

    return erf, erfc, (gaussian, scaled, product)


_SINGLE = _make(
    np.float32, np.int32, np.uint32, 10.5, _CENTRE_SINGLE, (_EXP_SINGLE, _SCALED_SINGLE)
)
_DOUBLE = _make(
    np.float64, np.int64, np.uint64, 27.5, _CENTRE_DOUBLE, (_EXP_DOUBLE, _SCALED_DOUBLE)
)

# The function for each type, for the overloads in numgrad.math.scalar.
ERF, ERFC = (
    {types.float32: branch_free(single), types.float64: branch_free(double)}
    for single, double in zip(_SINGLE[:2], _DOUBLE[:2], strict=True)
)
# What erfc is made of, for the normal distribution: gaussian, scaled erfc, their product.
PARTS = {np.float32: _SINGLE[2], np.float64: _DOUBLE[2]}
