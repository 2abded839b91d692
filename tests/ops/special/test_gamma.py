"""Gamma functions beside PyTorch's: values, gradients, nodes, errors; derivatives of any order."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import numgrad as ng
from numgrad import math

CALLS = {
    "lgamma": ("torch.lgamma({x})", "{x}.lgamma()", "torch.special.gammaln({x})"),
    "digamma": ("torch.digamma({x})", "{x}.digamma()", "torch.special.psi({x})"),
    "polygamma": (
        "torch.polygamma(0, {x})",
        "torch.polygamma(2, {x})",
        "{x}.polygamma(3)",
        "torch.special.polygamma(4, {x})",
    ),
    "mvlgamma": (
        "torch.mvlgamma({x} + 2, 3)",
        "({x} + 2).mvlgamma(1)",
        "torch.special.multigammaln({x} + 2, p=4)",
    ),
    "igamma": ("torch.igamma({x}.detach(), {x})", "{x}.detach().igamma({x} * 2)"),
    "igammac": ("torch.igammac({x}.detach(), {x})", "{x}.detach().igammac({x} * 2)"),
}
# PyTorch's derivative of digamma has no more.
TEN_DIGITS = {"digamma": 2e-9, "polygamma": 2e-9}
ERRORS = (
    "torch.polygamma(-1, x)",
    "x.polygamma(-2)",
    "torch.polygamma(1.5, x)",
    "torch.polygamma(x, 1)",
    "torch.mvlgamma(x, 0)",
    "torch.mvlgamma(x)",
    "torch.special.multigammaln(x, -1)",
    "torch.mvlgamma(n > 0, 1)",
    "torch.lgamma(1.0)",
    "torch.lgamma(c)",
    "torch.digamma(c)",
    "torch.polygamma(2, c)",
    "torch.mvlgamma(c, 2)",
    "torch.igamma(n, n)",
    "torch.igammac(x, 1.0)",
    "torch.igamma(c, c)",
    "n.lgamma_()",
    "torch.lgamma(x, out=n.clone())",
)


def test_every_operation_is_tried() -> None:
    assert {*CALLS} <= {*dir(ng.Tensor)}


@pytest.mark.parametrize("name", CALLS)
def test_values_gradients_and_nodes_are_pytorchs(torch: Any, name: str) -> None:
    random = np.random.default_rng(0)
    for call in CALLS[name]:
        for dtype in ("float64", "float32"):
            array = random.uniform(0.1, 12, (4, 5)).astype(dtype)
            found = []
            for library in (ng, torch):
                x = library.from_numpy(array.copy()).requires_grad_()
                y = eval(call.format(x="x"), {"torch": library, "x": x})
                y.sum().backward()
                found.append((y.detach().numpy(), x.grad.numpy(), y.grad_fn.name()))
            (ours, slope, node), (theirs, their_slope, their_node) = found
            assert node == their_node
            assert ours.dtype == theirs.dtype
            rtol = 2e-5 if dtype == "float32" else TEN_DIGITS.get(name, 1e-11)
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)
            np.testing.assert_allclose(slope, their_slope, rtol=rtol, atol=rtol)


def outcome(library: Any, call: str) -> Any:
    names = {"torch": library, "x": library.tensor([0.5, 2.5]), "n": library.tensor([1, 2])}
    names["c"] = library.tensor([1.0 + 1.0j])
    try:
        eval(call, names)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return type(error).__name__, str(error).partition(" but expected one of")[0]
    return None


def test_errors_are_pytorchs(torch: Any) -> None:
    for call in ERRORS:
        wanted = outcome(torch, call)
        assert wanted is not None
        assert outcome(ng, call) == wanted


def test_dtypes_are_pytorchs(torch: Any) -> None:
    for kind in ("float16", "float32", "int32", "uint8", "bool"):
        for call in ("lgamma(x)", "digamma(x)", "polygamma(2, x)", "mvlgamma(x, 1)"):
            if call[0] == "m" and kind == "bool":
                continue
            results = [
                eval(f"lib.{call}", {"lib": lib, "x": lib.ones(2, dtype=getattr(lib, kind))})
                for lib in (ng, torch)
            ]
            assert repr(results[0].dtype) == repr(results[1].dtype)
            wanted = results[1].double().numpy()
            np.testing.assert_allclose(results[0].double().numpy(), wanted, rtol=1e-3, atol=1e-6)


def test_derivatives_of_lgamma_of_any_order_are_those_of_mathematics() -> None:
    x = ng.tensor([0.75, 3.5, -1.25], dtype=ng.float64, requires_grad=True)
    y = ng.lgamma(x)
    for order in range(5):
        (y,) = ng.autograd.grad(y.sum(), x, create_graph=True)
        wanted = [float(mpmath.polygamma(order, v)) for v in x.tolist()]
        np.testing.assert_allclose(y.detach().numpy(), wanted, rtol=1e-13)


def test_in_place_and_with_out() -> None:
    x = ng.tensor([0.5, 2.5])
    out = ng.empty(2)
    ng.polygamma(2, x, out=out)
    assert out.equal(x.clone().polygamma_(2))
    ng.mvlgamma(x + 2, 3, out=out)
    assert out.equal((x + 2).mvlgamma_(3))
    assert x.clone().igamma_(x).equal(ng.igamma(x, x))


@pytest.mark.parametrize("name", ["igamma", "igammac", "beta", "betaln"])
def test_derivatives_for_both_arguments_are_those_of_differences(name: str) -> None:
    function = getattr(ng, name, None) or getattr(ng.special, name)
    random = np.random.default_rng(1)
    a, x = (ng.from_numpy(random.uniform(0.3, 60, 40)).requires_grad_() for _ in range(2))
    assert ng.autograd.gradcheck(function, (a, x))
    assert ng.autograd.gradgradcheck(function, (a, x), atol=1e-4)
    assert ng.autograd.gradcheck(function, (a, x.detach()), check_forward_ad=True)


def test_a_third_derivative_for_the_first_argument_is_refused() -> None:
    a = ng.tensor([2.0], requires_grad=True)
    y = ng.igamma(a, ng.tensor([1.5]))
    for _ in range(2):
        (y,) = ng.autograd.grad(y.sum(), a, create_graph=True)
    with pytest.raises(RuntimeError, match="derivative for aten::igamma_bend is not implemented"):
        y.sum().backward()


def test_functions_of_numbers() -> None:
    assert math.lgamma(1.0) == 0.0
    assert math.polygamma(1.0, 1) == pytest.approx(np.pi**2 / 6, rel=1e-15)
    assert math.igamma(1.0, 2.0) == pytest.approx(-np.expm1(-2.0), rel=1e-15)
    slope, density = math.igamma_vjp(1.0, 1.0, 2.0)
    assert density == pytest.approx(np.exp(-2.0), rel=1e-15)
    assert slope == pytest.approx(float(mpmath.diff(lambda a: mpmath.gammainc(a, 0, 2, True), 1)))
