"""The compiled folds: which scalar operation each reduction repeats, and over what.

Every kernel has one signature, ``(a, out, n, inner, part_rows, first, last, centre, identity)``,
and is one line; `fold_loops` has the loop. ``bool`` arrays come here as ``uint8``.
"""

from __future__ import annotations

import numpy as np

from numgrad.kernels.compile import kernel
from numgrad.kernels.fold_loops import fold_items, inline
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
    "SUM_INTEGERS",
    "SUM_POWERS",
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


# fmt: off
@kernel
def _sum(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, itself, add)


@kernel
def _sum_integers(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, as_int64, add)


@kernel
def _prod(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, itself, multiply)


@kernel
def _prod_integers(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, as_int64, multiply)


@kernel
def _max(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, itself, greatest)


@kernel
def _min(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, itself, least)


@kernel
def _all(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, is_nonzero, both)


@kernel
def _any(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, is_nonzero, either)


@kernel
def _count(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, one_if_nonzero, add)


@kernel
def _sum_abs(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, magnitude, add)


@kernel
def _max_abs(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, magnitude, greatest)


@kernel
def _min_abs(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, magnitude, least)


@kernel
def _sum_squares(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, squared, add)


@kernel
def _sum_squared_moduli(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, squared_modulus, add)


@kernel
def _sum_powers(a, out, n, inner, part_rows, first, last, centre, identity):  # type: ignore[no-untyped-def]
    fold_items(a, out, n, inner, part_rows, first, last, centre, identity, power_of_magnitude, add)
# fmt: on


SUM = Fold(_sum)
SUM_INTEGERS = Fold(_sum_integers)
PROD = Fold(_prod)
PROD_INTEGERS = Fold(_prod_integers)
MAX = Fold(_max)
MIN = Fold(_min)
ALL = Fold(_all)
ANY = Fold(_any)
COUNT = Fold(_count, _sum_integers)
SUM_ABS = Fold(_sum_abs, _sum)
SUM_SQUARES = Fold(_sum_squares, _sum)
SUM_SQUARED_MODULI = Fold(_sum_squared_moduli, _sum)
SUM_POWERS = Fold(_sum_powers, _sum)
MAX_ABS = Fold(_max_abs, _max)
MIN_ABS = Fold(_min_abs, _min)
