"""Contiguous copies of strided elements: of all of them in threads, or of a block at a time.

A block that was just gathered is in a core's own cache when a reduction reads it, so elements that
lie apart cost one pass over memory, as contiguous ones do.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.base.tuning import NUMPY_COPY_ELEMENTS, THREAD_ELEMENTS_GATHER
from numgrad.codegen.compile.compile import kernel
from numgrad.kernels.move.strides import extent, layout_of, strided_view
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["Strided", "contiguous", "is_strided"]

Array = np.ndarray[Any, Any]

SIDE = 16  # of the squares that are transposed: as many float32 as a cache line holds


@kernel
def _gather(source, origin, shape, strides, first, rows, columns, width, out):  # type: ignore[no-untyped-def]
    """Copy `columns` elements from `first` on, in C order; for each row `width` further on."""
    last = shape.size - 1
    length, step = shape[last], strides[last]
    index = np.empty(shape.size, np.int64)
    done = 0
    for row in range(rows):
        rest, position = first + row * width, origin
        for dim in range(last, -1, -1):
            index[dim] = rest % shape[dim]
            rest //= shape[dim]
            position += index[dim] * strides[dim]
        end = done + columns
        while done < end:
            run = np.uintp(min(length - index[last], end - done))
            p, q = np.uintp(position), np.uintp(done)
            if step == 1:
                for j in range(run):
                    out[q + j] = source[p + j]
            elif step == 0:
                x = source[p]
                for j in range(run):
                    out[q + j] = x
            else:
                for j in range(run):
                    # A negative step is a large unsigned one, and the sum wraps around.
                    out[q + j] = source[p + j * np.uintp(step)]
            done += min(length - index[last], end - done)
            position -= index[last] * step
            index[last] = 0
            for dim in range(last - 1, -1, -1):
                index[dim] += 1
                position += strides[dim]
                if index[dim] < shape[dim]:
                    break
                position -= index[dim] * strides[dim]
                index[dim] = 0


@kernel
def _transpose(source, origin, shape, strides, steps, out, first, last):  # type: ignore[no-untyped-def]
    """Copy strips of SIDE rows, square by square.

    The last two dims are the rows, next to each other in `source`, and their columns, next to each
    other in `out`, where the dims have the strides `steps`.
    """
    rows, columns = shape.size - 2, shape.size - 1
    strips = (shape[rows] + SIDE - 1) // SIDE
    row_step, step = np.uintp(strides[rows]), np.uintp(strides[columns])
    out_step = np.uintp(steps[rows])
    for item in range(first, last):
        rest, strip = item // strips, item % strips
        position = origin + strip * SIDE * strides[rows]
        at = strip * SIDE * steps[rows]
        for dim in range(rows - 1, -1, -1):
            index = rest % shape[dim]
            rest //= shape[dim]
            position += index * strides[dim]
            at += index * steps[dim]
        height = np.uintp(min(SIDE, shape[rows] - strip * SIDE))
        for begin in range(0, shape[columns], SIDE):
            across = np.uintp(min(SIDE, shape[columns] - begin))
            corner, corner_out = np.uintp(position + begin * strides[columns]), np.uintp(at + begin)
            for i in range(height):
                p, q = corner + i * row_step, corner_out + i * out_step
                for j in range(across):
                    out[q + j] = source[p + j * step]


class Strided:
    """The elements of an array in C order, to be gathered a block at a time.

    Parameters
    ----------
    array : numpy.ndarray
        Its strides are multiples of its item size.

    Examples
    --------
    >>> Strided(np.arange(12.0).reshape(3, 4)[:, ::2]).block(1, 1, 4, 4)
    array([2., 4., 6., 8.])
    """

    __slots__ = ("dtype", "origin", "shape", "size", "source", "strides")

    def __init__(self, array: Array) -> None:
        self.dtype, self.size = array.dtype, array.size
        shape, strides, _ = layout = layout_of(array)
        low, high = extent(layout)
        self.source = strided_view(array, ((high - low,), (1,), low))
        self.origin = -low
        merged: list[tuple[int, int]] = []
        for length, step in zip(shape, strides, strict=True):
            if length == 1:
                continue
            if merged and merged[-1][1] == length * step:
                merged[-1] = (merged[-1][0] * length, step)
            else:
                merged.append((length, step))
        self.shape = np.array([length for length, _ in merged] or [1], np.int64)
        self.strides = np.array([step for _, step in merged] or [1], np.int64)

    @property
    def is_adverse(self) -> bool:
        """Whether neighbours in this order lie further apart than neighbours in another one."""
        steps = np.abs(self.strides)
        return bool(steps[-1] > 1 and ((steps > 0) & (steps < steps[-1])).any())

    def block(self, first: int, rows: int, columns: int, width: int) -> Array:
        """Return `columns` elements from number `first` on, and again `width` further on."""
        out = np.empty(rows * columns, self.dtype)
        self.copy(first, rows, columns, width, out)
        return out

    def copy(self, first: int, rows: int, columns: int, width: int, out: Array) -> None:
        """Store what `block` returns."""
        _gather(
            self.source,
            self.origin,
            self.shape,
            self.strides,
            first,
            rows,
            columns,
            width,
            out,
        )

    def all(self) -> Array:
        """Return all elements."""
        out = empty((self.size,), self.dtype)
        if self.is_adverse:
            self._transpose(out)
        else:
            parallel_for(
                lambda first, last: self.copy(first, 1, last - first, 0, out[first:last]),
                self.size,
                THREAD_ELEMENTS_GATHER,
            )
        return out

    def _transpose(self, out: Array) -> None:
        """Store all elements, reading along the dim in which they are nearest to each other."""
        shape, strides = self.shape, self.strides
        steps = np.array([prod(shape[dim + 1 :].tolist()) for dim in range(len(shape))], np.int64)
        nearest = min(
            [dim for dim in range(len(shape)) if strides[dim]], key=lambda dim: abs(strides[dim])
        )
        order = [dim for dim in range(len(shape) - 1) if dim != nearest]
        order += [nearest, len(shape) - 1]
        shape, strides, steps = shape[order], strides[order], steps[order]
        strip = SIDE * int(shape[-1])
        items = prod(shape[:-2].tolist()) * -(-int(shape[-2]) // SIDE)

        def task(first: int, last: int) -> None:
            _transpose(self.source, self.origin, shape, strides, steps, out, first, last)

        parallel_for(task, items, max(1, THREAD_ELEMENTS_GATHER // strip))


def is_strided(array: Array) -> bool:
    """Return whether an array is one that `Strided` takes, large enough to be worth it."""
    itemsize = array.itemsize
    return array.size > NUMPY_COPY_ELEMENTS and not any(step % itemsize for step in array.strides)


def contiguous(array: Array) -> Array:
    """Return the elements in C order, one-dimensional; of a C-contiguous array a view.

    Examples
    --------
    >>> contiguous(np.array([[1, 2], [3, 4]]).T)
    array([1, 3, 2, 4])
    """
    if array.flags.c_contiguous:
        return array.reshape(-1)
    return Strided(array).all() if is_strided(array) else np.ascontiguousarray(array).reshape(-1)
