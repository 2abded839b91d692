"""In which order the elements of a result lie in memory: PyTorch's, which decides what is a view.

Whether ``y.flatten()`` shares the memory of `y`, and so what a write to it changes, depends on the
strides of `y`. An operation that is no loop of `numgrad.kernels.pointwise.elementwise` makes its
result with one of these functions, or row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from numgrad.kernels.move.loop_order import ResultOrder, copy_order, result_order
from numgrad.kernels.move.strides import extent, is_dense, layout_of, repeats_elements, strided_view
from numgrad.runtime.memory import empty

__all__ = [
    "as_dtype",
    "caster",
    "copy_in_order",
    "copy_like",
    "copy_with_gaps",
    "empty_by",
    "empty_for",
    "empty_in_order",
    "empty_like",
    "in_order_of",
    "in_rows",
    "is_by_rows",
    "laid_out_like",
    "zeros_with_gaps",
]

Array = np.ndarray[Any, Any]


def empty_for(shape: tuple[int, ...], dtype: Any, arrays: Sequence[Array]) -> Array:
    """Return new memory for the result of a loop over arrays that broadcast to a shape.

    Examples
    --------
    >>> empty_for((2, 3), np.float64, [np.zeros(3), np.zeros((3, 2)).T]).strides
    (8, 16)
    """
    return (
        empty(shape, dtype) if is_by_rows(shape, arrays) else empty_in_order(shape, dtype, arrays)
    )


def empty_in_order(shape: tuple[int, ...], dtype: Any, places: Sequence[Any]) -> Array:
    """Do what `empty_for` does for whatever has a shape, strides and a number of dims."""
    return empty_by(result_order(shape, places), shape, dtype)


def empty_by(order: ResultOrder, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return new memory for a result that lies in an order.

    Examples
    --------
    >>> empty_by(ResultOrder((1, 0), None), (2, 3), np.float64).strides
    (8, 16)
    """
    memory, place = empty(order.shape_in_memory(shape), dtype), order.placer(shape)
    return memory if place is None else place(memory)


def empty_by_order(shape: Sequence[int], dtype: Any, order: Sequence[int]) -> Array:
    """Return memory without gaps for a shape, with its dims in an order, from the outermost one."""
    memory = empty(tuple([shape[dim] for dim in order]), dtype)
    return memory.transpose(np.argsort(order).tolist())


def is_by_rows(shape: tuple[int, ...], arrays: Sequence[Array]) -> bool:
    """Whether a loop goes row by row for certain, as nearly all do; `result_order` tells of others.

    Of dims of length 1 any stride may be asked for.
    """
    if len(shape) < 2 or not arrays:
        return True
    first = arrays[0]
    return first.shape == shape and first.flags.c_contiguous and min(shape) > 1


def empty_like(array: Array, dtype: Any = None) -> Array:
    """Return new memory without gaps that lies as a copy of `array` does: see `copy_order`.

    Dims along which all elements are one stay where they are in the shape.

    Examples
    --------
    >>> empty_like(np.zeros((3, 2, 4)).T[::2]).strides
    (8, 16, 32)
    >>> empty_like(np.broadcast_to(np.zeros((2, 3)).T, (4, 3, 2))).strides
    (48, 8, 24)
    >>> image = np.zeros((2, 4, 4, 1)).transpose(0, 3, 1, 2)
    >>> empty_like(image).strides
    (128, 8, 32, 8)
    """
    dtype = array.dtype if dtype is None else dtype
    if not array.size or (array.flags.c_contiguous and 1 not in array.shape):
        return empty_for(array.shape, dtype, [array])
    return empty_by(copy_order(array), array.shape, dtype)


def copy_like(values: Array, array: Array | None = None) -> Array:
    """Return a copy of `values` laid out as `empty_like` does for `array`, by default for them.

    Examples
    --------
    >>> copy_like(np.ones((2, 3)), np.zeros((3, 2)).T).strides
    (8, 16)
    """
    copy = empty_like(values if array is None else array, values.dtype)
    copy[...] = values
    return copy


