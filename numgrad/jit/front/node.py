"""The node that makes the results of a compiled function differentiable, and what it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.base.pytree import TreeSpec, flatten, unflatten
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.backward.engine import run
from numgrad.graph.modes.state import modes, recording
from numgrad.graph.node import FREED, Node, SavedArray, next_sequence, node_type, unpack_array
from numgrad.graph.recorder import is_traced_array
from numgrad.graph.saved_tensors import restore_tensor
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, wrap
from numgrad.jit.front.outside import edges_from_outside, inside
from numgrad.jit.front.states import drawing_from
from numgrad.kernels.move.strides import repeats_elements
from numgrad.ops.creation.generator import Generator

__all__ = ["backward_of", "node_class"]


class _JitNode(Node):
    """The node of a compiled function: its backward is a compiled function, and so on."""

    __slots__ = ("call", "kept", "read", "running", "spent")

    call: Any  # the Compiled that was called
    read: list[SavedArray]  # the captured tensors whose numbers the gradients depend on
    kept: tuple[Any, ...] | None  # what was saved: the traced leaves of the arguments
    running: int  # the outputs, as bits, that the last backward pass came from
    spent: int  # those whose part of the graph was freed

    output_metas = property(lambda self: self.call.output_metas)

    # Each output has a graph of its own without jit. So what was saved is freed when none is left.
    @property
    def saved(self) -> tuple[Any, ...] | None:
        """What was saved, None once freed."""
        return self.kept

    @saved.setter
    def saved(self, value: tuple[Any, ...] | None) -> None:
        if value is not None:
            self.kept, self.running, self.spent = value, 0, 0
            return
        self.spent |= self.running
        if self.spent == (1 << self.num_outputs) - 1:
            self.kept = None

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Run the compiled backward function."""
        tensors = [None if gradient is None else wrap(gradient) for gradient in gradients]
        results = self.run_tensors(tensors)
        given = {id(tensor) for tensor in tensors}
        arrays = [None if result is None else result._array for result in results]
        owned = [
            result is not None and id(result) not in given and not repeats_elements(result._array)
            for result in results
        ]
        return arrays, owned

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the compiled backward function on tensors."""
        if all(gradient is None for gradient in gradients):
            return [None] * len(self.targets)
        saved = self.kept
        self.running = sum([1 << k for k, gradient in enumerate(gradients) if gradient is not None])
        if saved is None or self.running & self.spent:
            raise RuntimeError(FREED)
        for captured in self.read:
            unpack_array(captured, NO_EDGE)
        leaves: list[Any] = []
        for k, edge in enumerate(self.saved_edges()):
            value, counter, version = saved[3 * k : 3 * k + 3]
            if counter is not None:
                value = restore_tensor((value, counter, version), edge)
            leaves.append(value)
        results: Sequence[Tensor | None] = self.call.backward(*leaves, *gradients)
        return results

    def saved_edges(self) -> list[Edge]:
        """Return where the traced leaves of the arguments hung in the graph."""
        moving = {k: self.edge(position) for position, k in enumerate(self.call.moving)}
        leaves = [moving.get(k, NO_EDGE) for k in self.call.traced]
        return leaves + [NO_EDGE] * len(self.call.sources)


def node_class(count: int) -> Any:
    """Return the class of nodes of that many outputs."""
    return node_type("CompiledFunctionBackward", _JitNode, num_outputs=count)


def backward_of(
    function: Callable[..., Any],
    spec: TreeSpec,
    static: Sequence[Any],
    traced: Sequence[int],
    moving: Sequence[int],
    sources: Sequence[int | Generator],
) -> Callable[..., Any]:
    """Return what computes gradients of a function, itself for `jit` to trace.

    It is called with the traced leaves of the function's arguments, the states that it drew from,
    and a cotangent (or None) for each result that requires grad. It returns the gradients of the
    `moving` leaves, and then of whatever else the results depend on.

    Parameters
    ----------
    function : callable
    spec : TreeSpec
        The structure of its arguments.
    static : sequence
        Their leaves; those that are `traced` are not looked at.
    traced, moving : sequence of int
        The leaves that are arguments, and those that are to get a gradient.
    sources : sequence of int or Generator
        What it draws from: leaves, or generators from outside.
    """

    def backward(*arguments: Any) -> tuple[Any, ...]:
        create_graph = modes.grad
        inputs = list(static)
        given = len(traced) + len(sources)
        gradients = arguments[given:]
        states: dict[Generator, Any] = {}
        for source, state in zip(sources, arguments[len(traced) : given], strict=True):
            generator = Generator() if isinstance(source, int) else source
            states[generator] = state
            if isinstance(source, int):
                inputs[source] = generator
        with recording(True):
            start = next_sequence()
            for k, leaf in zip(traced, arguments, strict=False):
                inputs[k] = leaf
            for k in moving:
                if not inputs[k].requires_grad:
                    # Not detach(), which under vmap detaches what is outside, too.
                    leaf = inputs[k]
                    if modes.trace is not None:
                        (leaf,) = modes.trace.operands([leaf])
                    inputs[k] = wrap(leaf._array)
                    inputs[k]._edge = None
            args, kwargs = unflatten(spec, inputs)
            with drawing_from(states):
                found, _ = flatten(function(*args, **kwargs))
            moved = [inputs[k] for k in moving]
            results = [
                leaf
                for leaf in found
                if isinstance(leaf, Tensor)
                and leaf.requires_grad
                and not any(leaf is each for each in moved)
                and (modes.trace is None or is_traced_array(leaf._array))  # none from outside
            ]
            edges: list[Edge] = [gradient_edge(each) for each in moved]
            edges += edges_from_outside(results, moved, start)
            roots = [
                (gradient_edge(result), gradient)
                for result, gradient in zip(results, gradients, strict=True)
                if gradient is not None
            ]
        return tuple(
            run(
                roots,
                keep_graph=create_graph,
                create_graph=create_graph,
                inputs=edges,
                accumulate=False,
                needed=inside(edges, roots, start),
            )
        )

    return backward
