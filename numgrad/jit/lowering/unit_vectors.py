"""Loops over unit vectors in a graph: what Jacobians and Hessians are made of.

A linear function is recorded once, for a vector that is not known yet. What depends on the vector
becomes a graph of its own, and a loop (`numgrad.jit.emit.unit_vector_loop`) calls it with one unit
vector after the other. What does not depend on it is computed before, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from numgrad.jit.ir.constructors import broadcast
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.passes.simplify import simplify

__all__ = ["Rows", "cut_out"]


def cut_out(vector: Value, results: Sequence[Value]) -> tuple[Graph, list[Value]]:
    """Return the graph of what depends on `vector`, and the other values that it takes.

    Returns
    -------
    graph : Graph
        Its inputs are the vector, and then those values.
    captured : list of Value
    """
    new: dict[Value, Value] = {}
    captured: list[Value] = []
    inputs: list[Value] = []
    depends = {vector}

    def enter(value: Value) -> Value:
        found = Value("input", (), value.shape, value.dtype, position=len(inputs))
        inputs.append(found)
        new[value] = found
        return found

    enter(vector)
    order = Graph([], results).values()
    uniform: set[Value] = set()  # numbers, repeated: what a loop has of its own
    for value in order:
        if any(operand in depends for operand in value.operands):
            depends.add(value)
        elif value.operation == "constant" or (
            value.operation in ("view", "reshape") and value.operands[0] in uniform
        ):
            uniform.add(value)
    for value in order:
        if value is vector:
            continue
        if value in depends:
            for operand in value.operands:
                if operand not in new and operand not in uniform:
                    captured.append(operand)
                    enter(operand)
            operands = [new.get(operand, operand) for operand in value.operands]
            new[value] = Value(
                value.operation,
                operands,
                value.shape,
                value.dtype,
                value.origin,
                **value.attributes,
            )
    for value in results:
        if value not in new:
            captured.append(value)
            enter(value)
    return Graph(inputs, [new[value] for value in results]), captured


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

    def __init__(self, graph: Graph) -> None:
        self.graph = simplify(graph)

    @property
    def count(self) -> int:
        """How many vectors there are."""
        return prod(self.graph.inputs[0].shape)

    def specialised(self, operands: Sequence[Value]) -> tuple[Rows, list[Value]] | None:
        """Return the loop without operands that are numbers, repeated, or there twice.

        None if there are no such. Only what the graph around it is simplified to shows them.
        """
        vector, *inputs = self.graph.inputs
        new: dict[Value, Value] = {}
        kept: dict[Value, Value] = {}
        for given, operand in zip(inputs, operands, strict=True):
            base = operand.operands[0] if operand.operation == "view" else operand
            if base.operation == "constant":
                new[given] = broadcast(base, given.shape)
            elif operand in kept:
                new[given] = kept[operand]
            else:
                position = len(kept) + 1
                entered = Value("input", (), given.shape, given.dtype, position=position)
                new[given] = kept[operand] = entered
        if len(kept) == len(operands):
            return None
        for value in self.graph.values():
            if value is vector or value in new:
                new.setdefault(value, value)
                continue
            new[value] = Value(
                value.operation,
                [new[operand] for operand in value.operands],
                value.shape,
                value.dtype,
                value.origin,
                **value.attributes,
            )
        outputs = [new[output] for output in self.graph.outputs]
        return Rows(Graph([vector, *kept.values()], outputs)), list(kept)

    def __repr__(self) -> str:
        outputs = ", ".join(output.type for output in self.graph.outputs)
        return f"rows({self.graph.inputs[0].type} -> {outputs})"
