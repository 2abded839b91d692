"""Reductions: against NumPy, SciPy and PyTorch, at every layout, and the bits they promise."""

from __future__ import annotations

import functools
import itertools
import math
import platform
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba.core.caching import NullCache
from scipy import special

from numgrad.base.tuning import PREFETCHED_BYTES
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.llvm.run_ir import RUN, RUN_LANES, block_rows, lanes_of_rows
from numgrad.kernels import softmax
from numgrad.kernels.move.layout import arrange
from numgrad.kernels.reduce import argextrema, moments, operations, reductions
from numgrad.kernels.reduce.driver import parts_of, spans_of
from numgrad.kernels.reduce.order import PART, TILE
from numgrad.runtime.threads import get_num_threads, set_num_threads
from tests.cases import examples, thinned

FLOATS = [np.dtype(name) for name in ("float32", "float64")]
COMPLEX = [np.dtype(name) for name in thinned(("complex128", "complex64"), 2)]
INTEGERS = [np.dtype(name) for name in thinned(("bool", "uint8", "int32"), 2)]
REAL = INTEGERS + FLOATS
EVERY = REAL + COMPLEX
# For tests of several operations whose kernels differ in one instruction.
few = settings(max_examples=examples(100, in_sample=6))

Reduce = Callable[..., np.ndarray]


@st.composite
def arrays(draw: st.DrawFn, dtypes: list[np.dtype[Any]], min_side: int = 0) -> np.ndarray:
    """Draw arrays of all layouts: transposed, reversed, strided, broadcast, and of any size."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=min_side, max_side=6))
    if shape and draw(st.integers(0, 3)) == 0:
        # Long enough for lanes, for several blocks, or for several parts.
        long = draw(st.sampled_from([9, 40, 129, 700, RUN * 9 + 5]))
        at = draw(st.integers(0, len(shape) - 1))
        shape = (*shape[:at], long, *[min(size, 3) for size in shape[at + 1 :]])
    values = draw(st.randoms(use_true_random=False))
    generator = np.random.default_rng(values.getrandbits(32))
    steps = [draw(st.sampled_from([1, 1, 1, -1, 2, -2, 0])) for _ in shape]
    base_shape = [
        1 if step == 0 else size * abs(step) for size, step in zip(shape, steps, strict=True)
    ]
    order = draw(st.permutations(range(len(shape))))
    stored = sample(generator, tuple(base_shape[i] for i in order), dtype)
    array = stored.transpose(np.argsort(order)) if shape else stored
    array = array[tuple(slice(None, None, step or None) for step in steps)]
    return np.broadcast_to(array, shape)


def sample(generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Draw ordinary values, with some zeros and some ties."""
    if dtype.kind == "c":
        parts = [generator.integers(-8, 9, shape) / 4 for _ in range(2)]
        return np.asarray(parts[0] + 1j * parts[1], dtype)
    if dtype.kind == "b":
        return np.asarray(generator.integers(0, 2, shape), dtype)
    if dtype.kind == "u":
        return np.asarray(generator.integers(0, 256, shape), dtype)
    values = generator.integers(-100, 101, shape)
    return np.asarray(values / 16 if dtype.kind == "f" else values, dtype)


@st.composite
def cases(
    draw: st.DrawFn, dtypes: list[np.dtype[Any]], min_side: int = 0
) -> tuple[np.ndarray, tuple[int, ...], bool]:
    array = draw(arrays(dtypes, min_side))
    dims = draw(st.sets(st.integers(0, array.ndim - 1))) if array.ndim else set()
    return array, tuple(draw(st.permutations(sorted(dims)))), draw(st.booleans())


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


def wide(array: np.ndarray) -> np.ndarray:
    """Return the array with more precision than its reductions have to have."""
    if array.dtype.kind in "fc":
        return array.astype(np.clongdouble if array.dtype.kind == "c" else np.longdouble)
    return array


