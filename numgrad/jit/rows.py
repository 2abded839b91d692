"""A loop over the unit vectors of a space, in a graph: what Jacobians and Hessians are made of.

A linear function is recorded once, for a vector that is not known yet. What depends on the vector
becomes a graph of its own, compiled, and a compiled loop calls it with one unit vector after the
other. What does not depend on it is computed before, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numba import njit

from numgrad.jit.graph import Graph, Value
from numgrad.jit.program import build
from numgrad.jit.simplify import simplify
from numgrad.kernels.threads import parallel_for

__all__ = ["Rows", "cut_out"]

Array = np.ndarray[Any, Any]

GRAIN = 1 << 15  # elements of the results that are worth a thread of their own


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
    for value in order:
        if any(operand in depends for operand in value.operands):
            depends.add(value)
    for value in order:
        if value is vector:
            continue
        if value in depends:
            for operand in value.operands:
                if operand not in new and operand.operation != "constant":
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
    """The loop, as what a graph calls: see `numgrad.jit.graph`, ``call``."""

    name = "rows"

    def __init__(self, graph: Graph) -> None:
        self.graph = simplify(graph)

    def __repr__(self) -> str:
        outputs = ", ".join(output.type for output in self.graph.outputs)
        return f"rows({self.graph.inputs[0].type} -> {outputs})"

    @cached_property
    def _loop(self) -> Any:
        """The compiled loop over some of the vectors."""
        count = len(self.graph.outputs)
        results = [f"out{k}" for k in range(count)]
        captured = [f"x{k}" for k in range(1, len(self.graph.inputs))]
        lines = [
            f"def loop({', '.join(['first', 'last', 'vector', *captured, *results])}):",
            "    flat = vector.reshape(-1)",
            "    for k in range(first, last):",
            "        flat[k] = 1",
            f"        found = row({', '.join(['vector', *captured])})",
            *(f"        out{k}[k] = found[{k}]" for k in range(count)),
            "        flat[k] = 0",
        ]
        namespace: dict[str, Any] = {"row": build(self.graph).dispatcher}
        exec("\n".join(lines), namespace)
        return njit(nogil=True, error_model="numpy")(namespace["loop"])

    def forward(self, *captured: Array) -> tuple[Array, ...]:
        """Return the results of all vectors, stacked along a first dim."""
        vector = self.graph.inputs[0]
        count = prod(vector.shape)
        outputs = self.graph.outputs
        results = tuple([np.empty((count, *output.shape), output.dtype) for output in outputs])
        given = [np.ascontiguousarray(array).reshape(array.shape) for array in captured]

        def task(first: int, last: int) -> None:
            work = np.zeros(vector.shape, vector.dtype)
            self._loop(first, last, work, *given, *results)

        each = sum(prod(output.shape) for output in outputs) + prod(vector.shape)
        parallel_for(task, count, max(1, GRAIN // max(1, each)))
        return results
