"""log, log1p, log2 and log10 against mpmath, and special values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from numgrad.math import scalar
from tests.math.real.accuracy import (
    assert_values,
    assert_vectorised,
    assert_within,
    evaluate,
    every_dtype,
    needs_simd,
    neighbours,
    numbers_of_every_size,
)

FUNCTIONS = {
    "log": (scalar.log, mpmath.log),
    "log1p": (scalar.log1p, mpmath.log1p),
    "log2": (scalar.log2, lambda x: mpmath.log(x, 2)),
    "log10": (scalar.log10, mpmath.log10),
}
INF, NAN = np.inf, np.nan
AT_THE_EDGE = [(0, -INF), (-0.0, -INF), (1, 0), (INF, INF), (NAN, NAN), (-1, NAN), (-INF, NAN)]
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def sample(name: str, dtype: type) -> np.ndarray:
    """Return numbers of every size, and many near 1, where the logarithm is 0."""
    random = np.random.default_rng(0)
    signs = (1, -1) if name == "log1p" else (1,)
    near_1 = 1 + random.choice([-1, 1], 500) * 2.0 ** -random.uniform(1, 55, 500)
    if name == "log1p":
        near_1 -= 1
    marks = neighbours(dtype, 0.5**0.5, 2**0.5, 2**0.5 - 1, 0.5**0.5 - 1, 1.0, np.finfo(dtype).max)
    x = np.concatenate(
        [
            numbers_of_every_size(dtype, 1000, signs=signs),
            random.uniform(0.5, 2, 800).astype(dtype),
            random.uniform(-0.99, 4, 800).astype(dtype),
            near_1.astype(dtype),
            marks,
        ]
    )
    return x[x > -1] if name == "log1p" else x[x > 0]


@every_function
@every_dtype
@pytest.mark.sampled(1.0)
def test_error_is_within_the_stated_ulp(name, dtype):
    assert_within(name, FUNCTIONS[name][1], sample(name, dtype))


@every_function
@every_dtype
def test_special_values_are_those_of_ieee(name, dtype):
    if name == "log1p":
        table = [(0, 0), (-0.0, -0.0), (-1, -INF), (INF, INF), (NAN, NAN), (-2, NAN), (-INF, NAN)]
    else:
        table = AT_THE_EDGE
    assert_values(FUNCTIONS[name][0], dtype, table)


@every_dtype
def test_logarithms_of_powers_of_the_base_are_exact(dtype):
    info = np.finfo(dtype)
    k = np.arange(info.minexp - info.nmant, info.maxexp)
    powers = np.ldexp(dtype(1), k).astype(dtype)
    np.testing.assert_array_equal(evaluate(scalar.log2, powers), k.astype(dtype))
    tens = 10.0 ** np.arange(0, 11 if dtype is np.float32 else 23)
    np.testing.assert_array_equal(evaluate(scalar.log10, tens.astype(dtype)), np.arange(tens.size))


def test_log2_is_within_1_ulp_of_every_float32_below_the_root_of_2():
    """There the polynomial's part is largest beside the result, which is just below 1/2."""
    first, last = np.array([1.4, 2**0.5], np.float32).view(np.int32)
    x = np.arange(first, last, dtype=np.int32).view(np.float32)
    error = evaluate(scalar.log2, x).astype(np.float64) - np.log2(x.astype(np.float64))
    assert np.abs(error).max() <= 2.0**-25


@needs_simd
@every_function
@every_dtype
def test_loop_is_vectorised(name, dtype):
    assert_vectorised(FUNCTIONS[name][0], dtype)
