"""Histograms: histc, histogram, histogramdd."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.base.halves import HALF
from numgrad.graph.tensor import Tensor
from numgrad.kernels.ranges import evenly
from numgrad.kernels.search.counting import counts_in_bins
from numgrad.ops.arguments.scalar_arrays import check_fits
from numgrad.ops.core.declare import NotDifferentiablePrimitive
from numgrad.ops.core.out_argument import write, write_result
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.movement.shape import reshape
from numgrad.ops.signatures.declared import declare

__all__ = ["histc", "histogram", "histogramdd"]

Array = np.ndarray[Any, Any]
Ends = tuple[float, float]

_histogram_type = return_type("histogram", "hist", "bin_edges")
_histogramdd_type = return_type("histogramdd", "hist", "bin_edges")


def _text(number: float) -> str:
    """Return a number as PyTorch's messages have it."""
    return "nan" if math.isnan(number) else f"{number:g}"


def _extremes(array: Array) -> Ends:
    return float(np.min(array)), float(np.max(array))


def _edges(ends: Ends, bins: int, dtype: Any) -> Array:
    return evenly(*ends, bins + 1).astype(dtype)


def _check_ends(low: float, high: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{_text(low)}, {_text(high)}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")


@silent
def _histc(array: Array, bins: int, low: float, high: float) -> Array:
    if low == high and array.size:
        low, high = _extremes(array)
    if low == high:
        low, high = low - 1, high + 1
    _check_ends(low, high)
    edges = _edges((low, high), bins, array.dtype)
    return counts_in_bins(array.reshape(-1, 1), None, [edges], 0).astype(array.dtype)


_HISTC = Primitive("histc", "NotImplemented", _histc, ["input"], [None], listed=False)


def _refuse(kernel: str, input: Tensor) -> None:
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")


def _check_edges_are_numbers(
    points: Tensor, ends: Sequence[Ends] | None, counts: Sequence[int]
) -> None:
    """Raise unless a dtype has the edges of so many bins, where it is known between what."""
    dtype = points._array.dtype
    for dim, count in enumerate(counts):
        if count < -1:
            raise RuntimeError("number of steps must be non-negative")
        if count > 0 and (dtype.kind == "b" or (dtype.kind == "u" and dtype.itemsize > 1)):
            _refuse("linspace_cpu", points)
        if count > 0 and ends is not None:
            for end in ends[dim]:
                check_fits(end, dtype)


def _check_bins(count: int, dim: int = 0) -> None:
    if count <= 0:
        raise RuntimeError(
            f"torch.histogram(): bins must be > 0, but got {count} for dimension {dim}"
        )


@declare(
    "histc(Tensor input, int bins=100, number min=0, number max=0, *, Tensor? out=None)",
)
def histc(input: Tensor, bins: int, min: Any, max: Any, out: Tensor | None) -> Tensor:
    """Return how many elements lie in each of so many bins of one width, in the input's dtype.

    Elements outside, and nan, count nowhere; the last bin has its right edge, too. No gradient
    flows.

    Parameters
    ----------
    bins
        How many.
    min, max
        Where the first begins and the last ends. Where they are equal: at the least and at the
        greatest element.

    Raises
    ------
    RuntimeError
        If there are no bins, or they do not end behind where they begin.
    NotImplementedError
        If the elements are not floating point numbers.

    >>> import numgrad as ng
    >>> ng.histc(ng.tensor([1.0, 2.0, 1.5]), 4, 0, 2)
    tensor([0., 0., 1., 2.])
    """
    array = input._array
    _check_bins(bins)
    for end in (min, max):
        check_fits(end, np.dtype(np.float64))
    kind, size = array.dtype.kind, array.size
    wide = kind == "u" and array.dtype.itemsize > 1
    low, high = float(min), float(max)
    if low == high and size and (kind == "c" or wide):
        _refuse("aminmax_cpu", input)
    if low != high:
        _check_ends(low, high)
        _check_edges_are_numbers(input, [(low, high)], [bins])
    elif not size:
        _check_edges_are_numbers(input, [(low - 1, high + 1)], [bins])
    elif kind == "b":
        _refuse("linspace_cpu", input)
    if kind != "f":
        _refuse("histogram_cpu", input)
    if out is not None and out._array.dtype != array.dtype:
        raise RuntimeError(
            "torch.histogram: input tensor and hist tensor should have the same dtype, but got "
            f"input {input.dtype.cpp_name} and hist {out.dtype.cpp_name}"
        )
    result: Tensor = _HISTC.apply(input.detach(), bins=bins, low=low, high=high)
    return result if out is None else write(result._array, out)


# --- of one dim or more --------------------------------------------------------------------------


def _checked_ends(ends: Sequence[Ends]) -> Sequence[Ends]:
    """Return where the first bin of each dim begins and the last one ends, if that can be."""
    for dim, (low, high) in enumerate(ends):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(
                f"torch.histogramdd: dimension {dim}'s range [{_text(low)}, {_text(high)}] is not "
                "finite"
            )
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {_text(low)} max "
                f"{_text(high)} for dimension {dim}"
            )
    return ends


