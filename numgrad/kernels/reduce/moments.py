"""Variance, standard deviation and log-sum-exp: two passes over parts that stay in the cache.

Both need a number for the whole (the mean, the greatest element) before the pass that adds. Taking
that number for each part instead reads memory once. Parts are joined by exact identities: variances
by that of Chan, Golub and LeVeque, exponentials by moving them to a common maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.base.tuning import (
    MOMENT_ROWS,
    THREAD_ELEMENTS_EXPONENTIALS,
    THREAD_ELEMENTS_TWO_PASSES,
)
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.entries import entry_of
from numgrad.codegen.compile.pipelines import AS_WRITTEN
from numgrad.codegen.expression import Symbol
from numgrad.codegen.fold_runtime import join_max
from numgrad.codegen.llvm.combine_ir import ADD, GREATEST
from numgrad.codegen.llvm.fold_ir import make_follow
from numgrad.codegen.llvm.map_ir import Map
from numgrad.codegen.llvm.run_ir import FEW_LANES
from numgrad.codegen.llvm.scalar_ir import branch_free, where
from numgrad.codegen.numba_private import as_dtype
from numgrad.kernels.move.gather_blocks import Strided
from numgrad.kernels.move.layout import Array, arrange, reduced_shape, restore
from numgrad.kernels.pointwise.elementwise import Elementwise
from numgrad.kernels.reduce.driver import Run, parts_of, share, spans_of
from numgrad.kernels.reduce.few_elements import SpecialisedCall, few_elements
from numgrad.kernels.reduce.operations import ITSELF, SHIFTED_EXP, SQUARED_DISTANCE
from numgrad.kernels.reduce.order import PART, TILE, steps_of
from numgrad.kernels.reduce.reductions import INT64, amax, as_complex, as_real, sum
from numgrad.math import scalar
from numgrad.math.real.logarithms import LOG
from numgrad.runtime.memory import empty

__all__ = [
    "MOST_ADDED",
    "exponential_rows",
    "logsumexp",
    "prepared_logsumexp",
    "specialised_logsumexp",
    "specialised_var",
    "std",
    "var",
    "var_mean",
]

_SHIFTED_EXP = Elementwise(
    "exponential of a difference",
    ["x", "centre"],
    lambda s: [Symbol.apply("exp", s["x"] - s["centre"])],
)
_SHIFTED_LOG = Elementwise(
    "logarithm and a centre",
    ["x", "centre"],
    lambda s: [Symbol.apply("log", s["x"]) + s["centre"]],
)


_sums = make_follow(ITSELF, ADD)
_squared_distances = make_follow(SQUARED_DISTANCE, ADD)
_greatest = make_follow(ITSELF, GREATEST)
_sums_of_exponentials = make_follow(SHIFTED_EXP, ADD)


def _logarithm(x: Any) -> Any:
    return LOG[x.kind](x)


take_logarithms = Map(_logarithm)


# In no order of summation (`order`) does a number pass through so many additions.
MOST_ADDED = 256.0


@branch_free
def mean_of(total: Any, first: Any, last: Any, n: Any) -> Any:
    """Return a mean: of equal numbers that number, not one that is rounded as their sum is.

    So their variance is 0. Numbers are taken for equal whose first and last one are, if their mean
    is no farther from these than rounding can put it.
    """
    mean = total / n
    rounding = float(np.finfo(as_dtype(n.kind)).eps) / 2
    error = abs(first) * (where(n < MOST_ADDED, n, MOST_ADDED) * rounding)
    return where((first == last) & (abs(mean - first) <= error), first, mean)


_store_means = Map(mean_of)


# A kernel for all that happens to a part takes Numba no longer to compile than one for each step.
def _variances(a, means, squares, steps, rows, columns, step, count):  # type: ignore[no-untyped-def]
    """Store the means of `count` blocks of rows, and the sums of squared distances from them."""
    _sums(a, means, None, steps, step, count)
    number = means.dtype.type(rows)
    to_last = step - step // rows
    wide = columns if columns >= FEW_LANES else 0
    for i in range(count):
        p, first = i * columns, i * step
        if wide:
            _store_means(wide, means, p, means, p, a, first, a, first + to_last, number)
        for j in range(wide, columns):
            means[p + j] = mean_of(means[p + j], a[first + j], a[first + to_last + j], number)
    _squared_distances(a, squares, means, steps, step, count)


_variances = kernel(_variances, AS_WRITTEN)


def _exponentials(a, tops, centres, sums, steps, columns, step, count, logs):  # type: ignore[no-untyped-def]
    """Store the greatest elements of blocks, these or 0 if infinite, and sums relative to that.

    Or the logarithms of the sums.
    """
    _greatest(a, tops, None, steps, step, count)
    for i in range(columns * count):
        centres[i] = tops.dtype.type(0) if abs(tops[i]) == np.inf else tops[i]
    _sums_of_exponentials(a, sums, centres, steps, step, count)
    take_logarithms(columns * count if logs else 0, sums, 0, sums, 0)


_exponentials = kernel(_exponentials, AS_WRITTEN)


@kernel
def _join_variances(means, squares, n, inner, part_rows):  # type: ignore[no-untyped-def]
    """Join the parts of each ``(parts, inner)`` block into its first row."""
    parts = (n + part_rows - 1) // part_rows
    for block in range(0, means.size, parts * inner):
        for part in range(1, parts):
            before = part * part_rows
            now = min(n, before + part_rows)
            share_of_part = means.dtype.type((now - before) / now)
            weight = means.dtype.type(before) * share_of_part
            for j in range(block, block + inner):
                p = j + part * inner
                distance = means[p] - means[j]
                means[j] += distance * share_of_part
                squares[j] += squares[p] + distance * distance * weight


@kernel
def _join_exponentials(tops, centres, sums, parts, inner):  # type: ignore[no-untyped-def]
    """Join the parts of each ``(parts, inner)`` block: sums relative to their greatest element."""
    zero = sums.dtype.type(0)
    for i in range(sums.size // parts):
        p = (i // inner) * parts * inner + i % inner
        top = tops[p]
        for q in range(p + inner, p + parts * inner, inner):
            top = join_max(top, tops[q])
        centre = zero if abs(top) == np.inf else top
        total = zero
        for q in range(p, p + parts * inner, inner):
            if sums[q] != zero:  # else 0 times an overflowing factor would be nan
                total += sums[q] * scalar.exp(centres[q] - centre)
        tops[i], sums[i] = top, total


def _logarithms(numbers, first, last):  # type: ignore[no-untyped-def]
    """Take logarithms in place."""
    take_logarithms(last - first, numbers, first, numbers, first)


logarithms = kernel(_logarithms, AS_WRITTEN)


def _in_groups(run: Run, part_rows: int) -> Run:
    """Have `run` called with a few items at a time, whose elements stay in the cache meanwhile."""

    def grouped(flat: Array, target: int, n: int, inner: int, first: int, last: int) -> None:
        group = max(1, PART // max(1, min(n, part_rows) * min(inner, TILE)))
        for begin in range(first, last, group):
            run(flat, target, n, inner, begin, min(begin + group, last))

    return grouped


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
        return sum(variance, (variance.ndim - 1,)), as_complex(mean)
    arranged = arrange(array, dims, adjacent=True)
    flat, outer, n, inner, _, _ = arranged
    part_rows = max(MOMENT_ROWS, PART // max(inner, 1))
    parts = parts_of(n, part_rows)
    means = empty((outer * parts * inner,), array.dtype)
    squares = empty((outer * parts * inner,), array.dtype)

    def run(flat: Array, target: int, n: int, inner: int, first: int, last: int) -> None:
        if not n:
            means[target:], squares[target:] = math.nan, 0
            return
        for span in spans_of(n, inner, part_rows, first, last):
            _, _, rows, columns, _, items = span
            at = target + span.target
            steps = steps_of(rows, columns, inner)
            blocks = flat[span.start :], means[at:], squares[at:]
            _variances(*blocks, steps, rows, columns, rows * inner, items)

    share(_in_groups(run, part_rows), flat, outer, n, inner, part_rows, THREAD_ELEMENTS_TWO_PASSES)
    if parts > 1:
        _join_variances(means, squares, n, inner, part_rows)
        means = np.ascontiguousarray(means.reshape(outer, parts, inner)[:, 0]).reshape(-1)
        squares = np.ascontiguousarray(squares.reshape(outer, parts, inner)[:, 0]).reshape(-1)
    with np.errstate(all="ignore"):
        squares /= max(0.0, float(n - correction))
    variance = restore(squares, arranged, array.shape, dims, keepdim)
    return variance, restore(means, arranged, array.shape, dims, keepdim)


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


def specialised_var(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    dims: tuple[int, ...],
    keepdim: bool = False,
    correction: float = 1,
    *,
    root: bool = False,
    mean: bool = False,
) -> SpecialisedCall | None:
    """Return what takes `var` of a C-contiguous array of few elements, or with `root` `std`.

    With `mean` it returns the mean, too. None if there is no fast path: there is none with less
    than one degree of freedom, where variances can overflow that are no mistake.

    Examples
    --------
    >>> specialised_var((3,), np.dtype(float), (0,))(np.array([1.0, 2.0, 6.0]))
    array(7.)
    """
    blocks = few_elements(shape, dims, keepdim)
    if blocks is None or dtype.kind != "f" or not blocks.n - correction >= 1:
        return None
    outer, n, inner, result = blocks
    steps, size, room, empty = blocks.steps, n * inner, outer * inner, np.empty
    degrees = float(dtype.type(n - correction))
    entry = entry_of(_variances, *[dtype] * 3, INT64, int, int, int, int)

    def both(array: Array) -> tuple[Array, Array]:
        means, out = empty(result, dtype), empty(result, dtype)
        entry(array.ravel(), means.ravel(), out.ravel(), steps, n, inner, size, outer)
        out /= degrees
        return np.sqrt(out, out=out) if root else out, means

    def one(array: Array) -> Array:
        out = empty(result, dtype)
        entry(array.ravel(), empty(room, dtype), out.ravel(), steps, n, inner, size, outer)
        # Quotients and roots of float32 numbers have the same bits if they are taken in float64.
        out.fill(out.item() / degrees)
        if root:
            out.fill(math.sqrt(out.item()))
        return out

    def many(array: Array) -> Array:
        out = empty(result, dtype)
        entry(array.ravel(), empty(room, dtype), out.ravel(), steps, n, inner, size, outer)
        out /= degrees
        return np.sqrt(out, out=out) if root else out

    if mean:
        return both
    return one if room == 1 else many


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
    arranged = arrange(array, dims, adjacent=True)
    blocks = arranged.flat, arranged.outer, arranged.n, arranged.inner
    tops, totals = _log_totals(*blocks)
    _make_finite(tops)
    totals += tops
    return restore(totals, arranged, array.shape, dims, keepdim)


def specialised_logsumexp(
    shape: tuple[int, ...], dtype: np.dtype[Any], dims: tuple[int, ...], keepdim: bool = False
) -> SpecialisedCall | None:
    """Return what takes `logsumexp` of a C-contiguous array of few real elements, or None.

    Examples
    --------
    >>> specialised_logsumexp((2,), np.dtype(float), (0,))(np.array([1000.0, 1000.0]))
    array(1000.69314718)
    """
    blocks = few_elements(shape, dims, keepdim)
    if blocks is None or dtype.kind != "f":
        return None
    outer, n, inner, result = blocks
    steps, size, room, empty = blocks.steps, n * inner, outer * inner, np.empty
    entry = entry_of(_exponentials, *[dtype] * 4, INT64, int, int, int, bool)

    def call(array: Array) -> Array:
        out, tops, centres = empty(result, dtype), empty(room, dtype), empty(room, dtype)
        flat = out.ravel()
        entry(array.ravel(), tops, centres, flat, steps, inner, size, outer, True)
        flat += centres
        return out

    return call


def _make_finite(tops: Array) -> None:
    """Make of greatest elements what is subtracted in the exponents: 0 if they are infinite."""
    infinite = np.isinf(tops)
    if infinite.any():
        tops[infinite] = 0


def exponential_rows(inner: int) -> int:
    """Return of how many rows of `inner` elements exponentials are added up in one go."""
    return max(MOMENT_ROWS, PART // max(inner, 1))


def _log_totals(flat: Array | Strided, outer: int, n: int, inner: int) -> tuple[Array, Array]:
    """Return the greatest elements over n, and logarithms of sums of exponentials relative to them.

    What is infinite is not subtracted: such a sum is relative to 0. The elements are flat
    ``(outer, n, inner)``, the results flat ``(outer, inner)``.
    """
    part_rows = exponential_rows(inner)
    parts = parts_of(n, part_rows)
    tops, centres, sums = [empty((outer * parts * inner,), flat.dtype) for _ in range(3)]

    def run(flat: Array, target: int, n: int, inner: int, first: int, last: int) -> None:
        if not n:
            tops[target:], sums[target:] = -math.inf, -math.inf
            return
        for span in spans_of(n, inner, part_rows, first, last):
            _, _, rows, columns, _, items = span
            at = target + span.target
            steps = steps_of(rows, columns, inner)
            blocks = flat[span.start :], tops[at:], centres[at:], sums[at:]
            _exponentials(*blocks, steps, columns, rows * inner, items, parts == 1)

    share(
        _in_groups(run, part_rows), flat, outer, n, inner, part_rows, THREAD_ELEMENTS_EXPONENTIALS
    )
    if parts > 1:
        _join_exponentials(tops, centres, sums, parts, inner)
        logarithms(sums, 0, outer * inner)
        size = outer * inner
        tops, sums = tops[:size].copy(), sums[:size].copy()  # so that the rest is freed
    return tops, sums


def prepared_logsumexp(
    array: Array, dims: tuple[int, ...], keepdim: bool
) -> Callable[[Array], Array] | None:
    """Return what takes `logsumexp` of complex arrays that lie as this one; None of others."""
    if array.dtype.kind != "c":
        return None
    kernels = _SHIFTED_EXP.prepared_once(), _SHIFTED_LOG.prepared_once()
    return lambda array: _complex_logsumexp(array, dims, keepdim, *kernels)


def _complex_logsumexp(
    array: Array,
    dims: tuple[int, ...],
    keepdim: bool,
    exponential: Callable[..., list[Array]] = _SHIFTED_EXP,
    logarithm: Callable[..., list[Array]] = _SHIFTED_LOG,
) -> Array:
    """Shift by the greatest real part, which decides the magnitude of an exponential."""
    if math.prod([array.shape[dim] for dim in dims]) == 0:
        return np.full_like(sum(array, dims, keepdim), -math.inf)
    top = amax(array.real, dims, True)
    top[np.isinf(top)] = 0
    dtype = array.dtype
    # Array and centre are both complex, so that the loop has one pattern.
    centre = top.astype(dtype)
    (powers,) = exponential(array.shape, [array, centre], [dtype])
    total = sum(powers, dims, True)
    (total,) = logarithm(total.shape, [total, centre], [dtype])
    return total.reshape(reduced_shape(array.shape, dims, keepdim))
