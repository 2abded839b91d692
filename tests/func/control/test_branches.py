"""Branches and bodies under `jit` that may not run, and that give what is not theirs.

What is expected is what the same function does eagerly, where both are Python's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import func, linalg

X = ng.tensor([1.0, 2.0, 3.0], dtype=ng.float64)
SINGULAR = ng.zeros(2, 2, dtype=ng.float64)
WEIGHTS = ng.tensor([1.0, 2.0, 3.0], dtype=ng.float64)


def within_a_loop(x: Any, n: Any) -> Any:
    def goes_on(k: Any, total: Any) -> Any:
        return func.cond(k < 3, lambda: x[k] < 2.5, lambda: k > 100)

    def step(k: Any, total: Any) -> Any:
        return k + 1, total + func.cond(k < 2, lambda: x[k], lambda: x[0])

    return func.while_loop(goes_on, step, (n - 5, x[0] * 0))[1]


# Called with n = 5: the first branch of each would raise.
NOT_TAKEN: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "operand": (lambda x, n: func.cond(n < 2, lambda n: x[n], lambda n: x[0], (n,)), X),
    "index": (lambda x, n: func.cond(n < 2, lambda: x[n] * 2, lambda: x[0]), X),
    "gather": (lambda x, n: func.cond(n < 2, lambda: x.gather(0, n[None])[0], lambda: x[0]), X),
    "scatter": (
        lambda x, n: func.cond(n < 2, lambda: x.index_add(0, n[None], x[:1]), lambda: x),
        X,
    ),
    "divisor": (lambda x, n: func.cond(n < 2, lambda: x * (4 // (n - 5)), lambda: x), X),
    "inverse": (
        lambda x, n: func.cond(n < 2, lambda: linalg.inv(x).sum(), lambda: x.sum()),
        SINGULAR,
    ),
    "factor": (
        lambda x, n: func.cond(n < 2, lambda: linalg.cholesky(x - 1), lambda: x * 2),
        SINGULAR,
    ),
    "nested": (
        lambda x, n: func.cond(
            n < 9, lambda: func.cond(n < 2, lambda: x[n], lambda: x[1]), lambda: x[n]
        ),
        X,
    ),
    "switch": (lambda x, n: func.switch(n - 4, [lambda: x[n], lambda: x[n - 4], lambda: x[n]]), X),
    "loop": (within_a_loop, X),
}


def summed(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, n: f(x, n).sum()


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_a_branch_that_is_not_taken_raises_nothing(name: str, traced: None) -> None:
    f, x = NOT_TAKEN[name]
    n = ng.tensor(5)
    assert ng.equal(ng.jit(f)(x, n), f(x, n))
    gradient = func.grad(summed(f))
    assert ng.equal(ng.jit(gradient)(x, n), gradient(x, n))


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("name", NOT_TAKEN)
def test_nor_does_it_in_a_dispatcher(name: str) -> None:
    f, x = NOT_TAKEN[name]
    n = ng.tensor(5)
    (found,) = ng.jit(f).lower(x, n).dispatcher(x.numpy(), n.numpy())
    np.testing.assert_array_equal(found, f(x, n).numpy())


def test_a_branch_is_computed_where_it_is_taken() -> None:
    """What it computes is within it, whatever that depends on; so the other takes no time."""
    f = ng.jit(lambda x, p: func.cond(p, lambda: (x.exp() @ x.sin()).sum(), lambda: x.sum()))
    graph = f.lower(ng.ones(4, 4), ng.tensor(True)).graph
    assert {"exp", "sin"}.isdisjoint(value.operation for value in graph.values())
    assert "exp" in str(graph)


# What a body may give that it has not made: a tensor from outside that requires grad, the
# argument itself, what was computed before; and what needs no gradient.
OUTSIDE = ng.tensor([0.5, 2.0, -1.0], dtype=ng.float64)
SOURCES: dict[str, Callable[[Any, Any], Any]] = {
    "parameter": lambda x, w: w,
    "argument": lambda x, w: x,
    "computed": lambda x, w: x * 2,
    "of both": lambda x, w: x * w,
    "constant": lambda x, w: ng.ones(3, dtype=ng.float64),
}
BODIES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "cond": lambda a, b, n: func.cond(n < 2, lambda: a, lambda: b),
    "one branch": lambda a, b, n: func.cond(n < 2, lambda: a * b, lambda: b),
    "switch": lambda a, b, n: func.switch(n, [lambda: a, lambda: b, lambda: a + b]),
    "while": lambda a, b, n: func.while_loop(
        lambda k, c: k < n, lambda k, c: (k + 1, a), (n * 0, b)
    )[1],
    "for": lambda a, b, n: func.fori_loop(0, 3, lambda k, c: a, b),
    "carry": lambda a, b, n: func.scan(lambda c, _: (a, c), b, None, length=3)[1].sum(0),
    "row": lambda a, b, n: func.scan(lambda c, row: (c + row, b), a, WEIGHTS.expand(2, 3))[1].sum(
        0
    ),
}


def gradients(f: Callable[[Any, Any, Any], Any], n: int) -> list[Any]:
    """Return the value, and gradients for the argument and for a tensor from outside."""
    x, w = X.clone().requires_grad_(), OUTSIDE.clone().requires_grad_()
    value = f(x, w, ng.tensor(n))
    if value.requires_grad:
        value.backward()
    return [value.detach(), *[0 * X if each.grad is None else each.grad for each in (x, w)]]


@pytest.mark.parametrize("n", [0, 5])
@pytest.mark.parametrize("body", BODIES)
def test_gradients_of_what_a_body_gives_as_it_is(body: str, n: int, traced: None) -> None:
    for first, second in itertools.product(SOURCES, repeat=2):

        def f(x: Any, w: Any, n: Any, names: tuple[str, str] = (first, second)) -> Any:
            a, b = (SOURCES[name](x, w) for name in names)
            return (BODIES[body](a, b, n) * WEIGHTS).sum()

        expected = gradients(f, n)

        def captured(x: Any, w: Any, n: Any, f: Any = f) -> Any:
            return ng.jit(lambda x, n: f(x, w, n))(x, n)

        within = ng.jit(func.grad(f, argnums=(0, 1)))
        for way, found in {
            "jit": gradients(ng.jit(f), n),
            "captured": gradients(captured, n),
            "grad": [expected[0], *within(X, OUTSIDE, ng.tensor(n))],
        }.items():
            for one, other in zip(found, expected, strict=True):
                assert ng.equal(one, other), (way, first, second)


def test_gradients_of_a_body_that_gives_an_argument_when_compiled() -> None:
    f = summed(lambda x, n: func.cond(n < 2, lambda: x * 2, lambda: x))
    gradient = ng.jit(func.grad(f))
    assert gradient(X, ng.tensor(5)).tolist() == [1.0, 1.0, 1.0]
    assert gradient(X, ng.tensor(1)).tolist() == [2.0, 2.0, 2.0]
