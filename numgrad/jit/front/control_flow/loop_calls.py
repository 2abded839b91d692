"""Loops as a tracer is told of them: their bodies are cut out of what it has recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numgrad.graph.modes.state import recording
from numgrad.graph.tensor import Edge, Tensor
from numgrad.jit.front.outside import edges_from_outside
from numgrad.jit.ir.constructors import broadcast, constant
from numgrad.jit.ir.graph import Value
from numgrad.jit.lowering.bodies import cut_out, fresh_input
from numgrad.jit.lowering.loops import Loop

__all__ = [
    "Body",
    "FirstTurn",
    "Inputs",
    "LoopCall",
    "Recorded",
    "Turn",
    "cut_loop",
    "stand_ins",
]


class Turn(NamedTuple):
    """What a body gives: the next carries, what is stacked, and what is summed over all turns."""

    carries: Sequence[Tensor]
    stacked: Sequence[Tensor]
    summed: Sequence[Tensor] = ()


Body = Callable[[Sequence[Tensor], Sequence[Tensor]], Turn]


class FirstTurn(NamedTuple):
    """What a recorder is told before a body is recorded: ``tracer.body(first)``.

    It yields an `Inputs`: what stands for `given`.

    Attributes
    ----------
    given, carried, reverse, stops, turns, shared
        As of `LoopCall`.
    required : sequence of bool
        Which of the inputs require grad.
    """

    given: Sequence[Tensor]
    carried: int
    required: Sequence[bool]
    reverse: bool = False
    stops: bool = False
    turns: Tensor | None = None
    shared: int = 0


class Inputs(NamedTuple):
    """What stands for the carries and the rows in a body, and what the body is called with."""

    inputs: list[Tensor]
    read: list[Tensor]
    note: Any = None


class Recorded(NamedTuple):
    """A body as it was recorded.

    Attributes
    ----------
    inputs : list of Tensor
        What stood for the carries and the rows.
    turn : Turn
        What it gave.
    start : int
        The number of the first node that may be the body's.
    note : object
        What the recorder has yielded with the inputs; see `FirstTurn`.
    finish : callable, optional
        Of a body that takes only the first few of the inputs, which are all that was recorded:
        others may stand for the rest, and for all of them this returns the turn.
    """

    inputs: list[Tensor]
    turn: Turn
    start: int
    note: Any = None
    finish: Callable[[list[Tensor]], Turn] | None = None

    def edges(self) -> list[Edge]:
        """Return where gradients leave the body, but for its inputs."""
        own = [each for each in self.inputs if each.requires_grad]
        outputs = [*self.turn.carries, *self.turn.summed, *self.turn.stacked]
        return edges_from_outside(outputs, own, self.start, in_body=True)


class LoopCall(NamedTuple):
    """A loop as a recorder is told of it, by `record_loop`, whose arguments most of these are.

    Attributes
    ----------
    body, length, reverse, stops
    turns : Tensor or None
        The number of turns, if it is not known.
    given : sequence of Tensor
        What the first turn is given, and then the rows.
    carried : int
        How many carries there are.
    recorded : Recorded
        The body for what stands for `given`.
    keeps : bool
        Whether the carries that each turn is given are stacked, too, behind all other results.
    divided : bool
    shared : int
    """

    body: Body
    given: Sequence[Tensor]
    carried: int
    recorded: Recorded
    length: int | None
    reverse: bool
    stops: bool
    turns: Tensor | None
    keeps: bool
    divided: bool
    shared: int


def stand_ins(tracer: Any, first: FirstTurn, start: int = 0) -> list[Tensor]:
    """Return what stands for what is given, from some position on."""
    inputs = []
    for position, (each, is_required) in enumerate(zip(first.given, first.required, strict=True)):
        if position < start:
            continue
        shape = each._array.shape[position >= first.carried :]
        stand_in = tracer.stand_in(shape, each._array.dtype, each)
        if is_required:
            stand_in._edge = None
        inputs.append(stand_in)
    return inputs


def cut_loop(tracer: Any, call: LoopCall) -> list[Tensor]:
    """Record a loop, by cutting its body out of what a tracer has recorded."""
    (inputs, turn, *_), carried = call.recorded, call.carried
    before = [tracer.stand_in(each._array.shape, each._array.dtype) for each in turn.summed]
    with recording(False):
        after = [so_far + each for so_far, each in zip(before, turn.summed, strict=True)]
    kept = inputs[:carried] if call.keeps else ()
    sums_before = [tracer.value_of(each._array) for each in before]
    values = [
        tracer.value_of(each._array) for each in (*turn.carries, *after, *turn.stacked, *kept)
    ]
    own = [tracer.value_of(each._array) for each in inputs]
    own[carried:carried] = sums_before
    operands = [tracer.value_of(each._array) for each in call.given]
    operands[carried:carried] = [_zeros(value) for value in sums_before]
    counts = call.turns is not None
    if call.turns is not None:
        operands.append(tracer.value_of(call.turns._array))
        own.append(fresh_input(operands[-1], 0))
    is_branch = call.length == 1 and (call.stops or counts)
    graph, captured = cut_out(own, values, is_branch)
    carries, rows = carried + len(before), len(call.given) - carried
    kind = call.length, call.reverse, call.stops, counts, call.divided
    loop = Loop(graph, carries, rows, *kind)
    found: list[Tensor] = tracer.results(loop, [*operands, *captured])
    return found


def _zeros(value: Value) -> Value:
    return broadcast(constant(0, value.dtype), value.shape)