def as_dtype(array: Array, dtype: Any) -> Array:
    """Return an array in a dtype: itself, or a copy laid out as `empty_like` does.

    Examples
    --------
    >>> as_dtype(np.broadcast_to(np.zeros((2, 3), int).T, (4, 3, 2)), np.float64).strides
    (48, 8, 24)
    >>> windows = np.lib.stride_tricks.sliding_window_view(np.zeros(6, int), 4)
    >>> windows.strides, as_dtype(windows, np.float64).strides
    ((8, 8), (8, 24))
    """
    if array.dtype == dtype:
        return array
    if 1 in array.shape and array.ndim > 1:  # whose strides NumPy does not keep
        copy = empty_like(array, dtype)
        copy[...] = array
        return copy
    if _ties(array):  # which NumPy orders otherwise
        array = copy_like(array)
    return array.astype(dtype, "K")


def caster(array: Array, dtype: Any) -> Callable[[Array], Array]:
    """Return what does `as_dtype` for arrays that lie as one does.

    Examples
    --------
    >>> caster(np.zeros((1, 3), int), np.float64)(np.ones((1, 3), int))
    array([[1., 1., 1.]])
    """
    if array.dtype != dtype:
        for order in "CK":
            cast = methodcaller("astype", dtype, order)
            if cast(array).strides == as_dtype(array, dtype).strides:
                return cast
    return partial(as_dtype, dtype=dtype)


def _ties(array: Array) -> bool:
    """Whether the strides leave open which of two dims is the outer one."""
    return not array.flags.c_contiguous and len({0, *map(abs, array.strides)}) <= array.ndim


def copy_with_gaps(array: Array) -> Array:
    """Return a copy with the strides of `array`, in new memory with what lies between its elements.

    Where elements share memory it is one without gaps, as of `copy_like`.

    Examples
    --------
    >>> copy_with_gaps(np.zeros((2, 6))[:, ::3]).strides
    (48, 24)
    """
    if array.flags.c_contiguous and 1 not in array.shape:
        copy = empty(array.shape, array.dtype)
    elif is_dense(array) or repeats_elements(array):
        return copy_like(array)
    else:
        copy = zeros_with_gaps(array)
    copy[...] = array
    return copy


def zeros_with_gaps(array: Array) -> Array:
    """Return zeros with the strides of `array`, in new memory with room for what lies between.

    Examples
    --------
    >>> zeros_with_gaps(np.ones((2, 6))[:, ::3]).strides
    (48, 24)
    """
    if not array.size:
        return np.zeros_like(array)
    shape, strides, _ = layout_of(array)
    low, high = extent((shape, strides, 0))
    return strided_view(np.zeros(high - low, array.dtype), (shape, strides, -low))


def laid_out_like(values: Array, array: Array) -> Array:
    """Return values in C order, which nobody else holds, laid out as `empty_like` does for `array`.

    Examples
    --------
    >>> laid_out_like(np.ones((2, 3)), np.zeros((3, 2)).T).strides
    (8, 16)
    """
    if array.flags.c_contiguous and 1 not in array.shape:
        return values
    memory = empty_like(array, values.dtype)
    if memory.strides == values.strides:
        return values
    memory[...] = values
    return memory


def in_rows(array: Array) -> Array:
    """Return an array with the strides of one that was made row by row: itself or a copy.

    NumPy leaves dims of length 1 the strides that they have.

    Examples
    --------
    >>> in_rows(np.zeros((1, 3)).T).strides
    (8, 8)
    """
    rows = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    if 1 in array.shape:
        rows = np.ndarray(array.shape, array.dtype, rows)
    return rows


def copy_in_order(array: Array, order: Sequence[int]) -> Array:
    """Return a copy that has its dims in an order in memory.

    Examples
    --------
    >>> copy_in_order(np.ones((2, 3)), (1, 0)).strides
    (8, 16)
    """
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order).tolist())


def in_order_of(values: Array, arrays: Sequence[Array]) -> Array:
    """Return values, which nobody else holds, laid out as a loop over some arrays would do.

    Parameters
    ----------
    values : numpy.ndarray
        The result is the same array where it lies right.
    arrays : sequence of numpy.ndarray
        What broadcasts to the shape of `values`, in the order in which it decides.

    Examples
    --------
    >>> in_order_of(np.ones((2, 3)), [np.zeros(3), np.zeros((3, 2)).T]).strides
    (8, 16)
    """
    if arrays and values.flags.c_contiguous and is_by_rows(values.shape, arrays):
        return values
    placed = empty_for(values.shape, values.dtype, arrays)
    if placed.strides == values.strides:
        return values
    placed[...] = values
    return placed
