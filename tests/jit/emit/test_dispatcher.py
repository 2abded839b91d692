"""The dispatcher of a program, in compiled code."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
from numba import njit

import numgrad as ng
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.run.program import build
from tests.jit import graphs as g


def test_a_gradient_within_a_loop() -> None:
    x = g.given(4)
    y = g.op("mul", x, x)
    gradient = build(Graph([x], [g.reduce("sum", y), g.op("mul", x, 2.0)])).dispatcher

    @njit
    def descend(start: np.ndarray) -> tuple[float, np.ndarray]:
        place, value = start.copy(), 0.0
        for _ in range(200):
            value, slope = gradient(place)
            place -= 0.1 * slope
        return value, place

    value, place = descend(np.ones(4))
    assert isinstance(value, float) and 0 <= value < 1e-12
    assert np.abs(place).max() < 1e-6


def test_other_shapes_and_dtypes_are_refused() -> None:
    x, y = g.given(4), g.given(2, 3)
    dispatcher = build(Graph([x, y], [g.reduce("sum", x), g.op("exp", y)])).dispatcher
    with pytest.raises(TypeError, match="argument 0 must be of float64, as traced, but"):
        dispatcher(np.ones(3, np.int64), np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"argument 1 must have the shape \(2, 3\)"):
        dispatcher(np.ones(4), np.ones((3, 2)))


def test_strided_arguments_and_numbers() -> None:
    x, y = g.given(3, 2), g.given()
    dispatcher = build(Graph([x, y], [g.op("mul", x, y)])).dispatcher
    array = np.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(dispatcher(array, 2.0)[0], 2 * array)


def test_matrix_products() -> None:
    a, b = g.given(3, 4), g.given(4, 2)
    product = Value("matmul", (g.op("exp", a), b), (3, 2), g.F64)
    dispatcher = build(Graph([a, b], [g.reduce("sum", product), product])).dispatcher
    left, right = np.ones((3, 4)), np.arange(8.0).reshape(4, 2)
    total, found = dispatcher(left, right)
    np.testing.assert_allclose(found, np.exp(left) @ right)
    np.testing.assert_allclose(total, found.sum())


def test_memory_in_between_is_there_until_the_last_step_has_read_it() -> None:
    def by_rank(x: Any) -> Any:
        return ng.sort(x * 2 + 1).values

    x = np.random.default_rng(0).random(3000)
    (found,) = ng.jit(by_rank).lower(x).dispatcher(x)
    np.testing.assert_array_equal(found, np.sort(x * 2 + 1))


def test_a_tensor_is_refused_with_the_way_out() -> None:
    dispatcher = ng.jit(lambda x: x.sin()).lower(np.ones(3)).dispatcher

    @njit
    def call(x):  # type: ignore[no-untyped-def]
        return dispatcher(x)

    for function in (dispatcher, call):
        with pytest.raises(
            TypeError, match=r"takes NumPy arrays.* got a Tensor; pass tensor.numpy"
        ):
            function(ng.ones(3, dtype=ng.float64))
        np.testing.assert_allclose(function(np.ones(3))[0], np.sin(np.ones(3)))


@pytest.mark.sampled(0.15, by="name")
@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0), (2, 2)])
@pytest.mark.parametrize("name", ["tril", "diagonal_copy", "flip", "cumsum"])
def test_gradients_of_what_may_have_no_elements(name: str, shape: tuple[int, int]) -> None:
    arguments = {"flip": ((0,),), "cumsum": (0,)}.get(name, ())

    def slope(x: ng.Tensor) -> tuple[ng.Tensor, ng.Tensor]:
        x = x.detach().requires_grad_()
        y = getattr(ng, name)(x, *arguments)
        weights = (ng.arange(y.numel(), dtype=ng.float64) % 7).reshape(y.shape) - 2.5
        return y.detach(), ng.autograd.grad(y, x, weights)[0]

    x = ng.arange(float(np.prod(shape)), dtype=ng.float64).reshape(shape)
    found = ng.jit(slope).lower(x).dispatcher(x.numpy())
    for mine, reference in zip(found, slope(x), strict=True):
        np.testing.assert_array_equal(mine, reference.numpy())


def test_steps_of_the_interpreter_that_are_alike_have_one_helper() -> None:
    """Of eigenvalues of three matrices, eigenvectors, and of batches of them."""

    def function(x: Any, batch: Any) -> Any:
        values = [ng.linalg.eigvalsh(x * k) for k in (1, 2, 3)]
        return *values, ng.linalg.eigvalsh(batch), *ng.linalg.eigh(x)

    drawn = np.random.default_rng(0).standard_normal((2, 6, 6))
    arrays = drawn[0] + drawn[0].T, drawn + drawn.swapaxes(1, 2)
    dispatcher = ng.jit(function).lower(*arrays).dispatcher
    expected = function(*map(ng.from_numpy, arrays))
    for found, other in zip(dispatcher(*arrays), expected, strict=True):
        np.testing.assert_allclose(found, other.numpy(), rtol=1e-12, atol=1e-12)
    lines = linecache.getlines(dispatcher.py_func.__code__.co_filename)
    assert sum("with objmode" in line for line in lines) == 3
