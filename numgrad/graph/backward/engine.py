"""The autograd engine: run a backward graph from its roots to its leaves, without recursion.

A node is younger than the nodes its gradients go to. So of the nodes that a gradient has come to,
the youngest has all of its gradients: the engine takes it, hands it their sums, and passes on what
it returns. Leaves are fed when nothing else is left to run; where a user's code could see the
difference (a hook, say), each is fed as soon as its last gradient has come.

Gradients travel as arrays. Under ``create_graph`` they travel as tensors and every rule records; in
a function that is traced, and while tangents are computed, they travel as tensors too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush, heappushpop
from itertools import repeat
from operator import attrgetter
from typing import Any

from numgrad.base.halves import HALF, sum_of_halves
from numgrad.base.tuning import UNDELAYED_LEAF_ELEMENTS
from numgrad.graph.backward.accumulate import AccumulateGrad, private_tensor, sum_of
from numgrad.graph.hooks import Request, Task, call_out, run_post_hooks
from numgrad.graph.modes.anomaly import anomaly
from numgrad.graph.modes.state import call_interceptors, modes, restore
from numgrad.graph.node import Arrived, Node
from numgrad.graph.tensor import Edge, Tensor
from numgrad.kernels.move.accumulate import add_into
from numgrad.runtime.holders import nobody_else_holds

__all__ = ["nodes_towards", "run"]

_BY_SEQUENCE = attrgetter("sequence")

# What most runs are for; nothing is ever put into what these two hold.
_EVERYTHING = (Request(False, [], {}, None), Request(True, [], {}, None))


def run(
    roots: Sequence[tuple[Edge, Tensor]],
    *,
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Edge] | None = None,
    accumulate: bool = True,
    needed: set[Node] | None = None,
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
    needed : set of nodes, optional
        What `nodes_towards` returned for these inputs and all of the roots, if it was called.

    Returns
    -------
    list of Tensor or None
        One entry for each of `inputs`; None where no gradient arrived.
    """
    by_tensors = create_graph
    watched = False
    if call_interceptors:
        by_tensors = by_tensors or modes.trace is not None or modes.dual is not None
        watched = anomaly.enabled
    special = by_tensors or watched
    request = _request(roots, by_tensors, inputs, accumulate, needed)
    captures, needed = request.captures, request.needed
    pending: dict[Node, Arrived] = {}
    leaves: dict[Any, Arrived] = {}
    for (node, number), gradient in roots:
        if node is not None:
            table = leaves if type(node) is AccumulateGrad else pending
            if node not in table:
                table[node] = [None, False] * node.num_outputs
            _add(table[node], number, gradient if by_tensors else gradient._array, False)
    following: tuple[int, Node] | None = None  # the first node reached; spares chains the heap
    heap: list[tuple[int, Node]] = []
    for node in pending:
        heappush(heap, (-node.sequence, node))
    # Once counted: the gradients that leaves wait for. Then hooks can see what run this is, too.
    waits: dict[Node, int] | None = None
    task: Task | None = None

    loops: Any = None  # of a traced function: turns of nodes that are alike
    if modes.trace is not None and not (create_graph or watched or modes.dual):
        loops = modes.trace.backward_loops(list(pending), needed, captures)

    previous_mode = modes.grad
    modes.grad = create_graph
    try:
        if leaves and any(map(_is_urgent, leaves)):
            task = Task(roots, request)
            waits = _watch(task, pending, leaves)
        while heap or following:
            if following:
                node = (heappushpop(heap, following) if heap else following)[1]
                following = None
            else:
                node = heappop(heap)[1]
            if (
                needed is not None
                and node not in needed
                and node not in captures
                and (len(roots) > 1 or node is not roots[0][0][0])  # of that hooks are called
            ):
                del pending[node]
                continue
            if loops is not None and waits is None and loops.run(node, pending, leaves, keep_graph):
                heap = [(-each.sequence, each) for each in pending]
                heapify(heap)
                continue
            attached = node.attached
            if attached is not None and waits is None:
                task = Task(roots, request)
                waits = _watch(task, pending, leaves)
            arrived = pending.pop(node)
            if attached is not None or node in captures:
                call_out(node, arrived, request)
            if needed is not None and node not in needed:
                if task is not None:
                    _settle(task)
                continue
            owned: Iterable[bool | None]
            if special:
                outputs, owned = _run_node(node, arrived[::2], by_tensors, watched)
            else:
                outputs, owned = node.run_arrays(arrived[::2])
            if attached is not None and attached.posthooks:
                hooks = attached.posthooks
                if needed is not None and not node.computes_all:  # hooks see what was asked for
                    outputs = [
                        output if target in needed or target in captures else None
                        for target, output in zip(node.targets, outputs, strict=True)
                    ]
                outputs = node._unseen_too(
                    run_post_hooks(hooks, node._seen(outputs), arrived, by_tensors)
                )
                owned = repeat(False)
            if attached is not None and task is not None:
                _settle(task)
            was_owned = arrived[1]
            del arrived  # nobody needs these gradients any more, and they may be large
            if node.saved and not keep_graph:
                node.saved = None
            urgent = False
            complete = []
            edges: Iterable[Any] = zip(node.targets, node.numbers, outputs, owned)  # noqa: B905 - hot
            for target, number, output, own in edges:
                if target is None:
                    continue
                if own is None:
                    own = was_owned
                if type(target) is AccumulateGrad:
                    if waits is not None:
                        waits[target] -= 1
                        if not waits[target]:
                            complete.append(target)
                    elif not urgent:
                        urgent = _is_urgent(target)
                    if target not in leaves:
                        leaves[target] = [output, own]
                    elif output is not None:
                        _add(leaves[target], 0, output, own)
                    continue
                there = pending.get(target)
                if there is not None:
                    if output is not None:
                        _add(there, number, output, own)
                    continue
                if target.num_outputs == 1:
                    pending[target] = [output, own]
                else:
                    pending[target] = there = [None, False] * target.num_outputs
                    _add(there, number, output, own)
                if following is None:
                    following = (-target.sequence, target)
                else:
                    heappush(heap, (-target.sequence, target))
            if urgent or complete:
                outputs = edges = ()  # what leaves get, nobody else may hold
                output = None
            if urgent:
                task = Task(roots, request)
                waits = _watch(task, pending, leaves)
            for leaf in complete:  # there is one only once hooks see the run
                _feed(leaf, leaves.pop(leaf), request)
                if task is not None and (
                    leaf.attached is not None or leaf.variable._post_accumulate_hooks is not None
                ):
                    _settle(task)
        outputs = edges = ()
        output = None
        for leaf, arrived in leaves.items():
            _feed(leaf, arrived, request)
            arrived.clear()
    except Exception:
        if watched and node is not None:
            anomaly.explain(node)
        raise
    finally:
        modes.grad = previous_mode
        if task is not None:  # without a call, in which Ctrl-C could come
            modes.task = task.outer
            modes.depth = task.depth
            task.before["grad"] = previous_mode
            task.inside = {}
            if modes.__dict__ != task.before:
                restore(task.before)
    if inputs is None:
        return []
    if by_tensors and not create_graph:  # a rule may have handed on what others hold, or a view
        return [None if each is None else private_tensor(each) for each in request.results]
    return request.results


