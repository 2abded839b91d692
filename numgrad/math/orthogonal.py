"""Orthogonal polynomials of any degree as scalar functions.

Each is its three-term recurrence; between -1 and 1 Chebyshev polynomials of a degree above 6 are
quotients of sines and cosines instead, which take the same time for any degree. The degree is a
number of the argument's type, of which the fraction is cut off; polynomials of a negative degree
are 0. `gegenbauer` and `laguerre` have a parameter, so that their derivatives are of their kind.

Sources: DLMF 18.9 (recurrences), 18.5 (trigonometric forms).
"""

from __future__ import annotations

from typing import Any

from numgrad.codegen.compile.dispatchers import part
from numgrad.math.arithmetic import to_int64
from numgrad.math.by_type import like
from numgrad.math.scalar import acos, cos, sin

__all__ = [
    "chebyshev_t",
    "chebyshev_u",
    "chebyshev_v",
    "chebyshev_w",
    "gegenbauer",
    "hermite_h",
    "hermite_he",
    "laguerre",
    "legendre",
]

_BY_ANGLE = 7  # the least degree for which sines take less time


@part
def _recurrence(first, x, degree):  # type: ignore[no-untyped-def]
    """Return what begins with 1 and `first` and goes on with 2 x p - q."""
    one, zero = like(x, 1), like(x, 0)
    if degree < 0:
        return zero
    if degree == 0:
        return one
    before, value = one, first
    k = 1
    while (k < degree) & (value == value):
        before, value = value, (x + x) * value - before
        k += 1
    return value


@part
def _parity(x, degree, value):  # type: ignore[no-untyped-def]
    """Return a value at 1, or its like at -1, which has the sign of x**degree."""
    return -value if (x < like(x, 0)) & (degree % 2 != 0) else value


@part
def chebyshev_t(x, n):  # type: ignore[no-untyped-def]
    """Return cos(n a) where x = cos a."""
    degree = to_int64(n)
    if (degree >= 0) & (abs(x) == like(x, 1)):
        return _parity(x, degree, like(x, 1))
    if (degree >= _BY_ANGLE) & (abs(x) < like(x, 1)):
        return cos(like(x, degree) * acos(x))
    return _recurrence(x, x, degree)


@part
def chebyshev_u(x, n):  # type: ignore[no-untyped-def]
    """Return sin((n + 1) a)/sin a where x = cos a."""
    degree = to_int64(n)
    if (degree >= 0) & (abs(x) == like(x, 1)):
        return _parity(x, degree, like(x, degree + 1))
    if (degree >= _BY_ANGLE) & (abs(x) < like(x, 1)):
        a = acos(x)
        return sin(like(x, degree + 1) * a) / sin(a)
    return _recurrence(x + x, x, degree)


@part
def chebyshev_v(x, n):  # type: ignore[no-untyped-def]
    """Return cos((n + 1/2) a)/cos(a/2) where x = cos a."""
    degree = to_int64(n)
    if (degree >= 0) & (abs(x) == like(x, 1)):
        return _parity(x, degree, like(x, 1) if x > like(x, 0) else like(x, 2 * degree + 1))
    if (degree >= _BY_ANGLE) & (abs(x) < like(x, 1)):
        a = acos(x)
        return cos((like(x, degree) + like(x, 0.5)) * a) / cos(like(x, 0.5) * a)
    return _recurrence(x + x - like(x, 1), x, degree)


@part
def chebyshev_w(x, n):  # type: ignore[no-untyped-def]
    """Return sin((n + 1/2) a)/sin(a/2) where x = cos a."""
    degree = to_int64(n)
    if (degree >= 0) & (abs(x) == like(x, 1)):
        return _parity(x, degree, like(x, 2 * degree + 1) if x > like(x, 0) else like(x, 1))
    if (degree >= _BY_ANGLE) & (abs(x) < like(x, 1)):
        a = acos(x)
        return sin((like(x, degree) + like(x, 0.5)) * a) / sin(like(x, 0.5) * a)
    return _recurrence(x + x + like(x, 1), x, degree)


@part
def gegenbauer(x, n, order):  # type: ignore[no-untyped-def]
    """Return the ultraspherical polynomial, orthogonal for the weight (1 - x**2)**(order - 1/2)."""
    degree, one, two = to_int64(n), like(x, 1), like(x, 2)
    if degree < 0:
        return like(x, 0)
    before, value = like(x, 0), one
    k = 1
    while (k <= degree) & (value == value):
        step = like(x, k)
        following = two * x * (step + order - one) * value - (step + two * (order - one)) * before
        before, value = value, following / step
        k += 1
    return value


@part
def legendre(x, n):  # type: ignore[no-untyped-def]
    """Return the Legendre polynomial."""
    degree, one = to_int64(n), like(x, 1)
    if degree < 0:
        return like(x, 0)
    if abs(x) == one:
        return _parity(x, degree, one)
    before, value = like(x, 0), one
    k = 0
    while (k < degree) & (value == value):
        step = like(x, k)
        following = ((step + step + one) * x * value - step * before) / (step + one)
        before, value = value, following
        k += 1
    return value


@part
def laguerre(x, n, order):  # type: ignore[no-untyped-def]
    """Return the polynomial that is orthogonal for the weight x**order e**-x from 0 on."""
    degree, one = to_int64(n), like(x, 1)
    if degree < 0:
        return like(x, 0)
    before, value = like(x, 0), one
    k = 0
    while (k < degree) & (value == value):
        step = like(x, k)
        following = ((step + step + (one + order - x)) * value - (step + order) * before) / (
            step + one
        )
        before, value = value, following
        k += 1
    return value


def _hermite(scale: float) -> Any:
    """Return the polynomials H (of scale 2) or He (of 1): p, scale x p - scale k q."""

    @part
    def hermite(x, n):  # type: ignore[no-untyped-def]
        degree, factor = to_int64(n), like(x, scale)
        if degree < 0:
            return like(x, 0)
        before, value = like(x, 0), like(x, 1)
        k = 0
        while (k < degree) & (value == value):
            before, value = value, factor * (x * value - like(x, k) * before)
            k += 1
        return value

    return hermite


hermite_h, hermite_he = _hermite(2.0), _hermite(1.0)
