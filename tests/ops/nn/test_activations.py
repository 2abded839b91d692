"""Activations of nn.functional beside PyTorch's, in place, of drawn numbers, and their digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.nn import functional as F
from tests.ops.nn.calls import agree

LINES = """
F.threshold(x, 0.1, 0.2)
F.threshold(x, 0.1, 0.2, True)
F.threshold_(x * 1, 0.1, 0.2)
torch.threshold_(x * 1, 0.1, 0.2)
F.threshold(k, 1.5, 7.5)
F.relu(x)
F.relu(x * 1, inplace=True)
F.relu_(x * 1)
F.relu6(x * 4)
F.relu6(x * 4, True)
F.relu6(k)
F.hardtanh(x)
F.hardtanh(x, -0.5, 0.25)
F.hardtanh(x * 1, inplace=True)
F.hardtanh_(x * 1, -0.5, 0.25)
F.hardtanh(x, 2, 1)
F.hardtanh(k)
F.hardtanh(k.to(torch.uint8))
F.hardtanh(k.to(torch.uint8), 0, 300)
F.hardtanh(k > 0)
F.hardtanh(x + 1j)
F.elu(x)
F.elu(x, 2)
F.elu(x, True)
F.elu(x * 1, 0.5, True)
F.elu_(x * 1, 0.5)
F.elu(k)
F.selu(x)
F.selu(x * 1, True)
F.selu_(x * 1)
torch.selu(x)
torch.selu_(x * 1)
F.celu(x)
F.celu(x, 2.0)
F.celu(x * 1, 2.0, True)
F.celu_(x * 1)
F.celu(x, 0)
torch.celu(x, alpha=0.5)
F.leaky_relu(x)
F.leaky_relu(x, -0.5)
F.leaky_relu(x * 1, 0.3, True)
F.leaky_relu_(x * 1)
F.leaky_relu(k)
F.prelu(x, w)
F.prelu(x, u)
F.prelu(x, u[:2])
F.prelu(x, w.float())
F.prelu(x[0, 0], u[:1].reshape(()))
F.prelu(x[0, 0, 0], u)
x.prelu(w)
F.rrelu(x)
F.rrelu(x, 0.5, 0.25)
F.rrelu(x, 0.5, 0.25, True)
F.rrelu(x, 0.25, 0.25, True)
F.rrelu_(x * 1)
torch.rrelu(x, 0.1, 0.2)
F.rrelu(k)
F.rrelu(k, training=True)
F.glu(x)
F.glu(x, 0)
F.glu(x, 1)
F.glu(x[0, 0, 0])
F.glu(k)
F.glu(x, 5)
F.gelu(x)
F.gelu(x, approximate='tanh')
F.gelu(x, approximate='a')
F.gelu(k)
F.silu(x)
F.silu(x * 1, True)
F.silu(x + 1j)
F.silu((x + 1j).detach()).real
F.silu(k)
F.mish(x)
F.mish(x * 1, True)
F.mish(x + 1j)
F.hardswish(x * 4)
F.hardswish(x * 4, True)
F.hardsigmoid(x.float() * 4)
F.hardsigmoid(x.float() * 4, True)
F.hardshrink(x)
F.hardshrink(x, 0.25)
x.hardshrink()
torch.hardshrink(x.detach(), 0.25, out=torch.empty(0, dtype=x.dtype))
F.softshrink(x.detach(), 0.25, out=torch.empty(0, dtype=x.dtype))
F.gelu(x.detach(), approximate="tanh", out=torch.empty(0, dtype=x.dtype))
F.gelu(x, out=torch.empty(0, dtype=x.dtype))
F.softplus(x.detach(), 2.0, out=torch.empty(0, dtype=x.dtype))
F.logsigmoid(x.detach(), out=torch.empty(0, dtype=x.dtype))
F.linear(x.detach(), x.detach(), out=torch.empty(0, dtype=x.dtype))
F.hardshrink(k)
F.softshrink(x)
F.softshrink(x, 0.25)
F.softshrink(x, -1)
F.softshrink(k)
F.tanhshrink(x)
F.tanhshrink(k)
F.tanhshrink(k > 0)
F.softsign(x)
F.softsign(x + 1j).real
F.softsign(k)
F.softplus(x)
F.softplus(x, 2, 1)
F.logsigmoid(x)
F.sigmoid(x)
F.tanh(x)
F.softmin(x, 1)
F.softmin(x.float(), dim=-1, dtype=torch.float64)
F.softmax(x, 3)
F.log_softmax(x, dim=0, dtype=torch.float64)
F.elu(leaf, 1.0, True)
F.elu('a')
F.gumbel_softmax(k)
""".strip().splitlines()


def operands(seed: int, dtype: str = "float64") -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "x": random.normal(size=(2, 3, 4)).astype(dtype),
        "leaf": random.normal(size=3).astype(dtype),
        "w": random.normal(size=(1,)).astype(dtype),
        "u": random.normal(size=(3,)).astype(dtype),
        "k": random.integers(-3, 9, size=(2, 3, 4)),
    }


def test_values_gradients_and_refusals_are_pytorchs(torch):
    for seed in range(2):
        for line in LINES:
            agree(torch, line, operands(seed))


def test_in_float32_they_are_pytorchs(torch):
    for line in LINES:
        agree(torch, line, operands(2, "float32"))


def test_random_slopes_are_drawn_between_the_bounds():
    x = ng.full((1000,), -1.0, requires_grad=True)
    y = F.rrelu(x, 0.25, 0.5, training=True)
    y.sum().backward()
    least, most = y.detach().aminmax()
    assert -0.5 <= least < -0.45 and -0.3 < most <= -0.25
    assert (x.grad == -y).all()
    assert (F.rrelu(ng.ones(5), training=True) == 1).all()
    twice = [ng.Generator().manual_seed(3) for _ in range(2)]
    first, second = (ng.rrelu(x, 0.1, 0.9, True, generator=g) for g in twice)
    assert (first == second).all()


@pytest.mark.parametrize("hard", [False, True])
def test_gumbel_softmax_draws_classes_as_often_as_they_are_likely(hard):
    ng.manual_seed(0)
    logits = ng.tensor([0.5, 0.3, 0.2]).log().expand(4000, 3).clone().requires_grad_()
    drawn = F.gumbel_softmax(logits, tau=0.1, hard=hard)
    assert np.allclose(drawn.sum(1).detach().numpy(), 1, atol=1e-5)
    assert np.allclose(drawn.mean(0).detach().numpy(), [0.5, 0.3, 0.2], atol=0.04)
    drawn[:, 0].sum().backward()
    assert logits.grad.abs().sum() > 0
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated"):
        F.gumbel_softmax(logits, eps=1.0)


def test_gelu_keeps_its_digits_far_from_zero():
    scipy = pytest.importorskip("scipy.special")
    x = np.linspace(-12, 12, 97)
    exact = x * scipy.ndtr(x)
    ours = F.gelu(ng.tensor(x)).numpy()
    np.testing.assert_allclose(ours, exact, rtol=2e-14)


@pytest.mark.usefixtures("traced")
def test_they_draw_and_compute_in_traced_functions():
    def f(x: Any) -> Any:
        return F.gelu(F.elu(x) + F.hardswish(x)) * F.silu(x) - F.mish(x) + F.prelu(x, x[:1])

    x = ng.tensor([-1.0, 0.5, 2.0], dtype=ng.float64)
    np.testing.assert_allclose(ng.jit(f)(x).numpy(), f(x).numpy(), rtol=1e-14)
    traced = ng.jit(lambda x: F.rrelu(x, 0.25, 0.5, True))
    first, second = traced(-ng.ones(50)), traced(-ng.ones(50))
    assert not (first == second).all() and (first < 0).all()
    hard = ng.jit(lambda x: F.gumbel_softmax(x, hard=True))(ng.zeros(4, 3))
    assert hard.sum(1).tolist() == [1, 1, 1, 1]


def test_batches_of_them_are_those_of_each():
    x = ng.tensor(np.random.default_rng(0).normal(size=(3, 4)))
    for f in (F.elu, F.gelu, F.hardswish, F.softshrink, F.selu, lambda x: F.prelu(x, x[:1])):
        together = ng.vmap(f)(x)
        np.testing.assert_allclose(together.numpy(), ng.stack([f(row) for row in x]).numpy())
