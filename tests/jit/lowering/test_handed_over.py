"""What a loop keeps for a later one is what is dear, and the bits stay what they were."""

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
from numgrad.jit.lowering.handed_over import with_less_kept
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.unneeded import needed_loops
from numgrad.jit.passes.simplify import simplify
from numgrad.jit.rolling.prepare import prepared
from numgrad.jit.rolling.rolling import rolled
from tests.cases import examples
from tests.jit.interpreter import by_numpy, fold_by_numpy, interpret

ROWS, WIDE = 40, 6

# One line of a body each: `y` and `v` are handed on, `w` and `m` are the same in all turns.
LINES: list[Callable[[Any, Any, Any, Any, Any], tuple[Any, Any]]] = [
    lambda y, v, w, m, x: (y * w + v, v),
    lambda y, v, w, m, x: ((y * x).tanh(), v * 0.5 + y),
    lambda y, v, w, m, x: (m @ y, v),
    lambda y, v, w, m, x: (y, (m @ (v * w)).sigmoid() + x),
    lambda y, v, w, m, x: (y / (1.0 + v * v), y.sin()),
    lambda y, v, w, m, x: (y + (y * v).sum() * 0.01, v - x[0] * y),
    lambda y, v, w, m, x: (ng.cat((y[1:], y[:1])), v * y.cumsum(0) * 0.1),
    lambda y, v, w, m, x: (ng.where(y > v, y, v * 0.9), v.exp() * 0.1),
    lambda y, v, w, m, x: ((m.T @ (m @ y)) * 0.1, v),
]


def _loss(seed: int, is_plain: bool) -> Callable[..., Any]:
    drawn = random.Random(seed)
    lines = [drawn.choice(LINES) for _ in range(drawn.randint(2, 6))]
    turns, skipped = drawn.randint(25, ROWS), drawn.randint(0, 2)
    gives = drawn.random() < 0.5

    def loss(w: Any, m: Any, xs: Any, y: Any) -> Any:
        def step(carry: Any, x: Any) -> tuple[Any, Any]:
            y, v = carry
            for line in lines:
                y, v = line(y, v, w, m, x)
            return (y, v), (y * v if gives else None)

        rows = xs[skipped : skipped + turns]
        if is_plain:
            carry, results = (y, y * 0.5), []
            for row in rows.unbind(0):
                carry, result = step(carry, row)
                results.append(result)
            found = ng.stack(results) if gives else None
        else:
            carry, found = ng.func.scan(step, (y, y * 0.5), rows)
        total = (carry[0] * carry[1]).sum()
        return total if found is None else total + (found * w).sum()

    return loss


def _arguments() -> list[Any]:
    rng = np.random.default_rng(5)
    shapes = (WIDE,), (WIDE, WIDE), (ROWS + 2, WIDE), (WIDE,)
    return [ng.tensor(rng.uniform(-0.6, 0.6, shape)) for shape in shapes]


def _traced(function: Callable[..., Any], arguments: list[Any]) -> Graph:
    leaves, spec = flatten((tuple(arguments), {}))
    return trace_function(function, spec, leaves).graph


def _loops(graph: Graph) -> list[Loop]:
    calls = [value.attributes.get("primitive") for value in graph.values()]
    return [each for each in calls if isinstance(each, Loop)]


def _kept_size(graph: Graph) -> int:
    """Return how many numbers the first loop stacks in a turn."""
    loop = _loops(graph)[0]
    return sum(int(np.prod(each.shape)) for each in loop.graph.outputs[loop.carries :])


@pytest.mark.parametrize("seed", range(examples(24)))
@pytest.mark.parametrize("is_plain", [True, False])
def test_bits_are_those_of_loops_that_keep_everything(seed: int, is_plain: bool) -> None:
    arguments = _arguments()
    arrays = [each.numpy() for each in arguments]
    function = ng.func.value_and_grad(_loss(seed, is_plain), argnums=(0, 1, 2, 3))
    graph = _traced(function, arguments)
    whole = needed_loops(simplify(rolled(graph)))
    found = needed_loops(simplify(with_less_kept(whole)))
    validate(found)
    with np.errstate(all="ignore"):
        expected = interpret(graph, arrays, by_numpy, fold_by_numpy)
        computed = interpret(found, arrays, by_numpy, fold_by_numpy)
    for one, other in zip(expected, computed, strict=True):
        np.testing.assert_array_equal(one, other)


