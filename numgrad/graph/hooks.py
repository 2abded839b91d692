"""Hooks: what users registered on tensors and nodes, called while the engine runs.

The order is PyTorch's: for a node that a gradient has come to, the hooks of the tensors that are
its outputs, then the gradients those retain, then the node's pre-hooks, the node, and its hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numgrad.base.tuning import NESTED_PASSES
from numgrad.graph.backward.accumulate import add_retained, copy_as_it_lies
from numgrad.graph.backward.nested import elsewhere
from numgrad.graph.handles import Hooks
from numgrad.graph.modes.state import modes
from numgrad.graph.node import Arrived, Node
from numgrad.graph.tensor import Edge, Tensor, wrap

__all__ = ["Request", "Task", "call_out", "run_post_hooks"]


class Request(NamedTuple):
    """What a run of the engine is for."""

    by_tensors: bool  # whether gradients travel as tensors
    results: list[Tensor | None]  # for each input
    captures: dict[Node, list[tuple[int, int]]]  # (output number, which input) by node
    needed: set[Node] | None  # the nodes to run, if not all


class Task:
    """One run of the engine, as hooks see it (``modes.task``).

    Attributes
    ----------
    request : Request
    outer : Task or None
        The run that this one is inside of.
    depth : int
        How many passes that was inside of.
    before : dict
        The modes of the thread as they were outside.
    inside : dict
        And as they are inside, for each node, while the run lasts.
    """

    __slots__ = (
        "__weakref__",
        "_reached",
        "_roots",
        "before",
        "depth",
        "inside",
        "outer",
        "request",
    )

    def __init__(self, roots: Sequence[tuple[Edge, Tensor]], request: Request) -> None:
        self.request = request
        self._roots = roots
        self._reached: set[Node] | None = None
        self.outer: Task | None = modes.task
        self.depth: int = modes.depth
        # Set, so that they are there: what a run itself does is no change that is to be taken back.
        modes.task, modes.depth = self.outer, self.depth
        self.before: dict[str, Any] = modes.__dict__.copy()
        self.inside: dict[str, Any] = {}

    def runs(self, node: Node) -> bool:
        """Return whether the gradients of a node's outputs are computed in this run."""
        request = self.request
        if request.needed is not None:
            return node in request.needed or node in request.captures
        if self._reached is None:
            reached = {node for (node, _), _ in self._roots if node is not None}
            stack = list(reached)
            while stack:
                for target in stack.pop().targets:
                    if target is not None and target not in reached:
                        reached.add(target)
                        stack.append(target)
            self._reached = reached
        return node in self._reached


def call_out(node: Node, arrived: Arrived, request: Request) -> None:
    """Run what comes before a node and take what the caller asked for, in PyTorch's order."""
    if modes.depth > NESTED_PASSES:
        elsewhere(call_out, node, arrived, request)
        return
    attached = node.attached
    if attached is not None and attached.recorded_shapes:
        _sum_to_recorded(attached.recorded_shapes, arrived, request.by_tensors)
    captured = request.captures.get(node)
    needed = request.needed is None or node in request.needed
    if captured and needed:  # that is before the hooks
        _capture(captured, arrived, request, goes_on=True)
        captured = None
    if attached is not None:
        _run_tensor_hooks(node, arrived, request.by_tensors)
        if attached.prehooks and needed:
            _run_pre_hooks(attached.prehooks, arrived, request.by_tensors)
    if captured:
        _capture(captured, arrived, request, goes_on=False)


def _sum_to_recorded(
    shapes: dict[int, tuple[int, ...]], arrived: Arrived, by_tensors: bool
) -> None:
    """Sum gradients of outputs that have another shape by now to the shape they had."""
    for number, shape in shapes.items():
        gradient = arrived[2 * number]
        if gradient is None or gradient.shape == shape:
            continue
        ahead = len(gradient.shape) - len(shape)
        fits = ahead >= 0 and all(
            mine in (1, length) for mine, length in zip(shape, gradient.shape[ahead:], strict=True)
        )
        if not fits:
            raise RuntimeError(
                f"invalid gradient at index {number} - got {list(gradient.shape)} but expected "
                f"shape compatible with {list(shape)}"
            )
        result = (gradient if by_tensors else wrap(gradient)).sum_to_size(shape)
        arrived[2 * number] = result if by_tensors else result._array
        arrived[2 * number + 1] = False


