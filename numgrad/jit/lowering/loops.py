"""Loops in a graph: a body that is done again and again, and what it hands on.

A loop is what a graph calls (see `numgrad.jit.ir.graph`, ``call``), like a primitive. Its operands
are what the carries begin with, then what it takes one row of in each turn, then what is the same
in all turns. Its results are the carries as the last turn left them, and then what each turn gave,
stacked along a first dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.bodies import without_known
from numgrad.jit.lowering.unneeded import needed_loops
from numgrad.jit.passes.simplify import simplify

__all__ = ["Loop"]


class Loop:
    """A loop of a known number of turns.

    Attributes
    ----------
    graph : Graph
        The body. Its inputs are the carries, a row of each of the `rows`, and what is the same in
        all turns; its outputs the carries of the next turn, and then what is stacked.
    carries, rows : int
        How many there are.
    length : int
        The number of turns, at least 1.
    reverse : bool
        Whether rows are taken, and results stacked, from the last to the first.
    """

    __slots__ = ("carries", "graph", "length", "reverse", "rows")

    name = "loop"

    def __init__(self, graph: Graph, carries: int, rows: int, length: int, reverse: bool) -> None:
        self.graph = needed_loops(simplify(graph))
        self.carries, self.rows = carries, rows
        self.length, self.reverse = length, reverse

    @property
    def fixed(self) -> int:
        """Which of the body's inputs is the first that is the same in all turns."""
        return self.carries + self.rows

    def metas(self) -> list[tuple[tuple[int, ...], Any]]:
        """Return shape and dtype of each result."""
        found: list[tuple[tuple[int, ...], Any]] = []
        for position, output in enumerate(self.graph.outputs):
            lead = () if position < self.carries else (self.length,)
            found.append(((*lead, *output.shape), output.dtype))
        return found

    def with_body(self, graph: Graph, carries: int, rows: int) -> Loop:
        """Return a loop of as many turns with another body."""
        return Loop(graph, carries, rows, self.length, self.reverse)

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
        turns = f"{self.length} turns{', from the last' if self.reverse else ''}"
        return f"loop({turns}, {self.carries} carries, {self.rows} rows)"