def check(result: np.ndarray, expected: Any, dtype: np.dtype[Any], scale: Any = 0.0) -> None:
    """Compare within a few roundings of `scale`, the size of what was added; exactly if integer."""
    assert type(result) is np.ndarray
    assert result.dtype == dtype
    assert result.flags.c_contiguous
    assert result.shape == np.shape(expected)
    if dtype.kind in "fc":
        tolerance = 16 * np.finfo(dtype).eps
        excess = np.abs(result - expected) - tolerance * (np.abs(expected) + scale)
        same = (result == expected) | (np.isnan(result) & np.isnan(expected))
        assert np.all((excess <= 0) | same)
    else:
        np.testing.assert_array_equal(result, expected)


def count_of(array: np.ndarray, dims: tuple[int, ...]) -> int:
    return math.prod(array.shape[dim] for dim in dims)


# --- the same numbers as NumPy --------------------------------------------------------------------


@given(cases(EVERY))
def test_sum_adds(case: tuple[np.ndarray, tuple[int, ...], bool]) -> None:
    array, dims, keepdim = case
    dtype = array.dtype if array.dtype.kind in "fc" else np.dtype(np.int64)
    numpy_dtype = None if array.dtype.kind in "fc" else np.int64
    expected = np.sum(wide(array), dims, keepdims=keepdim, dtype=numpy_dtype)
    magnitude = np.sum(np.abs(wide(array)), dims, keepdims=keepdim)
    check(reductions.sum(array, dims, keepdim), expected, dtype, magnitude)


@given(cases(EVERY))
def test_prod_multiplies(case: tuple[np.ndarray, tuple[int, ...], bool]) -> None:
    array, dims, keepdim = case
    assume(array.dtype.kind not in "fc" or count_of(array, dims) < 40)
    dtype = array.dtype if array.dtype.kind in "fc" else np.dtype(np.int64)
    numpy_dtype = None if array.dtype.kind in "fc" else np.int64
    with np.errstate(over="ignore"):  # a product of large numbers may be infinite
        expected = np.prod(wide(array), dims, keepdims=keepdim, dtype=numpy_dtype)
        magnitude = np.prod(np.abs(wide(array)), dims, keepdims=keepdim) * 4
    check(reductions.prod(array, dims, keepdim), expected, dtype, magnitude)


@given(cases(FLOATS + COMPLEX))
def test_mean_averages(case: tuple[np.ndarray, tuple[int, ...], bool]) -> None:
    array, dims, keepdim = case
    count = count_of(array, dims)
    result = reductions.mean(array, dims, keepdim)
    if count == 0:
        assert np.isnan(result).all()
        return
    expected = np.sum(wide(array), dims, keepdims=keepdim) / count
    magnitude = np.sum(np.abs(wide(array)), dims, keepdims=keepdim) / count
    check(result, expected, array.dtype, magnitude)


@pytest.mark.parametrize("name", ["amax", "amin"])
@given(case=cases(REAL, min_side=1))
@few
def test_extremes(name: str, case: tuple[np.ndarray, tuple[int, ...], bool]) -> None:
    array, dims, keepdim = case
    expected = getattr(np, name)(array, dims, keepdims=keepdim)
    check(getattr(reductions, name)(array, dims, keepdim), expected, array.dtype)


@pytest.mark.parametrize("name", ["all", "any", "count_nonzero"])
@given(case=cases(EVERY))
@few
def test_truth(name: str, case: tuple[np.ndarray, tuple[int, ...], bool]) -> None:
    array, dims, keepdim = case
    expected = getattr(np, name)(array, axis=dims, keepdims=keepdim)
    dtype = np.dtype(np.int64 if name == "count_nonzero" else np.bool_)
    check(getattr(reductions, name)(array, dims, keepdim), expected, dtype)


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize("p", [2, 1, 0, math.inf, -math.inf, 3, 0.5, -1, -2.5])
@given(case=cases(FLOATS + COMPLEX, min_side=1))
def test_norm(p: float, case: tuple[np.ndarray, tuple[int, ...], bool]) -> None:
    array, dims, keepdim = case
    magnitudes = np.abs(wide(array))
    with np.errstate(all="ignore"):
        if p == 0:
            expected = np.count_nonzero(magnitudes, dims, keepdims=keepdim)
        elif math.isinf(p):
            expected = (np.max if p > 0 else np.min)(magnitudes, dims, keepdims=keepdim)
        else:
            expected = np.sum(magnitudes**p, dims, keepdims=keepdim) ** (1 / np.longdouble(p))
    check(reductions.norm(array, dims, keepdim, p), expected, array.real.dtype)