def _ends_of(points: Array, between: Sequence[float] | None) -> list[Ends]:
    if between is not None:
        ends = _pairs(between)
    elif points.shape[0]:
        ends = _checked_ends([_extremes(points[:, dim]) for dim in range(points.shape[1])])
    else:
        ends = [(0.0, 1.0)] * points.shape[1]
    return [(low - 0.5, high + 0.5) if low == high else (low, high) for low, high in ends]


def _known_ends(points: Tensor, between: Sequence[float] | None) -> list[Ends] | None:
    """Return the ends where these do not follow from numbers."""
    if between is None and points._array.shape[0]:
        return None
    return _ends_of(points._array, between)


def _pairs(between: Sequence[float]) -> Sequence[Ends]:
    return list(zip(between[::2], between[1::2], strict=True))


def _bin_edges(points: Array, bins: Sequence[int], between: Sequence[float] | None) -> list[Array]:
    ends = _ends_of(points, between)
    return [_edges(*each, points.dtype) for each in zip(ends, bins, strict=True)]


@silent
def _in_bins(
    points: Array, weights: Array | None, edges: Sequence[Array], way: int, density: bool
) -> Array:
    if not edges:
        return np.full((), np.nan if density else 0.0, points.dtype)
    sums = counts_in_bins(points, weights, edges, way)
    if density:
        sums /= sums.sum()
        for dim, edge in enumerate(edges):
            sums /= np.diff(edge).reshape((-1,) + (1,) * (len(edges) - dim - 1))
    return sums.astype(points.dtype)


def _parted(arrays: Sequence[Array], weighted: bool) -> tuple[Array, Array | None, Sequence[Array]]:
    """Return the points, the weights if there are any, and the edges of bins if they were given."""
    points, *rest = arrays
    return points, rest[0] if weighted else None, rest[1:] if weighted else rest


def _from_counts(
    *arrays: Array,
    bins: Sequence[int],
    between: Sequence[float] | None,
    weighted: bool,
    density: bool,
) -> Array:
    points, weights, _ = _parted(arrays, weighted)
    return _in_bins(points, weights, _bin_edges(points, bins, between), 1, density)


def _from_edges(*arrays: Array, weighted: bool, density: bool) -> Array:
    points, weights, edges = _parted(arrays, weighted)
    return _in_bins(points, weights, edges, 2, density)


def _declare(name: str, word: str, forward: Any) -> NotDifferentiablePrimitive:
    return NotDifferentiablePrimitive(name, word, forward, ["*tensors"], [None])


