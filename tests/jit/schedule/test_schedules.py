"""What nests a graph becomes, how it was simplified before: the numbers stay those of the graph.

The source of its program is run as plain Python, so that many graphs can be tried: nothing of what
is said here is about machine code.
"""

from __future__ import annotations

from itertools import combinations, permutations
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.ir.validate import validate
from numgrad.jit.passes.simplify import simplify
from tests.jit.graphs import gather, op, reduce, scatter, view
from tests.jit.graphs import given as given_value
from tests.jit.interpreter import by_numpy, fold_by_numpy, interpret
from tests.jit.random_graphs import random_arrays, random_graph
from tests.jit.run_source import run_source

MAX = settings().max_examples  # 12, 100 with --cases=all, 1000 with --cases=tenfold
LARGEST = 3000  # elements of a value
TOGETHER = 6  # graphs of an example: to draw one takes Hypothesis as long as to run it


def tolerance_of(graph: Graph) -> float:
    single = any(value.dtype in (np.float32, np.complex64) for value in graph.values())
    return 1e-3 if single else 1e-9


def rounded_otherwise(operation: Any, random: Random) -> Any:
    """Return how to compute values with errors as another order of additions could give."""

    def compute(value: Value, operands: list[np.ndarray]) -> np.ndarray:
        result: np.ndarray = operation(value, operands)
        if value.dtype.kind not in "fc" or value.attributes.get("kind", "sum") in ("max", "min"):
            return result
        error = random.choice([-8, 0, 8]) * np.finfo(value.dtype).eps
        return np.asarray(result * value.dtype.type(1 + error))

    return compute


def is_chaotic(graph: Graph, arrays: list[np.ndarray], wanted: list[np.ndarray]) -> bool:
    """Whether roundings decide the result, as in the sine of a large product."""
    tolerance = tolerance_of(graph) / 8
    for seed in range(3):
        random = Random(seed)
        elementwise = rounded_otherwise(by_numpy, random)
        fold = rounded_otherwise(fold_by_numpy, random)
        for a, b in zip(interpret(graph, arrays, elementwise, fold), wanted, strict=True):
            if not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
                return True
    return False


def check(graph: Graph, arrays: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    tolerance = tolerance_of(graph)
    for found, expected in zip(run_source(graph, arrays), wanted, strict=True):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@settings(max_examples=MAX)
@given(st.integers(0, 10**9))
def test_programs_of_random_graphs_give_what_the_graphs_mean(seed: int) -> None:
    for number in range(seed, seed + TOGETHER):
        graph = random_graph(Random(number), largest=400)
        if max(prod(value.shape) for value in graph.values()) > LARGEST:
            continue
        with np.errstate(all="ignore"):
            arrays = random_arrays(graph, number)
        validate(graph)
        wanted = interpret(graph, arrays)
        if is_chaotic(graph, arrays, wanted):
            continue
        note(str(graph))
        check(graph, arrays, wanted)
        simple = simplify(graph)
        note(str(simple))
        check(simple, arrays, wanted)


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_large_steps_and_starts_along_several_dims_are_told_apart(order: tuple[int, ...]) -> None:
    """They are numbers that the program is given: each has a name of its own."""
    x = given_value(16, 18, 20)
    starts, steps, counts = (3, 5, 4), (3, 4, 5), (4, 3, 3)
    shape = tuple(counts[order.index(target)] for target in range(3))
    maps = [(starts[dim], ((order[dim], steps[dim]),)) for dim in range(3)]
    windows = [(starts[dim], ((order[dim], 1), (order[dim] + 3, steps[dim]))) for dim in range(3)]
    graph = Graph([x], [op("neg", view(x, shape, *maps)), view(x, (*shape, 2, 2, 2), *windows)])
    arrays = [np.random.default_rng(0).normal(size=x.shape)]
    check(graph, arrays, interpret(graph, arrays))


@pytest.mark.parametrize("steps", list(permutations((3, 4, 5, 7)))[::5], ids=str)
def test_large_steps_of_positions_are_told_apart(steps: tuple[int, ...]) -> None:
    """Along each dim an element of the part goes one step, and a position another one."""
    x, at = given_value(40, 50), [given_value(3, 4, dtype=np.int64) for _ in range(2)]
    down, right, first, second = steps
    maps = [(3, ((0, down), (2, first))), (4, ((1, right), (3, second)))]
    part = given_value(3, 4)
    read = gather(x, (3, 4), maps, *at)
    graph = Graph([x, part, *at], [read, scatter(x, part, maps, *at, adds=True)])
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=each.shape) for each in (x, part)]
    arrays += [rng.integers(0, 3, (3, 4)) for _ in at]
    check(graph, arrays, interpret(graph, arrays))


@pytest.mark.parametrize("order", list(permutations(range(4)))[1::3], ids=str)
def test_sums_go_through_permuted_dims_whatever_they_keep(order: tuple[int, ...]) -> None:
    """Dims that follow each other in memory may be one loop, those that do not may not."""
    shape = (2, 3, 2, 4)
    x = given_value(*shape)
    turned = tuple(shape[dim] for dim in order)
    permuted = view(x, turned, *[(0, ((order.index(dim), 1),)) for dim in range(4)])
    arrays = [np.random.default_rng(0).normal(size=shape)]
    for count in range(1, 5):
        for dims in combinations(range(4), count):
            graph = Graph([x], [reduce("sum", op("exp", permuted), *dims)])
            check(graph, arrays, interpret(graph, arrays))
