"""Pooling: the greatest element of windows, and their means with the adjoint of these.

A window is the product of ranges, one along each spatial dim: `fixed_windows` and
`adaptive_windows` say which there are. Arrays have their spatial dims last, up to three of them;
the kernels see three, the first ones perhaps of length 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.base.tuning import THREAD_ELEMENTS_WINDOWS
from numgrad.codegen.compile.compile import kernel
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = [
    "Ranges",
    "adaptive_windows",
    "fixed_windows",
    "greatest",
    "greatest_of_chosen",
    "means",
    "means_adjoint",
    "prepared_greatest",
    "prepared_means",
    "prepared_means_adjoint",
]

Array = np.ndarray[Any, Any]


class Ranges(NamedTuple):
    """The ranges of windows along one dim.

    Attributes
    ----------
    starts, stops : array of int64
        Where each begins, and ends within the array.
    widths : array of int64
        How many elements a mean divides by: with those of the padding, if they count.
    step : int
        How far elements are apart.
    """

    starts: Array
    stops: Array
    widths: Array
    step: int


@functools.lru_cache(512)
def fixed_windows(
    size: int, count: int, kernel: int, stride: int, padding: int, dilation: int, padded: bool
) -> Ranges:
    """Return windows of one width; `padded` says whether elements of the padding count.

    Examples
    --------
    >>> fixed_windows(5, 3, 2, 2, 0, 1, True).stops.tolist()
    [2, 4, 5]
    """
    first = np.arange(count, dtype=np.int64) * stride - padding
    last = first + (kernel - 1) * dilation + 1
    # What begins in the padding begins with the first element in the array, if it has any there.
    starts = first + -(-np.maximum(-first, 0) // dilation) * dilation
    stops = np.where(starts < size, np.minimum(last, size), 0)
    starts = np.minimum(starts, max(size - 1, 0))
    widths = np.minimum(last, size + padding) - first if padded else stops - starts
    return Ranges(starts, stops, widths, dilation)


@functools.lru_cache(512)
def adaptive_windows(size: int, count: int) -> Ranges:
    """Return so many windows that share an array out, the same elements in two if need be.

    Examples
    --------
    >>> windows = adaptive_windows(5, 3)
    >>> windows.starts.tolist(), windows.stops.tolist()
    ([0, 1, 3], [2, 4, 5])
    """
    at = np.arange(count, dtype=np.int64)
    starts = at * size // max(count, 1)
    stops = -(-(at + 1) * size // max(count, 1))
    return Ranges(starts, stops, stops - starts, 1)


# Kernels get the ranges of all three dims as one table: see `_table`.


@kernel
def _greatest(x, out, places, table, s0, s1, s2, low, first, last):  # type: ignore[no-untyped-def]
    height, width = x.shape[2], x.shape[3]
    for plane in range(first, last):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                for k in range(out.shape[3]):
                    best = low
                    place = (table[0, i] * height + table[1, j]) * width + table[2, k]
                    for a in range(table[0, i], table[3, i], s0):
                        for b in range(table[1, j], table[4, j], s1):
                            for c in range(table[2, k], table[5, k], s2):
                                value = x[plane, a, b, c]
                                if value > best or value != value:
                                    best = value
                                    place = (a * height + b) * width + c
                    out[plane, i, j, k] = best
                    places[plane, i, j, k] = place


@kernel
def _greatest_of_chosen(x, out, places, d0, h0, w0, depth, height, width, low, first, last):  # type: ignore[no-untyped-def]
    for plane in range(first, last):
        for i in range(d0.shape[1]):
            for j in range(h0.shape[1]):
                for k in range(w0.shape[1]):
                    a0, b0, c0 = d0[plane, i], h0[plane, j], w0[plane, k]
                    best = low
                    place = (a0 * x.shape[2] + b0) * x.shape[3] + c0
                    for a in range(a0, a0 + depth):
                        for b in range(b0, b0 + height):
                            for c in range(c0, c0 + width):
                                value = x[plane, a, b, c]
                                if value > best or value != value:
                                    best = value
                                    place = (a * x.shape[2] + b) * x.shape[3] + c
                    out[plane, i, j, k] = best
                    places[plane, i, j, k] = place


@kernel
def _sums(x, out, table, by, zero, first, last):  # type: ignore[no-untyped-def]
    for plane in range(first, last):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                for k in range(out.shape[3]):
                    total = zero
                    for a in range(table[0, i], table[3, i]):
                        for b in range(table[1, j], table[4, j]):
                            for c in range(table[2, k], table[5, k]):
                                total += x[plane, a, b, c]
                    number = by if by else table[6, i] * table[7, j] * table[8, k]
                    out[plane, i, j, k] = total / (zero + number)


@kernel
def _integer_sums(x, out, table, by, zero, first, last):  # type: ignore[no-untyped-def]
    for plane in range(first, last):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                for k in range(out.shape[3]):
                    total = zero
                    for a in range(table[0, i], table[3, i]):
                        for b in range(table[1, j], table[4, j]):
                            for c in range(table[2, k], table[5, k]):
                                total += x[plane, a, b, c]
                    number = by if by else table[6, i] * table[7, j] * table[8, k]
                    quotient = abs(total) // abs(number)
                    out[plane, i, j, k] = quotient if (total < 0) == (number < 0) else -quotient


@kernel
def _spread(g, out, table, by, zero, first, last):  # type: ignore[no-untyped-def]
    for plane in range(first, last):
        for i in range(g.shape[1]):
            for j in range(g.shape[2]):
                for k in range(g.shape[3]):
                    number = by if by else table[6, i] * table[7, j] * table[8, k]
                    share = g[plane, i, j, k] / (zero + number)
                    for a in range(table[0, i], table[3, i]):
                        for b in range(table[1, j], table[4, j]):
                            for c in range(table[2, k], table[5, k]):
                                out[plane, a, b, c] += share


_WHOLE = Ranges(np.zeros(1, np.int64), np.ones(1, np.int64), np.ones(1, np.int64), 1)


def _three(windows: Sequence[Ranges]) -> list[Ranges]:
    return [_WHOLE] * (3 - len(windows)) + list(windows)


def _planes(array: Array, dims: int) -> Array:
    """Return an array as one of four dims, the last ones spatial."""
    sizes = array.shape[array.ndim - dims :]
    count = math.prod(array.shape[: array.ndim - dims])
    whole = np.ascontiguousarray(array).reshape((count, *(1,) * (3 - dims), *sizes))
    return whole


def _table(windows: Sequence[Ranges]) -> Array:
    """Return where windows start along each of three dims, where they stop, and their widths."""
    three = _three(windows)
    table = np.zeros((9, max([each.starts.size for each in three])), np.int64)
    rows = [getattr(one, name) for name in ("starts", "stops", "widths") for one in three]
    for row, each in zip(table, rows, strict=True):
        row[: each.size] = each
    return table


def _run(function: Any, planes: int, work: int, *arguments: Any) -> None:
    """Run a kernel over planes, which threads share; `work` is what one of them reads."""
    if planes and work:
        grain = max(1, THREAD_ELEMENTS_WINDOWS // work)
        if planes <= grain:
            function(*arguments, 0, planes)
        else:
            parallel_for(lambda first, last: function(*arguments, first, last), planes, grain)


def _read(windows: Sequence[Ranges]) -> int:
    """Return how many elements all windows of a plane read."""
    return math.prod([int((-(-(each.stops - each.starts) // each.step)).sum()) for each in windows])


def _shapes(shape: Sequence[int], counts: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the shape of a result with so many windows, and what kernels see of array and it."""
    behind = len(shape) - len(counts)
    planes, ones = math.prod(shape[:behind]), (1,) * (3 - len(counts))
    result = (*shape[:behind], *counts)
    return result, (planes, *ones, *shape[behind:]), (planes, *ones, *counts)


