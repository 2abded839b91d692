"""Bessel functions and the normal distribution against mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from numgrad.math import scalar
from numgrad.math.real.formats import DOUBLE, SINGLE
from numgrad.math.real.pieces import _table
from numgrad.math.real.special_tables import TABLES
from tests.math.real.accuracy import (
    assert_same_bits,
    assert_vectorised,
    assert_within,
    evaluate,
    every_dtype,
    needs_simd,
)

INF, NAN = np.inf, np.nan


def _ndtr(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _log_ndtr(x: Any) -> Any:
    return mpmath.log(_ndtr(x)) if x < 0 else mpmath.log1p(-_ndtr(-x))


def _erfcx(x: Any) -> Any:
    return mpmath.exp(x * x) * mpmath.erfc(x)


def _bessel(function: Any, order: int, scale: int = 0) -> Any:
    return lambda x: function(order, x) * mpmath.exp(scale * abs(x))


# name: (exact, lowest and highest argument, special arguments and results).
FUNCTIONS: dict[str, tuple[Any, float, float, dict[float, float]]] = {
    "erfcx": (_erfcx, -8, 200, {0: 1, INF: 0, -INF: INF, NAN: NAN, -40: INF}),
    "ndtr": (_ndtr, -13, 9, {0: 0.5, INF: 1, -INF: 0, NAN: NAN, -200: 0, 200: 1}),
    "log_ndtr": (_log_ndtr, -60, 10, {INF: -0.0, -INF: -INF, NAN: NAN, 200: -0.0}),
    "i0": (_bessel(mpmath.besseli, 0), -80, 80, {0: 1, INF: NAN, -INF: NAN, NAN: NAN, 900: INF}),
    "i1": (_bessel(mpmath.besseli, 1), -80, 80, {0: 0, INF: NAN, NAN: NAN, -900: -INF}),
    "i0e": (_bessel(mpmath.besseli, 0, -1), -200, 200, {0: 1, INF: 0, -INF: 0, NAN: NAN}),
    "i1e": (_bessel(mpmath.besseli, 1, -1), -200, 200, {0: 0, INF: 0, -INF: -0.0, NAN: NAN}),
    "k0": (_bessel(mpmath.besselk, 0), 0, 80, {0: INF, INF: 0, -1: NAN, -INF: NAN, NAN: NAN}),
    "k1": (_bessel(mpmath.besselk, 1), 0, 80, {0: INF, INF: 0, -1: NAN, -INF: NAN, NAN: NAN}),
    "k0e": (_bessel(mpmath.besselk, 0, 1), 0, 200, {0: INF, INF: 0, -1: NAN, NAN: NAN}),
    "k1e": (_bessel(mpmath.besselk, 1, 1), 0, 200, {0: INF, INF: 0, -1: NAN, NAN: NAN}),
}
WAVES = {
    "j0_near": (mpmath.besselj, 0, -16),
    "j1_near": (mpmath.besselj, 1, -16),
    "y0_near": (mpmath.bessely, 0, 0),
    "y1_near": (mpmath.bessely, 1, 0),
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def sample(dtype: Any, low: float, high: float, count: int = 60) -> np.ndarray[Any, Any]:
    """Return arguments of a range, those near 0 among them."""
    random = np.random.default_rng(0)
    near = 10.0 ** random.uniform(-6, 0, count // 2) * (random.choice([-1, 1], count // 2))
    x = np.concatenate(
        [
            random.uniform(low, high, count),
            random.uniform(max(low, -3), min(high, 3), count),
            near if low < 0 else abs(near),
        ]
    )
    return x.astype(dtype)


@every_function
@every_dtype
@pytest.mark.sampled(1.0)
def test_error_is_within_the_stated_ulp(name: str, dtype: Any) -> None:
    exact, low, high, _ = FUNCTIONS[name]
    assert_within(name, exact, sample(dtype, low, high), precision=120)


@every_function
@every_dtype
def test_special_values(name: str, dtype: Any) -> None:
    table = FUNCTIONS[name][3]
    found = evaluate(getattr(scalar, name), np.array(list(table), dtype))
    assert_same_bits(found, np.array(list(table.values()), dtype))


@every_dtype
@pytest.mark.sampled(1.0)
def test_quantiles_are_within_the_stated_ulp(dtype: Any) -> None:
    random = np.random.default_rng(0)
    tails = 10.0 ** random.uniform(-40, -1, 60)
    p = np.concatenate([random.uniform(0, 1, 100), tails, 1 - tails[tails > 1e-6]]).astype(dtype)

    def exact(p: Any) -> Any:
        # Newton's steps in the logarithm of the smaller tail.
        smaller = min(p, 1 - p)
        x = -mpf(float(evaluate(scalar.ndtri, np.array([float(smaller)]))[0]))
        for _ in range(3):
            tail = _ndtr(-x)
            density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)
            x += (mpmath.log(tail) - mpmath.log(smaller)) * tail / density
        return -x if p < 0.5 else x

    assert_within("ndtri", exact, p[p < 1], precision=160)
    edges = np.array([0, -0.0, 0.5, 1, -1e-30, 1.5, INF, -INF, NAN], dtype)
    expected = np.array([-INF, -INF, 0, INF, NAN, NAN, NAN, NAN, NAN], dtype)
    assert_same_bits(evaluate(scalar.ndtri, edges), expected)


@pytest.mark.parametrize("name", WAVES)
@every_dtype
def test_waves_are_within_some_ulp_of_their_envelope(name: str, dtype: Any) -> None:
    function, order, low = WAVES[name]
    x = sample(dtype, low, 16)
    eps = float(np.finfo(dtype).eps)
    for point, value in zip(x.tolist(), evaluate(getattr(scalar, name), x).tolist(), strict=True):
        exact = float(function(order, mpf(point)))
        envelope = np.sqrt(2 / (np.pi * abs(point))) if abs(point) > 0.5 else 0
        envelope = max(abs(exact), envelope)
        assert abs(value - exact) <= 3 * eps * envelope, (point, value, exact)


@needs_simd
@pytest.mark.parametrize("name", ["i0e", "k1", "j0_near", "ndtr", "ndtri"])
@every_dtype
def test_a_loop_is_vectorised(name: str, dtype: Any) -> None:
    assert_vectorised(getattr(scalar, name), dtype)


def test_tables_have_a_row_for_each_power_and_a_number_for_each_piece() -> None:
    for name in TABLES:
        for format in (SINGLE, DOUBLE):
            table = _table(format, name)
            assert table.ndim == 2 and np.isfinite(table).all()


@every_dtype
def test_logarithms_of_tails_so_far_out_that_squares_overflow(dtype: type) -> None:
    """-x**2 / 2 is there where x**2 is inf, and where the rest of it is next to nothing."""
    root = np.sqrt(float(np.finfo(dtype).max))
    x = np.array([-1e6, -1e9, -0.9 * root, -1.2 * root, -1.5 * root, -0.5 * root**2], dtype)
    found = evaluate(scalar.log_ndtr, x)
    half_square = x.astype(np.longdouble) ** 2 / 2
    expected = np.where(half_square > np.finfo(dtype).max, -INF, -half_square)
    np.testing.assert_allclose(
        found, expected.astype(dtype), rtol=1e-6 if dtype == np.float32 else 1e-10
    )
