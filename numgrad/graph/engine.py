"""The engine: runs a backward graph from its roots to its leaves, without recursion.

Three steps, in this order in `run`:

1. count, for every node that the roots reach, how many gradients it waits for;
2. where only some tensors' gradients are wanted, find the nodes on the way to them;
3. take ready nodes in descending sequence number (the last recorded first), hand each the sum of
   the gradients that arrived for its outputs, and pass on what it returns.

Gradients travel as arrays. Under ``create_graph`` they travel as tensors and every rule records.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from numgrad.graph.accumulate import AccumulateGrad, run_hooks
from numgrad.graph.core import Edge, Tensor, wrap
from numgrad.graph.modes import modes
from numgrad.graph.node import Node
from numgrad.kernels.accumulate import add_arrays, add_into, private_copy

__all__ = ["run"]


def run(
    roots: Sequence[tuple[Edge, Tensor]],
    *,
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Edge] | None = None,
    accumulate: bool = True,
) -> list[Tensor | None]:
    """Propagate gradients from `roots`.

    Parameters
    ----------
    roots : sequence of (edge, gradient)
        Where to start, and with which gradient.
    keep_graph : bool
        Keep what the nodes saved, so that they can run again.
    create_graph : bool
        Record the backward pass, so that its results can be differentiated.
    inputs : sequence of edges, optional
        Go only where these lie. Without it, everywhere.
    accumulate : bool
        Whether leaves get their ``.grad``. Otherwise the gradients at `inputs` are returned.

    Returns
    -------
    list of Tensor or None
        One entry for each of `inputs`; None where no gradient arrived.
    """
    waiting = _count_dependencies(roots)
    results: list[Tensor | None] = []
    captures: dict[Node, list[tuple[int, int]]] = {}
    needed: set[Node] | None = None
    if inputs is not None:
        results = [None] * len(inputs)
        for position, (node, output_nr) in enumerate(inputs):
            if node is not None:
                captures.setdefault(node, []).append((output_nr, position))
        needed = _nodes_towards(captures, roots, waiting)
        if accumulate:  # leaves among the inputs are run; the others' gradients are captured
            needed.update(node for node in captures if isinstance(node, AccumulateGrad))

    # node -> [gradient, may we write to it, ...] with two entries for each of the node's outputs
    buffers: dict[Node, list[Any]] = {}
    ready: list[tuple[int, Node]] = []
    for (node, output_nr), gradient in roots:
        if node is None:
            continue
        if create_graph:
            _add_tensor(buffers, node, output_nr, gradient)
        else:
            _add_array(buffers, node, output_nr, gradient._array, False)
    for node in buffers:
        if not waiting[node]:
            heappush(ready, (-node.sequence, node))

    previous_mode = modes.grad
    modes.grad = create_graph
    try:
        while ready:
            _, node = heappop(ready)
            buffer = buffers.pop(node, None) or [None, False] * node.num_outputs
            if node._tensor_hooks or node._retained:
                _run_tensor_hooks(node, buffer, create_graph)
            if captures and node in captures:
                _capture(captures[node], buffer, results, create_graph)
            if needed is not None and node not in needed:
                continue
            if type(node) is AccumulateGrad:
                if buffer[0] is not None:
                    if create_graph:
                        node.accumulate_tensor(buffer[0])
                    else:
                        node.accumulate_array(buffer[0], buffer[1])
                continue
            gradients = buffer[::2]
            outputs: Sequence[Any] = (
                node.run_tensors(gradients) if create_graph else node.run_arrays(gradients)
            )
            if not keep_graph:
                node.release()
            for (target, output_nr), output in zip(node.edges, outputs):  # noqa: B905 - hot
                if target is None:
                    continue
                left = waiting[target] - 1
                waiting[target] = left
                if output is not None:
                    if create_graph:
                        _add_tensor(buffers, target, output_nr, output)
                    elif target in buffers or target.num_outputs > 1:
                        _add_array(buffers, target, output_nr, output[0], output[1])
                    elif not left and not captures and type(target) is AccumulateGrad:
                        target.accumulate_array(output[0], output[1])  # it would be next anyway
                        continue
                    else:
                        buffers[target] = [output[0], output[1]]
                if not left:
                    heappush(ready, (-target.sequence, target))
    finally:
        modes.grad = previous_mode
    return results


def _count_dependencies(roots: Sequence[tuple[Edge, Tensor]]) -> dict[Node, int]:
    """Return, for every node within reach, how many edges lead to it."""
    waiting: dict[Node, int] = {}
    stack: list[Node] = []
    for (node, _), _ in roots:
        if node is not None and node not in waiting:
            waiting[node] = 0
            stack.append(node)
    while stack:
        for child, _ in stack.pop().edges:
            if child is None:
                continue
            if child in waiting:
                waiting[child] += 1
            else:
                waiting[child] = 1
                stack.append(child)
    return waiting


def _nodes_towards(
    captures: dict[Node, list[tuple[int, int]]],
    roots: Sequence[tuple[Edge, Tensor]],
    waiting: dict[Node, int],
) -> set[Node]:
    """Return the nodes that must run so that gradients arrive at `captures`."""
    remaining = dict(waiting)
    order = list(dict.fromkeys(n for (n, _), _ in roots if n is not None and not remaining[n]))
    for node in order:  # grows while we walk it: a topological order, consumers first
        for child, _ in node.edges:
            if child is not None:
                remaining[child] -= 1
                if not remaining[child]:
                    order.append(child)
    needed: set[Node] = set()
    for node in reversed(order):
        if any(child in needed or child in captures for child, _ in node.edges):
            needed.add(node)
    return needed


def _capture(
    wanted: list[tuple[int, int]],
    buffer: list[Any],
    results: list[Tensor | None],
    create_graph: bool,
) -> None:
    """Keep the gradients of outputs that the caller asked for; from now on they are the caller's."""
    for output_nr, position in wanted:
        gradient = buffer[2 * output_nr]
        if gradient is not None:
            results[position] = gradient if create_graph else wrap(gradient)
            buffer[2 * output_nr + 1] = False


