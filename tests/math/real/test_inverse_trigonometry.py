"""asin, acos, atan and atan2 against mpmath and the C standard."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from numgrad.math import scalar
from tests.math.real.accuracy import (
    assert_same_bits,
    assert_vectorised,
    assert_within,
    evaluate,
    every_dtype,
    every_exponent,
    needs_simd,
)

FUNCTIONS = {
    # name: (ours, exact)
    "asin": (scalar.asin, mpmath.asin),
    "acos": (scalar.acos, mpmath.acos),
    "atan": (scalar.atan, mpmath.atan),
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def sample(name: str, dtype: type) -> np.ndarray:
    """Return arguments of every size, and those around which the method changes."""
    random = np.random.default_rng(0)
    info = np.finfo(dtype)
    ends = 1 - 10.0 ** random.uniform(np.log10(info.eps), -1, 300)
    middles = np.array([0.5, 1.0, math.tan(math.pi / 8), math.tan(3 * math.pi / 8)], dtype)
    x = np.concatenate(
        [
            random.uniform(-1, 1, 1500),
            random.uniform(-6, 6, 800),
            ends,
            -ends,
            every_exponent(dtype),
            *(sign * np.nextafter(middles, dtype(to)) for sign in (-1, 1) for to in (0, 9)),
            *(sign * middles for sign in (-1, 1)),
        ]
    ).astype(dtype)
    return x if name == "atan" else x[np.abs(x) <= 1]


@every_function
@every_dtype
@pytest.mark.sampled(1.0)
def test_error_is_within_the_stated_ulp(name, dtype):
    assert_within(name, FUNCTIONS[name][1], sample(name, dtype))


@every_function
@every_dtype
def test_special_values(name, dtype):
    x = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1.001, -1.001], dtype)
    half, quarter, nan = math.pi / 2, math.pi / 4, math.nan
    far = math.atan(float(x[-2]))
    expected = {
        "asin": [0.0, -0.0, half, -half, nan, nan, nan, nan, nan],
        "acos": [half, half, 0.0, math.pi, nan, nan, nan, nan, nan],
        "atan": [0.0, -0.0, quarter, -quarter, half, -half, nan, far, -far],
    }[name]
    assert_same_bits(evaluate(FUNCTIONS[name][0], x), expected)


@every_dtype
@pytest.mark.parametrize("name", ["asin", "atan"])
def test_function_is_odd(name, dtype):
    x = sample(name, dtype)
    assert_same_bits(evaluate(FUNCTIONS[name][0], -x), -evaluate(FUNCTIONS[name][0], x))


def points(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Return ordinates and abscissas of unlike and of like size, over the whole range."""
    random = np.random.default_rng(0)
    one, other = random.choice(every_exponent(dtype, 4), 1500), every_exponent(dtype, 4)
    alike = random.choice(other, 1500)
    quotients = random.uniform(-2, 2, 1500) * 2.0 ** -random.integers(0, 80, 1500)
    with np.errstate(over="ignore", under="ignore"):
        near = (alike * quotients).astype(dtype)
    y = np.concatenate([one, random.uniform(-1, 1, 1500).astype(dtype), near])
    x = np.concatenate(
        [random.choice(other, 1500), random.uniform(-1, 1, 1500).astype(dtype), alike]
    )
    keep = np.isfinite(y) & (y != 0)
    return y[keep], x[keep]


@every_dtype
@pytest.mark.sampled(1.0)
def test_error_of_atan2_is_within_1_ulp(dtype):
    assert_within("atan2", mpmath.atan2, *points(dtype))


@every_dtype
def test_atan2_of_every_special_pair_is_that_of_the_c_standard(dtype):
    """F.10.1.4: the cases of `math.atan2`, which the C standard fixes, by angles of pi/4."""
    info = np.finfo(dtype)
    values = [0.0, 1.0, info.smallest_subnormal, info.max, np.inf]
    values = np.array([*values, *(-value for value in values), np.nan], dtype)
    y, x = (side.ravel() for side in np.meshgrid(values, values))
    expected = [math.atan2(*pair) for pair in zip(y.tolist(), x.tolist(), strict=True)]
    assert_same_bits(evaluate(scalar.atan2, y.copy(), x.copy()), expected)


@needs_simd
@every_function
@every_dtype
def test_a_loop_is_vectorised(name, dtype):
    assert_vectorised(FUNCTIONS[name][0], dtype)


@needs_simd
@every_dtype
def test_a_loop_of_atan2_is_vectorised(dtype):
    assert_vectorised(scalar.atan2, dtype, count=2)
