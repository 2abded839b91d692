"""Orthogonal polynomials: PyTorch's values, derivatives, degrees of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy import polynomial as polynomials

import numgrad as ng
from numgrad import math
from tests.ops.special.rows import _POLYNOMIALS

# By the name without shift: the polynomial by powers of x.
EXACT = {
    "chebyshev_polynomial_t": lambda n: polynomials.Chebyshev.basis(n),
    "chebyshev_polynomial_u": lambda n: _second_kind(n),
    "chebyshev_polynomial_v": lambda n: _second_kind(n) - _second_kind(n - 1),
    "chebyshev_polynomial_w": lambda n: _second_kind(n) + _second_kind(n - 1),
    "hermite_polynomial_h": polynomials.Hermite.basis,
    "hermite_polynomial_he": polynomials.HermiteE.basis,
    "laguerre_polynomial_l": polynomials.Laguerre.basis,
    "legendre_polynomial_p": polynomials.Legendre.basis,
}


def _second_kind(n: int) -> Any:
    """Return U(n), the slope of T(n + 1) over n + 1."""
    return polynomials.Chebyshev.basis(n + 1).deriv() / max(n + 1, 1)


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_are_pytorchs(torch: Any, dtype: str) -> None:
    x = np.array([0, -0.0, np.inf, -np.inf, 1, -1, 2.5, -3, 0.3, -0.7, 0.99, 1.01, 0.5], dtype)
    tolerance = 1e-12 if dtype == "float64" else 1e-3
    for name in _POLYNOMIALS:
        for n in (-1, 0, 1, 2, 3, 5, 6, 7, 8, 9, 40, 127, 128, 129, 511, 513, 2000, 2.7):
            ours = getattr(ng.special, name)(ng.from_numpy(x), n).numpy()
            theirs = getattr(torch.special, name)(torch.from_numpy(x), n).numpy()
            scale = np.maximum(abs(theirs), 1)
            same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
            with np.errstate(all="ignore"):
                assert (same | (abs(ours - theirs) <= tolerance * n**2 * scale)).all(), (name, n)


def test_operands_promote_as_pytorchs(torch: Any) -> None:
    def calls(m: Any) -> list[Any]:
        f = m.special.legendre_polynomial_p
        x, n = m.tensor([0.25, 0.5], dtype=m.float64), m.tensor([[2], [3]])
        out = m.empty(2, dtype=m.float64)
        return [f(x, n), f(0.5, n), f(x, 2), f(x.float(), n), f(n, n), f(x, 3, out=out)]

    for ours, theirs in zip(calls(ng), calls(torch), strict=True):
        assert repr(ours.dtype) == repr(theirs.dtype)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", _POLYNOMIALS)
def test_three_derivatives_are_exact(name: str) -> None:
    """Those of the polynomials by powers, at the ends of the interval too."""
    points, exact = [0.0, 0.3, 0.75, 1.0], EXACT[name.removeprefix("shifted_")]
    x = ng.tensor(points, dtype=ng.float64, requires_grad=True)
    for n in (0, 1, 2, 5, 8):
        derivative = getattr(ng.special, name)(x, n)
        polynomial = exact(n).convert(kind=polynomials.Polynomial)
        if "shifted" in name:
            polynomial = polynomial(polynomials.Polynomial([-1, 2]))
        for _ in range(4):
            np.testing.assert_allclose(
                derivative.detach().numpy(),
                polynomial(np.array(points)),
                rtol=1e-10,
                atol=1e-10,
                err_msg=str(n),
            )
            (derivative,) = ng.autograd.grad(derivative.sum(), x, create_graph=True)
            polynomial = polynomial.deriv()


def test_degrees_beyond_every_recurrence() -> None:
    """Between -1 and 1 a degree of 10**9 takes no longer than one of 10."""
    x = ng.tensor([0.5], dtype=ng.float64)
    found = ng.special.chebyshev_polynomial_t(x, 3 * 10**9 + 1).item()
    assert abs(found - 0.5) < 1e-5
    assert ng.special.chebyshev_polynomial_u(ng.tensor([1.0]), 10**6).item() == 10**6 + 1


def test_calls_in_compiled_code() -> None:
    assert math.legendre_polynomial_p(0.5, 2.0) == -0.125
    assert math.laguerre_polynomial_l_vjp(1.0, 0.5, 1.0) == -1.0
