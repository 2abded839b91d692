"""Softmax, its logarithm, and the gradients of both and of log-sum-exp: memory is read once.

Blocks that fit in a core's own cache go through all steps, one after the other: the greatest
element, the exponentials, their sum, the quotients. The sums are those of `reduce.order`, so the
bits depend on the shape alone. Where one reduction is too long for that, its maximum and its sum
are joined from parts, as in `moments`, before a second pass over memory writes the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from numgrad.base.tuning import THREAD_ELEMENTS_EXPONENTIALS
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.entries import entry_of
from numgrad.codegen.compile.pipelines import AS_WRITTEN
from numgrad.codegen.llvm.combine_ir import ADD, GREATEST
from numgrad.codegen.llvm.fold_ir import make_follow
from numgrad.codegen.llvm.map_ir import Blockwise, make_blockwise
from numgrad.codegen.llvm.pointers import release, scratch
from numgrad.kernels.move.gather_blocks import contiguous
from numgrad.kernels.move.layout import Array
from numgrad.kernels.reduce.driver import parts_of, rows_at_once, spans_of
from numgrad.kernels.reduce.few_elements import SpecialisedCall, few_elements
from numgrad.kernels.reduce.moments import logarithms, take_logarithms
from numgrad.kernels.reduce.operations import ITSELF, MAX, SHIFTED_EXP, SUM, SUM_EXPONENTIALS
from numgrad.kernels.reduce.order import PART, TILE, steps_of
from numgrad.kernels.reduce.reductions import INT64
from numgrad.math.real.exponentials import EXP
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = [
    "log_softmax",
    "log_softmax_gradient",
    "logsumexp_gradient",
    "softmax",
    "softmax_gradient",
    "specialised",
    "specialised_gradient",
    "specialised_logsumexp_gradient",
]

Dims = tuple[int, ...]


class _Kernels(NamedTuple):
    """Kernels of one thing, compiled apart, for a call needs one of them.

    Attributes
    ----------
    rows, columns : compiled function
        For blocks of n elements that give one number, and for those of ``(n, inner)`` elements that
        give `inner` numbers. Both take the same arguments.
    """

    rows: Any
    columns: Any

    def of(self, inner: int) -> Any:
        """Return the kernel for so many columns."""
        return self.rows if inner == 1 else self.columns


def _compile(make: Callable[[Callable[[Blockwise], Any]], Any], name: str) -> _Kernels:
    """Return the kernels that ``make(way)`` makes, `way` choosing rows, and columns."""
    kernels = []
    for way in ("rows", "columns"):
        run = make(attrgetter(way))
        run.__name__ = f"{name}_of_{way}"
        # Equal names would have to mean equal code.
        run.__qualname__ = f"{make.__name__}.{run.__name__}"
        kernels.append(kernel(run, AS_WRITTEN))
    return _Kernels(*kernels)


def _make_map(function: Any) -> _Kernels:
    """Return what stores ``function(a, b, p, q)`` of every element."""
    blockwise = make_blockwise(function)

    def make(way: Callable[[Blockwise], Any]) -> Any:
        each = way(blockwise)

        def run(a, b, out, p, q, n, inner, width, first, last):  # type: ignore[no-untyped-def]
            each(a, b, out, p, q, n, inner, width, first, last)

        return run

    return _compile(make, function.__name__)


def _exp(x: Any) -> Any:
    return EXP[x.kind](x)


def shifted_exponential(x: Any, _: Any, top: Any, __: Any) -> Any:
    return _exp(x - top)


def scaled_exponential(x: Any, _: Any, centre: Any, factor: Any) -> Any:
    return _exp(x - centre) * factor


def share_of_total(x: Any, _: Any, top: Any, total: Any) -> Any:
    return _exp(x - top) / total


def quotient(x: Any, _: Any, total: Any, __: Any) -> Any:
    return x / total


def log_share(x: Any, _: Any, top: Any, log_total: Any) -> Any:
    return (x - top) - log_total


def product(g: Any, y: Any, _: Any, __: Any) -> Any:
    return g * y


def centred_product(g: Any, y: Any, average: Any, _: Any) -> Any:
    return (g - average) * y


def less_exponential(g: Any, y: Any, total: Any, _: Any) -> Any:
    return g - _exp(y) * total


_SCALED_EXPONENTIAL = _make_map(scaled_exponential)
_SHARE = _make_map(share_of_total)
_LOG_SHARE = _make_map(log_share)
_PRODUCT = _make_map(product)
_CENTRED_PRODUCT = _make_map(centred_product)
_LESS_EXPONENTIAL = _make_map(less_exponential)


# Everything that happens to a block is one kernel: as four they took Numba no less time to compile.
_greatest = make_follow(ITSELF, GREATEST)
_sums = make_follow(ITSELF, ADD)
_sums_of_exponentials = make_follow(SHIFTED_EXP, ADD)


def _make_softmax(way: Callable[[Blockwise], Any]) -> Any:
    exponentials, quotients = (
        way(make_blockwise(function)) for function in (shifted_exponential, quotient)
    )

    def softmax(a, out, steps, n, inner, count):  # type: ignore[no-untyped-def]
        numbers = scratch(out, count * inner)
        _greatest(a, numbers, None, steps, n * inner, count)
        exponentials(a, a, out, numbers, numbers, n, inner, inner, 0, count)
        _sums(out, numbers, None, steps, n * inner, count)
        quotients(out, out, out, numbers, numbers, n, inner, inner, 0, count)
        release(numbers)

    return softmax


def _make_log_softmax(way: Callable[[Blockwise], Any]) -> Any:
    log_shares = way(make_blockwise(log_share))

    def log_softmax(a, out, steps, n, inner, count):  # type: ignore[no-untyped-def]
        tops, totals = scratch(out, count * inner), scratch(out, count * inner)
        _greatest(a, tops, None, steps, n * inner, count)
        _sums_of_exponentials(a, totals, tops, steps, n * inner, count)
        take_logarithms(count * inner, totals, 0, totals, 0)
        log_shares(a, a, out, tops, totals, n, inner, inner, 0, count)
        release(tops)
        release(totals)

    return log_softmax


def _make_softmax_gradient(way: Callable[[Blockwise], Any]) -> Any:
    products, centred_products = (
        way(make_blockwise(function)) for function in (product, centred_product)
    )

    def softmax_gradient(g, y, out, steps, n, inner, count):  # type: ignore[no-untyped-def]
        totals = scratch(out, count * inner)
        products(g, y, out, g, g, n, inner, inner, 0, count)
        _sums(out, totals, None, steps, n * inner, count)
        centred_products(g, y, out, totals, totals, n, inner, inner, 0, count)
        release(totals)

    return softmax_gradient


def _make_log_softmax_gradient(way: Callable[[Blockwise], Any]) -> Any:
    less_exponentials = way(make_blockwise(less_exponential))

    def log_softmax_gradient(g, y, out, steps, n, inner, count):  # type: ignore[no-untyped-def]
        totals = scratch(out, count * inner)
        _sums(g, totals, None, steps, n * inner, count)
        less_exponentials(g, y, out, totals, totals, n, inner, inner, 0, count)
        release(totals)

    return log_softmax_gradient


_SOFTMAX = _compile(_make_softmax, "softmax")
_LOG_SOFTMAX = _compile(_make_log_softmax, "log_softmax")
_SOFTMAX_GRADIENT = _compile(_make_softmax_gradient, "softmax_gradient")
_LOG_SOFTMAX_GRADIENT = _compile(_make_log_softmax_gradient, "log_softmax_gradient")


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

    def each(self, kernels: _Kernels, *arrays: Array) -> None:
        """Run what does everything to blocks, as many at a time as fit in the cache.

        The arrays are its operands and its result.
        """
        n, inner = self.n, self.inner
        run, steps, size = kernels.of(inner), steps_of(n, inner, inner), n * inner
        group = max(1, PART // size)

        def task(first: int, last: int) -> None:
            for begin in range(first, last, group):
                blocks = [array[begin * size :] for array in arrays]
                run(*blocks, steps, n, inner, min(group, last - begin))

        if self.outer * size < 2 * THREAD_ELEMENTS_EXPONENTIALS:
            task(0, self.outer)
        else:
            parallel_for(task, self.outer, max(1, THREAD_ELEMENTS_EXPONENTIALS // size))

    def map(self, function: _Kernels, a: Array, b: Array, out: Array, p: Array, q: Array) -> Array:
        """Run a function over everything, and return `out`."""
        n, inner = self.n, self.inner
        part_rows = max(1, PART // min(inner, TILE))
        parts, tiles = parts_of(n, part_rows), -(-inner // TILE)
        items = self.outer * parts * tiles
        run = function.of(inner)

        def task(first: int, last: int) -> None:
            if parts == tiles == 1:
                run(a, b, out, p, q, n, inner, inner, first, last)
                return
            for item, span in enumerate(spans_of(n, inner, part_rows, first, last), first):
                x, y, result = (array[span.start :] for array in (a, b, out))
                at = item // tiles // parts * inner + item % tiles * TILE
                run(x, y, result, p[at:], q[at:], span.rows, inner, span.columns, 0, 1)

        if out.size < 2 * THREAD_ELEMENTS_EXPONENTIALS:
            task(0, items)
        else:
            parallel_for(task, items, max(1, items * THREAD_ELEMENTS_EXPONENTIALS // out.size))
        return out

    def sum(self, flat: Array) -> Array:
        """Return the sums over n."""
        return SUM.reduce(flat, self.outer, self.n, self.inner, flat.dtype)


def _totals(flat: Array, blocks: _Blocks) -> tuple[Array, Array]:
    """Return greatest elements, and sums of exponentials relative to them; nan if infinite."""
    outer, n, inner = blocks.outer, blocks.n, blocks.inner
    tops = MAX.reduce(flat, outer, n, inner, flat.dtype)
    parts = parts_of(n, rows_at_once(n, inner))
    centres = np.repeat(tops.reshape(outer, 1, inner), parts, 1).reshape(-1)
    totals = SUM_EXPONENTIALS.reduce(flat, outer, n, inner, flat.dtype, centres)
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
    if blocks.fit:
        blocks.each(_SOFTMAX, flat, out)
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
    if blocks.fit:
        blocks.each(_LOG_SOFTMAX, flat, out)
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
    return _gradient(cotangent, output, dim, _SOFTMAX_GRADIENT, _CENTRED_PRODUCT, weighted=True)


def log_softmax_gradient(cotangent: Array, output: Array, dim: int) -> Array:
    """Return ``g - exp(y) * sum(g)``, the sum along a dim.

    Examples
    --------
    >>> log_softmax_gradient(np.array([1.0, 0.0]), np.log(np.array([0.5, 0.5])), 0)
    array([ 0.5, -0.5])
    """
    return _gradient(cotangent, output, dim, _LOG_SOFTMAX_GRADIENT, _LESS_EXPONENTIAL)


def _gradient(
    cotangent: Array, output: Array, dim: int, whole: Any, of_totals: Any, weighted: bool = False
) -> Array:
    """Return a gradient by what does `whole` blocks, or else of sums of g, or of g times y."""
    out = empty((output.size,), output.dtype)
    if not output.size:
        return out.reshape(output.shape)
    g = contiguous(cotangent)
    y = contiguous(output)
    blocks = _Blocks(output.shape, dim)
    if blocks.fit:
        blocks.each(whole, g, y, out)
    else:
        totals = blocks.sum(blocks.map(_PRODUCT, g, y, out, g, g) if weighted else g)
        blocks.map(of_totals, g, y, out, totals, totals)
    return out.reshape(output.shape)


def specialised(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], dim: int
) -> SpecialisedCall | None:
    """Return what takes a softmax of a C-contiguous array of few elements; None if there is none.

    Parameters
    ----------
    name : str
        ``"softmax"`` or ``"log_softmax"``.
    shape, dtype
        Of the arrays that the function will get.
    dim : int

    Examples
    --------
    >>> specialised("softmax", (2,), np.dtype(float), 0)(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    blocks = few_elements(shape or (1,), (dim,))
    if blocks is None or dtype.kind != "f":
        return None
    outer, n, inner, _ = blocks
    steps, empty = blocks.steps, np.empty
    run = (_LOG_SOFTMAX if name == "log_softmax" else _SOFTMAX).of(inner)
    entry = entry_of(run, dtype, dtype, INT64, int, int, int)

    def call(array: Array) -> Array:
        out = empty(shape, dtype)
        entry(array.ravel(), out.ravel(), steps, n, inner, outer)
        return out

    return call


def specialised_gradient(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], dim: int
) -> Callable[[Array, Array], Array] | None:
    """Return what takes the gradient of one of `specialised`, of the cotangent and the output.

    Examples
    --------
    >>> y = np.array([0.5, 0.5])
    >>> specialised_gradient("softmax", y.shape, y.dtype, 0)(np.array([1.0, 0.0]), y)
    array([ 0.25, -0.25])
    """
    blocks = few_elements(shape or (1,), (dim,))
    if blocks is None or dtype.kind != "f":
        return None
    outer, n, inner, _ = blocks
    steps, empty = blocks.steps, np.empty
    run = (_LOG_SOFTMAX_GRADIENT if name == "log_softmax" else _SOFTMAX_GRADIENT).of(inner)
    entry = entry_of(run, dtype, dtype, dtype, INT64, int, int, int)

    def gradient(cotangent: Array, output: Array) -> Array:
        out = empty(shape, dtype)
        entry(cotangent.ravel(), output.ravel(), out.ravel(), steps, n, inner, outer)
        return out

    return gradient


