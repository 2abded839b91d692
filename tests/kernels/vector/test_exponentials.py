"""exp, expm1 and tanh against mpmath: error in units in the last place, and special values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numba import njit

from numgrad.kernels import scalar

FUNCTIONS = {
    # name: (ours, exact, greatest error in ulp)
    "exp": (scalar.exp, mpmath.exp, 1.0),
    "expm1": (scalar.expm1, mpmath.expm1, 2.0),
    "tanh": (scalar.tanh, mpmath.tanh, 3.0),
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def evaluate(name: str, x: np.ndarray) -> np.ndarray:
    function = FUNCTIONS[name][0]

    @njit(error_model="numpy")
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    out = np.empty_like(x)
    loop(x, out)
    return out


def sample(dtype: type) -> np.ndarray:
    """Return points over the whole range: dense near 0, every exponent, and around the limits."""
    random = np.random.default_rng(0)
    info = np.finfo(dtype)
    largest = float(np.log(info.max))
    smallest = float(np.log(info.smallest_subnormal))
    exponents = np.arange(info.minexp, 10)
    return np.concatenate(
        [
            random.uniform(-1, 1, 800),
            random.uniform(-30, 30, 600),
            random.uniform(smallest - 1, largest + 1, 600),
            np.ldexp(random.uniform(1, 2, exponents.size), exponents),
            -np.ldexp(random.uniform(1, 2, exponents.size), exponents),
            np.nextafter(dtype(largest), dtype([0, np.inf])),
            [smallest, smallest + 0.5, info.smallest_subnormal, -info.smallest_subnormal],
        ]
    ).astype(dtype)


@every_function
@every_dtype
def test_error_is_within_the_stated_ulp(name, dtype):
    exact_function, bound = FUNCTIONS[name][1:]
    x = sample(dtype)
    largest = float(np.finfo(dtype).max)
    with mpmath.workprec(200):
        for point, value in zip(x, evaluate(name, x), strict=True):
            exact = exact_function(mpmath.mpf(float(point)))
            if abs(exact) > largest:
                assert value in (np.inf, np.finfo(dtype).max)
                continue
            spacing = float(np.spacing(np.abs(dtype(float(exact)))))
            assert abs(mpmath.mpf(float(value)) - exact) <= bound * spacing, (point, value)


@every_function
@every_dtype
def test_special_values_are_those_of_ieee(name, dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30], dtype)
    expected = {
        "exp": [1, 1, np.inf, 0, np.nan, np.inf, 0],
        "expm1": [0.0, -0.0, np.inf, -1, np.nan, np.inf, -1],
        "tanh": [0.0, -0.0, 1, -1, np.nan, 1, -1],
    }[name]
    result = evaluate(name, x)
    np.testing.assert_array_equal(result, np.array(expected, dtype))
    np.testing.assert_array_equal(np.signbit(result[:2]), np.signbit(np.array(expected[:2])))


@every_dtype
def test_tanh_is_odd_and_at_most_1(dtype):
    x = np.sort(np.abs(sample(dtype)))
    result = evaluate("tanh", x)
    np.testing.assert_array_equal(evaluate("tanh", -x), -result)
    assert (result <= 1).all()
