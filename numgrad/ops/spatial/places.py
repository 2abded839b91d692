"""Elements by their place in a plane: what pooling has chosen, and gradients put back there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.indexing.gathering import gather, spread_along
from numgrad.ops.movement.shape import reshape

__all__ = ["put_at", "taken_from", "values_of"]


def put_at(g: Tensor, indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return planes of some sizes with zeros, and each element of g added at its place.

    The gradient is that of `taken_from`, and the other way round.
    """
    lead = g._array.shape[: g._array.ndim - len(sizes)]
    places = reshape(indices, (*lead, _rest(g, len(lead))))
    flat = reshape(g, places._array.shape)
    plane = (*lead, math.prod(sizes))
    return reshape(spread_along(flat, places._array, plane, len(lead)), (*lead, *sizes))


def taken_from(input: Tensor, indices: Tensor, dims: int) -> Tensor:
    """Return the elements of planes of so many dims at their places."""
    lead = input._array.shape[: input._array.ndim - dims]
    flat = reshape(input, (*lead, _rest(input, len(lead))))
    places = reshape(indices, (*lead, _rest(indices, len(lead))))
    return reshape(gather(flat, len(lead), places), indices._array.shape)


def _rest(tensor: Tensor, dims: int) -> int:
    return math.prod(tensor._array.shape[dims:])


def values_of(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return a function that gives the first result only; the places have no derivative."""

    def values(*inputs: Tensor, **keywords: Any) -> Tensor:
        result: Tensor = function(*inputs, **keywords)[0]
        return result

    return values
