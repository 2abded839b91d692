"""Operations that keep nothing but their inputs, and run again for their derivatives.

A `Map` is a function of a list of tensors. `apply` runs it and records one node, a `Replayed`. What
that node computes in the backward pass is a `Pull`, in forward mode a `Push`, which are maps in
turn: so derivatives of any order keep inputs only, too.

Maps may close over tensors. Where these hang in the graph is known (``captured``), and the nodes
lead there; the gradients at these edges come behind those of the inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from numgrad.autograd.forward.push_forward import PushForward
from numgrad.graph.backward.accumulate import AccumulateGrad, gradient_edge
from numgrad.graph.backward.engine import nodes_towards, run
from numgrad.graph.modes.func_levels import StandIn
from numgrad.graph.modes.grad_modes import enable_grad, no_grad
from numgrad.graph.modes.state import modes
from numgrad.graph.node import (
    FREED,
    Node,
    SavedArray,
    modified_message,
    next_sequence,
    unpack_array,
)
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, wrap
from numgrad.ops.core.nodes import PrimitiveNode

__all__ = [
    "Captured",
    "Leaves",
    "Map",
    "apply",
    "hang",
    "moves",
    "pulled",
    "push_through",
    "record",
]

Leaves = list[Any]  # tensors and Nones
_new = object.__new__


def moves(leaf: Any) -> bool:
    """Whether a leaf is a tensor that can have a derivative."""
    return leaf is not None and leaf._array.dtype.kind in "fc"


def hang(tensor: Tensor, edge: Edge) -> Tensor:
    """Return a tensor over the same memory, at another place in the graph."""
    made = _new(Tensor)
    made._array = tensor._array
    made._counter = tensor._counter
    made._edge = edge
    return made


def _stand_in(leaf: Any, before: Edge) -> Any:
    if not moves(leaf):
        return leaf
    if modes.trace is not None:  # a batch of cotangents goes back through what knew of none
        (leaf,) = modes.trace.operands([leaf])
    return hang(leaf, (StandIn((before,)), 0))


class Captured:
    """The tensors outside that a loop's steps depend on: where they hang, and at which version.

    Of those that operations save it is known which are not the step's own: they are saved in
    other steps, too.

    Attributes
    ----------
    edges : list of Edge
    """

    def __init__(self) -> None:
        self.edges: list[Edge] = []
        self._known: set[Edge] = set()
        self._saved: dict[int, SavedArray] = {}  # by the counter's id
        self._last: dict[int, SavedArray] = {}  # the same of the last step

    def note(self, results: Iterable[Edge], start: int) -> None:
        """Find the edges that lead from a step, which began at `start`, to what was before."""
        stack = [edge for edge in results if edge[0] is not None]
        seen: set[Node] = set()
        current: dict[int, SavedArray] = {}
        while stack:
            edge = stack.pop()
            node = edge[0]
            if type(node) is AccumulateGrad or node.sequence < start:  # type: ignore[union-attr]
                if edge not in self._known:
                    self._known.add(edge)
                    self.edges.append(edge)
            elif node is not None and node not in seen:
                seen.add(node)
                stack += [(t, k) for t, k in node.next_functions if t is not None]
                if isinstance(node, PrimitiveNode) and type(node.saved) is tuple:
                    values = iter(node.saved)
                    for saved in zip(values, values, values, strict=True):
                        if type(saved[1]) is list:
                            current[id(saved[1])] = saved
        for counter in current.keys() & self._last.keys():
            self._saved.setdefault(counter, self._last[counter])
        self._last = current

    def settle(self, steps: int) -> None:
        """Forget what was the last step's own, after so many."""
        if steps == 1:
            self._saved = self._last
        self._last = {}

    def check(self) -> None:
        """Raise if one was written to since it was used, so that a step would not be as it was."""
        for saved in self._saved.values():
            unpack_array(saved, NO_EDGE)


class Map:
    """A function of a list of tensors (or Nones) that `apply` can record.

    Attributes
    ----------
    captured : Captured
    """

    captured: Captured

    def __call__(self, inputs: Leaves) -> Leaves:
        """Return the results; where grad mode is on, they are recorded."""
        raise NotImplementedError

    def pull(self, inputs: Leaves, cotangents: Leaves) -> Leaves:
        """Return the gradients at the inputs, then those at the captured edges."""
        return pull_through(self, inputs, cotangents)

    def push(self, inputs: Leaves, tangents: Leaves) -> Leaves:
        """Return the tangents of the results, given those of the inputs and of what is captured."""
        return push_through(self, inputs, tangents)[1]


class _Pull(Map):
    """From a map's inputs and cotangents to gradients."""

    def __init__(self, map_: Map, count: int) -> None:
        self._map = map_
        self._count = count
        self.captured = map_.captured

    def __call__(self, inputs: Leaves) -> Leaves:
        return self._map.pull(inputs[: self._count], inputs[self._count :])


class _Push(_Pull):
    """From a map's inputs and tangents to tangents."""

    def __call__(self, inputs: Leaves) -> Leaves:
        return self._map.push(inputs[: self._count], inputs[self._count :])


