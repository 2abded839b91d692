"""Loops over unit vectors in a graph: what Jacobians and Hessians are made of.

A linear function is recorded once, for a vector that is not known yet. What depends on the vector
becomes a graph of its own (`numgrad.jit.lowering.bodies`), and a loop
(`numgrad.jit.emit.compiled_loops`) calls it with one unit vector after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.bodies import without_known
from numgrad.jit.passes.simplify import simplify

__all__ = ["Rows"]


class Rows:
    """The loop, as what a graph calls (see `numgrad.jit.ir.graph`, ``call``).

    Its operands are what was captured; its results are stacked along a first dim.

    Attributes
    ----------
    graph : Graph
        What is done with one vector, the first of its inputs.
    """

    __slots__ = ("graph",)

    name = "rows"
    own = ()  # inputs of the body that may be written over
    # As a `Loop`: it takes nothing of turns, and its first operand follows from which turn it is.
    carries = rows = 0
    fixed = 1
    counted = False

    def __init__(self, graph: Graph) -> None:
        self.graph = simplify(graph)

    @property
    def count(self) -> int:
        """How many vectors there are."""
        return prod(self.graph.inputs[0].shape)

    def metas(self) -> list[tuple[tuple[int, ...], Any]]:
        """Return shape and dtype of each result."""
        return [((self.count, *output.shape), output.dtype) for output in self.graph.outputs]

    def with_body(self, graph: Graph) -> Rows:
        """Return a loop over the same vectors with another body."""
        return Rows(graph)

    def specialised(self, operands: Sequence[Value]) -> tuple[Rows, list[Value]] | None:
        """Return the loop without operands that are numbers, repeated, or there twice.

        None if there are no such.
        """
        found = without_known(self.graph, 1, operands)
        return None if found is None else (Rows(found[0]), found[1])

    def __repr__(self) -> str:
        outputs = ", ".join(output.type for output in self.graph.outputs)
        return f"rows({self.graph.inputs[0].type} -> {outputs})"
