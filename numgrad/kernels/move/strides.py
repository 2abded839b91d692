"""Arrays by shape and strides: views anywhere in a storage, overlap, and flat positions.

Strides and offsets count elements, as PyTorch's do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "Layout",
    "extent",
    "holder_behind",
    "is_dense",
    "layout_of",
    "may_overlap",
    "positions",
    "repeats_elements",
    "slice_of_nothing",
    "sliced",
    "strided_view",
    "view_strides",
]

Array = np.ndarray[Any, Any]
# A shape, a stride for each dimension, and the offset of the first element.
Layout = tuple[tuple[int, ...], tuple[int, ...], int]


class _Window:
    """What NumPy makes an array of that lies anywhere in the memory of another one."""

    __slots__ = ("__array_interface__", "array")

    def __init__(self, array: Array, interface: dict[str, Any]) -> None:
        self.array = array  # keeps the memory alive
        self.__array_interface__ = interface


def strided_view(array: Array, layout: Layout) -> Array:
    """Return a view of the memory of `array`; the offset counts from its first element.

    Nothing is checked: the caller knows that the layout stays inside the memory.

    Examples
    --------
    >>> strided_view(np.arange(6.0), ((2, 3), (1, 2), 0))
    array([[0., 2., 4.],
           [1., 3., 5.]])
    """
    shape, stride, offset = layout
    itemsize = array.itemsize
    interface = array.__array_interface__
    address, read_only = interface["data"]
    window = {
        "shape": shape,
        "strides": tuple([step * itemsize for step in stride]),
        "data": (address + offset * itemsize, read_only),
        "typestr": interface["typestr"],
        "version": 3,
    }
    return np.asarray(_Window(array, window))


def holder_behind(array: Array) -> Array:
    """Return the array whose memory an array is a part of, over views of all kinds; maybe itself.

    Examples
    --------
    >>> array = np.arange(6.0)
    >>> holder_behind(strided_view(array[2:], ((0,), (1,), 1))[None]) is array
    True
    """
    while True:
        base: Any = array.base
        if type(base) is _Window:
            base = base.array
        if type(base) is not np.ndarray:
            return array
        array = base


def sliced(array: Array, dim: int, start: int, stop: int, step: int) -> Array:
    """Return a view of positions in a dim; start and stop from 0 to its size.

    A slice of nothing lies at its start, with the stride of its step: so what is made of it finds
    its place in memory. NumPy would put it where the array begins.

    Examples
    --------
    >>> array = np.arange(6.0)
    >>> nothing = sliced(array, 0, 4, 4, 2)
    >>> nothing, strided_view(nothing, ((2,), (1,), 0))
    (array([], dtype=float64), array([4., 5.]))
    """
    if start < stop:
        return array[(*(slice(None),) * dim, slice(start, stop, step))]
    return strided_view(array, slice_of_nothing(array, dim, start, step))


def slice_of_nothing(array: Array, dim: int, start: int, step: int) -> Layout:
    """Return the layout of a slice without positions, counted from the array's first element."""
    shape, strides, _ = layout_of(array)
    stride = strides[dim]
    # NumPy counts in bytes: a step that is too far for it is left out.
    wide = stride * step if stride * step * array.itemsize <= np.iinfo(np.intp).max else stride
    return (
        (*shape[:dim], 0, *shape[dim + 1 :]),
        (*strides[:dim], wide, *strides[dim + 1 :]),
        start * stride,
    )


def view_strides(array: Array, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the strides of a view of an array in another shape; None if it needs a copy.

    Dims of length 1 may have any stride. PyTorch gives them that of a dim which goes over what
    stands behind them, and Python sees it, so these do, too. The shape has as many elements.

    Examples
    --------
    >>> view_strides(np.zeros((2, 3)).T, (3, 1, 2)), view_strides(np.zeros((2, 3)).T, (6,))
    ((1, 6, 3), None)
    """
    itemsize = array.itemsize
    if not array.size:  # there is nothing to go over: as if row by row
        if shape == array.shape:
            return layout_of(array)[1]
        steps, step = [], 1
        for length in reversed(shape):
            steps.append(step)
            step *= max(length, 1)
        return tuple(reversed(steps))
    dims = [(n, step // itemsize) for n, step in zip(array.shape, array.strides, strict=True)]
    found: list[int] = []
    left = list(shape)
    # From the last dim on, dims that go on from each other are one stretch, and so are those of
    # length 1 in front of any.
    while dims:
        count, step = dims.pop()
        stretch = step
        while dims and (dims[-1][0] == 1 or dims[-1][1] == count * step):
            count *= dims.pop()[0]
        taken = 1
        while left and (taken < count or left[-1] == 1):
            found.append(stretch)
            length = left.pop()
            taken, stretch = taken * length, stretch * length
        if taken != count:
            return None
    found += [1] * len(left)  # of an array without dims
    return tuple(reversed(found))


def layout_of(array: Array) -> Layout:
    """Return the layout of an array, at offset 0.

    Examples
    --------
    >>> layout_of(np.zeros((2, 3)).T)
    ((3, 2), (1, 3), 0)
    """
    itemsize = array.itemsize
    return array.shape, tuple([step // itemsize for step in array.strides]), 0


def extent(layout: Layout) -> tuple[int, int]:
    """Return the lowest position of a layout and one more than the highest.

    Examples
    --------
    >>> extent(((2, 3), (3, 1), 4))
    (4, 10)
    """
    shape, stride, offset = layout
    low = high = offset
    for length, step in zip(shape, stride, strict=True):
        if length == 0:
            return offset, offset
        if step > 0:
            high += (length - 1) * step
        else:
            low += (length - 1) * step
    return low, high + 1


def is_dense(array: Array) -> bool:
    """Return whether the elements fill their stretch of memory, each place once, in any order.

    Examples
    --------
    >>> is_dense(np.zeros((2, 3)).T), is_dense(np.zeros((2, 3))[:, :2])
    (True, False)
    """
    expected = array.itemsize
    for step, length in sorted(zip(array.strides, array.shape, strict=True)):
        if length != 1:
            if step != expected:
                return False
            expected *= length
    return True


def may_overlap(layout: Layout) -> bool:
    """Return whether two indices may lead to the same element; False is certain.

    Examples
    --------
    >>> may_overlap(((2, 3), (3, 1), 0)), may_overlap(((2, 3), (1, 1), 0))
    (False, True)
    """
    reach = 0
    shape, stride, _ = layout
    if 0 in shape:
        return False
    for step, length in sorted((abs(s), n) for n, s in zip(shape, stride, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += (length - 1) * step
    return False


def repeats_elements(array: Array) -> bool:
    """Return whether a dim of stride 0 shows the same elements several times.

    Examples
    --------
    >>> repeats_elements(np.broadcast_to(np.zeros(3), (2, 3)))
    True
    """
    return (
        0 in array.strides
        and array.size > 1
        and any(
            step == 0 and length > 1
            for length, step in zip(array.shape, array.strides, strict=True)
        )
    )


def positions(layout: Layout) -> Array:
    """Return the position of every element of a layout, in its shape.

    Examples
    --------
    >>> positions(((2, 2), (1, 1), 5))
    array([[5, 6],
           [6, 7]])
    """
    shape, stride, offset = layout
    total = np.full(shape, offset, np.int64)
    for dim, (length, step) in enumerate(zip(shape, stride, strict=True)):
        steps = np.arange(length, dtype=np.int64) * step
        total += steps.reshape((length,) + (1,) * (len(shape) - dim - 1))
    return total
