"""NumPy's polynomials of tensors: right, with their gradients, or an error; never a constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial, chebyshev, hermite, legendre, polynomial

import numgrad as ng

COEFFICIENTS = [1.0, 2.0, 3.0]
# Evaluated by NumPy's operators alone, which are the tensor's.
FOLLOWED: dict[str, Callable[[Any], Any]] = {
    "polyval": lambda x: polynomial.polyval(x, COEFFICIENTS),
    "chebval": lambda x: chebyshev.chebval(x, COEFFICIENTS),
    "legval": lambda x: legendre.legval(x, COEFFICIENTS),
    "hermval": lambda x: hermite.hermval(x, COEFFICIENTS),
}
# These convert what they are given.
CONVERTED: dict[str, Callable[[Any], Any]] = {
    "call": lambda x: Polynomial(COEFFICIENTS)(x),
    "coefficients": lambda x: Polynomial(x)(2.0),
    "polyval of coefficients": lambda x: polynomial.polyval(1.5, x),
    "polyadd": lambda x: polynomial.polyadd(x, COEFFICIENTS),
    "polyvander": lambda x: polynomial.polyvander(x, 2),
    "polyroots": lambda x: polynomial.polyroots(x),
    "polyfit": lambda x: polynomial.polyfit(x, x, 1),
    "times": lambda x: Polynomial(COEFFICIENTS) * x,
    "np.polyval": lambda x: np.polyval(COEFFICIENTS, x),
    "poly1d": lambda x: np.poly1d(COEFFICIENTS)(x),
}
x = ng.tensor([0.5, 2.0], dtype=ng.float64)


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_is_evaluated_by_operators_is_differentiated_and_compiled(name: str) -> None:
    function = FOLLOWED[name]
    wanted = function(x.numpy())
    for compiled in (function, ng.jit(function)):
        assert np.allclose(compiled(x).numpy(), wanted)
        slope = (function(x.numpy() + 1e-6) - function(x.numpy() - 1e-6)) / 2e-6
        found = ng.func.grad(lambda x, f=compiled: f(x).sum())(x)
        assert np.allclose(found.numpy(), slope)


@pytest.mark.parametrize("name", CONVERTED)
def test_what_is_converted_is_refused_where_a_derivative_would_be_lost(name: str) -> None:
    function = CONVERTED[name]
    with pytest.raises((RuntimeError, TypeError)):
        function(x.clone().requires_grad_())
    with pytest.raises((RuntimeError, TypeError)):
        ng.func.grad(lambda x: ng.asarray(function(x)).sum())(x)
    with pytest.raises((ng.TraceError, TypeError)):
        ng.jit(function)(x)
