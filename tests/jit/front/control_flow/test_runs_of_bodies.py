"""How often bodies of loops within loops run while they are traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numgrad as ng
from numgrad import func
from numgrad.jit.front.control_flow.body_state import BodyState

Function = Callable[[Any], Any]


def _scan(body: Function) -> Function:
    return lambda x: func.scan(lambda carry, _: (body(carry), None), x, length=2)[0]


def _cond(body: Function) -> Function:
    return lambda x: func.cond(x.sum() > 0, body, lambda y: y * 2.0, x)


def _while(body: Function) -> Function:
    def function(x: Any) -> Any:
        start = ng.tensor(0), x
        return func.while_loop(lambda k, _: k < 2, lambda k, y: (k + 1, body(y)), start)[1]

    return function


def _nested(kind: Callable[[Function], Function], depth: int) -> Function:
    def innermost(x: Any) -> Any:
        return x.sin() * x

    found: Function = innermost
    for _ in range(depth):
        found = kind(found)
    return found


def _gradient(function: Function) -> Function:
    return func.grad(lambda x: function(x).sum())


def _hessian_of_batch(function: Function) -> Function:
    return func.vmap(func.hessian(lambda x: function(x).sum()))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Callable[[Function, Any], int]:
    """Return a function that counts how often bodies of loops run while another is traced."""
    run = BodyState.run
    count = 0

    def counted(state: BodyState, function: Callable[..., Any], *given: Any) -> Any:
        nonlocal count
        count += 1
        return run(state, function, *given)

    def traced(function: Function, argument: Any) -> int:
        nonlocal count
        count = 0
        ng.jit(function).lower(argument)
        return count

    monkeypatch.setattr(BodyState, "run", counted)
    return traced


@pytest.mark.parametrize(
    ("kind", "transform", "most"),
    [
        (_scan, lambda function: function, [1, 2, 3]),
        (_scan, _gradient, [2, 5, 9]),
        (_scan, func.jacfwd, [3, 8, 15]),
        (_cond, lambda function: function, [2, 4, 6]),
        (_cond, _gradient, [4, 10, 18]),
        (_cond, func.jacfwd, [6, 16, 30]),
        (_while, _gradient, [6, 16, 30]),
    ],
)
def test_bodies_run_about_once_for_each_order_of_derivatives(
    kind: Callable[[Function], Function],
    transform: Callable[[Function], Function],
    most: list[int],
    runs: Callable[[Function, Any], int],
) -> None:
    x = ng.tensor([0.3, 0.2])
    assert [runs(transform(_nested(kind, depth)), x) for depth in (1, 2, 3)] == most


def test_a_batch_of_second_derivatives_runs_them_no_more_often_than_it_has_to(
    runs: Callable[[Function, Any], int],
) -> None:
    x = ng.tensor([[0.3, 0.2], [0.1, 0.4]])
    counts = [runs(_hessian_of_batch(_nested(_scan, depth)), x) for depth in (1, 2, 3)]
    assert counts[2] < 5 * counts[1] < 25 * counts[0]
    assert counts[2] < 200


def _for(body: Function) -> Function:
    return lambda x: func.fori_loop(0, (x.sum() > 0).to(int) + 1, lambda _, y: body(y), x)


def _gradient_of_batch(function: Function) -> Function:
    return func.grad(lambda x: func.vmap(function)(x).sum())


@pytest.mark.parametrize(
    ("kind", "transform", "most"),
    [
        (_cond, func.vmap, [2, 4, 6]),
        (_cond, lambda function: func.vmap(_gradient(function)), [4, 10, 18]),
        (_cond, _gradient_of_batch, [4, 10, 18]),
        (_for, func.vmap, [2, 4, 6]),
        (_for, lambda function: func.vmap(_gradient(function)), [6, 16, 30]),
    ],
)
def test_of_a_batch_whose_examples_wait_for_each_other_they_run_no_more_often(
    kind: Callable[[Function], Function],
    transform: Callable[[Function], Function],
    most: list[int],
    runs: Callable[[Function, Any], int],
) -> None:
    x = ng.tensor([[0.3, 0.2], [0.1, -0.4]])
    assert [runs(transform(_nested(kind, depth)), x) for depth in (1, 2, 3)] == most
