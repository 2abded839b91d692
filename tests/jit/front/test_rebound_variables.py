"""Gradients of loops go by what the variables that bodies read were, not by what they are now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.func import cond, grad, hessian, scan, switch, while_loop


def of_numbers(x: Any) -> Any:
    for k in (2.0, 3.0):
        x, _ = scan(lambda c, _: ((c * k).sin(), None), x, length=3)
    return x.sum()


def of_tensors(x: Any) -> Any:
    for w in (x * 2, x * 3):
        x = while_loop(lambda c: c.sum() > 0.1, lambda c: c * w / 4, x)
        x = cond(x.sum() > 0, lambda c: c * w, lambda c: c, x)
    return x.sum()


def of_branches(x: Any) -> Any:
    for k in (1, 2, 3):
        x = switch(k % 2, [lambda c: c**k, lambda c: (c * k).cos()], x)
    return x.sum()


def changed_later(x: Any) -> Any:
    scale = 2.0
    y, _ = scan(lambda c, _: (c * c * scale, None), x, length=2)
    scale = 3.0
    return y.sum() * scale


def of_a_tensor_changed_later(x: Any) -> Any:
    w = x.exp()
    y, _ = scan(lambda c, _: (c * w, None), x, length=2)
    w = y.sin()
    return (y * w).sum()


def removed(x: Any) -> Any:
    scale = 2.0
    y, _ = scan(lambda c, _: (c * c * scale, None), x, length=2)  # noqa: F821
    del scale
    return y.sum()


def nested(x: Any) -> Any:
    for k in (2.0, 3.0):

        def turn(c: Any, _: Any) -> Any:
            inner, _ = scan(lambda d, _: ((d * k).sin(), None), c, length=2)
            return inner * k, None

        x, _ = scan(turn, x, length=2)
    return x.sum()


FUNCTIONS = [
    *(of_numbers, of_tensors, of_branches, changed_later, of_a_tensor_changed_later),
    *(removed, nested),
]


@pytest.mark.sampled(0.5)
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_go_by_what_variables_were(function: Callable[[Any], Any]) -> None:
    x = ng.tensor([0.7, 0.9], dtype=ng.float64)
    step, direction = 1e-6, ng.tensor([1.0, -0.5], dtype=ng.float64)
    first, second = grad(function), hessian(function)
    for transform in (first, second):
        assert np.allclose(ng.jit(transform)(x).numpy(), transform(x).numpy(), rtol=1e-10)
    ahead, behind = x + step * direction, x - step * direction
    slope = (function(ahead) - function(behind)).item() / (2 * step)
    assert np.isclose((first(x) * direction).sum().item(), slope, rtol=1e-6)
    curved = (first(ahead) - first(behind)).numpy() / (2 * step)
    assert np.allclose((second(x) @ direction).numpy(), curved, rtol=1e-5, atol=1e-7)


@pytest.mark.usefixtures("traced")
def test_recorded_gradients_go_by_them_too() -> None:
    for function in (of_numbers, of_tensors, removed):
        x = ng.tensor([0.7, 0.9], dtype=ng.float64, requires_grad=True)
        (gradient,) = ng.autograd.grad(ng.jit(function)(x), x)
        expected = grad(function)(x.detach())
        assert np.allclose(gradient.numpy(), expected.numpy(), rtol=1e-10), function