def _counts(windows: Sequence[Ranges]) -> tuple[int, ...]:
    return tuple([each.starts.size for each in windows])


def prepared_greatest(
    like: Array, windows: Sequence[Ranges]
) -> Callable[[Array], tuple[Array, Array]]:
    """Return a function of an array of that shape and dtype that does what `greatest` does."""
    dtype = like.dtype
    shape, whole, whole_result = _shapes(like.shape, _counts(windows))
    planes, work, table, low = whole[0], _read(windows), _table(windows), _lowest(dtype)
    steps = [each.step for each in _three(windows)]

    def run(array: Array) -> tuple[Array, Array]:
        out, places = empty(shape, dtype), empty(shape, np.int64)
        x = np.ascontiguousarray(array).reshape(whole)
        results = out.reshape(whole_result), places.reshape(whole_result)
        _run(_greatest, planes, work, x, *results, table, *steps, low)
        return out, places

    return run


def greatest(array: Array, windows: Sequence[Ranges]) -> tuple[Array, Array]:
    """Return the greatest elements of windows, and where in their plane they are.

    nan is the greatest; of equal ones the first counts, of several nan the last.

    Examples
    --------
    >>> greatest(np.array([1.0, 3.0, 2.0]), [fixed_windows(3, 2, 2, 1, 0, 1, True)])
    (array([3., 3.]), array([1, 1]))
    """
    return prepared_greatest(array, windows)(array)


