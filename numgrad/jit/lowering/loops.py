"""Loops in a graph: a body that is done again and again, and what it hands on.

A loop is what a graph calls (see `numgrad.jit.ir.graph`, ``call``), like a primitive. Its operands
are what the carries begin with, then what it takes one row of in each turn, then what is the same
in all turns. Its results are the carries as the last turn left them, and then what each turn gave,
stacked along a first dim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.bodies import replaced, without_known
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.jit.lowering.unneeded import needed_loops
from numgrad.jit.passes.simplify import simplify

__all__ = ["Loop", "change_bodies"]


class Loop:
    """A loop.

    Attributes
    ----------
    graph : Graph
        The body. Its inputs are the carries, a row of each of the `rows`, then of a loop that is
        `counted` the number of turns, and what is the same in all turns; its outputs the carries of
        the next turn, and then what is stacked.
    carries, rows : int
        How many there are.
    length : int or None
        The number of turns, at least 1; of a loop that `stops` or is `counted`, the most there may
        be. None if there is no limit: then nothing is stacked.
    reverse : bool
        Whether rows are taken, and results stacked, from the last to the first.
    stops : bool
        Whether the first carry says if there is another turn.
    counted : bool
        Whether the number of turns is an operand.
    divided : bool
        Whether each turn is several of a loop that keeps few carries: what loops in the body stack
        is not kept for a gradient then.
    """

    __slots__ = ("carries", "counted", "divided", "graph", "length", "reverse", "rows", "stops")

    name = "loop"

    def __init__(
        self,
        graph: Graph,
        carries: int,
        rows: int,
        length: int | None,
        reverse: bool = False,
        stops: bool = False,
        counted: bool = False,
        divided: bool = False,
    ) -> None:
        self.graph = needed_loops(simplify(graph))
        self.carries, self.rows = carries, rows
        self.length, self.reverse = length, reverse
        self.stops, self.counted, self.divided = stops, counted, divided

    @property
    def fixed(self) -> int:
        """Which of the body's inputs is the first that is the same in all turns."""
        return self.carries + self.rows + self.counted

    @property
    def own(self) -> tuple[Value, ...]:
        """The body's inputs that may be written over: the carries."""
        return self.graph.inputs[: self.carries]

    def metas(self) -> list[tuple[tuple[int, ...], Any]]:
        """Return shape and dtype of each result.

        Where the number of turns is not known before there are any, the first length is 0.
        """
        found: list[tuple[tuple[int, ...], Any]] = []
        for position, output in enumerate(self.graph.outputs):
            lead = () if position < self.carries else (self.length or 0,)
            found.append(((*lead, *output.shape), output.dtype))
        return found

    def grows(self, position: int) -> bool:
        """Whether a result has as many rows as there are turns, which is not known before."""
        return self.counted and self.length is None and position >= self.carries

    def with_body(self, graph: Graph, carries: int, rows: int) -> Loop:
        """Return a loop of the same turns with another body."""
        kind = self.length, self.reverse, self.stops, self.counted, self.divided
        return Loop(graph, carries, rows, *kind)

    def specialised(self, operands: Sequence[Value]) -> tuple[Loop, list[Value]] | None:
        """Return the loop without operands that are numbers, repeated, or there twice.

        None if there are no such. What a carry begins with may be a number, of course.
        """
        found = without_known(self.graph, self.fixed, operands[self.fixed :])
        if found is None:
            return None
        graph, rest = found
        loop = self.with_body(graph, self.carries, self.rows)
        return loop, [*operands[: self.fixed], *rest]

    def __repr__(self) -> str:
        most = "at most " if self.stops or self.counted else ""
        turns = "turns" if self.length is None else f"{most}{self.length} turns"
        kinds = [", from the last"] * self.reverse + [", while the first carry holds"] * self.stops
        return f"loop({turns}{''.join(kinds)}, {self.carries} carries, {self.rows} rows)"


def change_bodies(graph: Graph, change: Callable[[Graph], Graph]) -> Graph:
    """Return the graph with something done to the body of each of its loops, over vectors too."""
    new: dict[Value, Value] = {}
    for value in graph.values():
        loop = value.attributes.get("primitive")
        if isinstance(loop, Loop | Rows):
            body = change(loop.graph)
            if body is not loop.graph:
                fresh = replaced(value, new)
                counts = (loop.carries, loop.rows) if isinstance(loop, Loop) else ()
                smaller = loop.with_body(body, *counts)
                fresh.attributes = {**fresh.attributes, "primitive": smaller}
                new[value] = fresh
                continue
        if any(operand in new for operand in value.operands):
            new[value] = replaced(value, new)
    if not new:
        return graph
    return Graph(graph.inputs, [new.get(output, output) for output in graph.outputs])