def _capture(
    wanted: list[tuple[int, int]], arrived: Arrived, request: Request, goes_on: bool
) -> None:
    """Keep the gradients that the caller asked for; from now on they are the caller's.

    What the run goes on with is copied: it may be handed on as it is, to who keeps it.
    """
    for number, position in wanted:
        gradient, owned = arrived[2 * number : 2 * number + 2]
        if gradient is not None:
            if request.by_tensors:
                request.results[position] = gradient
            else:
                taken = owned and not goes_on
                request.results[position] = wrap(gradient if taken else copy_as_it_lies(gradient))
                if taken:
                    arrived[2 * number + 1] = False


def _run_tensor_hooks(node: Node, arrived: Arrived, by_tensors: bool) -> None:
    """Run the hooks of the node's outputs, then store the gradients that were retained."""
    attached = node.attach()
    for number, hooks in attached.hooks.items():
        gradient = arrived[2 * number]
        if gradient is None or not hooks:
            continue
        result = gradient if by_tensors else wrap(gradient)
        for hook in list(hooks.values()):
            found = hook(result)
            if found is not None:
                _check(hook, found, result)
                result = found
        arrived[2 * number] = result if by_tensors else result._array
        arrived[2 * number + 1] = False
    for number, reference in attached.retained.items():
        gradient, tensor = arrived[2 * number], reference()
        if gradient is None or tensor is None:
            continue
        add_retained(tensor, gradient)


def _run_pre_hooks(hooks: Hooks, arrived: Arrived, by_tensors: bool) -> None:
    """Call a node's pre-hooks with the gradients of its outputs; each may replace them."""
    gradients = _tensors(arrived[::2], by_tensors)
    for hook in list(hooks.values()):
        result = hook(gradients)
        if result is not None:
            _check_all(hook, result, gradients)
            gradients = result
    arrived[::2] = gradients if by_tensors else _arrays(gradients)
    arrived[1::2] = [False] * len(gradients)


def run_post_hooks(
    hooks: Hooks, outputs: Sequence[Any], arrived: Arrived, by_tensors: bool
) -> Sequence[Any]:
    """Call a node's hooks with the gradients that it gives and those that it was given.

    Returns
    -------
    sequence
        The gradients that it gives, or what the hooks put in their place.
    """
    if modes.depth > NESTED_PASSES:
        replaced: Sequence[Any] = elsewhere(run_post_hooks, hooks, outputs, arrived, by_tensors)
        return replaced
    given = _tensors(arrived[::2], by_tensors)
    results = _tensors(outputs, by_tensors)
    for hook in list(hooks.values()):
        found = hook(results, given)
        if found is not None:
            _check_all(hook, found, results)
            results = found
    return results if by_tensors else _arrays(results)


def _tensors(gradients: Sequence[Any], by_tensors: bool) -> tuple[Tensor | None, ...]:
    if by_tensors:
        return tuple(gradients)
    return tuple([None if gradient is None else wrap(gradient) for gradient in gradients])


def _arrays(gradients: Sequence[Tensor | None]) -> list[Any]:
    return [None if gradient is None else gradient._array for gradient in gradients]


def _check_all(hook: Callable[..., Any], results: Any, before: Sequence[Tensor | None]) -> None:
    """Raise unless what a node's hook returned can stand for the gradients it was given."""
    if not isinstance(results, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(results).__name__}'")
    if len(results) != len(before):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(results)}, "
            f"but expected {len(before)})"
        )
    for result, gradient in zip(results, before, strict=True):
        if result is None:
            continue
        if gradient is None:
            raise RuntimeError("can't replace a None gradient with a non-None value")
        _check(hook, result, gradient)


def _check(hook: Callable[..., Any], result: Any, gradient: Tensor) -> None:
    """Raise unless what a hook returned can stand for a gradient."""
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if result.shape != gradient.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")
    if result.dtype is not gradient.dtype:
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the type of value (was "
            f"torch.{gradient.dtype.scalar_name}Tensor got torch.{result.dtype.scalar_name}Tensor)"
        )


def _name(hook: Callable[..., Any]) -> str:
    name: str = getattr(hook, "__name__", repr(hook))
    return name
