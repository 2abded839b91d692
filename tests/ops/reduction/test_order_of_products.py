"""The order of products: where partial products overflow, the result is PyTorch's, and `jit`'s."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng

Array = np.ndarray[Any, Any]
SEEDS = range(40)


def drawn(seed: int) -> tuple[Array, int | None]:
    """Return numbers of all magnitudes, lying in some way, and over which dim to multiply them."""
    random = np.random.default_rng(seed)
    dtype = (np.float32, np.float64)[seed % 2]
    ndim, size = int(random.integers(1, 4)), int(np.exp(random.uniform(0.0, 8.0)))
    shape = [int(random.choice([1, 2, 3, 5, 17])) for _ in range(ndim - 1)]
    shape.append(max(1, size // int(np.prod(shape))))
    random.shuffle(shape)
    steps = [int(random.choice([1, 1, 1, 2])) for _ in range(ndim)]
    more = [int(random.choice([0, 0, 1])) for _ in range(ndim)]
    whole = [n * step + gap for n, step, gap in zip(shape, steps, more, strict=True)]
    reach = float(random.choice([5.0, 25.0] if dtype is np.float32 else [60.0, 200.0]))
    signs = random.choice([-1.0, 1.0], whole)
    numbers = (10.0 ** random.uniform(-reach, reach, whole) * signs).astype(dtype)
    taken = numbers[tuple([slice(0, n * step, step) for n, step in zip(shape, steps, strict=True)])]
    dims = random.permutation(ndim) if random.random() < 0.5 else np.arange(ndim)
    dim = int(random.integers(-1, ndim))
    return taken.transpose(dims.tolist()), None if dim < 0 else dim


def product(x: Any, dim: int | None) -> Any:
    return x.prod() if dim is None else x.prod(dim)


def one_after_the_other(numbers: Array, total: Any) -> Any:
    for number in numbers:
        total = total * number
    return total


def of_a_run(numbers: Array, total: Any) -> Any:
    """Multiply a run: in four vectors of 32 bytes, as far as these can be filled."""
    width = 32 // numbers.itemsize
    rows = len(numbers) // (4 * width)
    if rows:
        lanes = numbers[: rows * 4 * width].reshape(rows, 4, width)
        vectors = one_after_the_other(lanes[1:], lanes[0])
        pairs = vectors[0] * vectors[1] * (vectors[2] * vectors[3])
        total = total * one_after_the_other(pairs[1:], pairs[0])
    return one_after_the_other(numbers[rows * 4 * width :], total)


def in_order(array: Array, dim: int | None) -> Array:
    """Return the product over a dim, or all, by what lies side by side in memory."""
    dims = [*range(array.ndim)] if dim is None else [dim]
    dims.sort(key=lambda each: -array.strides[each])
    step, run = array.itemsize, 1
    for each in reversed([each for each in dims if array.shape[each] > 1]):
        if array.strides[each] != step:
            break
        run, step = run * array.shape[each], step * array.shape[each]
    others = [each for each in range(array.ndim) if each not in dims]
    shape = [array.shape[each] for each in others]
    rows = array.transpose([*others, *dims]).reshape(int(np.prod(shape)), -1)
    results = np.empty(len(rows), array.dtype)
    for k, row in enumerate(rows):
        total = array.dtype.type(1)
        for part in row.reshape(-1, run):
            total = of_a_run(part, total)
        results[k] = total
    return results.reshape(shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_products_have_the_order_that_is_written_down(seed: int) -> None:
    array, dim = drawn(seed)
    with np.errstate(all="ignore"):
        expected = in_order(array, dim)
    np.testing.assert_array_equal(product(ng.from_numpy(array), dim).numpy(), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_products_that_overflow_on_the_way_are_pytorchs(torch: Any, seed: int) -> None:
    array, dim = drawn(seed)
    expected = product(torch.from_numpy(array), dim).numpy()
    np.testing.assert_array_equal(product(ng.from_numpy(array), dim).numpy(), expected)


@pytest.mark.usefixtures("traced")
@pytest.mark.sampled(0.24)
@pytest.mark.parametrize("seed", SEEDS)
def test_jit_multiplies_in_the_order_of_eager_mode(seed: int) -> None:
    array, dim = drawn(seed)
    x = ng.from_numpy(array)
    expected = product(x, dim).numpy()
    np.testing.assert_array_equal(ng.jit(lambda x: product(x, dim))(x).numpy(), expected)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [3, 8, 16, 100])
def test_complex_products_have_lanes_of_complex_numbers(dtype: Any, n: int) -> None:
    random = np.random.default_rng(n)
    numbers = random.normal(size=(2, n)) + 1j * random.normal(size=(2, n))
    array = numbers.astype(dtype)
    found = ng.from_numpy(array).prod(1).numpy()
    tolerance = 20 * n * np.finfo(dtype).eps
    np.testing.assert_allclose(found, np.prod(numbers, 1), tolerance)


def test_many_rows_and_many_columns_are_multiplied_in_turn() -> None:
    random = np.random.default_rng(0)
    for shape in ((9001, 3), (70, 2100), (5, 130, 33)):
        array = 10.0 ** random.uniform(-60.0, 60.0, shape)
        with np.errstate(all="ignore"):
            expected = np.multiply.accumulate(array, -2)[..., -1, :]
        np.testing.assert_array_equal(ng.from_numpy(array).prod(-2).numpy(), expected)


def test_a_product_of_all_elements_is_one_of_parts() -> None:
    random = np.random.default_rng(0)
    array = np.exp(random.normal(scale=0.01, size=150_001))
    found = ng.from_numpy(array).prod().item()
    assert found == pytest.approx(np.exp(np.log(array).sum()), rel=1e-9)