@given(cases(FLOATS + COMPLEX, min_side=1), st.sampled_from([0, 1, 0.5, 2]))
def test_variance(case: tuple[np.ndarray, tuple[int, ...], bool], correction: float) -> None:
    array, dims, keepdim = case
    exact = wide(array)
    count = count_of(array, dims)
    mean = np.mean(exact, dims, keepdims=True)
    squares = np.sum(np.abs(exact - mean) ** 2, dims, keepdims=keepdim)
    with np.errstate(all="ignore"):
        expected = squares / max(0, count - correction)
    if not dims:
        expected = np.asarray(expected)
    variance, found_mean = moments.var_mean(array, dims, keepdim, correction)
    check(found_mean, mean if keepdim else np.squeeze(mean, dims), array.dtype, 8.0)
    eps = np.finfo(array.dtype).eps
    if count > correction:
        check(variance, expected, array.real.dtype, count * eps)
        check(moments.std(array, dims, keepdim, correction), np.sqrt(expected), variance.dtype, eps)
    else:
        assert not np.isfinite(variance).any()


@given(cases(FLOATS))
def test_logsumexp_against_scipy(case: tuple[np.ndarray, tuple[int, ...], bool]) -> None:
    array, dims, keepdim = case
    result = moments.logsumexp(array * array.dtype.type(20), dims, keepdim)
    if count_of(array, dims) == 0:
        assert (result == -math.inf).all()
    elif dims:
        if array.size == 0:
            assert result.size == 0
            return
        expected = special.logsumexp(array.astype(np.float64) * 20, dims, keepdims=keepdim)
        check(result, expected, array.dtype, 1.0)
    else:
        check(result, array * 20, array.dtype)


@given(cases(COMPLEX, min_side=1))
def test_complex_logsumexp(case: tuple[np.ndarray, tuple[int, ...], bool]) -> None:
    array, dims, keepdim = case
    with np.errstate(all="ignore"):
        total = np.sum(np.exp(wide(array)), dims, keepdims=keepdim)
    result = moments.logsumexp(array, dims, keepdim)
    # The logarithm has branches, and magnifies what is near 0; its inverse has neither flaw.
    magnitude = np.sum(np.abs(np.exp(wide(array))), dims, keepdims=keepdim)
    assert result.dtype == array.dtype
    assert result.shape == total.shape
    error = np.abs(np.exp(wide(result)) - total)
    assert np.all(error <= 64 * np.finfo(array.dtype).eps * magnitude)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@given(array=arrays([dtype for dtype in REAL if dtype.kind != "b"], min_side=1), data=st.data())
def test_positions(name: str, array: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.none() | st.integers(0, array.ndim - 1) if array.ndim else st.none())
    dims = tuple(range(array.ndim)) if axis is None else (axis,)
    keepdim = data.draw(st.booleans())
    expected = getattr(np, name)(array, axis, keepdims=keepdim)
    check(getattr(argextrema, name)(array, dims, keepdim), expected, np.dtype(np.int64))


@pytest.mark.parametrize("name", ["max", "min"])
@given(array=arrays(REAL, min_side=1), data=st.data())
@few
def test_extremes_with_positions(name: str, array: np.ndarray, data: st.DataObject) -> None:
    assume(array.ndim > 0)
    dim = data.draw(st.integers(0, array.ndim - 1))
    keepdim = data.draw(st.booleans())
    values, indices = getattr(argextrema, f"{name}_with_index")(array, dim, keepdim)
    expected = getattr(np, f"arg{name}")(array, dim, keepdims=keepdim)
    check(indices, expected, np.dtype(np.int64))
    check(values, getattr(np, name)(array, dim, keepdims=keepdim), array.dtype)


def test_a_0d_array_has_a_position() -> None:
    values, indices = argextrema.max_with_index(np.array(3.0), 0)
    assert (values.shape, indices.shape) == ((), ())
    assert (values[()], indices[()]) == (3.0, 0)
    assert argextrema.argmin(np.array(3), ()) == 0


# --- long arrays ----------------------------------------------------------------------------------

