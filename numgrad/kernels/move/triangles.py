"""Triangles of matrices: copies in which all else is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel

__all__ = ["triangle", "triangle_of_few"]

Array = np.ndarray[Any, Any]


@kernel
def _clear(data, columns, itemsize, rows, offset, lower):  # type: ignore[no-untyped-def]
    """Set to 0, in the bytes of matrices of so many rows, what is above a diagonal, or below."""
    width = columns * itemsize
    for number in range(data.size // width):
        column = number % rows + offset + (1 if lower else 0)
        edge = number * width + min(max(column, 0), columns) * itemsize
        first, last = (edge, (number + 1) * width) if lower else (number * width, edge)
        for k in range(first, last):
            data[k] = 0


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
    result = np.array(array, order="C")
    if result.size:
        rows, columns = result.shape[-2:]
        data = result.reshape(-1).view(np.uint8)
        _clear(data, columns, result.itemsize, rows, min(max(offset, -rows), columns), lower)
    return result
