"""A page of a user's code, which ``mypy --strict`` has to accept, and where it has to complain.

What is wrong on purpose is marked as ignored, and a mark that nothing needs is an error, too.
"""

from __future__ import annotations

from numba import njit

import numgrad as ng
from numgrad import math
from numgrad.autograd import forward_ad, grad


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


@ng.jit
def step(x: ng.Tensor, rate: float) -> ng.Tensor:
    return x - rate * x.sin()


@ng.jit(static_argnames="order")
def powers(x: ng.Tensor, order: int = 2) -> tuple[ng.Tensor, int]:
    return x**order, order


def choices(x: ng.Tensor) -> ng.Tensor:
    values, places = x.max(dim=0)
    smallest: ng.Tensor = ng.min(x, axis=0, keepdims=True).values
    ordered = ng.sort(x, descending=True).values + x.topk(2).indices
    rows: tuple[ng.Tensor, ...] = ng.where(x > 0)
    kind: str = x.type()
    count: int = x.size(0) + x.stride()[0] + len(kind) + len(rows) + x.size().numel()
    both: ng.Tensor = ng.where(x > 0, x, 0.0) + ng.max(x, smallest) + x.type("torch.DoubleTensor")
    return ng.max(x) * values + places + ordered + both * count + x.nonzero() + x.aminmax().max


def parts(x: ng.Tensor) -> ng.Tensor:
    places: ng.Tensor = ng.LongTensor([0, 1])
    copied: ng.Tensor = ng.transpose_copy(x, 0, 1).squeeze_(0) + ng.arange(0, 2, dtype=ng.float64)
    try:
        copied[0], copied[..., None] = 1.0, x[0, None, 1:, places]
    except ng.TraceError as error:
        raise ValueError(str(error)) from error
    return copied.transpose_(0, 1)


def hook(gradient: ng.Tensor) -> ng.Tensor:
    return gradient * 2


def done(leaf: ng.Tensor) -> None:
    assert leaf.grad is not None


def derivatives(x: ng.Tensor) -> ng.Tensor:
    x.register_hook(hook).remove()
    x.register_post_accumulate_grad_hook(done)
    (gradient,) = ng.autograd.grad(x.sin().sum(), x)
    slope: ng.Tensor = gradient
    x.grad, rest = slope, x.detach()
    with forward_ad.dual_level():
        dual: ng.Tensor = forward_ad.make_dual(rest, slope)
        primal: ng.Tensor = forward_ad.unpack_dual(dual.exp()).primal
        tangent: ng.Tensor | None = forward_ad.unpack_dual(dual.exp()).tangent
    return slope + primal if tangent is None else slope + tangent


def right(x: ng.Tensor) -> ng.Tensor:
    losses = fit(x, ng.ones(2))
    rows: tuple[ng.Tensor, ...] = x.unbind()
    total: ng.Tensor = ng.sum(x, axis=0, keepdims=True).exp().clamp(max=3.0)
    size: int = x.shape.numel() + len(losses) + len(rows)
    kind: ng.dtype = x.dtype
    stepped, (squares, order) = step(x, 0.5), powers(x)
    compiled: ng.Tensor = ng.jit(choices)(stepped) + squares * order
    lowered = step.lower(x, 0.5).dispatcher
    total = total + compiled + lowered(x.numpy(), 0.5)
    sign, log_size = x.slogdet()
    middle: ng.Tensor = x.median(dim=0).values + x.median() + ng.qr(x).R
    total = total + sign * log_size + middle
    (derivative,) = grad(ng.sin(x).sum(), x)
    return ng.add(derivative, x.to(kind)) * size + total + x[0, 0] * x.amax()


def wrong(x: ng.Tensor) -> int:
    x.sum(dimension=0)  # type: ignore[call-overload]
    ng.sin("x")  # type: ignore[arg-type]
    ng.zeros(2, requires_grad="yes")  # type: ignore[arg-type]
    step("x", 0.5)  # type: ignore[arg-type]
    powers(x, "two")  # type: ignore[arg-type]
    x.max(dim=0).exp()  # type: ignore[attr-defined]
    ng.qr(x).S.exp()  # type: ignore[attr-defined]
    ng.max(x, dim="first")  # type: ignore[call-overload]
    x.type(dtype=1)  # type: ignore[call-overload]
    x[{}]  # type: ignore[index]
    x[0] = "a"  # type: ignore[assignment]
    ng.transpose_copy(x, "first", 1)  # type: ignore[arg-type]
    x.squeeze_("first")  # type: ignore[arg-type]
    ng.arange("a")  # type: ignore[call-overload]
    x.register_hook("x")  # type: ignore[arg-type]
    slope: int = grad(x.sum(), x)[0]  # type: ignore[assignment]
    return x.sum() + slope  # type: ignore[return-value]