# Just around where the loop changes: short rows, lanes, blocks, tiles, parts.
SIZES = [
    16,
    17,
    RUN_LANES - 1,
    RUN_LANES,
    RUN_LANES + 1,
    RUN - 1,
    8 * RUN,
    32 * RUN + 3,
    PART,
    PART + 1,
    3 * PART + RUN + 7,
]


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("inner", [1, 2, 3, 17])
def test_long_columns(n: int, inner: int) -> None:
    array = sample(np.random.default_rng(n), (n, inner), np.dtype(np.float32))
    magnitude = np.abs(array).sum(0, dtype=np.float64)
    check(reductions.sum(array, (0,)), array.sum(0, dtype=np.float64), array.dtype, magnitude)
    check(reductions.amin(array, (0,)), array.min(0), array.dtype)
    check(argextrema.argmax(array, (0,)), array.argmax(0), np.dtype(np.int64))
    variance = array.var(0, dtype=np.float64)
    check(moments.var(array, (0,), correction=0), variance, array.dtype)
    expected = special.logsumexp(array.astype(np.float64), 0)
    check(moments.logsumexp(array, (0,)), expected, array.dtype, 1.0)


@pytest.mark.parametrize("inner", [TILE - 1, TILE, TILE + 1, 2 * TILE + 5])
@pytest.mark.parametrize("n", [3, 65, 257])
def test_many_columns(n: int, inner: int) -> None:
    array = sample(np.random.default_rng(n), (2, n, inner), np.dtype(np.float64))
    magnitude = np.abs(array).sum(1)
    check(reductions.sum(array, (1,)), array.sum(1), array.dtype, magnitude)
    check(argextrema.argmin(array, (1,)), array.argmin(1), np.dtype(np.int64))
    check(moments.var(array, (1,)), array.var(1, ddof=1), array.dtype)
    check(moments.logsumexp(array, (1,)), special.logsumexp(array, 1), array.dtype, 1.0)


