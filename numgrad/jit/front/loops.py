"""Record loops: a body is traced once, and with it how its gradients are computed.

A loop that is recorded is one step of the graph (`numgrad.jit.lowering.loops`). What is computed of
it is differentiable by a `Node` whose rule records another loop, over the same turns the other way
round: each computes the body again, from what was handed on to it, which the first loop stacks, and
then the gradients. That loop is recorded like any other, so it can be differentiated in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.backward.engine import run
from numgrad.graph.modes.state import modes, recording
from numgrad.graph.node import Node, next_sequence, node_type
from numgrad.graph.recorder import TraceError
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, wrap
from numgrad.jit.front.loop_calls import Body, LoopCall, Turn
from numgrad.jit.front.outside import edges_from_outside, inside
from numgrad.runtime.frames import where_user_is

__all__ = ["record_loop"]


class _Recorded(NamedTuple):
    """A body as it was recorded.

    Attributes
    ----------
    inputs : list of Tensor
        What stood for the carries and the rows.
    turn : Turn
        What it gave.
    edges : list of edges
        Where gradients leave the body, but for its inputs.
    """

    inputs: list[Tensor]
    turn: Turn
    edges: list[Edge]


def record_loop(
    tracer: Any,
    body: Body,
    carries: Sequence[Tensor],
    rows: Sequence[Tensor],
    length: int | None,
    reverse: bool = False,
    *,
    stops: bool = False,
    count: Tensor | None = None,
    divided: bool = False,
) -> Turn:
    """Record a loop, and return what it leaves.

    Parameters
    ----------
    tracer : Tracer
        That is open.
    body : callable
        ``body(carries, rows)`` returns a `Turn`. It is called for tensors that lie row by row; it
        may use any others. It is called again where gradients are computed.
    carries : sequence of Tensor
        What the first turn is given.
    rows : sequence of Tensor
        Of which each turn is given an element of the first dim.
    length : int or None
        The number of turns, at least 1, or the most there may be; None if there is no limit.
    reverse : bool
        Whether the turns go from the last row to the first.
    stops : bool
        Whether the first carry says if there is another turn. The second one counts them then.
    count : Tensor, optional
        The number of turns, if it is not known.
    divided : bool
        Whether each turn is several of a loop that keeps few carries for its gradient.

    Returns
    -------
    Turn
        The last carries; what was stacked, in the order of the rows; and the sums.

    Raises
    ------
    TraceError
        If the body writes to what it did not make, or its carries change shape or dtype.
    """
    kind = length, reverse, stops, count, divided
    if not hasattr(tracer, "states"):  # the examples of a batch, which draw outside
        return _record_loop(tracer, _NotDrawing(tracer, body), carries, rows, *kind)
    while True:
        generators = tracer.states.in_scope
        drawing = _Drawing(tracer, body, generators)
        states = [wrap(tracer.random_state(generator)) for generator in generators]
        handed_on = [*carries, *states]
        found = _record_loop(tracer, drawing, handed_on, rows, *kind)
        if not drawing.unknown:
            break
        for generator in drawing.unknown:  # it has to have a state before the loop, too
            tracer.random_state(generator)
    for generator, state in zip(generators, found.carries[len(carries) :], strict=True):
        tracer.set_random_state(generator, state._array)
    return found._replace(carries=found.carries[: len(carries)])


class _Drawing:
    """A body that hands on where generators of random numbers are: its last carries.

    Attributes
    ----------
    unknown : set of Generator
        Others that it draws from.
    """

    def __init__(self, tracer: Any, body: Body, generators: Sequence[Any]) -> None:
        self.tracer, self.body, self.generators = tracer, body, generators
        self.unknown: set[Any] = set()

    def __call__(self, carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Turn:
        """Return what the body gives, for states that come behind its carries."""
        own = len(carries) - len(self.generators)
        arrays = [carry._array for carry in carries[own:]]
        given = dict(zip(self.generators, arrays, strict=True))
        with self.tracer.states.body(given) as known:
            turn = self.body(carries[:own], rows)
        self.unknown |= known.keys() - given.keys()
        states = [wrap(known[generator]) for generator in self.generators]
        return turn._replace(carries=[*turn.carries, *states])


class _NotDrawing:
    """A body for the examples of a batch, in which no random numbers may be drawn."""

    def __init__(self, batcher: Any, body: Body) -> None:
        self.body = body
        self.tracer = batcher
        while not hasattr(self.tracer, "states"):
            self.tracer = self.tracer.outside().trace

    def __call__(self, carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Turn:
        """Return what the body gives."""
        with self.tracer.states.body({}) as known:
            turn = self.body(carries, rows)
        if known:
            raise TraceError(
                f"{where_user_is()}jit: random numbers can't be drawn within a loop or branch "
                "under vmap: draw them before it, as rows that it goes through"
            )
        return turn


def _record_loop(
    tracer: Any,
    body: Body,
    carries: Sequence[Tensor],
    rows: Sequence[Tensor],
    length: int | None,
    reverse: bool,
    stops: bool,
    count: Tensor | None,
    divided: bool,
) -> Turn:
    """Record a loop whose carries are all that is handed on."""
    carried = len(carries)
    given = [*carries, *rows]
    required = [modes.grad and each.requires_grad for each in given]
    while True:
        recorded = _record(tracer, body, given, carried, required)
        turn = recorded.turn
        more = [a or b.requires_grad for a, b in zip(required, turn.carries, strict=False)]
        spread = tracer.spread(given, turn.carries, stops)
        if spread is None and (not modes.grad or more == required[:carried]):
            break
        if modes.grad:
            required[:carried] = more  # what comes of a parameter requires grad from the next on
        if spread is not None:
            given[:carried] = spread
    outputs = [*turn.carries, *turn.summed, *turn.stacked]
    moving = [modes.grad and output.requires_grad for output in outputs]
    if stops or count is not None:  # of no turns the carries are what they were
        moving[:carried] = [a or b for a, b in zip(moving, required[:carried], strict=False)]
    is_moving = any(moving)
    has_stacks = is_moving and not (stops and length is None)
    if has_stacks:
        outputs += recorded.inputs[:carried]
        moving += required[:carried]
    for pair in zip(turn.carries, recorded.inputs, strict=False):
        _check_fits(*pair)
    inputs = recorded.inputs
    kind = length, reverse, stops, count, has_stacks, divided
    call = LoopCall(body, given, carried, inputs, turn, *kind)
    results = tracer.loop(call)
    if is_moving:
        ends = [
            gradient_edge(each) if is_required else NO_EDGE
            for each, is_required in zip(given, required, strict=True)
        ]
        node = node_type("LoopBackward", _LoopNode, num_outputs=len(results))(
            [*ends, *recorded.edges]
        )
        node.tracer, node.body, node.given, node.required = tracer, body, given, required
        node.carried, node.sums, node.edges = carried, len(turn.summed), recorded.edges
        node.first = len(results) - carried if has_stacks else 0
        node.arrays = [each._array for each in results[node.first :]]
        node.count = results[1].detach() if stops else count
        node.output_metas = [(each._array.shape, each._array.dtype) for each in results]
        node.length, node.reverse, node.divided = length, reverse, divided
        for position, (result, is_moved) in enumerate(zip(results, moving, strict=True)):
            if is_moved:
                result._edge = (node, position)
    sums = carried + len(turn.summed)
    stacked = sums + len(turn.stacked)
    return Turn(results[:carried], results[sums:stacked], results[carried:sums])


def _record(
    tracer: Any, body: Body, given: Sequence[Tensor], count: int, required: Sequence[bool]
) -> _Recorded:
    """Record a body whose inputs require grad as `required` says; `count` of them are carries."""
    start = next_sequence()
    with tracer.body():
        inputs = []
        for position, (each, is_required) in enumerate(zip(given, required, strict=True)):
            shape = each._array.shape[position >= count :]
            stand_in = tracer.stand_in(shape, each._array.dtype, each)
            if is_required:
                stand_in._edge = None
            inputs.append(stand_in)
        turn = body(inputs[:count], inputs[count:])
    own = [each for each, is_required in zip(inputs, required, strict=True) if is_required]
    outputs = [*turn.carries, *turn.summed, *turn.stacked]
    return _Recorded(inputs, turn, edges_from_outside(outputs, own, start, in_body=True))


def _check_fits(after: Tensor, before: Tensor) -> None:
    """Raise for a carry that is not what it was for the next turn."""
    if after._array.shape != before._array.shape or after._array.dtype != before._array.dtype:
        raise TraceError(
            f"a loop's carry is {_type(before)} in one turn and {_type(after)} in the next: a "
            "carry keeps its shape and dtype"
        )


def _type(tensor: Tensor) -> str:
    return f"{tensor.dtype!r} of shape {tuple(tensor.shape)}"


class _LoopNode(Node):
    """The node of a loop. Its outputs: carries, sums, what is stacked, and the carries stacked."""

    __slots__ = (
        "arrays",
        "body",
        "carried",
        "count",
        "divided",
        "edges",
        "first",
        "given",
        "length",
        "output_metas",
        "required",
        "reverse",
        "sums",
        "tracer",
    )

    tracer: Any
    output_metas: list[tuple[tuple[int, ...], Any]]
    body: Body
    carried: int  # how many carries the body has
    count: Tensor | None  # how many turns there were, if that is not known
    sums: int  # how many there are
    edges: list[Edge]  # where gradients go that leave the body, but for its inputs
    given: Sequence[Tensor]  # what the loop was given
    required: Sequence[bool]  # which of these required grad in the body
    first: int  # which output is the first that has the carries of all turns; 0 if none has
    arrays: list[Any]  # of these outputs
    length: int | None  # of the loop, as its `reverse` and `divided`
    reverse: bool
    divided: bool

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Record the loop of the gradients."""
        tensors = [None if gradient is None else wrap(gradient) for gradient in gradients]
        arrays = [None if found is None else found._array for found in self.run_tensors(tensors)]
        return arrays, [False] * len(arrays)

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Record the loop of the gradients on tensors."""
        results: list[Tensor | None] = [None] * len(self.targets)
        if all(gradient is None for gradient in gradients):
            return results
        carried, required = self.carried, self.required
        moving = [k for k in range(carried) if required[k]]
        start = [gradients[k] for k in moving]
        metas = [self.output_metas[k] for k in moving]
        carries = [_or_zeros(self.tracer, *both) for both in zip(start, metas, strict=True)]
        stacked = {
            k: g for k, g in enumerate(gradients) if k >= carried + self.sums and g is not None
        }
        rows = [*self._stacks(), *self.given[carried:], *stacked.values()]
        turn = _BackwardTurn(self, gradients, moving, list(stacked))
        found = record_loop(
            self.tracer,
            turn,
            carries,
            rows,
            self.length,
            not self.reverse,
            count=self.count,
            divided=self.divided,
        )
        for places, tensors in (
            (moving, found.carries),
            (turn.stacked, found.stacked),
            (turn.summed, found.summed),
        ):
            for k, tensor in zip(places, tensors, strict=True):
                results[k] = tensor
        return results

    def _stacks(self) -> Sequence[Tensor]:
        """Return what the carries were in each turn."""
        if not self.first:  # how many there would be was not known: now it is
            return record_loop(
                self.tracer,
                self._with_carries,
                self.given[: self.carried],
                self.given[self.carried :],
                None,
                count=self.count,
            ).stacked
        stacks = [wrap(array) for array in self.arrays]
        for position, stack in enumerate(stacks):
            if self.required[position]:
                stack._edge = (self, self.first + position)
        return stacks

    def _with_carries(self, carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Turn:
        """Do what the body does, and stack what it was given."""
        return Turn(self.body(carries, rows).carries, carries)


class _BackwardTurn:
    """The body of the loop of gradients.

    Its carries are the gradients of the `moving` carries. Its rows are the carries and the rows of
    the loop itself, and the gradients of what was stacked, by the `numbers` of these outputs.

    Attributes
    ----------
    stacked, summed : list of int
        Which of the node's inputs each gradient is for that is stacked or summed.
    """

    def __init__(
        self,
        node: _LoopNode,
        gradients: Sequence[Tensor | None],
        moving: Sequence[int],
        numbers: Sequence[int],
    ) -> None:
        self.node, self.gradients = node, gradients
        self.moving, self.numbers = moving, numbers
        self.stacked: list[int] = []
        self.summed: list[int] = []

    def __call__(self, carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Turn:
        node, create_graph = self.node, modes.grad
        carried, total = node.carried, len(node.given)
        with recording(True):
            start = next_sequence()
            inputs = [
                _requiring(each) if required else each
                for each, required in zip(rows, node.required, strict=False)
            ]
            turn = node.body(inputs[:carried], inputs[carried:])
        cotangents = dict(enumerate(self.gradients[: carried + node.sums]))
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
        following = [_or_zeros(node.tracer, by_place[k], node.output_metas[k]) for k in self.moving]
        present = [k for k in places if k >= carried and by_place[k] is not None]
        self.stacked = [k for k in present if k < total]
        self.summed = [k for k in present if k >= total]
        stacked = [each for k in self.stacked if (each := by_place[k]) is not None]
        summed = [each for k in self.summed if (each := by_place[k]) is not None]
        return Turn(following, stacked, summed)


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


def _or_zeros(tracer: Any, gradient: Tensor | None, meta: Any) -> Tensor:
    if gradient is not None:
        return gradient
    zeros: Any = tracer.constant(np.zeros(*meta))
    return wrap(zeros)
