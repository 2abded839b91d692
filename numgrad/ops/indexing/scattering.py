"""Scatter: put elements by their position in a dim, or add them there; scatter, scatter_add."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, fresh, wrap
from numgrad.kernels.move.places import take_along
from numgrad.ops.arguments.scalar_arrays import scalar_array
from numgrad.ops.core.declare import NotDifferentiablePrimitive
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.indexing.gathering import (
    GATHER,
    check_bounds,
    length_of,
    positions_of,
    read_index,
    scatter_into,
)
from numgrad.ops.movement.shape import reshape
from numgrad.ops.signatures.declared import declare

__all__ = ["corner_of", "fitted", "named_along", "read_scatter", "scatter", "scatter_add"]

Array = np.ndarray[Any, Any]


def fitted(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a gradient with zeros behind it in every dim, up to a shape."""
    if g._array.shape == shape:
        return g
    if not g._array.ndim or not shape:  # an index and a source of one element
        return reshape(g, shape)
    result: Tensor = _PAD.apply(g, shape=shape)
    return result


def corner_of(source: Tensor, index: Array) -> Tensor:
    """Return the part of a source that lies within an index's shape."""
    if source._array.shape == index.shape:
        return source
    if not source._array.ndim or not index.ndim:
        return reshape(source, index.shape)
    result: Tensor = _CORNER.apply(source, shape=index.shape)
    return result


def _pad(array: Array, shape: tuple[int, ...]) -> Array:
    whole = np.zeros(shape, array.dtype)
    whole[tuple([slice(length) for length in array.shape])] = array
    return whole


def _corner(array: Array, shape: tuple[int, ...]) -> Array:
    return array[tuple([slice(length) for length in shape])]


# The part of `src` that `scatter` reads is the corner that has the index's shape.
_PAD: Primitive = Primitive(
    "pad_behind",
    "SliceBackwardBackward0",
    _pad,
    ["input"],
    [lambda g, input_shape: _CORNER.apply(g, shape=input_shape)],
    linear=True,
    samples=[lambda make: (lambda x: _PAD.apply(x, shape=(3, 4)), [make(2, 3)], {})],
)


_CORNER: Primitive = Primitive(
    "corner",
    "SliceBackward0",
    _corner,
    ["input"],
    [lambda g, input_shape: _PAD.apply(g, shape=input_shape)],
    view=True,
    linear=True,
    samples=[lambda make: (lambda x: _CORNER.apply(x, shape=(1, 2)), [make(2, 3)], {})],
)


def named_along(own: Array, source: Array, dim: int, index: Array, *how: Any) -> tuple[Any, ...]:
    """Return which elements are written to by position in a dim, what, and how."""
    if source.ndim and source.shape != index.shape:
        source = source[tuple([slice(length) for length in index.shape or (1,)])]
        source = source.reshape(index.shape)
    return take_along(own, index, dim), source, *how


_SCATTER: Primitive = Primitive(
    "scatter",
    "ScatterBackward0",
    lambda array, src, dim, index: scatter_into(array, src, dim, index),
    ["input", "src"],
    [
        lambda g, dim, index: _SCATTER_NUMBER.apply(
            g, dim=dim, index=index, value=np.zeros((), g._array.dtype)
        ),
        lambda g, src_shape, dim, index: fitted(GATHER.apply(g, dim=dim, index=index), src_shape),
    ],
    linear=True,
    named=named_along,
    samples=[
        lambda make: (
            lambda x, s: scatter(x, 1, positions_of([0, 2]), s),
            [make(2, 3), make(2, 3)],
            {},
        ),
        lambda make: (lambda x, s: scatter(x, 0, positions_of(), s), [make(2), make(0)], {}),
    ],
)


_SCATTER_NUMBER: Primitive = Primitive(
    "scatter_number",
    "ScatterBackward1",
    lambda array, dim, index, value: scatter_into(array, value, dim, index),
    ["input"],
    [
        lambda g, dim, index: _SCATTER_NUMBER.apply(
            g, dim=dim, index=index, value=np.zeros((), g._array.dtype)
        )
    ],
    named=lambda own, dim, index, value: named_along(own, value, dim, index),
    samples=[
        lambda make: (
            scatter,
            [make(2, 3)],
            {"dim": 1, "index": positions_of([0], [2]), "value": 2.0},
        ),
        lambda make: (scatter, [make()], {"dim": 0, "index": wrap(np.array(0)), "value": 2.0}),
    ],
)


