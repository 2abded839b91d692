"""lgamma, digamma, polygamma, zeta, and the beta function against mpmath; special values."""

from __future__ import annotations

from typing import Any

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

INF, NAN = np.inf, np.nan
EXACT = {"lgamma": mpmath.loggamma, "digamma": mpmath.digamma}
every_function = pytest.mark.parametrize("name", EXACT)


def positive(dtype: Any) -> np.ndarray:
    """Return numbers of every size, and more where the way of computing changes."""
    random = np.random.default_rng(0)
    marks = (0.5, 0.75, 1.0, 1.25, 1.4616321, 1.5, 2.0, 2.5, 3.0, 3.5, 7.0, 7.5, 8.0)
    sizes = numbers_of_every_size(dtype, 150, signs=(1,))
    return np.concatenate(
        [
            sizes[sizes < (1e36 if dtype is np.float32 else 1e305)],
            random.uniform(0, 3, 400).astype(dtype),
            random.uniform(0, 20, 300).astype(dtype),
            neighbours(dtype, *marks),
        ]
    )


@every_function
@every_dtype
@pytest.mark.sampled(1.0)
def test_errors_of_positive_numbers_are_within_the_stated_ulp(name, dtype):
    assert_within(name, EXACT[name], positive(dtype))


@every_function
@every_dtype
def test_errors_of_negative_numbers_are_small_beside_the_larger_term(name, dtype):
    random = np.random.default_rng(1)
    x = -np.concatenate([random.uniform(0, 30, 400), 10.0 ** random.uniform(-30, 0, 100)])
    x = x.astype(dtype)
    x = x[x != np.floor(x)]
    for point, value in zip(x.tolist(), evaluate(getattr(scalar, name), x).tolist(), strict=True):
        exact = mpmath.re(EXACT[name](mpmath.mpf(point)))
        term = max(abs(exact), abs(EXACT[name](1 - mpmath.mpf(point))))
        assert abs(value - exact) <= 4 * np.finfo(dtype).eps * term, (point, value)


@every_dtype
def test_special_values_are_those_of_c(dtype):
    finite = [(1, 0), (2, 0), (-1, INF), (-7, INF), (0, INF), (-0.0, INF), (-1e30, INF)]
    assert_values(scalar.lgamma, dtype, [*finite, (INF, INF), (-INF, INF), (NAN, NAN)])
    poles = [(0, -INF), (-0.0, INF), (-1, NAN), (-7, NAN), (-1e30, NAN)]
    assert_values(scalar.digamma, dtype, [*poles, (INF, INF), (-INF, NAN), (NAN, NAN)])


def test_lgamma_is_infinite_where_it_is_too_large():
    for dtype, most in ((np.float64, 2.5599833278516383e305), (np.float32, 4.085003e36)):
        x = np.array([most, np.nextafter(dtype(most), dtype(INF))], dtype)
        np.testing.assert_array_equal(np.isinf(evaluate(scalar.lgamma, x)), [False, True])


@needs_simd
@every_function
@every_dtype
def test_loops_are_vectorised(name, dtype):
    assert_vectorised(getattr(scalar, name), dtype)


@every_dtype
@pytest.mark.sampled(1.0)
def test_errors_of_zeta_are_within_the_stated_ulp(dtype):
    random = np.random.default_rng(2)
    s = (1 + 10.0 ** random.uniform(-3, 1.3, 150)).astype(dtype)
    q = (10.0 ** random.uniform(-1, 1.3, 150)).astype(dtype)
    assert_within("zeta", mpmath.zeta, s, q, precision=120)


@every_dtype
@pytest.mark.sampled(1.0)
def test_errors_of_polygamma_are_within_the_stated_ulp(dtype):
    random = np.random.default_rng(3)
    n = random.integers(1, 9, 150).astype(dtype)
    x = (10.0 ** random.uniform(-2, 2, 150)).astype(dtype)
    assert_within("polygamma", lambda x, n: mpmath.polygamma(int(n), x), x, n, precision=120)


def test_polygamma_of_negative_numbers():
    x = np.array([-0.4, -1.25, -2.75, -20.125, -1e4 - 0.25])
    for n in (1, 2, 3, 6):
        found = evaluate(scalar.polygamma, x, np.full(x.size, float(n)))
        exact = [float(mpmath.polygamma(n, mpmath.mpf(v))) for v in x]
        np.testing.assert_allclose(found, exact, rtol=1e-14)


def test_special_values_of_zeta():
    table = [(2, 0, INF), (2, -3, INF), (1, 2, INF), (0.5, 2, NAN), (2.5, -0.5, NAN), (NAN, 1, NAN)]
    assert_values(scalar.zeta, np.float64, [*table, (2, NAN, NAN)])
    # Beyond the integers of 64 bits, too.
    assert_values(scalar.zeta, np.float64, [(2, -INF, INF), (3, -1e30, INF)])
    # The sum ends where its terms are 0, too.
    assert_values(scalar.zeta, np.float64, [(INF, 2, NAN), (1e37, 2, 0), (1e300, 1, 1)])


def test_mvlgamma_is_a_sum_of_lgamma():
    x = np.random.default_rng(4).uniform(2.1, 20, 50)
    found = evaluate(scalar.mvlgamma, x, np.full(x.size, 5.0))
    exact = [
        float(5 * mpmath.log(mpmath.pi) + sum(mpmath.loggamma(v - j / 2) for j in range(5)))
        for v in map(mpmath.mpf, x.tolist())
    ]
    np.testing.assert_allclose(found, exact, rtol=1e-14)


@every_dtype
def test_errors_of_the_beta_function(dtype):
    random = np.random.default_rng(5)
    a, b = (10.0 ** random.uniform(-3, 5, (2, 300))).astype(dtype)
    with mpmath.workprec(120):
        exact = [
            mpmath.loggamma(p) + mpmath.loggamma(q) - mpmath.loggamma(p + q)
            for p, q in zip(map(mpmath.mpf, a.tolist()), map(mpmath.mpf, b.tolist()), strict=True)
        ]
        direct = np.array([float(mpmath.exp(e)) for e in exact])
    logarithm = np.array([float(e) for e in exact])
    eps = float(np.finfo(dtype).eps)
    error = np.abs(evaluate(scalar.betaln, a, b) - logarithm)
    assert np.all(error <= 4 * eps * np.maximum(np.abs(logarithm), 1))
    fits = (direct > np.finfo(dtype).tiny) & (direct < np.finfo(dtype).max)
    error = np.abs(evaluate(scalar.beta, a, b)[fits] / direct[fits] - 1)
    assert np.all(error <= eps * (16 + 2 * np.abs(logarithm[fits])))


def test_the_beta_function_of_negative_numbers_and_of_large_ones():
    assert_values(scalar.betaln, np.float64, [(NAN, 1, NAN), (1, INF, -INF), (0, 1, INF)])
    found = evaluate(scalar.beta, np.array([-0.5, -1.5, 2.0]), np.array([2.25, 0.75, -0.5]))
    exact = [mpmath.beta(*pair) for pair in ((-0.5, 2.25), (-1.5, 0.75), (2.0, -0.5))]
    np.testing.assert_allclose(found, [float(e) for e in exact], rtol=1e-14)
