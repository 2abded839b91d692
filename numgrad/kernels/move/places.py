"""Places in a flattened array: what positions in dims come to, in one pass of compiled code.

NumPy walks over several index arrays, or over one of rows, at a price of 2 us and more where there
are few; to take from a flattened array by one costs a tenth of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.entries import entry_of
from numgrad.kernels.move.strides import strided_view

__all__ = ["are_inside", "places_along", "places_at", "take_along", "take_flat", "taker_along"]

Array = np.ndarray[Any, Any]
_POSITIONS = np.dtype(np.int64)


@kernel
def _are_inside(positions: Array, size: int) -> bool:
    outside = False
    for i in range(positions.size):
        outside |= positions[i] < 0
        outside |= positions[i] >= size
    return not outside


@kernel
def _behind(places: Array, positions: Array, length: int, out: Array) -> None:
    for i in range(out.size):
        out[i] = places[i] * length + positions[i]


@kernel
def _along(index: Array, walk: Array, out: Array) -> None:
    # `walk` has lengths of the index, steps in the array (0 along the dim), and the dim's step.
    rank = walk.size // 2
    width, step, own = walk[rank - 1], walk[2 * rank - 1], walk[2 * rank]
    for row in range(index.size // width):
        first, rest = 0, row
        for back in range(rank - 1):
            axis = rank - 2 - back
            first += rest % walk[axis] * walk[rank + axis]
            rest //= walk[axis]
        for i in range(row * width, row * width + width):
            out[i] = first + index[i] * own
            first += step


@cache
def _entries() -> tuple[Any, Any, Any]:
    each = _POSITIONS
    inside = entry_of(_are_inside, each, int)
    return inside, entry_of(_behind, each, each, int, each), entry_of(_along, each, each, each)


def are_inside(positions: Array, size: int) -> bool:
    """Whether int64 positions all lie from 0 to a size.

    Examples
    --------
    >>> are_inside(np.array([0, 2]), 3), are_inside(np.array([0, -1]), 3)
    (True, False)
    """
    inside: bool = _entries()[0](positions.ravel(), size)
    return inside


def places_at(lengths: Sequence[int], positions: Sequence[Array]) -> Array:
    """Return where elements are that have positions in dims of these lengths, row by row.

    Examples
    --------
    >>> places_at((2, 3), (np.array([1, 0]), np.array([2, 1])))
    array([5, 1])
    """
    places = positions[0]
    for at in range(1, len(positions)):
        behind = positions[at]
        if behind.shape == places.shape:
            out = np.empty(places.shape, _POSITIONS)
            _entries()[1](places.ravel(), behind.ravel(), lengths[at], out.ravel())
            places = out
        else:
            places = places * lengths[at] + behind
    return places


def take_along(array: Array, index: Array, dim: int) -> Array:
    """Return elements by their position in a dim: in all others an index stands for its own place.

    Examples
    --------
    >>> take_along(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0, 0], [1, 0]]), 1)
    array([[1., 1.],
           [4., 3.]])
    """
    if not index.size:
        return np.empty(index.shape, array.dtype)
    if array.flags.c_contiguous:
        return taker_along(array, index, dim)(array, index)
    size, steps = array.itemsize, array.strides
    if any(step < 0 or step % size for step in steps):
        return take_along(np.ascontiguousarray(array), index, dim)
    steps = tuple([step // size for step in steps])
    reach = sum([(n - 1) * step for n, step in zip(array.shape, steps, strict=True)]) + 1
    flat = strided_view(array, ((reach,), (1,), 0))
    return take_flat(flat, _places(index, _walk(index.shape, dim, steps)))


def take_flat(flat: Array, places: Array) -> Array:
    """Return elements of an array of one dim as a new array, one without dims too.

    Examples
    --------
    >>> take_flat(np.array([1.0, 2.0]), np.array(1))
    array(2.)
    """
    return flat.take(places) if places.ndim else flat[places, ...]


def taker_along(array: Array, index: Array, dim: int) -> Callable[[Array, Array], Array]:
    """Return what does `take_along` for C-contiguous arrays and indices of such shapes."""
    walk = _walk_in_rows(index.shape, dim, array.shape)
    return lambda array, index: take_flat(array.ravel(), _places(index, walk))


def places_along(index: Array, dim: int, shape: tuple[int, ...]) -> Array:
    """Return where in a flattened array each element of an index points to, as in `take_along`.

    Examples
    --------
    >>> places_along(np.array([[1, 0], [1, 1]]), 0, (2, 3))
    array([[3, 1],
           [3, 4]])
    """
    return _places(index, _walk_in_rows(index.shape, dim, shape))


def _places(index: Array, walk: Array) -> Array:
    out = np.empty(index.shape, _POSITIONS)
    _entries()[2](index.ravel(), walk, out.ravel())
    return out


@lru_cache(1 << 8)
def _walk_in_rows(lengths: tuple[int, ...], dim: int, shape: tuple[int, ...]) -> Array:
    steps = tuple([math.prod(shape[axis + 1 :]) for axis in range(max(len(shape), 1))])
    return _walk(lengths, dim, steps)


def _walk(lengths: tuple[int, ...], dim: int, steps: tuple[int, ...]) -> Array:
    """Return what `_along` walks by; what has no dims counts as having one."""
    others = [0 if axis == dim else step for axis, step in enumerate(steps)]
    return np.array([*(lengths or (1,)), *others, steps[dim]], _POSITIONS)
