"""Bessel functions: PyTorch's values, waves against mpmath, identities, derivatives."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import numgrad as ng
from numgrad import math
from tests.ops.special.rows import _UNARY, _WAVES

EXACT = {
    "bessel_j0": lambda x: mpmath.besselj(0, x),
    "bessel_j1": lambda x: mpmath.besselj(1, x),
    "bessel_y0": lambda x: mpmath.bessely(0, x),
    "bessel_y1": lambda x: mpmath.bessely(1, x),
}


def tensor(values: Any, requires_grad: bool = False) -> Any:
    return ng.tensor(values, dtype=ng.float64, requires_grad=requires_grad)


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_drawn_values_are_pytorchs(torch: Any, dtype: str) -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.uniform(-20, 20, 200), random.uniform(0, 1, 100)]).astype(dtype)
    for name in _UNARY:
        ours = getattr(ng.special, name)(ng.from_numpy(x)).numpy()
        theirs = getattr(torch.special, name)(torch.from_numpy(x)).numpy()
        # As many digits as PyTorch's have.
        rtol, atol = (3e-5, 3e-6) if dtype == "float32" else (1e-11, 1e-14)
        atol = 1e-6 if name in _WAVES else atol
        atol = 3e-6 if name == "airy_ai" else atol  # which PyTorch has to 8 digits
        np.testing.assert_allclose(ours, theirs, rtol, atol, err_msg=name)


@pytest.mark.parametrize("name", _WAVES)
def test_waves_at_large_arguments(name: str) -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.uniform(10, 40, 40), 10.0 ** random.uniform(1, 15, 40)])
    found = getattr(ng.special, name)(tensor(x)).numpy()
    with mpmath.workdps(40):
        exact = np.array([float(EXACT[name](mpmath.mpf(v))) for v in x.tolist()])
    assert (abs(found - exact) <= 8e-16 / np.sqrt(x)).all()


def test_wronskians() -> None:
    """DLMF 10.5.2 and 10.28.2."""
    x = tensor(np.linspace(0.05, 60, 500))
    s = ng.special
    waves = s.bessel_j1(x) * s.bessel_y0(x) - s.bessel_j0(x) * s.bessel_y1(x)
    np.testing.assert_allclose((waves * x).numpy(), 2 / np.pi, rtol=2e-14)
    i0, i1, k0, k1 = (
        s.i0e(x),
        s.i1e(x),
        *[getattr(s, f"scaled_modified_bessel_k{n}")(x) for n in (0, 1)],
    )
    np.testing.assert_allclose(((i0 * k1 + i1 * k0) * x).numpy(), 1, rtol=2e-15)


@pytest.mark.parametrize("name", ["bessel_j1", "modified_bessel_i1", "i1", "spherical_bessel_j0"])
def test_derivatives_at_0(name: str) -> None:
    slopes = {"spherical_bessel_j0": [0.0, -1 / 3]}.get(name, [0.5, 0.0])
    x = tensor([0.0, 1e-200], True)
    found = getattr(ng.special, name)(x)
    for slope in slopes:
        (found,) = ng.autograd.grad(found.sum(), x, create_graph=True)
        np.testing.assert_allclose(found.detach().numpy(), slope, rtol=1e-14, atol=1e-100)


def test_slope_of_the_spherical_one_keeps_its_digits() -> None:
    points = [1e-8, 1e-3, 0.3, 0.4999, 0.5, 0.7, 3.0, 30.0]
    x = tensor(points, True)
    ng.special.spherical_bessel_j0(x).sum().backward()
    with mpmath.workdps(40):
        exact = [float((mpmath.cos(v) - mpmath.sin(v) / v) / v) for v in map(mpmath.mpf, points)]
    np.testing.assert_allclose(x.grad.numpy(), exact, rtol=5e-15)


def test_bessels_equation_by_second_derivatives() -> None:
    """x**2 y'' + x y' + (x**2 - n**2) y = 0, and with the other sign for modified functions."""
    for name in [*_WAVES, *[f"modified_bessel_{k}{n}" for k in "ik" for n in (0, 1)]]:
        x = tensor(np.linspace(0.3, 25, 40), True)
        y = getattr(ng.special, name)(x)
        (first,) = ng.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = ng.autograd.grad(first.sum(), x)
        order, sign = int(name[-1]), -1 if "modified" in name else 1
        terms = [x * x * second, x * first, sign * x * x * y, -(order**2) * y]
        size = sum(term.abs() for term in terms).detach().numpy()
        assert (abs(sum(terms).detach().numpy()) <= 1e-13 * size).all(), name


def test_calls_in_compiled_code() -> None:
    assert math.bessel_j0(2.0) == ng.special.bessel_j0(tensor(2.0)).item()
    assert math.modified_bessel_k1_vjp(1.0, 2.0) < 0
    assert math.ndtri(0.5) == 0.0
