"""Batches of cotangents go back through loops that keep some of their carries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import func

LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "carried": lambda x, kept: func.scan(
        lambda h, w: (ng.tanh(h * w + x), None), x * 1, ng.tensor([0.5, 0.3, 0.8]), checkpoint=kept
    )[0],
    "closed over": lambda x, kept: func.scan(
        lambda h, _: (h * 0.5 + x * x, None), ng.zeros(2), length=3, checkpoint=kept
    )[0],
    "by way of another": lambda x, kept: _with(x.sin(), kept),
    "while": lambda x, kept: func.while_loop(
        lambda i, h: i < 3, lambda i, h: (i + 1, h * x + x), (ng.tensor(0), x * 1), checkpoint=kept
    )[1],
    "for": lambda x, kept: func.fori_loop(0, 3, lambda i, h: h * x + x, x * 1, checkpoint=kept),
    "nested": lambda x, kept: func.scan(
        lambda h, _: (_with(h * x, kept) * 0.3, None), x * 1, length=2, checkpoint=kept
    )[0],
}


def _with(s: Any, kept: Any) -> Any:
    step = lambda h, _: (h * 0.5 + s * h + s, None)  # noqa: E731
    return func.scan(step, ng.ones(2), length=3, checkpoint=kept)[0]


def _close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("kept", [None, 1, 2, "sqrt", func.Binomial(2)], ids=str)
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_their_gradients_are_those_one_by_one(loop: Any, kept: Any) -> None:
    ng.set_default_dtype(ng.float64)
    try:
        x = ng.tensor([0.4, 0.7], requires_grad=True)
        y, unit = loop(x, kept), ng.eye(2)
        rows = [ng.autograd.grad(y, x, each, create_graph=True)[0] for each in unit]
        (batch,) = ng.autograd.grad(y, x, unit, is_grads_batched=True, create_graph=True)
        _close(batch, ng.stack(rows))
        second = [
            ng.autograd.grad(each.sum(), x, retain_graph=True)[0]
            for each in (batch, ng.stack(rows))
        ]
        _close(*second)
        (alone,) = ng.autograd.grad(y, x, unit, is_grads_batched=True)
        _close(alone, batch.detach())

        def squares(x: Any) -> Any:
            return (loop(x, kept) ** 2).sum()

        found = ng.autograd.functional.hessian(squares, x.detach(), vectorize=True)
        _close(found, ng.autograd.functional.hessian(squares, x.detach()))
    finally:
        ng.set_default_dtype(ng.float32)
