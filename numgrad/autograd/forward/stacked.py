"""Rows of Jacobians that were computed one by one, stacked: each lies as it did by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.autograd.forward.linear_maps import Linearized
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import follow_strides, place_of
from numgrad.graph.tensor import NO_EDGE, Tensor, fresh, wrap
from numgrad.kernels.move.loop_order import loop_order
from numgrad.kernels.move.memory_order import empty_like
from numgrad.kernels.move.stacked_rows import behind_rows, room_for_rows, shared_dims
from numgrad.kernels.move.strides import layout_of, strided_view
from numgrad.ops.movement.joining import stack as stack_tensors
from numgrad.ops.movement.shape import reshape

__all__ = ["joined_columns", "stack_rows", "unrolled", "zero_rows"]


def unrolled(
    stacked: Tensor | None, shape: tuple[int, ...], like: Tensor, last: bool = False
) -> Tensor:
    """Return what was stacked along a first dim with that spread over `shape`, first or `last`."""
    inner = like._array.shape
    if stacked is None:
        return zero_rows(like._array, like._array.dtype, shape, last)
    if not last:
        return reshape(stacked, shape + inner)
    return reshape(stacked.movedim(0, -1), inner + shape)


def joined_columns(
    columns: Sequence[Sequence[Tensor | None]], linear: Linearized, inputs: Sequence[Tensor]
) -> list[list[Tensor]]:
    """Return the Jacobians of each output, by input, of the tangents for each element of these."""
    blocks: list[list[Tensor]] = []
    for i, output in enumerate(linear.outputs):
        blocks.append([])
        start = 0
        for tensor in inputs:
            own, start = columns[start : start + tensor._array.size], start + tensor._array.size
            block = stack_rows(
                [column[i] for column in own],
                output._array.shape,
                output._array.dtype,
                spread=tensor._array.shape,
                last=True,
                like=output._array,
            )
            blocks[i].append(block)
    return blocks


def stack_rows(
    rows: Sequence[Tensor | None],
    inner: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    spread: tuple[int, ...] | None = None,
    last: bool = False,
    like: Any = None,
) -> Tensor:
    """Return tensors of one shape as one.

    In memory they lie one behind the other, each as an array `like` it does.

    Parameters
    ----------
    rows : sequence of tensor or None
        Of the shape `inner`; None stands for zeros. If one depends on anything, that is recorded.
    spread : tuple of int, optional
        The dims that take the place of a dim of rows.
    last : bool
        Whether these stand last, not first.
    like : array, optional
        By default the first row that is there.
    """
    spread = (len(rows),) if spread is None else spread
    present = [row for row in rows if row is not None]
    if not present:
        return zero_rows(np.empty(inner, dtype) if like is None else like, dtype, spread, last)
    final = inner + spread if last else spread + inner
    lying = [row._array for row in present] if like is None else [like]
    place = place_of(lying[0])
    shared = [
        all(along) for along in zip(*[shared_dims(place_of(each)) for each in lying], strict=True)
    ]
    if modes.trace is not None or any(row._edge is not NO_EDGE for row in present):
        zeros = fresh(np.zeros(inner, dtype))
        full = [zeros if row is None else row for row in rows]
        stacked = _stack_recorded(full, place, shared)
        follow_strides(lying[0], stacked._array)
        stacked = stacked.movedim(0, -1) if last else stacked
        return stacked if stacked._array.shape == final else stacked.reshape(final)
    joined = room_for_rows(len(rows), place, dtype, shared)
    once = tuple([slice(1 if each else None) for each in shared])
    for number, row in enumerate(rows):
        joined[(number, *once)] = 0 if row is None else row._array[once]
    if last:
        joined = np.moveaxis(joined, 0, -1)
    return wrap(joined.reshape(final))


def zero_rows(like: Any, dtype: np.dtype[Any], spread: tuple[int, ...], last: bool) -> Tensor:
    """Return zeros for rows that do not depend on anything: in memory there is one of them."""
    place = place_of(like)
    row = empty_like(place, dtype)
    row[...] = 0
    steps, none = layout_of(row)[1], (0,) * len(spread)
    shape = place.shape + spread if last else spread + place.shape
    zeros = fresh(strided_view(row, (shape, steps + none if last else none + steps, 0)))
    follow_strides(like, zeros._array)
    return zeros


def _stack_recorded(
    rows: Sequence[Tensor], place: np.ndarray[Any, Any], shared: Sequence[bool]
) -> Tensor:
    """Return tensors stacked along a first dim, which lie as a place does, by operations."""
    parts = list(rows)
    for dim, each in enumerate(shared):
        if each:
            parts = [row.narrow(dim, 0, 1) for row in parts]
    order = loop_order(place.shape, [place])
    if list(order) == sorted(order):  # they lie row by row, as what is stacked does
        stacked = stack_tensors(parts, 0)
    else:
        parts = [row.permute(order) for row in parts]
        stacked = stack_tensors(parts, 0).permute([0, *behind_rows(order)])
    return stacked.expand(len(rows), *place.shape) if any(shared) else stacked
