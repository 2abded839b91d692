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
from heapq import heapify, heappop, heappush, heappushpop
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
    tasks = _count_dependencies(roots)
    results: list[Tensor | None] = []
    captures: dict[Node, list[tuple[int, int]]] = {}
    needed: set[Node] | None = None
    if inputs is not None:
        results = [None] * len(inputs)
        for position, (node, output_nr) in enumerate(inputs):
            if node is not None:
                captures.setdefault(node, []).append((output_nr, position))
        needed = _nodes_towards(captures, roots, tasks)
        if accumulate:  # leaves among the inputs are run; the others' gradients are captured
            needed.update(node for node in captures if isinstance(node, AccumulateGrad))

    for (node, output_nr), gradient in roots:
        if node is not None:
            if create_graph:
                _add_tensor(tasks[node], output_nr, gradient)
            else:
                _add_array(tasks[node], output_nr, gradient._array, False)
    starts = dict.fromkeys(node for (node, _), _ in roots if node is not None)
    ready = [(-node.sequence, node, tasks[node]) for node in starts if not tasks[node][0]]
    heapify(ready)

    previous_mode = modes.grad
    modes.grad = create_graph
    try:
        following = None  # the first node that became ready; in a chain it spares the heap
        while ready or following:
            if following is None:
                _, node, task = heappop(ready)
            else:
                _, node, task = heappushpop(ready, following) if ready else following
                following = None
            captured = captures.get(node) if captures else None
            if captured and needed and node in needed:  # before its hooks run, as in PyTorch
                _capture(captured, task, results, create_graph)
                captured = None
            if node._tensor_hooks or node._retained:
                _run_tensor_hooks(node, task, create_graph)
            if captured:
                _capture(captured, task, results, create_graph)
            if needed is not None and node not in needed:
                continue
            if type(node) is AccumulateGrad:
                if task[1] is not None:
                    if create_graph:
                        node.accumulate_tensor(task[1])
                    else:
                        node.accumulate_array(task[1], task[2])
                continue
            outputs: Sequence[Any] = (
                node.run_tensors(task[1::2]) if create_graph else node.run_arrays(task[1::2])
            )
            was_owned = task[2]
            task[1] = None  # nobody needs the gradients any more
            if len(task) > 3:
                task[1:] = ()
            if node.saved and not keep_graph:
                node.release()
            for (target, output_nr), output in zip(node.edges, outputs):  # noqa: B905 - hot
                if target is None:
                    continue
                task = tasks[target]
                task[0] = waiting = task[0] - 1
                if output is not None:
                    if create_graph:
                        _add_tensor(task, output_nr, output)
                    else:
                        array, owned = output
                        if owned is None:
                            owned = was_owned
                        if task[2 * output_nr + 1] is not None:
                            _add_array(task, output_nr, array, owned)
                        elif (
                            waiting
                            or captures
                            or type(target) is not AccumulateGrad
                            or target._tensor_hooks
                        ):
                            task[2 * output_nr + 1] = array
                            task[2 * output_nr + 2] = owned
                        else:  # a leaf that would be next anyway
                            target.accumulate_array(array, owned)
                            continue
                if not waiting:
                    if following is None:
                        following = (-target.sequence, target, task)
                    else:
                        heappush(ready, (-target.sequence, target, task))
    finally:
        modes.grad = previous_mode
    return results


def _count_dependencies(roots: Sequence[tuple[Edge, Tensor]]) -> dict[Node, list[Any]]:
    """Return a task for every node within reach.

    A task is a list: how many edges lead to the node, from which no gradient came yet; then, for
    each of the node's outputs, its gradient so far and whether we may write to that.
    """
    tasks: dict[Node, list[Any]] = {}
    stack: list[Node] = []
    for (node, _), _ in roots:
        if node is not None and node not in tasks:
            tasks[node] = [0] + [None, False] * node.num_outputs
            stack.append(node)
    while stack:
        for child, _ in stack.pop().edges:
            if child is None:
                continue
            task = tasks.get(child)
            if task is not None:
                task[0] += 1
                continue
            outputs = child.num_outputs
            tasks[child] = [1, None, False] if outputs == 1 else [1] + [None, False] * outputs
            if child.edges:
                stack.append(child)
    return tasks


def _nodes_towards(
    captures: dict[Node, list[tuple[int, int]]],
    roots: Sequence[tuple[Edge, Tensor]],
    tasks: dict[Node, list[Any]],
) -> set[Node]:
    """Return the nodes that must run so that gradients arrive at `captures`."""
    remaining = {node: task[0] for node, task in tasks.items()}
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
    task: list[Any],
    results: list[Tensor | None],
    create_graph: bool,
) -> None:
    """Keep the gradients that the caller asked for; from now on they are the caller's."""
    for output_nr, position in wanted:
        gradient = task[2 * output_nr + 1]
        if gradient is not None:
            if create_graph:
                results[position] = gradient
            else:
                owned = task[2 * output_nr + 2]
                results[position] = wrap(gradient if owned else private_copy(gradient))
                task[2 * output_nr + 2] = False


def _add_array(task: list[Any], output_nr: int, gradient: Any, owned: bool) -> None:
    """Add a gradient to what arrived for an output, in place only where the memory is ours."""
    at = 2 * output_nr + 1
    present = task[at]
    if present is None:
        task[at], task[at + 1] = gradient, owned
    elif task[at + 1]:
        add_into(present, gradient)
    elif owned:
        add_into(gradient, present)
        task[at], task[at + 1] = gradient, True
    else:
        task[at], task[at + 1] = add_arrays(present, gradient), True


def _add_tensor(task: list[Any], output_nr: int, gradient: Tensor) -> None:
    """Add a gradient to what arrived for an output, recording the addition."""
    at = 2 * output_nr + 1
    present = task[at]
    task[at] = gradient if present is None else present + gradient


def _run_tensor_hooks(node: Node, task: list[Any], create_graph: bool) -> None:
    """Run the hooks of the node's outputs, then store the gradients that were retained."""
    for output_nr, hooks in (node._tensor_hooks or {}).items():
        gradient = task[2 * output_nr + 1]
        if gradient is None or not hooks:
            continue
        result = run_hooks(hooks, gradient if create_graph else wrap(gradient))
        task[2 * output_nr + 1] = result if create_graph else result._array
        task[2 * output_nr + 2] = False
    retained: dict[int, weakref.ref[Tensor]] = node._retained or {}
    for output_nr, reference in retained.items():
        gradient, tensor = task[2 * output_nr + 1], reference()
        if gradient is None or tensor is None:
            continue
        if create_graph:
            tensor._grad = gradient.clone() if tensor._grad is None else tensor._grad + gradient
        elif tensor._grad is None:
            tensor._grad = wrap(private_copy(gradient))
        else:
            tensor._grad = wrap(add_arrays(tensor._grad._array, gradient))
