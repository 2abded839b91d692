"""Products of floating point numbers, in the order that PyTorch multiplies them in on a CPU.

Partial products overflow or vanish much sooner than sums do, so the order shows in more than the
last digits: 1e200, 1e200 and 1e-200 give inf, or 1e200. It goes by how the elements lie in memory:

- Where those that make one result lie side by side, all of them or some at a time (*runs*), each
  run is multiplied in lanes (`numgrad.codegen.llvm.product_ir`) as far as these can be filled, and
  its last elements one after the other. So are the runs.
- Elsewhere elements are multiplied one after the other, as memory has them.

It is the same in eager mode and in what `jit` compiles, with any number of threads, and PyTorch's
whatever the processor. There is one exception: of more than `PART` elements that make one number,
each `PART` are multiplied first (PyTorch does so with as many as it has threads).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.tuning import PRODUCT_ROWS, THREAD_ELEMENTS_SUM
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.entries import entry_of
from numgrad.codegen.compile.pipelines import LEAN
from numgrad.codegen.llvm.pointers import element, store
from numgrad.codegen.llvm.product_ir import product_lanes, product_of_lanes
from numgrad.kernels.move.gather_blocks import Strided
from numgrad.kernels.move.layout import (
    Arrangement,
    Array,
    arrange,
    arranged,
    flat_of,
    reduced_shape,
    restore,
)
from numgrad.kernels.reduce.driver import share, spans_of
from numgrad.kernels.reduce.few_elements import FewElements, SpecialisedCall
from numgrad.kernels.reduce.operations import PROD
from numgrad.kernels.reduce.order import PART, steps_in_turn
from numgrad.runtime.memory import empty

__all__ = ["prod", "specialised"]

Dims = tuple[int, ...]


def _rows(a, out, n, run, lanes, first, last):  # type: ignore[no-untyped-def]
    """Multiply rows of n elements, by runs of which so many elements at a time fill `lanes`."""
    whole = run - run % lanes if lanes else 0
    for row in range(first, last):
        start = row * n
        end = start + n
        total = out.dtype.type(1)
        while start < end:
            if whole:
                total = total * product_of_lanes(a, start, whole)
            for k in range(start + whole, start + run):
                total = total * element(a, k)
            start += run
        store(out, row, total)


_OF_ROWS = kernel(_rows, LEAN)


def _in_memory(array: Array, dims: Dims) -> tuple[Arrangement, int]:
    """Lay out an array for a product, and return how many elements of a row lie side by side."""
    if array.flags.c_contiguous:
        found = arrange(array, dims)
        if not found.rest:
            return found, found.n if found.inner == 1 else 1
    for dim in dims:
        if array.strides[dim] < 0:
            array = np.flip(array, dim)
    shape, strides = array.shape, array.strides
    reduced = sorted(dims, key=lambda dim: -abs(strides[dim]))
    step, run = array.itemsize, 1
    for dim in reversed([dim for dim in reduced if shape[dim] != 1]):
        if strides[dim] != step:
            break
        run, step = run * shape[dim], step * shape[dim]
    if run < product_lanes(array.dtype):
        return arrange(array, dims, adjacent=True), 1
    kept = sorted(
        [dim for dim in range(array.ndim) if dim not in dims], key=lambda dim: -abs(strides[dim])
    )
    order = [*kept, *reduced]
    return arranged(flat_of(array.transpose(order)), shape, dims, order), run


def prod(array: Array, dims: Dims, keepdim: bool = False) -> Array:
    """Multiply real or complex floating point numbers. Mirrors ``torch.prod``.

    Examples
    --------
    >>> prod(np.array([1e200, 1e200, 1e-200]), (0,))
    array(inf)
    """
    if not array.size:
        return np.ones(reduced_shape(array.shape, dims, keepdim), array.dtype)
    found, run = _in_memory(array, dims)
    out = _multiplied(found.flat, found.outer, found.n, found.inner, run)
    return restore(out, found, array.shape, dims, keepdim)


def _multiplied(flat: Array | Strided, outer: int, n: int, inner: int, run: int) -> Array:
    """Multiply the middle axis of flat ``(outer, n, inner)`` elements."""
    lanes = product_lanes(flat.dtype)
    if run < lanes:
        run, lanes = n, 0
    if inner > 1:
        return _columns(flat, outer, n, inner)
    part = PART if outer == 1 and run == n else n
    parts = -(-n // part)
    out = empty((outer * parts,), flat.dtype)

    def rows(flat: Array, target: int, n: int, inner: int, first: int, last: int) -> None:
        whole = min(last, len(flat) // part)
        _OF_ROWS(flat, out[target:], part, min(run, part), lanes, first, whole)
        if whole < last:  # the last part, which is shorter
            rest, start = len(flat) - whole * part, whole * part
            _OF_ROWS(flat[start:], out[target + whole :], rest, rest, lanes, 0, 1)

    share(rows, flat, outer, n, 1, part, THREAD_ELEMENTS_SUM)
    return out if parts == 1 else _multiplied(out, 1, parts, 1, parts)


def _columns(flat: Array | Strided, outer: int, n: int, inner: int) -> Array:
    """Do what `_multiplied` does for results side by side: in turn, row by row."""
    out = empty((outer * inner,), flat.dtype)

    def tiles(flat: Array, target: int, n: int, inner: int, first: int, last: int) -> None:
        for span in spans_of(n, inner, n, first, last):
            for row in range(0, n, PRODUCT_ROWS):
                steps = steps_in_turn(min(PRODUCT_ROWS, n - row), span.columns, inner, row == 0)
                begin, results = flat[span.start + row * inner :], out[target + span.target :]
                PROD.kernel(begin, results, None, steps, n * inner, span.items)

    share(tiles, flat, outer, n, inner, n, THREAD_ELEMENTS_SUM)
    return out


def specialised(blocks: FewElements, dtype: np.dtype[Any]) -> SpecialisedCall:
    """Return what multiplies few elements, row by row in memory, as `prod` does."""
    outer, n, inner, shape = blocks
    if inner > 1:
        return PROD.specialised(blocks, dtype, dtype, dtype, steps_in_turn(n, inner, inner, True))
    entry = entry_of(_OF_ROWS, dtype, dtype, int, int, int, int, int)
    lanes, empty_ = product_lanes(dtype), np.empty

    def call(array: Array) -> Array:
        out = empty_(shape, dtype)
        entry(array.ravel(), out.ravel(), n, n, lanes, 0, outer)
        return out

    return call