def greatest_of_chosen(
    array: Array, starts: Sequence[Array], kernel: Sequence[int]
) -> tuple[Array, Array]:
    """Return the greatest elements of windows of one size, and where in their plane they are.

    Parameters
    ----------
    array : array of shape (..., sizes)
    starts : sequence of int64 arrays of shape (planes, count)
        For each of the last dims where windows begin, of each plane.
    kernel : sequence of int
        How wide they are.

    Examples
    --------
    >>> greatest_of_chosen(np.array([1.0, 3.0, 2.0]), [np.array([[0, 1]])], [2])
    (array([3., 3.]), array([1, 1]))
    """
    dims = len(starts)
    shape = (*array.shape[: array.ndim - dims], *[each.shape[1] for each in starts])
    out, places = empty(shape, array.dtype), empty(shape, np.int64)
    planes = _planes(array, dims)
    none = [np.zeros((planes.shape[0], 1), np.int64)] * (3 - dims)
    widths = (*(1,) * (3 - dims), *kernel)
    _run(
        _greatest_of_chosen,
        planes.shape[0],
        math.prod([each.shape[1] for each in starts]) * math.prod(kernel),
        planes,
        _planes(out, dims),
        _planes(places, dims),
        *none,
        *starts,
        *widths,
        _lowest(array.dtype),
    )
    return out, places


def _lowest(dtype: np.dtype[Any]) -> Any:
    return dtype.type(-np.inf if dtype.kind == "f" else np.iinfo(dtype).min)


def prepared_means(
    like: Array, windows: Sequence[Ranges], divisor: int
) -> Callable[[Array], Array]:
    """Return a function of an array of that shape and dtype that does what `means` does."""
    dtype, zero = like.dtype, like.dtype.type(0)
    shape, whole, whole_result = _shapes(like.shape, _counts(windows))
    planes, work, table = whole[0], _read(windows), _table(windows)
    function = _sums if dtype.kind == "f" else _integer_sums

    def run(array: Array) -> Array:
        out = empty(shape, dtype)
        x = np.ascontiguousarray(array).reshape(whole)
        _run(function, planes, work, x, out.reshape(whole_result), table, divisor, zero)
        return out

    return run


def means(array: Array, windows: Sequence[Ranges], divisor: int) -> Array:
    """Return the sums of windows over their widths, or over one number if that is not 0.

    Examples
    --------
    >>> means(np.array([1.0, 3.0, 2.0]), [fixed_windows(3, 2, 2, 1, 0, 1, True)], 0)
    array([2. , 2.5])
    """
    return prepared_means(array, windows, divisor)(array)


def prepared_means_adjoint(
    like: Array, sizes: Sequence[int], windows: Sequence[Ranges], divisor: int
) -> Callable[[Array], Array]:
    """Return a function of an array of that shape and dtype that does what the adjoint does."""
    dtype, zero = like.dtype, like.dtype.type(0)
    shape, whole, whole_result = _shapes(like.shape, sizes)
    planes, work, table = whole[0], _read(windows), _table(windows)

    def run(g: Array) -> Array:
        out = np.zeros(shape, dtype)
        x = np.ascontiguousarray(g).reshape(whole)
        _run(_spread, planes, work, x, out.reshape(whole_result), table, divisor, zero)
        return out

    return run


def means_adjoint(g: Array, sizes: Sequence[int], windows: Sequence[Ranges], divisor: int) -> Array:
    """Return arrays of some sizes to which each window has given its share: the adjoint of `means`.

    Examples
    --------
    >>> means_adjoint(np.array([2.0, 4.0]), (3,), [fixed_windows(3, 2, 2, 1, 0, 1, True)], 0)
    array([1., 3., 2.])
    """
    return prepared_means_adjoint(g, sizes, windows, divisor)(g)
