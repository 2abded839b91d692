"""Views further on, as turns at the ends take them: there are some where all elements are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.jit.ir.constructors import reshape, view
from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.rolling.completion import _moved
from numgrad.jit.rolling.tokens import followed_back
from tests.cases import examples

Array = np.ndarray[Any, Any]


def seen(value: Value, base: Array) -> Array | None:
    """Return the elements of a path of views, one by one; None if there is one that isn't."""
    if not value.operands:
        return base
    below = seen(value.operands[0], base)
    if below is None or value.operation == "reshape":
        return None if below is None else below.reshape(value.shape)
    found = np.empty(value.shape, base.dtype)
    for index in product(*map(range, value.shape)):
        maps = value.attributes["maps"]
        places = [m.offset + sum(step * index[dim] for dim, step in m.terms) for m in maps]
        if not all(0 <= place < n for place, n in zip(places, below.shape, strict=True)):
            return None
        found[index] = below[tuple(places)]
    return found


def moved(path: Sequence[Value], base: Value, offsets: Sequence[int]) -> Value:
    """Return the views of a path that begin elsewhere, wherever that is."""
    at = len(offsets)
    for step in reversed(path):
        if step.operation == "view":
            maps = step.attributes["maps"]
            at -= len(maps)
            pairs = zip(offsets[at : at + len(maps)], maps, strict=True)
            base = view(base, [Affine(start, m.terms) for start, m in pairs], step.shape)
        else:
            base = reshape(base, step.shape)
    return base


@st.composite
def paths(draw: st.DrawFn) -> tuple[Value, list[int]]:
    """Draw views of views, forwards and backwards, and where they begin: at most one too far off.

    What is first in a path was made last.
    """
    value = Value("input", (), draw(st.sampled_from([(6,), (5, 4), (3, 1, 7)])), np.dtype("f8"))
    offsets: list[int] = []
    for number in range(draw(st.integers(1, 3))):
        if number and draw(st.booleans()):
            value = reshape(value, (prod(value.shape),))
        shape = draw(st.sampled_from([(), (2,), (3,), (2, 2), (1, 3)]))
        maps, starts = [], []
        for n in value.shape:
            steps = [draw(st.integers(-2, 2)) for _ in shape]
            reaches = [step * (length - 1) for step, length in zip(steps, shape, strict=True)]
            low, high = (sum(part(reach, 0) for reach in reaches) for part in (min, max))
            if high - low >= n:
                steps, low, high = [0] * len(shape), 0, 0
            maps.append(Affine(0, tuple((dim, step) for dim, step in enumerate(steps) if step)))
            starts.append(draw(st.sampled_from([-low, n - 1 - high])))
        value = view(value, maps, shape)
        offsets = starts + offsets
    if draw(st.integers(0, 2)):
        offsets[draw(st.integers(0, len(offsets) - 1))] += draw(st.sampled_from([-1, 1]))
    return value, offsets


@given(drawn=paths())
@settings(max_examples=examples(800))
def test_views_are_moved_to_where_all_their_elements_are(drawn: tuple[Value, list[int]]) -> None:
    path, base = followed_back(drawn[0])
    numbers = np.arange(prod(base.shape), dtype=np.float64).reshape(base.shape)
    elements = seen(moved(path, base, drawn[1]), numbers)
    found = _moved(path, base, drawn[1])
    assert (found is None) == (elements is None)
    if found is not None and elements is not None:
        assert [step.operation for step in found] == [step.operation for step in path]
        np.testing.assert_array_equal(seen(found[0], numbers), elements)
