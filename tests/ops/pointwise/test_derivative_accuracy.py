"""Derivatives of scalar functions to the last digits: finite differences see half of them only.

The tails, where a formula may cancel or overflow, have tests of their own (`test_tails`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd import grad

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sinc": lambda x: mpmath.sinc(mpmath.pi * x),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "logsigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log1p": lambda x: mpmath.log1p(x),
    **{
        name: getattr(mpmath, name)
        for name in ("erf", "erfc", "expm1", "exp", "asinh", "atan", "sin", "cos", "tan")
    },
    **{name: getattr(mpmath, name) for name in ("sinh", "cosh", "tanh")},
}
SMALL = 10.0 ** np.arange(-9, 0)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_first_and_second_derivative_are_exact_but_for_roundings(name: str) -> None:
    function = FUNCTIONS[name]
    points = np.concatenate([np.linspace(-4, 4, 31) + 0.013, SMALL, -SMALL])
    if name == "log1p":
        points = np.abs(points)
    x = ng.from_numpy(points).requires_grad_()
    (first,) = grad(getattr(ng, name)(x).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    with mpmath.workdps(40):
        for order, found in ((1, first), (2, second)):
            exact = [float(mpmath.diff(function, mpmath.mpf(p), order)) for p in points.tolist()]
            np.testing.assert_allclose(found.numpy(force=True), exact, rtol=1e-14, atol=3e-15)