def _stepper(scan: Any) -> Callable[..., Any]:
    """Return a gradient through steps of many cheap operations on two numbers."""

    def loss(rates: Any, start: Any) -> Any:
        def rate(state: Any) -> Any:
            a, b = state[0], state[1]
            return ng.stack([rates[0] * a - rates[1] * a * b, rates[2] * a * b - rates[3] * b])

        def step(state: Any, _: Any) -> tuple[Any, None]:
            k1 = rate(state)
            k2 = rate(state + 0.005 * k1)
            k3 = rate(state + 0.01 * k2)
            return state + 0.01 / 6 * (k1 + 4 * k2 + k3), None

        return (scan(step, start)[0] ** 2).sum()

    return ng.func.grad(loss)


def _plain(f: Any, carry: Any) -> Any:
    for _ in range(60):
        carry, _ = f(carry, None)
    return carry, None


def _scan(f: Any, carry: Any) -> Any:
    return ng.func.scan(f, carry, length=60)


def test_a_plain_for_keeps_no_more_than_a_few_carries_where_its_turns_are_cheap() -> None:
    arguments = [ng.ones(4, dtype=ng.float64), ng.ones(2, dtype=ng.float64)]
    graphs = [prepared(_traced(_stepper(scan), arguments)) for scan in (_scan, _plain)]
    assert _kept_size(graphs[0]) == 2
    assert _kept_size(graphs[1]) <= 6
    rows = [_loops(graph)[-1].rows for graph in graphs]
    assert rows == [1, 1]


@pytest.mark.parametrize("is_plain", [True, False])
def test_products_of_matrices_and_dear_functions_are_not_computed_twice(is_plain: bool) -> None:
    def loss(m: Any, y: Any) -> Any:
        def step(y: Any, _: Any) -> tuple[Any, None]:
            return (m @ y).tanh() + 0.1 * (m @ (y * y)).tanh(), None

        return (_plain if is_plain else _scan)(step, y)[0].sum()

    arguments = [ng.ones(32, 32, dtype=ng.float64), ng.ones(32, dtype=ng.float64)]
    forward, backward = _loops(prepared(_traced(ng.func.grad(loss), arguments)))
    operations = [value.operation for value in forward.graph.values()]
    assert operations.count("matmul") == operations.count("tanh") == 2
    operations = [value.operation for value in backward.graph.values()]
    assert operations.count("matmul") <= 4  # two for each gradient
    assert "tanh" not in operations


def test_opaque_calls_are_not_computed_twice() -> None:
    def loss(m: Any, y: Any) -> Any:
        def step(y: Any, _: Any) -> tuple[Any, None]:
            solved = (m + y).cumsum(0)[1]
            return y + 0.1 * solved * solved, None

        return _scan(step, y)[0].sum()

    arguments = [ng.eye(3, dtype=ng.float64) * 2.0, ng.ones(3, dtype=ng.float64)]
    loops = _loops(prepared(_traced(ng.func.grad(loss), arguments)))
    calls = [[v.operation for v in loop.graph.values()].count("call") for loop in loops]
    assert calls == [1, 1]  # the system, and that of the gradient


@pytest.mark.sampled(0.24)
@pytest.mark.parametrize("name", ["max", "min", "sort", "cummax", "topk"])
def test_calls_of_several_results_in_a_body(name: str) -> None:
    """What is needed of a call are results of it, not the call."""

    def loss(x: Any) -> Any:
        def turn(c: Any, _: Any) -> Any:
            given = (2,) if name == "topk" else (0,)
            found = getattr(c, name)(*given)[0]
            return c - 0.5 * (found.sin() * found).sum(), None

        return (ng.func.scan(turn, x, length=3)[0] ** 2).sum()

    gradient = ng.func.grad(loss)
    x = ng.tensor([1.0, 3.0, 2.0])
    np.testing.assert_allclose(ng.jit(gradient)(x).tolist(), gradient(x).tolist(), 1e-5)
