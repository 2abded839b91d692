"""The regularised incomplete gamma functions, and their derivatives for the first argument.

Method: where a is at least 20 and x within 3/10 of it, Temme's uniform expansion; else, where x is
below a + 1, the series for P, and above it the continued fraction for Q. Q of small a and x, where
P is near 1, has a series of its own. What stands in front of them, x**a e**-x / Gamma(a + 1), is a
product for small a, and exp(-a (mu - ln(1 + mu))) over Stirling's root, with mu = (x - a)/a, for
large ones.

The derivatives carry the first two of each term, of each step of the continued fraction, or of each
coefficient along. All is computed in double precision.

Error bounds, measured in tests/math/special and in benchmarks/accuracy.

Sources: N. M. Temme, "The asymptotic expansion of the incomplete gamma functions", SIAM Journal on
Mathematical Analysis 10 (1979), whose coefficients numgrad/math/special/temme.py has; NIST Digital
Library of Mathematical Functions, 8.11.4 (series), 8.9.2 (continued fraction), 8.7.3 (small a).
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from numgrad.codegen.compile.dispatchers import part
from numgrad.math.by_type import in_type_of
from numgrad.math.scalar import digamma, erfc, exp, expm1, lgamma, log, log1p, pow
from numgrad.math.special.gamma import LGAMMA_OF_ONE_AND
from numgrad.math.special.temme import COEFFICIENTS, RATIO
from numgrad.math.special.zeta import trigamma

__all__ = ["excess", "gamma_density", "gammainc", "gammainc_slope", "gammaincc"]

_lgamma_of_one_and = LGAMMA_OF_ONE_AND[types.float64]

_TERMS = COEFFICIENTS.shape
_LARGE, _NEAR = 20.0, 0.3
_EPSILON = 1e-17
_MOST_TERMS = 20000
_ROOT = math.sqrt(2 * math.pi)


@part
def excess(mu):  # type: ignore[no-untyped-def]
    """Return mu - ln(1 + mu), with all its digits near 0."""
    if abs(mu) > 0.4:
        return mu - log1p(mu)
    r = mu / (2.0 + mu)
    square, power, total = r * r, 1.0, 0.0
    for n in range(14):
        total += power / (2 * n + 3)
        power *= square
    return r * (mu - 2.0 * square * total)


@part
def _stirling_rest(a):  # type: ignore[no-untyped-def]
    """Return ln Gamma(a) less the first terms of Stirling's series, for a from 20."""
    w = 1.0 / (a * a)
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * (1 / 1188))))) / a


@part
def _gamma_of_few(z):  # type: ignore[no-untyped-def]
    """Return Gamma(z) for positive z up to 21."""
    product = 1.0
    while z >= 2.5:
        z -= 1.0
        product *= z
    return product * exp(lgamma(z))


def _front_in_double(a, x):  # type: ignore[no-untyped-def]
    """Return x**a e**-x / Gamma(a + 1)."""
    if a < _LARGE:
        half = exp(-0.5 * x)
        return pow(x, a) * half / _gamma_of_few(a + 1.0) * half
    mu = (x - a) / a
    return exp(-a * excess(mu) - _stirling_rest(a)) / (_ROOT * math.sqrt(a))


_front = part(_front_in_double, inlined=False)


def _series_in_double(a, x):  # type: ignore[no-untyped-def]
    """Return the sum of x**n / ((a + 1) ... (a + n)), and its first two derivatives for a."""
    term, total = 1.0, 1.0
    u, v, first, second = 0.0, 0.0, 0.0, 0.0
    for n in range(1, _MOST_TERMS):
        inverse = 1.0 / (a + n)
        term *= x * inverse
        u -= inverse
        v += inverse * inverse
        square = u * u + v
        total += term
        first += term * u
        second += term * square
        if (term < _EPSILON * total) & (term * square < _EPSILON * second):
            break
    return total, first, second


