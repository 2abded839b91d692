"""Airy's function Ai and its derivative, of real numbers.

Method: from -10 to 10 the Taylor series about the nearest multiple of a half, whose coefficients
follow from y'' = x y; beyond, the series for large arguments, with zeta = 2/3 abs(x)**(3/2) as the
sum of two numbers. All is computed in double precision.

Error bounds, measured in tests/math/special and in benchmarks/accuracy: for negative x they are
those beside the envelope, abs(x)**(-1/4) / sqrt(pi), and that of the derivative.

Sources: NIST Digital Library of Mathematical Functions, 9.2.1, 9.7.5, 9.7.6, 9.7.9, 9.7.10.
"""

from __future__ import annotations

import math

import numpy as np

from numgrad.codegen.compile.dispatchers import part
from numgrad.math.by_type import in_type_of
from numgrad.math.scalar import cos, exp, fma, sin
from numgrad.math.special.airy_tables import OF_SLOPE, OF_VALUE, SLOPES, VALUES

__all__ = ["airy_ai", "airy_ai_slope"]

_END = 10.0
_POWERS = 20
_FAR = OF_VALUE.size
_ROOT_PI = math.sqrt(math.pi)
_ROOT_HALF = math.sqrt(0.5)


def _taylor(x, order):  # type: ignore[no-untyped-def]
    """Return Ai, or its derivative, from the series about the nearest multiple of a half."""
    k = int(np.rint(2.0 * x)) + 20
    centre = 0.5 * (k - 20)
    h = x - centre
    before, here, after = 0.0, VALUES[k], SLOPES[k]
    value, slope, power = here, after, h
    value += after * h
    for n in range(_POWERS):
        # (n + 1) (n + 2) a_(n + 2) = c a_n + a_(n - 1)
        following = (centre * here + before) / ((n + 1) * (n + 2))
        slope += (n + 2) * following * power
        power *= h
        value += following * power
        before, here, after = here, after, following
    return value if order == 0 else slope


_near = part(_taylor, inlined=False)


@part
def _zeta(a):  # type: ignore[no-untyped-def]
    """Return 2/3 a**(3/2), and what its rounding lost."""
    root = math.sqrt(a)
    rest = fma(-root, root, a) / (2.0 * root)
    product = a * root
    low = fma(a, root, -product) + a * rest
    high = product * (2 / 3)
    return high, (fma(product, 2.0, -3.0 * high) + fma(-3.0, high, 3.0 * high) + 2.0 * low) / 3.0


def _decaying(x, order):  # type: ignore[no-untyped-def]
    """Return Ai or its derivative for x from 10."""
    high, low = _zeta(x)
    front = exp(-high)
    if front == 0.0:
        return -0.0 if order else 0.0
    inverse = -1.0 / high
    total = 0.0
    for k in range(_FAR):
        total = total * inverse + (OF_SLOPE if order else OF_VALUE)[_FAR - 1 - k]
    root = math.sqrt(math.sqrt(x))
    front *= (1.0 - low) * total / (2.0 * _ROOT_PI)
    return -front * root if order else front / root


_right = part(_decaying, inlined=False)


def _waving(a, order):  # type: ignore[no-untyped-def]
    """Return Ai or its derivative of -a, for a from 10."""
    high, low = _zeta(a)
    square = -1.0 / (high * high)
    even, odd = 0.0, 0.0
    for k in range(_FAR // 2):
        j = _FAR - 2 - 2 * k
        even = even * square + (OF_SLOPE if order else OF_VALUE)[j]
        odd = odd * square + (OF_SLOPE if order else OF_VALUE)[j + 1]
    odd /= high
    s, c = sin(high), cos(high)
    # The sine and cosine of zeta - pi/4, times the root of 2.
    turn, stay = sin(low), cos(low)
    s, c = s * stay + c * turn, c * stay - s * turn
    sine, cosine = s - c, c + s
    root = math.sqrt(math.sqrt(a))
    if order:
        return (sine * even - cosine * odd) * root * _ROOT_HALF / _ROOT_PI
    return (cosine * even + sine * odd) / root * _ROOT_HALF / _ROOT_PI


_left = part(_waving, inlined=False)


def _everywhere(x, order):  # type: ignore[no-untyped-def]
    if abs(x) <= _END:
        return _near(x, order)
    if abs(x) < math.inf:
        return _right(x, order) if x > 0.0 else _left(-x, order)
    return math.nan


_airy = part(_everywhere, inlined=False)


@part
def airy_ai(x):  # type: ignore[no-untyped-def]
    """Return Airy's function Ai."""
    return in_type_of(x, _airy(np.float64(x), 0))


@part
def airy_ai_slope(x):  # type: ignore[no-untyped-def]
    """Return the derivative of Airy's function Ai."""
    return in_type_of(x, _airy(np.float64(x), 1))
