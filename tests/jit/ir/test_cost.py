"""Costs are counted by shape and operation."""

from __future__ import annotations

from numgrad.jit.ir.cost import cost
from numgrad.jit.ir.graph import Graph, Value
from tests.jit.small_graphs import apply, constant, expand, inputs, reduce


def test_a_sum_of_squares() -> None:
    (x,) = inputs(("float32", (10, 10)))
    found = cost(Graph([x], [reduce("sum", apply("mul", x, x), 0, 1)]))
    assert found.flops == 200
    assert found.read == 400
    assert found.written == 4
    assert found.passes == 2
    assert found.traffic == 400 + 400 + 400 + 4


def test_views_and_constants_are_free() -> None:
    found = cost(Graph([], [expand(constant(1.0), (10,))]))
    assert (found.flops, found.passes, found.written) == (0, 0, 80)


def test_a_matrix_product() -> None:
    a, b = inputs(("float64", (3, 4)), ("float64", (4, 5)))
    assert cost(Graph([a, b], [Value("matmul", [a, b], (3, 5), a.dtype)])).flops == 2 * 3 * 4 * 5


def test_the_passes_of_a_schedule_are_shown() -> None:
    (x,) = inputs(("float64", (1000,)))
    graph = Graph([x], [apply("neg", apply("neg", x))])
    assert "1 passes (2 without fusion)" in str(cost(graph, fused=1))