_EDGES = _declare(
    "histogramdd_bin_edges",
    "_histogramdd_bin_edges",
    lambda *arrays, bins, between: tuple(_bin_edges(arrays[0], bins, between)),
)
_FROM_COUNTS = _declare("histogramdd_bins", "_histogramdd_from_bin_cts", _from_counts)
_FROM_EDGES = _declare("histogramdd_edges", "_histogramdd_from_bin_tensors", _from_edges)
_HISTOGRAM = _declare(
    "histogram_bins",
    "histogram",
    lambda *arrays, bins, between, weighted, density: (
        _from_counts(*arrays, bins=bins, between=between, weighted=weighted, density=density),
        *_bin_edges(arrays[0], bins, between),
    ),
)
_HISTOGRAM_OF_EDGES = _declare(
    "histogram_edges",
    "histogram",
    lambda *arrays, weighted, density: (
        _from_edges(*arrays, weighted=weighted, density=density),
        arrays[-1].copy(),
    ),
)


def _check_range(points: Tensor, between: Sequence[float] | None) -> None:
    """Raise unless there can be bins of one width, in PyTorch's words and in its order."""
    rows, dims = points._array.shape
    dtype = points._array.dtype
    if between is not None:
        if len(between) != 2 * dims:
            raise RuntimeError(
                f"torch.histogramdd: for a {dims}-dimensional histogram range should have "
                f"{2 * dims} elements, but got {len(between)}"
            )
        _checked_ends(_pairs(between))
    elif rows and dims and (dtype.kind != "f" or dtype == HALF):
        _refuse("histogramdd", points)


def _check_weight(points: Tensor, shape: Sequence[int], weight: Tensor | None) -> None:
    """Raise unless there is a weight for each point; points have a shape in messages."""
    if weight is None:
        return
    if weight._array.shape != (*shape[:-1],):
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as "
            "the input tensor excluding its innermost dimension, but got input with shape "
            f"{list(shape)} and weight with shape {list(weight._array.shape)}"
        )
    if weight._array.dtype != points._array.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
            f"should have the same dtype, but got input({points.dtype.cpp_name}), and "
            f"weight({weight.dtype.cpp_name})"
        )


def _check_edges(points: Tensor, edges: Tensor, dim: int) -> None:
    if edges._array.dtype != points._array.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
            f"input with dtype {points.dtype.cpp_name} and bins for dimension {dim} with dtype "
            f"{edges.dtype.cpp_name}"
        )
    if edges._array.ndim != 1:
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have one dimension, but got "
            f"{edges._array.ndim} dimensions in the bins tensor for dimension {dim}"
        )
    if not edges._array.size:
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in "
            f"the bins tensor for dimension {dim}"
        )


@declare(
    "histogram(Tensor input, Tensor bins, *, Tensor? weight=None, bool density=False, "
    "Tensor[]? out=None)",
    "histogram(Tensor input, int bins=100, *, float[]? range=None, Tensor? weight=None, "
    "bool density=False, Tensor[]? out=None)",
)
def histogram(
    input: Tensor, bins: Any, range: Any, weight: Tensor | None, density: bool, out: Any
) -> Any:
    """Return how many elements lie in each bin, and the edges of the bins.

    A bin has its left edge, and the last one its right edge, too; elements outside, and nan, count
    nowhere. There is no derivative, as in PyTorch.

    Parameters
    ----------
    bins : int or tensor of shape (n,)
        How many bins of one width, or their edges in ascending order.
    range : two floats
        Where the first begins and the last ends; by default at the least and the greatest element.
    weight : tensor
        What to add up in the place of ones, of as many elements as the input.
    density
        Divide by the sum of all and by the width of each bin, so that the integral is 1.

    Raises
    ------
    RuntimeError
        If there are no bins, the range is not one of finite numbers, or the tensors do not fit.
    NotImplementedError
        If the elements are not float32 or float64.

    >>> import numgrad as ng
    >>> ng.histogram(ng.tensor([1.0, 2.0, 1.5]), 2, range=(0.0, 2.0))
    torch.return_types.histogram(
    hist=tensor([0., 3.]),
    bin_edges=tensor([0., 1., 2.]))
    """
    points = reshape(input, (input._array.size, 1))
    if weight is not None:
        weight = reshape(weight, (weight._array.size,))
    given = isinstance(bins, Tensor)
    if given:
        _check_edges(points, bins, 0)
        _check_bins(bins._array.size - 1)
    else:
        _check_bins(bins)
        _check_range(points, range)
        _check_edges_are_numbers(points, _known_ends(points, range), (bins,))
    _check_weight(points, points._array.shape, weight)
    if points._array.dtype.kind != "f":
        _refuse("histogram_cpu", points)
    weights = () if weight is None else (weight,)
    options: dict[str, Any] = {"weighted": weight is not None, "density": density}
    if given:
        found = _HISTOGRAM_OF_EDGES.apply(points, *weights, bins, **options)
    else:
        found = _HISTOGRAM.apply(points, *weights, bins=(bins,), between=range, **options)
    return write_result("histogram", _histogram_type(*found), out)


