"""Scans that carry more than a sum: linear recurrences, and logarithms of cumulative sums.

A linear recurrence is what the derivatives of other scans are. The transpose of one that runs
forward is one that runs backward with the same factors, so it is its own derivative, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.kernels import scalar
from numgrad.kernels.compile import kernel
from numgrad.kernels.fold_kernels import greatest
from numgrad.kernels.fold_loops import TILE
from numgrad.kernels.layout import Array
from numgrad.kernels.memory import empty
from numgrad.kernels.packing import contiguous
from numgrad.kernels.pointers import lesser
from numgrad.kernels.scans import around, share_scan

__all__ = ["linear_recurrence", "logcumsumexp"]


BLOCK = 256  # elements of a row whose exponentials and logarithms are taken at once


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


@kernel
def _logcumsumexp(a, out, n, inner, first, last):  # type: ignore[no-untyped-def]
    """Carry the greatest element and the sum of exponentials relative to it.

    When the greatest element changes the sum is multiplied by the exponential of the difference,
    else by exp(0), so that there is no branch and the exponentials are taken in vector registers.
    """
    zero, one = out.dtype.type(0), out.dtype.type(1)
    if inner == 1:
        tops, sums = np.empty(BLOCK + 1, out.dtype), np.empty(BLOCK, out.dtype)
        scales = np.empty(BLOCK, out.dtype)
        for row in range(first, last):
            tops[0], total = out.dtype.type(-np.inf), zero
            for begin in range(0, n, BLOCK):
                count = np.uintp(lesser(BLOCK, n - begin))
                p = np.uintp(row * n + begin)
                for j in range(count):
                    tops[j + np.uintp(1)] = greatest(tops[j], a[p + j])
                for j in range(count):
                    before, top, x = tops[j], tops[j + np.uintp(1)], a[p + j]
                    scale, term = scalar.exp(before - top), scalar.exp(x - top)
                    # The difference of equal infinities would be nan.
                    scales[j] = one if before == top else scale
                    sums[j] = one if x == top else term
                for j in range(count):
                    total = total * scales[j] + sums[j]
                    sums[j] = total
                for j in range(count):
                    out[p + j] = tops[j + np.uintp(1)] + scalar.log(sums[j])
                tops[0] = tops[count]
        return
    tiles = (inner + TILE - 1) // TILE
    tops, sums = np.empty(lesser(inner, TILE), out.dtype), np.empty(lesser(inner, TILE), out.dtype)
    for item in range(first, last):
        block, tile = item // tiles, item % tiles
        columns = np.uintp(lesser(TILE, inner - tile * TILE))
        start = block * n * inner + tile * TILE
        for j in range(columns):
            tops[j], sums[j] = out.dtype.type(-np.inf), zero
        for i in range(n):
            p = np.uintp(start + i * inner)
            for j in range(columns):
                before, x = tops[j], a[p + j]
                top = greatest(before, x)
                scale, term = scalar.exp(before - top), scalar.exp(x - top)
                scale = one if before == top else scale
                total = sums[j] * scale + (one if x == top else term)
                tops[j], sums[j] = top, total
                out[p + j] = top + scalar.log(total)


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

    run: Any = _complex_logcumsumexp if array.dtype.kind == "c" else _logcumsumexp

    def task(first: int, last: int) -> None:
        run(flat, out, n, inner, first, last)

    share_scan(task, outer, n, inner)
    return out.reshape(array.shape)
