"""Casts one after the other become one only where no number is changed."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.ir.validate import validate
from numgrad.jit.passes.simplify import simplify
from tests.jit.evaluate import evaluate, same_bits

NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")
NAMES += ("complex64", "complex128")


def numbers(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the extremes of a dtype, and numbers that every dtype holds."""
    few = [0, 1, 2, 100]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        few += [limits.min, limits.max, limits.max - 1, limits.max // 2 + 1]
    if dtype.kind in "fc":
        few += [0.5, 1 + 2.0**-20, 1 + 2.0**-40, 2.0**24 + 1]
    return np.array(few).astype(dtype)


@pytest.mark.parametrize("source", NAMES)
def test_casts_of_casts_have_the_same_bits(source: str) -> None:
    given = numbers(np.dtype(source))
    for path in product(NAMES, repeat=2):
        kinds = [np.dtype(name).kind for name in path]
        small = "f" in kinds or "c" in kinds or np.dtype(source).kind in "fc"
        array = given[:4] if small and any(kind in "iub" for kind in kinds) else given
        x = Value("input", (), array.shape, array.dtype, position=0)
        value = x
        for name in path:
            value = Value("cast", (value,), array.shape, np.dtype(name))
        graph = Graph([x], [value])
        simple = simplify(graph)
        validate(simple)
        with np.errstate(all="ignore"):
            (before,), (after,) = evaluate(graph, [array]), evaluate(simple, [array])
        assert before.dtype == after.dtype
        assert same_bits(before, after), f"{source} to {path}: {before}, {after}"
