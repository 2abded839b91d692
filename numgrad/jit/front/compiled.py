"""One compiled trace of a function, and the node that makes its results differentiable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base.pytree import TreeSpec, flatten, unflatten
from numgrad.graph.accumulate import gradient_edge
from numgrad.graph.engine import nodes_towards, run
from numgrad.graph.modes import enable_grad, interceptors, modes
from numgrad.graph.node import FREED, Node, SavedArray, next_sequence, unpack_array
from numgrad.graph.saved_tensors import pack_saved, restore_tensor
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, plain, wrap
from numgrad.jit.front.trace_function import Trace, edges_from_outside
from numgrad.jit.front.watch import Watch
from numgrad.jit.ir.graph import Graph
from numgrad.jit.passes.simplify import simplify
from numgrad.jit.run.program import Program, build
from numgrad.kernels.move.strides import repeats_elements
from numgrad.ops.core.primitive import save_tensor

__all__ = ["Compiled", "backward_of"]


class _JitNode(Node):
    """The node of a compiled function: its backward is a compiled function, and so on."""

    __slots__ = ("backward", "kept", "moving", "output_metas", "read", "running", "spec", "spent")

    backward: Any  # see `backward_of`
    spec: TreeSpec  # of the arguments
    output_metas: tuple[Any, ...]  # (shape, dtype) of each output
    read: list[SavedArray]  # the captured tensors whose numbers the gradients depend on
    moving: tuple[int, ...]  # which leaves of the arguments get a gradient

    kept: tuple[Any, ...] | None  # what was saved
    running: int  # the outputs, as bits, that the last backward pass came from
    spent: int  # those whose part of the graph was freed

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
        self.running = sum(1 << k for k, gradient in enumerate(gradients) if gradient is not None)
        if saved is None or self.running & self.spent:
            raise RuntimeError(FREED)
        for captured in self.read:
            unpack_array(captured, NO_EDGE)
        leaves: list[Any] = []
        for k, edge in enumerate(self.saved_edges()):
            value, counter, version = saved[3 * k : 3 * k + 3]
            if counter is None:
                leaves.append(value)
            else:
                leaves.append(restore_tensor((value, counter, version), edge))
        results: Sequence[Tensor | None] = self.backward(
            self.spec, self.moving, tuple(leaves), tuple(gradients)
        )
        return results

    def saved_edges(self) -> list[Edge]:
        """Return where the leaves of the arguments hung in the graph."""
        moving = {k: self.edge(position) for position, k in enumerate(self.moving)}
        return [moving.get(k, NO_EDGE) for k in range(len(self.saved or ()) // 3)]


def _raising(error: Exception) -> Callable[..., Any]:
    """Return a function that raises this error."""

    def fail(*_: Any) -> Any:
        raise error.with_traceback(None)

    return fail


_node_classes: dict[int, Any] = {}


def _node_class(count: int) -> Any:
    """Return the class of nodes of that many outputs."""
    known = _node_classes.get(count)
    if known is None:
        attributes = {"__slots__": (), "__module__": "numgrad", "num_outputs": count}
        known = _node_classes[count] = type("CompiledFunctionBackward", (_JitNode,), attributes)
    return known


def backward_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what computes gradients of a function, itself for `jit` to trace.

    It is called with the structure of the function's arguments, which of their leaves are to get a
    gradient, the leaves, and a cotangent (or None) for each result that requires grad. It returns
    the gradients of those leaves, and then of whatever else the results depend on.
    """

    def backward(
        spec: TreeSpec, moving: Sequence[int], leaves: Sequence[Any], gradients: Sequence[Any]
    ) -> tuple[Any, ...]:
        create_graph = modes.grad
        inputs = list(leaves)
        with enable_grad():
            start = next_sequence()
            for k in moving:
                if not inputs[k].requires_grad:
                    inputs[k] = inputs[k].detach().requires_grad_()
            args, kwargs = unflatten(spec, inputs)
            found, _ = flatten(function(*args, **kwargs))
            own = [inputs[k] for k in moving]
            results = [
                leaf
                for leaf in found
                if isinstance(leaf, Tensor)
                and leaf.requires_grad
                and not any(leaf is each for each in own)
            ]
            edges: list[Edge] = [gradient_edge(each) for each in own]
            edges += edges_from_outside(results, own, start)
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
                needed=_inside(edges, roots, start),
            )
        )

    return backward