def _run_node(
    node: Node, gradients: list[Any], by_tensors: bool, watched: bool
) -> tuple[Sequence[Any], Iterable[bool | None]]:
    """Run a node where that is not just on arrays; `watched` in anomaly mode."""
    before = anomaly.begin(node) if watched else None
    try:
        outputs: Sequence[Any]
        owned: Iterable[bool | None] = repeat(False)
        if by_tensors:
            outputs = node.run_tensors(gradients)
        else:
            outputs, owned = node.run_arrays(gradients)
    except BaseException:
        if watched:
            modes.running = before
        raise
    if watched:
        anomaly.end(node, before, outputs)
    return outputs, owned


def _request(
    roots: Sequence[tuple[Edge, Tensor]],
    by_tensors: bool,
    inputs: Sequence[Edge] | None,
    accumulate: bool,
    needed: set[Node] | None,
) -> Request:
    """Find out which nodes have to run, and where gradients are taken."""
    if inputs is None:
        return _EVERYTHING[by_tensors]
    captures: dict[Node, list[tuple[int, int]]] = {}
    for position, (node, number) in enumerate(inputs):
        if node is not None:
            captures.setdefault(node, []).append((number, position))
    if needed is None:
        needed = nodes_towards(captures, [node for (node, _), _ in roots if node is not None])
    if accumulate:  # then the inputs' own nodes run, too
        needed.update(captures)
    return Request(by_tensors, [None] * len(inputs), captures, needed)


def nodes_towards(
    captures: Iterable[Node], roots: Sequence[Node], without: Callable[[Node], bool] | None = None
) -> set[Node]:
    """Return the nodes that must run so that gradients arrive at `captures`.

    None goes through a node for which `without` is true.
    """
    captures = set(captures)
    # What is older than all of them cannot lead to one of them.
    oldest = min([node.sequence for node in captures], default=0)
    reached = set(roots)
    stack = list(reached)
    while stack:
        for target in stack.pop().targets:
            if target is not None and target not in reached and target.sequence >= oldest:
                reached.add(target)
                stack.append(target)
    if without is not None:
        reached = {node for node in reached if not without(node)}
    needed: set[Node] = set()
    leads = captures  # captured, or needed
    for node in sorted(reached, key=_BY_SEQUENCE):  # targets come before
        for target in node.targets:
            if target in leads:
                leads.add(node)
                needed.add(node)
                break
    return needed


