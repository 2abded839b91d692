"""exp, exp2 and expm1 against mpmath: error in units in the last place, and special values."""

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
    # name: (ours, exact)
    "exp": (scalar.exp, mpmath.exp),
    "exp2": (scalar.exp2, lambda x: mpmath.mpf(2) ** x),
    "expm1": (scalar.expm1, mpmath.expm1),
}
INF, NAN = np.inf, np.nan
SPECIAL = {
    "exp": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (1e30, INF), (-1e30, 0)],
    "exp2": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (1e30, INF), (-1e30, 0)],
    "expm1": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -1), (NAN, NAN), (1e30, INF), (-1e30, -1)],
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def sample(dtype: type) -> np.ndarray:
    """Return points over the whole range: dense near 0, every exponent, and around the limits."""
    random = np.random.default_rng(0)
    info = np.finfo(dtype)
    limits = [float(np.log(x)) for x in (info.max, info.tiny, info.smallest_subnormal)]
    limits += [float(info.maxexp), float(info.minexp), float(info.minexp - info.nmant)]
    small = numbers_of_every_size(dtype, 400)
    return np.concatenate(
        [
            random.uniform(-1, 1, 800).astype(dtype),
            random.uniform(-30, 30, 600).astype(dtype),
            random.uniform(min(limits) - 1, max(limits) + 1, 800).astype(dtype),
            small[np.abs(small) < 10],
            neighbours(dtype, *limits, 0.5, -0.5, 0.0, *(np.log(2) / 2 * np.array([1, -1]))),
        ]
    )


@every_function
@every_dtype
@pytest.mark.sampled(1.0)
def test_error_is_within_the_stated_ulp(name, dtype):
    assert_within(name, FUNCTIONS[name][1], sample(dtype))


@every_function
@every_dtype
def test_special_values_are_those_of_ieee(name, dtype):
    assert_values(FUNCTIONS[name][0], dtype, SPECIAL[name])


@every_dtype
def test_exp2_of_an_integer_is_exact(dtype):
    info = np.finfo(dtype)
    k = np.arange(info.minexp - info.nmant, info.maxexp)
    np.testing.assert_array_equal(
        evaluate(scalar.exp2, k.astype(dtype)), np.ldexp(dtype(1), k).astype(dtype)
    )


@needs_simd
@every_function
@every_dtype
def test_loop_is_vectorised(name, dtype):
    assert_vectorised(FUNCTIONS[name][0], dtype)
