"""sinh, cosh, tanh and their inverses against mpmath, and special values."""

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
    # name: (ours, exact, lower end of the domain, upper end)
    "sinh": (scalar.sinh, mpmath.sinh, -np.inf, np.inf),
    "cosh": (scalar.cosh, mpmath.cosh, -np.inf, np.inf),
    "tanh": (scalar.tanh, mpmath.tanh, -np.inf, np.inf),
    "asinh": (scalar.asinh, mpmath.asinh, -np.inf, np.inf),
    "acosh": (scalar.acosh, mpmath.acosh, 1, np.inf),
    "atanh": (scalar.atanh, mpmath.atanh, -1, 1),
}
INVERSES = ("asinh", "acosh", "atanh")
INF, NAN = np.inf, np.nan
ZEROS = [(0, 0), (-0.0, -0.0), (NAN, NAN)]
SPECIAL = {
    "sinh": [*ZEROS, (INF, INF), (-INF, -INF), (1e30, INF), (-1e30, -INF)],
    "cosh": [(0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (NAN, NAN), (-1e30, INF)],
    "tanh": [*ZEROS, (INF, 1), (-INF, -1), (1e30, 1), (-1e30, -1)],
    "asinh": [*ZEROS, (INF, INF), (-INF, -INF)],
    "acosh": [(1, 0), (INF, INF), (NAN, NAN), (0.5, NAN), (-1, NAN), (-1e30, NAN), (-INF, NAN)],
    "atanh": [*ZEROS, (1, INF), (-1, -INF), (1.5, NAN), (-1e30, NAN), (INF, NAN), (-INF, NAN)],
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def sample(name: str, dtype: type) -> np.ndarray:
    """Return points of every size in the domain, more of them near 0, 1 and the limits."""
    random = np.random.default_rng(0)
    largest = float(np.log(np.finfo(dtype).max))
    every_size = numbers_of_every_size(dtype, 600)
    spread = [random.uniform(-a, a, 500).astype(dtype) for a in (1, 5, 30, largest + 1)]
    near_1 = (1 + random.choice([-1, 1], 300) * 2.0 ** -random.uniform(1, 50, 300)).astype(dtype)
    marks = neighbours(dtype, largest, -largest, 0.0, 1.0, -1.0, 0.5, 2.0**28, 2.0**13)
    x = np.concatenate([every_size, *spread, near_1, marks])
    if name not in INVERSES:
        x = x[np.abs(x) < 2 * largest]
    low, high = FUNCTIONS[name][2:]
    inside = (x >= low) & (x <= high)
    return x[inside & (np.abs(x) != 1)] if name == "atanh" else x[inside]


@every_function
@every_dtype
@pytest.mark.sampled(1.0)
def test_error_is_within_the_stated_ulp(name, dtype):
    assert_within(name, FUNCTIONS[name][1], sample(name, dtype))


@every_function
@every_dtype
def test_special_values_are_those_of_ieee(name, dtype):
    assert_values(FUNCTIONS[name][0], dtype, SPECIAL[name])


@every_dtype
def test_tanh_is_odd_and_at_most_1(dtype):
    x = np.abs(sample("tanh", dtype))
    result = evaluate(scalar.tanh, x)
    np.testing.assert_array_equal(evaluate(scalar.tanh, -x), -result)
    assert (result <= 1).all()


@needs_simd
@every_function
@every_dtype
def test_loop_is_vectorised(name, dtype):
    assert_vectorised(FUNCTIONS[name][0], dtype)