def _add_array(
    buffers: dict[Node, list[Any]], node: Node, output_nr: int, gradient: Any, owned: bool
) -> None:
    """Add a gradient to what arrived for an output, in place only where the memory is ours."""
    buffer = buffers.get(node)
    if buffer is None:
        buffers[node] = buffer = [None, False] * node.num_outputs
    at = 2 * output_nr
    present = buffer[at]
    if present is None:
        buffer[at] = gradient
        buffer[at + 1] = owned
    elif buffer[at + 1]:
        add_into(present, gradient)
    elif owned:
        add_into(gradient, present)
        buffer[at] = gradient
        buffer[at + 1] = True
    else:
        buffer[at] = add_arrays(present, gradient)
        buffer[at + 1] = True


def _add_tensor(
    buffers: dict[Node, list[Any]], node: Node, output_nr: int, gradient: Tensor
) -> None:
    """Add a gradient to what arrived for an output, recording the addition."""
    buffer = buffers.get(node)
    if buffer is None:
        buffers[node] = buffer = [None, False] * node.num_outputs
    present = buffer[2 * output_nr]
    buffer[2 * output_nr] = gradient if present is None else present + gradient


def _run_tensor_hooks(node: Node, buffer: list[Any], create_graph: bool) -> None:
    """Run the hooks of the node's outputs, then store the gradients that were retained."""
    for output_nr, hooks in (node._tensor_hooks or {}).items():
        gradient = buffer[2 * output_nr]
        if gradient is None or not hooks:
            continue
        result = run_hooks(hooks, gradient if create_graph else wrap(gradient))
        buffer[2 * output_nr] = result if create_graph else result._array
        buffer[2 * output_nr + 1] = False
    retained: dict[int, weakref.ref[Tensor]] = node._retained or {}
    for output_nr, reference in retained.items():
        gradient, tensor = buffer[2 * output_nr], reference()
        if gradient is None or tensor is None:
            continue
        if create_graph:
            tensor._grad = gradient if tensor._grad is None else tensor._grad + gradient
        elif tensor._grad is None:
            tensor._grad = wrap(private_copy(gradient))
        else:
            tensor._grad = wrap(add_arrays(tensor._grad._array, gradient))
