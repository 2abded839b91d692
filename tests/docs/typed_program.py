"""A page of a user's code, which ``mypy --strict`` has to accept, and where it has to complain.

What is wrong on purpose is marked as ignored, and a mark that nothing needs is an error, too.
"""

from __future__ import annotations

from numba import njit

import numgrad as ng
from numgrad import math
from numgrad.autograd import grad


def loss(w: ng.Tensor, x: ng.Tensor, y: ng.Tensor) -> ng.Tensor:
    residual = x @ w - y
    return (residual * residual).mean() + 0.1 * w.abs().sum(dim=0)


def fit(x: ng.Tensor, y: ng.Tensor, steps: int = 10) -> list[float]:
    w = ng.zeros(x.shape[1], dtype=x.dtype, requires_grad=True)
    losses: list[float] = []
    for _ in range(steps):
        value = loss(w, x, y)
        value.backward()
        gradient = w.grad
        assert gradient is not None
        with ng.no_grad():
            w -= 0.1 * gradient
            w.grad = None
        losses.append(value.item())
    return losses


@njit  # type: ignore[untyped-decorator, unused-ignore]
def newton(x: float) -> float:
    return x - float((math.tanh(x) - 0.5) / math.tanh_vjp(1.0, x))


def right(x: ng.Tensor) -> ng.Tensor:
    losses = fit(x, ng.ones(2))
    rows: tuple[ng.Tensor, ...] = x.unbind()
    total: ng.Tensor = ng.sum(x, axis=0, keepdims=True).exp().clamp(max=3.0)
    size: int = x.shape.numel() + len(losses) + len(rows)
    kind: ng.dtype = x.dtype
    (derivative,) = grad(ng.sin(x).sum(), x)
    return ng.add(derivative, x.to(kind)) * size + total + x[0, 0] * x.amax()


def wrong(x: ng.Tensor) -> int:
    x.sum(dimension=0)  # type: ignore[call-arg]
    ng.sin("x")  # type: ignore[arg-type]
    ng.zeros(2, requires_grad="yes")  # type: ignore[arg-type]
    return x.sum()  # type: ignore[return-value]
