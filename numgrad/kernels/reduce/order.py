"""The order of summation: how every reduction combines its elements, whatever the machine.

A block of ``rows * columns`` elements, to be reduced to ``columns``, is read as longer rows where
its own lie next to each other: of ``width`` elements, a power of two times `columns`, so that short
and long last axes alike fill vector registers:

1. `TREE` rows at a time are combined pairwise, element by element, into a row of *lanes*; `LEAF`
   rows make a leaf.
2. Leaves are combined in a binary tree, as a binary counter counts: two leaves make a pair, two
   pairs a four.
3. What is left of the last row is combined into the first lanes; then the lanes are folded in half
   until `columns` remain.

No step carries a value from one lane to the next, so all are done on vectors (`fold_ir`), and the
result is the same on every CPU. The rounding error grows with the logarithm of n. Longer blocks are
split into parts (`PART`, `ROWS`); the parts are reduced again, as an array of their own. How an
array is split depends on its shape alone, so threads can take parts in any order.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.numba_pipeline import LeanCompiler, PlainCompiler
from numgrad.codegen.llvm.fold_ir import FOLD, FOLDED, OUT, TREE, Combine, Transform, make_follow

__all__ = ["LANES", "LEAF", "PART", "ROWS", "TILE", "make_fold", "steps_of"]

Array = np.ndarray[Any, Any]

LANES = 1024  # the least width of a row, where there are elements enough: memory likes long runs
TILE = 2 * LANES  # columns handled at once: more than any width made of fewer columns than LANES
LEAF = 4 * TREE  # rows that are combined before the tree of leaves begins
PART = 65536  # elements that make a part, at least
ROWS = 256  # and rows, at least


@lru_cache(maxsize=1024)
def steps_of(rows: int, columns: int, row_step: int) -> Array:
    """Return what `make_follow` follows to reduce rows to their columns.

    Parameters
    ----------
    rows, columns : int
        The size of the block; neither is 0.
    row_step : int
        How far the rows lie apart. If that is `columns`, rows are read as longer ones.

    Examples
    --------
    >>> steps_of(3, 2, 5)[3:]  # one leaf of three rows from 0 on, two wide, is the result
    array([-1,  0,  1,  3,  2])
    """
    doublings = 0
    if row_step == columns:
        # Up to LANES, or to few rows.
        doublings = min((rows >> 3).bit_length(), ((LANES - 1) // columns).bit_length())
        if rows >= FOLDED:
            doublings = max(doublings, ((FOLDED - 1) // columns).bit_length())
    width, long_rows, row_step = columns << doublings, rows >> doublings, row_step << doublings
    steps: list[int] = []
    # The first lanes are the result itself if nothing has to be folded.
    places = [0 if doublings else OUT]
    level = 0
    for leaf, row in enumerate(range(0, long_rows, LEAF)):
        for first in range(row, min(row + LEAF, long_rows), TREE):
            count = min(TREE, long_rows - first)
            steps += [places[level], first * row_step, first == row, count, width]
        full = leaf + 1
        while level and (full % 2 == 0 or row + LEAF >= long_rows):
            steps += [places[level - 1], places[level - 1], places[level], 0, width]
            level -= 1
            full //= 2
        level += 1
        if level == len(places):
            places.append(places[-1] + width if places[-1] != OUT else 0)
    rest = (rows - (long_rows << doublings)) * columns
    if rest:
        steps += [places[0], long_rows * row_step, 0, 1, rest]
    live = width
    while live > columns:
        if live == FOLDED and columns == 1:
            steps += [OUT, 0, 0, FOLD, 1]
            break
        live //= 2
        steps += [0 if live > columns else OUT, 0, live, 0, live]
    room = (len(places) + 1) * width  # the last lanes are for the centres
    return np.array([room, columns, row_step, *steps], np.int64)


def make_fold(name: str, transform: Transform, combine: Combine) -> Any:
    """Return the kernel that combines transformed elements.

    Parameters
    ----------
    name : str
        What to call it.
    transform : Transform
        What is combined.
    combine : Combine
        The operation.

    Returns
    -------
    kernel
        ``kernel(a, out, centres, steps, item_step, count)`` reduces `count` blocks of flat elements
        `a` to `out`, in the dtype of `out`, by following `steps` (see `steps_of`). The first block
        of `a` begins at 0, the next ones `item_step` further on. `centres` has the dtype of `out`
        and holds the second argument of `transform`: one number, or one for each of `out`; None if
        there is none.

    Examples
    --------
    >>> from numgrad.kernels.reduce.operations import MAX
    >>> out = np.empty(2)
    >>> MAX.kernel(np.array([1.0, 5.0, 2.0, 4.0, 3.0, 6.0]), out, None, steps_of(3, 1, 1), 3, 2)
    >>> out
    array([5., 6.])
    """
    follow = make_follow(transform, combine)

    def fold(a, out, centres, steps, item_step, count):  # type: ignore[no-untyped-def]
        follow(a, out, centres, steps, item_step, count)

    fold.__name__ = name
    fold.__qualname__ = f"make_fold.{name}"  # equal names would have to mean equal code
    return kernel(fold, PlainCompiler if transform.emit else LeanCompiler)
