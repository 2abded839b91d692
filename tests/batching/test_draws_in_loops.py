"""Random numbers within traced loops of mapped functions: what is drawn without a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.base.pytree import flatten
from numgrad.func import cond, fori_loop, grad, hessian, jvp, scan, switch, vmap, while_loop
from numgrad.jit.front.trace_function import trace_function
from tests.jit.interpreter import interpret

Function = Callable[[Any], Any]


def draw(*size: int) -> Any:
    return ng.randn(size, dtype=ng.float64)


def number_of(x: Any) -> Any:
    return (x.sum() * 3).abs().long()


PROGRAMS: dict[str, Function] = {
    "scan": lambda x: scan(lambda c, r: (c.sin() + r * draw(3) * c, c), x, x, reverse=True)[0],
    "checkpoints": lambda x: scan(
        lambda c, _: (c.sin() + c * draw(3), None), x, length=9, checkpoint="sqrt"
    )[0],
    "count of its own": lambda x: fori_loop(
        0, number_of(x) + 1, lambda i, c: c + draw(3).sin() * c, x
    ),
    "while": lambda x: while_loop(
        lambda c: c.abs().sum() < 9, lambda c: c * 1.1 + draw(3).abs() * c.sign(), x
    ),
    "while for all": lambda x: while_loop(
        lambda c, n: n < 3, lambda c, n: (c.cos() + draw(3) * c, n + 1), (x, 0)
    )[0],
    "cond": lambda x: cond(x.sum() > 0, lambda: x + draw(3) * x, lambda: x * draw()),
    "switch": lambda x: switch(
        number_of(x) - 1, [lambda: x * draw(3), lambda: x, lambda: x * draw() * draw(3)]
    ),
    "loop in loop": lambda x: scan(
        lambda c, _: (PROGRAMS["while"](c) * 0.1 + draw(3) * c, None), x, length=2
    )[0],
    "batch in batch": lambda x: vmap(
        lambda e: scan(lambda c, _: (c.sin() + c * draw(), None), e, length=3)[0],
        randomness="different",
    )(x),
    "before and after": lambda x: PROGRAMS["scan"](x * draw(3)) + draw(3),
}

TRANSFORMED: dict[str, Callable[[Function, str], Function]] = {
    "value": lambda f, mode: vmap(f, randomness=mode),
    "vmap(grad)": lambda f, mode: vmap(grad(lambda x: f(x).sin().sum()), randomness=mode),
    "grad(vmap)": lambda f, mode: grad(lambda x: vmap(f, randomness=mode)(x).sin().sum()),
    "vmap(jvp)": lambda f, mode: vmap(lambda x: jvp(f, (x,), (x.cos(),))[1], randomness=mode),
}


def examples() -> Any:
    return ng.tensor(np.random.default_rng(0).normal(size=(4, 3)))


def check(function: Function) -> None:
    """Compare a function with its graph: what is drawn, and from where one goes on."""
    x = examples()
    ng.manual_seed(0)
    leaves, spec = flatten(((x,), {}))
    trace = trace_function(function, spec, leaves)
    states = [source.words() for source in trace.sources]
    results = interpret(trace.graph, [x.numpy(), *states])
    expected = function(x).numpy()
    np.testing.assert_allclose(results[trace.outputs[0].which], expected, 1e-9, 1e-11)
    for source, state in zip(trace.sources, results[-len(states) :], strict=True):
        np.testing.assert_array_equal(source.words(), state)


@pytest.mark.parametrize("mode", ["same", "different"])
@pytest.mark.parametrize("transform", TRANSFORMED)
@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_those_drawn_without_a_trace(name: str, transform: str, mode: str) -> None:
    check(TRANSFORMED[transform](PROGRAMS[name], mode))


@pytest.mark.parametrize("name", ["count of its own", "cond"])
def test_second_derivatives(name: str) -> None:
    check(vmap(hessian(lambda x: PROGRAMS[name](x).sin().sum()), randomness="different"))


def test_compiled() -> None:
    function = TRANSFORMED["vmap(grad)"](PROGRAMS["count of its own"], "different")
    compiled = ng.jit(function)
    for _ in range(2):
        ng.manual_seed(0)
        expected = function(examples()), draw(2)
        ng.manual_seed(0)
        found = compiled(examples()), draw(2)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), 1e-9, 1e-11)


def test_a_dispatcher_draws_from_numpys_generator() -> None:
    function, x = TRANSFORMED["value"](PROGRAMS["while"], "different"), examples()
    dispatcher = ng.jit(function).lower(x).dispatcher
    ng.manual_seed(0)
    (found,) = dispatcher(x.numpy(), ng.Generator().manual_seed(0).numpy)
    np.testing.assert_allclose(found, function(x).numpy(), 1e-9, 1e-11)
