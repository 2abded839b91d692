"""The order of summation: how every reduction combines its elements, whatever the machine.

(Products of floating point numbers have an order of their own: `numgrad.kernels.reduce.products`.)
It is the same in eager mode and in what `jit` compiles, so both give the same bits. An array is
looked at as ``(outer, n, inner)`` elements, n of which make one result, `inner` results side by
side. It says in which order these n are combined, from their number and from `inner` alone:

1. They are taken in *blocks* of `block_rows` of inner. Each begins with the operation's identity.
2. In a block, element i goes to *lane* ``i % lanes_of_rows(inner)``, and each lane combines its
   elements one after the other.
3. The upper half of the lanes is combined into the lower half, until one lane is left.
4. If there are several blocks, their results are reduced in turn, as if they were the array.

Where the results lie side by side far enough to fill vector registers there is one lane; a sum of
all elements, or over the last dim, has `RUN_LANES` of them and blocks of `RUN` elements. No step
carries a value from one lane to the next, so all are done on vectors, and the result is the same on
every CPU and with any number of threads. The rounding error grows with the logarithm of n.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.pipelines import AS_WRITTEN, LEAN
from numgrad.codegen.llvm.combine_ir import Combine
from numgrad.codegen.llvm.fold_ir import (
    FOLD,
    FOLD_LANES,
    FOLD_REPEATS,
    FOLD_ROWS,
    OUT,
    TREE,
    Transform,
    make_follow,
)
from numgrad.codegen.llvm.run_ir import RUN, block_rows, lanes_of_rows

__all__ = ["PART", "TILE", "make_fold", "steps_in_turn", "steps_of", "steps_of_rows"]

Array = np.ndarray[Any, Any]

TILE = 2048  # columns handled at once: what a core's nearest cache holds of some rows
PART = 65536  # elements that are reduced in one go


@lru_cache(maxsize=1024)
def steps_of(rows: int, columns: int, row_step: int, lanes: int = 0, block: int = 0) -> Array:
    """Return what `make_follow` follows to reduce rows to their columns.

    Parameters
    ----------
    rows, columns : int
        The size of what is reduced; neither is 0. There are `block_rows` squared at most.
    row_step : int
        How far the rows lie apart.
    lanes : int
        How many lanes there are for each column; more than one only where rows lie next to each
        other. Unless given, as many as for so many columns side by side, or then one.
    block : int
        How many rows make a block; unless given, `block_rows`.

    Examples
    --------
    >>> steps_of(3, 600, 700)[4:]  # one leaf of three rows from 0 on, 600 wide, is the result
    array([ -1,   0,   1,   3, 600])
    """
    if not lanes:
        lanes = lanes_of_rows(columns) if row_step == columns else 1
    if columns == 1 and lanes > 1:
        runs = -(-rows // RUN)
        steps = [OUT if runs == 1 else 0, 0, rows, FOLD, 1]
        if runs > 1:
            steps += [OUT, 0, runs, FOLD_LANES, 1]
        return np.array([runs + 1, 1, 1, lanes, *steps], np.int64)
    block = block or block_rows(columns, lanes)
    blocks, width = -(-rows // block), lanes * columns
    base = width  # behind the lanes of a block are the results of all
    steps = []
    for number in range(blocks):
        first = number * block
        target = OUT if blocks == 1 else base + number * columns
        steps += _block_steps(target, first, min(block, rows - first), lanes, columns, row_step)
    if blocks > 1:
        steps += [OUT, base, blocks, 0, columns]
    room = base + blocks * columns + width  # the last lanes are for the centres
    return np.array([room, columns, lanes * row_step, lanes, *steps], np.int64)


def steps_of_rows(first: int, count: int, length: int, row_step: int, step: int) -> Array:
    """Return what `make_follow` follows to reduce each block of elements of rows that lie apart.

    Parameters
    ----------
    first, count : int
        Which element is the first one, and how many there are; each `RUN` of them give a result.
    length, row_step : int
        How many elements a row has, `RUN_LANES` at least, and how far the rows lie apart.
    step : int
        How far the elements of a row lie apart: 1, or 0 if all are its first one.

    Examples
    --------
    >>> steps_of_rows(0, 500, 100, 150, 1)[4:]  # one block of five rows
    array([ -1,   0, 500,  -3, 100])
    """
    kind = FOLD_ROWS if step else FOLD_REPEATS
    return np.array([1, -(-count // RUN), row_step, 1, OUT, first, count, kind, length], np.int64)


@lru_cache(maxsize=1024)
def steps_in_turn(rows: int, columns: int, row_step: int, begins: bool) -> Array:
    """Return what `make_follow` follows to combine rows one after the other, in no blocks.

    Parameters
    ----------
    rows, columns, row_step : int
        As for `steps_of`.
    begins : bool
        Whether the first row is the first of all; if not, they are combined into the result.

    Examples
    --------
    >>> steps_in_turn(3, 5, 5, True)[4:]  # three rows from 0 on, 5 wide, are the result
    array([-1,  0,  1,  3,  5])
    """
    steps: list[int] = []
    for row in range(0, rows, TREE):
        is_first = begins and row == 0
        steps += [OUT, row * row_step, is_first, min(TREE, rows - row), columns]
    return np.array([1, columns, row_step, 1, *steps], np.int64)


def _block_steps(
    target: int, first: int, rows: int, lanes: int, columns: int, row_step: int
) -> list[int]:
    """Reduce the rows of one block."""
    if rows == 1:
        return [target, first * row_step, 1, 1, columns]
    place = target if lanes == 1 else 0
    whole, rest = divmod(rows, lanes)
    steps: list[int] = []
    step, width = lanes * row_step, lanes * columns
    for row in range(0, whole, TREE):
        at = first * row_step + row * step
        steps += [place, at, row == 0, min(TREE, whole - row), width]
    if rest:
        steps += [place, first * row_step + whole * step, whole == 0, 1, rest * columns]
    return steps if lanes == 1 else [*steps, target, 0, min(rows, lanes), 0, columns]


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
    return kernel(fold, AS_WRITTEN if transform.emit else LEAN)
