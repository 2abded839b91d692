"""Scans: cumulative sums, products and extremes along one dim.

A scan has a fixed order by nature, and its rounding errors add up as it goes: a running float32 sum
of n elements is off by up to n ulp. PyTorch carries the running value of float32 in float64 and
rounds what it stores; so does this module, on purpose and with the same bits. Nothing else here
leaves the type of the array.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from numgrad.kernels.compile import kernel
from numgrad.kernels.fold_loops import TILE
from numgrad.kernels.layout import Array
from numgrad.kernels.memory import empty
from numgrad.kernels.packing import contiguous
from numgrad.kernels.pipeline import inline
from numgrad.kernels.pointers import lesser
from numgrad.kernels.reductions import (
    INT64,
    REAL,
    as_bytes,
    as_complex,
    as_real,
    require_ordered,
)
from numgrad.kernels.short_reductions import SMALL, ShortCall, entry_of
from numgrad.kernels.threads import parallel_for

__all__ = ["around", "cummax", "cummin", "cumprod", "cumsum", "share_scan", "short"]

GRAIN = 1 << 16  # elements that a thread takes at least (benchmarks/crossover.py)

# The type of the running value.
_CARRIED = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}


@inline
def add(x, y):  # type: ignore[no-untyped-def]
    return x + y


@inline
def multiply(x, y):  # type: ignore[no-untyped-def]
    return x * y


@inline
def scan_items(a, out, like, n, inner, reverse, first, last, identity, combine):  # type: ignore[no-untyped-def]
    """Scan items from `first` to `last`, each a tile of columns of an ``(n, inner)`` block.

    The running values have the dtype of `like`.
    """
    tiles = (inner + TILE - 1) // TILE
    carry = np.empty(lesser(inner, TILE), like.dtype)
    for item in range(first, last):
        block, tile = item // tiles, item % tiles
        columns = lesser(TILE, inner - tile * TILE)
        start = block * n * inner + tile * TILE
        step = inner
        if reverse:
            start, step = start + (n - 1) * inner, -inner
        if inner == 1:
            running = like.dtype.type(identity)
            for i in range(n):
                p = np.uintp(start + i * step)
                running = combine(running, like.dtype.type(a[p]))
                out[p] = running
            continue
        for j in range(columns):
            carry[j] = like.dtype.type(identity)
        for i in range(n):
            p = np.uintp(start + i * step)
            for j in range(np.uintp(columns)):
                carry[j] = combine(carry[j], like.dtype.type(a[p + j]))
                out[p + j] = carry[j]


@kernel
def _cumsum(a, out, like, n, inner, reverse, first, last):  # type: ignore[no-untyped-def]
    scan_items(a, out, like, n, inner, reverse, first, last, 0, add)


@kernel
def _cumprod(a, out, like, n, inner, reverse, first, last):  # type: ignore[no-untyped-def]
    scan_items(a, out, like, n, inner, reverse, first, last, 1, multiply)


@inline
def not_below(x, best):  # type: ignore[no-untyped-def]
    return (x >= best) | (x != x)


@inline
def not_above(x, best):  # type: ignore[no-untyped-def]
    return (x <= best) | (x != x)


@inline
def extreme_items(a, values, indices, n, inner, first, last, better):  # type: ignore[no-untyped-def]
    """Store the best elements so far and where they are; the last of equal ones, and nan, wins."""
    tiles = (inner + TILE - 1) // TILE
    for item in range(first, last):
        block, tile = item // tiles, item % tiles
        columns = lesser(TILE, inner - tile * TILE)
        start = block * n * inner + tile * TILE
        for i in range(n):
            p = np.uintp(start + i * inner)
            q = np.uintp(start + (i - 1 if i > 0 else 0) * inner)
            for j in range(np.uintp(columns)):
                x = a[p + j]
                best = x if i == 0 else values[q + j]
                is_better = better(x, best)
                values[p + j] = x if is_better else best
                indices[p + j] = i if is_better else indices[q + j]


@kernel
def _cummax(a, values, indices, n, inner, first, last):  # type: ignore[no-untyped-def]
    extreme_items(a, values, indices, n, inner, first, last, not_below)


@kernel
def _cummin(a, values, indices, n, inner, first, last):  # type: ignore[no-untyped-def]
    extreme_items(a, values, indices, n, inner, first, last, not_above)


def around(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """Return the sizes before, at and behind a dim; a 0-d array counts as one of size 1."""
    shape = shape or (1,)
    return prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])


def share_scan(task: Callable[[int, int], None], outer: int, n: int, inner: int) -> None:
    """Run ``task(first, last)`` over the tiles of all blocks, in threads where it pays."""
    items = outer * -(-inner // TILE)
    elements = outer * n * inner
    if elements == 0:
        return
    if elements < 2 * GRAIN:
        task(0, items)
    else:
        parallel_for(task, items, max(1, items * GRAIN // elements))


def _scan(kernel_: Any, array: Array, dim: int, dtype: np.dtype[Any], reverse: bool) -> Array:
    if array.ndim == 0:
        return _scan(kernel_, array.reshape(1), 0, dtype, reverse).reshape(())
    shape = array.shape
    outer, n, inner = around(shape, dim)
    data = contiguous(array)
    out = empty((array.size,), dtype)
    like = np.empty((0,), _CARRIED.get(dtype, dtype))

    def task(first: int, last: int) -> None:
        kernel_(data, out, like, n, inner, reverse, first, last)

    share_scan(task, outer, n, inner)
    return out.reshape(shape)


def cumsum(array: Array, dim: int, *, reverse: bool = False) -> Array:
    """Return the sums of all elements up to each along `dim`. Mirrors ``torch.cumsum``.

    Parameters
    ----------
    array : numpy.ndarray
        Any strides; bools and integers are added in int64.
    dim : int
        The dim, non-negative; 0 for a 0-d array.
    reverse : bool
        Whether to start from the end, as the derivative does.

    Examples
    --------
    >>> cumsum(np.array([1.0, 2.0, 4.0]), 0)
    array([1., 3., 7.])
    >>> cumsum(np.array([1.0, 2.0, 4.0]), 0, reverse=True)
    array([7., 6., 4.])
    """
    if array.ndim == 0:
        return cumsum(array.reshape(1), 0).reshape(())
    if array.dtype.kind == "c":
        return as_complex(_scan(_cumsum, as_real(array), dim, REAL[array.dtype], reverse))
    dtype = array.dtype if array.dtype.kind == "f" else INT64
    return _scan(_cumsum, as_bytes(array), dim, dtype, reverse)


def cumprod(array: Array, dim: int, *, reverse: bool = False) -> Array:
    """Return the products of all elements up to each along `dim`. Mirrors ``torch.cumprod``.

    The parameters are those of `cumsum`.

    Examples
    --------
    >>> cumprod(np.array([1, 2, 4]), 0)
    array([1, 2, 8])
    """
    dtype = array.dtype if array.dtype.kind in "fc" else INT64
    return _scan(_cumprod, as_bytes(array), dim, dtype, reverse)


def short(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], dim: int, reverse: bool = False
) -> ShortCall | None:
    """Return what scans a C-contiguous array of few floating point elements, or None.

    Parameters
    ----------
    name : str
        ``"cumsum"`` or ``"cumprod"``.
    shape, dtype
        Of the arrays that the function will get.
    dim, reverse
        As in `cumsum`.

    Examples
    --------
    >>> array = np.array([1.0, 2.0, 4.0])
    >>> short("cumprod", array.shape, array.dtype, 0)(array)
    array([1., 2., 8.])
    """
    outer, n, inner = around(shape, dim)
    if dtype.kind != "f" or not 0 < outer * n * inner <= SMALL:
        return None
    carried, empty, items = _CARRIED.get(dtype, dtype), np.empty, outer * -(-inner // TILE)
    entry = entry_of(_SCANS[name], dtype, dtype, carried, int, int, bool, int, int)
    like = empty(0, carried)

    def call(array: Array) -> Array:
        out = empty(shape, dtype)
        entry(array.ravel(), out.ravel(), like, n, inner, reverse, 0, items)
        return out

    return call


_SCANS = {"cumsum": _cumsum, "cumprod": _cumprod}


def _extreme(kernel_: Any, array: Array, dim: int) -> tuple[Array, Array]:
    if array.ndim == 0:
        values, indices = _extreme(kernel_, array.reshape(1), 0)
        return values.reshape(()), indices.reshape(())
    outer, n, inner = around(array.shape, dim)
    data = contiguous(as_bytes(array))
    values, indices = empty((array.size,), data.dtype), empty((array.size,), INT64)

    def task(first: int, last: int) -> None:
        kernel_(data, values, indices, n, inner, first, last)

    share_scan(task, outer, n, inner)
    return values.view(array.dtype).reshape(array.shape), indices.reshape(array.shape)


def cummax(array: Array, dim: int) -> tuple[Array, Array]:
    """Return the greatest element so far along `dim`, and its int64 position.

    The last of equal elements counts, and nan is greater than anything. Mirrors ``torch.cummax``.

    Raises
    ------
    NotImplementedError
        If the elements are complex.

    Examples
    --------
    >>> cummax(np.array([3, 1, 3, 2]), 0)
    (array([3, 3, 3, 3]), array([0, 0, 2, 2]))
    """
    require_ordered("cummax_cpu", array)
    return _extreme(_cummax, array, dim)


def cummin(array: Array, dim: int) -> tuple[Array, Array]:
    """Return the least element so far along `dim`, and its position; see `cummax`.

    Examples
    --------
    >>> cummin(np.array([3, 1, 3, 1]), 0)
    (array([3, 1, 1, 1]), array([0, 1, 1, 3]))
    """
    require_ordered("cummin_cpu", array)
    return _extreme(_cummin, array, dim)
