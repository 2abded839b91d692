"""Where the graph of a part of a function ends: edges to what was there before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.graph.backward.accumulate import AccumulateGrad, gradient_edge
from numgrad.graph.backward.engine import nodes_towards
from numgrad.graph.node import Node
from numgrad.graph.recorder import is_traced_array
from numgrad.graph.tensor import Edge, Tensor

__all__ = ["edges_from_outside", "inside"]


def edges_from_outside(
    outputs: Sequence[Any], arguments: Sequence[Tensor], start: int, *, in_body: bool = False
) -> list[Edge]:
    """Return where gradients leave the graph that was recorded since `start`.

    Parameters
    ----------
    outputs : sequence
        What the function returned; what is no tensor does not matter.
    arguments : sequence of Tensor
        Leaves whose gradients are accounted for.
    in_body : bool
        Whether this is the body of a loop, so that traced leaves may be from outside, and an
        output that is not of this trace has a gradient all the same. Of a whole function traced
        leaves are those that it made, which nobody sees, and an output of others is returned as it
        is.
    """
    own = {id(argument) for argument in arguments}
    found: dict[Edge, None] = {}
    seen: set[Any] = set()
    stack = [
        gradient_edge(output)
        for output in outputs
        if isinstance(output, Tensor)
        and output.requires_grad
        and (in_body or is_traced_array(output._array))
    ]
    while stack:
        edge = stack.pop()
        node = edge[0]
        if node is None:
            continue
        if isinstance(node, AccumulateGrad):
            is_inner = not in_body and is_traced_array(node.variable._array)
            if id(node.variable) not in own and not is_inner:
                found[edge] = None
        elif node.sequence < start:
            found[edge] = None
        elif node not in seen:
            seen.add(node)
            stack += zip(node.targets, node.numbers, strict=True)
    return list(found)


def inside(edges: Sequence[Edge], roots: Sequence[tuple[Edge, Tensor]], start: int) -> set[Node]:
    """Return the nodes that lead to `edges`, but for those that were there before `start`."""
    ends = [node for node, _ in edges if node is not None]
    begins = [node for (node, _), _ in roots if node is not None]
    return {node for node in nodes_towards(ends, begins) if node.sequence >= start}
