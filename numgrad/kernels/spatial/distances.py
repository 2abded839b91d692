"""Distances between rows by a p-norm: of all rows of two matrices, or of each pair of one's.

Of the rows of the second matrix the columns are taken, so that the sums of many distances grow side
by side, one coordinate after the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base.tuning import THREAD_ELEMENTS_WINDOWS
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.dispatchers import part
from numgrad.math.scalar import pow
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["pair_distances", "row_distances"]

Array = np.ndarray[Any, Any]

_BLOCK = 512  # sums that stay in the nearest cache


@part
def _fold(sums, others, x, p):  # type: ignore[no-untyped-def]
    """Take one more coordinate into the sums of distances from x."""
    if p == 2:
        for j in range(sums.size):
            difference = x - others[j]
            sums[j] += difference * difference
    elif p == 1:
        for j in range(sums.size):
            sums[j] += abs(x - others[j])
    elif p == math.inf:
        for j in range(sums.size):  # nan stays, as nothing is greater
            size = abs(x - others[j])
            sums[j] = size if (size > sums[j]) | (size != size) else sums[j]
    elif p == 0:
        for j in range(sums.size):
            sums[j] += x != others[j]
    else:
        for j in range(sums.size):
            sums[j] += pow(abs(x - others[j]), p)


@part
def _measure(row, columns, p, inverse, out):  # type: ignore[no-untyped-def]
    """Write the distances of a row from those whose columns are given."""
    for first in range(0, out.size, _BLOCK):
        sums = out[first : first + _BLOCK]
        sums[:] = 0
        for k in range(row.size):
            _fold(sums, columns[k, first : first + _BLOCK], row[k], p)
        if p == 2:
            for j in range(sums.size):
                sums[j] = np.sqrt(sums[j])
        elif (p != 1) & (p != 0) & (p < math.inf):
            for j in range(sums.size):
                sums[j] = pow(sums[j], inverse)


@kernel
def _of_rows(x1: Array, columns: Array, p: Any, inverse: Any, out: Array) -> None:
    for row in range(x1.shape[0]):
        _measure(x1[row], columns, p, inverse, out[row])


@kernel
def _of_pairs(rows: Array, columns: Array, p: Any, inverse: Any, out: Array) -> None:
    start = 0
    for row in range(rows.shape[0]):
        count = rows.shape[0] - row - 1
        _measure(rows[row], columns[:, row + 1 :], p, inverse, out[start : start + count])
        start += count


def _numbers(p: float, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the order and one over it, in a dtype."""
    return dtype.type(p), dtype.type(1 / p if p else 0)


def row_distances(x1: Array, x2: Array, p: float) -> Array:
    """Return the distances of each row of one matrix from those of another; leading dims agree.

    Examples
    --------
    >>> row_distances(np.zeros((1, 2)), np.array([[3.0, 4.0], [0.0, 1.0]]), 2.0)
    array([[5., 1.]])
    """
    out = empty((*x1.shape[:-1], x2.shape[-2]), x1.dtype)
    numbers = _numbers(p, x1.dtype)
    for place in np.ndindex(x1.shape[:-2]):
        rows, target = np.ascontiguousarray(x1[place]), out[place]
        columns = np.ascontiguousarray(x2[place].T)
        least = max(1, THREAD_ELEMENTS_WINDOWS // max(1, columns.size))

        def run(
            start: int, stop: int, rows: Array = rows, columns: Array = columns, out: Array = target
        ) -> None:
            _of_rows(rows[start:stop], columns, *numbers, out[start:stop])

        parallel_for(run, rows.shape[0], least)
    return out


def pair_distances(rows: Array, p: float) -> Array:
    """Return the distances of each row of a matrix from those behind it.

    Examples
    --------
    >>> pair_distances(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]), 1.0)
    array([7., 1., 6.])
    """
    count = rows.shape[0]
    out = empty((count * (count - 1) // 2,), rows.dtype)
    numbers = _numbers(p, rows.dtype)
    _of_pairs(np.ascontiguousarray(rows), np.ascontiguousarray(rows.T), *numbers, out)
    return out