_series = part(_series_in_double, inlined=False)


def _fraction_in_double(a, x):  # type: ignore[no-untyped-def]
    """Return Gamma(a, x) / (x**a e**-x), and its first two derivatives for a."""
    # How many steps it takes, by Lentz's method; then as many from behind, with derivatives.
    b = x + 1.0 - a
    c, d, count = 1e300, 1.0 / b, 0
    for n in range(1, _MOST_TERMS):
        numerator = n * (a - n)
        b += 2.0
        d = 1.0 / (numerator * d + b)
        c = b + numerator / c
        count = n
        if abs(d * c - 1.0) < 1e-16:
            break
    f, first, second = 0.0, 0.0, 0.0
    count += 10 + count // 2
    for k in range(count + 1):
        n = count - k
        # 1 / (x + 2 n + 1 - a + (n + 1) (a - n - 1) f)
        m = n + 1.0
        factor = m * (a - m)
        y = x + (2 * n + 1) - a + factor * f
        y_first = -1.0 + m * f + factor * first
        y_second = 2.0 * m * first + factor * second
        f = 1.0 / y
        first = -y_first * f * f
        second = (-y_second + 2.0 * y_first * y_first * f) * f * f
    return f, first, second


_fraction = part(_fraction_in_double, inlined=False)


def _expansion_in_double(a, x, order):  # type: ignore[no-untyped-def]
    """Return P and Q for order 0, else the derivative of P of that order, twice."""
    mu = (x - a) / a
    half_square = excess(mu)
    eta = math.copysign(math.sqrt(2.0 * half_square), mu)
    front = exp(-a * half_square) / (_ROOT * math.sqrt(a))
    inverse = 1.0 / a
    # The coefficients, by Horner's rule with two derivatives, summed over powers of 1/a.
    t, t_eta, t_eta2, t_a, t_a_eta, t_aa, scale = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0
    for k in range(_TERMS[0]):
        c, slope, bend = 0.0, 0.0, 0.0
        for j in range(_TERMS[1]):
            bend = bend * eta + slope
            slope = slope * eta + c
            c = c * eta + COEFFICIENTS[k, _TERMS[1] - 1 - j]
        bend *= 2.0
        t += c * scale
        t_eta += slope * scale
        t_eta2 += bend * scale
        t_a -= k * c * scale * inverse
        t_a_eta -= k * slope * scale * inverse
        t_aa += k * (k + 1) * c * scale * inverse * inverse
        scale *= inverse
    if order == 0:
        z = eta * math.sqrt(0.5 * a)
        return 0.5 * erfc(-z) - front * t, 0.5 * erfc(z) + front * t
    g, g_slope = 0.0, 0.0
    for j in range(_TERMS[1]):
        g_slope = g_slope * eta + g
        g = g * eta + RATIO[_TERMS[1] - 1 - j]
    eta_a = -g * inverse
    eta_aa = g * (1.0 + g_slope) * inverse * inverse
    rate = log1p(mu) - 0.5 * inverse
    first = t_eta * eta_a + t_a
    w = 0.5 * eta - g - t * rate - first
    if order == 1:
        return front * w, front * w
    second = t_eta2 * eta_a * eta_a + t_eta * eta_aa + 2.0 * t_a_eta * eta_a + t_aa
    rate_slope = -inverse + 0.5 * inverse * inverse
    w_slope = 0.5 * eta_a - g_slope * eta_a - 2.0 * first * rate + first * rate
    w_slope -= t * rate_slope + second
    bent = front * (w * rate + w_slope)
    return bent, bent


_expansion = part(_expansion_in_double, inlined=False)


