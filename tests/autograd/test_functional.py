"""autograd.functional: what each call returns and raises is what PyTorch's does."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.library_lines import described, evaluated

# PyTorch's own forward mode compiles with what PyTorch itself deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")


def run(library: Any, line: str) -> Any:
    """Evaluate an expression, after the statements before ``->``, with either library."""
    names: dict[str, Any] = {
        "torch": library,
        "F": library.autograd.functional,
        "x": library.tensor([1.0, 2.0, 3.0], dtype=library.float64),
        "w": library.tensor([0.5, -1.0, 2.0], dtype=library.float64, requires_grad=True),
        "m": library.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=library.float64),
        "s": library.tensor(2.0, dtype=library.float64),
        "i": library.tensor([1, 2, 3]),
        "forward": {"outer_jacobian_strategy": "forward-mode"},
    }
    return evaluated(line, names)


SAME = """
F.jacobian(lambda s: s * 2, s)
F.jacobian(lambda x, y: (x * y).sum(), (s, s))
F.jacobian(lambda s: s**2, s, create_graph=True)
F.vjp(lambda x: x**2, x, x)
F.vjp(lambda x: x.sum(), x)
F.vjp(lambda x: x.sum().reshape(1, 1), x)
F.vjp(lambda x, y: (x * y, x.sum()), (x, x), (x, s))
F.vjp(lambda x: (x.exp(),), x, (x,))
F.vjp(lambda x: x.exp(), (x,), x)
F.vjp(lambda x: x.exp(), (x,), (x,))
F.vjp(lambda x, y: x * 2, (x, x), x)
F.vjp(lambda x: torch.ones(3), x, torch.ones(3))
F.vjp(lambda x: x**2, x, x, create_graph=True)
F.vjp(lambda x: x**2, w, x, create_graph=True)
F.vjp(lambda x: x * w, x, x, create_graph=True)
F.vjp(lambda x: x * 2, x, x, create_graph=True)
F.vjp(lambda x: x * 2, x, w)
F.vjp(lambda x: x * 2, x, w, create_graph=True)
F.vjp(lambda x: x**2, x, x, strict=True)
F.vjp(lambda x: x**2, x, x, True, True)
F.vjp(lambda x: torch.autograd.grad((x**3).sum(), x, create_graph=True)[0], x, x)
F.vjp(lambda x: (x * (1 + 2j)).sum().real, x, s)
F.jvp(lambda x: x**2, x, x)
F.jvp(lambda s: s * x, s)
F.jvp(lambda x, y: (x * y, x.sum()), (x, x), (x, w))
F.jvp(lambda x: (x.exp(),), x, (x,))
F.jvp(lambda x: x.exp(), (x,), x)
F.jvp(lambda x, y: x * 2, (x, x), (x, x))
F.jvp(lambda x: torch.ones(3), x, x)
F.jvp(lambda x: x * w, x, x)
F.jvp(lambda x: w * 1, x, x)
F.jvp(lambda x: x**2, x, x, create_graph=True)
F.jvp(lambda x: x**2, w, x, create_graph=True)
F.jvp(lambda x: x * 2, w, x, create_graph=True)
F.jvp(lambda x: x * 2, x, w, create_graph=True)
F.jvp(lambda x: x * 2, x, x, strict=True)
F.jvp(lambda x: x**2, x, x, strict=True, create_graph=True)
F.jvp(lambda m: m @ m, m, m)
F.jvp(lambda x: x.cumprod(0), x, x)
F.vhp(lambda x: (x**3).sum(), x, x)
F.vhp(lambda s: s**3, s)
F.vhp(lambda x, y: (x**3 * y).sum(), (x, w), (x, x))
F.vhp(lambda x, y: (x**3).sum(), (x, w), (x, x))
F.vhp(lambda x: x.sum(), x, x)
F.vhp(lambda x: (x**3).sum(), w, x, create_graph=True)
F.vhp(lambda x: (x**3).sum(), x, x, create_graph=True, strict=True)
F.vhp(lambda x: (x**3).sum().reshape(1, 1), x, x)
F.hvp(lambda x: (x**3).sum(), x, x)
F.hvp(lambda s: s**3, s)
F.hvp(lambda x, y: (x**3 * y).sum(), (x, w), (x, x))
F.hvp(lambda x, y: (x**3).sum(), (x, w), (x, x))
F.hvp(lambda x: x.sum(), x, x)
F.hvp(lambda x: (x**3).sum(), w, x, create_graph=True)
F.hvp(lambda x: (x**3).sum(), x, x, create_graph=True, strict=True)
F.hvp(lambda m: (m @ m).prod(), m, m)
F.jacobian(lambda x: x**2, x)
F.jacobian(lambda x: x.sum(), x)
F.jacobian(lambda m: m.sum(0), m)
F.jacobian(lambda m: m @ x[:2], m)
F.jacobian(lambda x: (x**2,), x)
F.jacobian(lambda x: x**2, (x,))
F.jacobian(lambda x: (x**2,), (x,))
F.jacobian(lambda x, m: (x.sum() * m, x), (x, m))
F.jacobian(lambda x: torch.ones(2), x)
F.jacobian(lambda x, y: x * 2, (x, m))
F.jacobian(lambda x: x**2, w, create_graph=True)
F.jacobian(lambda x: x * 2, w, create_graph=True)
F.jacobian(lambda x: x**2, x, create_graph=True)
F.jacobian(lambda x: x**2, x, strict=True)
F.jacobian(lambda x: x**2, x, vectorize=True)
F.jacobian(lambda x: x**2, w, create_graph=True, vectorize=True)
F.jacobian(lambda x, m: (x.sum() * m, x), (x, m), vectorize=True)
F.jacobian(lambda x, y: x * 2, (x, m), vectorize=True)
F.jacobian(lambda x: x**2, x, vectorize=True, strategy="forward-mode")
F.jacobian(lambda m: m @ x[:2], m, vectorize=True, strategy="forward-mode")
F.jacobian(lambda x: (x**2).float(), x)
F.jacobian(lambda x: x**2, w, vectorize=True, strategy="forward-mode").requires_grad
F.hessian(lambda x: (x**3).sum(), x)
F.hessian(lambda x: x.prod() ** 2, x)
F.hessian(lambda x, s: (x**3).sum() * s, (x, s))
F.hessian(lambda x: (x**3).sum(), (x,))
F.hessian(lambda x: x.sum(), x)
F.hessian(lambda x: (x**3).sum().reshape(1), x)
F.hessian(lambda x: (x**3).sum(), w, create_graph=True)
F.hessian(lambda x: (x**2).sum(), w, create_graph=True)
F.hessian(lambda x: (x**3).sum(), x, strict=True)
F.hessian(lambda x: (x**3).sum(), x, vectorize=True)
F.hessian(lambda x: (x**3).sum(), x, vectorize=True, **forward).detach()
F.hessian(lambda m: (m @ m).prod(), m, vectorize=True, **forward).detach()
torch.set_grad_enabled(False); y = F.vjp(lambda x: x**2, w, w) ; torch.set_grad_enabled(True) -> y
torch.set_grad_enabled(False); y = F.jacobian(torch.exp, w); torch.set_grad_enabled(True) -> y
w.grad = x.clone(); F.vjp(lambda x: (x * w).sum(), x) -> w.grad
"""

RAISE = """
F.vjp(lambda x: x.mul_(2), w, x, create_graph=True)
F.vjp(lambda x: x**2, x)
F.vjp(lambda x: x**2, x, s)
F.vjp(lambda x: x**2, x, (x, x))
F.vjp(lambda x: (x**2, x), x, (x, s))
F.vjp(lambda x: (x**2, x), x, x)
F.vjp(lambda x: x**2, 3.0, x)
F.vjp(lambda x: x**2, [x], x)
F.vjp(lambda x: x**2, (x, 3), x)
F.vjp(lambda x: x**2, x, 3)
F.vjp(lambda x: x**2, x, (x, 3))
F.vjp(lambda x: 3, x, x)
F.vjp(lambda x: (x, 3), x, x)
F.vjp(lambda x: [x], x, x)
F.vjp(lambda x: x**2, i, i)
F.vjp(lambda x: torch.ones(3), x, x, strict=True)
F.vjp(lambda x, y: x**2, (x, x), x, strict=True)
F.vjp(lambda x: x * 2, x, x, create_graph=True, strict=True)
F.vjp(lambda x: x.mul_(2), x, x)
F.jvp(lambda x: x**2, x)
F.jvp(lambda x: x**2, x, s)
F.jvp(lambda x: x**2, x, (x, x))
F.jvp(lambda x, y: x**2, (x, x), (x,))
F.jvp(lambda x, y: x**2, (x, x), (x, s))
F.jvp(lambda x: 3, x, x)
F.jvp(lambda x: torch.ones(3), x, x, strict=True)
F.jvp(lambda x, y: x**2, (x, x), (x, x), strict=True)
F.jvp(lambda x: (x, w * 1), x, x, strict=True)
F.jvp(lambda x: x * 2, x, x, create_graph=True, strict=True)
F.vhp(lambda x: x**2, x, x)
F.vhp(lambda x: (x.sum(), x), x, x)
F.vhp(lambda x: (x.sum(),), x, x)
F.vhp(lambda x: 3, x, x)
F.vhp(lambda x: x.sum(), x)
F.vhp(lambda x: x.sum(), x, x, strict=True)
F.vhp(lambda x, y: (x**2).sum(), (x, x), (x, x), strict=True)
F.vhp(lambda x: (x * x).sum(), x, x, create_graph=True, strict=True)
F.vhp(lambda x, y: (x**2).sum() + (y * w).sum(), (x, x), (x, x), strict=True)
F.hvp(lambda x: x**2, x, x)
F.hvp(lambda x: (x.sum(), x), x, x)
F.hvp(lambda x: x.sum(), x)
F.hvp(lambda x: x.sum(), x, x, strict=True)
F.hvp(lambda x: (x * x).sum(), x, x, create_graph=True, strict=True)
F.jacobian(lambda x: x**2, 3)
F.jacobian(lambda x: 3, x)
F.jacobian(lambda x: torch.ones(2), x, strict=True)
F.jacobian(lambda x, y: (x, y), (x, x), strict=True)
F.jacobian(lambda x: x * 2, x, create_graph=True, strict=True)
F.jacobian(lambda x: x**2, x, strict=True, vectorize=True)
F.jacobian(lambda x: x**2, x, strategy="forward-mode")
F.jacobian(lambda x: x**2, x, strategy="forward-mode", create_graph=True)
F.jacobian(lambda x: x**2, x, strategy="forward-mode", strict=True)
F.jacobian(lambda x: x**2, x, strategy="sideways")
F.hessian(lambda x: x**2, x)
F.hessian(lambda x: (x.sum(), x), x)
F.hessian(lambda x: 3, x)
F.hessian(lambda x: x.sum(), 3)
F.hessian(lambda x: x.sum(), x, strict=True)
F.hessian(lambda x: torch.ones(()), x, strict=True)
F.hessian(lambda x: (x * x).sum(), x, create_graph=True, strict=True)
F.hessian(lambda x: (x**2).sum(), x, outer_jacobian_strategy="forward-mode")
F.hessian(lambda x: (x**2).sum(), x, outer_jacobian_strategy="sideways")
"""


@pytest.mark.parametrize("line", [line for line in SAME.splitlines() if line])
def test_returns_what_pytorch_returns(torch: ModuleType, line: str) -> None:
    assert described(run(ng, line), 6) == described(run(torch, line), 6)


@pytest.mark.parametrize("line", [line for line in RAISE.splitlines() if line])
def test_raises_what_pytorch_raises(torch: ModuleType, line: str) -> None:
    messages = []
    for library in (torch, ng):
        with pytest.raises(Exception) as caught:
            run(library, line)
        message = str(caught.value).replace("numgrad.Tensor", "torch.Tensor")
        messages.append((type(caught.value).__name__, message))
    assert messages[1] == messages[0]


def test_jacobian_of_an_empty_output_is_empty() -> None:
    found = ng.autograd.functional.jacobian(lambda x: x[:0], ng.ones(3))
    assert found.shape == (0, 3)


def test_function_runs_once_for_a_whole_hessian() -> None:
    calls = []

    def function(x: Any) -> Any:
        calls.append(x)
        return (x**3).sum()

    ng.autograd.functional.hessian(function, ng.ones(5))
    assert len(calls) == 1


@pytest.mark.parametrize("create_graph", [False, True])
def test_products_are_those_with_the_whole_matrix(create_graph: bool) -> None:
    functional = ng.autograd.functional
    rng = np.random.default_rng(3)
    x, v, u = (ng.from_numpy(rng.normal(size=4)) for _ in range(3))

    def function(x: Any) -> Any:
        return (x.exp() * x.cumsum(0)).sin()

    def scalar(x: Any) -> Any:
        return (function(x) ** 2).sum()

    matrix = functional.jacobian(function, x)
    assert np.allclose(functional.jvp(function, x, v, create_graph)[1].detach(), matrix @ v)
    assert np.allclose(functional.vjp(function, x, u, create_graph)[1].detach(), matrix.T @ u)
    second = functional.hessian(scalar, x)
    assert np.allclose(functional.hvp(scalar, x, v, create_graph)[1].detach(), second @ v)
    assert np.allclose(functional.vhp(scalar, x, v, create_graph)[1].detach(), second @ v)


def test_results_with_create_graph_are_differentiable() -> None:
    functional = ng.autograd.functional
    x = ng.tensor([0.3, -0.7, 1.1], dtype=ng.float64, requires_grad=True)
    v = ng.tensor([1.0, 2.0, -1.0], dtype=ng.float64, requires_grad=True)

    def scalar(x: Any) -> Any:
        return (x.sin() * x.prod()).sum()

    for product in (functional.vhp, functional.hvp):
        assert ng.autograd.gradcheck(
            lambda x, v: product(scalar, x, v, create_graph=True)[1],
            (x, v),
        )
    for product in (functional.vjp, functional.jvp):
        assert ng.autograd.gradcheck(
            lambda x, v: product(lambda x: x.sin() * x.prod(), x, v, create_graph=True)[1],
            (x, v),
        )
    assert ng.autograd.gradcheck(lambda x: functional.hessian(scalar, x, create_graph=True), (x,))
