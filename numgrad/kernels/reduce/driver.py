"""Run a reduction: lay the array out, split it into parts, share them among threads, join them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.base.tuning import THREAD_ELEMENTS_SUM
from numgrad.codegen.compile.entries import entry_of
from numgrad.codegen.llvm.run_ir import RUN, RUN_LANES, block_rows, lanes_of_rows
from numgrad.kernels.move.gather_blocks import Strided
from numgrad.kernels.move.layout import Arrangement, Array, arrange, restore
from numgrad.kernels.reduce.few_elements import FewElements, SpecialisedCall
from numgrad.kernels.reduce.order import PART, TILE, steps_of, steps_of_rows
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["Fold", "Run", "Span", "parts_of", "rows_at_once", "share", "spans_of"]

_STEPS = np.dtype(np.int64)
LONG_ROW = 128  # elements from which on rows that lie apart need not be gathered


def rows_at_once(n: int, inner: int) -> int:
    """Return how many of n rows of `inner` elements a kernel reduces in one go: all, or a block."""
    return max(1, n) if n * inner <= PART else block_rows(inner)


def parts_of(n: int, part_rows: int) -> int:
    """Return into how many parts n rows are split: one at least."""
    return max(1, -(-n // part_rows))


# run(flat, target, n, inner, first, last) reduces items of flat (outer, n, inner) elements; their
# results begin at number `target` of all results.
Run = Callable[[Array, int, int, int, int, int], None]


def share(
    run: Run,
    flat: Array | Strided,
    outer: int,
    n: int,
    inner: int,
    part_rows: int,
    grain: int,
) -> None:
    """Call `run` for all items of a reduction (see `spans_of`), in threads where it pays.

    A thread takes `grain` elements at least. Elements that are not contiguous are gathered for it,
    in blocks that fit in the cache.
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
        elif tiles == 1:
            # As many parts of a block at a time as fit.
            group = max(1, PART // (part_rows * inner))
            while first < last:
                block_number, part = divmod(first, parts)
                count = min(group, last - first, parts - part)
                begin = part * part_rows
                rows = min(count * part_rows, n - begin)
                block = flat.block((block_number * n + begin) * inner, 1, rows * inner, 0)
                run(block, first * inner, rows, inner, 0, count)
                first += count
        else:
            for item in range(first, last):
                block_number, tile = divmod(item, tiles)
                part = block_number % parts
                rows = min(part_rows, n - part * part_rows)
                columns = min(TILE, inner - tile * TILE)
                start = (block_number // parts * n + part * part_rows) * inner + tile * TILE
                block = flat.block(start, rows, columns, inner)
                run(block, block_number * inner + tile * TILE, rows, columns, 0, 1)

    if elements < 2 * grain:
        task(0, items)
    else:
        parallel_for(task, items, max(1, items * grain // elements))


class Span(NamedTuple):
    """Items of a reduction that are alike and lie next to each other.

    Attributes
    ----------
    start, target : int
        Where the first element of the first one is, and its first result.
    rows, columns : int
        Of each; there is more than one only where they are whole blocks.
    first_row : int
        The number of the first row in its block.
    items : int
        How many there are.
    """

    start: int
    target: int
    rows: int
    columns: int
    first_row: int
    items: int


def spans_of(n: int, inner: int, part_rows: int, first: int, last: int) -> Iterator[Span]:
    """Yield the items from `first` to `last`, the tiles of the parts of ``(outer, n, inner)``.

    Examples
    --------
    >>> list(spans_of(5, 2, 8, 0, 3))
    [Span(start=0, target=0, rows=5, columns=2, first_row=0, items=3)]
    >>> [span[:5] for span in spans_of(5, 2, 4, 1, 3)]  # parts of at most four rows
    [(8, 2, 1, 2, 4), (10, 4, 4, 2, 0)]
    """
    parts, tiles = parts_of(n, part_rows), -(-inner // TILE)
    if parts == 1 and tiles <= 1:
        yield Span(first * n * inner, first * inner, n, inner, 0, last - first)
        return
    for item in range(first, last):
        block, tile = divmod(item, tiles)
        outer, part = divmod(block, parts)
        row, column = part * part_rows, tile * TILE
        start, target = (outer * n + row) * inner + column, block * inner + column
        yield Span(start, target, min(part_rows, n - row), min(TILE, inner - column), row, 1)


class Fold:
    """A reduction that is one associative operation over transformed elements.

    Parameters
    ----------
    kernel : compiled function
        What `make_fold` returned.
    identity : callable
        ``identity(dtype)`` is the result over no elements.
    merge : Fold, optional
        Reduces what `kernel` made of the parts; itself if there is no transformation.
    """

    __slots__ = ("identity", "kernel", "merge")

    def __init__(
        self,
        kernel: Any,
        identity: Callable[[np.dtype[Any]], complex],
        merge: Fold | None = None,
    ) -> None:
        self.kernel = kernel
        self.identity = identity
        self.merge = self if merge is None else merge

    def __call__(
        self,
        array: Array,
        dims: tuple[int, ...],
        keepdim: bool,
        dtype: np.dtype[Any],
        centres: Array | None = None,
    ) -> Array:
        """Reduce `array` over `dims` to an array of `dtype`."""
        size = array.size
        if 0 < size < 2 * THREAD_ELEMENTS_SUM and array.flags.c_contiguous:
            # The common small cases, without what only large ones need.
            shape = array.shape
            if len(dims) == len(shape):
                flat = array if len(shape) == 1 else array.reshape(-1)
                if size <= PART:
                    out = np.empty(1, dtype)
                    self.kernel(flat, out, centres, steps_of(size, 1, 1), 0, 1)
                else:
                    out = self._reduce_parts(flat, size, 1, dtype, centres)
                return out.reshape((1,) * len(dims) if keepdim else ())
            if len(dims) == 1:
                dim = dims[0]
                n, inner = shape[dim], prod(shape[dim + 1 :])
                block, flat = n * inner, array.reshape(-1)
                is_part = n <= rows_at_once(n, inner)
                if inner <= TILE and (is_part or block == size):
                    if is_part:
                        count = size // block
                        out = np.empty(count * inner, dtype)
                        self.kernel(flat, out, centres, steps_of(n, inner, inner), block, count)
                    else:
                        out = self._reduce_parts(flat, n, inner, dtype, centres)
                    middle = (1,) if keepdim else ()
                    return out.reshape(shape[:dim] + middle + shape[dim + 1 :])
        arranged = arrange(array, dims)
        out = self.reduce(arranged.flat, arranged.outer, arranged.n, arranged.inner, dtype, centres)
        return self.finish(out, arranged, array.shape, dims, keepdim)

    def finish(
        self,
        out: Array,
        arranged: Arrangement,
        shape: tuple[int, ...],
        dims: tuple[int, ...],
        keepdim: bool,
    ) -> Array:
        """Reduce what is left when the last group of dims is, and give the result its shape."""
        inner = arranged.inner
        groups = list(arranged.rest)
        while groups:
            # What is left is (groups..., inner): the last group that is to go is the next n.
            n, is_reduced = groups.pop()
            if is_reduced:
                outer = prod([size for size, _ in groups])
                out = self.merge.reduce(out, outer, n, inner, out.dtype)
            else:
                inner *= n
        return restore(out, arranged, shape, dims, keepdim)

    def specialised(
        self,
        blocks: FewElements,
        source: np.dtype[Any],
        dtype: np.dtype[Any],
        result: np.dtype[Any],
        steps: Array | None = None,
    ) -> SpecialisedCall:
        """Return a function that reduces the blocks of `source` elements to `dtype`.

        Its result is of the dtype `result`, which differs where bools are reduced as bytes. The
        `steps` are those that the kernel follows, if others than usual.
        """
        entry = entry_of(self.kernel, source, dtype, None, _STEPS, int, int)
        outer, n, inner, shape = blocks
        empty, size = np.empty, n * inner
        steps = blocks.steps if steps is None else steps

        def call(array: Array) -> Array:
            out = empty(shape, result)
            entry(array.ravel(), out.ravel(), None, steps, size, outer)
            return out

        return call

    def _reduce_parts(
        self, flat: Array, n: int, inner: int, dtype: np.dtype[Any], centres: Array | None
    ) -> Array:
        """Do what `reduce` does, in this thread, for one block of several parts."""
        part_rows = block_rows(inner)
        whole, rest = divmod(n, part_rows)
        parts, size = parts_of(n, part_rows), part_rows * inner
        out = np.empty(parts * inner, dtype)
        self.kernel(flat, out, centres, steps_of(part_rows, inner, inner), size, whole)
        if rest:
            flat, last = flat[whole * size :], out[whole * inner :]
            self.kernel(flat, last, centres, steps_of(rest, inner, inner), 0, 1)
        if parts > rows_at_once(parts, inner):
            return self.merge._reduce_parts(out, parts, inner, dtype, None)
        result = np.empty(inner, dtype)
        self.merge.kernel(out, result, None, steps_of(parts, inner, inner), 0, 1)
        return result

    def reduce(
        self,
        flat: Array | Strided,
        outer: int,
        n: int,
        inner: int,
        dtype: np.dtype[Any],
        centres: Array | None = None,
    ) -> Array:
        """Reduce the middle axis of flat ``(outer, n, inner)`` elements."""
        part_rows = rows_at_once(n, inner)
        parts, lanes = parts_of(n, part_rows), lanes_of_rows(inner)
        if isinstance(flat, Strided) and centres is None:
            direct = self._reduce_apart(flat, outer, n, inner, dtype)
            if direct is not None:
                return direct
        out = empty((outer * parts * inner,), dtype)

        def run(flat: Array, target: int, n: int, inner: int, first: int, last: int) -> None:
            results = out[target:] if target else out
            self.run(flat, results, centres, n, inner, part_rows, lanes, first, last)

        share(run, flat, outer, n, inner, part_rows, THREAD_ELEMENTS_SUM)
        if parts == 1:
            return out
        return self.merge.reduce(out, outer, parts, inner, dtype)

    def _reduce_apart(
        self, flat: Strided, outer: int, n: int, inner: int, dtype: np.dtype[Any]
    ) -> Array | None:
        """Reduce rows that lie anywhere, without gathering them; None if this is not worth it.

        The elements of a row lie next to each other, or are the same one.
        """
        if flat.shape.size != 2:
            return None
        (rows, columns), (row_step, step) = flat.shape.tolist(), flat.strides.tolist()
        if (rows, columns) not in ((outer, n), (n, inner)) and outer * inner > 1:
            return None  # what is reduced is part of a row, or rows and a part
        kernel = self.kernel
        if inner == 1 and step in (0, 1) and (outer == 1 or step == 0):
            if columns < RUN_LANES:
                return None
            # A block goes on in the next row where all elements are reduced to one.
            runs = parts_of(n, RUN)
            out = empty((outer * runs,), dtype)
            elements = flat.source[flat.origin :]

            def runs_of_one(first: int, last: int) -> None:
                start, stop = first * RUN, min(last * RUN, n)
                steps = steps_of_rows(start, stop - start, columns, row_step, step)
                kernel(elements, out[first:], None, steps, 0, 1)

            def runs_of_each(first: int, last: int) -> None:
                steps = steps_of_rows(first * n, n, columns, row_step, step)
                kernel(elements, out[first * runs :], None, steps, n, last - first)

            if outer == 1:
                parallel_for(runs_of_one, runs, THREAD_ELEMENTS_SUM // RUN)
            else:
                parallel_for(runs_of_each, outer, max(1, THREAD_ELEMENTS_SUM // n))
            return out if runs == 1 else self.merge.reduce(out, outer, runs, 1, dtype)
        if step != 1:
            return None
        if inner == 1:
            if n > PART or n < LONG_ROW:
                return None
            out = empty((outer,), dtype)
            steps = steps_of(n, 1, 1)

            def whole_rows(first: int, last: int) -> None:
                start = first * row_step
                block = flat.source[flat.origin + start :]
                kernel(block, out[first:], None, steps, row_step, last - first)

            parallel_for(whole_rows, outer, max(1, THREAD_ELEMENTS_SUM // n))
            return out
        if lanes_of_rows(columns) > 1:
            return None
        part_rows = block_rows(columns)
        parts, tiles = parts_of(rows, part_rows), -(-columns // TILE)
        out = empty((parts * columns,), dtype)

        def blocks(first: int, last: int) -> None:
            for item in range(first, last):
                part, tile = divmod(item, tiles)
                height = min(part_rows, rows - part * part_rows)
                width = min(TILE, columns - tile * TILE)
                start = flat.origin + part * part_rows * row_step + tile * TILE
                results = out[part * columns + tile * TILE :]
                steps = steps_of(height, width, row_step, 1)
                kernel(flat.source[start:], results, None, steps, 0, 1)

        parallel_for(
            blocks, parts * tiles, max(1, THREAD_ELEMENTS_SUM * parts * tiles // (rows * columns))
        )
        return out if parts == 1 else self.merge.reduce(out, 1, parts, columns, dtype)

    def run(
        self,
        flat: Array,
        results: Array,
        centres: Array | None,
        n: int,
        inner: int,
        part_rows: int,
        lanes: int,
        first: int,
        last: int,
    ) -> None:
        """Reduce the items from `first` to `last` (see `spans_of`).

        The elements are flat ``(outer, n, inner)``, the results flat
        ``(outer, parts, inner)``; each has a centre, or there is one for all, or none. There are so
        many `lanes` for each column.
        """
        if first == last:
            return
        if not n:
            results[first * inner : last * inner] = self.identity(results.dtype)
            return
        kernel = self.kernel
        if n <= part_rows and inner <= TILE:
            start, target, count = first * n * inner, first * inner, last - first
            if start or (centres is not None and centres.size > 1):
                flat, results = flat[start:], results[target:]
                centres = centres_from(centres, target)
            kernel(flat, results, centres, steps_of(n, inner, inner, lanes), n * inner, count)
            return
        parts, tiles = parts_of(n, part_rows), -(-inner // TILE)
        while first < last:
            # As many items as are alike and evenly spaced.
            block, tile = divmod(first, tiles)
            outer, part = divmod(block, parts)
            rows = min(part_rows, n - part * part_rows)
            start = (outer * n + part * part_rows) * inner + tile * TILE
            target = block * inner + tile * TILE
            own, out = centres_from(centres, target), results[target:]
            if tiles == 1:
                count = min(last - first, max(1, n // part_rows - part))
                steps = steps_of(rows, inner, inner, lanes)
                kernel(flat[start:], out, own, steps, rows * inner, count)
            else:
                count = min(last - first, max(1, inner // TILE - tile))
                columns = min(TILE, inner - tile * TILE)
                steps = steps_of(rows, columns, inner, lanes)
                kernel(flat[start:], out, own, steps, TILE, count)
            first += count


def centres_from(centres: Array | None, target: int) -> Array | None:
    """Return the centres of results from number `target` on; one for all stays as it is."""
    return centres if centres is None or centres.size == 1 else centres[target:]
