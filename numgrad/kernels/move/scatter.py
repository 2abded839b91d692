"""Scatter-add of rows at indices that may repeat: the backward pass of every kind of indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.kernels.move.strides import (
    Layout,
    extent,
    layout_of,
    may_overlap,
    positions,
    strided_view,
)

__all__ = ["add_at", "move_strided", "same_layout"]

Array = np.ndarray[Any, Any]


@kernel
def _add_rows(target: Array, places: Array, source: Array) -> None:
    for k in range(places.size):
        place = places[k]
        for i in range(target.shape[1]):
            target[place, i] += source[k, i]


@kernel
def _or_rows(target: Array, places: Array, source: Array) -> None:
    for k in range(places.size):
        place = places[k]
        for i in range(target.shape[1]):
            target[place, i] |= source[k, i]


def add_at(target: Array, places: Array, source: Array) -> None:
    """Add to the rows of `target` in place; rows that are named twice get both, in order.

    Parameters
    ----------
    target : numpy.ndarray
        Shape ``(rows, width)``, C-contiguous. Adding bools means or.
    places : numpy.ndarray
        Which row each row of `source` goes to: int64, any shape, from 0 to rows - 1.
    source : numpy.ndarray
        As many elements as ``(places.size, width)`` and in that order, of the target's dtype.

    Examples
    --------
    >>> target = np.zeros((3, 1))
    >>> add_at(target, np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]))
    >>> target.ravel()
    array([2., 0., 4.])
    """
    if not places.size or not target.size:
        return
    rows = np.ascontiguousarray(source).reshape(places.size, target.shape[1])
    run = _or_rows if target.dtype.kind == "b" else _add_rows
    run(target, np.ascontiguousarray(places).reshape(-1), rows)


def move_strided(array: Array, source: Layout, target: Layout, shared: Layout | None) -> Array:
    """Return what lies at `target` when `array` is added into zeros at `source`.

    Parameters
    ----------
    array : numpy.ndarray
        Of the shape of `source`.
    source, target : Layout
        Two layouts of the same storage; either may reach an element more than once.
    shared : Layout or None
        Divide what is in the storage by how often this layout reaches it.

    Examples
    --------
    >>> move_strided(np.ones((2, 2)), ((2, 2), (1, 1), 0), ((3,), (1,), 0), None)
    array([1., 2., 1.])
    """
    lows_highs = [extent(source), extent(target)]
    low = min(pair[0] for pair in lows_highs)
    size = max(pair[1] for pair in lows_highs) - low
    buffer = np.zeros(size, array.dtype)
    _add_strided(buffer, array, _shift(source, low))
    if shared is not None and may_overlap(shared):
        counts = np.zeros(size, np.int64)
        reached = positions(_shift(shared, low)).reshape(-1)
        reached = reached[(reached >= 0) & (reached < size)]
        add_at(counts.reshape(-1, 1), reached, np.ones(reached.size, np.int64))
        buffer /= np.maximum(counts, 1).astype(buffer.real.dtype)
    return strided_view(buffer, _shift(target, low)).copy("C")


def _shift(layout: Layout, low: int) -> Layout:
    return layout[0], layout[1], layout[2] - low


def _add_strided(buffer: Array, array: Array, layout: Layout) -> None:
    if may_overlap(layout):
        add_at(buffer.reshape(-1, 1), positions(layout), array)
    else:
        strided_view(buffer, layout)[...] = array


def same_layout(array: Array, layout: Layout) -> bool:
    """Return whether an array is laid out so, but for dimensions that have no second element."""
    shape, stride, _ = layout_of(array)
    return shape == layout[0] and all(
        length < 2 or a == b for length, a, b in zip(shape, stride, layout[1], strict=True)
    )
