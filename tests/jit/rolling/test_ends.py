"""Turns at the ends that lack operations are turns of the loop all the same, with the same bits."""

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
from numgrad.jit.rolling.rolling import rolled
from tests.cases import examples
from tests.jit.interpreter import by_numpy, fold_by_numpy, interpret

TURNS = 30

State = dict[str, Any]

# Lines of a step, each of which writes one carry: what nobody needs at the end is not recorded,
# and where a carry begins with numbers, the first turn takes those.
LINES: list[Callable[[State, Any, Any], None]] = [
    lambda s, a, row: s.update(y=(a["m"] @ s["y"] + row).tanh()),
    lambda s, a, row: s.update(y=s["y"] * 0.9 + 0.1 * s["v"]),
    lambda s, a, row: s.update(v=s["v"] * a["w"] + s["y"].sin()),
    lambda s, a, row: s.update(c=a["m"] @ s["c"] @ a["m"].T * 0.3 + ng.diag(a["w"] ** 2)),
    lambda s, a, row: s.update(v=s["v"] + s["c"] @ s["y"] * 0.1),
    lambda s, a, row: s.update(t=s["t"] + (s["y"] * s["v"]).sum()),
    lambda s, a, row: s.update(t=s["t"] * 0.5 + s["y"][0] * a["w"][1]),
    lambda s, a, row: s.update(y=s["y"] / (1.0 + s["t"] * s["t"])),
    lambda s, a, row: s["seen"].append(s["y"].sum() * a["w"][0]),
    lambda s, a, row: s["seen"].append((s["v"] * row).sum()),
    lambda s, a, row: s.update(y=ng.cat((s["y"][1:], s["v"][:1]))),
    lambda s, a, row: s.update(v=ng.where(s["y"] > 0.1, s["v"], s["y"] * a["w"])),
]


def _program(seed: int) -> Callable[..., Any]:
    drawn = random.Random(seed)
    lines = [drawn.choice(LINES) for _ in range(drawn.randint(3, 7))]
    needed = drawn.sample(["y", "v", "t"], drawn.randint(1, 2))
    constant = drawn.sample(["y", "v", "t"], drawn.randint(1, 3))

    def loss(w: Any, m: Any, rows: Any) -> Any:
        zeros = ng.zeros(3, dtype=ng.float64)
        s = {"c": ng.eye(3, dtype=ng.float64), "seen": []}
        s["y"] = zeros if "y" in constant else w * 0.5
        s["v"] = zeros if "v" in constant else m[0]
        s["t"] = 0.0 if "t" in constant else w[0]
        for row in rows.unbind(0):
            for line in lines:
                line(s, {"w": w, "m": m}, row)
        total = ng.tensor(0.0, dtype=ng.float64)
        for name in needed:
            total = total + (s[name] * s[name]).sum() if name != "t" else total + s["t"] * w[2]
        return total + ng.stack(s["seen"]).sum() if s["seen"] else total

    return loss


def _arguments(turns: int = TURNS) -> list[Any]:
    rng = np.random.default_rng(7)
    shapes = (3,), (3, 3), (turns, 3)
    return [ng.tensor(rng.uniform(-0.7, 0.7, shape)) for shape in shapes]


def _traced(function: Callable[..., Any], arguments: list[Any]) -> Graph:
    leaves, spec = flatten((tuple(arguments), {}))
    return trace_function(function, spec, leaves).graph


def _loops(graph: Graph) -> list[Loop]:
    calls = [value.attributes.get("primitive") for value in graph.values()]
    return [each for each in calls if isinstance(each, Loop)]


def _check_bits(first: Graph, second: Graph, arrays: list[Any]) -> None:
    validate(second)
    with np.errstate(all="ignore"):
        expected = interpret(first, arrays, by_numpy, fold_by_numpy)
        found = interpret(second, arrays, by_numpy, fold_by_numpy)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


