"""Reductions of few elements to each of many results are written out, and change no bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng

SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((40, 2), -1),
    ((5, 9, 3), -1),
    ((16, 33), 0),  # more lanes than rows
    ((11, 600), 0),  # one lane
    ((7, 3, 130), 1),  # fewer lanes than rows
    ((64, 2, 1, 5), (1, 3)),
    ((2, 3, 1, 40), (0, 1)),
    ((3, 50, 4), (0, 2)),  # a group after the other
]
REAL = ("sum", "prod", "amax", "amin", "any", "all", "mean", "var")


def _numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(len(shape) + shape[0])
    values = random.standard_normal(shape) * 3
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
        values.flat[::7] = complex(-0.0, -0.0)
        values.flat[3::11] = complex(np.inf, -0.0)
        values[..., :1] = complex(-0.0, -0.0)
    array = values.astype(dtype)
    if dtype.startswith("float"):
        special = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
        array = np.where(random.random(shape) < 0.2, special, array).astype(dtype)
        array[..., :1] = -0.0
    return array


def _reductions(dims: Any, names: tuple[str, ...]) -> Any:
    def reduced(x: Any) -> Any:
        y = x * 2 if x.dtype != ng.bool else ~x
        found = [x.sum(dims)]
        for name in names:
            of_one = name in ("prod", "any", "all") and isinstance(dims, tuple)
            operand = y
            for dim in sorted(dims, reverse=True) if of_one else [dims]:
                operand = getattr(operand, name)(dim)
            found.append(operand)
        return tuple(found)

    return reduced


@pytest.mark.sampled(0.09)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "bool"])
@pytest.mark.parametrize(("shape", "dims"), SHAPES, ids=str)
def test_the_bits_are_those_of_eager_mode(shape: tuple[int, ...], dims: Any, dtype: str) -> None:
    names: tuple[str, ...] = REAL
    if dtype.startswith("complex"):
        names = ("sum", "prod", "mean")
    elif dtype in ("int64", "bool"):
        names = REAL[:6]
    x = ng.from_numpy(_numbers(shape, dtype))
    function = _reductions(dims, names)
    for compiled, eager in zip(ng.jit(function)(x), function(x), strict=True):
        left, right = compiled.numpy(), eager.numpy()
        assert left.dtype == right.dtype
        is_nan = np.isnan(left)
        np.testing.assert_array_equal(is_nan, np.isnan(right))
        np.testing.assert_array_equal(left[~is_nan].view(np.uint8), right[~is_nan].view(np.uint8))


def _distances(x: Any) -> Any:
    return (-((x[:, None] - x[None]) ** 2).sum(-1)).exp()


@pytest.mark.parametrize("size", [2, 3, 16])
def test_distances_of_all_pairs_are_one_loop_over_them(size: int) -> None:
    """Nothing is called for the few elements of each sum, and nothing between loops is stored."""
    x = ng.from_numpy(np.random.default_rng(0).standard_normal((40, size)))
    lowered = ng.jit(_distances).lower(x)
    assert " reduce(" not in str(lowered.graph)
    assert "run_sum" not in lowered.source
    assert lowered.source.count("for item in") == 1
    assert ng.equal(ng.jit(_distances)(x), _distances(x))


def test_gradients_are_eager_ones() -> None:
    x = ng.from_numpy(np.random.default_rng(1).standard_normal((40, 3)))

    def loss(x: Any) -> Any:
        return (x / (x * x).sum(-1, keepdim=True).sqrt() * _distances(x).sum(-1)[:, None]).sum()

    gradient = ng.func.grad(loss)
    np.testing.assert_allclose(ng.jit(gradient)(x), gradient(x), rtol=1e-12, atol=1e-13)


def test_long_and_few_results_are_left_as_they_are() -> None:
    """They are loops, where they are that already: nothing is gained by writing them out."""
    long, few = ng.ones(40, 17), ng.ones(31, 4)
    for x in (long, few, ng.ones(32, 16)):
        is_left = " reduce(" in str(ng.jit(lambda x: (x * 2).sum(-1)).lower(x).graph)
        assert is_left == (x is long or x is few)
