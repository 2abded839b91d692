"""Turns of a loop that read what they write to next, wherever that lies."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.jit.ir.validate import validate
from numgrad.jit.rolling.rolling import rolled
from tests.jit.rolling.test_rolling import _loops, _same, _traced

TURNS = 36
# What a turn writes to, after it read it; of an array with (TURNS, 4, TURNS, 3) elements.
WINDOWS: dict[str, Callable[[int], Any]] = {
    "rows": lambda k: k,
    "rows from behind": lambda k: TURNS - 1 - k,
    "columns": lambda k: (slice(None), 1, k),
    "parts of rows": lambda k: (k, slice(1, 3)),
    "steps in rows": lambda k: (k, slice(None, None, 2), slice(None, None, 5)),
    "steps in columns": lambda k: (slice(None, None, 3), slice(None), k, 2),
    "diagonally": lambda k: (k, slice(None), k),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_what_a_turn_writes_to_may_be_read_before(window: str) -> None:
    place = WINDOWS[window]

    def function(x: Any, start: Any) -> Any:
        out = start * 2.0
        for k in range(TURNS):
            x = x + 0.1 * ng.sin(x)
            out[place(k)] = ng.cos(out[place(k)]) * x
        return out, x

    random = np.random.default_rng(0)
    arguments = [random.random(()), random.random((TURNS, 4, TURNS, 3))]
    graph = _traced(function, [ng.tensor(each) for each in arguments])
    found = rolled(graph)
    validate(found)
    _same(graph, found, arguments)
    (loop,) = _loops(found)
    assert loop.length in (TURNS, TURNS - 1, TURNS - 2)
    # A turn is given its window, and hands it back; it does not pass on the array that it is of.
    assert max(prod(value.shape) for value in loop.graph.values()) < arguments[1].size / TURNS + 1
