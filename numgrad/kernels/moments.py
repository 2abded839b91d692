"""Variance and log-sum-exp: two passes over a part while it is in the cache, then parts are joined.

Both need a number for the whole (the mean, the greatest element) before the pass that adds. Taking
that number for each part instead reads memory once. Parts are joined by exact identities: variances
by that of Chan, Golub and LeVeque, exponentials by moving them to a common maximum.
"""

from __future__ import annotations

import math

import numpy as np

from numgrad.kernels import scalar
from numgrad.kernels.compile import kernel
from numgrad.kernels.fold_kernels import add, greatest, itself
from numgrad.kernels.fold_loops import TILE, accumulate, inline, locate, make_scratch, width_of
from numgrad.kernels.folds import share
from numgrad.kernels.layout import Array, arrange, reduced_shape, restore
from numgrad.kernels.memory import empty
from numgrad.kernels.reductions import amax, as_real, sum

__all__ = ["logsumexp", "std", "var", "var_mean"]

PART = 65536  # elements that make a part
ROWS = 64  # and rows, at least: with `TILE` columns, what a core's own cache holds


@inline
def squared_distance(x, centre):  # type: ignore[no-untyped-def]
    return (x - centre) * (x - centre)


@inline
def shifted_exp(x, centre):  # type: ignore[no-untyped-def]
    return scalar.exp(x - centre)


@kernel
def _var_parts(a, means, squares, n, inner, part_rows, first, last):  # type: ignore[no-untyped-def]
    """Store the mean, and the sum of squared distances from it, of every part."""
    scratch = make_scratch(min(n, part_rows), means)
    centre = scratch.size - TILE
    zero = means.dtype.type(0)
    for item in range(first, last):
        start, rows, columns, target = locate(item, n, inner, part_rows)
        width = width_of(rows, inner) if inner <= TILE else columns
        count = means.dtype.type(rows)
        accumulate(a, start, rows, inner, columns, width, scratch, zero, itself, add)
        for j in range(columns):
            means[target + j] = scratch[centre + j] = scratch[j] / count
        for j in range(columns, width):
            scratch[centre + j] = scratch[centre + j - columns]
        accumulate(a, start, rows, inner, columns, width, scratch, zero, squared_distance, add)
        for j in range(columns):
            squares[target + j] = scratch[j]


@kernel
def _join_variances(means, squares, n, inner, part_rows):  # type: ignore[no-untyped-def]
    """Join the parts of each ``(parts, inner)`` block into its first row."""
    parts = (n + part_rows - 1) // part_rows
    for block in range(0, means.size, parts * inner):
        mean, square = means[block : block + inner], squares[block : block + inner]
        for part in range(1, parts):
            before = part * part_rows
            now = min(n, before + part_rows)
            share_of_part = means.dtype.type((now - before) / now)
            weight = means.dtype.type(before) * share_of_part
            p = block + part * inner
            for j in range(inner):
                distance = means[p + j] - mean[j]
                mean[j] += distance * share_of_part
                square[j] += squares[p + j] + distance * distance * weight


@kernel
def _logsumexp_parts(a, greatest_of, sums, n, inner, part_rows, first, last):  # type: ignore[no-untyped-def]
    """Store the greatest element of every part, and the sum of exponentials relative to it."""
    scratch = make_scratch(min(n, part_rows), sums)
    centre = scratch.size - TILE
    zero = sums.dtype.type(0)
    lowest = sums.dtype.type(-np.inf)
    for item in range(first, last):
        start, rows, columns, target = locate(item, n, inner, part_rows)
        width = width_of(rows, inner) if inner <= TILE else columns
        accumulate(a, start, rows, inner, columns, width, scratch, lowest, itself, greatest)
        for j in range(columns):
            top = scratch[j]
            greatest_of[target + j] = top
            scratch[centre + j] = zero if abs(top) == np.inf else top
        for j in range(columns, width):
            scratch[centre + j] = scratch[centre + j - columns]
        accumulate(a, start, rows, inner, columns, width, scratch, zero, shifted_exp, add)
        for j in range(columns):
            sums[target + j] = scratch[j]


