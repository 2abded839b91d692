"""Backward passes that a Function starts inside of a backward pass."""

from __future__ import annotations

from typing import Any

import pytest

import numgrad as ng


class Deeper(ng.autograd.Function):
    """The identity; its backward pass runs one of its own, `depth` times."""

    @staticmethod
    def forward(ctx: Any, x: Any, depth: int, innermost: Any) -> Any:
        ctx.depth, ctx.innermost = depth, innermost
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        if not ctx.depth:
            ctx.innermost()
            return gradient, None, None
        with ng.enable_grad():
            x = ng.ones(2, requires_grad=True)
            Deeper.apply(x, ctx.depth - 1, ctx.innermost).sum().backward()
        return gradient + x.grad, None, None


@pytest.mark.parametrize("depth", [0, 3, 1000])
def test_backward_inside_backward_to_any_depth(depth: int) -> None:
    reached = []
    x = ng.ones(2, requires_grad=True)
    Deeper.apply(x, depth, lambda: reached.append(ng.is_grad_enabled())).sum().backward()
    assert x.grad.tolist() == [depth + 1] * 2
    assert reached == [False]  # the innermost runs as any backward pass without create_graph does


def test_an_error_from_the_depth_arrives_and_all_goes_on() -> None:
    def fail() -> None:
        raise KeyError("deep")

    x = ng.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="deep"):
        Deeper.apply(x, 100, fail).sum().backward()
    assert x.grad is None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
