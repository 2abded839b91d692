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
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

__all__ = [
    "PART",
    "ROWS",
    "TILE",
    "accumulate",
    "fold_items",
    "inline",
    "locate",
    "make_scratch",
    "width_of",
]

LANES = 1024  # the least width of a row, where there are elements enough: memory likes long runs
SHORT = 128  # elements below which a row of numbers is not read as several
LAST = 64  # lanes that are left when halving them further no longer fills a register
LEAF = 32  # rows that are combined before the tree begins
TILE = 2 * LANES  # columns handled at once: more than any width made of fewer columns than LANES
PART = 65536  # elements that make a part, at least
ROWS = 256  # and rows, at least

# What is marked so is compiled into the kernels that call it, never on its own. It may be handed
# on as an argument: a dispatcher may too, but that puts its address into the machine code, which
# then cannot be cached.
inline = register_jitable(nogil=True, error_model="numpy", boundscheck=False)


@inline
def combine_rows(a, start, rows, stride, scratch, lanes, centre, width, transform, combine):  # type: ignore[no-untyped-def]
    """Combine up to `LEAF` rows of `a` into `width` elements of `scratch` from `lanes` on."""
    w, t, c = np.uintp(width), np.uintp(lanes), np.uintp(centre)
    i = 0
    while i + 4 <= rows:
        p = start + i * stride
        p0, p1 = np.uintp(p), np.uintp(p + stride)
        p2, p3 = np.uintp(p + 2 * stride), np.uintp(p + 3 * stride)
        for j in range(w):
            x = scratch[c + j]
            pair0 = combine(transform(a[p0 + j], x), transform(a[p1 + j], x))
            pair1 = combine(transform(a[p2 + j], x), transform(a[p3 + j], x))
            scratch[t + j] = combine(scratch[t + j], combine(pair0, pair1))
        i += 4
    while i < rows:
        merge_row(a, start + i * stride, scratch, lanes, centre, width, transform, combine)
        i += 1


@inline
def merge_row(a, start, scratch, lanes, centre, width, transform, combine):  # type: ignore[no-untyped-def]
    """Combine one row of `a` into `scratch`."""
    p, t, c = np.uintp(start), np.uintp(lanes), np.uintp(centre)
    for j in range(np.uintp(width)):
        scratch[t + j] = combine(scratch[t + j], transform(a[p + j], scratch[c + j]))


@inline
def merge_lanes(scratch, lanes, other, width, combine):  # type: ignore[no-untyped-def]
    """Combine `width` elements of `scratch` from `other` on into those from `lanes` on."""
    t, p = np.uintp(lanes), np.uintp(other)
    for j in range(np.uintp(width)):
        scratch[t + j] = combine(scratch[t + j], scratch[p + j])


@inline
def fold_lanes(scratch, n, identity, combine):  # type: ignore[no-untyped-def]
    """Reduce the first `n` elements of `scratch` to a number, eight at a time."""
    total = identity
    i = 0
    if n >= 8:
        r0, r1, r2, r3 = scratch[0], scratch[1], scratch[2], scratch[3]
        r4, r5, r6, r7 = scratch[4], scratch[5], scratch[6], scratch[7]
        i = 8
        while i + 8 <= n:
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
    while i < n:
        total = combine(total, scratch[np.uintp(i)])
        i += 1
    return total


@inline
def fill(array, start, width, value):  # type: ignore[no-untyped-def]
    p = np.uintp(start)
    for j in range(np.uintp(width)):
        array[p + j] = value