@kernel
def _join_exponentials(greatest_of, sums, out, parts, inner):  # type: ignore[no-untyped-def]
    """Add the parts of each ``(parts, inner)`` block relative to their maximum; store the log."""
    zero = sums.dtype.type(0)
    for i in range(out.size):
        p = (i // inner) * parts * inner + i % inner
        top = greatest_of[p]
        for part in range(1, parts):
            top = greatest(top, greatest_of[p + part * inner])
        centre = zero if abs(top) == np.inf else top
        total = zero
        for part in range(parts):
            q = p + part * inner
            if sums[q] != zero:  # else 0 times an overflowing factor would be nan
                own = zero if abs(greatest_of[q]) == np.inf else greatest_of[q]
                total += sums[q] * scalar.exp(own - centre)
        out[i] = scalar.log(total) + centre


def var_mean(
    array: Array, dims: tuple[int, ...], keepdim: bool = False, correction: float = 1
) -> tuple[Array, Array]:
    """Return the variance and the mean of floating point or complex elements.

    The variance is ``sum(abs(x - mean) ** 2) / max(0, n - correction)``: a real number, nan over no
    elements. Mirrors ``torch.var_mean``.

    Examples
    --------
    >>> var_mean(np.array([1.0, 2.0, 6.0]), (0,), correction=0)
    (array(4.66666667), array(3.))
    """
    if array.dtype.kind == "c":
        variance, mean = var_mean(as_real(array), dims, keepdim, correction)
        complex_mean = mean.view(array.dtype)[..., 0]
        return sum(variance, (variance.ndim - 1,)), complex_mean
    layout = arrange(array, dims, adjacent=True)
    flat, outer, n, inner, _, _ = layout
    part_rows = max(ROWS, PART // max(inner, 1))
    parts = max(1, -(-n // part_rows))
    means = empty((outer * parts * inner,), array.dtype)
    squares = empty((outer * parts * inner,), array.dtype)

    def task(first: int, last: int) -> None:
        _var_parts(flat, means, squares, n, inner, part_rows, first, last)

    share(task, outer, parts, n, inner)
    if parts > 1:
        _join_variances(means, squares, n, inner, part_rows)
        means = means.reshape(outer, parts, inner)[:, 0].reshape(-1)
        squares = squares.reshape(outer, parts, inner)[:, 0].reshape(-1)
    degrees = squares.dtype.type(max(0.0, n - correction))
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = squares / degrees
    shape = array.shape
    return restore(squares, layout, shape, dims, keepdim), restore(
        means, layout, shape, dims, keepdim
    )


def var(array: Array, dims: tuple[int, ...], keepdim: bool = False, correction: float = 1) -> Array:
    """Return the variance, as in `var_mean`. Mirrors ``torch.var``.

    Examples
    --------
    >>> var(np.array([[1.0, 3.0], [2.0, 2.0]]), (1,))
    array([2., 0.])
    """
    return var_mean(array, dims, keepdim, correction)[0]


def std(array: Array, dims: tuple[int, ...], keepdim: bool = False, correction: float = 1) -> Array:
    """Return the square root of the variance. Mirrors ``torch.std``.

    Examples
    --------
    >>> std(np.array([1.0, 2.0, 6.0, 7.0]), (0,), correction=0)
    array(2.54950976)
    """
    variance = var_mean(array, dims, keepdim, correction)[0]
    return np.sqrt(variance, out=variance)


def logsumexp(array: Array, dims: tuple[int, ...], keepdim: bool = False) -> Array:
    """Return ``log(sum(exp(x)))`` without overflow; -inf over no elements.

    Mirrors ``torch.logsumexp`` for floating point and complex elements.

    Examples
    --------
    >>> logsumexp(np.array([1000.0, 1000.0]), (0,))
    array(1000.69314718)
    """
    if array.dtype.kind == "c":
        return _complex_logsumexp(array, dims, keepdim)
    layout = arrange(array, dims, adjacent=True)
    flat, outer, n, inner, _, _ = layout
    part_rows = max(ROWS, PART // max(inner, 1))
    parts = max(1, -(-n // part_rows))
    greatest_of = empty((outer * parts * inner,), array.dtype)
    sums = empty((outer * parts * inner,), array.dtype)

    def task(first: int, last: int) -> None:
        _logsumexp_parts(flat, greatest_of, sums, n, inner, part_rows, first, last)

    share(task, outer, parts, n, inner)
    out = empty((outer * inner,), array.dtype)
    _join_exponentials(greatest_of, sums, out, parts, inner)
    return restore(out, layout, array.shape, dims, keepdim)


def _complex_logsumexp(array: Array, dims: tuple[int, ...], keepdim: bool) -> Array:
    """Shift by the greatest real part, which decides the magnitude of an exponential."""
    if math.prod([array.shape[dim] for dim in dims]) == 0:
        return np.full_like(sum(array, dims, keepdim), -math.inf)
    top = amax(array.real, dims, True)
    top[np.isinf(top)] = 0
    with np.errstate(all="ignore"):
        total = np.log(sum(np.exp(array - top), dims, True)) + top
    return total.reshape(reduced_shape(array.shape, dims, keepdim))
