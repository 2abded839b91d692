"""Scalar functions that are written here rather than taken from the C library, against mpmath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import numgrad as ng

COMPLEX: dict[str, Callable[[Any], Any]] = {
    "log1p": lambda z: mpmath.log(1 + z),
    "expm1": lambda z: mpmath.exp(z) - 1,
    "log2": lambda z: mpmath.log(z) / mpmath.log(2),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erfinv_is_within_2_ulp(dtype):
    random = np.random.default_rng(0)
    smallest = np.log10(np.finfo(dtype).eps)
    x = np.concatenate(
        [
            random.uniform(-1, 1, 600),
            1 - 10.0 ** random.uniform(smallest, -1, 200),
            10.0 ** random.uniform(-30, -1, 100),
            [0.5, np.nextafter(0.5, 0), -0.5],
        ]
    ).astype(dtype)
    x = x[np.abs(x) < 1]
    with mpmath.workprec(120):
        for point, value in zip(x, ng.from_numpy(x).erfinv().numpy(), strict=True):
            exact = mpmath.erfinv(mpmath.mpf(float(point)))
            spacing = float(np.spacing(np.abs(dtype(float(exact)))))
            assert abs(mpmath.mpf(float(value)) - exact) <= 2 * spacing, (point, value)


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("scale", [1e-9, 1.0, 50.0])
def test_complex_function_keeps_its_digits(name, scale):
    """The relative error is a few roundings, near 0 too."""
    random = np.random.default_rng(0)
    z = scale * (random.standard_normal(200) + 1j * random.standard_normal(200))
    values = getattr(ng, name)(ng.from_numpy(z)).numpy()
    with mpmath.workprec(200):
        for point, value in zip(z, values, strict=True):
            exact = COMPLEX[name](mpmath.mpc(point))
            assert abs(mpmath.mpc(value) - exact) <= 8 * np.finfo(float).eps * abs(exact), point
