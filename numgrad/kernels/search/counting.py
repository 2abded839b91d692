"""Counts of integers (bincount) and of points in bins of one or more dims (histograms)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel

__all__ = ["counted", "counts_in_bins"]

Array = np.ndarray[Any, Any]


@kernel
def _count(values, found):  # type: ignore[no-untyped-def]
    for k in range(values.size):
        found[values[k]] += 1


@kernel
def _count_weights(values, weights, found):  # type: ignore[no-untyped-def]
    for k in range(values.size):
        found[values[k]] += weights[k]


def counted(values: Array, weights: Array | None, length: int) -> Array:
    """Return how often each number from 0 to `length` is among integers, or sums of their weights.

    Examples
    --------
    >>> counted(np.array([1, 2, 2]), None, 4)
    array([0, 1, 2, 0])
    """
    values = np.ascontiguousarray(values, np.int64)
    found: Array = np.zeros(length, np.int64 if weights is None else np.float64)
    if weights is None:
        _count(values, found)
        return found
    _count_weights(values, np.ascontiguousarray(weights, np.float64), found)
    return found.astype(weights.dtype, copy=False)


@kernel
def _count_points(points, weights, edges, starts, steps, way, sums):  # type: ignore[no-untyped-def]
    """Add the weight of each point to the bin that it is in.

    `edges` has those of all dims, one behind the other, from `starts` on; `steps` are those of
    `sums`. The `way` is 0 for bins of one width, 1 for these with a look at the edges beside, and 2
    for any.
    """
    zero = points.dtype.type(0)
    for row in range(points.shape[0]):
        place = 0
        for dim in range(points.shape[1]):
            first, last = starts[dim], starts[dim + 1] - 1
            value, low, high = points[row, dim], edges[first], edges[last]
            if not (value >= low and value <= high):
                place = -1
                break
            bins = last - first
            if way == 2:
                least, most = 0, bins + 1
            else:
                scaled = (value - low) * (zero + bins) / (high - low)
                at = min(max(int(scaled), 0), bins)
                least, most = (at, at) if way == 0 else (max(at - 1, 0), min(at + 2, bins + 1))
            if way:
                while least < most:  # the first edge that is greater
                    middle = (least + most) >> 1
                    if edges[first + middle] > value:
                        most = middle
                    else:
                        least = middle + 1
                at = least - 1
            if at == bins:  # the last bin has its right edge
                at -= 1
            place += at * steps[dim]
        if place >= 0:
            sums[place] += weights[row] if weights.size else 1.0


def counts_in_bins(points: Array, weights: Array | None, edges: Sequence[Array], way: int) -> Array:
    """Return how many points are in each bin, or the sums of their weights, as float64.

    Parameters
    ----------
    points : array of shape (m, n)
    weights : array of shape (m,), optional
    edges : sequence of n arrays
        In ascending order, of the dtype of the points; each bin has its left edge, the last one its
        right edge too.
    way : int
        How the bin of a point is found: 0 by its distance from the first edge alone, where bins
        have one width; 1 by that and the edges beside; 2 by the edges.

    Examples
    --------
    >>> counts_in_bins(np.array([[0.5], [2.0]]), None, [np.array([0.0, 1.0, 2.0])], 2)
    array([1., 1.])
    """
    bins = [edge.size - 1 for edge in edges]
    steps = [int(np.prod(bins[dim + 1 :], dtype=np.int64)) for dim in range(len(bins))]
    sums: Array = np.zeros(int(np.prod(bins, dtype=np.int64)))
    if points.size:
        starts = np.cumsum([0, *[edge.size for edge in edges]])
        given = np.ascontiguousarray([] if weights is None else weights, points.dtype)
        _count_points(
            np.ascontiguousarray(points),
            given,
            np.concatenate(edges),
            starts.astype(np.int64),
            np.array(steps, np.int64),
            way,
            sums,
        )
    return sums.reshape(bins)
