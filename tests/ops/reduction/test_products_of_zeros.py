"""Gradients of total products with zeros, infinities and nan, in all ways of asking for them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import numgrad as ng

VALUES = (0.0, 2.0, float("nan"), float("inf"), -0.0)
DRAWN = [values for length in (1, 2, 3) for values in itertools.product(VALUES, repeat=length)]


def gradients(library: Any, values: tuple[float, ...]) -> list[Any]:
    """Return the gradients of the product of a vector, a matrix, and what is expanded."""
    found = []
    for create_graph in (False, True):
        for shape in ((-1,), (1, -1)):
            x = library.tensor(values, requires_grad=True)
            y = x.reshape(shape)
            found += library.autograd.grad(y.prod(), x, create_graph=create_graph)
        x = library.tensor(values, requires_grad=True)
        found += library.autograd.grad(x.expand(2, -1).prod(), x, create_graph=create_graph)
    return [each.detach().numpy() for each in found]


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("values", DRAWN, ids=str)
def test_the_gradient_of_a_total_product_is_pytorchs(torch: Any, values: tuple[float, ...]) -> None:
    for found, expected in zip(gradients(ng, values), gradients(torch, values), strict=True):
        np.testing.assert_array_equal(found, expected)


@ng.jit
def compiled(x: Any) -> Any:
    x = x.detach().requires_grad_()
    return ng.autograd.grad(x.prod(), x)[0]


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("values", DRAWN, ids=str)
def test_jit_gives_the_gradient_that_eager_mode_gives(values: tuple[float, ...]) -> None:
    np.testing.assert_array_equal(compiled(ng.tensor(values)).numpy(), gradients(ng, values)[0])
