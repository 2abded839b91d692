"""Scans that carry more than a sum: linear recurrences, logcumsumexp.

A linear recurrence is what the derivatives of other scans are. The transpose of one that runs
forward is one that runs backward with the same factors, so it is its own derivative, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.tuning import RECURRENCE_BLOCK
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.pipelines import AS_WRITTEN
from numgrad.codegen.llvm.map_ir import Map
from numgrad.codegen.llvm.pointers import element, lesser, release, scratch, store
from numgrad.codegen.llvm.scalar_ir import where
from numgrad.kernels.move.gather_blocks import contiguous
from numgrad.kernels.move.layout import Array
from numgrad.kernels.reduce.order import TILE
from numgrad.kernels.reduce.scans import Scan, around, make_scan, share_scan
from numgrad.math import scalar
from numgrad.math.real.exponentials import EXP
from numgrad.math.real.logarithms import LOG
from numgrad.runtime.memory import empty

__all__ = ["linear_recurrence", "logcumsumexp"]


@kernel
def _recur_forward(factors, terms, out, n, inner, first, last):  # type: ignore[no-untyped-def]
    tiles = (inner + TILE - 1) // TILE
    for item in range(first, last):
        block, tile = item // tiles, item % tiles
        columns = np.uintp(lesser(TILE, inner - tile * TILE))
        start = block * n * inner + tile * TILE
        p = np.uintp(start)
        for j in range(columns):
            out[p + j] = terms[p + j]
        for i in range(1, n):
            q, p = p, np.uintp(start + i * inner)
            for j in range(columns):
                out[p + j] = terms[p + j] + factors[p + j] * out[q + j]


@kernel
def _recur_backward(factors, terms, out, n, inner, first, last):  # type: ignore[no-untyped-def]
    tiles = (inner + TILE - 1) // TILE
    for item in range(first, last):
        block, tile = item // tiles, item % tiles
        columns = np.uintp(lesser(TILE, inner - tile * TILE))
        start = block * n * inner + tile * TILE
        p = np.uintp(start + (n - 1) * inner)
        for j in range(columns):
            out[p + j] = terms[p + j]
        for i in range(n - 2, -1, -1):
            q, p = p, np.uintp(start + i * inner)
            for j in range(columns):
                out[p + j] = terms[p + j] + factors[q + j] * out[q + j]


def _share(x: Any, top: Any) -> Any:
    """Return exp(x - top), also where both are the same infinity."""
    return where(x == top, x.constant(x.kind, 1), EXP[x.kind](x - top))


def _scale_and_term(before: Any, top: Any, x: Any) -> tuple[Any, Any]:
    return _share(before, top), _share(x, top)


def _finished(top: Any, total: Any) -> Any:
    return top + LOG[top.kind](total)


def _stepped(before: Any, total: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return the greatest element, the sum relative to it and its logarithm, an element later."""
    top = where((before >= x) | (before != before), before, x)
    scale, term = _scale_and_term(before, top, x)
    total = total * scale + term
    return top, total, _finished(top, total)


def _make_logcumsumexp() -> Scan:
    """Carry the greatest element and the sum of exponentials relative to it.

    When the greatest element changes the sum is multiplied by the exponential of the difference,
    else by exp(0), so that there is no branch and the exponentials are taken in vector registers.
    """
    scales_and_terms, finish, step = Map(_scale_and_term, 2), Map(_finished), Map(_stepped, 3)

    def rows(a, out, n, inner, first, last):  # type: ignore[no-untyped-def]
        tops, sums = scratch(out, RECURRENCE_BLOCK + 1), scratch(out, RECURRENCE_BLOCK)
        scales = scratch(out, RECURRENCE_BLOCK)
        for row in range(first, last):
            top, total = out.dtype.type(-np.inf), out.dtype.type(0)
            for begin in range(0, n, RECURRENCE_BLOCK):
                count = lesser(RECURRENCE_BLOCK, n - begin)
                p = row * n + begin
                store(tops, 0, top)
                for j in range(count):
                    x = element(a, p + j)
                    top = top if (top >= x) | (top != top) else x
                    store(tops, j + 1, top)
                scales_and_terms(count, scales, 0, sums, 0, tops, 0, tops, 1, a, p)
                for j in range(count):
                    total = total * element(scales, j) + element(sums, j)
                    store(sums, j, total)
                finish(count, out, p, tops, 1, sums, 0)
        release(tops)
        release(sums)
        release(scales)

    def columns(a, out, n, inner, first, last):  # type: ignore[no-untyped-def]
        tiles = (inner + TILE - 1) // TILE
        tops, sums = scratch(out, lesser(inner, TILE)), scratch(out, lesser(inner, TILE))
        for item in range(first, last):
            block, tile = item // tiles, item % tiles
            columns = lesser(TILE, inner - tile * TILE)
            p = block * n * inner + tile * TILE
            for j in range(columns):
                store(tops, j, -np.inf)
                store(sums, j, 0)
            for _ in range(n):
                step(columns, tops, 0, sums, 0, out, p, tops, 0, sums, 0, a, p)
                p += inner
        release(tops)
        release(sums)

    return make_scan("logcumsumexp", rows, columns, AS_WRITTEN)