def _in_direction(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a derivative along some of the arguments only, so that tangents come in later."""
    return lambda w, m, rows: ng.func.jvp(lambda m: loss(w, m, rows), (m,), (m * 0.5,))


@pytest.mark.parametrize("seed", range(examples(60)))
def test_programs_whose_ends_lack_operations(seed: int) -> None:
    loss = _program(seed)
    arguments = _arguments()
    arrays = [each.numpy() for each in arguments]
    argnums = random.Random(seed).choice([(0,), (1,), (0, 1), (0, 1, 2)])
    for function in (ng.func.value_and_grad(loss, argnums=argnums), _in_direction(loss)):
        graph = _traced(function, arguments)
        _check_bits(graph, rolled(graph), arrays)
        _check_bits(graph, prepared(graph), arrays)


def _filter(scan: Any) -> Callable[..., Any]:
    def loss(w: Any, m: Any, rows: Any) -> Any:
        def step(belief: Any, row: Any) -> tuple[Any, Any]:
            mean, covariance = m @ belief[0], m @ belief[1] @ m.T + ng.diag(w**2)
            variance = row @ covariance @ row + 1.0
            gain = covariance @ row / variance
            surprise = row[0] - row @ mean
            covariance = covariance - gain.unsqueeze(1) * (covariance @ row)
            return (mean + gain * surprise, covariance), surprise**2 / variance + variance.log()

        start = ng.zeros(3, dtype=ng.float64), ng.eye(3, dtype=ng.float64)
        return scan(step, start, rows)[1].sum()

    return loss


def _stepper(scan: Any) -> Callable[..., Any]:
    def loss(w: Any, m: Any, rows: Any) -> Any:
        def step(state: Any, row: Any) -> tuple[Any, Any]:
            first = w * state - state[1] * row
            second = w * (state + 0.1 * first) - state[0] * row
            return state + 0.05 * (first + second), None

        return (scan(step, m[0], rows)[0] ** 2).sum()

    return loss


def _cell(scan: Any) -> Callable[..., Any]:
    def loss(w: Any, m: Any, rows: Any) -> Any:
        def step(state: Any, row: Any) -> tuple[Any, Any]:
            gate = (m @ state + row).sigmoid()
            state = gate * state + (1 - gate) * (m @ row + w * state).tanh()
            return state, (state.sum() - row[0]) ** 2

        return scan(step, ng.zeros(3, dtype=ng.float64), rows)[1].mean()

    return loss


def _python_loop(f: Any, carry: Any, rows: Any) -> Any:
    ys = []
    for row in rows.unbind(0):
        carry, y = f(carry, row)
        ys.append(y)
    return carry, None if ys[0] is None else ng.stack(ys)


@pytest.mark.parametrize("program", [_filter, _stepper, _cell])
def test_all_turns_are_in_two_loops_as_of_a_scan(program: Callable[..., Any]) -> None:
    arguments = _arguments()
    graphs = [
        prepared(_traced(ng.func.value_and_grad(program(scan), argnums=(0, 1)), arguments))
        for scan in (ng.func.scan, _python_loop)
    ]
    lengths = [[each.length for each in _loops(graph)] for graph in graphs]
    assert lengths == [[TURNS, TURNS], [TURNS, TURNS]]
    sizes = [len(graph.values()) for graph in graphs]
    assert sizes[1] < 2 * sizes[0]


def test_no_row_of_the_loops_is_put_together_of_numbers_or_copied() -> None:
    """That takes the program apart, which else is one function, or takes as long as a loop does."""
    arguments = _arguments()
    arguments[2] = ng.tensor(np.random.default_rng(6).uniform(-0.7, 0.7, (80, 3)))
    gradient = ng.func.value_and_grad(_filter(_python_loop), argnums=(0, 1))
    graph = ng.jit(gradient).lower(*arguments).graph
    values = graph.values()
    assert [each.length for each in _loops(graph)] == [80, 80]
    assert not [v for v in values if v.operation == "array" and v.shape[:1] == (80,)]
    assert not [v for v in values if v.operation == "join" and v.dtype.kind == "f"]


def test_what_stands_in_for_what_is_not_there_leaves_no_nan() -> None:
    def loss(w: Any, m: Any, rows: Any) -> Any:
        y, v = w, w * 0.0
        for row in rows.unbind(0):
            y = (y * w + v).tanh() * 0.9
            v = (row * row).sqrt() * y.sin()  # nobody needs the last one
        return y.sum()

    arguments = _arguments()
    arguments[2][-1] = 0.0  # where a root's derivative is infinite
    arrays = [each.numpy() for each in arguments]
    graph = _traced(ng.func.grad(loss, argnums=(0, 2)), arguments)
    found = rolled(graph)
    assert [each.length for each in _loops(found)][-1] == TURNS
    _check_bits(graph, found, arrays)
    assert np.isfinite(interpret(found, arrays, by_numpy, fold_by_numpy)[0]).all()


def test_what_the_last_turn_alone_gives_stands_beside_rows_of_all_turns() -> None:
    def stacked(w: Any, m: Any, rows: Any) -> Any:
        y, seen = w, []
        for row in rows.unbind(0):
            total = (m @ y + row).sum()
            y = y * total.sin()
            seen.append(y.prod())
        return ng.stack([*seen, total])

    arguments = _arguments()
    graph = _traced(stacked, arguments)
    found = rolled(graph)
    assert [each.length for each in _loops(found)] == [TURNS]
    assert len(found.values()) < TURNS  # and no turn is left beside the loop
    _check_bits(graph, found, [each.numpy() for each in arguments])
