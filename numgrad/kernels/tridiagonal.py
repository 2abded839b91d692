"""Systems of linear equations with a matrix of three diagonals, solved row after row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel

__all__ = ["solve_tridiagonal"]

Array = np.ndarray[Any, Any]


@kernel
def _solve(lower, middle, upper, rows):  # type: ignore[no-untyped-def]
    """Eliminate without pivots (L. H. Thomas, 1949), in place; `middle` takes the pivots."""
    for system in range(rows.shape[0]):
        size = rows.shape[1]
        for k in range(1, size):
            factor = lower[system, k] / middle[system, k - 1]
            middle[system, k] -= factor * upper[system, k - 1]
            for column in range(rows.shape[2]):
                rows[system, k, column] -= factor * rows[system, k - 1, column]
        for column in range(rows.shape[2]):
            rows[system, size - 1, column] /= middle[system, size - 1]
        for back in range(size - 1):
            k = size - 2 - back
            for column in range(rows.shape[2]):
                left = upper[system, k] * rows[system, k + 1, column]
                rows[system, k, column] = (rows[system, k, column] - left) / middle[system, k]


def solve_tridiagonal(lower: Array, middle: Array, upper: Array, rows: Array) -> Array:
    """Solve systems for several right sides; the matrix needs no pivots.

    Row k of the matrix has ``lower[k]``, ``middle[k]``, ``upper[k]`` beside each other; the first
    element of `lower` and the last of `upper` are not used.

    Parameters
    ----------
    lower, middle, upper : array of shape (..., n)
    rows : array of shape (..., n, k)

    Examples
    --------
    >>> ones = np.ones(3)
    >>> solve_tridiagonal(ones, 3 * ones, ones, np.array([[4.0], [5.0], [4.0]]))[:, 0]
    array([1., 1., 1.])
    """
    size, batch = middle.shape[-1], math.prod(middle.shape[:-1])
    found = np.array(rows.reshape(batch, size, rows.shape[-1]), order="C")
    pivots = np.array(middle.reshape(batch, size), order="C")
    below, above = (np.ascontiguousarray(each.reshape(batch, size)) for each in (lower, upper))
    _solve(below, pivots, above, found)
    return found.reshape(rows.shape)
