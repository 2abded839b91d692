"""Ints as divisors of integers: they are wrapped into the dtype first, which can make them 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng

DTYPES = [ng.uint8, ng.int8, ng.int16, ng.int32, ng.int64]
POWERS = [1 << bits for bits in (3, 7, 8, 15, 16, 31, 32, 62, 63, 64)]
DIVISORS = [0, *[sign * power + off for power in POWERS for sign in (1, -1) for off in (-1, 0, 1)]]
TOO_LARGE = ("^can't convert negative int to unsigned$", "^int too big to convert$")


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


OPERATIONS: dict[str, tuple[Callable[[Any, int], Any], Callable[[int, int], int]]] = {
    "floor_divide": (ng.floor_divide, lambda a, b: a // b),
    "remainder": (ng.remainder, lambda a, b: a % b),
    "fmod": (ng.fmod, lambda a, b: a - truncated(a, b) * b),
    "div floor": (lambda x, n: ng.div(x, n, rounding_mode="floor"), lambda a, b: a // b),
    "div trunc": (lambda x, n: ng.div(x, n, rounding_mode="trunc"), truncated),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_ints_divide_as_what_they_are_in_the_dtype(name: str) -> None:
    operation, exact = OPERATIONS[name]
    for dtype in DTYPES:
        numbers = [7, 100] if dtype is ng.uint8 else [7, -100]
        x = ng.tensor(numbers, dtype=dtype)
        for number in DIVISORS:
            if not -(1 << 63) <= number < 1 << 64:
                with pytest.raises(OverflowError, match=TOO_LARGE[number > 0]):
                    operation(x, number)
                continue
            divisor = int(np.array(number % (1 << 64), np.uint64).astype(dtype.numpy))
            if not divisor:
                with pytest.raises(RuntimeError, match="^ZeroDivisionError$"):
                    operation(x, number)
                continue
            result = operation(x, number)
            wanted = np.array([exact(each, divisor) for each in numbers]).astype(dtype.numpy)
            assert result.dtype is dtype and result.tolist() == wanted.tolist(), (dtype, number)


@pytest.mark.parametrize("name", OPERATIONS)
def test_of_no_elements_none_is_divided(name: str) -> None:
    operation, _ = OPERATIONS[name]
    for dtype in DTYPES:
        assert operation(ng.empty(0, dtype=dtype), 0).shape == (0,)
