"""Gradients that meet add up: in every dtype, wherever they meet, and whoever owns their memory.

What flows is small whole numbers, which all dtypes add exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.backward.engine import _add, _lies_as_sum

DTYPES = ["float16", "float32", "float64", "complex64", "complex128"]
# What becomes of a tensor, by how often its gradient comes back. Some ways hand on the array that
# they got, some a view of it, some one of their own.
WAYS: dict[str, tuple[Callable[[ng.Tensor], ng.Tensor], int]] = {
    "itself": (lambda t: t, 1),
    "clone": (lambda t: t.clone(), 1),
    "view": (lambda t: t.unsqueeze(0).squeeze(0), 1),
    "transposed": (lambda t: t.t().clone().t(), 1),
    "plus": (lambda t: t + 1, 1),
    "negated": (lambda t: -t, -1),
    "times": (lambda t: t * 3, 3),
    "with itself": (lambda t: t + t, 2),
    "repeated": (lambda t: t.expand(2, *t.shape).sum(0), 2),
    "parts": (lambda t: ng.stack(t.unbind(0)), 1),
    "none": (lambda t: t.detach(), 0),
}
PLACES: dict[str, Callable[[ng.Tensor], ng.Tensor]] = {
    "leaf": lambda t: t,
    "result": lambda t: t * 1,
    "view": lambda t: t.t(),
    "one of several results": lambda t: ng.stack([t, t]).unbind(0)[1],
}


def small(value: int, dtype: str, turned: bool) -> ng.Tensor:
    """Return a matrix of some whole numbers, all different, whose rows or columns lie together."""
    matrix = ng.tensor([[value, value + 1], [value + 2, -value]], dtype=getattr(ng, dtype))
    return matrix.t().clone() if turned else matrix


@pytest.mark.filterwarnings("ignore:Using backward")
@given(
    st.sampled_from(DTYPES),
    st.lists(st.sampled_from(sorted(WAYS)), min_size=1, max_size=5),
    st.sampled_from(sorted(PLACES)),
    st.booleans(),
    st.sampled_from(["backward", "grad", "rows"]),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
)
def test_gradients_that_meet_add_up(
    dtype: str,
    ways: list[str],
    place: str,
    create_graph: bool,
    call: str,
    before: int,
    turned: bool,
    gradient_turned: bool,
) -> None:
    x = small(1, dtype, turned).requires_grad_()
    met = PLACES[place](x)
    if place != "leaf":
        met.retain_grad()
    total = ng.zeros(2, 2, dtype=x.dtype)
    for way in ways:
        total = total + WAYS[way][0](met)
    times = sum(WAYS[way][1] for way in ways)
    if not total.requires_grad:
        return
    gradient = small(2, dtype, gradient_turned)
    if call == "rows":
        rows = ng.stack([gradient, gradient * 2])
        (found,) = ng.autograd.grad(
            total, met, rows, is_grads_batched=True, create_graph=create_graph
        )
        assert found.tolist() == (rows * times).tolist()
    elif call == "grad":
        (found,) = ng.autograd.grad(total, met, gradient, create_graph=create_graph)
        assert found.tolist() == (gradient * times).tolist()
    else:
        for _ in range(before):
            total.backward(gradient, retain_graph=True, create_graph=create_graph)
        kept = x.grad
        total.backward(gradient, create_graph=create_graph)
        found = met.grad
        assert found.tolist() == (gradient * times * (before + 1)).tolist()
        assert create_graph or x.grad.stride() == x.stride()
        expected = found.t() if place == "view" else found
        assert x.grad.tolist() == expected.tolist()
        assert create_graph or kept is None or x.grad is kept
    assert found.dtype is x.dtype
    assert gradient.tolist() == small(2, dtype, gradient_turned).tolist()  # it is the caller's
    if not create_graph:
        assert gradient.data_ptr() not in (found.data_ptr(), x.data_ptr())
        assert x.grad is None or x.grad.data_ptr() != gradient.data_ptr()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("place", ["leaf", "result"])
@pytest.mark.parametrize("way", sorted(WAYS.keys() - {"none"}))
def test_what_a_leaf_keeps_is_its_own(way: str, place: str, dtype: str) -> None:
    """Neither the caller's memory nor that of another leaf, however the three are laid out."""
    for turned, gradient_turned in itertools.product([False, True], repeat=2):
        x = small(1, dtype, turned).requires_grad_()
        w = small(3, dtype, turned).requires_grad_()
        gradient = small(2, dtype, gradient_turned)
        total = WAYS[way][0](PLACES[place](x)) + WAYS[way][0](PLACES[place](w))
        total.backward(gradient)
        assert len({x.grad.data_ptr(), w.grad.data_ptr(), gradient.data_ptr()}) == 3
        x.grad.zero_()
        assert w.grad.tolist() == (gradient * WAYS[way][1]).tolist()
        assert gradient.tolist() == small(2, dtype, gradient_turned).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@given(st.lists(st.floats(-8, 8, width=16), min_size=2, max_size=6), st.booleans())
