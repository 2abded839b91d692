"""The loop that every reduction runs: one fixed order of operations, whatever the machine.

A block of ``n * inner`` contiguous elements, to be reduced to ``inner``, is read as rows of
``width`` elements, a power of two times `inner`, so that short and long last axes alike fill vector
registers:

1. Four rows at a time are combined pairwise, element by element, into a row of *lanes*; `LEAF`
   rows make a leaf.
2. Leaves are combined in a binary tree, as a binary counter counts: two leaves make a pair, two
   pairs a four.
3. What is left of the last row is combined into the first lanes; then the lanes are folded in half
   until `inner` remain.

No step carries a value from one lane to the next, so LLVM vectorises it without being allowed to
reorder anything, and the result is the same on every CPU. The rounding error grows with the
logarithm of n. Longer blocks are split into parts (`PART`, `ROWS`); the parts are reduced again, as
an array of their own. How an array is split depends on its shape alone, so threads can take parts
in any order.

Inner loops index flat arrays with unsigned numbers. For signed ones Numba asks at every element
whether it counts from the end, and then LLVM does not vectorise; for slices it counts references.
And a fold is one long function, because its compile time counts: LLVM optimises a function again in
each of its callers, and the same code in six functions took three times as long to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from numgrad.kernels.compile import kernel

__all__ = ["LANES", "PART", "ROWS", "SHORT", "SHORT_ROW", "TILE", "inline", "locate", "make_fold"]

LANES = 1024  # the least width of a row, where there are elements enough: memory likes long runs
TILE = 2 * LANES  # columns handled at once: more than any width made of fewer columns than LANES
LEAF = 32  # rows that are combined before the tree begins
SHORT = 128  # elements below which a block is not read as rows
SHORT_ROW = 512  # and below which one that is reduced to one number is not
LAST = 64  # lanes that are left when halving them further no longer pays
PART = 65536  # elements that make a part, at least
ROWS = 256  # and rows, at least

# Marks scalar functions to be built into loops. (A dispatcher would put its address into the
# machine code where it is handed on as an argument, and such code can't be cached.)
inline = register_jitable(nogil=True, error_model="numpy", boundscheck=False)


@inline
def locate(item, n, inner, part_rows, parts):  # type: ignore[no-untyped-def]
    """Return where an item's block begins, its rows and columns, and where its result goes.

    Items number the tiles of the parts of the outer blocks: ``(outer, part, tile)`` in C order.
    How many parts there are is for the caller to say, once for all items: a division takes as long
    as a short row.
    """
    tiles = (inner + TILE - 1) // TILE
    if tiles <= 1 and parts <= 1:
        return item * n * inner, n, inner, item * inner
    block, tile = item // tiles, item % tiles
    outer, part = block // parts, block % parts
    rows = min(part_rows, n - part * part_rows)
    columns = min(TILE, inner - tile * TILE)
    start = (outer * n + part * part_rows) * inner + tile * TILE
    return start, rows, columns, block * inner + tile * TILE


def make_fold(name: str, transform: Any, combine: Any) -> Any:
    """Return the kernel that combines transformed elements.

    Parameters
    ----------
    name : str
        What to call it.
    transform : function marked `inline`
        ``transform(x, centre)`` gives what is combined.
    combine : function marked `inline`
        An associative and commutative operation on two such values.

    Returns
    -------
    kernel
        ``kernel(a, out, centres, n, inner, part_rows, first, last, identity)`` reduces the items
        from `first` to `last` (see `locate`) of flat ``(outer, n, inner)`` elements `a` to flat
        ``(outer, parts, inner)`` elements `out`, in the dtype of `out`. `centres` has that dtype
        too and holds the second argument of `transform`: one number, or one for each of `out`.

    Examples
    --------
    >>> @inline
    ... def multiples(x, factor):
    ...     return factor * x
    >>> @inline
    ... def add(x, y):
    ...     return x + y
    >>> fold = make_fold("sum_of_multiples", multiples, add)
    >>> out = np.empty(2)
    >>> fold(np.arange(6.0), out, np.array([10.0]), 3, 1, PART, 0, 2, 0.0)
    >>> out
    array([ 30., 120.])
    """

    def fold(a, out, centres, n, inner, part_rows, first, last, identity):  # type: ignore[no-untyped-def]
        nothing = out.dtype.type(identity)
        narrow = n < SHORT_ROW if inner == 1 else inner < 16 and n * inner < SHORT
        room = SHORT_ROW
        if not narrow:
            # For the levels of the tree, each of TILE lanes, and for the centre of each lane.
            room = 3 * TILE
            leaves = min(n, part_rows) // LEAF
            while leaves > 0:
                room += TILE
                leaves //= 2
        scratch = np.empty(room, out.dtype)
        centre = np.uintp(max(0, room - TILE))
        if not narrow:
            for j in range(np.uintp(TILE)):
                scratch[centre + j] = centres[0]

        parts = (n + part_rows - 1) // part_rows
        for item in range(first, last):
            start, rows, columns, target = locate(item, n, inner, part_rows, parts)
            at = np.uintp(target)
            if narrow:
                live = rows
                for j in range(inner):
                    x = centres[target + j] if centres.size > 1 else centres[0]
                    if inner == 1:
                        for i in range(np.uintp(rows)):
                            scratch[i] = transform(a[np.uintp(start) + i], x)
                        continue
                    total = nothing
                    for i in range(rows):
                        total = combine(total, transform(a[np.uintp(start + i * inner + j)], x))
                    out[at + np.uintp(j)] = total
                if inner > 1:
                    continue
                while live > LAST:
                    half = (live + 1) // 2
                    other = np.uintp(half)
                    for j in range(np.uintp(live - half)):
                        scratch[j] = combine(scratch[j], scratch[other + j])
                    live = half
            else:
                live = columns
                if inner <= TILE:
                    while live < LANES and 8 * live <= rows * inner:
                        live *= 2
                width = np.uintp(live)
                if centres.size > 1:
                    for j in range(np.uintp(columns)):
                        scratch[centre + j] = centres[at + j]
                    for j in range(columns, live):
                        scratch[centre + np.uintp(j)] = scratch[centre + np.uintp(j - columns)]

                # 1. Leaves, 2. combined as soon as two of a kind are there, and at the end.
                copies = live // columns
                long_rows = rows // copies
                step = live if copies > 1 else inner
                level, leaf, full = 0, 0, 1
                while leaf == 0 or leaf * LEAF < long_rows:
                    lanes = np.uintp(level)
                    for j in range(width):
                        scratch[lanes + j] = nothing
                    i = leaf * LEAF
                    stop = min(i + LEAF, long_rows)
                    while i + 4 <= stop:
                        p = start + i * step
                        p0, p1 = np.uintp(p), np.uintp(p + step)
                        p2, p3 = np.uintp(p + 2 * step), np.uintp(p + 3 * step)
                        for j in range(width):
                            x = scratch[centre + j]
                            pair0 = combine(transform(a[p0 + j], x), transform(a[p1 + j], x))
                            pair1 = combine(transform(a[p2 + j], x), transform(a[p3 + j], x))
                            scratch[lanes + j] = combine(scratch[lanes + j], combine(pair0, pair1))
                        i += 4
                    while i < stop:
                        p0 = np.uintp(start + i * step)
                        for j in range(width):
                            value = transform(a[p0 + j], scratch[centre + j])
                            scratch[lanes + j] = combine(scratch[lanes + j], value)
                        i += 1
                    leaf += 1
                    full = leaf
                    is_last = leaf * LEAF >= long_rows
                    while level > 0 and (full % 2 == 0 or is_last):
                        lanes, other = np.uintp(level - TILE), np.uintp(level)
                        for j in range(width):
                            scratch[lanes + j] = combine(scratch[lanes + j], scratch[other + j])
                        level -= TILE
                        full //= 2
                    level += TILE

                # 3. The rest, and the lanes.
                done = long_rows * copies
                p0 = np.uintp(start + done * inner)
                for j in range(np.uintp((rows - done) * columns)):
                    value = transform(a[p0 + j], scratch[centre + j])
                    scratch[j] = combine(scratch[j], value)
                least = LAST if columns == 1 else columns
                while live > least:
                    live //= 2
                    other = np.uintp(live)
                    for j in range(other):
                        scratch[j] = combine(scratch[j], scratch[other + j])
            if columns > 1:
                for j in range(np.uintp(columns)):
                    out[at + j] = scratch[j]
                continue

            # One number remains to be made of few, eight at a time.
            total = nothing
            i = 0
            if live >= 8:
                r0, r1, r2, r3 = scratch[0], scratch[1], scratch[2], scratch[3]
                r4, r5, r6, r7 = scratch[4], scratch[5], scratch[6], scratch[7]
                i = 8
                while i + 8 <= live:
                    p = np.uintp(i)
                    r0 = combine(r0, scratch[p])
                    r1 = combine(r1, scratch[p + np.uintp(1)])
                    r2 = combine(r2, scratch[p + np.uintp(2)])
                    r3 = combine(r3, scratch[p + np.uintp(3)])
                    r4 = combine(r4, scratch[p + np.uintp(4)])
                    r5 = combine(r5, scratch[p + np.uintp(5)])
                    r6 = combine(r6, scratch[p + np.uintp(6)])
                    r7 = combine(r7, scratch[p + np.uintp(7)])
                    i += 8
                half0 = combine(combine(r0, r1), combine(r2, r3))
                half1 = combine(combine(r4, r5), combine(r6, r7))
                total = combine(total, combine(half0, half1))
            while i < live:
                total = combine(total, scratch[np.uintp(i)])
                i += 1
            out[at] = total

    fold.__name__ = name
    fold.__qualname__ = f"make_fold.{name}"  # equal names would have to mean equal code
    return kernel(fold)