_LOGCUMSUMEXP = _make_logcumsumexp()


@kernel
def _complex_logcumsumexp(a, out, n, inner, first, last):  # type: ignore[no-untyped-def]
    """Carry the logarithm itself, as PyTorch does: its imaginary part is not turned back."""
    tiles = (inner + TILE - 1) // TILE
    for item in range(first, last):
        block, tile = item // tiles, item % tiles
        columns = np.uintp(lesser(TILE, inner - tile * TILE))
        p = np.uintp(block * n * inner + tile * TILE)
        for j in range(columns):
            out[p + j] = a[p + j]
        for i in range(1, n):
            q, p = p, np.uintp((block * n + i) * inner + tile * TILE)
            for j in range(columns):
                x, y = a[p + j], out[q + j]
                larger, smaller = (x, y) if x.real >= y.real else (y, x)
                if (x != x) | (y != y):
                    out[p + j] = complex(np.nan, np.nan)
                elif np.isfinite(larger.real) | (larger.real != smaller.real):
                    out[p + j] = larger + scalar.log1p(scalar.exp(smaller - larger))
                elif larger.real < 0:  # of 0 there is no angle
                    out[p + j] = smaller
                else:
                    out[p + j] = scalar.log(scalar.exp(x) + scalar.exp(y))


def linear_recurrence(factors: Array, terms: Array, dim: int, *, reverse: bool = False) -> Array:
    """Return ``y[i] = terms[i] + factors[i] * y[i - 1]`` along a dim.

    Parameters
    ----------
    factors, terms : numpy.ndarray
        Floating point or complex, of the same shape and dtype; any strides. The first factor is not
        used.
    dim : int
        The dim, non-negative; 0 for 0-d arrays.
    reverse : bool
        Run from the end: ``y[i] = terms[i] + factors[i + 1] * y[i + 1]``, the transpose.

    Examples
    --------
    >>> linear_recurrence(np.array([9.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]), 0)
    array([ 1.,  3., 10.])
    >>> linear_recurrence(np.array([9.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]), 0, reverse=True)
    array([9., 4., 1.])
    """
    shape = terms.shape
    out = empty((terms.size,), terms.dtype)
    run: Any = _recur_backward if reverse else _recur_forward
    flat_factors, flat_terms = contiguous(factors), contiguous(terms)
    outer, n, inner = around(shape, dim)

    def task(first: int, last: int) -> None:
        run(flat_factors, flat_terms, out, n, inner, first, last)

    share_scan(task, outer, n, inner)
    return out.reshape(shape)


def logcumsumexp(array: Array, dim: int) -> Array:
    """Return the logarithms of cumulative sums of exponentials, without overflow.

    Mirrors ``torch.logcumsumexp`` for floating point and complex elements; any strides.

    Examples
    --------
    >>> logcumsumexp(np.array([1000.0, 1000.0]), 0)
    array([1000.        , 1000.69314718])
    """
    out = empty((array.size,), array.dtype)
    flat = contiguous(array)
    outer, n, inner = around(array.shape, dim)

    run: Any = _complex_logcumsumexp if array.dtype.kind == "c" else _LOGCUMSUMEXP.of(inner)

    def task(first: int, last: int) -> None:
        run(flat, out, n, inner, first, last)

    share_scan(task, outer, n, inner)
    return out.reshape(array.shape)
