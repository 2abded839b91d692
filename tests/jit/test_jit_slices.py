"""Gradients of slices, and joins of parts: no zeros are filled in, and one loop does it all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import numgrad as ng

Array = np.ndarray[Any, Any]


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def chain(x: Any) -> Any:
    return (x[2:] * x[1:-1] - x[:-2]).sin().sum() + x[0] * x[-1]


def membrane(u: Any) -> Any:
    return ((u[1:, :] - u[:-1, :]) ** 2).sum() + ((u[:, 1:] - u[:, :-1]) ** 2).sum()


def inside(u: Any) -> Any:
    return (u[1:-1, 1:-1] * u[2:, 1:-1] + u[1:-1, :-2]).sum()


def wrapped(x: Any) -> Any:
    around = ng.cat([x[-1:], x, x[:1]])
    return ((around[2:] - 2 * x + around[:-2]) ** 2).sum()


def numbers(*shape: int) -> Array:
    found = np.random.default_rng(3).normal(size=shape)
    found.reshape(-1)[::3] = 0.0  # whose products are zeros of both signs
    return found


def bits(tensor: Any) -> Array:
    return np.ascontiguousarray(tensor.numpy()).view(np.uint8)


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (rosenbrock, (2,)),
        (rosenbrock, (3,)),
        (rosenbrock, (7,)),
        (rosenbrock, (2500,)),
        (chain, (3,)),
        (chain, (40,)),
        (membrane, (2, 2)),
        (membrane, (5, 7)),
        (inside, (4, 6)),
        (wrapped, (3,)),
        (wrapped, (1500,)),
    ],
)
def test_gradients_of_slices_have_the_bits_of_eager_mode(
    function: Callable[[Any], Any], shape: tuple[int, ...]
) -> None:
    x = numbers(*shape)
    _, wanted = ng.func.value_and_grad(function)(ng.tensor(x))
    _, found = ng.jit(ng.func.value_and_grad(function))(x)
    np.testing.assert_array_equal(bits(found), bits(wanted))


@pytest.mark.parametrize("size", [2, 5, 1000, 5000])
def test_rosenbrock_with_its_gradient_is_one_loop(size: int) -> None:
    lowered = ng.jit(ng.func.value_and_grad(rosenbrock)).lower(numbers(size))
    assert lowered.cost().fused == 1
    assert "update" not in str(lowered.graph)


def test_a_hessian_vector_product_of_slices_fills_no_zeros() -> None:
    product = ng.jit(lambda x, v: ng.func.hvp(rosenbrock, (x,), (v,)))
    x, v = numbers(9), numbers(9) + 1
    graph = str(product.lower(x, v).graph)
    assert "update" not in graph
    wanted = ng.func.hvp(rosenbrock, (ng.tensor(x),), (ng.tensor(v),))
    for one, other in zip(product(x, v), wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-13)


@pytest.mark.parametrize("join", [ng.cat, ng.stack])
def test_parts_are_written_where_they_belong(join: Any) -> None:
    def joined(a: Any, b: Any) -> Any:
        return join([a.exp(), b * 2, a - b], 1)

    a, b = numbers(3, 4), numbers(3, 4) + 1
    lowered = ng.jit(joined).lower(a, b)
    assert lowered.cost().fused == 1
    found, wanted = ng.jit(joined)(a, b), joined(ng.tensor(a), ng.tensor(b))
    np.testing.assert_array_equal(bits(found), bits(wanted))


def test_parts_of_other_dtypes_and_of_no_elements_are_joined() -> None:
    def joined(a: Any, b: Any) -> Any:
        return ng.cat([a, b, ng.zeros(0), a[:0]]) + 1

    a, b = np.arange(3), np.array([0.5, -0.0], np.float32)
    found, wanted = ng.jit(joined)(a, b), joined(ng.tensor(a), ng.tensor(b))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(bits(found), bits(wanted))


def test_threads_do_not_change_a_bit() -> None:
    function = ng.jit(ng.func.value_and_grad(rosenbrock))
    x = numbers(700_000)
    before = ng.get_num_threads()
    try:
        ng.set_num_threads(1)
        one = function(x)
        ng.set_num_threads(2)
        two = function(x)
    finally:
        ng.set_num_threads(before)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(bits(a), bits(b))


@pytest.mark.parametrize("size", [4, 3000])
def test_a_dispatcher_has_the_same_bits_in_compiled_code(size: int) -> None:
    x = numbers(size)
    function = ng.jit(ng.func.value_and_grad(rosenbrock))
    dispatcher = function.lower(x).dispatcher

    @njit
    def twice(x: Array) -> Any:
        value, gradient = dispatcher(x)
        return value, gradient, dispatcher(gradient)[1]

    value, gradient, second = twice(x)
    assert value == function(x)[0].item()
    np.testing.assert_array_equal(gradient, function(x)[1].numpy())
    np.testing.assert_array_equal(second, function(gradient)[1].numpy())


def test_writes_to_slices_of_a_tensor_of_its_own_are_one_loop() -> None:
    def bordered(x: Any) -> Any:
        y = x * 2
        y[0] = 1
        y[-1] = x[1]
        return y + x

    x = numbers(3000)
    lowered = ng.jit(bordered).lower(x)
    assert "update" not in str(lowered.graph)
    assert lowered.cost().fused == 1
    np.testing.assert_array_equal(bits(ng.jit(bordered)(x)), bits(bordered(ng.tensor(x))))
