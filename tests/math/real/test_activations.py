"""sigmoid, softplus and logsigmoid against mpmath, and special values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from numgrad.math import scalar
from tests.math.real.accuracy import (
    assert_values,
    assert_vectorised,
    assert_within,
    every_dtype,
    needs_simd,
    neighbours,
    numbers_of_every_size,
)

FUNCTIONS = {
    "sigmoid": (scalar.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x))),
    "softplus": (scalar.softplus, lambda x: mpmath.log1p(mpmath.exp(x))),
    "logsigmoid": (scalar.logsigmoid, lambda x: -mpmath.log1p(mpmath.exp(-x))),
}
INF, NAN = np.inf, np.nan
SPECIAL = {
    "sigmoid": [(0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (NAN, NAN), (1e30, 1), (-1e30, 0)],
    "softplus": [(INF, INF), (-INF, 0), (NAN, NAN), (1e30, 1e30), (-1e30, 0)],
    "logsigmoid": [(INF, 0), (-INF, -INF), (NAN, NAN), (1e30, 0), (-1e30, -1e30)],
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def sample(dtype: type) -> np.ndarray:
    """Return points over the whole range: dense near 0, every exponent, and around the limits."""
    random = np.random.default_rng(0)
    smallest = -float(np.log(np.finfo(dtype).smallest_subnormal))
    every_size = numbers_of_every_size(dtype, 400)
    spread = [random.uniform(-a, a, 700).astype(dtype) for a in (2, 30, smallest + 1)]
    marks = neighbours(dtype, 0.0, smallest, -smallest, np.log(2**0.5 - 1))
    return np.concatenate([every_size[np.abs(every_size) < 1000], *spread, marks])


@every_function
@every_dtype
@pytest.mark.sampled(1.0)
def test_error_is_within_the_stated_ulp(name, dtype):
    assert_within(name, FUNCTIONS[name][1], sample(dtype))


@every_function
@every_dtype
def test_special_values(name, dtype):
    assert_values(FUNCTIONS[name][0], dtype, SPECIAL[name])


@needs_simd
@every_function
@every_dtype
def test_loop_is_vectorised(name, dtype):
    assert_vectorised(FUNCTIONS[name][0], dtype)
