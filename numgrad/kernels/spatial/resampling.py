"""Weighted sums of a few elements along a dim: interpolation, padding with what is inside.

Along one dim, a `Table` says of which elements each result is a sum, and with which weights.
`resampled` follows such tables along the last dims, and `resampled_adjoint` is its adjoint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.base.tuning import THREAD_ELEMENTS_WINDOWS
from numgrad.codegen.compile.compile import kernel
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["Table", "resampled", "resampled_adjoint"]

Array = np.ndarray[Any, Any]


class Table(NamedTuple):
    """What results along one dim are made of.

    Attributes
    ----------
    size : int
        How many elements there are.
    places : array of int64, shape (results, taps)
        Which elements a result is made of.
    weights : array of the same shape, optional
        What they are multiplied by; None if each is one element as it is.
    """

    size: int
    places: Array
    weights: Array | None


@kernel
def _gather(x, out, places, weights, first, last):  # type: ignore[no-untyped-def]
    count, taps, inner = places.shape[0], places.shape[1], x.shape[2]
    for row in range(first, last):
        for i in range(count):
            if inner == 1:
                total = weights[i, 0] * x[row, places[i, 0], 0]
                for tap in range(1, taps):
                    total += weights[i, tap] * x[row, places[i, tap], 0]
                out[row, i, 0] = total
                continue
            for k in range(inner):
                out[row, i, k] = weights[i, 0] * x[row, places[i, 0], k]
            for tap in range(1, taps):
                at, weight = places[i, tap], weights[i, tap]
                for k in range(inner):
                    out[row, i, k] += weight * x[row, at, k]


@kernel
def _scatter(g, out, places, weights, first, last):  # type: ignore[no-untyped-def]
    count, taps, inner = places.shape[0], places.shape[1], g.shape[2]
    for row in range(first, last):
        for i in range(count):
            for tap in range(taps):
                at, weight = places[i, tap], weights[i, tap]
                for k in range(inner):
                    out[row, at, k] += weight * g[row, i, k]


def _rows(array: Array, dim: int) -> Array:
    """Return an array as one of three dims, the second one `dim`."""
    shape = array.shape
    return array.reshape(math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :]))


def _weights(table: Table, dtype: Any) -> Array:
    real = np.empty(0, dtype).real.dtype
    if table.weights is None:
        return np.ones(table.places.shape, real)
    return table.weights.astype(real, copy=False)


def _run(function: Any, source: Array, out: Array, table: Table) -> None:
    rows = source.shape[0]
    work = table.places.size * source.shape[2]
    if rows and work:
        weights = _weights(table, source.dtype)
        grain = max(1, THREAD_ELEMENTS_WINDOWS // work)
        parallel_for(
            lambda first, last: function(source, out, table.places, weights, first, last),
            rows,
            grain,
        )


def resampled(array: Array, tables: Sequence[Table]) -> Array:
    """Return sums along the last dims, as their tables say; the last dim comes first.

    Examples
    --------
    >>> table = Table(3, np.array([[0, 1], [1, 2]]), np.array([[0.5, 0.5], [0.25, 0.75]]))
    >>> resampled(np.array([2.0, 4.0, 8.0]), [table])
    array([3., 7.])
    """
    result = array
    for dim in reversed(range(array.ndim - len(tables), array.ndim)):
        table = tables[dim - array.ndim]
        if table.weights is None:
            result = np.take(result, table.places[:, 0], dim)
            continue
        shape = (*result.shape[:dim], table.places.shape[0], *result.shape[dim + 1 :])
        out = empty(shape, array.dtype)
        _run(_gather, _rows(np.ascontiguousarray(result), dim), _rows(out, dim), table)
        result = out
    return result if result is not array else array.copy()


def resampled_adjoint(g: Array, tables: Sequence[Table]) -> Array:
    """Return what `resampled` sums, given what its results are multiplied by.

    Examples
    --------
    >>> table = Table(3, np.array([[0, 1], [1, 2]]), np.array([[0.5, 0.5], [0.25, 0.75]]))
    >>> resampled_adjoint(np.array([2.0, 4.0]), [table])
    array([1., 2., 3.])
    """
    result = g
    for dim in range(g.ndim - len(tables), g.ndim):
        table = tables[dim - g.ndim]
        shape = (*result.shape[:dim], table.size, *result.shape[dim + 1 :])
        out = np.zeros(shape, g.dtype)
        _run(_scatter, _rows(np.ascontiguousarray(result), dim), _rows(out, dim), table)
        result = out
    return result if result is not g else g.copy()
