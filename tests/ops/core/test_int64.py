"""Numbers of Python beside integers: 64 bits, whichever of them are set, judged by Python's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numgrad as ng

POWERS = [1, 7, 8, 15, 16, 31, 32, 52, 53, 61, 62, 63]
NUMBERS = sorted({s * 2**k + d for k in POWERS for s in (1, -1) for d in (-1, 0, 1)})
NUMBERS = [number for number in NUMBERS if -(2**63) <= number < 2**63]
ELEMENTS = [0, 5, -3, 2**62, 2**63 - 1, -(2**63)]
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "x + k": lambda x, k: x + k,
    "k + x": lambda x, k: k + x,
    "x - k": lambda x, k: x - k,
    "k - x": lambda x, k: k - x,
    "x * k": lambda x, k: x * k,
    "x & k": lambda x, k: x & k,
    "x | k": lambda x, k: x | k,
    "x ^ k": lambda x, k: x ^ k,
    "x == k": lambda x, k: x == k,
    "x != k": lambda x, k: x != k,
    "x < k": lambda x, k: x < k,
    "x >= k": lambda x, k: x >= k,
    "k > x": lambda x, k: k > x,
}


def in_64_bits(value: Any) -> Any:
    """Return an int as its last 64 bits are one; a bool as it is."""
    return value if isinstance(value, bool) else (value + 2**63) % 2**64 - 2**63


def test_calls_with_numbers_of_64_bits_give_the_last_64_bits() -> None:
    x = ng.tensor(ELEMENTS)
    for name, call in CALLS.items():
        for number in NUMBERS:
            wanted = [in_64_bits(call(element, number)) for element in ELEMENTS]
            assert call(x, number).tolist() == wanted, (name, number)


def test_writes_of_numbers_of_64_bits_are_those_numbers() -> None:
    for number in NUMBERS:
        x = ng.tensor(ELEMENTS)
        x[0] = number
        x[1:3].fill_(number)
        wanted = [number] * 3 + ELEMENTS[3:]
        assert x.tolist() == wanted
        assert x.clone().add_(number).tolist() == [in_64_bits(each + number) for each in wanted]
        assert x.clone().mul_(number).tolist() == [in_64_bits(each * number) for each in wanted]
        assert ng.full_like(x, number).tolist() == [number] * 6
        assert ng.where(x == number, x, number).tolist() == [number] * 6
        assert ng.sub(x, 3, alpha=number)[0].item() == in_64_bits(number - 3 * number)


def test_sums_scaled_by_numbers_of_64_bits_give_the_last_64_bits() -> None:
    """The number that is added may have no sign bit; the other one is what it is all the same."""
    x = ng.tensor(ELEMENTS)
    for number in [*NUMBERS[::3], 2**63, 2**63 + 5, 2**64 - 1]:
        for alpha in NUMBERS[::2]:
            found = [ng.add(x, number, alpha=alpha), ng.sub(x, number, alpha=alpha)]
            for total, sign in zip(found, (1, -1), strict=True):
                wanted = [in_64_bits(each + sign * number * alpha) for each in ELEMENTS]
                assert total.tolist() == wanted, (number, alpha, sign)