@pytest.mark.parametrize("n", SIZES)
def test_every_element_of_a_long_array_counts_once(n: int) -> None:
    array = np.zeros(n, np.int32)
    for i in {0, 1, 7, 8, 9 * RUN_LANES, RUN, n // 2, n - 2, n - 1} & set(range(n)):
        array[:] = 0
        array[i] = 5
        assert reductions.sum(array, (0,)) == 5
        assert reductions.amax(array, (0,)) == 5
        assert argextrema.argmax(array, (0,)) == i
        assert reductions.any(array, (0,))
        assert reductions.count_nonzero(array, (0,)) == 1
    assert reductions.sum(np.ones(n, np.int8), (0,)) == n


# --- the order ------------------------------------------------------------------------------------


def in_order(values: list[np.ndarray], inner: int) -> np.ndarray:
    """Add numbers as the first lines of `numgrad.kernels.reduce.order` say."""
    block, lanes = block_rows(inner), lanes_of_rows(inner)
    while True:
        found = []
        for start in range(0, len(values), block):
            own = values[start : start + block]
            sums = [own[0] * 0 for _ in own[:lanes]]
            for i, value in enumerate(own):
                sums[i % lanes] = sums[i % lanes] + value
            half = lanes // 2
            while half:
                upper, sums = sums[half:], sums[:half]
                sums[: len(upper)] = [x + y for x, y in zip(sums, upper, strict=False)]
                half //= 2
            found.append(sums[0])
        values = found
        if len(values) == 1:
            return values[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("n", [1, 5, 16, 17, 63, 65, 1023, 1025, 4097, 70_000])
def test_sums_are_in_the_order_that_is_written_down(n: int, dtype: type) -> None:
    parts = np.random.default_rng(n).standard_normal((2, n))
    array = (parts[0] + 1j * parts[1] if dtype is np.complex64 else parts[0]).astype(dtype)
    expected = in_order(list(array), 1)
    assert reductions.sum(array, (0,)).tobytes() == expected.tobytes()
    apart = np.stack([array, array], 1)[:, 0]
    assert reductions.sum(apart, (0,)).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("n", "inner"),
    [(5, 2), (700, 3), (9000, 3), (130, 100), (70, 600), (300, 5000), (70, TILE + 1), (4097, 2)],
)
def test_columns_are_summed_in_the_order_that_is_written_down(n: int, inner: int) -> None:
    array = np.random.default_rng(n).standard_normal((2, n, inner)).astype(np.float32)
    expected = in_order(list(array[1]), inner)
    assert reductions.sum(array[1], (0,)).tobytes() == expected.tobytes()
    assert reductions.sum(array, (1,))[1].tobytes() == expected.tobytes()
    wider = np.zeros((n, inner + 3), np.float32)
    wider[:, :inner] = array[1]
    assert reductions.sum(wider[:, :inner], (0,)).tobytes() == expected.tobytes()


# --- accuracy -------------------------------------------------------------------------------------


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("n", [100, 1000, 10_000, 300_000])
@pytest.mark.parametrize("distribution", ["uniform", "normal", "lognormal"])
def test_sum_is_as_accurate_as_numpys(n: int, distribution: str) -> None:
    # Both sums are near-exact at times, so it is the error over some draws that is compared.
    ours = numpys = 0.0
    for seed in range(8):
        array = getattr(np.random.default_rng(seed), distribution)(size=n).astype(np.float32)
        exact = math.fsum(array.tolist())
        rounding = np.finfo(np.float32).eps * math.fsum(np.abs(array).tolist())
        ours += (abs(float(reductions.sum(array, (0,))) - exact) / rounding) ** 2
        numpys += (abs(float(array.sum()) - exact) / rounding) ** 2
    # The result itself is rounded, by up to half an ulp.
    assert math.sqrt(ours / 8) <= math.sqrt(numpys / 8) + 0.5


def test_sum_of_columns_keeps_its_precision() -> None:
    # One after the other, 0.1 is lost from 2**20 additions on: NumPy's answer is off by 1%.
    array = np.full((3_000_000, 2), 0.1, np.float32)
    exact = 3_000_000 * float(np.float32(0.1))
    np.testing.assert_allclose(reductions.sum(array, (0,)), exact, rtol=4e-7)


def test_variance_survives_a_large_mean() -> None:
    array = (1e4 + np.random.default_rng(0).normal(size=300_000)).astype(np.float32)
    np.testing.assert_allclose(moments.var(array, (0,)), array.var(dtype=np.float64), rtol=1e-4)


# --- special values -------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan, 3e38, 1e-45]


@pytest.mark.parametrize("length", [1, 5, 11, 140])
@given(data=st.data())
def test_special_values_are_pytorchs(length: int, data: st.DataObject, torch: ModuleType) -> None:
    values = data.draw(st.lists(st.sampled_from(SPECIAL), min_size=length, max_size=length))
    array = np.array(values, np.float32).reshape(1, -1)
    tensor = torch.from_numpy(array)
    found = {
        "amax": reductions.amax(array, (1,)),
        "amin": reductions.amin(array, (1,)),
        "logsumexp": moments.logsumexp(array, (1,)),
        "all": reductions.all(array, (1,)),
        "any": reductions.any(array, (1,)),
        "argmax": argextrema.argmax(array, (1,)),
        "argmin": argextrema.argmin(array, (1,)),
        "count_nonzero": reductions.count_nonzero(array, (1,)),
    }
    for name, result in found.items():
        expected = getattr(tensor, name)(1).numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=name)
    for p in (0, 1, math.inf, -math.inf):
        expected = torch.linalg.vector_norm(tensor, p, 1).numpy()
        np.testing.assert_allclose(reductions.norm(array, (1,), False, p), expected, rtol=1e-6)
    for mirror in ("max", "min"):
        result_values, indices = getattr(argextrema, f"{mirror}_with_index")(array, 1)
        expected_values, expected_indices = getattr(tensor, mirror)(1)
        np.testing.assert_array_equal(result_values, expected_values.numpy())
        np.testing.assert_array_equal(indices, expected_indices.numpy())


@pytest.mark.parametrize("reduce", [reductions.sum, reductions.mean], ids=["sum", "mean"])
@pytest.mark.parametrize("length", [1, 10, 129, 5000])
def test_adding_negative_zeros_gives_zero(reduce: Reduce, length: int) -> None:
    for array in (np.full(length, -0.0), np.full((length, 3), -0.0)):
        assert not np.signbit(reduce(array, (0,))).any()


