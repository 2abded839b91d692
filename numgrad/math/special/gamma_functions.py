"""lgamma and digamma as scalar functions, of numbers of any real type."""

from __future__ import annotations

import math

from numba import types

from numgrad.math.by_type import for_types
from numgrad.math.special.gamma import DIGAMMA, LGAMMA

__all__ = ["digamma", "lgamma"]

_double_digamma = DIGAMMA[types.float64]


@for_types(LGAMMA)
def lgamma(x):  # type: ignore[no-untyped-def]
    """Return the logarithm of the size of the gamma function."""
    return math.lgamma(x)


@for_types(DIGAMMA)
def digamma(x):  # type: ignore[no-untyped-def]
    """Return the derivative of the logarithm of the gamma function."""
    return _double_digamma(float(x))
