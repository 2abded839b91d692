"""Bodies of the loops that derivatives of loops are: gradients from the last turn, tangents along.

Each runs the body of the loop itself again, on what that was given in a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.backward.engine import run
from numgrad.graph.modes.state import modes, recording
from numgrad.graph.node import next_sequence
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, wrap
from numgrad.graph.upward import upward
from numgrad.jit.front.control_flow.loop_calls import Turn
from numgrad.jit.front.outside import inside

__all__ = ["BackwardTurn", "ForwardTurn", "or_zeros"]


class _DerivedTurn:
    """What the bodies of both loops have in common.

    Parameters
    ----------
    node : Node
        Of the loop itself.
    given : sequence of Tensor or None
        The gradients of its outputs, or the tangents of its inputs.
    moving : sequence of int
        Which of its carries are differentiated.
    numbers : sequence of int
        What the rows behind those of the loop itself are for.
    """

    def __init__(
        self,
        node: Any,
        given: Sequence[Tensor | None],
        moving: Sequence[int],
        numbers: Sequence[int],
    ) -> None:
        self.node, self.given = node, given
        self.moving, self.numbers = moving, numbers
        self.stacked: list[int] = []
        self.summed: list[int] = []

    def enter(self, found: Turn, results: list[Tensor | None]) -> None:
        """Put what the loop leaves in its places among results."""
        for places, tensors in (
            (self.moving, found.carries),
            (self.stacked, found.stacked),
            (self.summed, found.summed),
        ):
            for k, tensor in zip(places, tensors, strict=True):
                results[k] = tensor


class BackwardTurn(_DerivedTurn):
    """The body of the loop of gradients.

    Its carries are the gradients of the `moving` carries. Its rows are the carries and the rows of
    the loop itself, and the gradients of what was stacked, by the `numbers` of these outputs.

    Attributes
    ----------
    stacked, summed : list of int
        Which of the node's inputs each gradient is for that is stacked or summed.
    """

    def __call__(self, carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Turn:
        node, create_graph = self.node, modes.grad
        carried, total = node.carried, len(node.given)
        start, inputs, turn = _run_again(node, rows)
        cotangents = dict(enumerate(self.given[: carried + node.sums]))
        cotangents |= dict.fromkeys(range(carried)) | dict(zip(self.moving, carries, strict=True))
        cotangents |= dict(zip(self.numbers, rows[total:], strict=True))
        outputs = [*turn.carries, *turn.summed, *turn.stacked, *inputs[:carried]]
        own = [k for k in range(total) if node.required[k]]
        edges = [*[gradient_edge(inputs[k]) for k in own], *node.edges]
        places = [*own, *range(total, total + len(node.edges))]
        found: dict[Edge, Tensor | None] = dict.fromkeys(edges)
        roots = []
        for k, output in enumerate(outputs):
            cotangent = cotangents.get(k)
            if cotangent is None or not output.requires_grad:
                continue
            edge = gradient_edge(output)
            if edge in found:  # it is an input, or from outside, as it stands
                found[edge] = _added(found[edge], cotangent)
            else:
                roots.append((edge, cotangent))
        computed = run(
            roots,
            keep_graph=create_graph,
            create_graph=create_graph,
            inputs=edges,
            accumulate=False,
            needed=inside(edges, roots, start),
        )
        by_place = {
            place: _added(found[edge], gradient)
            for place, edge, gradient in zip(places, edges, computed, strict=True)
        }
        following = [or_zeros(by_place[k], node.output_metas[k]) for k in self.moving]
        present = [k for k in places if k >= carried and by_place[k] is not None]
        self.stacked = [k for k in present if k < total]
        self.summed = [k for k in present if k >= total]
        stacked = [each for k in self.stacked if (each := by_place[k]) is not None]
        summed = [each for k in self.summed if (each := by_place[k]) is not None]
        return Turn(following, stacked, summed)


class ForwardTurn(_DerivedTurn):
    """The body of the loop of tangents.

    Its carries are the tangents of the `moving` carries. Its rows are the carries and the rows of
    the loop itself, and the tangents of rows, by their `numbers` among what it was given.

    Attributes
    ----------
    summed, stacked : list of int
        Of which of the node's outputs each is the tangent that is summed or stacked.
    """

    def __call__(self, carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Turn:
        node, record = self.node, modes.grad
        carried, total = node.carried, len(node.given)
        start, inputs, turn = _run_again(node, rows)
        own = [k for k in range(total) if node.required[k]]
        tangents = dict(zip(self.moving, carries, strict=True))
        tangents |= dict(zip(self.numbers, rows[total:], strict=True))
        edges = [*[gradient_edge(inputs[k]) for k in own], *node.edges]
        given = [*[tangents.get(k) for k in own], *self.given[total:]]
        outputs = [*turn.carries, *turn.summed, *turn.stacked]
        places = [gradient_edge(each) if each.requires_grad else NO_EDGE for each in outputs]
        found = dict(enumerate(upward.push_forward(places, edges, start=start)(given, record)))
        if node.first:
            found |= {node.first + k: tangents.get(k) for k in range(carried)}
        following = [or_zeros(found[k], node.output_metas[k]) for k in self.moving]
        sums = carried + node.sums
        self.summed = [k for k in range(carried, sums) if found[k] is not None]
        self.stacked = [k for k in found if k >= sums and found[k] is not None]
        summed = [each for k in self.summed if (each := found[k]) is not None]
        stacked = [each for k in self.stacked if (each := found[k]) is not None]
        return Turn(following, stacked, summed)


def _run_again(node: Any, rows: Sequence[Tensor]) -> tuple[int, list[Tensor], Turn]:
    """Run a body on what it was given in a turn, and record it.

    Returns the number of its first node, what it is given, and what it gives.
    """
    trace: Any = modes.trace
    with recording(True), trace.joined():
        start = next_sequence()
        inputs = [
            _requiring(each) if required else each
            for each, required in zip(rows, node.required, strict=False)
        ]
        return start, inputs, node.body(inputs[: node.carried], inputs[node.carried :])


def _requiring(tensor: Tensor) -> Tensor:
    """Return a leaf that requires grad: the tensor itself, or one on the same array."""
    if tensor.requires_grad:
        return tensor
    leaf = wrap(tensor._array)
    leaf._edge = None
    return leaf


def _added(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    if first is None or second is None:
        return second if first is None else first
    return first + second


def or_zeros(gradient: Tensor | None, meta: Any) -> Tensor:
    """Return a gradient or tangent, or zeros of a shape and dtype if there is none."""
    if gradient is not None:
        return gradient
    trace: Any = modes.trace
    return wrap(trace.constant(np.zeros(*meta)))