def _count_ways_to_leaves(nodes: list[Node], needed: set[Node] | None) -> dict[Node, int]:
    """Return how many edges lead to each leaf from the nodes that are yet to run."""
    ways: dict[Node, int] = {}
    reached = set(nodes)
    stack = nodes
    while stack:
        node = stack.pop()
        if needed is not None and node not in needed:
            continue
        for target in node.targets:
            if type(target) is AccumulateGrad:
                ways[target] = ways.get(target, 0) + 1
            elif target is not None and target not in reached:
                reached.add(target)
                stack.append(target)
    return ways


def _is_urgent(leaf: Any) -> bool:
    """Whether it matters when the leaf is fed."""
    variable = leaf.variable
    if leaf.attached is not None or variable._post_accumulate_hooks is not None:
        return True
    return variable._grad is not None and variable._array.size > UNDELAYED_LEAF_ELEMENTS


def _watch(
    task: Task, pending: dict[Node, Arrived], leaves: dict[AccumulateGrad, Arrived]
) -> dict[Node, int]:
    """Let hooks see the run from now on, and leaves be fed as soon as they can be.

    Returns
    -------
    dict
        How many gradients each leaf waits for.
    """
    modes.task = task
    modes.depth = task.depth + 1
    task.inside = modes.__dict__.copy()
    waits = _count_ways_to_leaves(list(pending), task.request.needed)
    _feed_complete(leaves, waits, task)
    return waits


def _settle(task: Task) -> None:
    """Take back what hooks of a node have entered or left, and not left or entered again.

    It is so for each node in PyTorch, too.
    """
    if modes.__dict__ != task.inside:
        restore(task.inside)


def _feed_complete(
    leaves: dict[AccumulateGrad, Arrived], waits: dict[Node, int], task: Task
) -> None:
    """Feed the leaves that no more gradients will come to."""
    for leaf in [leaf for leaf in leaves if not waits.get(leaf)]:
        _feed(leaf, leaves.pop(leaf), task.request)
        if leaf.attached is not None or leaf.variable._post_accumulate_hooks is not None:
            _settle(task)


def _feed(leaf: AccumulateGrad, arrived: Arrived, request: Request) -> None:
    """Run a leaf's hooks and add the gradient that arrived to its ``.grad``."""
    needed = request.needed
    if needed is not None and leaf not in needed and leaf not in request.captures:
        return
    if leaf.attached is not None or request.captures:
        call_out(leaf, arrived, request)
    if arrived[0] is None or (needed is not None and leaf not in needed):
        return
    owned = arrived[1]
    if not (owned or request.by_tensors) and _may_keep(leaf.variable, arrived):
        owned = nobody_else_holds(arrived, 0)
    gradient = arrived[0]
    if request.by_tensors:
        if modes.dual is not None and not modes.grad and leaf.variable._level is None:
            gradient = gradient.detach()  # from its tangent
        leaf.accumulate_tensor(gradient)
    else:
        leaf.accumulate_array(gradient, owned)
    if leaf.attached is not None and leaf.attached.posthooks:
        run_post_hooks(leaf.attached.posthooks, (), arrived, request.by_tensors)


def _may_keep(variable: Tensor, arrived: Arrived) -> bool:
    """Whether a leaf without a gradient would keep what arrived for it, if that was its own.

    Row by row, it keeps nothing that lies otherwise.
    """
    if variable._grad is not None:
        return False
    contiguous = arrived[0].flags.c_contiguous or not variable._array.flags.c_contiguous
    return contiguous or variable._level is not None


def _lies_as_sum(present: Any, gradient: Any) -> bool:
    """Whether the sum of two gradients lies in memory as the second does."""
    steps = present.strides
    return bool(gradient.strides == steps or gradient.ndim < 2 or not any(steps))


def _add(arrived: Arrived, number: int, gradient: Any, owned: bool | None) -> None:
    """Add a gradient to what arrived for an output, in place only where the memory is ours."""
    at = 2 * number
    present = arrived[at]
    if present is None:
        arrived[at], arrived[at + 1] = gradient, owned
    elif isinstance(gradient, Tensor):
        arrived[at] = present + gradient
    elif arrived[at + 1]:
        add_into(present, gradient)
    elif owned and _lies_as_sum(present, gradient):
        add_into(gradient, present)
        arrived[at], arrived[at + 1] = gradient, True
    else:
        total = (sum_of_halves if present.dtype == HALF else sum_of)(present, gradient)
        arrived[at], arrived[at + 1] = total, True
