"""Softmax, its logarithm, and the gradients of both and of log-sum-exp: memory is read once.

Blocks that fit in a core's own cache go through all steps, one after the other: the greatest
element, the exponentials, their sum, the quotients. The sums are those of `fold_loops`, so the bits
depend on the shape alone. Where one reduction is too long for that, its maximum and its sum are
joined from parts, as in `moments`, before a second pass over memory writes the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numgrad.kernels import scalar
from numgrad.kernels.compile import kernel
from numgrad.kernels.fold_kernels import MAX, SUM, SUM_EXP
from numgrad.kernels.fold_loops import PART, TILE
from numgrad.kernels.folds import parts_of, spans_of
from numgrad.kernels.layout import Array
from numgrad.kernels.memory import empty
from numgrad.kernels.moments import EXPONENTIALS as GRAIN
from numgrad.kernels.moments import logarithms, shifted_totals
from numgrad.kernels.packing import contiguous
from numgrad.kernels.pipeline import inline
from numgrad.kernels.threads import parallel_for

__all__ = [
    "log_softmax",
    "log_softmax_gradient",
    "logsumexp_gradient",
    "softmax",
    "softmax_gradient",
]

Dims = tuple[int, ...]


class _Map(NamedTuple):
    """Kernels that store a function of every element, made by `_make_map`.

    They are compiled apart, for a call needs one of them. Both work on blocks of elements.

    Attributes
    ----------
    rows : compiled function
        ``rows(a, b, out, p, q, n, first, last)``, of n elements, for each of which p and q have one
        number.
    columns : compiled function
        ``columns(a, b, out, p, q, n, inner, width, first, last)``, of the first `width` of ``(n,
        inner)`` elements, for each of which p and q have `inner` numbers.
    """

    rows: Any
    columns: Any

    def __call__(
        self,
        arrays: tuple[Array, Array, Array],
        p: Array,
        q: Array,
        n: int,
        inner: int,
        first: int,
        last: int,
    ) -> None:
        """Work on whole blocks of ``(n, inner)`` elements of a, b and out."""
        if inner == 1:
            self.rows(*arrays, p, q, n, first, last)
        else:
            self.columns(*arrays, p, q, n, inner, inner, first, last)


def _make_map(name: str, function: Any) -> _Map:
    """Return what stores ``function(a, b, p, q)`` of every element."""

    def rows(a, b, out, p, q, n, first, last):  # type: ignore[no-untyped-def]
        for block in range(first, last):
            s, x, y = np.uintp(block * n), p[block], q[block]
            for j in range(np.uintp(n)):
                out[s + j] = function(a[s + j], b[s + j], x, y)

    def columns(a, b, out, p, q, n, inner, width, first, last):  # type: ignore[no-untyped-def]
        for block in range(first, last):
            at = np.uintp(block * inner)
            for i in range(n):
                s = np.uintp((block * n + i) * inner)
                for j in range(np.uintp(width)):
                    out[s + j] = function(a[s + j], b[s + j], p[at + j], q[at + j])

    for run in (rows, columns):
        run.__name__ = f"{name}_of_{run.__name__}"
        run.__qualname__ = f"_make_map.{run.__name__}"  # equal names would have to mean equal code
    return _Map(kernel(rows), kernel(columns))


@inline
def shifted_exponential(x, _, top, __):  # type: ignore[no-untyped-def]
    return scalar.exp(x - top)


@inline
def scaled_exponential(x, _, centre, factor):  # type: ignore[no-untyped-def]
    return scalar.exp(x - centre) * factor


@inline
def share_of_total(x, _, top, total):  # type: ignore[no-untyped-def]
    return scalar.exp(x - top) / total


@inline
def log_share(x, _, top, log_total):  # type: ignore[no-untyped-def]
    return (x - top) - log_total


@inline
def product(g, y, _, __):  # type: ignore[no-untyped-def]
    return g * y


@inline
def centred_product(g, y, average, _):  # type: ignore[no-untyped-def]
    return (g - average) * y


@inline
def less_exponential(g, y, total, _):  # type: ignore[no-untyped-def]
    return g - scalar.exp(y) * total


_SHIFTED_EXPONENTIAL = _make_map("shifted_exponential", shifted_exponential)
_SCALED_EXPONENTIAL = _make_map("scaled_exponential", scaled_exponential)
_SHARE = _make_map("share_of_total", share_of_total)
_LOG_SHARE = _make_map("log_share", log_share)
_PRODUCT = _make_map("product", product)
_CENTRED_PRODUCT = _make_map("centred_product", centred_product)
_LESS_EXPONENTIAL = _make_map("less_exponential", less_exponential)


@kernel
def _divide_rows(out, totals, n, first, last):  # type: ignore[no-untyped-def]
    """Divide rows of n elements by their totals."""
    for block in range(first, last):
        s, total = np.uintp(block * n), totals[block]
        for j in range(np.uintp(n)):
            out[s + j] /= total


@kernel
def _divide_columns(out, totals, n, inner, first, last):  # type: ignore[no-untyped-def]
    """Divide blocks of ``(n, inner)`` elements by their totals."""
    for block in range(first, last):
        at = np.uintp(block * inner)
        for i in range(n):
            s = np.uintp((block * n + i) * inner)
            for j in range(np.uintp(inner)):
                out[s + j] /= totals[at + j]


class _Blocks:
    """Flat ``(outer, n, inner)`` elements, and how they are worked on."""

    __slots__ = ("inner", "n", "outer")

    def __init__(self, shape: tuple[int, ...], dim: int) -> None:
        shape = shape or (1,)
        self.outer = math.prod(shape[:dim])
        self.n = shape[dim]
        self.inner = math.prod(shape[dim + 1 :])

    @property
    def fit(self) -> bool:
        """Whether a block stays in the cache from one step to the next."""
        return self.n * self.inner <= PART and self.inner <= TILE

    def each(self, run: Callable[[int, int], None]) -> None:
        """Call ``run(first, last)`` for all blocks, so many at a time as fit in the cache."""
        size = self.n * self.inner
        group = max(1, PART // size)

        def task(first: int, last: int) -> None:
            for begin in range(first, last, group):
                run(begin, min(begin + group, last))

        if self.outer * size < 2 * GRAIN:
            task(0, self.outer)
        else:
            parallel_for(task, self.outer, max(1, GRAIN // size))

    def map(self, function: _Map, a: Array, b: Array, out: Array, p: Array, q: Array) -> Array:
        """Run a function over everything, and return `out`."""
        n, inner = self.n, self.inner
        part_rows = max(1, PART // min(inner, TILE))
        parts, tiles = parts_of(n, part_rows), -(-inner // TILE)
        items = self.outer * parts * tiles

        def task(first: int, last: int) -> None:
            if parts == tiles == 1:
                function((a, b, out), p, q, n, inner, first, last)
                return
            for item, span in enumerate(spans_of(n, inner, part_rows, first, last), first):
                x, y, result = (array[span.start :] for array in (a, b, out))
                at = item // tiles // parts * inner + item % tiles * TILE
                if inner == 1:
                    function.rows(x, y, result, p[at:], q[at:], span.rows, 0, 1)
                else:
                    width = span.columns
                    function.columns(x, y, result, p[at:], q[at:], span.rows, inner, width, 0, 1)

        if out.size < 2 * GRAIN:
            task(0, items)
        else:
            parallel_for(task, items, max(1, items * GRAIN // out.size))
        return out

    def sum(self, flat: Array) -> Array:
        """Return the sums over n."""
        return SUM.reduce(flat, self.outer, self.n, self.inner, flat.dtype)


def _totals(flat: Array, blocks: _Blocks) -> tuple[Array, Array]:
    """Return greatest elements, and sums of exponentials relative to them; nan if infinite."""
    tops, totals = shifted_totals(flat, blocks.outer, blocks.n, blocks.inner)
    totals[np.isinf(tops)] = math.nan
    return tops, totals


def softmax(array: Array, dim: int) -> Array:
    """Return exponentials divided by their sum along a dim; C-contiguous.

    Mirrors ``torch.softmax`` for floating point elements of any strides; the dim of a 0-d array
    is 0.

    Examples
    --------
    >>> softmax(np.array([1000.0, 1000.0]), 0)
    array([0.5, 0.5])
    """
    out = empty((array.size,), array.dtype)
    if not array.size:
        return out.reshape(array.shape)
    flat = contiguous(array)
    blocks = _Blocks(array.shape, dim)
    n, inner = blocks.n, blocks.inner
    if blocks.fit:
        tops, totals = (empty((blocks.outer * inner,), array.dtype) for _ in range(2))

        def run(first: int, last: int) -> None:
            MAX.run(flat, tops, None, n, inner, n, first, last)
            _SHIFTED_EXPONENTIAL((flat, flat, out), tops, tops, n, inner, first, last)
            SUM.run(out, totals, None, n, inner, n, first, last)
            if inner == 1:
                _divide_rows(out, totals, n, first, last)
            else:
                _divide_columns(out, totals, n, inner, first, last)

        blocks.each(run)
    else:
        blocks.map(_SHARE, flat, flat, out, *_totals(flat, blocks))
    return out.reshape(array.shape)


def log_softmax(array: Array, dim: int) -> Array:
    """Return the logarithm of `softmax`, exact also where that underflows.

    Examples
    --------
    >>> log_softmax(np.array([0.0, 1000.0]), 0)
    array([-1000.,     0.])
    """
    out = empty((array.size,), array.dtype)
    if not array.size:
        return out.reshape(array.shape)
    flat = contiguous(array)
    blocks = _Blocks(array.shape, dim)
    n, inner = blocks.n, blocks.inner
    if blocks.fit:
        tops, totals = (empty((blocks.outer * inner,), array.dtype) for _ in range(2))

        def run(first: int, last: int) -> None:
            MAX.run(flat, tops, None, n, inner, n, first, last)
            SUM_EXP.run(flat, totals, tops, n, inner, n, first, last)
            logarithms(totals, first * inner, last * inner)
            _LOG_SHARE((flat, flat, out), tops, totals, n, inner, first, last)

        blocks.each(run)
    else:
        tops, totals = _totals(flat, blocks)
        logarithms(totals, 0, totals.size)
        blocks.map(_LOG_SHARE, flat, flat, out, tops, totals)
    return out.reshape(array.shape)


def softmax_gradient(cotangent: Array, output: Array, dim: int) -> Array:
    """Return ``y * (g - sum(g * y))``, the sum along a dim.

    Examples
    --------
    >>> softmax_gradient(np.array([1.0, 0.0]), np.array([0.5, 0.5]), 0)
    array([ 0.25, -0.25])
    """
    out = empty((output.size,), output.dtype)
    if not output.size:
        return out.reshape(output.shape)
    g = contiguous(cotangent)
    y = contiguous(output)
    blocks = _Blocks(output.shape, dim)
    n, inner = blocks.n, blocks.inner
    if blocks.fit:
        totals = empty((blocks.outer * inner,), output.dtype)

        def run(first: int, last: int) -> None:
            _PRODUCT((g, y, out), g, g, n, inner, first, last)
            SUM.run(out, totals, None, n, inner, n, first, last)
            _CENTRED_PRODUCT((g, y, out), totals, totals, n, inner, first, last)

        blocks.each(run)
    else:
        totals = blocks.sum(blocks.map(_PRODUCT, g, y, out, g, g))
        blocks.map(_CENTRED_PRODUCT, g, y, out, totals, totals)
    return out.reshape(output.shape)


def log_softmax_gradient(cotangent: Array, output: Array, dim: int) -> Array:
    """Return ``g - exp(y) * sum(g)``, the sum along a dim.

    Examples
    --------
    >>> log_softmax_gradient(np.array([1.0, 0.0]), np.log(np.array([0.5, 0.5])), 0)
    array([ 0.5, -0.5])
    """
    out = empty((output.size,), output.dtype)
    if not output.size:
        return out.reshape(output.shape)
    g = contiguous(cotangent)
    y = contiguous(output)
    blocks = _Blocks(output.shape, dim)
    n, inner = blocks.n, blocks.inner
    if blocks.fit:
        totals = empty((blocks.outer * inner,), output.dtype)

        def run(first: int, last: int) -> None:
            SUM.run(g, totals, None, n, inner, n, first, last)
            _LESS_EXPONENTIAL((g, y, out), totals, totals, n, inner, first, last)

        blocks.each(run)
    else:
        totals = blocks.sum(g)
        blocks.map(_LESS_EXPONENTIAL, g, y, out, totals, totals)
    return out.reshape(output.shape)


def logsumexp_gradient(cotangent: Array, input: Array, output: Array, dims: Dims) -> Array:
    """Return ``g * exp(x - y)`` for a log-sum-exp y over some dims; C-contiguous.

    Parameters
    ----------
    cotangent, output : numpy.ndarray
        With or without the reduced dims, which then have size 1; of the dtype of `input`.
    input : numpy.ndarray
        Floating point; any strides.
    dims : tuple of int
        The reduced dims.

    Examples
    --------
    >>> x = np.log(np.array([[1.0, 3.0]]))
    >>> logsumexp_gradient(np.array([1.0]), x, np.log(np.array([4.0])), (1,))
    array([[0.25, 0.75]])
    """
    shape = input.shape
    out = empty((input.size,), input.dtype)
    if not out.size:
        return out.reshape(shape)
    # The last run of reduced dims is n; dims that are reduced before it repeat rows of g and y.
    last = max(dims, default=0)
    begin = last
    while begin - 1 in dims:
        begin -= 1
    blocks = _Blocks(
        (*shape[:begin], math.prod(shape[begin : last + 1]), *shape[last + 1 :]), begin
    )
    kept = [1 if dim in dims else size for dim, size in enumerate(shape)]
    repeated = [1 if begin <= dim <= last else size for dim, size in enumerate(shape)]
    p, q = (
        np.broadcast_to(rows.reshape(kept), repeated).reshape(-1) for rows in (output, cotangent)
    )
    flat = contiguous(input)
    blocks.map(_SCALED_EXPONENTIAL, flat, flat, out, p, q)
    return out.reshape(shape)
