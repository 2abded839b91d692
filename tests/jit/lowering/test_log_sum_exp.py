"""Log-sum-exp under `jit`: a maximum, a sum of exponentials, a logarithm; with eager bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng

CASES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((5,), (0,)),
    ((10, 7), (1,)),
    ((3, 40, 5), (0, 1)),
    ((3, 40, 5), (0, 2)),  # with dims in between: a call of eager mode's kernel
    ((70_000,), (0,)),  # of several parts: the same
]


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize(("shape", "dims"), CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_and_gradients_have_eager_bits(
    shape: tuple[int, ...], dims: tuple[int, ...], dtype: str
) -> None:
    numbers = 3 * np.random.default_rng(0).standard_normal(shape)
    numbers.flat[:3] = np.inf, -np.inf, -800.0
    numbers[-1] = -np.inf
    x = ng.tensor(numbers.astype(dtype))

    def both(x: Any) -> Any:
        return ng.logsumexp(x, dims), ng.func.grad(lambda x: ng.logsumexp(x, dims).sin().sum())(x)

    for ours, expected in zip(ng.jit(both)(x), both(x), strict=True):
        assert np.array_equal(ours.numpy(), expected.numpy(), equal_nan=True)


def test_it_is_fused_where_it_is_one_part() -> None:
    def calls(x: Any) -> bool:
        graph = ng.jit(lambda x: ng.logsumexp(x * x, 0) + 1).lower(x).graph
        return any(value.operation == "call" for value in graph.values())

    assert not calls(np.ones(100))
    assert calls(np.ones(70_000))
