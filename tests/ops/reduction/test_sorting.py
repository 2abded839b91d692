"""Order along a dim where there are many elements."""

from __future__ import annotations

import numpy as np
import pytest

import numgrad as ng


def numbers(dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers with many that are equal, and with nan and infinities if there are such."""
    random = np.random.default_rng(3)
    found = random.integers(-40, 40, shape).astype(dtype)
    if found.dtype.kind == "f":
        found[random.random(shape) < 0.02] = np.nan
        found[random.random(shape) < 0.02] = -np.inf
    return found


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_the_first_k_are_those_that_sort_gives(
    dtype: type, largest: bool, dim: int, k: int
) -> None:
    x = ng.from_numpy(numbers(dtype, (90, 80)))
    values, indices = x.topk(k, dim, largest)
    expected = x.sort(dim, descending=largest).values.narrow(dim, 0, k)
    np.testing.assert_array_equal(values.numpy(), expected.numpy())
    np.testing.assert_array_equal(x.gather(dim, indices).numpy(), values.numpy())
    lines = np.moveaxis(indices.numpy(), dim, 0)
    assert all(len(set(line)) == k for line in lines.reshape(k, -1).T)


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize("k", [1, 30, 80])
def test_the_kth_value_is_that_of_sort(dtype: type, k: int) -> None:
    x = ng.from_numpy(numbers(dtype, (5, 80)))
    values, indices = x.kthvalue(k)
    np.testing.assert_array_equal(values.numpy(), x.sort(1).values[:, k - 1].numpy())
    np.testing.assert_array_equal(x.gather(1, indices[:, None])[:, 0].numpy(), values.numpy())
