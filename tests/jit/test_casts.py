"""Casts in compiled functions give what they give eagerly, of numbers that do not fit, too."""

from __future__ import annotations

import numpy as np
import pytest

import numgrad as ng

NUMBERS = [np.nan, np.inf, -np.inf, 1e10, -1e10, 3e9, -3e9, 4294967296.5, 2147483647.0]
NUMBERS += [2147483648.0, -2147483648.0, -2147483649.0, 300.0, -1.0, 255.9, -0.9, 1e20, -1e20]
NUMBERS += [9.3e18, 1.8e19, 2e19, 65535.5, -129.0, 128.0, 0.0, 1.5]
# NumPy's casts to uint32 give other numbers at the end of an array than before, if they do not fit.
INTEGERS = ["uint8", "int8", "int16", "uint16", "int32", "int64", "uint64"]


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_that_do_not_fit_are_cast_as_in_eager_mode(dtype: str, name: str) -> None:
    integer = getattr(ng, name)
    calls = [
        lambda x: x.to(integer),
        lambda x: x.clamp(max=-1.0).to(integer),
        lambda x: (x * float("nan")).to(integer),
        lambda x: (x / 0).to(integer) + 1,
        lambda x: ng.where(x > 1, x, float("inf")).to(integer),
    ]
    for repeats in (1, 300):
        x = ng.from_numpy(np.tile(np.array(NUMBERS, dtype), repeats))
        for call in calls:
            np.testing.assert_array_equal(ng.jit(call)(x).numpy(), call(x).numpy())
    few = np.array(NUMBERS, dtype)
    (found,) = ng.jit(calls[1]).lower(few).dispatcher(few)
    np.testing.assert_array_equal(found, calls[1](ng.from_numpy(few)).numpy())
