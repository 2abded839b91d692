"""Checkpoints of loops of unknown length that are traced: what their gradients keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import func
from numgrad.base.pytree import flatten
from numgrad.jit.front.trace_function import trace_function
from tests.jit import interpreter

# How many carries a loop may keep for n steps, about.
POLICIES: dict[Any, Callable[[int], float]] = {
    None: lambda n: n,
    7: lambda n: max(7, n / 7),
    "sqrt": lambda n: (2 * n) ** 0.5,
    "log": lambda n: (24 * n) ** 0.25,
    func.Binomial(2): lambda n: (24 * n) ** 0.25,
}


def repeated(count: Any, policy: Any) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        _, y = func.while_loop(
            lambda i, y: i < count,
            lambda i, y: (i + 1, (y * x).sin() + y),
            (0, x),
            checkpoint=policy,
        )
        return (y * y).sum()

    return function


def drawing(policy: Any) -> Callable[[Any], Any]:
    """The condition draws, too."""

    def function(x: Any) -> Any:
        return func.while_loop(
            lambda y: y.abs().sum() + ng.rand((), dtype=ng.float64) < 6,
            lambda y: y * 1.1 + y.sin() * ng.rand((), dtype=ng.float64),
            x,
            checkpoint=policy,
        ).sum()

    return function


def interpreted(function: Callable[[Any], Any], x: Any) -> Any:
    """Return what a function is traced to gives, without a compiler."""
    leaves, spec = flatten(((x,), {}))
    trace = trace_function(function, spec, leaves)
    states = [source.words() for source in trace.sources]
    return interpreter.interpret(trace.graph, [x.numpy(), *states])[trace.outputs[0].which]


X = ng.tensor([0.4, -0.2], dtype=ng.float64)
DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "gradient": func.grad,
    "hessian": func.hessian,
    "tangent": lambda f: lambda x: func.jvp(f, (x,), (x,))[1],
    "examples": lambda f: lambda x: func.vmap(func.grad(f))(ng.stack([x, x.flip(0)])),
}


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The turns of all loops that stack anything."""
    found: list[int] = []
    run = interpreter._loop

    def watched(loop: Any, *arguments: Any) -> Any:
        results = run(loop, *arguments)
        found.extend(len(stack) for stack in results[loop.carries :])
        return results

    monkeypatch.setattr(interpreter, "_loop", watched)
    return found


@pytest.mark.parametrize("policy", POLICIES)
def test_few_carries_are_kept(policy: Any, longest: list[int]) -> None:
    count = 150
    function = func.grad(repeated(count, policy))
    np.testing.assert_allclose(interpreted(function, X), function(X).numpy(), 1e-9)
    assert max(longest) <= 1.3 * POLICIES[policy](count) + 2


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("policy", [2, "sqrt", "log"])
def test_derivatives_are_the_same(policy: Any, derivative: str) -> None:
    for count in (0, 1, 2, 9):
        transform = DERIVATIVES[derivative]
        found = interpreted(transform(repeated(count, policy)), X)
        expected = transform(repeated(count, None))(X).numpy()
        np.testing.assert_allclose(found, expected, 1e-9, 1e-11)


@pytest.mark.parametrize("policy", [3, "sqrt", "log"])
def test_random_numbers_are_those_of_the_loop_itself(policy: Any) -> None:
    ng.manual_seed(0)
    found = interpreted(func.grad(drawing(policy)), X)
    np.testing.assert_allclose(found, func.grad(drawing(None))(X).numpy(), 1e-9)


def test_compiled() -> None:
    function = func.grad(repeated(50, "sqrt"))
    np.testing.assert_allclose(ng.jit(function)(X).numpy(), function(X).numpy(), 1e-9)
