"""Scans: cumulative sums, products and extremes along one dim.

A scan has a fixed order by nature, and its rounding errors add up as it goes: a running float32 sum
of n elements is off by up to n ulp. PyTorch carries the running value of float32 in float64 and
rounds what it stores; so does this module, on purpose and with the same bits. Nothing else here
leaves the type of the array.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS, THREAD_ELEMENTS_SCAN
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.entries import entry_of
from numgrad.codegen.compile.pipelines import AS_WRITTEN, LEAN
from numgrad.codegen.llvm.map_ir import Map
from numgrad.codegen.llvm.pointers import element, lesser, release, scratch, store
from numgrad.codegen.llvm.scalar_ir import branch_free, where
from numgrad.codegen.scalar_ops import REAL_OF
from numgrad.kernels.move.gather_blocks import contiguous
from numgrad.kernels.move.layout import Array
from numgrad.kernels.reduce.few_elements import SpecialisedCall
from numgrad.kernels.reduce.order import TILE
from numgrad.kernels.reduce.reductions import (
    INT64,
    as_bytes,
    as_complex,
    as_real,
    require_ordered,
)
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = [
    "Scan",
    "around",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "make_scan",
    "share_scan",
    "specialised",
]


# The type of the running value.
_CARRIED = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}


class Scan(NamedTuple):
    """Kernels of one scan, compiled apart, for a call needs one of them.

    Attributes
    ----------
    rows, columns : compiled function
        For rows of n elements, and for tiles of the columns of ``(n, inner)`` blocks. Both take the
        same arguments.
    """

    rows: Any
    columns: Any

    def of(self, inner: int) -> Any:
        """Return the kernel for so many columns."""
        return self.rows if inner == 1 else self.columns


def make_scan(name: str, rows: Any, columns: Any, steps: str = LEAN) -> Scan:
    """Make kernels of two functions that do the same, as closures of what made them."""
    kernels = []
    for way, function in (("rows", rows), ("columns", columns)):
        function.__name__ = f"{name}_of_{way}"
        # Equal names would have to mean equal code.
        function.__qualname__ = f"{function.__module__}.{function.__name__}"
        kernels.append(kernel(function, steps))
    return Scan(*kernels)


def _make_running(name: str, is_product: bool) -> Scan:
    """Return a running sum, or product. The running values have the dtype of `like`."""
    identity = int(is_product)

    def rows(a, out, like, n, inner, reverse, first, last):  # type: ignore[no-untyped-def]
        begin, step = 0, 1
        if reverse:
            begin, step = n - 1, -1
        for row in range(first, last):
            p = row * n + begin
            running = like.dtype.type(identity)
            for _ in range(n):
                x = like.dtype.type(element(a, p))
                running = running * x if is_product else running + x
                store(out, p, running)
                p += step

    def columns(a, out, like, n, inner, reverse, first, last):  # type: ignore[no-untyped-def]
        tiles = (inner + TILE - 1) // TILE
        carry = scratch(like, lesser(inner, TILE))
        begin, step = 0, inner
        if reverse:
            begin, step = (n - 1) * inner, -inner
        for item in range(first, last):
            block, tile = item // tiles, item % tiles
            columns = np.uintp(lesser(TILE, inner - tile * TILE))
            p = block * n * inner + tile * TILE + begin
            for j in range(columns):
                carry[j] = like.dtype.type(identity)
            for _ in range(n):
                for j in range(columns):
                    x, before = like.dtype.type(element(a, p + j)), carry[j]
                    running = before * x if is_product else before + x
                    carry[j] = running
                    store(out, p + j, running)
                p += step
        release(carry)

    return make_scan(name, rows, columns)


_CUMSUM, _CUMPROD = _make_running("cumsum", False), _make_running("cumprod", True)


@branch_free
def not_below(x: Any, best: Any) -> Any:
    """Whether x is at least the best so far, or nan."""
    return (x >= best) | (x != x)


@branch_free
def not_above(x: Any, best: Any) -> Any:
    """Whether x is at most the best so far, or nan."""
    return (x <= best) | (x != x)


def _make_extreme(name: str, better: Any) -> Scan:
    """Return what stores the best elements so far and where they are.

    The last of equal ones wins, and nan.
    """

    def compared(x: Any, best: Any, before: Any, position: Any) -> Any:
        return where(better(x, best), (x, position), (best, before))

    begin, go_on = Map(lambda x, position: (x, position), 2), Map(compared, 2)

    def rows(a, values, indices, n, inner, first, last):  # type: ignore[no-untyped-def]
        for row in range(first, last):
            start = row * n
            best, position = element(a, start), 0
            for i in range(n):
                x = element(a, start + i)
                is_better = better(x, best)
                best, position = (x, i) if is_better else (best, position)
                store(values, start + i, best)
                store(indices, start + i, position)

    def columns(a, values, indices, n, inner, first, last):  # type: ignore[no-untyped-def]
        tiles = (inner + TILE - 1) // TILE
        for item in range(first, last):
            block, tile = item // tiles, item % tiles
            columns = lesser(TILE, inner - tile * TILE)
            p = block * n * inner + tile * TILE
            begin(columns, values, p, indices, p, a, p, 0)
            for i in range(1, n):
                q, p = p, p + inner
                go_on(columns, values, p, indices, p, a, p, values, q, indices, q, i)

    return make_scan(name, rows, columns, AS_WRITTEN)


_CUMMAX, _CUMMIN = _make_extreme("cummax", not_below), _make_extreme("cummin", not_above)


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
    if elements < 2 * THREAD_ELEMENTS_SCAN:
        task(0, items)
    else:
        parallel_for(task, items, max(1, items * THREAD_ELEMENTS_SCAN // elements))


def _scan(scan: Scan, array: Array, dim: int, dtype: np.dtype[Any], reverse: bool) -> Array:
    if array.ndim == 0:
        return _scan(scan, array.reshape(1), 0, dtype, reverse).reshape(())
    shape = array.shape
    outer, n, inner = around(shape, dim)
    data = contiguous(array)
    out = empty((array.size,), dtype)
    like = np.empty((0,), _CARRIED.get(dtype, dtype))
    run = scan.of(inner)

    def task(first: int, last: int) -> None:
        run(data, out, like, n, inner, reverse, first, last)

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
        return as_complex(_scan(_CUMSUM, as_real(array), dim, REAL_OF[array.dtype], reverse))
    dtype = array.dtype if array.dtype.kind == "f" else INT64
    return _scan(_CUMSUM, as_bytes(array), dim, dtype, reverse)


def cumprod(array: Array, dim: int, *, reverse: bool = False) -> Array:
    """Return the products of all elements up to each along `dim`. Mirrors ``torch.cumprod``.

    The parameters are those of `cumsum`.

    Examples
    --------
    >>> cumprod(np.array([1, 2, 4]), 0)
    array([1, 2, 8])
    """
    dtype = array.dtype if array.dtype.kind in "fc" else INT64
    return _scan(_CUMPROD, as_bytes(array), dim, dtype, reverse)


def specialised(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], dim: int, reverse: bool = False
) -> SpecialisedCall | None:
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
    >>> specialised("cumprod", array.shape, array.dtype, 0)(array)
    array([1., 2., 8.])
    """
    outer, n, inner = around(shape, dim)
    if dtype.kind != "f" or not 0 < outer * n * inner <= FEW_ELEMENTS:
        return None
    carried, empty, items = _CARRIED.get(dtype, dtype), np.empty, outer * -(-inner // TILE)
    entry = entry_of(_SCANS[name].of(inner), dtype, dtype, carried, int, int, bool, int, int)
    like = empty(0, carried)

    def call(array: Array) -> Array:
        out = empty(shape, dtype)
        entry(array.ravel(), out.ravel(), like, n, inner, reverse, 0, items)
        return out

    return call


_SCANS = {"cumsum": _CUMSUM, "cumprod": _CUMPROD}


def _extreme(scan: Scan, array: Array, dim: int) -> tuple[Array, Array]:
    if array.ndim == 0:
        values, indices = _extreme(scan, array.reshape(1), 0)
        return values.reshape(()), indices.reshape(())
    outer, n, inner = around(array.shape, dim)
    data = contiguous(as_bytes(array))
    values, indices = empty((array.size,), data.dtype), empty((array.size,), INT64)
    run = scan.of(inner)

    def task(first: int, last: int) -> None:
        run(data, values, indices, n, inner, first, last)

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
    return _extreme(_CUMMAX, array, dim)


def cummin(array: Array, dim: int) -> tuple[Array, Array]:
    """Return the least element so far along `dim`, and its position; see `cummax`.

    Examples
    --------
    >>> cummin(np.array([3, 1, 3, 1]), 0)
    (array([3, 1, 1, 1]), array([0, 1, 1, 3]))
    """
    require_ordered("cummin_cpu", array)
    return _extreme(_CUMMIN, array, dim)
