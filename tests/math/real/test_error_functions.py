"""erf and erfc against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from numgrad.math import scalar
from numgrad.math.real import error_functions
from tests.math.real.accuracy import (
    assert_same_bits,
    assert_vectorised,
    assert_within,
    evaluate,
    every_dtype,
    every_exponent,
    needs_simd,
)

# ours, exact
FUNCTIONS = {"erf": (scalar.erf, mpmath.erf), "erfc": (scalar.erfc, mpmath.erfc)}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def sample(dtype: type) -> np.ndarray:
    """Return arguments of every size, and those around the subnormal values of erfc."""
    random = np.random.default_rng(0)
    last = 10.06 if dtype is np.float32 else 27.23
    x = np.concatenate(
        [
            random.uniform(-1, 1, 1000),
            random.uniform(-6, 6, 1000),
            random.uniform(0, last, 400),
            random.uniform(last * 0.96, last, 200),
            10.0 ** random.uniform(-6, 0, 300),
            every_exponent(dtype),
        ]
    ).astype(dtype)
    return x[(x <= last) & (x > -40)]


@every_function
@every_dtype
@pytest.mark.sampled(1.0)
def test_error_is_within_the_stated_ulp(name, dtype):
    assert_within(name, FUNCTIONS[name][1], sample(dtype), precision=120)


@every_function
@every_dtype
def test_special_values(name, dtype):
    info = np.finfo(dtype)
    x = np.array([0.0, -0.0, 40, -40, info.max, -info.max, np.inf, -np.inf, np.nan], dtype)
    expected = {
        "erf": [0.0, -0.0, 1, -1, 1, -1, 1, -1, np.nan],
        "erfc": [1, 1, 0, 2, 0, 2, 0, 2, np.nan],
    }[name]
    assert_same_bits(evaluate(FUNCTIONS[name][0], x), expected)


@every_dtype
def test_erf_is_odd_and_at_most_1(dtype):
    x = np.abs(sample(dtype))
    result = evaluate(scalar.erf, x)
    assert_same_bits(evaluate(scalar.erf, -x), -result)
    assert (result <= 1).all()


def test_tables_are_rounded_to_the_nearest():
    with mpmath.workprec(120):
        for node, value in enumerate(error_functions._VALUES):
            point = mpmath.mpf(node) / 64
            assert value == float(mpmath.erf(point) - (point if node <= 32 else 0))


@needs_simd
@every_function
@every_dtype
def test_a_loop_is_vectorised(name, dtype):
    assert_vectorised(FUNCTIONS[name][0], dtype)
