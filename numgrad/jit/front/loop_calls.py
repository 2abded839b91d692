"""Loops as a tracer is told of them: their bodies are cut out of what it has recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numgrad.graph.modes.state import recording
from numgrad.graph.tensor import Tensor
from numgrad.jit.ir.constructors import broadcast, constant
from numgrad.jit.ir.graph import Value
from numgrad.jit.lowering.bodies import cut_out, fresh_input
from numgrad.jit.lowering.loops import Loop

__all__ = ["Body", "LoopCall", "Turn", "cut_loop"]


class Turn(NamedTuple):
    """What a body gives: the next carries, what is stacked, and what is summed over all turns."""

    carries: Sequence[Tensor]
    stacked: Sequence[Tensor]
    summed: Sequence[Tensor] = ()


Body = Callable[[Sequence[Tensor], Sequence[Tensor]], Turn]


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
    inputs : sequence of Tensor
        What stood for `given` when the body was recorded.
    turn : Turn
        What the body gave for these.
    keeps : bool
        Whether the carries that each turn is given are stacked, too, behind all other results.
    divided : bool
    """

    body: Body
    given: Sequence[Tensor]
    carried: int
    inputs: Sequence[Tensor]
    turn: Turn
    length: int | None
    reverse: bool
    stops: bool
    turns: Tensor | None
    keeps: bool
    divided: bool


def cut_loop(tracer: Any, call: LoopCall) -> list[Tensor]:
    """Record a loop, by cutting its body out of what a tracer has recorded."""
    turn, carried = call.turn, call.carried
    before = [tracer.stand_in(each._array.shape, each._array.dtype) for each in turn.summed]
    with recording(False):
        after = [so_far + each for so_far, each in zip(before, turn.summed, strict=True)]
    kept = call.inputs[:carried] if call.keeps else ()
    sums_before = [tracer.value_of(each._array) for each in before]
    values = [
        tracer.value_of(each._array) for each in (*turn.carries, *after, *turn.stacked, *kept)
    ]
    own = [tracer.value_of(each._array) for each in call.inputs]
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
