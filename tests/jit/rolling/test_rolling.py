"""What repeats itself in a trace becomes a loop that computes the same bits."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.jit.front.trace_function import trace_function
from numgrad.jit.ir.graph import Graph
from numgrad.jit.ir.validate import validate
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.rolling.prepare import prepared
from numgrad.jit.rolling.repetition import OPERATIONS
from numgrad.jit.rolling.rolling import rolled
from numgrad.jit.rolling.tokens import Tokens
from tests.cases import examples
from tests.jit.interpreter import by_numpy, fold_by_numpy, interpret

ROWS = 40

# One line of a body each: what is in `s` is handed on to the next turn.
LINES: list[Callable[[dict[str, Any], Any, int], None]] = [
    lambda s, a, k: s.update(y=ng.tanh(s["y"] * a["w"] + a["xs"][k])),
    lambda s, a, k: s.update(y=s["y"] + 0.1 * s["v"], v=s["v"] * 0.9 - s["y"].sin()),
    lambda s, a, k: s.update(y=a["m"] @ s["y"]),
    lambda s, a, k: s.update(y=ng.stack((s["y"][1], s["y"][2] * s["y"][0], s["y"][0]))),
    lambda s, a, k: s.update(y=ng.cat((s["y"][1:], s["y"][:1] * a["w"][2]))),
    lambda s, a, k: s.update(y=ng.where(s["y"] > 0.1, s["y"] * 0.5, s["v"])),
    lambda s, a, k: s.update(t=s["t"] + (s["y"] * s["y"]).sum()),
    lambda s, a, k: s.update(t=s["t"] * 0.5 + a["xs"][k, 1] - a["xs"][ROWS - 1 - k].sum()),
    lambda s, a, k: s.update(y=s["y"] * (0.1 * k) - 0.25),
    lambda s, a, k: s.update(v=s["y"], y=s["y"] - s["v"] * 0.3),
    lambda s, a, k: s.update(y=s["y"] - s["old"] * 0.2, old=s["before"], before=s["y"]),
    lambda s, a, k: s["seen"].append(s["y"] * 2.0),
    lambda s, a, k: s["seen"].append(s["v"].flip(0)),
    lambda s, a, k: s.update(y=s["y"].flip(0) / (1.0 + s["t"] * s["t"])),
    lambda s, a, k: s.update(y=s["y"] + (a["m"] * s["v"]).sum(0) * 0.1),
    lambda s, a, k: s.update(t=(a["m"].T @ s["y"])[k % 3] + s["t"]),
]


def _program(seed: int) -> Callable[..., Any]:
    drawn = random.Random(seed)
    lines = [LINES[drawn.randrange(len(LINES))] for _ in range(drawn.randint(2, 6))]
    lines.append(LINES[drawn.choice([0, 1, 3])])
    turns = drawn.randint(25, ROWS)

    def loss(w: Any, m: Any, xs: Any, y: Any) -> Any:
        given = {"w": w, "m": m, "xs": xs}
        s = {"y": y, "v": y * 0.5, "t": w[0], "old": y, "before": w, "seen": []}
        for k in range(turns):
            for line in lines:
                line(s, given, k)
        total = s["t"] + (s["y"] * s["v"]).sum()
        if s["seen"]:
            total = total + (ng.stack(s["seen"]) * w).sum()
        return total

    return loss


def _arguments() -> list[Any]:
    rng = np.random.default_rng(3)
    shapes = (3,), (3, 3), (ROWS, 3), (3,)
    return [ng.tensor(rng.uniform(-0.7, 0.7, shape)) for shape in shapes]


def _traced(function: Callable[..., Any], arguments: list[Any]) -> Graph:
    leaves, spec = flatten((tuple(arguments), {}))
    trace = trace_function(function, spec, leaves)
    return trace.graph


def _operations(graph: Graph) -> int:
    views = ("view", "reshape", "constant", "input")
    return sum(value.operation not in views for value in graph.values())


def _loops(graph: Graph) -> list[Loop]:
    calls = [value.attributes.get("primitive") for value in graph.values()]
    return [each for each in calls if isinstance(each, Loop)]


def _same(first: Graph, second: Graph, arrays: list[Any]) -> None:
    with np.errstate(all="ignore"):
        expected = interpret(first, arrays, by_numpy, fold_by_numpy)
        found = interpret(second, arrays, by_numpy, fold_by_numpy)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(examples(60)))
def test_a_python_loop_becomes_a_loop_of_the_same_bits(seed: int) -> None:
    arguments = _arguments()
    arrays = [each.numpy() for each in arguments]
    graph = _traced(_program(seed), arguments)
    found = rolled(graph)
    validate(found)
    _same(graph, found, arrays)
    assert _loops(found) or _operations(graph) < OPERATIONS


@pytest.mark.parametrize("seed", range(examples(30)))
def test_so_do_both_halves_of_its_gradient(seed: int) -> None:
    arguments = _arguments()
    arrays = [each.numpy() for each in arguments]
    graph = _traced(ng.func.value_and_grad(_program(seed), argnums=(0, 1, 2, 3)), arguments)
    found = rolled(graph)
    validate(found)
    _same(graph, found, arrays)
    smaller = prepared(graph)
    validate(smaller)
    _same(graph, smaller, arrays)
    assert _loops(found) or _operations(graph) < OPERATIONS


def test_the_graph_of_a_loop_does_not_grow_with_its_turns() -> None:
    def decay(turns: int) -> Any:
        def function(x: Any) -> Any:
            for _ in range(turns):
                x = x - 0.01 * ng.sin(x) * x.sum()
            return (x * x).sum()

        return ng.func.grad(function)

    x = ng.tensor([0.1, 0.2, 0.3])
    sizes = [len(prepared(_traced(decay(turns), [x])).values()) for turns in (100, 400)]
    assert sizes[0] == sizes[1] < 100


def test_turns_are_told_from_parts_of_them_that_are_alike() -> None:
    def iterated(w: Any, y: Any) -> Any:
        for _ in range(40):
            for parts in (1, 2, 2):
                for _ in range(parts):
                    y = y.sin() * w + y
                y = y * w + w
        return y

    arguments = [_arguments()[k] for k in (0, 3)]
    graph = _traced(iterated, arguments)
    found = rolled(graph)
    assert [loop.length for loop in _loops(found)] == [40]
    assert _operations(found) < OPERATIONS
    _same(graph, found, [each.numpy() for each in arguments])


def test_loops_within_loops_are_rolled_up_too() -> None:
    def function(x: Any, rows: Any) -> Any:
        for i in range(20):
            total = x * 0.0
            for j in range(60):
                total = total + ng.cos(x * rows[j]) * rows[i]
            x = x + 0.1 * total
        return x.sum()

    x, rows = ng.tensor([0.1, 0.2]), ng.tensor(np.linspace(0, 1, 120).reshape(60, 2)).float()
    graph = _traced(function, [x, rows])
    found = rolled(graph)
    _same(graph, found, [x.numpy(), rows.numpy()])
    (outer,) = _loops(found)
    (inner,) = _loops(outer.graph)
    assert (outer.length, inner.length) == (20, 60)


def test_loops_are_alike_only_if_their_operations_are_told_the_same() -> None:
    def function(x: Any, rows: Any) -> Any:
        for dim in (0, 1, 0):
            for k in range(60):
                x = x.cumsum(dim) * 0.5 - rows[k] * x.sum() * 0.1
            x = ng.cos(x)
        return x

    graph = rolled(_traced(function, [ng.ones(2, 2), ng.ones(60, 2)]))
    loops = [v for v in graph.values() if isinstance(v.attributes.get("primitive"), Loop)]
    tokens = Tokens()
    first, second, third = (tokens.operation(each).token for each in loops)
    assert first != second
    assert first == third


def test_results_that_are_written_one_by_one_are_written_at_once() -> None:
    def function(x: Any) -> Any:
        out = ng.zeros(50, 2, dtype=ng.float64)
        for k in range(50):
            x = x + 0.1 * ng.sin(x)
            out[k] = x * x
        return (out * out).sum() + out[7, 1]

    x = ng.tensor([0.1, 0.2], dtype=ng.float64)
    for graph in (_traced(function, [x]), _traced(ng.func.grad(function), [x])):
        found = rolled(graph)
        validate(found)
        _same(graph, found, [x.numpy()])
        operations = [value.operation for value in prepared(graph).values()]
        assert operations.count("update") < 6
        assert 1 <= len(_loops(found)) <= 2


def test_so_does_what_goes_through_large_arrays() -> None:
    def function(x: Any) -> Any:
        for _ in range(60):
            x = x * 3.7 * (1.0 - x) + 0.01
        return x

    graph = _traced(function, [ng.ones(20_000)])
    assert rolled(graph) is graph
    assert rolled(_traced(function, [ng.ones(20)])) is not graph


def test_few_operations_stay_as_they_are() -> None:
    def function(x: Any) -> Any:
        for _ in range(5):
            x = ng.sin(x) * x
        return x

    graph = _traced(function, [ng.tensor([0.1, 0.2])])
    assert rolled(graph) is graph
