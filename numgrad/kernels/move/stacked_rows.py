"""Memory for arrays of one shape, stacked along a first dim: each lies as a given one does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.kernels.move.loop_order import loop_order
from numgrad.kernels.move.strides import strided_view

__all__ = ["behind_rows", "room_for_rows", "shared_dims"]


def room_for_rows(
    count: int, place: Any, dtype: np.dtype[Any], shared: Sequence[bool] | None = None
) -> np.ndarray[Any, Any]:
    """Return memory for so many rows without gaps, each of which lies as a place does.

    Along the dims that are `shared` all elements of a row are one; by default those of the place.
    """
    shared = shared_dims(place) if shared is None else shared
    shape = [1 if each else length for length, each in zip(place.shape, shared, strict=True)]
    order = loop_order(place.shape, [place])
    memory = np.empty((count, *[shape[dim] for dim in order]), dtype)
    once = memory.transpose(0, *behind_rows(order))
    if not any(shared):
        return once
    steps = zip(once.strides[1:], shared, strict=True)
    strides = (once.strides[0], *[0 if each else step for step, each in steps])
    elements = tuple([step // once.itemsize for step in strides])
    return strided_view(once, ((count, *place.shape), elements, 0))


def shared_dims(place: Any) -> list[bool]:
    """Return along which dims an array has one element for all."""
    return [step == 0 and n > 1 for step, n in zip(place.strides, place.shape, strict=True)]


def behind_rows(order: Sequence[int]) -> list[int]:
    """Return the dims of stacked rows such that those of rows, put in an order, are as before."""
    return [1 + at for at in np.argsort(order).tolist()]
