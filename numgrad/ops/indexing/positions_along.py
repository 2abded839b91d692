"""Check positions along one dim, and what is written there, as index_copy and its like do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.graph.recorder import at_hand
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.places import are_inside, unless_inside
from numgrad.ops.calls.steps import read_array
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.indexing.gathering import length_of

__all__ = [
    "check_copied",
    "check_ndims_copied",
    "check_selected",
    "check_shape_copied",
    "check_source",
    "filled_positions",
    "is_beside_nothing",
    "nowhere_like",
    "read_vector",
    "where_written",
]

Array = np.ndarray[Any, Any]


def read_vector(index: Tensor) -> Any:
    """Return the positions of an index of one dim, in memory of their own."""
    return read_array(_own_vector, at_hand(index._array))


def _own_vector(index: Array) -> Array:
    return index.astype(np.int64).reshape(-1)


@at_run_time(quick=unless_inside)
def check_selected(positions: Array, size: int) -> Array:
    """Return positions; raise unless all lie from 0 to `size`."""
    if not are_inside(positions, size):
        raise IndexError("index out of range in self")
    return positions


@at_run_time(quick=unless_inside)
def check_copied(positions: Array, size: int, dim: int) -> Array:
    """Return positions; raise unless all lie from 0 to `size`, in the words of `index_copy`."""
    if are_inside(positions, size):
        return positions
    outside = positions[(positions < 0) | (positions >= size)][0]
    raise IndexError(
        f"index_copy_(): index {outside} is out of bounds for dimension {dim} with size {size}"
    )


@at_run_time(quick=unless_inside)
def filled_positions(positions: Array, size: int, dim: int) -> Array:
    """Return positions counted from the front."""
    if are_inside(positions, size):
        return positions
    if positions.size and (positions.min() < -size or positions.max() >= size):
        outside = positions[(positions < -size) | (positions >= size)][0]
        raise IndexError(f"index {outside} is out of bounds for dimension {dim} with size {size}")
    return np.asarray(np.where(positions < 0, positions + size, positions))


def is_beside_nothing(input: Tensor, dim: int) -> bool:
    """Return whether another dim of the input is empty, so that no position is ever looked at."""
    shape = input._array.shape
    return 0 in shape[:dim] or 0 in shape[dim + 1 :]


def nowhere_like(positions: Array) -> Array:
    """Return positions that kernels take for others that they have nothing to do at."""
    return np.zeros(positions.shape, np.int64)


def _in_empty_dim(input: Tensor, dim: int, positions: Array) -> RuntimeError:
    """Return PyTorch's error for positions in a dim of no length: of the view that it would make.

    That has the parts at the positions one over the other.
    """
    sizes = list(input._array.shape)
    strides = [1] * len(sizes)
    for at in range(len(sizes) - 2, -1, -1):
        strides[at] = strides[at + 1] * max(sizes[at + 1], 1)
    sizes[dim], strides[dim] = positions.size, 0
    itemsize = input._array.itemsize
    room = sum((size - 1) * step for size, step in zip(sizes, strides, strict=True)) + 1
    return RuntimeError(
        f"setStorage: sizes {sizes}, strides {strides}, storage offset 0, and itemsize {itemsize} "
        f"requiring a storage size of {room * itemsize} are out of bounds for storage of size 0"
    )


def where_written(input: Tensor, dim: int, positions: Array, check: Callable[..., Array]) -> Array:
    """Return positions in a dim that were checked, if there is anything at them."""
    if is_beside_nothing(input, dim):
        return nowhere_like(positions)
    if length_of(input, dim) == 0 < positions.size:
        raise _in_empty_dim(input, dim, positions)
    return check(positions, size=length_of(input, dim), dim=dim)


def check_source(input: Tensor, dim: int, positions: Array, source: Tensor, function: str) -> None:
    """Raise unless a source has a part for every position, of the shape that fits there."""
    length = length_of(source, dim)
    if positions.size != length:
        raise RuntimeError(
            f"{function}(): Number of indices ({positions.size}) should be equal to "
            f"source.size(dim): ({length}), for dim: {dim}"
        )
    shape, given = list(input._array.shape), list(source._array.shape)
    if len(shape) != len(given) or _parts_of(shape, dim) != _parts_of(given, dim):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {shape} source.shape = {given}"
        )


def _parts_of(shape: list[int], dim: int) -> list[int]:
    """Return the shape of a part at one position of a dim."""
    return shape[:dim] + shape[dim + 1 :]


def check_ndims_copied(input: Tensor, index: Tensor, source: Tensor) -> None:
    """Raise unless a source has as many dims as where it is copied to, or none."""
    positions = index._array
    if positions.ndim > 1:
        raise IndexError(
            f"index_copy_(): Index should have dimension 1 or 0 (got {positions.ndim})"
        )
    own, given = input._array.ndim, source._array.ndim
    if not given and positions.size != 1:
        raise IndexError(
            "index_copy_(): When source is scalar, index should have one element (got "
            f"{positions.size})"
        )
    if given and own and given != own:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must "
            f"match. Source dimensionality ({given}), destination dimensionality ({own})"
        )


def check_shape_copied(input: Tensor, dim: int, positions: Array, source: Tensor) -> None:
    """Raise unless a source has a part for every position, of the shape that fits there."""
    shape, given = (_parts_of(list(each._array.shape), dim) for each in (input, source))
    if shape != given:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
            f"slice shape: {' '.join(map(str, shape))} at dimension {dim} and source slice shape: "
            f"{' '.join(map(str, given))} at dimension 0."
        )
    length = length_of(source, dim)
    if positions.size != length:
        raise IndexError(
            f"index_copy_(): Number of indices ({positions.size}) should be equal to "
            f"source.size(dim) ({length})"
        )
