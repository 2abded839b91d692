"""``numgrad.func``'s transforms under jit, and jit under them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import func
from numgrad.base import pytree


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def assert_same(ours: Any, expected: Any) -> None:
    for one, other in zip(pytree.leaves(ours), pytree.leaves(expected), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-13, atol=1e-13)


POINT = ng.linspace(-1, 1.5, 6, dtype=ng.float64)


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.18)
@pytest.mark.parametrize(
    "transformed",
    [
        func.grad(rosenbrock),
        func.value_and_grad(rosenbrock),
        func.grad_and_value(rosenbrock),
        func.hessian(rosenbrock),
        func.jacrev(func.grad(rosenbrock)),
        func.jacfwd(func.grad(rosenbrock)),
        lambda x: func.hvp(rosenbrock, (x,), (x.cos(),)),
        lambda x: func.jvp(rosenbrock, (x,), (x.cos(),)),
        lambda x: func.vjp(lambda x: x.sin() * x[0], x)[1](x.exp()),
        func.jacrev(lambda x: (x.sin() * x.sum(), x[:2])),
        func.jacfwd(lambda x: {"a": x.outer(x), "b": x.sum()}),
        func.grad(lambda x: (func.hessian(rosenbrock)(x) ** 2).sum()),
        func.grad(lambda x: func.grad(lambda y: (x * y).prod())(x).sum()),
    ],
    ids=range(13),
)
def test_transforms_are_traced(transformed: Any) -> None:
    assert_same(ng.jit(transformed)(POINT), transformed(POINT))


@pytest.mark.usefixtures("traced")
def test_transforms_of_compiled_functions() -> None:
    compiled = ng.jit(rosenbrock)
    assert_same(func.grad(compiled)(POINT), func.grad(rosenbrock)(POINT))
    assert_same(func.hessian(compiled)(POINT), func.hessian(rosenbrock)(POINT))


def test_a_hessian_is_one_loop() -> None:
    lowered = ng.jit(func.hessian(rosenbrock)).lower(ng.zeros(50, dtype=ng.float64))
    assert len(lowered.graph.values()) < 40
    assert "rows" in str(lowered.graph)


def test_the_loop_of_a_hessian_is_given_no_numbers_and_nothing_twice() -> None:
    graph = ng.jit(func.hessian(rosenbrock)).lower(POINT).graph
    (rows,) = (value for value in graph.values() if value.operation == "call")
    assert len(set(rows.operands)) == len(rows.operands) == 2
    assert all(operand.operation == "mul" for operand in rows.operands)


def test_argnums_and_aux() -> None:
    def loss(w: Any, b: Any, x: Any) -> Any:
        out = x * w + b
        return (out**2).sum(), {"out": out}

    transformed = func.value_and_grad(loss, argnums=(0, 1), has_aux=True)
    arguments = (POINT, ng.tensor(0.5, dtype=ng.float64), POINT.cos())
    assert_same(ng.jit(transformed)(*arguments), transformed(*arguments))
