"""The incomplete gamma functions and their derivatives for the first argument against mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from numba import njit

from numgrad.math import scalar
from tests.cases import thinned

gammainc, gammaincc, slope = scalar.gammainc, scalar.gammaincc, scalar.gammainc_slope
density = scalar.gamma_density
INF, NAN = np.inf, np.nan


@njit(error_model="numpy")
def values(a, x, out):  # type: ignore[no-untyped-def]
    for i in range(a.size):
        out[0, i] = gammainc(a[i], x[i])
        out[1, i] = gammaincc(a[i], x[i])
        out[2, i] = density(a[i], x[i])
        out[3, i] = slope(a[i], x[i], a.dtype.type(1))
        out[4, i] = slope(a[i], x[i], a.dtype.type(2))


def evaluate(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    out = np.empty((5, a.size), a.dtype)
    values(a, x, out)
    return out


def exact(a: float, x: float) -> list[Any]:
    """Return the same five numbers; derivatives by differences in many digits, of the smaller."""
    with mpmath.workprec(220):
        a, x = mpmath.mpf(a), mpmath.mpf(x)
        step = a * mpmath.mpf(2) ** -40

        def both(a: Any) -> Any:
            lower = mpmath.gammainc(a, 0, x, regularized=True)
            return lower, mpmath.gammainc(a, x, mpmath.inf, regularized=True)

        found = {k: both(a + k * step) for k in (-2, -1, 0, 1, 2)}
        sign = 1 if found[0][0] < found[0][1] else -1
        f = {k: sign * min(pair) if k == 0 else sign * pair[sign < 0] for k, pair in found.items()}
        first = (8 * (f[1] - f[-1]) - (f[2] - f[-2])) / (12 * step)
        second = (-f[2] + 16 * f[1] - 30 * f[0] + 16 * f[-1] - f[-2]) / (12 * step**2)
        log_density = (a - 1) * mpmath.log(x) - x - mpmath.loggamma(a)
        return [*found[0], mpmath.exp(log_density), first, second]


def points(which: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    low, high = {"small": (-3, 0.3), "middle": (0.3, 1.5), "large": (1.3, 3.5)}[which]
    a = 10.0 ** random.uniform(low, high, count)
    near = a * (1 + random.uniform(-1, 1, count) * np.minimum(0.9, 4 / np.sqrt(a)))
    wide = a * 10.0 ** random.uniform(-1.0, 0.7, count)
    return a, np.where(random.random(count) < 0.6, near, wide)


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("which", ["small", "middle", "large"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_errors(which: str, dtype: Any) -> None:
    a, x = (thinned(each.astype(dtype), 4) for each in points(which, 60))
    eps = float(np.finfo(dtype).eps)
    for point, found in zip(
        zip(a.tolist(), x.tolist(), strict=True), evaluate(a, x).T, strict=True
    ):
        wanted = exact(*point)
        if min(wanted[:3]) < float(np.finfo(dtype).tiny):
            continue
        # What stands in front is an exponential, whose exponent has an error of its own.
        exponent = -float(mpmath.log(wanted[2] * min(1, point[1])))
        bound = (24 + 4 * abs(exponent)) * eps if dtype is np.float64 else eps
        for k in range(4):
            assert abs(found[k] - wanted[k]) <= bound * abs(wanted[k]), (point, k)
        scale = max(abs(wanted[4]), abs(wanted[3]) / point[0])
        assert abs(found[4] - wanted[4]) <= 4 * bound * scale, point


def test_special_values() -> None:
    table = np.array(
        [
            (0, 1, 1, 0),
            (0, 0, NAN, NAN),
            (1, 0, 0, 1),
            (1, INF, 1, 0),
            (INF, 1, 0, 1),
            (INF, INF, NAN, NAN),
            (-1, 1, NAN, NAN),
            (1, -1, NAN, NAN),
            (NAN, 1, NAN, NAN),
            (1, NAN, NAN, NAN),
        ],
        float,
    )
    found = evaluate(table[:, 0].copy(), table[:, 1].copy())
    np.testing.assert_array_equal(found[:2], table[:, 2:].T)


def test_both_add_up_to_one_for_the_largest_arguments() -> None:
    a = np.array([1e8, 1e10, 1e15, 1e300, 1e-300, 1e-20])
    found = evaluate(a, a * np.array([1.0001, 1, 1, 1, 1e300, 1e20]))
    np.testing.assert_allclose(found[0] + found[1], 1, rtol=1e-15)
