"""Turns that call what has several results, or make the same arrays again, become loops as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.unit_vectors import Rows

F64 = ng.float64

STEPS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "slogdet": lambda p: (ng.linalg.slogdet(p)[0] * p, ng.linalg.slogdet(p)[1]),
    "qr": lambda p: (ng.linalg.qr(p)[0], ng.linalg.qr(p)[1].diagonal().abs().sum()),
    "svd": lambda p: (p * ng.linalg.svd(p)[1][0], ng.linalg.svdvals(p).sum()),
    "sort": lambda p: (p.sort(0).values, p.sort(1).values[0].sum()),
    "max": lambda p: (p.max(0).values, p.min(1).values.sum()),
    "frexp": lambda p: (ng.frexp(p).mantissa, ng.frexp(p).mantissa.sum()),
    "solve": lambda p: (ng.linalg.solve(p, p.sin()), p[0, 0]),
    "eye": lambda p: (p @ (p + ng.eye(3, dtype=F64)), p.diagonal().sum()),
}


def _program(step: Any, turns: int) -> Callable[[Any], Any]:
    def total(p: Any) -> Any:
        found = 0.0
        for _ in range(turns):
            q, each = step(p)
            p = ((p * 0.9 + 0.05 * q).tanh() + ng.eye(3, dtype=F64)) * 0.8 + 0.01
            found = found + each
        return found

    return total


def _start() -> Any:
    return ng.tensor(np.eye(3) + 0.1 * np.random.default_rng(0).standard_normal((3, 3)))


def _loops(graph: Any) -> int:
    calls = [value.attributes.get("primitive") for value in graph.values()]
    return sum(isinstance(each, Loop) for each in calls)


def _size(graph: Any) -> int:
    """Return how many values a graph has, and bodies in it."""
    calls = [value.attributes.get("primitive") for value in graph.values()]
    return len(calls) + sum(_size(each.graph) for each in calls if isinstance(each, Loop | Rows))


@pytest.mark.parametrize("name", STEPS)
def test_both_halves_of_a_gradient_become_loops_whatever_turns_call(name: str) -> None:
    sizes = []
    for turns in (50, 70):
        gradient = ng.func.grad(_program(STEPS[name], turns))
        graph = ng.jit(gradient).lower(_start()).graph
        assert _loops(graph) == 2
        sizes.append(len(graph.values()))
    assert sizes[0] == sizes[1]


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", ["slogdet", "max", "solve"])
def test_their_gradients_are_those_of_the_python_loop(name: str) -> None:
    gradient = ng.func.value_and_grad(_program(STEPS[name], 50))
    for found, expected in zip(ng.jit(gradient)(_start()), gradient(_start()), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


def test_a_filter_that_takes_determinants_compiles_in_constant_size() -> None:
    """Its turns begin and end in the midst of results that a call has several of."""

    def likelihood(transition: Any, noise: Any, series: Any) -> Any:
        mean, covariance = ng.zeros(3, dtype=F64), ng.eye(3, dtype=F64)
        seen, total = ng.eye(2, 3, dtype=F64), ng.zeros((), dtype=F64)
        for value in series:
            mean = transition @ mean
            covariance = transition @ covariance @ transition.T + ng.diag(noise[:3] ** 2)
            spread = seen @ covariance @ seen.T + ng.eye(2, dtype=F64) * noise[3] ** 2
            miss = value - seen @ mean
            gain = ng.linalg.solve(spread, seen @ covariance).T
            total = total + ng.linalg.slogdet(spread)[1] + miss @ ng.linalg.solve(spread, miss)
            mean, covariance = mean + gain @ miss, covariance - gain @ seen @ covariance
        return total

    sizes = []
    for length in (20, 30):
        series = ng.tensor(np.sin(np.arange(2.0 * length)).reshape(length, 2))
        given = 0.9 * ng.eye(3, dtype=F64), ng.tensor([0.3, 0.2, 0.1, 0.5], dtype=F64), series
        graph = ng.jit(ng.func.grad(likelihood, (0, 1))).lower(*given).graph
        assert _loops(graph) == 2
        sizes.append(len(graph.values()))
    assert sizes[0] == sizes[1]


@pytest.mark.usefixtures("traced")
def test_directions_within_directions_are_few_operations() -> None:
    """Each is a loop of tangents for either branch, whatever the branch does."""

    def chosen(a: Any) -> Any:
        return ng.func.cond(
            a.sum() > 0, lambda a: ng.linalg.solve(a, a[0]).sin().sum(), lambda a: a.sum(), a
        )

    start = _start()[:2, :2].clone()
    second = ng.func.jacfwd(ng.func.jacfwd(chosen))
    compiled = ng.jit(second)
    graph = compiled.lower(start).graph
    assert _size(graph) < 700
    np.testing.assert_allclose(compiled(start).numpy(), second(start).numpy(), atol=1e-12)


def test_what_loops_of_unknown_length_stack_stays_in_the_turn_that_takes_it() -> None:
    """It has no shape by which a loop around could stack it."""

    def doubled(x: Any) -> Any:
        return ng.func.while_loop(lambda c: c.sum() < 60, lambda c: c * c, x).sum()

    def pushed(x: Any) -> Any:  # each column is two loops, the second of which takes a stack
        return ng.func.jvp(ng.func.jacfwd(doubled), (x,), (x,))[1]

    x = ng.tensor([1.5, 2.0, 1.2, 0.7], dtype=F64)
    np.testing.assert_allclose(ng.jit(pushed)(x).numpy(), pushed(x).numpy(), rtol=1e-12)
