"""Triangles of matrices: copies in which all else is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.runtime.memory import empty

__all__ = ["triangle", "triangle_of_few"]

Array = np.ndarray[Any, Any]
_NUMBERS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


@kernel
def _copy_triangle(data, result, rows, columns, offset, lower, size):  # type: ignore[no-untyped-def]
    """Copy what is left of matrices of so many rows, of elements of `size` numbers; the rest is 0.

    What is left is up to a diagonal, or from one on.
    """
    width = columns * size
    for number in range(result.size // width):
        start = number * width
        column = number % rows + offset + (1 if lower else 0)
        edge = start + min(max(column, 0), columns) * size
        end = start + width
        first, last = (start, edge) if lower else (edge, end)
        for k in range(first, last):
            result[k] = data[k]
        first, last = (edge, end) if lower else (start, edge)
        for k in range(first, last):
            result[k] = 0


def triangle_of_few(shape: tuple[int, ...], offset: int, lower: bool) -> Callable[[Array], Array]:
    """Return what does `triangle` of arrays of a shape that are contiguous.

    Examples
    --------
    >>> triangle_of_few((2, 2), 0, True)(np.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]])
    """
    cleared = np.flatnonzero(~triangle(np.ones(shape, np.bool_), offset, lower))

    def run(array: Array) -> Array:
        result = array.copy()
        result.ravel()[cleared] = 0
        return result

    return run


def triangle(array: Array, offset: int, lower: bool) -> Array:
    """Return a copy, row by row, of matrices of which one triangle is left.

    Parameters
    ----------
    array : numpy.ndarray of shape (..., n, m)
        Of any dtype.
    offset : int
        The diagonal that goes with the triangle; 0 is the main one, what is above counts from 1.
    lower : bool
        Which triangle is left.

    Examples
    --------
    >>> triangle(np.arange(1, 7).reshape(2, 3), 0, True)
    array([[1, 0, 0],
           [4, 5, 0]])
    >>> triangle(np.arange(1, 7).reshape(2, 3), 1, False)
    array([[0, 2, 3],
           [0, 0, 6]])
    """
    data = np.ascontiguousarray(array)
    result = empty(array.shape, array.dtype)
    if result.size:
        rows, columns = result.shape[-2:]
        itemsize = result.itemsize
        number = _NUMBERS[min(itemsize, 8)]
        flat = data.reshape(-1).view(number), result.reshape(-1).view(number)
        offset = min(max(offset, -rows), columns)
        _copy_triangle(*flat, rows, columns, offset, lower, itemsize // number.itemsize)
    return result
