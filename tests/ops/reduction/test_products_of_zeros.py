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


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("values", DRAWN, ids=str)
def test_the_gradient_of_a_total_product_is_pytorchs(torch: Any, values: tuple[float, ...]) -> None:
    for found, expected in zip(gradients(ng, values), gradients(torch, values), strict=True):
        np.testing.assert_array_equal(found, expected)


@ng.jit
def compiled(x: Any) -> Any:
    x = x.detach().requires_grad_()
    return ng.autograd.grad(x.prod(), x)[0]


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("values", DRAWN, ids=str)
def test_jit_gives_the_gradient_that_eager_mode_gives(values: tuple[float, ...]) -> None:
    np.testing.assert_array_equal(compiled(ng.tensor(values)).numpy(), gradients(ng, values)[0])


def second(library: Any, x: Any, dim: int | None, weights: Any) -> Any:
    x = x.detach().requires_grad_()
    y = x.prod() if dim is None else x.prod(dim)
    (g,) = library.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = library.autograd.grad((g * weights).sum(), x)
    return h


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("seed", range(8))
def test_zeros_of_second_derivatives_have_pytorchs_signs_eagerly_and_in_jit(
    torch: Any, seed: int
) -> None:
    random = np.random.default_rng(seed)
    signs = []
    for n in (2, 3, 5):
        numbers = random.choice([-2.0, -1.0, 0.0, -0.0, 1.0, 3.0], (n,))
        weights, dim = random.choice([-1.0, 0.0, 1.0, 2.0], n), (None, -1)[n % 2]
        x, w = ng.tensor(numbers), ng.tensor(weights)
        found = [
            second(ng, x, dim, w),
            ng.jit(lambda x, w, dim=dim: second(ng, x, dim, w))(x, w),
            second(torch, torch.tensor(numbers), dim, torch.tensor(weights)),
        ]
        for each in found[:2]:
            np.testing.assert_allclose(each.numpy(), found[2].numpy(), 1e-12, 1e-12)
        zero = found[2].numpy() == 0
        signs.append([np.signbit(each.numpy()[zero]).tolist() for each in found])
    for eager, compiled, expected in signs:
        assert eager == compiled == expected
