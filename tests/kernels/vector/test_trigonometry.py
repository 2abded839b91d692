"""sin and cos against mpmath, near 0 and far from it."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numba import njit

import numgrad as ng
from numgrad.kernels import scalar

FUNCTIONS = {
    "sin": (scalar.sin, scalar.sin_near, mpmath.sin),
    "cos": (scalar.cos, scalar.cos_near, mpmath.cos),
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)
every_dtype = pytest.mark.parametrize(
    ("dtype", "near"), [(np.float32, 2.0**11), (np.float64, 2.0**19)], ids=["float32", "float64"]
)


def evaluate(function, x: np.ndarray) -> np.ndarray:
    @njit(error_model="numpy")
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    out = np.empty_like(x)
    loop(x, out)
    return out


def sample(dtype: type, near: float) -> np.ndarray:
    """Return angles of every size, and those next to where sin or cos is 0."""
    random = np.random.default_rng(0)
    quarters = np.unique(random.integers(0, int(near / np.pi * 4), 800)) * (np.pi / 4)
    x = np.concatenate(
        [
            random.uniform(-near, near, 600),
            random.uniform(-4, 4, 800),
            quarters,
            -quarters,
            10.0 ** random.uniform(-35, np.log10(near), 400),
        ]
    ).astype(dtype)
    return x[np.abs(x) <= near]


@every_function
@every_dtype
def test_error_is_within_2_ulp(name, dtype, near):
    function, _, exact_function = FUNCTIONS[name]
    x = sample(dtype, near)
    with mpmath.workprec(300):
        for point, value in zip(x, evaluate(function, x), strict=True):
            exact = exact_function(mpmath.mpf(float(point)))
            spacing = float(np.spacing(np.abs(dtype(float(exact)))))
            assert abs(mpmath.mpf(float(value)) - exact) <= 2 * spacing, (point, value)


@every_function
@every_dtype
def test_without_a_branch_the_bits_are_the_same(name, dtype, near):
    function, without_branch, _ = FUNCTIONS[name]
    x = sample(dtype, near)
    np.testing.assert_array_equal(evaluate(function, x), evaluate(without_branch, x))


@every_function
@every_dtype
def test_far_angles_infinities_and_nan(name, dtype, near):
    x = np.array([1e9, -1e9, near * 3, np.inf, -np.inf, np.nan], dtype)
    exact = getattr(np, name)(x[:3].astype(np.float64))
    result = evaluate(FUNCTIONS[name][0], x)
    np.testing.assert_allclose(result[:3], exact, rtol=np.finfo(dtype).eps * 2)
    assert np.isnan(result[3:]).all()


@every_function
@every_dtype
def test_an_elements_bits_do_not_depend_on_its_neighbours(name, dtype, near):
    """One far element sends the whole loop the other way; the others keep their values."""
    x = sample(dtype, near)
    function = getattr(ng, name)
    alone = function(ng.from_numpy(x)).numpy()
    beside = function(ng.from_numpy(np.append(x, dtype(1e9)))).numpy()
    np.testing.assert_array_equal(beside[:-1], alone)


def test_sin_keeps_the_sign_of_zero():
    x = np.array([0.0, -0.0])
    np.testing.assert_array_equal(np.signbit(evaluate(scalar.sin, x)), [False, True])
