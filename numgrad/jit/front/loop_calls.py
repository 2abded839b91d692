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

__all__ = ["Body", "LoopCall", "Recorded", "Turn", "cut_loop"]


class Turn(NamedTuple):
    """What a body gives: the next carries, what is stacked, and what is summed over all turns."""

    carries: Sequence[Tensor]
    stacked: Sequence[Tensor]
    summed: Sequence[Tensor] = ()


Body = Callable[[Sequence[Tensor], Sequence[Tensor]], Turn]


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
    takes : bool
        Whether it takes any of the inputs. Otherwise others may stand in their place.
    """

    inputs: list[Tensor]
    turn: Turn
    start: int
    takes: bool = True

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
    graph, captured = cut_out(own, values)
    carries, rows = carried + len(before), len(call.given) - carried
    kind = call.length, call.reverse, call.stops, counts, call.divided
    loop = Loop(graph, carries, rows, *kind)
    found: list[Tensor] = tracer.results(loop, [*operands, *captured])
    return found


def _zeros(value: Value) -> Value:
    return broadcast(constant(0, value.dtype), value.shape)
