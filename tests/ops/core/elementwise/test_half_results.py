"""Elementwise results of float16: their dtypes, for few and many elements, however these lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": lambda x, y: x < y,
    "ne": lambda x, y: x != y,
    "isnan": lambda x, y: ng.isnan(x),
    "add": lambda x, y: x + y,
    "maximum": lambda x, y: ng.maximum(x, y),
    "where": lambda x, y: ng.where(x > y, x, y),
    "beside float32": lambda x, y: x + y.float(),
    "beside a number": lambda x, y: x * 0.1 + 70000,
    "out": lambda x, y: ng.mul(x, y, out=ng.empty(0, dtype=ng.float64)),
}


@pytest.mark.parametrize("name", CALLS)
def test_dtypes_and_numbers_do_not_depend_on_the_number_of_elements(name: str) -> None:
    few = np.arange(-6, 6).astype(np.float16).reshape(3, 4) / 8
    call, expected = CALLS[name], None
    for times in (1, 1, 1, 400):
        arrays = [np.tile(few, (times, 400 if times > 1 else 1)), np.tile(few[::-1], (times, 1))]
        arrays[1] = np.tile(arrays[1], (1, arrays[0].shape[1] // 4))
        for lay in (np.ascontiguousarray, np.asfortranarray):
            result = call(*[ng.from_numpy(lay(array)) for array in arrays])
            found = result.numpy()
            if expected is None:
                expected = found
            assert found.dtype == expected.dtype and found.shape == arrays[0].shape
            np.testing.assert_array_equal(found[:3, :4], expected)
            np.testing.assert_array_equal(found[-3:, -4:], expected)
