"""Gather: take elements by their position in a dim, or in all; gather, take, take_along_dim."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from operator import methodcaller
from typing import Any

import numpy as np

from numgrad.graph.recorder import at_hand, is_traced_array
from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.move.accumulate import private_copy
from numgrad.kernels.move.indexing import spread_indexed
from numgrad.kernels.move.places import (
    are_inside,
    put_along,
    reduce_along,
    take_along,
    taker_along,
    unless_inside,
)
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.calls.steps import read_array
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.places import like_original
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.unit_dims import expand
from numgrad.ops.signatures.declared import declare

__all__ = [
    "GATHER",
    "check_bounds",
    "flat_index",
    "gather",
    "length_of",
    "positions_of",
    "read_index",
    "scatter_into",
    "spread_along",
    "take",
    "take_along_dim",
    "with_dims",
]

Array = np.ndarray[Any, Any]
_own_positions = methodcaller("astype", np.int64)


def _gather_quickly(array: Array, dim: int, index: Array) -> Callable[..., Array] | None:
    if not index.size:
        return None
    if array.ndim == index.ndim == 1:
        return lambda array, index: array[index]
    if not array.flags.c_contiguous:
        return None
    return taker_along(array, index, dim)


def with_dims(array: Array) -> Array:
    """Return an array of one dim at least."""
    return array.reshape(array.shape or (1,))


def _spread(array: Array, shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """Return zeros of a shape with elements added by position in a dim."""
    if not index.size:
        return np.zeros(shape, array.dtype)
    result = np.zeros(shape, array.dtype)
    reduce_along(result, array, index, dim, "sum")
    return result


def scatter_into(
    array: Array,
    source: Array,
    dim: int,
    index: Array,
    reduce: str | None = None,
    include_self: bool = True,
) -> Array:
    """Return a copy of an array with elements put by position in a dim, or combined there."""
    if not index.size:
        return array.copy()
    if source.ndim and source.shape != index.shape:  # what lies behind the index's is not read
        source = source[tuple([slice(length) for length in index.shape or (1,)])]
    result = private_copy(array)
    if reduce is None:
        put_along(result, source, index, dim)
    else:
        reduce_along(result, source, index, dim, reduce, include_self)
    return result


def positions_of(*values: Any) -> Tensor:
    """Return an index for a sample."""
    return wrap(np.array(values, np.int64))


GATHER: Primitive = Primitive(
    "gather",
    "GatherBackward0",
    lambda array, dim, index: take_along(array, index, dim),
    ["input"],
    [lambda g, input_shape, dim, index: spread_along(g, index, input_shape, dim)],
    linear=True,
    quick=_gather_quickly,
    samples=[
        lambda make: (gather, [make(2, 3)], {"dim": 1, "index": positions_of([0, 0], [2, 1])}),
        lambda make: (gather, [make(3, 2)], {"dim": 0, "index": positions_of([0], [0])}),
        lambda make: (gather, [make()], {"dim": 0, "index": wrap(np.array(0))}),
        lambda make: (gather, [make(2)], {"dim": 0, "index": positions_of()}),
    ],
)
_GATHER_BACKWARD: Primitive = Primitive(
    "gather_backward",
    "ScatterAddBackward0",
    _spread,
    ["input"],
    [lambda g, dim, index: GATHER.apply(g, dim=dim, index=index)],
    linear=True,
    samples=[
        lambda make: (
            lambda x: _GATHER_BACKWARD.apply(x, shape=(3,), dim=0, index=np.array([0, 0, 2])),
            [make(3)],
            {},
        )
    ],
)


def spread_along(g: Tensor, index: Array, shape: tuple[int, ...], dim: int) -> Tensor:
    """Return zeros of a shape with `g` added by position in a dim: the gradient of `gather`."""
    result: Tensor = _GATHER_BACKWARD.apply(g, shape=shape, dim=dim, index=index)
    return result


def read_index(input: Tensor, dim: Any, index: Tensor, function: str) -> tuple[int, Array]:
    """Return a dim and positions in it, checked against the input, in memory of their own."""
    ndim = input._array.ndim
    at = wrap_dim(dim, ndim)
    array = at_hand(index._array)
    if array.size and array.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{function}(): Expected dtype int32/int64 for index")
    return at, read_array(_own_positions, array)


@at_run_time(quick=unless_inside)
def check_bounds(index: Array, size: int, dim: int) -> Array:
    """Return positions; raise unless all lie from 0 to `size`."""
    if are_inside(index, size):
        return index
    outside = index[(index < 0) | (index >= size)].flat[0]
    raise RuntimeError(f"index {outside} is out of bounds for dimension {dim} with size {size}")


def length_of(input: Tensor, dim: int) -> int:
    """Return the length of a dim, 1 if there are none."""
    return input._array.shape[dim] if input._array.ndim else 1


@declare(
    "gather(Tensor input, int dim, Tensor index, *, bool sparse_grad=False, Tensor? out=None)",
    dispatched=True,
    apart=("input",),
    in_step=("index",),
)
def gather(input: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> Tensor:
    """Return elements by their position in a dim: ``y[i, j] = x[index[i, j], j]`` for dim 0.

    The gradient is g, added up where it came from.

    Parameters
    ----------
    index : int64 tensor
        As many dims as the input, none longer but `dim`. The result has its shape.
    sparse_grad
        Changes nothing.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If the index does not fit or leads outside; positions count from the front only.

    >>> import numgrad as ng
    >>> ng.gather(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, ng.tensor([[0, 0], [1, 0]]))
    tensor([[1., 1.],
            [4., 3.]])
    """
    at, positions = read_index(input, dim, index, "gather")
    shape = input._array.shape
    if positions.size:
        if max(positions.ndim, 1) != max(len(shape), 1):
            raise RuntimeError(
                "Index tensor must have the same number of dimensions as input tensor"
            )
        for axis, length in enumerate(positions.shape if shape else ()):
            if axis != at and length > shape[axis]:
                raise RuntimeError(
                    f"Size does not match at dimension {axis} expected index "
                    f"{list(positions.shape)} to be no larger than self {list(shape)} apart from "
                    f"dimension {at}"
                )
        positions = check_bounds(positions, size=length_of(input, at), dim=at)
    result: Tensor = GATHER.apply(input, dim=at, index=positions, held=(index,))
    return result


_TAKE: Primitive = Primitive(
    "take",
    "TakeBackward0",
    lambda array, index: (
        array.reshape(-1).take(index) if index.ndim else array.reshape(-1)[index, ...]
    ),
    ["input"],
    [
        lambda g, input_shape, index, input_lies: like_original(
            _TAKE_BACKWARD.apply(g, shape=input_shape, index=index), input_lies
        )
    ],
    linear=True,
    samples=[
        lambda make: (take, [make(2, 3)], {"index": positions_of([0, 5], [5, -1])}),
        lambda make: (take, [make()], {"index": wrap(np.array(0))}),
        lambda make: (take, [make(2)], {"index": positions_of()}),
    ],
)
_TAKE_BACKWARD: Primitive = Primitive(
    "take_backward",
    "PutBackward0",
    lambda array, shape, index: spread_indexed((prod(shape),), (index,), array).reshape(shape),
    ["input"],
    [lambda g, index: _TAKE.apply(g, index=index)],
    linear=True,
    samples=[
        lambda make: (
            lambda x: _TAKE_BACKWARD.apply(x, shape=(2, 2), index=np.array([0, 3, 3])),
            [make(3)],
            {},
        )
    ],
)


@declare(
    "take(Tensor input, Tensor index, *, Tensor? out=None)",
    dispatched=True,
    apart=("input", "index"),
)
def take(input: Tensor, index: Tensor, out: Tensor | None) -> Tensor:
    """Return elements by their position in the flattened input, in the shape of the index.

    The gradient is g, added up where it came from.

    Parameters
    ----------
    index : int64 tensor
        Negative positions count from the end.

    Raises
    ------
    IndexError
        If there is no such position.
    RuntimeError
        If the index is not int64.

    >>> import numgrad as ng
    >>> ng.tensor([[1.0, 2.0], [3.0, 4.0]]).take(ng.tensor([0, -1]))
    tensor([1., 4.])
    """
    if index._array.dtype != np.int64:
        raise RuntimeError(
            f"take(): Expected a long tensor for index, but got {index.dtype.scalar_name}"
        )
    if index._array.size and not input._array.size:
        raise IndexError("take(): tried to take from an empty tensor")
    result: Tensor = _TAKE.apply(
        input, index=flat_index(at_hand(index._array), size=input._array.size), held=(index,)
    )
    return result if out is None else write_result("take", result, out, like=index)


@at_run_time
def flat_index(positions: Array, size: int) -> Array:
    """Return positions counted from the front."""
    if are_inside(positions, size):
        return positions.copy()
    if positions.size and (positions.min() < -size or positions.max() >= size):
        outside = positions[(positions < -size) | (positions >= size)].flat[0]
        raise IndexError(
            f"out of range: tried to access index {outside} on a tensor of {size} elements."
        )
    return np.asarray(np.where(positions < 0, positions + size, positions))


@declare(
    "take_along_dim(Tensor input, Tensor indices, int? dim=None, *, Tensor? out=None)",
    dispatched=True,
    apart=("input",),
)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None) -> Tensor:
    """Return elements by their position in a dim; input and indices broadcast in the other dims.

    The gradient is g, added up where it came from.

    Parameters
    ----------
    indices : int64 tensor
        In a dim, they count modulo its size.
    dim
        Without it, positions in the flattened input.

    Raises
    ------
    RuntimeError
        If the numbers of dims differ, or without `dim` a position leads outside.

    >>> import numgrad as ng
    >>> x = ng.tensor([[3.0, 1.0], [5.0, 7.0]])
    >>> ng.take_along_dim(x, ng.tensor([[1], [0]]), 1)
    tensor([[1.],
            [5.]])
    """
    shape, wanted = input._array.shape, indices._array.shape
    if dim is not None and len(shape) != len(wanted):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {len(shape)} dimensions for input, and {len(wanted)} dimensions for indices"
        )
    if indices._array.dtype != np.int64:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            f"{indices.dtype.scalar_name}"
        )
    if dim is None:
        return gather(reshape(input, (-1,)), 0, reshape(indices, (-1,)))
    at = wrap_dim(dim, len(shape))
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    common = broadcast_shapes(
        [(*shape[:at], 1, *shape[at + 1 :]), (*wanted[:at], 1, *wanted[at + 1 :])]
    )
    source = expand(input, (*common[:at], shape[at], *common[at + 1 :]))
    wide = expand(indices, (*common[:at], wanted[at], *common[at + 1 :]))
    if is_traced_array(wide._array):
        positions = FUNCTIONS["remainder"](wide, shape[at])._array
    else:
        positions = _around(read_array(_own_positions, at_hand(wide._array)), size=shape[at])
    result: Tensor = GATHER.apply(source, dim=at, index=positions)
    return result


@at_run_time(quick=unless_inside)
def _around(positions: Array, size: int) -> Array:
    """Return positions modulo a size."""
    if are_inside(positions, size):
        return positions
    if not size:
        raise RuntimeError("ZeroDivisionError")
    return positions % size
