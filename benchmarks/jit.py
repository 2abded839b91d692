"""Compiling a function: what the stages before Numba cost."""

from __future__ import annotations

import numpy as np

from numgrad.jit.graph import Graph, Value
from numgrad.jit.simplify import simplify

OPERATIONS = 100


def graph_of(operations: int) -> Graph:
    """Return a graph in which each operation uses the one before and an earlier one."""
    dtype = np.dtype("float64")
    values = [Value("input", (), (1000,), dtype, position=position) for position in range(2)]
    inputs = values[:]
    two = Value("constant", (), (), dtype, value=2.0)
    for k in range(operations):
        name = ("add", "mul", "exp", "sub", "neg", "true_divide")[k % 6]
        other = two if k % 5 == 0 else values[k // 2]
        operands = [values[-1], other] if name not in ("exp", "neg") else [values[-1]]
        values.append(Value(name, operands, (1000,), dtype))
    return Graph(inputs, values[-1:])


class Simplify:
    """A graph of 100 operations."""

    def setup(self) -> None:
        self.graph = graph_of(OPERATIONS)

    def time_simplify(self) -> None:
        simplify(self.graph)