@inline
def accumulate(a, start, n, stride, columns, width, scratch, identity, transform, combine):  # type: ignore[no-untyped-def]
    """Reduce a block; the result is in the first `columns` elements of `scratch`.

    Parameters
    ----------
    a : flat array
    start : int
        Where the block begins in `a`.
    n, stride : int
        Rows of the block, and from one to the next.
    columns : int
        Elements that remain.
    width : int
        `columns` times a power of two; more than `columns` only where ``stride == columns``.
    scratch : flat array
        Of `make_scratch`, of the dtype to accumulate in. Its last `TILE` elements are the second
        argument of `transform`, for each lane.
    identity : scalar of that dtype
    transform, combine : compiled functions of two scalars
    """
    centre = scratch.size - TILE
    if stride == columns and columns < 16 and n * columns < SHORT:
        if columns == 1:
            x = scratch[centre]
            for i in range(np.uintp(n)):
                scratch[i] = transform(a[np.uintp(start) + i], x)
            width = n
        else:
            for j in range(columns):
                total = identity
                for i in range(n):
                    element = a[np.uintp(start + i * columns + j)]
                    total = combine(total, transform(element, scratch[centre + j]))
                scratch[j] = total
            return
    else:
        copies = width // columns
        rows = n // copies
        step = width if copies > 1 else stride
        lanes = 0
        leaf = 0
        while leaf == 0 or leaf * LEAF < rows:
            fill(scratch, lanes, width, identity)
            first = start + leaf * LEAF * step
            now = min(LEAF, rows - leaf * LEAF)
            combine_rows(a, first, now, step, scratch, lanes, centre, width, transform, combine)
            leaf += 1
            full = leaf
            while full % 2 == 0:
                merge_lanes(scratch, lanes - TILE, lanes, width, combine)
                lanes -= TILE
                full //= 2
            lanes += TILE
        while lanes > TILE:
            merge_lanes(scratch, lanes - 2 * TILE, lanes - TILE, width, combine)
            lanes -= TILE
        done = rows * copies
        tail = (n - done) * columns
        merge_row(a, start + done * stride, scratch, 0, centre, tail, transform, combine)
        while width > max(columns, LAST if columns == 1 else 1):
            width //= 2
            merge_lanes(scratch, 0, width, width, combine)
    if columns == 1:
        scratch[0] = fold_lanes(scratch, width, identity, combine)


@inline
def width_of(n, inner):  # type: ignore[no-untyped-def]
    """Return the width of the rows as which a block of ``n * inner`` elements is read."""
    width = inner
    while width < LANES and 8 * width <= n * inner:
        width *= 2
    return width


@inline
def make_scratch(n, like):  # type: ignore[no-untyped-def]
    """Return room for `accumulate` in the dtype of `like`: rows for the tree, and one more."""
    levels = 3
    leaves = n // LEAF
    while leaves > 0:
        levels += 1
        leaves //= 2
    return np.empty(levels * TILE, like.dtype)


@inline
def locate(item, n, inner, part_rows):  # type: ignore[no-untyped-def]
    """Return where an item's block begins, its rows and columns, and where its result goes.

    Items number the tiles of the parts of the outer blocks: ``(outer, part, tile)`` in C order.
    """
    tiles = (inner + TILE - 1) // TILE
    parts = (n + part_rows - 1) // part_rows
    if tiles <= 1 and parts <= 1:
        return item * n * inner, n, inner, item * inner
    block, tile = item // tiles, item % tiles
    outer, part = block // parts, block % parts
    rows = min(part_rows, n - part * part_rows)
    columns = min(TILE, inner - tile * TILE)
    start = (outer * n + part * part_rows) * inner + tile * TILE
    return start, rows, columns, block * inner + tile * TILE


@inline
def fold_items(a, out, n, inner, part_rows, first, last, centre, identity, transform, combine):  # type: ignore[no-untyped-def]
    """Reduce the items from `first` to `last`; what every fold's kernel does.

    `a` holds ``(outer, n, inner)`` elements and `out` ``(outer, parts, inner)``. `centre` is the
    second argument of `transform`.
    """
    start_value = out.dtype.type(identity)
    scratch = make_scratch(min(n, part_rows), out)
    fill(scratch, scratch.size - TILE, TILE, out.dtype.type(centre))
    for item in range(first, last):
        start, rows, columns, target = locate(item, n, inner, part_rows)
        width = width_of(rows, inner) if inner <= TILE else columns
        accumulate(a, start, rows, inner, columns, width, scratch, start_value, transform, combine)
        for j in range(np.uintp(columns)):
            out[np.uintp(target) + j] = scratch[j]
