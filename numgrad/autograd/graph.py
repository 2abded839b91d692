"""The graph as users see it: nodes, edges, and hooks on several tensors at once."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numgrad.autograd.saving import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from numgrad.graph.backward.accumulate import AccumulateGrad, gradient_edge
from numgrad.graph.backward.cotangents import GradientEdge
from numgrad.graph.handles import Hooks, RemovableHandle
from numgrad.graph.hooks import Task
from numgrad.graph.inplace import bump_version
from numgrad.graph.modes.state import modes
from numgrad.graph.node import Node
from numgrad.graph.tensor import Tensor, is_inference
from numgrad.runtime.forks import forkable_lock

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return where the gradient of a tensor is computed.

    Mirrors ``torch.autograd.graph.get_gradient_edge``. `autograd.grad` and `autograd.backward` take
    the edge in place of the tensor, which need not exist any more.

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    >>> import numgrad as ng
    >>> x = ng.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> edge = ng.autograd.graph.get_gradient_edge(y)
    >>> edge.node.name(), edge.output_nr
    ('MulBackward0', 0)
    >>> ng.autograd.grad(y * 2, edge)
    (tensor(2.),)
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    node, number = gradient_edge(tensor)
    if node is None:
        raise AssertionError("Expected gradient function to be set")
    return GradientEdge(node, number)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Say that the memory of a tensor, or of several, was written to in a way nobody noticed.

    Mirrors ``torch.autograd.graph.increment_version``.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0])
    >>> x.numpy()[0] = 5.0
    >>> ng.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    tensors: Iterable[Tensor] = [tensor] if isinstance(tensor, Tensor) else tensor
    for each in tensors:
        if not is_inference(each):  # those have no version; PyTorch says nothing of it
            bump_version(each)


class _MultiHandle(RemovableHandle):
    """The handle of one hook on several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        super().__init__(Hooks())
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Unregister the hook; calling it again does nothing."""
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all"
) -> RemovableHandle:
    """Call a function when the gradients of several tensors have been computed.

    Mirrors ``torch.autograd.graph.register_multi_grad_hook``.

    Parameters
    ----------
    tensors : sequence of Tensor
    fn : callable
        Its result is ignored, and it should not write to what it gets.
    mode : {"all", "any"}
        Whether to call ``fn(gradients)`` when the last of them was computed that this backward pass
        computes, with None for the others; or ``fn(gradient)`` with the first.

    Returns
    -------
    RemovableHandle

    Raises
    ------
    ValueError
        For another mode.
    AssertionError
        In mode "all", if a tensor does not require grad.

    >>> import numgrad as ng
    >>> x, y = (ng.tensor(value, requires_grad=True) for value in (2.0, 5.0))
    >>> handle = ng.autograd.graph.register_multi_grad_hook((x, y), print)
    >>> (x * y).backward()
    [tensor(5.), tensor(2.)]
    """
    modes_there_are = ("all", "any")
    if mode not in modes_there_are:
        raise ValueError(f"Expects mode to be one of {modes_there_are} but got {mode}")
    if mode == "any":
        return _MultiHandle(_register_any(tensors, fn))
    return _MultiHandle(_register_all(tensors, fn))


def _register_any(tensors: Sequence[Tensor], fn: Callable[[Any], None]) -> list[RemovableHandle]:
    seen: weakref.WeakSet[Task] = weakref.WeakSet()
    lock = forkable_lock()

    @functools.wraps(fn)
    def hook(gradient: Tensor) -> None:
        task = modes.task
        with lock:
            if task in seen:
                return
            seen.add(task)
        fn(gradient)

    return [tensor.register_hook(hook) for tensor in tensors if tensor.requires_grad]


def _runs(task: Task, found: Tensor | Node | None) -> bool:
    """Whether the gradient of a leaf or of a node's output is computed in a run of the engine."""
    node = gradient_edge(found)[0] if isinstance(found, Tensor) else found
    return node is not None and task.runs(node)


class _Waiting:
    """The gradients that have come so far in one run of the engine."""

    __slots__ = ("gradients", "missing")

    def __init__(self, count: int, missing: int) -> None:
        self.gradients: list[Tensor | None] = [None] * count
        self.missing = missing


def _register_all(tensors: Sequence[Tensor], fn: Callable[[Any], None]) -> list[RemovableHandle]:
    # The hooks hang on these nodes, so they may not hold them; of a leaf, the node may be another
    # one by then.
    references: list[weakref.ref[Any]] = []
    for tensor in tensors:
        node = gradient_edge(tensor)[0] if tensor.requires_grad else None
        if node is None:
            raise AssertionError("Expected gradient function to be set")
        references.append(weakref.ref(tensor if isinstance(node, AccumulateGrad) else node))
    # A run that ends without all gradients, because of an error, takes its entry with it.
    waiting: weakref.WeakKeyDictionary[Task, _Waiting] = weakref.WeakKeyDictionary()
    lock = forkable_lock()

    def hook_of(position: int) -> Callable[[Tensor], None]:
        def hook(gradient: Tensor) -> None:
            task: Task = modes.task
            with lock:
                state = waiting.get(task)
                if state is None:
                    missing = sum(_runs(task, reference()) for reference in references)
                    state = waiting[task] = _Waiting(len(references), missing)
                state.gradients[position] = gradient
                state.missing -= 1
                complete = not state.missing
                if complete:
                    del waiting[task]
            if complete:
                fn(state.gradients)

        return hook

    return [tensor.register_hook(hook_of(k)) for k, tensor in enumerate(tensors)]
