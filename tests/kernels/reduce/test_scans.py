"""Scans: against NumPy and PyTorch, forwards and backwards, at every layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from numgrad.kernels.reduce import scans
from numgrad.kernels.reduce.order import TILE
from numgrad.runtime.threads import get_num_threads, set_num_threads

REAL = ["bool", "uint8", "int32", "int64", "float32", "float64"]
EVERY = [*REAL, "complex64", "complex128"]
VALUES = [-2.0, -1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.25, 2.0]


@st.composite
def cases(draw: st.DrawFn, dtypes: list[str]) -> tuple[np.ndarray, int]:
    """Draw an array, transposed, reversed, strided or broadcast, and a dim of it."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9))
    element = st.sampled_from(VALUES)
    if dtype.kind == "c":
        element = st.builds(complex, element, element)
    elif dtype.kind in "biu":
        element = st.integers(0, 1 if dtype.kind == "b" else 200)
    array = draw(hnp.arrays(dtype, shape, elements=element))
    order = draw(st.permutations(range(len(shape))))
    array = array.transpose(order)
    array = array[tuple(slice(None, None, draw(st.sampled_from([1, -1, 2]))) for _ in shape)]
    if draw(st.booleans()):
        array = np.broadcast_to(array, (draw(st.integers(0, 3)), *array.shape))
    return array, draw(st.integers(0, array.ndim - 1)) if array.ndim else 0


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


def reference(scan: Any, array: np.ndarray, dim: int, reverse: bool) -> np.ndarray:
    """Return NumPy's scan, in float64 for float32, as PyTorch's is."""
    carried = {"float32": "float64", "complex64": "complex128"}
    if array.dtype.kind in "biu":
        dtype, wide = np.dtype(np.int64), np.dtype(np.int64)
    else:
        dtype, wide = array.dtype, np.dtype(carried.get(array.dtype.name, array.dtype.name))
    data = array.reshape(1) if array.ndim == 0 else array
    data = np.flip(data, dim) if reverse else data
    result = scan(data.astype(wide), dim).astype(dtype)
    return (np.flip(result, dim) if reverse else result).reshape(array.shape)


@pytest.mark.parametrize("reverse", [False, True])
@given(case=cases(EVERY))
def test_cumsum_is_the_running_sum(reverse: bool, case: tuple[np.ndarray, int]) -> None:
    array, dim = case
    result = scans.cumsum(array, dim, reverse=reverse)
    expected = reference(np.cumsum, array, dim, reverse)
    assert result.flags.c_contiguous
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("reverse", [False, True])
@given(case=cases(EVERY))
def test_cumprod_is_the_running_product(reverse: bool, case: tuple[np.ndarray, int]) -> None:
    array, dim = case
    result = scans.cumprod(array, dim, reverse=reverse)
    expected = reference(np.cumprod, array, dim, reverse)
    assert result.flags.c_contiguous
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@given(case=cases(REAL))
def test_extremes_are_the_last_best_so_far(name: str, case: tuple[np.ndarray, int]) -> None:
    array, dim = case
    values, indices = getattr(scans, name)(array, dim)
    accumulate = np.maximum.accumulate if name == "cummax" else np.minimum.accumulate
    data = array.reshape(1) if array.ndim == 0 else array
    expected = accumulate(data, dim).reshape(array.shape)
    assert (values.dtype, indices.dtype) == (array.dtype, np.dtype(np.int64))
    np.testing.assert_array_equal(values, expected)
    # An index moves to every element that equals the best, and to no other.
    positions = np.arange(data.shape[dim]).reshape([-1] + [1] * (data.ndim - dim - 1))
    ties = np.where(data == expected.reshape(data.shape), positions, 0)
    last = np.maximum.accumulate(ties, dim).reshape(array.shape)
    np.testing.assert_array_equal(indices, last)


SPECIAL = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 3e38, 1e-45]


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@given(values=st.lists(st.sampled_from(SPECIAL), min_size=1, max_size=40))
def test_special_values_are_pytorchs(name: str, values: list[float], torch: ModuleType) -> None:
    for array in (np.array(values, np.float32), np.array([values, values[::-1]], np.float32).T):
        ours = getattr(scans, name)(array, 0)
        theirs = getattr(torch.tensor(array), name)(0)
        if name in ("cumsum", "cumprod"):
            ours, theirs = (ours,), (theirs,)
        for result, expected in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(result, expected.numpy())
            zero = result == 0
            np.testing.assert_array_equal(
                np.signbit(result)[zero], np.signbit(expected.numpy())[zero]
            )


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dim", [0, 1])
def test_float32_has_the_bits_of_pytorch(name: str, dim: int, torch: ModuleType) -> None:
    array = np.random.default_rng(0).standard_normal((700, 90)).astype(np.float32)
    ours = getattr(scans, name)(array, dim)
    theirs = getattr(torch.from_numpy(array), name)(dim)
    assert ours.tobytes() == theirs.contiguous().numpy().tobytes()


def test_rounding_errors_do_not_grow() -> None:
    array = np.full(3_000_000, 0.1, np.float32)
    exact = float(array[0]) * np.arange(1, array.size + 1)
    np.testing.assert_allclose(scans.cumsum(array, 0), exact, rtol=np.finfo(np.float32).eps)


@pytest.mark.parametrize("inner", [TILE - 1, TILE, TILE + 1, 2 * TILE + 3])
def test_many_columns(inner: int) -> None:
    array = np.random.default_rng(inner).integers(-9, 9, (2, 5, inner))
    np.testing.assert_array_equal(scans.cumsum(array, 1), np.cumsum(array, 1))
    np.testing.assert_array_equal(scans.cummax(array, 1)[0], np.maximum.accumulate(array, 1))


def test_a_scan_leaves_its_argument_alone() -> None:
    array = np.arange(6.0).reshape(2, 3)
    before = array.copy()
    array.flags.writeable = False
    for result in (scans.cumsum(array, 0), scans.cumprod(array, 1), *scans.cummin(array, 0)):
        assert not np.shares_memory(result, array)
        assert result.flags.writeable
    np.testing.assert_array_equal(array, before)


def test_complex_numbers_have_no_order(torch: ModuleType) -> None:
    array = np.ones(2, np.complex64)
    for name in ("cummax", "cummin"):
        with pytest.raises(NotImplementedError) as expected:
            getattr(torch.from_numpy(array), name)(0)
        with pytest.raises(NotImplementedError, match=f"^{re.escape(str(expected.value))}$"):
            getattr(scans, name)(array, 0)


@pytest.mark.parametrize("shape", [(300, 4000), (4000, 300), (2_000_000, 1)], ids=str)
def test_the_bits_do_not_depend_on_the_number_of_threads(
    shape: tuple[int, int], threads: Callable[[int], None]
) -> None:
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for dim in (0, 1):
        found = []
        for count in (1, 2, 5):
            threads(count)
            results = [scans.cumsum(array, dim), *scans.cummax(array, dim)]
            found.append([result.tobytes() for result in results])
        assert found.count(found[0]) == len(found)