def _inside(edges: Sequence[Edge], roots: Sequence[tuple[Edge, Tensor]], start: int) -> set[Node]:
    """Return the nodes that lead to `edges`, but for those that were there before `start`."""
    ends = [node for node, _ in edges if node is not None]
    begins = [node for (node, _), _ in roots if node is not None]
    return {node for node in nodes_towards(ends, begins) if node.sequence >= start}


class Compiled:
    """One trace of a function, compiled."""

    __slots__ = (
        "aliases",
        "backward",
        "differentiable",
        "left",
        "others",
        "outputs",
        "outside",
        "program",
        "read",
        "required",
        "spec",
        "strides",
        "traced",
        "watch",
    )

    def __init__(self, trace: Trace, watch: Watch) -> None:
        # What it depends on as it was before the trace, and as that left it.
        self.watch = self.left = watch
        computed = list(trace.graph.outputs)
        for output in trace.outputs:
            if output.laid is not None:
                computed[output.which] = output.laid.in_memory(computed[output.which])
        self.program: Program = build(simplify(Graph(trace.graph.inputs, computed)))
        # The strides that it is for, by the numbers of leaves; and the traces for others.
        self.strides = trace.strides
        self.others: list[Compiled] = []
        self.traced = trace.traced
        self.outputs = trace.outputs
        self.spec = trace.spec
        self.outside = trace.outside
        self.required = trace.required
        # Which of the program's results are arrays that somebody else has too.
        found = self.program.graph.outputs
        self.aliases = frozenset(
            k
            for k, output in enumerate(found)
            if output.operation in ("input", "array") or output in found[:k]
        )
        self.differentiable = [k for k, o in enumerate(trace.outputs) if o.requires_grad]

        # What computes the gradients, and the captured tensors whose numbers that reads. It is made
        # when results require grad for the first time, so that it sees what the call saw.
        self.backward: Any = None
        self.read: list[Tensor] = []

    def __call__(self, leaves: Sequence[Any], backward: Callable[..., Any], spec: TreeSpec) -> Any:
        """Run on the leaves of arguments like those that were traced.

        ``backward(watch, spec, moving, leaves, cotangents)`` makes what computes the gradients, and
        `spec` is the arguments' structure; both are needed only if the results require grad.
        """
        arrays = []
        for k in self.traced:
            leaf = leaves[k]
            arrays.append(leaf._array if isinstance(leaf, Tensor) else np.asarray(plain(leaf)))
        computed = self.program(arrays)
        for k in self.required:  # as the function did with what stood in for it
            leaves[k].requires_grad_()
        results: list[Any] = []
        for kind, which, _, laid in self.outputs:
            if kind == "computed":
                array = computed[which]
                if which in self.aliases:
                    array = array.copy()
                results.append(wrap(array if laid is None else laid.place(array)))
            elif kind == "argument":
                leaf = leaves[which]
                results.append(leaf if isinstance(leaf, Tensor) else wrap(np.asarray(plain(leaf))))
            else:
                results.append(which)
        if self.differentiable and modes.grad:
            self._record(results, leaves, backward, spec)
        return unflatten(self.spec, results)

    def _record(
        self, results: list[Any], leaves: Sequence[Any], make_backward: Any, spec: TreeSpec
    ) -> None:
        """Attach a node to the results that require grad."""
        moving = [
            k for k in self.traced if isinstance(leaves[k], Tensor) and leaves[k].requires_grad
        ]
        metas = [(results[k]._array.shape, results[k]._array.dtype) for k in self.differentiable]
        if self.backward is None:
            cotangents = tuple([wrap(np.broadcast_to(np.zeros((), d), s)) for s, d in metas])
            try:
                found = make_backward(self.left, spec, tuple(moving), tuple(leaves), cotangents)
            except Exception as error:  # of any kind: it is for who asks for the gradient
                found = (_raising(error.with_traceback(None)), [])
            self.backward, self.read = found
        edges = [*(gradient_edge(leaves[k]) for k in moving), *self.outside]
        node = _node_class(len(self.differentiable))(edges)
        node.backward, node.spec, node.moving = self.backward, spec, tuple(moving)
        node.output_metas = tuple(metas)
        node.read = [save_tensor(tensor) for tensor in self.read]
        saved: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                saved += save_tensor(leaf)
            else:
                saved += (leaf, None, 0)
        node.saved = tuple(saved)
        for number, k in enumerate(self.differentiable):
            results[k]._edge = (node, number)
        if interceptors and modes.saved_hooks:
            pack_saved(node, leaves)
