"""pow, cbrt and hypot against mpmath, and the special values of the C standard."""

from __future__ import annotations

import itertools
import math

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


def _exact_cbrt(x):
    return mpmath.cbrt(x) if x >= 0 else -mpmath.cbrt(-x)


def _exact_hypot(x, y):
    return mpmath.sqrt(x * x + y * y)


@every_dtype
@pytest.mark.sampled(1.0)
def test_pow_is_within_1_ulp(dtype):
    """Bases of every size with results of every size, and bases near 1 with large exponents."""
    random = np.random.default_rng(0)
    info = np.finfo(dtype)
    near_1 = 1 + random.choice([-1, 1], 800) * 2.0 ** -random.uniform(1, info.nmant, 800)
    base = np.concatenate(
        [numbers_of_every_size(dtype, 1200, signs=(1,)), near_1.astype(dtype)],
    )
    result = random.uniform(info.minexp - info.nmant - 1, info.maxexp + 1, base.size)
    base, result = base[base != 1], result[base != 1]
    exponent = (result / np.log2(base.astype(np.float64))).astype(dtype)
    assert_within("pow", mpmath.power, base, exponent)


@every_dtype
@pytest.mark.sampled(1.0)
def test_pow_of_everyday_numbers_is_within_1_ulp(dtype):
    random = np.random.default_rng(1)
    base = random.uniform(0, 20, 1000).astype(dtype)
    exponent = random.uniform(-10, 10, 1000).astype(dtype)
    assert_within("pow", mpmath.power, base, exponent)
    whole = random.integers(-9, 10, 1000).astype(dtype)
    assert_within("pow", mpmath.power, -base, whole)


@every_dtype
def test_a_power_that_is_a_number_of_the_type_is_exact(dtype):
    whole = [
        (b, e)
        for b, e in itertools.product(range(-40, 41), range(0, 40))
        if abs(b) ** e < 2 ** (np.finfo(dtype).nmant + 1)
    ]
    base, exponent = np.array(whole, dtype).T.copy()
    expected = np.array([float(b**e) for b, e in whole], dtype)
    np.testing.assert_array_equal(evaluate(scalar.pow, base, exponent), expected)


@every_dtype
def test_pow_has_the_special_values_of_the_c_library(dtype):
    """math.pow is that of C99; where it raises, C returns nan or an infinity."""
    info = np.finfo(dtype)
    odd = 2.0 ** (info.nmant + 1) - 1
    numbers = [0.0, 1.0, 0.5, 2.0, 3.0, 1.5, odd, odd + 1, float(info.max), INF]
    numbers = [sign * x for x in [*numbers, float(info.tiny)] for sign in (1, -1)] + [NAN]

    def power(base: float, exponent: float) -> float:
        is_odd = math.fmod(exponent, 2) in (1, -1) if math.isfinite(exponent) else False
        try:
            return math.pow(base, exponent)
        except OverflowError:
            return -INF if base < 0 and is_odd else INF
        except ValueError:
            if base == 0:
                return math.copysign(INF, base) if is_odd else INF
            return NAN

    table = [(b, e, power(b, e)) for b, e in itertools.product(numbers, repeat=2)]
    # Those that are the same in every precision; the others are numbers like any.
    table = [row for row in table if abs(row[2]) in (0.0, 1.0, INF) or math.isnan(row[2])]
    assert_values(scalar.pow, dtype, table)


@every_dtype
@pytest.mark.sampled(1.0)
def test_cbrt_is_within_1_ulp(dtype):
    random = np.random.default_rng(0)
    info = np.finfo(dtype)
    x = np.concatenate(
        [
            numbers_of_every_size(dtype, 1200),
            random.uniform(-8, 8, 800).astype(dtype),
            neighbours(dtype, 1.0, 2.0, 4.0, 8.0, -27.0, info.tiny, info.smallest_subnormal),
            [info.max],
        ]
    )
    assert_within("cbrt", _exact_cbrt, x.astype(dtype))
    table = [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (27, 3), (-8, -2)]
    assert_values(scalar.cbrt, dtype, table)


@every_dtype
@pytest.mark.sampled(1.0)
def test_hypot_is_within_1_ulp(dtype):
    random = np.random.default_rng(0)
    x = numbers_of_every_size(dtype, 800)
    ratio = 2.0 ** random.uniform(-30, 0, 800)
    with np.errstate(all="ignore"):
        beside = (x.astype(np.float64) * ratio).astype(dtype)
    x = np.concatenate([x, random.standard_normal(800).astype(dtype)])
    y = np.concatenate([beside, random.standard_normal(800).astype(dtype)])
    assert_within("hypot", _exact_hypot, x, y)
    table = [(3, 4, 5), (-3, 4, 5), (0, -0.0, 0), (INF, NAN, INF), (NAN, -INF, INF), (1, NAN, NAN)]
    assert_values(scalar.hypot, dtype, table)


@needs_simd
@every_dtype
def test_loops_are_vectorised(dtype):
    assert_vectorised(scalar.pow, dtype, 2)
    assert_vectorised(scalar.hypot, dtype, 2)
    assert_vectorised(scalar.cbrt, dtype)
