"""Roll up what repeats itself in a trace: a plain ``for`` of the traced function becomes a loop.

A loop written in Python records the same operations in every turn. Where they take what the turn
before computed (or one further back), what is the same in all turns, or the next row of something,
they become one `Loop`, which is compiled once, however many turns it has. The backward half of a
gradient repeats itself the other way round; it reads row by row what the forward half stacks.

Turns at either end record fewer operations where they begin with numbers, or where nobody needs
what they hand on: they are turns of the loop all the same (`numgrad.jit.rolling.ends`).
"""

from __future__ import annotations

from math import prod

from numgrad.jit.ir.graph import Graph
from numgrad.jit.lowering.loops import change_bodies
from numgrad.jit.rolling.building import with_loop
from numgrad.jit.rolling.completion import Columns, Unlike
from numgrad.jit.rolling.ends import End, turn_after, turn_before
from numgrad.jit.rolling.pattern import Pattern
from numgrad.jit.rolling.repetition import OPERATIONS, Run, runs
from numgrad.jit.rolling.tokens import Tokens
from numgrad.jit.rolling.trace import Trace
from numgrad.jit.rolling.turns import Turns

__all__ = ["rolled"]

LARGE = 1 << 14  # elements of an array from which on it matters how often memory is gone through
TOO_MANY_TO_UNROLL = 2_000  # operations, which take half a minute to compile
PEELED = 2  # turns at either end that may be unlike the others
LEFT = 3  # turns that are left


def rolled(graph: Graph) -> Graph:
    """Return a graph in which what repeats itself is done in loops.

    Parameters
    ----------
    graph : Graph
        As it was traced: the order in which values were made is that of the function.
    """
    refused: set[tuple[int, int]] = set()
    trace = Trace(graph, Tokens())
    while (smaller := _rolled_once(trace, refused)) is not None:
        trace = smaller
    return change_bodies(trace.graph, rolled)


def _rolled_once(trace: Trace, refused: set[tuple[int, int]]) -> Trace | None:
    """Return the trace with one loop more, and fewer operations; None if there is none.

    `refused` gets what was looked at in vain.
    """
    if sum(trace.weights) < OPERATIONS:
        return None
    tokens = [each.token for each in trace.operations]
    for run in runs(tokens, trace.last_used, trace.weights, trace.parts):
        key = (trace.operations[run.first].value.number, run.period)
        if key in refused or _is_better_unrolled(trace, run):
            continue
        graph = _as_loop(trace, run)
        if graph is not None:
            found = Trace(graph, trace.tokens)
            if len(found.operations) < len(trace.operations):  # so there is an end to it
                return found
        refused.add(key)
    return None


def _is_better_unrolled(trace: Trace, run: Run) -> bool:
    """Whether turns compute so many elements, and are so few, that time goes into elements.

    Unrolled they share passes over memory, and threads.
    """
    end = run.first + run.period * run.turns
    if sum(trace.weights[run.first : end]) >= TOO_MANY_TO_UNROLL:
        return False
    turn = trace.operations[run.first : run.first + run.period]
    return max(prod(each.value.shape) for each in turn) > LARGE


def _as_loop(trace: Trace, run: Run) -> Graph | None:
    """Return the graph with a run of turns as a loop, but for some at its ends if need be.

    With what there is of further turns beside it, if that can be.
    """
    for peeled in range(PEELED + 1):
        for cut in range(PEELED + 1):
            left = run.turns - peeled - cut
            if left < LEFT:
                continue
            pattern = Pattern(trace, Run(run.first + peeled * run.period, run.period, left))
            before = None if peeled else turn_before(pattern)
            after = None if cut else turn_after(pattern)
            for one, other in _choices(before, after):
                try:
                    turns = Turns(Columns(pattern, one, other))
                    turns.find()
                    return with_loop(turns, rolled)
                except Unlike:
                    continue
    return None


def _choices(before: End | None, after: End | None) -> list[tuple[End | None, End | None]]:
    """Return which turns to take along that lack operations: most of them first."""
    found = [(before, after), (before, None), (None, after), (None, None)]
    return list({(id(one), id(other)): (one, other) for one, other in found}.values())
