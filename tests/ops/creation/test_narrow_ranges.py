"""Ranges of float16 and float32, whose steps PyTorch takes in that dtype: the same bits."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import numgrad as ng

COUNTS = (0, 1, 2, 3, 7, 33, 100, 1000, 5000)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_numbers_between_two_ends_are_pytorchs(torch: Any, dtype: str) -> None:
    random = Random(dtype)
    for count in (*COUNTS, *[random.randint(2, 300) for _ in range(20)]):
        size = random.choice([1, 10, 300, 30000])
        ends = random.uniform(-size, size), random.choice([0, 1, random.uniform(-size, size)])
        found = []
        for library in (torch, ng):
            made = library.linspace(*ends, count, dtype=getattr(library, dtype))
            found.append(np.array(made.tolist()))
        np.testing.assert_array_equal(*found, err_msg=f"linspace({ends}, {count})")


def test_what_is_made_in_float16_is_pytorchs(torch: Any) -> None:
    random = Random(4)
    for _ in range(30):
        start, end = random.uniform(-10, 10), random.uniform(-300, 300)
        found = []
        for library in (torch, ng):
            half = library.float16
            made = [
                library.full((3,), start, dtype=half),
                library.tensor([start, end], dtype=half),
                library.scalar_tensor(end, dtype=half),
                library.eye(2, dtype=half),
            ]
            found.append([each.tolist() for each in made])
        assert found[0] == found[1], (start, end)
