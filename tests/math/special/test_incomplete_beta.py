"""The incomplete beta function, its derivatives, those of zeta, and Airy's, against mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from numgrad.math import scalar
from tests.cases import thinned
from tests.math.real.accuracy import assert_values, evaluate, every_dtype

Array = np.ndarray[Any, Any]
EPSILON = 2.0**-52


def arguments(low: float, high: float, count: int = 25) -> tuple[Array, Array, Array]:
    """Return parameters and, for most of them, a number near the mean of that distribution."""
    random = np.random.default_rng(3)
    a, b = 10.0 ** random.uniform(low, high, (2, count))
    mean = a / (a + b)
    spread = np.sqrt(mean * (1 - mean) / (a + b + 1))
    near = np.clip(mean + 2 * spread * random.normal(size=count), 1e-6, 1 - 1e-6)
    return a, b, np.where(random.random(count) < 0.7, near, random.random(count))


def regularised(a: Any, b: Any, x: Any) -> Any:
    """Return the lower function, less 1 where it is the larger part."""
    if x * (a + b) > a:
        return -mpmath.betainc(a, b, x, 1, regularized=True)
    return mpmath.betainc(a, b, 0, x, regularized=True)


def differences(a: Any, b: Any, x: Any, by_a: int, by_b: int) -> Any:
    """Return a derivative for the parameters, by differences of many digits."""
    p, q = a * mpf(2) ** -60, b * mpf(2) ** -60

    def f(i: int, j: int) -> Any:
        return regularised(a + i * p, b + j * q, x)

    if by_a + by_b == 1:
        return (f(by_a, by_b) - f(-by_a, -by_b)) / (2 * (p if by_a else q))
    if by_a and by_b:
        return (f(1, 1) - f(1, -1) - f(-1, 1) + f(-1, -1)) / (4 * p * q)
    step = p if by_a else q
    ends = f(1, 0) + f(-1, 0) if by_a else f(0, 1) + f(0, -1)
    return (ends - 2 * f(0, 0)) / step**2


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize(("low", "high"), [(-3.0, 0.3), (0.0, 1.5), (1.0, 3.0)])
def test_the_incomplete_beta_function_and_its_derivatives(low: float, high: float) -> None:
    a, b, x = (thinned(each, 4) for each in arguments(low, high))
    found = evaluate(scalar.betainc, a, b, x)
    orders = [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
    ones = np.ones(a.size)
    slopes = [evaluate(scalar.betainc_slope, a, b, x, i * ones, j * ones) for i, j in orders]
    with mpmath.workprec(300):
        for k, point in enumerate(zip(a.tolist(), b.tolist(), x.tolist(), strict=True)):
            exact = regularised(*map(mpf, point))
            value = 1 + exact if exact < 0 else exact
            if value < 1e-250:
                continue
            digits = 1 + abs(mpmath.log(value))
            assert abs(mpf(found[k]) / value - 1) < 16 * digits * EPSILON, point
            for (i, j), values in zip(orders, slopes, strict=True):
                slope = differences(*map(mpf, point), i, j)
                # Beside the terms of which it is a sum.
                near = 1e-12 * abs(slope) + 1e-13 * abs(exact) * digits ** (i + j)
                assert abs(mpf(values[k]) - slope) < near, (point, i, j)


def test_the_incomplete_beta_function_of_a_parameter_near_0() -> None:
    points = [(1.0, 1e-10, 0.9), (3.0, 1e-8, 0.9999), (20.0, 1e-6, 0.99999), (0.5, 0.2, 0.99995)]
    a, b, x = np.array([*points, (1e-10, 2.0, 0.3), (1e-3, 1e-3, 1e-5)]).T
    found = evaluate(scalar.betainc, a, b, x)
    with mpmath.workprec(200):
        for k, point in enumerate(zip(a.tolist(), b.tolist(), x.tolist(), strict=True)):
            exact = regularised(*map(mpf, point))
            exact = 1 + exact if exact < 0 else exact
            assert abs(mpf(found[k]) / exact - 1) < 1e-11, point


def test_special_values_of_the_incomplete_beta_function() -> None:
    inf, nan = np.inf, np.nan
    table = [
        *((2.0, 3.0, 0.0, 0.0), (2.0, 3.0, 1.0, 1.0), (2.0, 3.0, -0.1, nan), (2.0, 3.0, 1.1, nan)),
        *((-1.0, 3.0, 0.5, nan), (2.0, -3.0, 0.5, nan), (nan, 1.0, 0.5, nan), (1.0, 1.0, nan, nan)),
        *((0.0, 3.0, 0.5, 1.0), (2.0, 0.0, 0.5, 0.0), (0.0, 0.0, 0.5, nan)),
        *((inf, 3.0, 0.5, 0.0), (2.0, inf, 0.5, 1.0), (inf, inf, 0.5, nan)),
    ]
    a, b, x, expected = np.array(table).T
    np.testing.assert_array_equal(evaluate(scalar.betainc, a, b, x), expected)


def test_derivatives_of_zeta_for_its_exponent() -> None:
    random = np.random.default_rng(5)
    s = 1 + 10.0 ** thinned(random.uniform(-2, 1.2, 40), 4)
    q = 10.0 ** thinned(random.uniform(-1, 1.5, 40), 4)
    for order in (1, 2):
        found = evaluate(scalar.zeta_slope, s, q, np.full(s.size, float(order)))
        with mpmath.workprec(200):
            for value, a, b in zip(found.tolist(), s.tolist(), q.tolist(), strict=True):
                exact = mpmath.diff(lambda t, b=b: mpmath.zeta(t, mpf(b)), mpf(a), order)
                size = abs(exact) + mpmath.zeta(mpf(a), mpf(b))
                assert abs(mpf(value) - exact) < 16 * EPSILON * size, (a, b)


@pytest.mark.sampled(0.5)
@every_dtype
def test_airys_function_and_its_derivative(dtype: Any) -> None:
    random = np.random.default_rng(6)
    sizes = np.concatenate([random.uniform(0, 12, 150), 10.0 ** random.uniform(0, 1.9, 50)])
    x = np.concatenate([sizes, -sizes, -(10.0 ** random.uniform(2, 6, 30))]).astype(dtype)
    x = thinned(x, 4)
    epsilon = float(np.finfo(dtype).eps)
    for name, order in (("airy_ai", 0), ("airy_ai_slope", 1)):
        found = evaluate(getattr(scalar, name), x)
        for value, point in zip(found.tolist(), x.tolist(), strict=True):
            exact = mpmath.airyai(mpf(point), derivative=order)
            envelope = max(1.0, abs(point)) ** (0.25 if order else -0.25) if point < 0 else 0.0
            near = 4 * epsilon * max(abs(exact), envelope / np.sqrt(np.pi))
            assert abs(mpf(value) - exact) <= near + np.finfo(dtype).tiny, (name, point)
    assert_values(scalar.airy_ai, dtype, [(200, 0), (np.inf, np.nan), (-np.inf, np.nan)])
