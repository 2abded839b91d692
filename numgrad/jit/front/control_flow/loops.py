"""Record loops: a body is traced once, and with it how its gradients are computed.

A loop that is recorded is one step of the graph (`numgrad.jit.lowering.loops`). What is computed of
it is differentiable by a `Node` whose rule records another loop, over the same turns the other way
round: each computes the body again, from what was handed on to it, which the first loop stacks, and
then the gradients. That loop is recorded like any other, so it can be differentiated in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.state import modes
from numgrad.graph.node import Node, next_sequence, node_type
from numgrad.graph.recorder import TraceError
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, wrap
from numgrad.jit.front.control_flow.derived_turns import BackwardTurn, ForwardTurn, or_zeros
from numgrad.jit.front.control_flow.loop_calls import (
    Body,
    FirstTurn,
    LoopCall,
    Recorded,
    Turn,
    stand_ins,
)
from numgrad.jit.front.states import drawing_alike

__all__ = ["drawing_for", "record_loop"]


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
    shared: int = 0,
    recorded: Recorded | None = None,
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
    shared : int
        How many carries at the end are one for all examples of a batch, whatever they do.
    recorded : Recorded, optional
        The body as it was recorded already, together with what it is the body for inside. Where
        generators of random numbers are is among its carries.

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
    if recorded is not None:
        return _record_loop(tracer, body, carries, rows, *kind, shared, recorded)
    while True:
        generators = drawing_for(tracer).states.in_scope
        drawing = _Drawing(tracer, body, generators)
        states = [wrap(tracer.random_state(generator)) for generator in generators]
        handed_on = [*carries, *states]
        found = _record_loop(tracer, drawing, handed_on, rows, *kind, shared + len(states))
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
        with drawing_alike(carries[own:], self.tracer) as arrays:
            given = dict(zip(self.generators, arrays, strict=True))
            with drawing_for(self.tracer).states.body(given) as known:
                turn = self.body(carries[:own], rows)
        self.unknown |= known.keys() - given.keys()
        states = [wrap(known[generator]) for generator in self.generators]
        return turn._replace(carries=[*turn.carries, *states])


def drawing_for(tracer: Any) -> Any:
    """Return the tracer that draws random numbers for the examples of a batch, or for itself."""
    while not hasattr(tracer, "states"):
        tracer = tracer.outside().trace
    return tracer


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
    shared: int,
    recorded: Recorded | None = None,
) -> Turn:
    """Record a loop whose carries are all that is handed on."""
    carried = len(carries)
    given = [*carries, *rows]
    required = [modes.grad and each.requires_grad for each in given]
    taken = len(recorded.inputs) if recorded is not None and recorded.finish is not None else None
    given[:carried] = tracer.spread(given, given[:carried], stops, shared, count) or given[:carried]
    while True:
        first = FirstTurn(given, carried, required, reverse, stops, count, shared)
        if recorded is not None and taken is not None:
            recorded = _completed(tracer, recorded, taken, first)
        elif recorded is None or [each.requires_grad for each in recorded.inputs] != required:
            recorded = _record(tracer, body, first)
        turn = recorded.turn
        more = [a or b.requires_grad for a, b in zip(required, turn.carries, strict=False)]
        spread = tracer.spread(given, turn.carries, stops, shared, count)
        if spread is None and (not modes.grad or more == required[:carried]):
            break
        if modes.grad:
            required[:carried] = more  # what comes of a parameter requires grad from the next on
        if spread is not None:
            given[:carried] = spread
            recorded = None if taken is None else recorded
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
    kind = length, reverse, stops, count, has_stacks, divided, shared
    call = LoopCall(body, given, carried, recorded, *kind)
    results = tracer.loop(call)
    if is_moving:
        edges = recorded.edges()
        ends = [
            gradient_edge(each) if is_required else NO_EDGE
            for each, is_required in zip(given, required, strict=True)
        ]
        node = node_type("LoopBackward", _LoopNode, num_outputs=len(results))([*ends, *edges])
        node.body, node.given, node.required = body, given, required
        node.carried, node.sums, node.edges = carried, len(turn.summed), edges
        node.first = len(results) - carried if has_stacks else 0
        node.arrays = [each._array for each in results[node.first :]]
        node.count = results[1].detach() if stops else count
        node.output_metas = [(each._array.shape, each._array.dtype) for each in results]
        node.length, node.reverse, node.divided = length, reverse, divided
        node.shared = shared
        for position, (result, is_moved) in enumerate(zip(results, moving, strict=True)):
            if is_moved:
                result._edge = (node, position)
    sums = carried + len(turn.summed)
    stacked = sums + len(turn.stacked)
    return Turn(results[:carried], results[sums:stacked], results[carried:sums])


def _record(tracer: Any, body: Body, first: FirstTurn) -> Recorded:
    """Record a body for what its inputs are in the first turn."""
    start, count = next_sequence(), first.carried
    with tracer.body(first) as (inputs, read, note):
        return Recorded(inputs, body(read[:count], read[count:]), start, note)


def _completed(tracer: Any, recorded: Recorded, taken: int, first: FirstTurn) -> Recorded:
    """Return a body that takes few of its inputs, for others that stand for the rest."""
    inputs = [*recorded.inputs[:taken], *stand_ins(tracer, first, taken)]
    assert recorded.finish is not None
    return recorded._replace(inputs=inputs, turn=recorded.finish(inputs))


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
        "shared",
        "sums",
    )

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
    length: int | None  # of the loop, as its `reverse`, `divided` and `shared`
    reverse: bool
    divided: bool
    shared: int

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
        carries = [or_zeros(*both) for both in zip(start, metas, strict=True)]
        stacked = {
            k: g for k, g in enumerate(gradients) if k >= carried + self.sums and g is not None
        }
        rows = [*self._stacks(), *self.given[carried:], *stacked.values()]
        turn = BackwardTurn(self, gradients, moving, list(stacked))
        found = record_loop(
            modes.trace,
            turn,
            carries,
            rows,
            self.length,
            not self.reverse,
            count=self.count,
            divided=self.divided,
        )
        turn.enter(found, results)
        return results

    def run_tangents(self, tangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Record the loop of the tangents."""
        carried, required = self.carried, self.required
        moving = [k for k in range(carried) if required[k]]
        carries = [or_zeros(tangents[k], self.output_metas[k]) for k in moving]
        numbers = [k for k in range(carried, len(self.given)) if tangents[k] is not None]
        rows = [*self._stacks(), *self.given[carried:]]
        rows += [each for each in tangents[carried : len(self.given)] if each is not None]
        turn = ForwardTurn(self, tangents, moving, numbers)
        kind = self.length, self.reverse
        found = record_loop(
            modes.trace, turn, carries, rows, *kind, count=self.count, divided=self.divided
        )
        results: list[Tensor | None] = [None] * self.num_outputs
        turn.enter(found, results)
        return results

    def _stacks(self) -> Sequence[Tensor]:
        """Return what the carries were in each turn."""
        if not self.first:  # how many there would be was not known: now it is
            return record_loop(
                modes.trace,
                self._with_carries,
                self.given[: self.carried],
                self.given[self.carried :],
                None,
                count=self.count,
                shared=self.shared,
            ).stacked
        stacks = [wrap(array) for array in self.arrays]
        for position, stack in enumerate(stacks):
            if self.required[position]:
                stack._edge = (self, self.first + position)
        return stacks

    def _with_carries(self, carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Turn:
        """Do what the body does, and stack what it was given."""
        return Turn(self.body(carries, rows).carries, carries)
