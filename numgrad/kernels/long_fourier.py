"""Fourier transforms of many numbers, as many as a power of two: two rounds of short ones.

Numbers n = (n1, n2) in rows of a table, of about the root of the length each: the transforms of
its columns, times a root of 1 for each element, and then those of its rows, whose results lie in
columns (Gentleman and Sande, 1966; Bailey, "FFTs in external or hierarchical memory", 1990). Each
round goes once across memory; what lies between is in a core's own cache. In a round as many
transforms go side by side as numbers fit in a vector.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numgrad.base.tuning import FOURIER_ROUND_BYTES, LONG_FOURIER, THREAD_ELEMENTS_GATHER
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.llvm.butterflies import join, join_turned, pass_of_four, pass_of_two, split
from numgrad.codegen.llvm.pointers import element, store
from numgrad.codegen.llvm.vector_ir import VECTOR
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["is_long", "transform"]

Array = np.ndarray[Any, Any]

SQUARE = 8  # of the squares that are turned: as many complex64 as a cache line holds


@kernel
def _transform(first, second, roots, length, step):  # type: ignore[no-untyped-def]
    """Transform columns of vectors, back and forth; return whether they end up in the second.

    There are `step` columns side by side.
    """
    count, turn, swaps = length, 1, False
    while count > 1:
        radix = 2 if count % 4 else 4
        source, target = (second, first) if swaps else (first, second)
        if radix == 4:
            pass_of_four(source, target, roots, count, step, turn)
        else:
            pass_of_two(source, target, roots, count, step, turn)
        count, step, turn, swaps = count // radix, step * radix, turn * radix, not swaps
    return swaps


@kernel
def _columns(source, table, one, other, roots, turns, more, sizes, inverse, first, last):  # type: ignore[no-untyped-def]
    """Transform blocks of columns, and turn what comes out.

    Rows of the table are `across` apart.
    """
    rows, columns, lanes, across, group = sizes
    for block in range(first, last):
        begin = block * group
        for row in range(rows):
            for k in range(group):
                split(source, row * columns + (begin + k) * lanes, one, row * group + k, inverse)
        found = other if _transform(one, other, roots, rows, group) else one
        for row in range(rows):
            for k in range(group):
                at, number = row * across + (begin + k) * lanes, row * group + k
                join_turned(found, number, table, at, turns, row, more, row * (begin + k))


@kernel
def _rows(numbers, target, one, other, square, turned, roots, sizes, inverse, scale, first, last):  # type: ignore[no-untyped-def]
    """Transform blocks of rows, and store them as columns.

    A square of `numbers`, which are complex, is written by columns to `turned`; that is `square`.
    """
    rows, columns, lanes, across, group = sizes
    for block in range(first * group, last * group):
        for begin in range(0, columns, SQUARE):
            for lane in range(lanes):
                at = (block * lanes + lane) * across + begin
                for k in range(SQUARE):
                    store(turned, k * lanes + lane, element(numbers, at + k))
            for k in range(SQUARE):
                split(square, k * lanes, one, (begin + k) * group + block % group, False)
        if block % group == group - 1:
            found = other if _transform(one, other, roots, columns, group) else one
            for k in range(columns):
                for each in range(group):
                    at = k * rows + (block - block % group + each) * lanes
                    join(found, k * group + each, target, at, inverse, scale)


class _Plan(NamedTuple):
    """What the transforms of a length share."""

    sizes: tuple[int, ...]  # rows, columns, columns in a vector, distance of rows, vectors at once
    of_rows: Array  # the roots of 1 whose number is a column's length
    of_columns: Array
    turns: Array  # of each row, the turns of as many columns as a block has
    more: Array  # the turns of blocks


@functools.lru_cache(2)
def _plan(length: int, dtype: np.dtype[Any]) -> _Plan:
    bits = length.bit_length() - 1
    rows, columns = 1 << (bits + 1) // 2, 1 << bits // 2
    lanes = VECTOR // dtype.itemsize

    def roots(count: int, numbers: Any = None) -> Array:
        angles = np.arange(count) if numbers is None else numbers
        return np.exp(-2j * np.pi / count * angles)

    def pairs(values: Array) -> Array:
        return values.view(np.float64).astype(dtype)

    turns = roots(length, np.multiply.outer(np.arange(rows), np.arange(lanes)))
    turns = np.stack([turns.real, turns.imag], 1).astype(dtype).reshape(-1)
    more = pairs(roots(length // lanes))
    # Rows that are a power of two apart would lie in few of a cache's sets.
    group = max(1, min(columns // lanes, FOURIER_ROUND_BYTES // (2 * rows * VECTOR)))
    sizes = (rows, columns, lanes, columns + lanes, group)
    return _Plan(sizes, pairs(roots(rows)), pairs(roots(columns)), turns, more)


def is_long(length: int) -> bool:
    """Whether transforms of a length are computed here."""
    return length >= LONG_FOURIER and length & (length - 1) == 0


def transform(array: Array, forward: bool, scale: float) -> Array:
    """Return the transforms of rows of complex numbers, times a number.

    >>> transform(np.ones((1, 1 << 18), np.complex64), True, 0.5)[0, :2].tolist()
    [(131072+0j), 0j]
    """
    array = np.ascontiguousarray(array)
    dtype = np.dtype(np.float32 if array.dtype == np.complex64 else np.float64)
    length = array.shape[-1]
    out, plan = empty(array.shape, array.dtype), _plan(length, dtype)
    rows, columns, lanes, across, group = plan.sizes
    table = empty((2 * rows * across,), dtype)
    # Complex numbers as what one instruction moves.
    numbers = table.view(np.float64 if dtype == np.float32 else np.complex128)
    sources, targets = (each.view(dtype).reshape(-1, 2 * length) for each in (array, out))

    def columns_of(source: Array) -> Callable[[int, int], None]:
        def task(first: int, last: int) -> None:
            one, other = (_aligned(2 * rows * lanes * group, dtype) for _ in range(2))
            roots, turns, more = plan.of_rows, plan.turns, plan.more
            given = (table, one, other, roots, turns, more, plan.sizes, not forward)
            _columns(source, *given, first, last)

        return task

    def rows_of(target: Array) -> Callable[[int, int], None]:
        def task(first: int, last: int) -> None:
            one, other = (_aligned(2 * columns * lanes * group, dtype) for _ in range(2))
            square = _aligned(2 * SQUARE * lanes, dtype)
            turned = square.view(numbers.dtype)
            given = (one, other, square, turned, plan.of_columns, plan.sizes, not forward)
            _rows(numbers, target, *given, dtype.type(scale), first, last)

        return task

    for source, target in zip(sources, targets, strict=True):
        grain = max(1, THREAD_ELEMENTS_GATHER // (rows * lanes * group))
        parallel_for(columns_of(source), columns // (lanes * group), grain)
        parallel_for(rows_of(target), rows // (lanes * group), grain)
    return out


def _aligned(count: int, dtype: np.dtype[Any]) -> Array:
    """Return memory for vectors, none of which lies across two lines of the cache."""
    memory = np.empty(count * dtype.itemsize + VECTOR, np.uint8)
    start = -memory.ctypes.data % VECTOR
    return memory[start : start + count * dtype.itemsize].view(dtype)
