"""Convolutions as products of matrices: windows are copied to columns, some samples at a time.

What a convolution computes is one sum of products over samples, channels, places and the elements
of a kernel, T(x, w, y) = sum x[place * stride + k * dilation - padding] w[k] y[place]; with two of
the three arrays given, its derivative for the third is the convolution (of x by w), the transposed
convolution (of y by w), or what brings gradients to the weight (from x and y). There are
`convolution`, `transposed_convolution` and `weight_gradient` for these, in any number of dims.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from numgrad.base.tuning import CONVOLUTION_BYTES
from numgrad.runtime.memory import empty

__all__ = [
    "Steps",
    "columns_of",
    "convolution",
    "from_columns",
    "output_sizes",
    "transposed_convolution",
    "weight_gradient",
]

Array = np.ndarray[Any, Any]


class Steps(NamedTuple):
    """How a window moves over the spatial dims, and what it reads: a number for each dim."""

    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]


def output_sizes(sizes: Sequence[int], kernel: Sequence[int], steps: Steps) -> tuple[int, ...]:
    """Return how many places a window has along each dim.

    Examples
    --------
    >>> output_sizes((6, 5), (3, 2), Steps((1, 2), (0, 1), (1, 1)))
    (4, 3)
    """
    return tuple(
        [
            (size + 2 * padding - dilation * (width - 1) - 1) // stride + 1
            for size, width, stride, padding, dilation in zip(sizes, kernel, *steps, strict=True)
        ]
    )


def _padded_sizes(sizes: Sequence[int], padding: Sequence[int]) -> tuple[int, ...]:
    return tuple([size + 2 * each for size, each in zip(sizes, padding, strict=True)])


def _inner(padding: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    """Return where an array of some sizes stands in the padded one, behind two dims."""
    places = [slice(each, each + size) for each, size in zip(padding, sizes, strict=True)]
    return (slice(None), slice(None), *places)


def _padded(array: Array, padding: Sequence[int]) -> Array:
    """Return an array with zeros around its spatial dims, those behind the first two."""
    if not any(padding):
        return array
    sizes = array.shape[2:]
    result = np.zeros((*array.shape[:2], *_padded_sizes(sizes, padding)), array.dtype)
    result[_inner(padding, sizes)] = array
    return result


def _windows(padded: Array, kernel: Sequence[int], places: Sequence[int], steps: Steps) -> Array:
    """Return the view of shape (n, channels, *kernel, *places) of all windows."""
    spatial = padded.strides[2:]
    inside = [step * each for step, each in zip(spatial, steps.dilation, strict=True)]
    between = [step * each for step, each in zip(spatial, steps.stride, strict=True)]
    return as_strided(
        padded, (*padded.shape[:2], *kernel, *places), (*padded.strides[:2], *inside, *between)
    )


def _chunks(count: int, bytes_each: int) -> Iterator[slice]:
    """Yield ranges of samples, so many that their columns take some memory."""
    step = max(1, CONVOLUTION_BYTES // max(bytes_each, 1))
    for first in range(0, count, step):
        yield slice(first, min(first + step, count))


def columns_of(
    array: Array, kernel: Sequence[int], places: Sequence[int], steps: Steps, groups: int = 1
) -> Array:
    """Return the windows of samples: of shape (n, groups, channels / groups * kernel, places)."""
    count, channels = array.shape[:2]
    shape = (count, groups, channels // groups * math.prod(kernel), math.prod(places))
    if not math.prod(shape):
        return np.empty(shape, array.dtype)
    windows = _windows(_padded(array, steps.padding), kernel, places, steps)
    if windows.flags.c_contiguous:  # kernels of one element
        return windows.reshape(shape)
    columns = empty(windows.shape, array.dtype)
    columns[...] = windows
    return columns.reshape(shape)


def from_columns(
    columns: Array,
    channels: int,
    sizes: Sequence[int],
    kernel: Sequence[int],
    places: Sequence[int],
    steps: Steps,
) -> Array:
    """Return samples of some sizes that sum what windows hold: the adjoint of `columns_of`."""
    count = columns.shape[0]
    result = np.zeros((count, channels, *_padded_sizes(sizes, steps.padding)), columns.dtype)
    if not columns.size:
        return result[_inner(steps.padding, sizes)]
    windows = columns.reshape(count, channels, *kernel, *places)
    for at in np.ndindex(*kernel):
        where = [
            slice(k * dilation, k * dilation + (number - 1) * stride + 1, stride)
            for k, number, stride, dilation in zip(
                at, places, steps.stride, steps.dilation, strict=True
            )
        ]
        result[(slice(None), slice(None), *where)] += windows[(slice(None), slice(None), *at)]
    return result[_inner(steps.padding, sizes)]


def convolution(x: Array, weight: Array, steps: Steps, groups: int) -> Array:
    """Return the sums of products of windows and kernels.

    Parameters
    ----------
    x : array of shape (n, channels, *sizes)
    weight : array of shape (out_channels, channels / groups, *kernel)
    steps : Steps
    groups : int
        The first of so many groups of channels is seen by the first group of kernels, and so on.

    Examples
    --------
    >>> x = np.arange(4.0).reshape(1, 1, 4)
    >>> convolution(x, np.array([[[1.0, 10.0]]]), Steps((1,), (0,), (1,)), 1)
    array([[[10., 21., 32.]]])
    """
    kernel = weight.shape[2:]
    places = output_sizes(x.shape[2:], kernel, steps)
    count, many = x.shape[0], weight.shape[0]
    result = empty((count, many, *places), x.dtype)
    if not result.size or not weight.size:
        result[...] = 0
        return result
    by_group = result.reshape(count, groups, many // groups, -1)
    kernels = np.ascontiguousarray(weight).reshape(groups, many // groups, -1)
    for part in _chunks(count, _bytes_of_columns(x, kernel, places)):
        np.matmul(kernels, columns_of(x[part], kernel, places, steps, groups), out=by_group[part])
    return result


def transposed_convolution(
    y: Array, weight: Array, sizes: Sequence[int], steps: Steps, groups: int
) -> Array:
    """Return the adjoint of `convolution` for its input, which has some sizes.

    Parameters
    ----------
    y : array of shape (n, out_channels, *places)
    weight : array of shape (out_channels, channels / groups, *kernel)

    Examples
    --------
    >>> y = np.array([[[1.0, 2.0]]])
    >>> transposed_convolution(y, np.array([[[1.0, 10.0]]]), (3,), Steps((1,), (0,), (1,)), 1)
    array([[[ 1., 12., 20.]]])
    """
    kernel, count = weight.shape[2:], y.shape[0]
    channels = weight.shape[1] * groups
    result = empty((count, channels, *sizes), y.dtype)
    if not result.size or not weight.size or not y.size:
        result[...] = 0
        return result
    by_group = np.ascontiguousarray(y).reshape(count, groups, weight.shape[0] // groups, -1)
    kernels = np.ascontiguousarray(weight).reshape(groups, weight.shape[0] // groups, -1)
    kernels = kernels.swapaxes(-2, -1)
    for part in _chunks(count, _bytes_of_columns(result, kernel, y.shape[2:])):
        columns = np.matmul(kernels, by_group[part])
        result[part] = from_columns(columns, channels, sizes, kernel, y.shape[2:], steps)
    return result


def weight_gradient(x: Array, y: Array, kernel: Sequence[int], steps: Steps, groups: int) -> Array:
    """Return the adjoint of `convolution` for its weight, whose kernels have a shape.

    Parameters
    ----------
    x : array of shape (n, channels, *sizes)
    y : array of shape (n, out_channels, *places)

    Examples
    --------
    >>> x, y = np.array([[[1.0, 2.0, 3.0]]]), np.array([[[1.0, 10.0]]])
    >>> weight_gradient(x, y, (2,), Steps((1,), (0,), (1,)), 1)
    array([[[21., 32.]]])
    """
    count, channels = x.shape[:2]
    many, places = y.shape[1], y.shape[2:]
    result = np.zeros((groups, many // groups, channels // groups * math.prod(kernel)), x.dtype)
    if result.size and y.size:
        by_group = np.ascontiguousarray(y).reshape(count, groups, many // groups, -1)
        for part in _chunks(count, _bytes_of_columns(x, kernel, places)):
            columns = columns_of(x[part], kernel, places, steps, groups)
            products = np.matmul(by_group[part], columns.swapaxes(-2, -1))
            result += products.sum(0) if products.shape[0] > 1 else products[0]
    return result.reshape(many, channels // groups, *kernel)


def _bytes_of_columns(array: Array, kernel: Sequence[int], places: Sequence[int]) -> int:
    return int(array.shape[1] * math.prod(kernel) * math.prod(places) * array.dtype.itemsize)