@pytest.mark.parametrize("where", [0, 3, 130, 4999])
def test_one_nan_is_enough(where: int) -> None:
    array = np.ones((5000, 2), np.float32)
    array[where, 0] = math.nan
    for data, dim in ((array, 0), (array.T, 1), (array.T.copy(), 1)):
        for reduce in (
            reductions.sum,
            reductions.mean,
            reductions.prod,
            reductions.amax,
            reductions.amin,
            reductions.norm,
            moments.var,
            moments.logsumexp,
        ):
            np.testing.assert_array_equal(np.isnan(reduce(data, (dim,))), [True, False])
        assert argextrema.argmax(data, (dim,))[0] == where
        assert argextrema.argmin(data, (dim,))[0] == where


def test_logsumexp_of_parts_that_are_all_minus_infinity() -> None:
    array = np.full(3 * PART, -math.inf)
    assert moments.logsumexp(array, (0,)) == -math.inf
    array[PART + 5] = -1000.0  # relative to it, the other parts' own offset of 0 would overflow
    assert moments.logsumexp(array, (0,)) == -1000.0
    array[0] = math.inf
    assert moments.logsumexp(array, (0,)) == math.inf


@pytest.mark.filterwarnings("ignore:var.*degrees of freedom")  # PyTorch's
def test_the_correction_may_exceed_the_elements(torch: ModuleType) -> None:
    array = np.array([[1.0, 2.0], [3.0, 3.0]], np.float32)
    for correction in (0, 1, 1.5, 2, 5):
        expected = torch.from_numpy(array).var(1, correction=correction).numpy()
        np.testing.assert_allclose(moments.var(array, (1,), False, correction), expected, rtol=1e-6)


# --- nothing to reduce ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reduce", "value"),
    [
        (reductions.sum, 0.0),
        (reductions.prod, 1.0),
        (reductions.mean, math.nan),
        (reductions.all, True),
        (reductions.any, False),
        (reductions.count_nonzero, 0),
        (reductions.norm, 0.0),
        (moments.var, math.nan),
        (moments.std, math.nan),
        (moments.logsumexp, -math.inf),
    ],
)
@pytest.mark.parametrize("dtype", FLOATS + COMPLEX, ids=str)
def test_an_empty_reduction(reduce: Reduce, value: Any, dtype: np.dtype[Any]) -> None:
    array = np.zeros((3, 0, 2), dtype)
    for dims, shape in (((1,), (3, 2)), ((0, 1), (2,)), ((0, 1, 2), ())):
        result = reduce(array, dims)
        assert result.shape == shape
        if value != value:
            assert np.isnan(result).all()
        else:
            assert (result == value).all()
    assert reduce(array, (0,)).shape == (0, 2)


def error_of(call: Callable[[], object]) -> tuple[type, str] | None:
    """Return what a call raises, and in which words."""
    try:
        call()
    except (IndexError, RuntimeError) as error:
        return type(error), str(error)
    return None


