"""Scatter of rows at indices that may repeat, which are added up, multiplied, or compared.

Sums are the backward pass of every kind of indexing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.dispatchers import part
from numgrad.codegen.llvm.combine_ir import COMBINES, REDUCTIONS, Combine
from numgrad.kernels.move.strides import (
    Layout,
    extent,
    layout_of,
    may_overlap,
    positions,
    strided_view,
)
from numgrad.math.functions import scalar_function

__all__ = [
    "add_at",
    "adder_of_rows",
    "combine_of",
    "divide_by_counts",
    "identity_of",
    "move_strided",
    "named",
    "reduce_at",
    "same_layout",
]

Array = np.ndarray[Any, Any]


@part
def _put(a, b):  # type: ignore[no-untyped-def]
    return b


def _combine(reduce: str, dtype: np.dtype[Any]) -> Combine:
    """Return what a reduction combines with; of bools it is `or` or `and`."""
    combine = REDUCTIONS[reduce]
    return COMBINES[combine.of_bools] if dtype.kind == "b" else combine


def combine_of(reduce: str, dtype: np.dtype[Any]) -> Any:
    """Return the part of kernels that combines an element with another, or puts it there."""
    return _put if reduce == "put" else scalar_function(_combine(reduce, dtype).operation)


@cache
def _rows(combine: Any) -> Any:
    """Return the kernel that combines rows with those that places say."""

    def rows(target: Array, places: Array, source: Array) -> None:
        if target.shape[1] == 1:  # a loop of their own takes a third of the time
            for k in range(places.size):
                place = places[k]
                target[place, 0] = combine(target[place, 0], source[k, 0])
            return
        for k in range(places.size):
            place = places[k]
            for i in range(target.shape[1]):
                target[place, i] = combine(target[place, i], source[k, i])

    return kernel(named(rows, f"rows{combine.py_func.__name__}"))


def named(function: Any, name: str) -> Any:
    """Return a function of several that differ in what they close over, under a name of its own."""
    function.__name__ = name
    function.__qualname__ = f"{function.__module__}.{name}"
    return function


def identity_of(reduce: str, dtype: np.dtype[Any]) -> Any:
    """Return what a reduction begins with: 0, 1, or the least or greatest number of a dtype.

    Examples
    --------
    >>> float(identity_of("amin", np.dtype(np.float32)))
    inf
    """
    return dtype.type(_combine(reduce, dtype).identity(dtype))


def reduce_at(target: Array, places: Array, source: Array, reduce: str) -> None:
    """Combine rows with those of `target` in place, by ``"sum"``, ``"prod"``, ``"amax"``, ...

    The arguments are those of `add_at`, which is the sum. Bools take `or` and `and`.

    Examples
    --------
    >>> target = np.ones((2, 1))
    >>> reduce_at(target, np.array([1, 1]), np.array([2.0, 3.0]), "prod")
    >>> target.ravel()
    array([1., 6.])
    """
    if not places.size or not target.size:
        return
    rows = np.ascontiguousarray(source).reshape(places.size, target.shape[1])
    run = _rows(combine_of(reduce, target.dtype))
    run(target, np.ascontiguousarray(places).reshape(-1), rows)


def adder_of_rows(rows: int, width: int, dtype: np.dtype[Any]) -> Callable[..., Array]:
    """Return what adds rows to those of a copy, for contiguous arrays alike: see `add_at`.

    Examples
    --------
    >>> adder_of_rows(2, 1, np.dtype(float))(np.zeros(2), np.ones(3), np.array([0, 1, 1]))
    array([1., 2.])
    """
    run = _rows(combine_of("sum", dtype))

    def call(array: Array, source: Array, index: Array) -> Array:
        result = array.copy()
        run(result.reshape(rows, width), index, source.reshape(-1, width))
        return result

    return call


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
    reduce_at(target, places, source, "sum")


def divide_by_counts(target: Array, counts: Array) -> None:
    """Make means of sums, in place, by how many elements each has; of integers rounded down.

    Examples
    --------
    >>> sums = np.array([3.0, 0.0])
    >>> divide_by_counts(sums, np.array([2, 0]))
    >>> sums
    array([1.5, 0. ])
    """
    np.maximum(counts, 1, out=counts)
    if target.dtype.kind in "fc":
        target /= counts.astype(target.real.dtype)
    else:
        target //= counts.astype(target.dtype)


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