def pull_through(map_: Map, inputs: Leaves, cotangents: Leaves) -> Leaves:
    """Record a map, and go back through it: what `Map.pull` returns."""
    record = modes.grad
    start = next_sequence()
    with enable_grad():
        stand_ins = [
            _stand_in(leaf, gradient_edge(leaf) if record and moves(leaf) else NO_EDGE)
            for leaf in inputs
        ]
        edges = [gradient_edge(s) if moves(s) else NO_EDGE for s in stand_ins]
        with modes.trace.joined() if modes.trace is not None else nullcontext():
            results = map_(stand_ins)
    roots = [
        (gradient_edge(result), cotangent)
        for result, cotangent in zip(results, cotangents, strict=True)
        if cotangent is not None and gradient_edge(result) is not NO_EDGE
    ]
    wanted = edges + map_.captured.edges
    if not roots:
        return [None] * len(wanted)
    sources = {node for node, _ in wanted if node is not None}
    # What was captured may have been computed from something else that was: no further than that.
    needed = {
        node
        for node in nodes_towards(sources, [node for (node, _), _ in roots if node is not None])
        if node.sequence >= start
    }
    return run(
        roots,
        keep_graph=record,
        create_graph=record,
        inputs=wanted,
        accumulate=False,
        needed=needed,
    )


def push_through(map_: Map, inputs: Leaves, tangents: Leaves) -> tuple[Leaves, Leaves]:
    """Record a map, and push tangents through it: its results, and what `Map.push` returns."""
    record = modes.grad
    with enable_grad():
        stand_ins = [
            _stand_in(leaf, gradient_edge(leaf) if record and moves(leaf) else NO_EDGE)
            for leaf in inputs
        ]
        edges = [gradient_edge(s) if moves(s) else NO_EDGE for s in stand_ins]
        results = map_(stand_ins)
    places = [gradient_edge(result) if moves(result) else NO_EDGE for result in results]
    found = PushForward(places, edges + map_.captured.edges)(tangents, record)
    if not record:
        results = [None if each is None else hang(each, NO_EDGE) for each in results]
    return results, found


def pulled(map_: Map, inputs: Leaves, cotangents: Leaves) -> Leaves:
    """Return what `Map.pull` does; where grad mode is on, as outputs of one node.

    Of a batch of cotangents, what is recorded is recorded outside, operation by operation.
    """
    if modes.trace is not None and modes.trace.has_numbers:
        if modes.grad:  # what marks keep would be constants in it
            return pull_through(map_, inputs, cotangents)
        return map_.pull(inputs, cotangents)
    return apply(_Pull(map_, len(inputs)), [*inputs, *cotangents])


class Replayed(Node):
    """The node of a map.

    Attributes
    ----------
    output_metas : tuple of (shape, dtype)
        For each result.
    """

    __slots__ = ("num_outputs", "output_metas")

    def __init__(self, map_: Map, inputs: Leaves, edges: Sequence[Edge], results: Leaves) -> None:
        kept = [(leaf, None if leaf is None else leaf._counter[0]) for leaf in inputs]
        super().__init__([*edges, *map_.captured.edges], (map_, kept))
        self.num_outputs = len(results)
        self.output_metas = tuple(
            [
                ((), np.dtype(bool)) if r is None else (r._array.shape, r._array.dtype)
                for r in results
            ]
        )

    def _restore(self) -> tuple[Map, Leaves]:
        """Return the map and its inputs, as they were."""
        if self.saved is None:
            raise RuntimeError(FREED)
        map_, kept = self.saved
        for position, (leaf, version) in enumerate(kept):
            if leaf is not None and leaf._counter[0] != version:
                saved = (leaf._array, leaf._counter, version)
                raise RuntimeError(modified_message(saved, self.edge(position), self))
        map_.captured.check()
        return map_, [leaf for leaf, _ in kept]

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Run the map again, and back."""
        with no_grad():
            found = self.run_tensors([None if g is None else wrap(g) for g in gradients])
        return [None if each is None else each._array for each in found], (False,) * len(found)

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the map again, and back; where grad mode is on, as a map in turn."""
        map_, inputs = self._restore()
        return pulled(map_, inputs, [*gradients])

    def run_tangents(self, tangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the map again, with tangents."""
        map_, inputs = self._restore()
        return apply(_Push(map_, len(inputs)), [*inputs, *tangents])


def apply(map_: Map, inputs: Leaves) -> Leaves:
    """Return a map's results; where grad mode is on, they hang on one node."""
    if not modes.grad:
        return map_(inputs)
    with no_grad():
        results = map_(inputs)
    edges = [gradient_edge(leaf) if moves(leaf) else NO_EDGE for leaf in inputs]
    if all(edge is NO_EDGE for edge in (*edges, *map_.captured.edges)):
        return results
    return record(map_, inputs, edges, results, [moves(result) for result in results])


def record(
    map_: Map, inputs: Leaves, edges: Sequence[Edge], results: Leaves, moving: Sequence[bool]
) -> Leaves:
    """Return a map's results, those that are `moving` as outputs of one node."""
    node = Replayed(map_, inputs, edges, results)
    return [
        hang(result, (node, number)) if moves_on else result
        for number, (result, moves_on) in enumerate(zip(results, moving, strict=True))
    ]


Replayed.__name__ = Replayed.__qualname__ = "ReplayedBackward"
