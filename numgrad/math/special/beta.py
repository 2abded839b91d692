"""The beta function and its logarithm.

Method: up to 10, gamma functions; where one argument is larger, differences of Stirling's series in
which nothing large cancels. All is computed in double precision.

Sources: A. R. DiDonato and A. H. Morris, "Significant digit computation of the incomplete beta
function ratios", ACM Transactions on Mathematical Software 18 (1992), for the differences; NIST
Digital Library of Mathematical Functions, 5.12.1.
"""

from __future__ import annotations

import math

import numpy as np

from numgrad.codegen.compile.dispatchers import part
from numgrad.math.by_type import in_type_of
from numgrad.math.scalar import exp, lgamma, log, log1p

__all__ = ["beta", "beta_in_double", "betaln", "stirling_rest"]

_FAR_FROM_0 = 10.0
_HALF_LN_2_PI = 0.5 * math.log(2 * math.pi)


@part
def stirling_rest(a):  # type: ignore[no-untyped-def]
    """Return what follows ln(2 pi)/2 in Stirling's series, for a from 10."""
    w = 1.0 / (a * a)
    inner = 1 / 1188 - w * (691 / 360360 - w * (1 / 156 - w * (3617 / 122400)))
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * inner)))) / a


@part
def _sign(z):  # type: ignore[no-untyped-def]
    """Return the sign of Gamma(z)."""
    return 1.0 if (z > 0.0) | (np.fmod(np.floor(z), 2.0) == 0.0) else -1.0


@part
def _gamma(z):  # type: ignore[no-untyped-def]
    """Return Gamma(z) for z above 0 and below 20."""
    product, divisor = 1.0, 1.0
    while z >= 2.5:
        z -= 1.0
        product *= z
    if z < 0.5:
        divisor = z
        z += 1.0
    return product * exp(lgamma(z)) / divisor


@part
def _is_moderate(a, b):  # type: ignore[no-untyped-def]
    """Whether gamma functions give the beta function, and none of them is too large."""
    least, most = 1e-140, _FAR_FROM_0
    return (a > least) & (b > least) & (a < most) & (b < most)


def _betaln_in_double(a, b):  # type: ignore[no-untyped-def]
    if (a != a) | (b != b):
        return math.nan
    if _is_moderate(a, b):
        return log(_gamma(a) / _gamma(a + b) * _gamma(b))
    small, large = (a, b) if a <= b else (b, a)
    if (small <= 0.0) | (large < _FAR_FROM_0):
        return lgamma(a) + lgamma(b) - lgamma(a + b)
    if large == math.inf:
        return -math.inf
    ratio = small / large
    total = small + large
    if small < _FAR_FROM_0:
        difference = -(total - 0.5) * log1p(ratio) - small * (log(large) - 1.0)
        return lgamma(small) + (difference + (stirling_rest(large) - stirling_rest(total)))
    rest = stirling_rest(small) + (stirling_rest(large) - stirling_rest(total)) + _HALF_LN_2_PI
    return (small - 0.5) * log(ratio) - 0.5 * log(large) - (total - 0.5) * log1p(ratio) + rest


_betaln = part(_betaln_in_double, inlined=False)


def _beta_in_double(a, b):  # type: ignore[no-untyped-def]
    if _is_moderate(a, b):
        return _gamma(a) / _gamma(a + b) * _gamma(b)
    return _sign(a) * _sign(b) * _sign(a + b) * exp(_betaln(a, b))


beta_in_double = part(_beta_in_double, inlined=False)


@part
def betaln(a, b):  # type: ignore[no-untyped-def]
    """Return the logarithm of the size of the beta function."""
    return in_type_of(a, _betaln(np.float64(a), np.float64(b)))


@part
def beta(a, b):  # type: ignore[no-untyped-def]
    """Return Gamma(a) Gamma(b) / Gamma(a + b)."""
    return in_type_of(a, beta_in_double(np.float64(a), np.float64(b)))
