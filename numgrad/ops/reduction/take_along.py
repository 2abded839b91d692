"""Take one element along a dim, and put its gradient back: rules of max, median and relatives."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.move.along import along
from numgrad.kernels.move.scatter import add_at
from numgrad.ops.core.primitive import Primitive

__all__ = ["place_along", "take_along"]

Array = np.ndarray[Any, Any]


def _take(array: Array, indices: Array, dim: int, keepdim: bool) -> Array:
    if array.ndim == 0:
        return array.reshape(indices.shape).copy()
    if keepdim:
        return along(array, indices, dim)
    return along(array, np.expand_dims(indices, dim), dim).squeeze(dim)


def _place(array: Array, indices: Array, dim: int, keepdim: bool, shape: tuple[int, ...]) -> Array:
    if not shape:
        return array.reshape(()).copy()
    if not keepdim:
        array, indices = np.expand_dims(array, dim), np.expand_dims(indices, dim)
    result = np.zeros(shape, array.dtype)
    n, inner = shape[dim], prod(shape[dim + 1 :])
    rows = prod(shape[:dim])
    # The place of every element in C order: what stands before its block, then along the dim.
    places = indices.reshape(rows, indices.shape[dim], inner) * inner
    places += np.arange(rows).reshape(-1, 1, 1) * (n * inner) + np.arange(inner)
    add_at(result.reshape(-1, 1), places, array)
    return result


_TAKE: Primitive = Primitive(
    "take_along",
    "GatherBackward0",
    _take,
    ["input", "indices"],
    [
        lambda g, indices, input_shape, dim, keepdim: place_along(
            g, indices, dim=dim, keepdim=keepdim, shape=input_shape
        ),
        None,
    ],
    samples=[
        lambda make: (
            lambda input: take_along(input, wrap(np.array([1, 0])), dim=0, keepdim=False),
            [make(3, 2)],
            {},
        ),
        lambda make: (
            lambda input: take_along(input, wrap(np.array([[1, 1, 0]])), dim=1, keepdim=True),
            [make(1, 2)],
            {},
        ),
    ],
)

_PLACE: Primitive = Primitive(
    "place_along",
    "ScatterAddBackward0",
    _place,
    ["input", "indices"],
    [
        lambda g, indices, dim, keepdim: take_along(g, indices, dim=dim, keepdim=keepdim),
        None,
    ],
    samples=[
        lambda make: (
            lambda input: place_along(
                input, wrap(np.array([1, 0])), dim=0, keepdim=False, shape=(3, 2)
            ),
            [make(2)],
            {},
        ),
        lambda make: (
            lambda input: place_along(
                input, wrap(np.array([[1, 1, 0]])), dim=1, keepdim=True, shape=(1, 2)
            ),
            [make(1, 3)],
            {},
        ),
    ],
)


def take_along(input: Tensor, indices: Tensor, *, dim: int, keepdim: bool) -> Tensor:
    """Return the elements at `indices` along a dim, which lack that dim unless `keepdim`.

    The gradient goes back to where the elements came from.
    """
    result: Tensor = _TAKE.apply(input, indices, dim=dim, keepdim=keepdim)
    return result


def place_along(
    input: Tensor, indices: Tensor, *, dim: int, keepdim: bool, shape: tuple[int, ...]
) -> Tensor:
    """Return zeros of a shape with elements added at `indices` along a dim; see `take_along`.

    The gradient is g at those places.
    """
    result: Tensor = _PLACE.apply(input, indices, dim=dim, keepdim=keepdim, shape=shape)
    return result
