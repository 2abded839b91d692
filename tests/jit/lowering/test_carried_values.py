"""What one turn computes for the next is computed once, and the bits stay what they were."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.jit.front.trace_function import trace_function
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.ir.validate import validate
from numgrad.jit.lowering.carried_values import with_carried_values
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.unneeded import needed_loops
from numgrad.jit.passes.simplify import simplify
from tests.cases import examples
from tests.jit.interpreter import by_numpy, fold_by_numpy, interpret

# What is asked of a carry `c`, in every turn of what is handed on as well.
PARTS: list[Callable[[Any, Any], Any]] = [
    lambda c, w: c.sin(),
    lambda c, w: (c * w).cos() + c,
    lambda c, w: (c.exp() / (1 + c * c)).sum() * w,
    lambda c, w: ng.stack([c[1].tanh(), c[0].tanh() * w[0]]),
    lambda c, w: (w + c).sigmoid()[0] - c,
    lambda c, w: (c - w).sin().cos(),
]


def _step(seed: int) -> Callable[..., Any]:
    drawn = random.Random(seed)
    first, second = drawn.choice(PARTS), drawn.choice(PARTS)
    factor = drawn.choice([0.5, -0.25])
    asks_for_both = drawn.random() < 0.5

    def step(c: Any, v: Any, w: Any, x: Any) -> tuple[Any, Any, Any]:
        if asks_for_both:
            v = v - 0.5 * second(c, w)
        after = c + factor * first(c, w) * x
        given = first(after, w)
        return after, 0.5 * v - (second(after, w) if asks_for_both else given), given

    return step


def _scanned(seed: int) -> Callable[..., Any]:
    step = _step(seed)
    reverse = seed % 3 == 0

    def run(w: Any, start: Any, xs: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            c, v, given = step(*carry, w, x)
            return (c, v), given

        (c, v), all_given = ng.func.scan(body, (start, start), xs, reverse=reverse)
        return (c * v).sum() + all_given.sum()

    return run


def _stopped(seed: int) -> Callable[..., Any]:
    step = _step(seed)

    def run(w: Any, start: Any, xs: Any) -> Any:
        def goes_on(c: Any, v: Any, k: Any) -> Any:
            return ((c * w).cos().sum() < 1.9) & (k < 6)

        def body(c: Any, v: Any, k: Any) -> Any:
            c, v, _ = step(c, v, w, 0.9)
            return c + 0.01 * (c * w).cos(), v, k + 1

        c, v, _ = ng.func.while_loop(goes_on, body, (start, start, ng.tensor(0)))
        return (c * v).sum()

    return run


def _arguments() -> list[Any]:
    rng = np.random.default_rng(3)
    return [ng.tensor(rng.uniform(-0.6, 0.6, shape)) for shape in ((2,), (2,), (7, 2))]


def _traced(function: Callable[..., Any], arguments: list[Any]) -> Graph:
    leaves, spec = flatten((tuple(arguments), {}))
    return trace_function(function, spec, leaves).graph


def _everything(graph: Graph) -> list[Value]:
    """Return all values, those of bodies too."""
    found = []
    for value in graph.values():
        found.append(value)
        primitive = value.attributes.get("primitive")
        if isinstance(primitive, Loop):
            found += _everything(primitive.graph)
    return found


@pytest.mark.parametrize("seed", range(examples(30)))
def test_scans_have_the_same_bits(seed: int) -> None:
    arguments = _arguments()
    arrays = [each.numpy() for each in arguments]
    function = ng.func.value_and_grad(_scanned(seed), argnums=(0, 1, 2))
    graph = needed_loops(simplify(_traced(function, arguments)))
    found = needed_loops(simplify(with_carried_values(graph)))
    validate(found)
    expected = interpret(graph, arrays, by_numpy, fold_by_numpy)
    computed = interpret(found, arrays, by_numpy, fold_by_numpy)
    for one, other in zip(expected, computed, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize("seed", range(examples(12)))
@pytest.mark.parametrize("kind", [_scanned, _stopped])
def test_compiled_loops_are_eager_ones_to_second_order(kind: Any, seed: int) -> None:
    function, arguments = kind(seed), _arguments()
    second = ng.func.grad(lambda w, *rest: (ng.func.grad(function)(w, *rest) ** 2).sum())
    value = ng.jit(function)(*arguments)
    assert value.item() == pytest.approx(function(*arguments).item(), rel=1e-13)
    found, expected = ng.jit(second)(*arguments), second(*arguments)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


def test_what_a_condition_asks_is_not_computed_again() -> None:
    def root(eccentricity: Any, anomaly: Any) -> Any:
        def miss(e: Any) -> Any:
            return e - eccentricity * e.sin() - anomaly

        def step(e: Any) -> Any:
            return e - miss(e) / (1 - eccentricity * e.cos())

        return ng.func.while_loop(lambda e: miss(e).abs() > 1e-12, step, anomaly)

    arguments = [ng.tensor(0.6, dtype=ng.float64), ng.tensor(0.9, dtype=ng.float64)]
    graph = needed_loops(simplify(_traced(root, arguments)))
    sines = [
        sum(value.operation == "sin" for value in _everything(each))
        for each in (graph, simplify(with_carried_values(graph)))
    ]
    assert sines == [3, 2]  # one before the loop


def test_what_is_cheap_is_computed_again() -> None:
    def run(x: Any) -> Any:
        return ng.func.scan(lambda c, _: (c * 0.5 + (c + 1) * x, (c + 1)), x, length=5)[0]

    graph = needed_loops(simplify(_traced(run, [ng.ones(3)])))
    assert with_carried_values(graph) is graph
