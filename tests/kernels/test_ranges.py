"""Evenly spaced numbers, against exact fractions that are rounded once."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from numgrad.base.tuning import COUNTED_BY_NUMPY
from numgrad.kernels.ranges import evenly, in_lanes, powers

COUNTS = (0, 1, 2, 7, 40, COUNTED_BY_NUMPY + 37)  # by NumPy, and by a loop


def counted(start: float, step: float, count: float) -> float:
    return float(Fraction(start) + Fraction(step) * Fraction(count))


def in_vectors(start: float, step: float, count: int, dtype: Any) -> list[float]:
    """Return what vectors of 32 bytes hold, two at a time; then number by number.

    In float16 all of it is computed in float32.
    """
    wide = np.float32 if dtype is np.float16 else np.float64
    start, step = float(wide(start)), float(wide(step))
    width = 32 // np.dtype(dtype).itemsize
    whole = count - count % (2 * width)
    found: list[float] = []
    for k in range(count):
        if k >= whole:
            number = counted(start, step, k)
        elif k % width == 0:
            number = first = float(dtype(wide(counted(start, step, k))))
        else:
            number = counted(first, step, k % width)
        found.append(float(dtype(wide(number))))
    return found


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("count", COUNTS)
def test_numbers_of_a_vector_are_counted_from_its_first(count: int, dtype: Any) -> None:
    random = Random(count)
    for _ in range(1 if count > 1000 else 4):
        start, step = random.uniform(-9, 9), random.choice([0.1, 1 / 3, random.uniform(-1, 1)])
        found = in_lanes(start, step, count, np.dtype(dtype))
        assert found.dtype == dtype
        assert found.tolist() == in_vectors(start, step, count, dtype)


@pytest.mark.parametrize("count", COUNTS[2:])
def test_both_ends_are_met_and_all_between_is_rounded_once(count: int) -> None:
    random = Random(count)
    for _ in range(4):
        first, last = random.uniform(-9, 9), random.choice([0.0, 1.0, random.uniform(-99, 99)])
        step, half = (last - first) / (count - 1), count // 2
        expected = [counted(first, step, k) for k in range(half)]
        expected += [counted(last, -step, count - 1 - k) for k in range(half, count)]
        assert evenly(first, last, count).tolist() == expected


@pytest.mark.parametrize("count", [3, 5, COUNTED_BY_NUMPY + 37])
def test_numbers_near_the_end_of_the_range_stay_in_it(count: int) -> None:
    """Neither their distance nor what a number is split into may overflow."""
    for first, last in ((-1.7e308, 1.7e308), (1.7e308, -1.6e308), (1.1e308, 1.7e308)):
        found = evenly(first, last, count)
        scaled = np.linspace(first / 4, last / 4, count) * 4
        assert (found[0], found[-1]) == (first, last)
        np.testing.assert_allclose(found, scaled, rtol=1e-12, atol=1e296)
    for start, step in ((1.5e308, 1e303), (1.0, 1e304), (1.5e308, 1.0)):
        found = in_lanes(start, step, count, np.dtype(float))
        np.testing.assert_allclose(found, start + step * np.arange(count), rtol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_powers_have_exponents_from_both_ends(count: int) -> None:
    for base, first, last in ((10.0, -2.0, 3.0), (2.0, 1.0, 7.5), (0.5, 3.0, -3.0)):
        found, expected = (
            powers(base, first, last, count, np.dtype(float)),
            np.logspace(first, last, count, base=base),
        )
        np.testing.assert_allclose(found, expected, rtol=1e-13)