def _complement_of_small(a, x):  # type: ignore[no-untyped-def]
    """Return Q of small a and x, where P may be near 1."""
    total, power = 0.0, 1.0
    for n in range(1, 200):
        power *= -x / n
        term = power / (a + n)
        total += term
        if abs(term) < _EPSILON * abs(total):
            break
    rest = _lgamma_of_one_and(a) if a < 0.5 else lgamma(1.0 + a)
    logarithm = a * log(x) - rest
    return -expm1(logarithm) - exp(logarithm) * a * total


_complement = part(_complement_of_small, inlined=False)


def _pair_in_double(a, x):  # type: ignore[no-untyped-def]
    """Return P and Q."""
    if (a < 0.0) | (x < 0.0):
        return math.nan, math.nan
    if a == 0.0:
        return (1.0, 0.0) if x > 0.0 else (math.nan, math.nan)
    # In PyTorch's order: an infinite argument decides even where the other is nan.
    if (x == 0.0) | ((a == math.inf) & (x != math.inf)):
        return 0.0, 1.0
    if x == math.inf:
        return (math.nan, math.nan) if a == math.inf else (1.0, 0.0)
    if (a != a) | (x != x):
        return math.nan, math.nan
    if (a >= _LARGE) & (abs(x - a) < _NEAR * a):
        return _expansion(a, x, 0)
    if x < a + 1.0:
        p = _front(a, x) * _series(a, x)[0]
        return p, _complement(a, x) if (p > 0.5) & (x < 1.5) else 1.0 - p
    q = _front(a, x) * a * _fraction(a, x)[0]
    return 1.0 - q, q


_pair = part(_pair_in_double, inlined=False)


def _slope_in_double(a, x, order):  # type: ignore[no-untyped-def]
    """Return the first or second derivative of P for a."""
    if not (a > 0.0) & (x >= 0.0):
        return math.nan
    if (x == 0.0) | (x == math.inf) | (a == math.inf):
        return 0.0
    if (a >= _LARGE) & (abs(x - a) < _NEAR * a):
        return _expansion(a, x, order)[0]
    front = _front(a, x)
    if front == 0.0:
        return 0.0
    if x < a + 1.0:
        f, first, second = _series(a, x)
        rate = log(x) - digamma(a + 1.0)
        bend = -trigamma(a + 1.0)
        sign = 1.0
    else:
        f, first, second = _fraction(a, x)
        front *= a
        rate = log(x) - digamma(a)
        bend = -trigamma(a)
        sign = -1.0
    if order == 1:
        return sign * front * (f * rate + first)
    return sign * front * (f * (rate * rate + bend) + 2.0 * rate * first + second)


_slope = part(_slope_in_double, inlined=False)


def _density_in_double(a, x):  # type: ignore[no-untyped-def]
    """Return x**(a - 1) e**-x / Gamma(a)."""
    if x > 0.0:
        if x == math.inf:
            return 0.0
        if a < 1e-300:
            return a * _front(a, x) / x
        return _front(a, x) * (a / x)
    if x == 0.0:
        if a == 0.0:
            return math.nan
        return 0.0 if a > 1.0 else (1.0 if a == 1.0 else math.inf)
    return math.nan


_density = part(_density_in_double, inlined=False)


@part
def gammainc(a, x):  # type: ignore[no-untyped-def]
    """Return the lower regularised incomplete gamma function."""
    return in_type_of(a, _pair(np.float64(a), np.float64(x))[0])


@part
def gammaincc(a, x):  # type: ignore[no-untyped-def]
    """Return the upper regularised incomplete gamma function."""
    return in_type_of(a, _pair(np.float64(a), np.float64(x))[1])


@part
def gammainc_slope(a, x, order):  # type: ignore[no-untyped-def]
    """Return the first or second derivative of `gammainc` for its first argument."""
    return in_type_of(a, _slope(np.float64(a), np.float64(x), np.float64(order)))


@part
def gamma_density(a, x):  # type: ignore[no-untyped-def]
    """Return the density of the gamma distribution, the derivative of `gammainc` for x."""
    return in_type_of(a, _density(np.float64(a), np.float64(x)))