def specialised_logsumexp_gradient(
    shape: tuple[int, ...], dtype: np.dtype[Any], dims: Dims
) -> Callable[[Array, Array, Array], Array] | None:
    """Return what does `logsumexp_gradient` of few elements that lie row by row; None if not so.

    Examples
    --------
    >>> x = np.log(np.array([[1.0, 3.0]]))
    >>> run = specialised_logsumexp_gradient(x.shape, x.dtype, (1,))
    >>> run(np.array([1.0]), x, np.log(np.array([4.0])))
    array([[0.25, 0.75]])
    """
    blocks = few_elements(shape, dims)
    if blocks is None or dtype.kind != "f":
        return None
    outer, n, inner, _ = blocks
    empty, entry = np.empty, entry_of(_SCALED_EXPONENTIAL.of(inner), *[dtype] * 5, *[int] * 5)

    def gradient(cotangent: Array, input: Array, output: Array) -> Array:
        out = empty(shape, dtype)
        flat, tops, scales = input.ravel(), output.ravel(), cotangent.ravel()
        entry(flat, flat, out.ravel(), tops, scales, n, inner, inner, 0, outer)
        return out

    return gradient


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
        np.ascontiguousarray(np.broadcast_to(rows.reshape(kept), repeated)).reshape(-1)
        for rows in (output, cotangent)
    )
    flat = contiguous(input)
    blocks.map(_SCALED_EXPONENTIAL, flat, flat, out, p, q)
    return out.reshape(shape)