_SCATTER_ADD: Primitive = Primitive(
    "scatter_add",
    "ScatterAddBackward0",
    lambda array, src, dim, index: scatter_into(array, src, dim, index, "sum"),
    ["input", "src"],
    [
        lambda g: g,
        lambda g, src_shape, dim, index: fitted(GATHER.apply(g, dim=dim, index=index), src_shape),
    ],
    linear=True,
    named=lambda own, src, dim, index: named_along(own, src, dim, index, "sum"),
    samples=[
        lambda make: (
            lambda x, s: scatter_add(x, 1, positions_of([0, 0]), s),
            [make(2, 3), make(2, 3)],
            {},
        ),
        lambda make: (lambda x, s: scatter_add(x, 0, positions_of(), s), [make(2), make(0)], {}),
    ],
)


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


@silent
def _scatter_reduced(array: Array, src: Array, dim: int, index: Array, reduce: str) -> Array:
    return scatter_into(array, src, dim, index, _REDUCTIONS[reduce])


# PyTorch has no derivative of these either.
_SCATTER_REDUCED = NotDifferentiablePrimitive(
    "scatter_reduced",
    "scatter",
    _scatter_reduced,
    ["input", "src"],
    [None, None],
    named=lambda own, src, dim, index, reduce: named_along(
        own, src, dim, index, _REDUCTIONS[reduce]
    ),
)


def read_scatter(
    input: Tensor, dim: Any, index: Tensor, src: Tensor | None, function: str
) -> tuple[int, Array]:
    """Return the dim and the positions of a scatter, checked."""
    at, positions = read_index(input, dim, index, function)
    if src is not None and src._array.dtype != input._array.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not positions.size:
        return at, positions
    shape = input._array.shape
    if max(positions.ndim, 1) != max(len(shape), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if src is not None and max(src._array.ndim, 1) != max(positions.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    excess = any(
        length > shape[axis] for axis, length in enumerate(positions.shape) if axis != at and shape
    )
    behind = src is not None and any(
        length > size for length, size in zip(positions.shape, src._array.shape, strict=False)
    )
    if excess or behind:
        beyond = f" and to be no larger size than src {list(src.shape)}" if src is not None else ""
        raise RuntimeError(
            f"Expected index {list(positions.shape)} to be no larger than self {list(shape)} apart "
            f"from dimension {at}{beyond}"
        )
    positions = check_bounds(positions, size=length_of(input, at), dim=at)
    return at, positions


@declare(
    "scatter(Tensor input, int dim, Tensor index, Tensor src, *, Tensor? out=None)",
    "scatter(Tensor input, int dim, Tensor index, Tensor src, *, str reduce, Tensor? out=None)",
    "scatter(Tensor input, int dim, Tensor index, number value, *, Tensor? out=None)",
    "scatter(Tensor input, int dim, Tensor index, number value, *, str reduce, Tensor? out=None)",
    inplace=True,
    dispatched=True,
    apart=("index", "src"),
    in_step=("input",),
)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Tensor | None, value: Any, reduce: str | None
) -> Tensor:
    """Return a copy of the input with elements put by position in a dim; `gather` the other way.

    For dim 0, ``y[index[i, j], j] = src[i, j]``. The gradient of the input is g with zeros in those
    places, that of `src` what g has there. Where a place is named twice, the last element stays.

    Parameters
    ----------
    index
        int64; as many dims as the input, none longer but `dim`.
    src
        Not smaller than the index in any dim.
    value
        What to put in all places, where there is no `src`.
    reduce : {"add", "multiply"}
        Combine elements with what is there, and with each other, instead of putting them there.
        That has no derivative; see `scatter_add`.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If the index does not fit or leads outside, or `src` has another dtype.

    >>> import numgrad as ng
    >>> ng.zeros(3).scatter(0, ng.tensor([2, 0]), ng.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    at, positions = read_scatter(input, dim, index, src, "scatter")
    result: Tensor
    if reduce is not None:
        if reduce not in _REDUCTIONS:
            raise RuntimeError("reduce argument must be either add or multiply.")
        if src is None:
            src = fresh(scalar_array(value, input._array.dtype))
        result = _SCATTER_REDUCED.apply(input, src, dim=at, index=positions, reduce=reduce)
    elif src is None:
        number = scalar_array(value, input._array.dtype)
        result = _SCATTER_NUMBER.apply(input, dim=at, index=positions, value=number, held=(index,))
    else:
        result = _SCATTER.apply(input, src, dim=at, index=positions, held=(index,))
    return result


@declare(
    "scatter_add(Tensor input, int dim, Tensor index, Tensor src, *, Tensor? out=None)",
    inplace=True,
    dispatched=True,
    apart=("index", "src"),
    in_step=("input",),
)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy of the input with elements added by position in a dim; see `scatter`.

    The gradient of the input is g, that of `src` what g has in its places.

    >>> import numgrad as ng
    >>> ng.zeros(3).scatter_add(0, ng.tensor([2, 2]), ng.tensor([1.0, 2.0]))
    tensor([0., 0., 3.])
    """
    at, positions = read_scatter(input, dim, index, src, "scatter")
    result: Tensor = _SCATTER_ADD.apply(input, src, dim=at, index=positions, held=(index,))
    return result
