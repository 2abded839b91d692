"""Hurwitz's zeta function with its derivatives, polygamma, and the derivatives of mvlgamma.

Method: the first terms of the sum of (q + k)**-s, until q + k is at least 9 + s, then Euler and
Maclaurin's formula for the rest, up to the twelfth Bernoulli number. For negative q, where s is an
integer, the terms before 0 are the difference of two such sums. All is computed in double
precision.

Error bounds, measured in tests/math/special and in benchmarks/accuracy: 4 ulp for float64, 0.5 for
float32.

Sources: NIST Digital Library of Mathematical Functions, 25.11.5 (in the limit) and 5.15.1
(polygamma); 24.2 for Bernoulli's numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from numgrad.codegen.compile.dispatchers import part
from numgrad.math.by_type import in_type_of
from numgrad.math.scalar import lgamma, log, pow
from numgrad.math.special.gamma import DIGAMMA

__all__ = ["mvlgamma", "mvpolygamma", "polygamma", "trigamma", "zeta", "zeta_slope"]

_digamma = DIGAMMA[types.float64]

# The 2 j-th Bernoulli number over (2 j)!, for j from 1.
_BERNOULLI = (
    8.333333333333333e-02,
    -1.388888888888889e-03,
    3.306878306878307e-05,
    -8.267195767195768e-07,
    2.08767569878681e-08,
    -5.284190138687493e-10,
    1.3382536530684679e-11,
    -3.3896802963225827e-13,
    8.586062056277845e-15,
    -2.174868698558062e-16,
    5.5090028283602295e-18,
    -1.3954464685812522e-19,
)
_EDGE = 9.0


def _over_positive(s, q):  # type: ignore[no-untyped-def]
    """Return the sum of (q + k)**-s over all k, for s above 1 and positive q."""
    total, a, edge = 0.0, q, _EDGE + s
    while a < edge:
        term = pow(a, -s)
        total += term
        if term <= 1e-18 * total:
            return total
        a += 1.0
    power = pow(a, -s)
    if power == 0.0:
        return total
    rest, factor, inverse = power * (a / (s - 1.0) + 0.5), s * power / a, 1.0 / (a * a)
    for j in range(len(_BERNOULLI)):
        term = _BERNOULLI[j] * factor
        rest += term
        if abs(term) < 1e-18 * rest:
            break
        factor *= (s + (2 * j + 1)) * (s + (2 * j + 2)) * inverse
    return total + rest


_positive = part(_over_positive, inlined=False)


def _slope_over_positive(s, q, order):  # type: ignore[no-untyped-def]
    """Return the first or second derivative of that sum for s."""
    total, a, edge = 0.0, q, _EDGE + s
    while a < edge:
        factor, power = -log(a), pow(a, -s)
        total += power * (factor if order == 1.0 else factor * factor)
        if (a > 2.0) & (power <= 1e-20 * abs(total)):
            return total
        a += 1.0
    power, factor = pow(a, -s), -log(a)
    if power == 0.0:
        return total
    inverse = 1.0 / (s - 1.0)
    # The integral, with half of the first term, and then each term's logarithmic derivatives.
    if order == 1.0:
        rest = power * (factor * (a * inverse + 0.5) - a * inverse * inverse)
    else:
        rest = factor * factor * (a * inverse + 0.5) - 2.0 * factor * a * inverse * inverse
        rest = power * (rest + 2.0 * a * inverse * inverse * inverse)
    term, square = s * power / a, 1.0 / (a * a)
    rate, bend = factor + 1.0 / s, -1.0 / (s * s)
    for j in range(len(_BERNOULLI)):
        rest += _BERNOULLI[j] * term * (rate if order == 1.0 else rate * rate + bend)
        for i in range(2 * j + 1, 2 * j + 3):
            term *= s + i
            rate += 1.0 / (s + i)
            bend -= 1.0 / ((s + i) * (s + i))
        term *= square
    return total + rest


_positive_slope = part(_slope_over_positive, inlined=False)


def _slope_everywhere(s, q, order):  # type: ignore[no-untyped-def]
    """Return a derivative of zeta for s; nan for negative q, where s is an integer."""
    if (s > 1.0) & (s < math.inf) & (q > 0.0) & (q < math.inf):
        return _positive_slope(s, q, order)
    return math.nan


_zeta_slope = part(_slope_everywhere, inlined=False)


def _everywhere(s, q):  # type: ignore[no-untyped-def]
    """Return zeta in double precision."""
    # In PyTorch's order: a pole decides even where the other argument is nan.
    if s <= 1.0:
        return math.inf if s == 1.0 else math.nan
    floor = np.floor(q)
    if (q <= 0.0) & (q == floor):
        return math.inf
    if (s != s) | (q != q):
        return math.nan
    if s == math.inf:
        return math.inf if q < 1.0 else (1.0 if q == 1.0 else math.nan)
    if q > 0.0:
        return _positive(s, q) if q < math.inf else math.nan
    if s != np.floor(s):
        return math.nan
    # q = -(n - 1 + f): n terms are before 0, of which the first is in size that of f.
    # The greatest terms of both come first, where they may cancel.
    sign = -1.0 if np.fmod(s, 2.0) != 0.0 else 1.0
    p, f = q - floor, (floor + 1.0) - q
    greatest = pow(p, -s) + sign * pow(f, -s)
    rest = _positive(s, p + 1.0) + sign * _positive(s, f + 1.0)
    return greatest + (rest - sign * _positive(s, 1.0 - q))


_zeta = part(_everywhere, inlined=False)


def _polygamma_in_double(n, x):  # type: ignore[no-untyped-def]
    if n == 0.0:
        return _digamma(x)
    if (n == 1.0) & (x == math.inf):
        return 0.0
    factorial = 1.0 if n <= 170.0 else math.inf
    if n <= 170.0:
        for k in range(2, int(n) + 1):
            factorial *= k
    value = factorial * _zeta(n + 1.0, x)
    return value if np.fmod(n, 2.0) == 1.0 else -value


_polygamma = part(_polygamma_in_double, inlined=False)


@part
def trigamma(x):  # type: ignore[no-untyped-def]
    """Return the derivative of digamma for positive x, a number of double precision."""
    return _positive(2.0, x)


@part
def zeta(s, q):  # type: ignore[no-untyped-def]
    """Return the sum of (q + k)**-s over k from 0."""
    return in_type_of(s, _zeta(np.float64(s), np.float64(q)))


@part
def zeta_slope(s, q, order):  # type: ignore[no-untyped-def]
    """Return the first or second derivative of `zeta` for s."""
    return in_type_of(s, _zeta_slope(np.float64(s), np.float64(q), np.float64(order)))


@part
def polygamma(x, n):  # type: ignore[no-untyped-def]
    """Return the n-th derivative of digamma."""
    return in_type_of(x, _polygamma(np.float64(n), np.float64(x)))


def _mvlgamma_in_double(x, p):  # type: ignore[no-untyped-def]
    total = 0.25 * p * (p - 1.0) * math.log(math.pi)
    for j in range(int(p)):
        total += lgamma(x - 0.5 * j)
    return total


_mvlgamma = part(_mvlgamma_in_double, inlined=False)


def _mvpolygamma_in_double(x, n, p):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(int(p)):
        total += _polygamma(n, x - 0.5 * j)
    return total


_mvpolygamma = part(_mvpolygamma_in_double, inlined=False)


@part
def mvlgamma(x, p):  # type: ignore[no-untyped-def]
    """Return the logarithm of the multivariate gamma function of dimension `p`."""
    return in_type_of(x, _mvlgamma(np.float64(x), np.float64(p)))


@part
def mvpolygamma(x, n, p):  # type: ignore[no-untyped-def]
    """Return the derivative of order n + 1 of `mvlgamma`."""
    return in_type_of(x, _mvpolygamma(np.float64(x), np.float64(n), np.float64(p)))
