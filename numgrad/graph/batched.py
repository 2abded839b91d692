"""Batched gradients: many cotangents in one backward pass, for Jacobians and is_grads_batched.

Where nothing is recorded one backward pass does the work of many, with their gradients side by
side along a last dim: for few elements a pass costs what its nodes cost, not its numbers. Otherwise
there is one pass for each, and what they give is recorded by ``stack`` of the catalogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.graph.accumulate import AccumulateGrad
from numgrad.graph.anomaly import anomaly
from numgrad.graph.engine import nodes_towards, run
from numgrad.graph.modes import modes
from numgrad.graph.node import Node
from numgrad.graph.recorder import follow_strides, place_of
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, fresh, wrap
from numgrad.graph.upward import upward
from numgrad.kernels.move.loop_order import loop_order
from numgrad.kernels.move.memory_order import empty_like
from numgrad.kernels.move.strides import layout_of, strided_view

__all__ = ["check_batches", "room_for_rows", "run_batch", "stack_rows", "zero_rows"]

# Elements of the largest gradient in a pass that does the work of several.
TOGETHER = 1 << 16


def check_batches(outputs: Sequence[Tensor], batches: Sequence[Any]) -> int:
    """Return how many entries the batches of cotangents have.

    Raises
    ------
    RuntimeError, ValueError, IndexError
        In PyTorch's words, if an entry has not its output's shape, if there is no batch for an
        output, or if they differ in length or are empty.
    """
    lengths: list[int] = []
    for position, (output, batch) in enumerate(zip(outputs, batches)):  # noqa: B905 - see roots_of
        if not isinstance(batch, Tensor):
            if batch is None and output._array.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if batch is None:
                raise ValueError(
                    "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that "
                    "input is a Tensor of dimensionality 0 so expected in_dim to satisfy 0 <= "
                    "in_dim < 0."
                )
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(batch).__name__}"
            )
        if not batch._array.ndim:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
            )
        if batch._array.shape[1:] != output._array.shape:
            raise _mismatch(position, output, batch.shape[1:])
        lengths.append(batch._array.shape[0])
    if len(set(lengths)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{lengths} for the mapped dimension"
        )
    if not lengths or not lengths[0]:
        raise IndexError("index 0 is out of bounds for dimension 0 with size 0")
    return lengths[0]


def _mismatch(position: int, output: Tensor, shape: Any) -> RuntimeError:
    return RuntimeError(
        "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the "
        "batch dimension. The sizes of the remaining dimensions are expected to match the shape of "
        f"corresponding output, but a mismatch was detected: grad_output[{position}] has a shape "
        f"of {shape!r} and output[{position}] has a shape of {output.shape}. If you only want "
        "some tensors in `grad_output` to be considered batched, consider using vmap."
    )


def run_batch(
    outputs: Sequence[Edge],
    batches: Sequence[Tensor],
    inputs: Sequence[Edge],
    *,
    keep_graph: bool,
    create_graph: bool,
    needed: set[Node] | None = None,
    in_order: bool = False,
) -> list[Tensor | None]:
    """Return the gradients at `inputs` for each entry of batches of cotangents, stacked.

    Parameters
    ----------
    outputs : sequence of edges
        Where to start.
    batches : sequence of Tensor
        For each of these the cotangents, along a first dim.
    keep_graph, create_graph, needed
        As of `numgrad.graph.engine.run`.
    in_order : bool
        Whether the results lie row by row in any case.

    Returns
    -------
    list of Tensor or None
        None where no entry's gradient arrives.
    """
    if needed is None:
        needed = nodes_towards(
            [node for node, _ in inputs if node is not None],
            [node for node, _ in outputs if node is not None],
        )
    count = len(batches[0]._array)
    together = 1 if create_graph else _how_many(outputs, batches, inputs, needed)
    chunks: list[list[Tensor | None]] = []
    for start in range(0, count, together):
        stop = min(start + together, count)
        if together == 1:
            given = [batch[start] for batch in batches]
        else:
            # A copy, so that every cotangent's elements lie beside each other in the last dim.
            given = [
                wrap(np.ascontiguousarray(np.moveaxis(batch._array[start:stop], 0, -1)))
                for batch in batches
            ]
        chunks.append(
            run(
                list(zip(outputs, given, strict=True)),
                keep_graph=keep_graph or stop != count,
                create_graph=create_graph,
                inputs=inputs,
                accumulate=False,
                needed=needed,
                rows=0 if together == 1 else stop - start,
            )
        )
    stacked: list[Tensor | None] = []
    for column in zip(*chunks, strict=True):
        present = next((part for part in column if part is not None), None)
        if present is None:
            stacked.append(None)
        elif together == 1:
            shape, dtype = present._array.shape, present._array.dtype
            like = np.empty(shape, dtype) if in_order else None
            stacked.append(stack_rows(column, shape, dtype, like=like))
        else:
            parts = [np.moveaxis(part._array, -1, 0) for part in column if part is not None]
            whole = np.empty((count, *parts[0].shape[1:]), parts[0].dtype)
            stacked.append(wrap(np.concatenate(parts, out=whole)))
    return stacked


def _how_many(
    outputs: Sequence[Edge],
    batches: Sequence[Tensor],
    inputs: Sequence[Edge],
    needed: set[Node],
) -> int:
    """Return how many backward passes can be run as one: 1 where somebody could see it.

    Nor is it worth it where a single pass is work enough for the memory that it takes.
    """
    reached = [*needed, *[node for node, _ in (*outputs, *inputs) if node is not None]]
    plain = modes.trace is None and modes.dual is None and not anomaly.enabled
    if not plain or any(node.attached is not None for node in reached):
        return 1
    largest = max(batch._array[0].size for batch in batches)
    for node, _ in inputs:
        if type(node) is AccumulateGrad:
            largest = max(largest, node.variable._array.size)
    return max(1, TOGETHER // max(largest, 1))


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
    shared = [all(along) for along in zip(*map(_shared, lying), strict=True)]
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


def room_for_rows(
    count: int, place: Any, dtype: np.dtype[Any], shared: Sequence[bool] | None = None
) -> np.ndarray[Any, Any]:
    """Return memory for so many rows without gaps, each of which lies as a place does.

    Along the dims that are `shared` all elements of a row are one.
    """
    shared = _shared(place) if shared is None else shared
    shape = _shape_once(place.shape, shared)
    order = loop_order(place.shape, [place])
    memory = np.empty((count, *[shape[dim] for dim in order]), dtype)
    once = memory.transpose(0, *_back(order))
    if not any(shared):
        return once
    steps = zip(once.strides[1:], shared, strict=True)
    strides = (once.strides[0], *[0 if each else step for step, each in steps])
    elements = tuple([step // once.itemsize for step in strides])
    return strided_view(once, ((count, *place.shape), elements, 0))


def _shared(array: Any) -> list[bool]:
    """Return along which dims an array has one element for all."""
    place = place_of(array)
    return [step == 0 and n > 1 for step, n in zip(place.strides, place.shape, strict=True)]


def _shape_once(shape: Sequence[int], shared: Sequence[bool]) -> tuple[int, ...]:
    return tuple([1 if each else length for length, each in zip(shape, shared, strict=True)])


def _back(order: Sequence[int]) -> list[int]:
    """Return the dims of stacked rows such that those of rows, put in an order, are as before."""
    return [1 + at for at in np.argsort(order).tolist()]


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
        stacked = upward.stack(parts, 0)
    else:
        parts = [row.permute(order) for row in parts]
        stacked = upward.stack(parts, 0).permute([0, *_back(order)])
    return stacked.expand(len(rows), *place.shape) if any(shared) else stacked
