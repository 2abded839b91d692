"""Run the folds: lay the array out, split it into parts, share them among threads, join them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from numgrad.kernels.fold_loops import PART, ROWS, TILE
from numgrad.kernels.layout import Array, arrange, restore
from numgrad.kernels.memory import empty
from numgrad.kernels.packing import Strided
from numgrad.kernels.threads import parallel_for

__all__ = ["GRAIN", "Fold", "Run", "part_rows_of", "parts_of", "share", "zero"]

GRAIN = 1 << 18  # elements below which a second thread costs more than it saves

_ZEROS: dict[np.dtype[Any], Array] = {}


def zero(dtype: np.dtype[Any]) -> Array:
    """Return an array of one zero, for folds whose transformation needs no number."""
    try:
        return _ZEROS[dtype]
    except KeyError:
        return _ZEROS.setdefault(dtype, np.zeros(1, dtype))


def part_rows_of(inner: int) -> int:
    """Return how many rows of `inner` elements make a part."""
    return max(ROWS, PART // max(inner, 1))


def parts_of(n: int, part_rows: int) -> int:
    """Return into how many parts n rows are split: one at least."""
    return max(1, -(-n // part_rows))


# run(flat, target, n, inner, first, last) reduces items of flat (outer, n, inner) elements; their
# results begin at number `target` of all results.
Run = Callable[[Array, int, int, int, int, int], None]


def share(run: Run, flat: Array | Strided, outer: int, n: int, inner: int, part_rows: int) -> None:
    """Call `run` for all items of a reduction (see `fold_loops.locate`), in threads where it pays.

    Elements that are not contiguous are gathered for it, in blocks that fit in the cache.
    """
    parts, tiles = parts_of(n, part_rows), -(-inner // TILE)
    items = outer * parts * tiles
    elements = outer * n * inner

    def task(first: int, last: int) -> None:
        if not isinstance(flat, Strided):
            run(flat, 0, n, inner, first, last)
        elif parts == tiles == 1:
            size = n * inner
            group = max(1, PART // max(1, size))
            for begin in range(first, last, group):
                count = min(group, last - begin)
                block = flat.block(begin * size, 1, count * size, 0)
                run(block, begin * inner, n, inner, 0, count)
        else:
            for item in range(first, last):
                block_number, tile = divmod(item, tiles)
                part = block_number % parts
                rows = min(part_rows, n - part * part_rows)
                columns = min(TILE, inner - tile * TILE)
                start = (block_number // parts * n + part * part_rows) * inner + tile * TILE
                if columns == inner:
                    block = flat.block(start, 1, rows * inner, 0)
                else:
                    block = flat.block(start, rows, columns, inner)
                run(block, block_number * inner + tile * TILE, rows, columns, 0, 1)

    if elements < 2 * GRAIN:
        task(0, items)
    else:
        parallel_for(task, items, max(1, items * GRAIN // elements))


class Fold:
    """A reduction that is one associative operation over transformed elements.

    Parameters
    ----------
    kernel : compiled function
        What `make_fold` returned.
    merge : Fold, optional
        Reduces what `kernel` made of the parts; itself if there is no transformation.
    """

    __slots__ = ("kernel", "merge")

    def __init__(self, kernel: Any, merge: Fold | None = None) -> None:
        self.kernel = kernel
        self.merge = self if merge is None else merge

    def __call__(
        self,
        array: Array,
        dims: tuple[int, ...],
        keepdim: bool,
        dtype: np.dtype[Any],
        identity: complex,
        centres: Array | None = None,
    ) -> Array:
        """Reduce `array` over `dims` to an array of `dtype`."""
        if centres is None:
            centres = zero(dtype)
        size = array.size
        if size <= PART and array.flags.c_contiguous:
            # The common small cases, without what only large ones need.
            shape = array.shape
            if len(dims) == len(shape):
                out = np.empty(1, dtype)
                flat = array if len(shape) == 1 else array.reshape(-1)
                self.kernel(flat, out, centres, size, 1, PART, 0, 1, identity)
                return out.reshape((1,) * len(dims) if keepdim else ())
            if len(dims) == 1 and size:
                dim = dims[0]
                n, inner = shape[dim], prod(shape[dim + 1 :])
                left = size // n
                out = np.empty(left, dtype)
                items = left // inner * -(-inner // TILE)
                self.kernel(array.reshape(-1), out, centres, n, inner, PART, 0, items, identity)
                middle = (1,) if keepdim else ()
                return out.reshape(shape[:dim] + middle + shape[dim + 1 :])
        arranged = arrange(array, dims)
        out = self.reduce(
            arranged.flat, arranged.outer, arranged.n, arranged.inner, dtype, identity, centres
        )
        inner = arranged.inner
        groups = list(arranged.rest)
        while groups:
            # What is left is (groups..., inner): the last group that is to go is the next n.
            n, is_reduced = groups.pop()
            if is_reduced:
                outer = prod([size for size, _ in groups])
                out = self.merge.reduce(out, outer, n, inner, dtype, identity, zero(dtype))
            else:
                inner *= n
        return restore(out, arranged, array.shape, dims, keepdim)

    def reduce(
        self,
        flat: Array | Strided,
        outer: int,
        n: int,
        inner: int,
        dtype: np.dtype[Any],
        identity: complex,
        centres: Array,
    ) -> Array:
        """Reduce the middle axis of flat ``(outer, n, inner)`` elements."""
        part_rows = part_rows_of(inner)
        parts = parts_of(n, part_rows)
        out = empty((outer * parts * inner,), dtype)

        def run(flat: Array, target: int, n: int, inner: int, first: int, last: int) -> None:
            results = out[target:] if target else out
            self.kernel(flat, results, centres, n, inner, part_rows, first, last, identity)

        share(run, flat, outer, n, inner, part_rows)
        if parts == 1:
            return out
        return self.merge.reduce(out, outer, parts, inner, dtype, identity, zero(dtype))
