"""Advanced indexing of arrays: taking, putting, and adding where positions may repeat."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base.tuning import FLATTENED_POSITIONS
from numgrad.kernels.move.accumulate import private_copy
from numgrad.kernels.move.places import places_at
from numgrad.kernels.move.scatter import add_at, divide_by_counts, identity_of, reduce_at

__all__ = [
    "add_indexed",
    "indexed_shape",
    "put_indexed",
    "reduce_indexed",
    "spread_indexed",
    "take_indexed",
]

Array = np.ndarray[Any, Any]
# For each dim int64 positions from 0 to its size, or None for all; dims at the end may be missing.
Indices = tuple[Array | None, ...]


def _indexed(indices: Indices) -> tuple[list[int], list[Array]]:
    """Return the dims that positions are given for, and these."""
    dims, given = [], []
    for dim, positions in enumerate(indices):
        if positions is not None:
            dims.append(dim)
            given.append(positions)
    return dims, given


def _key(indices: Indices) -> tuple[Any, ...]:
    return tuple([slice(None) if positions is None else positions for positions in indices])


def take_indexed(array: Array, indices: Indices) -> Array:
    """Return ``array[indices]`` in C order.

    Where positions are given for adjacent dims, their common shape stands in the place of these;
    otherwise it comes first.

    Examples
    --------
    >>> take_indexed(np.arange(6).reshape(2, 3), (None, np.array([2, 0])))
    array([[2, 0],
           [5, 3]])
    """
    result: Array
    dims, given = _indexed(indices)
    first = dims[0]
    in_rows = array.flags.c_contiguous and array.size  # else `take` would copy all of it
    if not in_rows or (len(given) == 1 and array.ndim == 1):
        result = array[_key(indices)]
    elif len(given) == 1:
        result = array.take(given[0], first)
    elif given[0].size < FLATTENED_POSITIONS or dims[-1] - first >= len(dims):
        result = array[_key(indices)]
    else:
        behind = dims[-1] + 1
        lengths, rest = array.shape[first:behind], array.shape[behind:]
        rows = array.reshape(*array.shape[:first], -1, *rest)
        result = rows.take(places_at(lengths, given), first)
    if result.size and result.flags.c_contiguous:
        return result
    return private_copy(result)


def indexed_shape(shape: tuple[int, ...], indices: Indices) -> tuple[int, ...]:
    """Return the shape that `take_indexed` gives.

    Examples
    --------
    >>> indexed_shape((2, 3), (None, np.array([2, 0, 0, 0])))
    (2, 4)
    """
    dims, common, at = _split(indices)
    rest = [length for dim, length in enumerate(shape) if dim not in dims]
    return (*rest[:at], *common, *rest[at:])


def put_indexed(array: Array, indices: Indices, values: Array) -> Array:
    """Return a copy of `array` with `values` in those places.

    Examples
    --------
    >>> put_indexed(np.zeros(3), (np.array([2, 0]),), np.array([1.0, 2.0]))
    array([2., 0., 1.])
    """
    result = private_copy(array)
    if array.size:
        result[_key(indices)] = values
    return result


def add_indexed(array: Array, indices: Indices, values: Array) -> Array:
    """Return a copy of `array` with `values` added in those places, every time one is named.

    Examples
    --------
    >>> add_indexed(np.zeros(3), (np.array([2, 0, 2]),), np.array([1.0, 2.0, 3.0]))
    array([2., 0., 4.])
    """
    return reduce_indexed(array, indices, values, "sum")


def reduce_indexed(
    array: Array, indices: Indices, values: Array, reduce: str, include_self: bool = True
) -> Array:
    """Return a copy of `array` with `values` combined in those places, every time one is named.

    Parameters
    ----------
    array : numpy.ndarray
    indices : tuple of numpy.ndarray or None
    values : numpy.ndarray
        Of the dtype of the array; it broadcasts to what the indices pick.
    reduce : {"sum", "prod", "mean", "amax", "amin"}
        Means of integers are rounded down.
    include_self : bool
        Whether what is there counts, too.

    Examples
    --------
    >>> reduce_indexed(np.ones(3), (np.array([2, 0, 2]),), np.array([1.0, 2.0, 4.0]), "mean")
    array([1.5, 1. , 2. ])
    """
    result = private_copy(array)
    _reduce_into(result, indices, values, reduce, include_self)
    return result


def spread_indexed(shape: tuple[int, ...], indices: Indices, values: Array) -> Array:
    """Return zeros of a shape with `values` added in those places, every time one is named.

    Examples
    --------
    >>> spread_indexed((3,), (np.array([2, 0, 2]),), np.array([1.0, 2.0, 3.0]))
    array([2., 0., 4.])
    """
    result = np.zeros(shape, values.dtype)
    _reduce_into(result, indices, values, "sum", True)
    return result


def _reduce_into(
    result: Array, indices: Indices, values: Array, reduce: str, include_self: bool
) -> None:
    """Do what `reduce_indexed` does in a C-contiguous array itself."""
    dims, given = _indexed(indices)
    count = len(dims)
    if dims[-1] == count - 1:
        lengths, rest = result.shape[:count], result.shape[count:]
        places = places_at(lengths, given)
        shape = places.shape + rest
        whole = values if values.shape == shape else np.broadcast_to(values, shape)
        rows = result.reshape(math.prod(lengths), math.prod(rest))
        _reduce_rows(rows, places, whole, reduce, include_self)
        return
    _, common, at = _split(indices)
    others = [dim for dim in range(result.ndim) if dim not in dims]
    moved = result.transpose(dims + others)
    shape = indexed_shape(result.shape, indices)
    whole = values if values.shape == shape else np.broadcast_to(values, shape)
    front = list(range(at, at + len(common)))
    order = front + [axis for axis in range(whole.ndim) if axis not in front]
    rows = np.ascontiguousarray(moved)
    table = rows.reshape(math.prod(moved.shape[:count]), math.prod(moved.shape[count:]))
    places = places_at(moved.shape[:count], given)
    _reduce_rows(table, places, whole.transpose(order), reduce, include_self)
    moved[...] = rows


def _reduce_rows(
    target: Array, places: Array, source: Array, reduce: str, include_self: bool
) -> None:
    """Combine rows with those of `target` in place."""
    run = "sum" if reduce == "mean" else reduce
    if not include_self:
        target[places.reshape(-1)] = identity_of(run, target.dtype)
    reduce_at(target, places, source, run)
    if reduce == "mean":
        counts = np.full((len(target), 1), int(include_self))
        add_at(counts, places, np.ones(places.size, counts.dtype))
        divide_by_counts(target, counts)


def _split(indices: Indices) -> tuple[list[int], tuple[int, ...], int]:
    """Return the indexed dims, the common shape of their positions, and where it goes."""
    dims, given = _indexed(indices)
    shapes = [positions.shape for positions in given]
    common = shapes[0] if len({*shapes}) == 1 else np.broadcast_shapes(*shapes)
    adjacent = dims[-1] - dims[0] == len(dims) - 1
    return dims, common, dims[0] if adjacent else 0
