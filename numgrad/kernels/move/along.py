"""Elements along a dim by their positions, and a dim moved to an end: with little around it.

NumPy's `take_along_axis` and `moveaxis` do the same in as many microseconds as they take lines.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS

__all__ = ["along", "dim_first", "dim_last"]

Array = np.ndarray[Any, Any]


def along(array: Array, positions: Array, dim: int) -> Array:
    """Return the elements at positions along a dim, which other dims go with or are 1 of.

    Examples
    --------
    >>> along(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1], [0]]), 1)
    array([[2.],
           [3.]])
    """
    dim %= array.ndim
    grid = _few_grid if array.size <= FEW_ELEMENTS else _grid
    before, behind = grid(array.shape, dim)
    return array[(*before, positions, *behind)]


def _grid(shape: tuple[int, ...], dim: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the positions of all elements in the dims before one, and in those behind it."""
    ndim = len(shape)

    def all_of(at: int) -> Array:
        return np.arange(shape[at]).reshape((1,) * at + (shape[at],) + (1,) * (ndim - at - 1))

    return tuple(map(all_of, range(dim))), tuple(map(all_of, range(dim + 1, ndim)))


_few_grid = lru_cache(1 << 8)(_grid)


def dim_last(array: Array, dim: int) -> Array:
    """Return a view with a dim behind the others.

    Examples
    --------
    >>> dim_last(np.zeros((2, 3, 4)), 0).shape
    (3, 4, 2)
    """
    dims = range(array.ndim)
    dim = dims[dim]
    return array.transpose([*dims[:dim], *dims[dim + 1 :], dim])


def dim_first(array: Array, dim: int) -> Array:
    """Return a view with a dim in front of the others.

    Examples
    --------
    >>> dim_first(np.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    dims = range(array.ndim)
    dim = dims[dim]
    return array.transpose([dim, *dims[:dim], *dims[dim + 1 :]])
