"""Which nests outputs share, and what they keep: seen in the schedule itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.jit.schedule.schedule import schedule
from tests.cases import examples

# Each is dear to compute again.
CHAIN: list[Callable[[Any], Any]] = [
    lambda x: x.sin(),
    lambda x: x.exp(),
    lambda x: x.tanh(),
    lambda x: (x * x + 1).log(),
    lambda x: x.sigmoid(),
]
ENDS: list[Callable[[Any], Any]] = [lambda x: x, lambda x: x.sum(), lambda x: x.sum(-1)]


def graph_of(function: Callable[[Any], Any], *arrays: Any) -> Any:
    return ng.jit(function).lower(*arrays).graph


@settings(max_examples=examples(50))
@given(
    st.lists(st.sampled_from(CHAIN), min_size=1, max_size=5),
    st.sampled_from(ENDS),
    st.sampled_from([(7,), (3, 4), (40, 50)]),
)
def test_what_is_computed_once_is_not_kept(
    steps: list[Callable[[Any], Any]], end: Callable[[Any], Any], shape: tuple[int, ...]
) -> None:
    def chain(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return end(x)

    graph = graph_of(chain, np.ones(shape))
    plan = schedule(graph)
    assert len(plan.steps) == 1 and set(plan.kept) <= {*graph.outputs, *graph.inputs}


DIMS = st.sampled_from([(0,), (0, 1), (1,), (1, 2), (2,), (0, 2), None])


@settings(max_examples=examples(40, in_sample=3))
@given(
    st.lists(DIMS, min_size=2, max_size=4),
    st.sampled_from([(3, 4, 5), (9, 17, 33), (5, 130, 3), (40, 3, 70)]),
)
def test_sums_over_several_dims_together_have_the_bits_of_eager_mode(
    dims: list[Any], shape: tuple[int, ...]
) -> None:
    def sums(x: Any) -> list[Any]:
        y = x.sin() * x
        return [y.sum() if each is None else y.sum(each) for each in dims]

    x = ng.from_numpy(np.random.default_rng(1).normal(size=shape))
    for one, other in zip(ng.jit(sums)(x), sums(x), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
