"""Programs give what their graphs mean."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import numgrad.runtime.threads as threads
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.run.program import build
from tests.cases import examples
from tests.jit import graphs as g
from tests.jit.interpreter import interpret
from tests.jit.random_graphs import random_arrays, random_graph


def check(graph: Graph, *arrays: np.ndarray, tolerance: float = 1e-12) -> list[np.ndarray]:
    results = build(graph)(arrays)
    for result, wanted in zip(results, interpret(graph, list(arrays)), strict=True):
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        assert result.flags.c_contiguous
        np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)
    return results


def numbers(*shape: int, dtype: type = np.float64) -> np.ndarray:
    return np.asarray(np.random.default_rng(7).normal(size=shape)).astype(dtype)


def softmax(x: Value) -> Value:
    largest = g.keep(g.reduce("max", x, 1), 1)
    powers = g.op("exp", g.op("sub", x, largest))
    return g.op("true_divide", powers, g.keep(g.reduce("sum", powers, 1), 1))


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**9))
def test_random_graphs(seed: int) -> None:
    graph = random_graph(Random(seed))
    single = any(value.dtype in (np.float32, np.complex64) for value in graph.values())
    with np.errstate(all="ignore"):
        arrays = random_arrays(graph, seed)
    check(graph, *arrays, tolerance=1e-3 if single else 1e-9)


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("shape", [(50, 33), (3, 2100), (4, 0), (0, 4), (1, 5), (5, 1)])
def test_softmax_takes_one_nest(shape: tuple[int, int]) -> None:
    x = g.given(*shape)
    if shape[1] == 0:
        return
    graph = Graph([x], [softmax(x)])
    check(graph, numbers(*shape))
    if min(shape) > 1:
        assert build(graph).source.count("for item in") == 1


def length_of_rows(x: Value) -> list[Value]:
    return [g.op("sqrt", g.reduce("sum", g.op("mul", x, x), 1))]


def centred_rows(x: Value) -> list[Value]:
    mean = g.op("mul", g.reduce("sum", x, 1), 0.25)
    return [mean, g.op("sub", x, g.keep(mean, 1))]


def logarithms_of_sums(x: Value) -> list[Value]:
    largest = g.reduce("max", x, 1)
    powers = g.op("exp", g.op("sub", x, g.keep(largest, 1)))
    return [g.op("add", g.op("log", g.reduce("sum", powers, 1)), largest)]


@pytest.mark.parametrize("make", [length_of_rows, centred_rows, logarithms_of_sums])
def test_what_is_made_of_the_sum_of_a_row_takes_the_nest_of_the_row(make: Any) -> None:
    x = g.given(30, 7)
    graph = Graph([x], make(x))
    check(graph, numbers(30, 7))
    assert build(graph).source.count("for item in") == 1


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 300, 7), (700, 2, 3), (3, 1, 1500), (0, 2, 3)])
def test_sums_over_any_dims(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    x = g.given(*shape)
    check(Graph([x], [g.reduce("sum", g.op("mul", x, x), *dims)]), numbers(*shape))


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
def test_nan_spreads(kind: str, dims: tuple[int, ...]) -> None:
    x = g.given(5, 40)
    array = numbers(5, 40)
    array[2, 30] = np.nan
    check(Graph([x], [g.reduce(kind, x, *dims)]), array)


def test_a_loss_and_its_gradient_take_one_pass() -> None:
    x, row = g.given(40, 6), g.given(6)
    product = g.op("mul", g.op("sin", x), row)
    outputs = [g.reduce("sum", product), g.reduce("sum", product, 0), g.op("mul", product, 2.0)]
    graph = Graph([x, row], outputs)
    check(graph, numbers(40, 6), numbers(6))
    assert build(graph).source.count("for item in") == 1


def test_what_is_dear_is_computed_once_for_several_nests() -> None:
    x = g.given(30)
    dear = g.op("exp", x)
    total = g.reduce("sum", dear)
    graph = Graph([x], [g.op("true_divide", dear, total), g.part(dear, 1, 30)])
    check(graph, numbers(30))
    assert build(graph).source.count("scalar.exp") == 1


def test_sines_of_computed_and_far_angles() -> None:
    x = g.given(3000)
    angle = g.op("mul", x, 1e6)
    waves = g.op("add", g.op("sin", g.op("cos", angle)), g.op("tan", x))
    check(Graph([x], [waves, g.op("sin", angle)]), numbers(3000), tolerance=1e-9)


def test_matrix_products_of_views() -> None:
    a, b = g.given(4, 5), g.given(5, 3)
    product = Value("matmul", (a, b), (4, 3), g.F64)
    back = Value("matmul", (g.transpose(a), g.op("exp", product)), (5, 3), g.F64)
    check(Graph([a, b], [back, product]), numbers(4, 5), numbers(5, 3))


class Primitive:
    name = "split"

    def forward(self, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return array[::2] * 3, array


def test_calls_of_primitives() -> None:
    x = g.given(6)
    called = Value("call", (g.op("add", x, 1.0),), (), g.F64, primitive=Primitive())
    first = Value("item", (called,), (3,), g.F64, position=0)
    second = Value("item", (called,), (6,), g.F64, position=1)
    check(Graph([x], [g.op("exp", first), second]), numbers(6))


def test_captured_arrays_are_read_anew() -> None:
    held = numbers(4, 4).T
    captured = Value("array", (), (4, 4), g.F64, array=held, made=False)
    x = g.given(4, 4)
    graph = Graph([x], [g.op("mul", x, captured)])
    program, array = build(graph), numbers(4, 4)
    program([array])
    held[1, 2] = 5.0
    np.testing.assert_array_equal(program([array])[0], array * held)


def test_an_input_comes_back_as_it_is_and_outputs_are_separate() -> None:
    x = g.given(3)
    doubled = g.op("add", x, x)
    array = numbers(3)
    same, first, second = build(Graph([x], [x, doubled, doubled]))([array])
    assert same is array
    assert not np.shares_memory(first, second)


def test_an_update_of_what_nobody_else_needs_copies_nothing() -> None:
    zeros = g.view(g.number(0.0), (9,))
    x = g.given(4)
    graph = Graph([x], [g.update(g.update(zeros, x, 1, 2), x, 8, -1)])
    check(graph, numbers(4))
    assert build(graph).source.count("# update") == 3


def test_bits_do_not_depend_on_threads() -> None:
    x = g.given(1100, 700)
    y = g.op("exp", x)
    outputs = [g.reduce("sum", y), g.reduce("sum", y, 0), g.reduce("sum", y, 1), y]
    program, array = build(Graph([x], outputs)), numbers(1100, 700)
    before = threads.get_num_threads()
    results = []
    try:
        for count in (1, 2, 5):
            threads.set_num_threads(count)
            results.append([result.tobytes() for result in program([array])])
    finally:
        threads.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_float32_sums_are_accurate() -> None:
    x = g.given(3_000_000, dtype=np.float32)
    array = np.full(3_000_000, 0.1, np.float32)
    (total,) = build(Graph([x], [g.reduce("sum", x)]))([array])
    assert abs(float(total) - float(array.astype(np.float64).sum())) < 0.1


def test_integer_constants_are_arguments() -> None:
    x = g.given(5, dtype=np.int64)
    check(Graph([x], [g.op("mul", x, 17), g.op("add", x, -(2**62))]), np.arange(5))