def test_halves_are_added_one_by_one(dtype: str, factors: list[float], create_graph: bool) -> None:
    """Each sum of two is rounded, as that of two tensors is."""
    x = ng.tensor([1.0, 3.0], dtype=getattr(ng, dtype), requires_grad=True)
    met = x * 1
    outputs = [met * factor for factor in factors]
    (found,) = ng.autograd.grad(
        outputs, met, [ng.ones_like(each) for each in outputs], create_graph=create_graph
    )
    expected: Any = ng.zeros_like(x)
    for factor in reversed(factors):
        expected = expected + ng.ones_like(x) * factor
    assert found.tolist() == expected.tolist()


@given(
    st.sampled_from(DTYPES),
    st.lists(st.sampled_from(sorted(WAYS.keys() - {"parts"})), min_size=3, max_size=5),
    st.sampled_from([(), (1,), (0,)]),
    st.booleans(),
    st.integers(1, 3),
)
def test_gradients_of_few_elements_add_up(
    dtype: str, ways: list[str], shape: tuple[int, ...], leaf: bool, passes: int
) -> None:
    x = ng.full(shape, 2, dtype=getattr(ng, dtype), requires_grad=True)
    met = x if leaf else x * 1
    met.retain_grad()
    total = met
    for way in ways:
        total = total + WAYS[way][0](met)
    times = passes * (1 + sum(WAYS[way][1] for way in ways))
    for _ in range(passes):
        total.backward(ng.ones_like(total), retain_graph=True)
    assert x.grad.tolist() == met.grad.tolist() == ng.full_like(x, times).tolist()
    assert type(x.grad.numpy()) is type(met.grad.numpy()) is np.ndarray


def test_sums_that_overflow_float16_are_infinite_without_a_warning(recwarn: Any) -> None:
    """Whichever of the two memories the sum is left in, if in either."""
    ways = sorted(WAYS.keys() - {"none", "parts", "negated"})
    for place, first, second in itertools.product(PLACES, ways, ways):
        x = ng.ones(2, 2, dtype=ng.float16, requires_grad=True)
        met = PLACES[place](x)
        (WAYS[first][0](met) + WAYS[second][0](met)).backward(ng.full_like(x, 60000.0))
        assert x.grad.tolist() == [[float("inf")] * 2] * 2, (place, first, second)
    assert not recwarn.list


def test_the_second_gradient_takes_the_sum_only_if_the_sum_lies_as_it_does() -> None:
    rows, columns = np.ones((3, 4)), np.ones((4, 3)).T
    row, gaps = np.ones(4), np.ones(8)[::2]
    one: Any = np.broadcast_to(np.float64(1), (3, 4))
    for present, gradient, wanted in (
        (rows, rows, True),
        (rows, columns, False),
        (columns, rows, False),
        (columns, columns, True),
        (one, rows, True),
        (one, columns, True),
        (rows, one, False),
        (row, gaps, True),
        (gaps, row, True),
        (row[0, ...], row[1, ...], True),
        (np.ones((2, 3, 4)), np.ones((4, 3, 2)).T, False),
        (np.ones((2, 3, 4)), np.ones((2, 3, 4)), True),
    ):
        assert _lies_as_sum(present, gradient) == wanted


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), max_size=9))
def test_gradients_that_arrive_are_added_to_memory_that_is_nobody_elses(arrivals: Any) -> None:
    arrived: list[Any] = [None, False] * 3
    foreign, sums = [], [np.zeros((2, 3)) for _ in range(3)]
    for turn, (number, owned, turned) in enumerate(arrivals):
        gradient = np.full((3, 2), turn + 1.0).T if turned else np.full((2, 3), turn + 1.0)
        if not owned:
            foreign.append((gradient, turn + 1.0))
        _add(arrived, number, gradient, owned)
        sums[number] += turn + 1.0
        for array, value in foreign:
            assert np.all(array == value)
        for output, total in enumerate(sums):
            found, is_owned = arrived[2 * output : 2 * output + 2]
            assert found is None if not total.any() else np.array_equal(found, total)
            assert not (is_owned and any(found is array for array, _ in foreign))
