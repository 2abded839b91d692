"""Softmax and the gradients beside it: the formulas, in blocks and in parts, and special values."""

from __future__ import annotations

import math
from types import ModuleType

import numba
import numpy as np
import pytest

from numgrad.kernels import softmax as kernels
from numgrad.kernels.reduce.order import PART, TILE

# What fits in the cache as a block; what is too long for that; what is too wide.
SHAPES = {
    "rows": (70, 300),
    "cube": (7, 30, 5),
    "long": (2, PART + 3),
    "columns": (700, 130),
    "wide": (3, TILE + 5),
    "one": (1,),
    "scalar": (),
}


def exact_softmax(array: np.ndarray, dim: int) -> np.ndarray:
    wide = array.astype(np.float64)
    if wide.ndim == 0:
        return np.ones(())
    powers = np.exp(wide - wide.max(dim, keepdims=True))
    return powers / powers.sum(dim, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_softmax_and_its_logarithm(shape: tuple[int, ...], dtype: type) -> None:
    array = np.asarray(np.random.default_rng(0).normal(0, 4, shape), dtype)
    eps = np.finfo(dtype).eps
    for dim in range(max(1, array.ndim)):
        exact = exact_softmax(array, dim)
        found = kernels.softmax(array, dim)
        logarithm = kernels.log_softmax(array, dim)
        assert found.dtype == logarithm.dtype == dtype
        np.testing.assert_allclose(found, exact, rtol=64 * eps)
        np.testing.assert_allclose(logarithm, np.log(exact), rtol=16 * eps, atol=32 * eps)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_gradients(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(1)
    g, x = np.asarray(generator.normal(size=shape)), np.asarray(generator.normal(size=shape))
    for dim in range(max(1, x.ndim)):
        axis = dim if x.ndim else None
        y = exact_softmax(x, dim)
        expected = y * (g - np.sum(g * y, axis, keepdims=True))
        np.testing.assert_allclose(kernels.softmax_gradient(g, y, dim), expected, atol=1e-13)
        expected = g - y * np.sum(g, axis, keepdims=True)
        found = kernels.log_softmax_gradient(g, np.log(y), dim)
        np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_gradient_of_logsumexp(dims: tuple[int, ...], keepdim: bool) -> None:
    generator = np.random.default_rng(2)
    x = generator.normal(size=(5, 4, 3)).transpose(2, 0, 1)
    y = np.log(np.exp(x).sum(dims, keepdims=True))
    g = generator.normal(size=y.shape)
    expected = g * np.exp(x - y)
    if not keepdim:
        g, y = g.squeeze(dims), y.squeeze(dims)
    np.testing.assert_allclose(kernels.logsumexp_gradient(g, x, y, dims), expected, rtol=1e-14)


@pytest.mark.parametrize("length", [1, 4, 300, PART + 1])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 3e38, -3e38])
@pytest.mark.parametrize("everywhere", [False, True])
def test_special_values_are_pytorchs(
    length: int, value: float, everywhere: bool, torch: ModuleType
) -> None:
    array = np.zeros(length, np.float32)
    array[: None if everywhere else 1] = value
    tensor = torch.from_numpy(array)
    np.testing.assert_allclose(kernels.softmax(array, 0), tensor.softmax(0).numpy(), rtol=1e-5)
    found = kernels.log_softmax(array, 0)
    np.testing.assert_allclose(found, tensor.log_softmax(0).numpy(), rtol=1e-5)


def test_nothing_gives_nothing() -> None:
    empty = np.zeros((3, 0, 2), np.float32)
    for dim in range(3):
        assert kernels.softmax(empty, dim).shape == empty.shape
        assert kernels.log_softmax_gradient(empty, empty, dim).shape == empty.shape


@pytest.mark.parametrize("way", ["rows", "columns"])
@pytest.mark.parametrize("name", ["_SHARE", "_SCALED_EXPONENTIAL", "_LOG_SHARE"])
def test_float32_stays_float32_in_vector_registers(name: str, way: str) -> None:
    dispatcher = numba.njit(error_model="numpy")(getattr(getattr(kernels, name), way).py_func)
    array = numba.types.Array(numba.float32, 1, "C")
    dispatcher.compile((*[array] * 5, *[numba.int64] * 5))
    code = "".join(dispatcher.inspect_llvm().values())
    assert " fpext " not in code
    assert " x float> " in code
