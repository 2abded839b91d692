"""Writes to slices of unequal length under `jit`, by loops that read what their others wrote."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples

LENGTH = 11

# Which of two tensors is written to and which is read, where, how many elements, and a factor.
steps = st.lists(
    st.tuples(
        st.sampled_from("wv"),
        st.sampled_from("wv"),
        st.integers(0, 6),
        st.integers(0, 6),
        st.integers(0, 5),
        st.sampled_from([0.5, -1.5, 2.0]),
    ),
    min_size=1,
    max_size=4,
)


def make_function(program: list[Any]) -> Any:
    def function(x: Any) -> Any:
        made = {"w": x * 2, "v": x.sin()}
        kept = []
        for target, source, first, other, length, factor in program:
            read = made[source][other : other + length]
            made[target][first : first + length] += read * factor
            kept.append((made["w"] * made["v"]).sum())
        return made["w"], made["v"], made["w"][: LENGTH - 3] * made["v"][3:], *kept

    return function


@settings(max_examples=examples(25))
@given(steps)
def test_what_was_written_is_read(program: list[Any]) -> None:
    function = make_function(program)
    x = ng.linspace(-1, 1, LENGTH, dtype=ng.float64)
    expected = function(x)
    for found, wanted in zip(ng.jit(function)(x), expected, strict=True):
        assert ng.allclose(found, wanted, rtol=1e-12, atol=1e-12)
