"""The compiled folds: which scalar operation each reduction repeats, and over what.

`fold_loops` has the loop. ``bool`` arrays come here as ``uint8``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.kernels import scalar
from numgrad.kernels.fold_loops import inline, make_fold
from numgrad.kernels.folds import Fold

__all__ = [
    "ALL",
    "ANY",
    "COUNT",
    "MAX",
    "MAX_ABS",
    "MIN",
    "MIN_ABS",
    "PROD",
    "PROD_INTEGERS",
    "SUM",
    "SUM_ABS",
    "SUM_EXP",
    "SUM_INTEGERS",
    "SUM_POWERS",
    "SUM_SQUARED_DISTANCES",
    "SUM_SQUARED_MODULI",
    "SUM_SQUARES",
    "add",
    "greatest",
    "itself",
    "least",
    "multiply",
]


@inline
def itself(x, _):  # type: ignore[no-untyped-def]
    """Transform nothing."""
    return x


@inline
def as_int64(x, _):  # type: ignore[no-untyped-def]
    return np.int64(x)


@inline
def is_nonzero(x, _):  # type: ignore[no-untyped-def]
    return np.uint8(x != 0)


@inline
def one_if_nonzero(x, _):  # type: ignore[no-untyped-def]
    return np.int64(x != 0)


@inline
def magnitude(x, _):  # type: ignore[no-untyped-def]
    return abs(x)


@inline
def squared(x, _):  # type: ignore[no-untyped-def]
    return x * x


@inline
def squared_modulus(x, _):  # type: ignore[no-untyped-def]
    return x.real * x.real + x.imag * x.imag


@inline
def power_of_magnitude(x, p):  # type: ignore[no-untyped-def]
    return abs(x) ** p


@inline
def squared_distance(x, centre):  # type: ignore[no-untyped-def]
    return (x - centre) * (x - centre)


@inline
def shifted_exp(x, centre):  # type: ignore[no-untyped-def]
    return scalar.exp(x - centre)


@inline
def add(x, y):  # type: ignore[no-untyped-def]
    """Return the sum."""
    return x + y


@inline
def multiply(x, y):  # type: ignore[no-untyped-def]
    """Return the product."""
    return x * y


@inline
def both(x, y):  # type: ignore[no-untyped-def]
    return x & y


@inline
def either(x, y):  # type: ignore[no-untyped-def]
    return x | y


@inline
def greatest(x, y):  # type: ignore[no-untyped-def]
    """Return the greater number, or nan; without a branch, as a blend in a vector register."""
    return x if (x >= y) | (x != x) else y


@inline
def least(x, y):  # type: ignore[no-untyped-def]
    """Return the lesser number, or nan."""
    return x if (x <= y) | (x != x) else y


def _fold(name: str, transform: Any, combine: Any, merge: Fold | None = None) -> Fold:
    return Fold(make_fold(name, transform, combine), merge)


SUM = _fold("sum", itself, add)
SUM_INTEGERS = _fold("sum_integers", as_int64, add)
PROD = _fold("prod", itself, multiply)
PROD_INTEGERS = _fold("prod_integers", as_int64, multiply)
MAX = _fold("max", itself, greatest)
MIN = _fold("min", itself, least)
ALL = _fold("all", is_nonzero, both)
ANY = _fold("any", is_nonzero, either)
# The last argument reduces what the parts give, which is not transformed again.
COUNT = _fold("count", one_if_nonzero, add, SUM_INTEGERS)
SUM_ABS = _fold("sum_abs", magnitude, add, SUM)
SUM_SQUARES = _fold("sum_squares", squared, add, SUM)
SUM_SQUARED_MODULI = _fold("sum_squared_moduli", squared_modulus, add, SUM)
SUM_POWERS = _fold("sum_powers", power_of_magnitude, add, SUM)
MAX_ABS = _fold("max_abs", magnitude, greatest, MAX)
MIN_ABS = _fold("min_abs", magnitude, least, MIN)
SUM_SQUARED_DISTANCES = _fold("sum_squared_distances", squared_distance, add, SUM)
SUM_EXP = _fold("sum_exp", shifted_exp, add, SUM)
