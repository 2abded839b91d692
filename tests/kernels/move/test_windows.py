"""Writes to some elements of windows of memory are those of a loop over what is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numgrad.kernels.move.windows import write_named

IDENTITIES = {"sum": 0, "mean": 0, "prod": 1}
WINDOWS: dict[str, Any] = {
    "overlapping": lambda memory: np.lib.stride_tricks.sliding_window_view(memory, 3),
    "backwards": lambda memory: np.lib.stride_tricks.sliding_window_view(memory[::-2], 2).T,
    "expanded": lambda memory: np.broadcast_to(memory[1:4], (2, 3)),
    "a part": lambda memory: memory[:6].reshape(2, 3)[:, 1:],
}


def _by_a_loop(
    memory: Any, places: Any, elements: Any, values: Any, reduce: str, include_self: bool
) -> None:
    """Do the same in memory, given the places there of all elements."""
    named = [*elements.flat]
    for number in named if not include_self and reduce in IDENTITIES else []:
        memory[places[number]] = IDENTITIES[reduce]
    counts = dict.fromkeys(range(len(places)), int(include_self))
    for number, value in zip(named, np.broadcast_to(values, elements.shape).flat, strict=True):
        at = places[number]
        counts[number] += 1
        if reduce == "put":
            memory[at] = value
        elif reduce == "prod":
            memory[at] *= value
        else:
            memory[at] += value
    if reduce == "mean":
        for number, count in counts.items():
            if memory.dtype.kind == "i":
                memory[places[number]] //= max(count, 1)
            else:
                memory[places[number]] /= max(count, 1)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
@pytest.mark.parametrize("window", WINDOWS)
def test_they_are_those_of_a_loop(window: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    numbers = np.arange(8).astype(dtype)
    places = WINDOWS[window](np.arange(8))
    several = random.integers(0, places.size - 1, (3, 2))  # the last one is never named
    given = random.integers(-4, 5, (3, 2)).astype(dtype)
    for elements, values in ((several, given), (several.T, given.T), (several.T, given[1])):
        if values.ndim == 1:
            elements = elements.T
        for reduce in ("put", "sum", "prod", "mean"):
            for include_self in (True, False):
                expected, memory = numbers.copy(), numbers.copy()
                _by_a_loop(expected, places.ravel(), elements, values, reduce, include_self)
                shape, strides = places.shape, WINDOWS[window](memory).strides
                start = WINDOWS[window](memory).__array_interface__["data"][0]
                first = (start - memory.ctypes.data) // memory.itemsize
                view = np.ndarray(shape, dtype, memory, first * memory.itemsize, strides)
                write_named(view, elements, values, reduce, include_self)
                np.testing.assert_array_equal(memory, expected, str((reduce, include_self)))


def test_nothing_is_written_to_nothing() -> None:
    nothing = np.empty((0, 3))
    write_named(nothing, np.empty(0, np.int64), np.empty(0), "mean")
    assert nothing.shape == (0, 3)


def test_means_of_great_integers_are_exact() -> None:
    array = np.array([2**60 + 3, 2**60 + 1, 7])
    write_named(array, np.array([0, 2]), np.array([2, 2]), "mean")
    assert array.tolist() == [2**59 + 2, 2**60 + 1, 4]
