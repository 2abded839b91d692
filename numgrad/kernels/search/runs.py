"""Runs of equal elements or rows, and rows in lexicographic order: what `unique` is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.kernels.search.bisection import comparable

__all__ = ["order_of_rows", "runs"]

Array = np.ndarray[Any, Any]


@kernel
def _find_runs(rows, order, number, first):  # type: ignore[no-untyped-def]
    """Find the runs of rows in an order; return how many there are. Nan equals nothing."""
    found = -1
    for k in range(order.size):
        same = k > 0
        if same:
            for column in range(rows.shape[1]):
                if rows[order[k], column] != rows[order[k - 1], column]:
                    same = False
                    break
        if not same:
            found += 1
            first[found] = k
        number[order[k]] = found
    return found + 1


def runs(rows: Array, order: Array) -> tuple[Array, Array, Array]:
    """Return what runs of equal rows there are, in an order that these are walked in.

    Parameters
    ----------
    rows : array of shape (n, width)
    order : int64 array of shape (n,)

    Returns
    -------
    first : array
        Of each run the first row.
    number : array of shape (n,)
        In which run each row is.
    lengths : array
        How long the runs are.

    Examples
    --------
    >>> runs(np.array([[5], [5], [7]]), np.arange(3))
    (array([0, 2]), array([0, 0, 1]), array([2, 1]))
    """
    number: Array = np.empty(order.size, np.int64)
    start: Array = np.empty(order.size, np.int64)
    count = int(_find_runs(comparable(rows), order, number, start))
    start = start[:count]
    return order[start], number, np.diff(start, append=order.size)


@kernel
def _precedes(rows, one, other):  # type: ignore[no-untyped-def]
    """Whether a row stands strictly before another one; nan stands behind all numbers."""
    for column in range(rows.shape[1]):
        here, there = rows[one, column], rows[other, column]
        if here < there or (there != there and here == here):
            return True
        if here > there or (here != here and there == there):
            return False
    return False


@kernel
def _merge_sort(rows, order, spare):  # type: ignore[no-untyped-def]
    width = 1
    source, target = order, spare
    while width < order.size:
        for start in range(0, order.size, 2 * width):
            middle = min(start + width, order.size)
            stop = min(start + 2 * width, order.size)
            left, right = start, middle
            for k in range(start, stop):
                takes_right = right < stop and (
                    left >= middle or _precedes(rows, source[right], source[left])
                )
                if takes_right:
                    target[k] = source[right]
                    right += 1
                else:
                    target[k] = source[left]
                    left += 1
        source, target = target, source
        width *= 2
    for k in range(order.size):
        spare[k] = source[k]


def order_of_rows(rows: Array) -> Array:
    """Return the positions of rows in lexicographic order; equal ones keep theirs.

    Examples
    --------
    >>> order_of_rows(np.array([[2, 1], [1, 7], [2, 0]]))
    array([1, 2, 0])
    """
    order: Array = np.arange(rows.shape[0])
    spare: Array = np.empty_like(order)
    if order.size:
        _merge_sort(comparable(rows), order, spare)
    return spare
