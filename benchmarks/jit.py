"""Compiled functions: what the stages before Numba cost, and what calls do.

`peers.py` puts such calls beside hand-written Numba and other libraries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.passes.simplify import simplify

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


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


class Call:
    """Value and gradient of Rosenbrock's function, compiled, by the number of elements."""

    params = (4, 1_000, 100_000)
    param_names = ("elements",)

    def setup(self, elements: int) -> None:
        self.x = np.linspace(-1, 1, elements)
        self.function = ng.jit(ng.func.value_and_grad(rosenbrock))
        for _ in range(200):  # from then on, small sizes are compiled in
            self.function(self.x)

    def time_value_and_grad(self, elements: int) -> None:
        self.function(self.x)


class ShortRows:
    """Reductions of few elements to each of many results, compiled, by how many there are of each.

    Distances between all points of a set, and points divided by their norms.
    """

    params = (2, 3, 16, 64)
    param_names = ("elements",)

    def setup(self, elements: int) -> None:
        random = np.random.default_rng(0)
        self.points = ng.from_numpy(random.standard_normal((300, elements)))
        self.many = ng.from_numpy(random.standard_normal((60_000, elements)))
        self.distances = ng.jit(lambda x: (-((x[:, None] - x[None]) ** 2).sum(-1)).exp())
        self.normalised = ng.jit(lambda x: x / (x * x).sum(-1, keepdim=True).sqrt())
        self.distances(self.points)
        self.normalised(self.many)

    def time_distances(self, elements: int) -> None:
        self.distances(self.points)

    def time_normalised(self, elements: int) -> None:
        self.normalised(self.many)


class Trace:
    """Tracing for one more size, of which the code is there."""

    def setup(self) -> None:
        self.function = ng.jit(ng.func.value_and_grad(rosenbrock))
        self.size = 10
        self.function(np.ones(self.size))

    def time_another_size(self) -> None:
        self.size += 1
        self.function(np.ones(self.size))