def _check_dims(bins: Sequence[Any], dims: int) -> None:
    """Raise unless there are bins for each dim."""
    if len(bins) == dims:
        return
    if bins and isinstance(bins[0], Tensor):
        raise RuntimeError(
            f"torch.histogramdd: expected {dims} sequences of bin edges for a {dims}-dimensional "
            f"histogram but got {len(bins)}"
        )
    raise RuntimeError(
        "histogramdd: The size of bins must be equal to the innermost dimension of the input."
    )


def _check_counts(counts: Sequence[int]) -> None:
    """Raise where there would be no edges of bins."""
    for dim, count in enumerate(counts):
        if count == -1:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements "
                f"in the bins tensor for dimension {dim}"
            )


@declare(
    "histogramdd(Tensor input, int bins, float[]? range=None, Tensor? weight=None, "
    "bool density=False)",
    "histogramdd(Tensor input, int[] bins, float[]? range=None, Tensor? weight=None, "
    "bool density=False)",
    "histogramdd(Tensor input, Tensor[] bins, float[]? range=None, Tensor? weight=None, "
    "bool density=False)",
    method=False,
)
def histogramdd(input: Tensor, bins: Any, range: Any, weight: Tensor | None, density: bool) -> Any:
    """Return how many points lie in each box, and the edges of the boxes in each dim.

    Otherwise it does what `histogram` does. There is no derivative, as in PyTorch.

    Parameters
    ----------
    input : tensor of shape (..., n)
        Points of n coordinates.
    bins : int, n ints, or n tensors
        How many bins in all dims, or in each; or their edges in ascending order.
    range : 2 n floats
        Where the first bin begins and the last one ends, for each dim.
    weight : tensor of shape (...)
        What to add up in the place of ones.
    density
        Divide by the sum of all and by the volume of each box.

    >>> import numgrad as ng
    >>> points = ng.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> ng.histogramdd(points, 2).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    dims = shape[-1]
    counts = (bins,) * dims if isinstance(bins, int) else tuple(bins)
    given = bool(counts) and isinstance(counts[0], Tensor)
    points = reshape(input, (math.prod(shape[:-1]), dims))
    if given:
        _check_dims(counts, dims)
        for dim, edges in enumerate(counts):
            _check_edges(points, edges, dim)
    else:
        _check_range(points, range)
        _check_dims(counts, dims)
        _check_edges_are_numbers(points, _known_ends(points, range), counts)
        _check_counts(counts)
    _check_weight(points, shape, weight)
    for dim, each in enumerate(counts):
        _check_bins(each._array.size - 1 if given else each, dim)
    if points._array.dtype.kind != "f":
        _refuse("histogram_cpu", points)
    weights = () if weight is None else (reshape(weight, (points._array.shape[0],)),)
    options: dict[str, Any] = {"weighted": weight is not None, "density": density}
    if given:
        hist = _FROM_EDGES.apply(points, *weights, *counts, **options)
        return _histogramdd_type(hist, counts)
    edges = _EDGES.apply(points, *weights, bins=counts, between=range)
    hist = _FROM_COUNTS.apply(points, *weights, bins=counts, between=range, **options)
    return _histogramdd_type(hist, tuple(edges))
