"""Scalar functions that are written here rather than taken from the C library, against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.scalar_ops import SCALAR_OPS


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erfinv_is_within_the_stated_ulp(dtype):
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
            assert abs(mpmath.mpf(float(value)) - exact) <= SCALAR_OPS["erfinv"].ulps * spacing, (
                point,
                value,
            )