CALLS = {
    "amax": "t.amax({})",
    "amin": "t.amin({})",
    "max": "t.max({})",
    "min": "t.min({})",
    "argmax": "t.argmax({})",
    "argmin": "t.argmin({})",
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dim", [None, 0, 1, 2])
def test_missing_elements_are_pytorchs_error(name: str, dim: int | None, torch: ModuleType) -> None:
    shape = (3, 0, 2)
    call = CALLS[name].format("" if dim is None else dim)
    dims = (0, 1, 2) if dim is None else (dim,)
    array = np.zeros(shape)
    theirs = error_of(lambda: eval(call, {"t": torch.zeros(shape)}))
    ours = error_of(lambda: reductions.require_elements(name, array, dims, all_dims=dim is None))
    assert ours == theirs
    assert (ours is None) == (dim in (0, 2))


@pytest.mark.parametrize("p", [math.inf, -math.inf, -1, -1.5, 0, 1, 2, 3.5])
@pytest.mark.parametrize("dims", [None, (1,), (0,), (0, 1)])
def test_missing_elements_of_a_norm(
    p: float, dims: tuple[int, ...] | None, torch: ModuleType
) -> None:
    array = np.zeros((3, 0, 2))
    given_dims = (0, 1, 2) if dims is None else dims
    theirs = error_of(lambda: torch.linalg.vector_norm(torch.zeros(3, 0, 2), p, dims))
    ours = error_of(
        lambda: reductions.require_norm_elements(array, p, given_dims, all_dims=dims is None)
    )
    assert ours == theirs
    assert (ours is None) == (0 <= p < math.inf or dims == (0,))


def test_complex_numbers_have_no_order(torch: ModuleType) -> None:
    array = np.ones((2, 2), np.complex64)
    tensor = torch.from_numpy(array)
    for ours, theirs in (
        (lambda: reductions.amax(array, (0,)), lambda: tensor.amax(0)),
        (lambda: reductions.amin(array, (0,)), lambda: tensor.amin(0)),
        (lambda: argextrema.max_with_index(array, 0), lambda: tensor.max(0)),
        (lambda: argextrema.min_with_index(array, 0), lambda: tensor.min(0)),
        (lambda: argextrema.argmax(array, (0,)), lambda: tensor.argmax(0)),
        (lambda: argextrema.argmin(array != 0, (0,)), lambda: (tensor != 0).argmin(0)),
    ):
        assert error_of(ours) == error_of(theirs) is not None


# --- what a result depends on, and what it does not -----------------------------------------------

SHAPES = {"row": (1, 3_000_001), "rows": (900, 1300), "columns": (5000, 301), "wide": (70, 40_000)}
ALL_OF_THEM: dict[str, Callable[[np.ndarray, int], Any]] = {
    "sum": lambda a, dim: reductions.sum(a, (dim,)),
    "prod": lambda a, dim: reductions.prod(1 + a / 2**16, (dim,)),
    "amax": lambda a, dim: reductions.amax(a, (dim,)),
    "norm": lambda a, dim: reductions.norm(a, (dim,), False, 3),
    "var_mean": lambda a, dim: moments.var_mean(a, (dim,)),
    "logsumexp": lambda a, dim: moments.logsumexp(a, (dim,)),
    "max_with_index": lambda a, dim: argextrema.max_with_index(a, dim),
    "softmax": lambda a, dim: softmax.softmax(a, dim),
    "log_softmax": lambda a, dim: softmax.log_softmax(a, dim),
    "softmax_gradient": lambda a, dim: softmax.softmax_gradient(a[::-1], a, dim),
}


@pytest.mark.sampled(0.11, by="name")
@pytest.mark.parametrize("name", ALL_OF_THEM)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_bits_do_not_depend_on_the_number_of_threads(
    name: str, shape: tuple[int, int], threads: Callable[[int], None]
) -> None:
    array = np.random.default_rng(0).standard_normal(shape, np.float32)
    for view, dim in itertools.product((array, array[:, ::-2]), (0, 1)):
        found = []
        for count in (1, 2, 4, 7, 16):
            threads(count)
            result = ALL_OF_THEM[name](view, dim)
            results = result if isinstance(result, tuple) else (result,)
            found.append([part.tobytes() for part in results])
        assert found.count(found[0]) == len(found)


def test_arguments_are_left_alone_and_results_are_new() -> None:
    array = np.arange(6.0).reshape(2, 3)
    before = array.copy()
    array.flags.writeable = False
    for reduce in (
        reductions.sum,
        reductions.prod,
        reductions.mean,
        reductions.amax,
        reductions.norm,
        moments.var,
        moments.logsumexp,
    ):
        for dims in ((), (0,), (1,), (0, 1)):
            result = reduce(array, dims)
            assert not np.shares_memory(result, array)
            assert result.flags.writeable
    np.testing.assert_array_equal(array, before)


def test_contiguous_memory_is_not_copied() -> None:
    array = np.zeros((4, 5, 6, 7))
    for order in itertools.permutations(range(4)):
        permuted = array.transpose(order)[::-1]
        for dims in ((0,), (0, 2), (0, 1, 2, 3)):
            assert np.shares_memory(arrange(permuted, dims).flat, array)


@pytest.mark.parametrize(
    "shape", [(65_537,), (300_000,), (70_000, 3), (1_000, 300), (200, 2_000), (3, 66_000)]
)
def test_the_short_way_has_the_bits_of_the_long_one(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).standard_normal(shape)
    for dim in range(len(shape)):
        inner = math.prod(shape[dim + 1 :])
        whole = operations.SUM.reduce(
            array.reshape(-1), math.prod(shape[:dim]), shape[dim], inner, array.dtype
        )
        found = operations.SUM(array, (dim,), False, array.dtype)
        assert found.tobytes() == whole.tobytes()


@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 2 * TILE + 1)),
    part_rows=st.integers(1, 50),
    data=st.data(),
)
def test_spans_cover_every_element_once(
    sizes: tuple[int, int, int], part_rows: int, data: st.DataObject
) -> None:
    outer, n, inner = sizes
    parts, tiles = parts_of(n, part_rows), -(-inner // TILE)
    items = outer * parts * tiles
    cut = data.draw(st.integers(0, items))
    seen = np.zeros((outer, n, inner), int)
    results = np.zeros((outer, parts, inner), int)
    for first, last in ((0, cut), (cut, items)):
        for span in spans_of(n, inner, part_rows, first, last):
            for item in range(span.items):  # more than one only where they are whole blocks
                start = span.start + item * n * inner
                for row in range(span.rows):
                    seen.reshape(-1)[start + row * inner :][: span.columns] += 1
                results.reshape(-1)[span.target + item * inner :][: span.columns] += 1
            assert span.start // inner % n == span.first_row or not span.items
    assert (seen == 1).all()
    assert (results == 1).all()


# --- what the machine runs ------------------------------------------------------------------------


FLOAT32_FOLDS = ["SUM", "PROD", "MAX", "MIN", "SUM_ABS", "SUM_SQUARES", "MAX_ABS", "MIN_ABS"]


@functools.cache
def compiled(name: str) -> Any:
    """Compile a fold of float32 here."""
    return compiled_kernel(getattr(operations, name).kernel, 3, 2)


def compiled_kernel(function: Any, arrays: int, numbers: int) -> Any:
    """Compile a kernel of float32 here: what comes from the disk cache can't be inspected."""
    # Any other function of the same code: its kernel may have come from the disk.
    dispatcher = kernel(function.py_func)
    dispatcher._cache = NullCache()
    array = numba.types.Array(numba.float32, 1, "C")
    steps = numba.types.Array(numba.int64, 1, "C")
    dispatcher.compile((*[array] * arrays, steps, *[numba.int64] * numbers))
    return dispatcher


@pytest.mark.sampled(0.24)
@pytest.mark.parametrize("name", FLOAT32_FOLDS)
def test_float32_stays_float32(name: str) -> None:
    assert " fpext " not in str(compiled(name).inspect_llvm())


@pytest.mark.parametrize(
    ("name", "arrays", "numbers"), [("_variances", 3, 4), ("_exponentials", 4, 4)]
)
def test_moments_of_float32_stay_float32(name: str, arrays: int, numbers: int) -> None:
    text = str(compiled_kernel(getattr(moments, name), arrays, numbers).inspect_llvm())
    assert " fmul " in text
    assert " fpext " not in text


@pytest.mark.parametrize("name", FLOAT32_FOLDS)
def test_the_inner_loop_is_vectorised(name: str) -> None:
    operation = {"SUM": "fadd", "SUM_ABS": "fadd", "SUM_SQUARES": "fmul", "PROD": "fmul"}
    wanted = operation.get(name, r"fcmp \w+")
    # LLVM's own text says it for every processor; the numbers are those of registers.
    assert re.search(rf"{wanted} <(4|8|16) x float>", str(compiled(name).inspect_llvm()))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 instructions")
def test_the_processor_adds_in_vector_registers() -> None:
    (text,) = compiled("SUM").inspect_asm().values()
    assert re.search(r"\bv?addps\b.*%[xyz]mm", text)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64"])
def test_what_is_fetched_ahead_is_folded_as_all_else(dtype: str) -> None:
    """Arrays that end right behind the first that are fetched, whole and row by row."""
    size = PREFETCHED_BYTES // np.dtype(dtype).itemsize + 1
    array = np.arange(size).astype(dtype)
    array[-1] = 99
    assert reductions.amax(array, (0,)) == array.max()
    assert reductions.sum(array, (0,)) == reductions.sum(array[:-1], (0,)) + array[-1]
    assert reductions.count_nonzero(array, (0,)) == np.count_nonzero(array)
    rows = np.resize(array, (3, size // 2 + 1))
    assert np.array_equal(reductions.amin(rows, (1,)), rows.min(1))
