"""Batched gradients: many cotangents in one backward pass, for Jacobians and is_grads_batched.

Where nothing is recorded one backward pass does the work of many, with their gradients side by
side along a last dim: for few elements a pass costs what its nodes cost, not its numbers. Otherwise
there is one pass for each, and what they give is recorded by ``stack`` of the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.graph.accumulate import AccumulateGrad
from numgrad.graph.anomaly import anomaly
from numgrad.graph.engine import nodes_towards, run
from numgrad.graph.modes import modes
from numgrad.graph.node import Node
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, fresh, wrap

__all__ = ["check_batches", "run_batch", "set_stack", "stack_rows"]

# Elements of the largest gradient in a pass that does the work of several.
TOGETHER = 1 << 16

_stack: Callable[[Sequence[Tensor], int], Tensor] | None = None


def set_stack(function: Callable[[Sequence[Tensor], int], Tensor]) -> None:
    """Install the ``stack`` of the catalogue, which stands a floor above."""
    global _stack
    _stack = function


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
            stacked.append(stack_rows(column, present._array.shape, present._array.dtype))
        else:
            parts = [np.moveaxis(part._array, -1, 0) for part in column if part is not None]
            stacked.append(wrap(np.concatenate(parts)))
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
) -> Tensor:
    """Return tensors of one shape as one.

    Parameters
    ----------
    rows : sequence of tensor or None
        Of the shape `inner`; None stands for zeros. If one depends on anything, that is recorded.
    spread : tuple of int, optional
        The dims that take the place of a dim of rows.
    last : bool
        Whether these stand last, not first.
    """
    spread = (len(rows),) if spread is None else spread
    final = inner + spread if last else spread + inner
    if modes.trace is not None or any(row is not None and row._edge is not NO_EDGE for row in rows):
        if _stack is None:
            raise RuntimeError("the catalogue, which has the function that stacks, is not there")
        zeros = fresh(np.zeros(inner, dtype))
        full = [zeros if row is None else row for row in rows]
        stacked = _stack(full, len(inner) if last else 0)
        return stacked if stacked._array.shape == final else stacked.reshape(final)
    joined = np.zeros((len(rows), *inner), dtype)
    for number, row in enumerate(rows):
        if row is not None:
            joined[number] = row._array
    if last:
        joined = np.ascontiguousarray(np.moveaxis(joined, 0, -1))
    return wrap(joined.reshape(final))
