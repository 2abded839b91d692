"""Joins: parts that fill a result, and elementwise operations that are done on each of them."""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from numgrad.jit.ir.graph import Graph, Value
from tests.jit.evaluate import evaluate
from tests.jit.simplified import simplified_graph
from tests.jit.small_graphs import (
    apply,
    constant,
    expand,
    inputs,
    join,
    reduce,
    slice_of,
    update,
    view,
)


def simplified(arguments: list[Value], *outputs: Value) -> tuple[Value, ...]:
    """Simplify, and check that the graph is valid and has the same bits."""
    return simplified_graph(Graph(arguments, outputs)).outputs


def given(*shapes: tuple[int, ...]) -> Any:
    return inputs(*(("float64", shape) for shape in shapes))


def zeros_around(part: Value, length: int, start: int) -> Value:
    return update(expand(constant(0.0), (length,)), part, start, 1)


def test_reading_a_part_of_a_join_reads_the_part() -> None:
    x, y = given((3, 4), (2, 4))
    columns = view(join(0, x, y), (2, 2), (3, {0: 1}), (1, {1: 2}))
    (z,) = simplified([x, y], columns)
    assert (z.operation, z.operands) == ("view", (y,))


@pytest.mark.parametrize("chosen", range(4))
def test_reading_a_part_of_a_join_of_boxes_reads_the_part(chosen: int) -> None:
    starts = ((0, 0), (0, 3), (2, 0), (2, 3))
    parts = given((2, 3), (2, 2), (2, 3), (2, 2))
    whole = Value("join", parts, (4, 5), parts[0].dtype, starts=starts)
    row, column = starts[chosen]
    z, across = simplified(
        parts,
        view(whole, (2,), (row, {0: 1}), (column + 1, {})),
        view(view(whole, (4, 3), (0, {0: 1}), (1, {1: 1})), (3, 2), (0, {1: 3}), (0, {0: 1})),
    )
    assert (z.operation, z.operands) == ("view", (parts[chosen],))
    assert across.operands[0].operation == "join"  # of a view of it


def test_a_join_of_joins_is_one_join() -> None:
    x, y, z = given((3,), (2,), (4,))
    (whole,) = simplified([x, y, z], join(0, x, join(0, y, z)))
    assert whole.operands == (x, y, z)
    assert whole.attributes["starts"] == ((0,), (3,), (5,))


def test_slices_put_together_again_are_what_they_were() -> None:
    (x,) = given((7, 2))
    assert simplified([x], join(0, slice_of(x, 0, 3), slice_of(x, 3, 7))) == (x,)
    (turned,) = simplified([x], join(0, slice_of(x, 3, 7), slice_of(x, 0, 3)))
    assert turned.operation == "join"


def test_parts_that_follow_each_other_are_one() -> None:
    (x,) = given((7, 2))
    rows = [slice_of(x, k, k + 1) for k in range(1, 6)]
    (whole,) = simplified([x], join(0, *rows))
    assert (whole.operation, whole.shape) == ("view", (5, 2))
    (whole,) = simplified([x], join(0, *reversed(rows)))
    assert (whole.operation, whole.shape) == ("view", (5, 2))
    (whole,) = simplified([x], join(0, slice_of(x, 0, 1), *rows[1:], slice_of(x, 0, 2)))
    assert [part.shape for part in whole.operands] == [(2, 2), (3, 2), (2, 2)]


@st.composite
def joined_views(draw: st.DrawFn) -> tuple[list[Value], Value]:
    """Return arrays, and a join of views of them, some of which follow each other."""
    arrays = given((7, 3), (7, 3))
    dim = draw(st.integers(0, 1))
    parts = []
    for _ in range(draw(st.integers(2, 6))):
        array = arrays[draw(st.integers(0, 4)) // 4]
        step = draw(st.sampled_from([1, 1, 1, 2, -1, 0]))
        count = draw(st.integers(1, 3))
        across = draw(st.sampled_from([0, 0, 1]))
        low = -min(0, step * (count - 1))
        first = draw(st.integers(low, 6 - max(0, step * (count - 1))))
        along = (first, {dim: step} if count > 1 and step else {})
        beside = (across, {1 - dim: 1})
        shape = (count, 2) if dim == 0 else (2, count)
        parts.append(view(array, shape, along, beside))
    return arrays, join(dim, *parts)


@hypothesis.given(joined_views())
def test_any_joined_views_have_the_same_numbers(drawn: tuple[list[Value], Value]) -> None:
    arrays, whole = drawn
    simplified(arrays, whole)  # which compares the bits


def test_an_operation_is_done_on_each_part() -> None:
    x, y, w = given((3,), (2,), (5,))
    (z,) = simplified([x, y, w], apply("mul", apply("exp", join(0, x, y)), w))
    assert z.operation == "join"
    assert [part.operation for part in z.operands] == ["mul", "mul"]
    assert [part.operands[0].operands for part in z.operands] == [(x,), (y,)]


def test_gradients_of_two_slices_are_added_range_by_range() -> None:
    a, b = given((9,), (9,))
    (z,) = simplified([a, b], apply("add", zeros_around(a, 10, 0), zeros_around(b, 10, 1)))
    assert z.attributes["starts"] == ((0,), (1,), (9,))
    assert [part.shape for part in z.operands] == [(1,), (8,), (1,)]
    middle = z.operands[1]
    assert [operand.operands for operand in middle.operands] == [(a,), (b,)]


def test_parts_along_two_dims_become_boxes() -> None:
    a, b = given((3, 4), (4, 3))
    rows = update(expand(constant(0.0), (4, 4)), a, 4, 4, 1)
    columns = update(expand(constant(0.0), (4, 4)), b, 0, 4, 1)
    (z,) = simplified([a, b], apply("add", rows, columns))
    assert z.operation == "join"
    assert sorted(part.shape for part in z.operands) == [(1, 1), (1, 3), (3, 1), (3, 3)]


def test_a_part_that_wraps_around_rows_stays_an_update() -> None:
    x, y = given((3, 4), (4,))
    (z,) = simplified([x, y], apply("exp", update(x, y, 2, 1)))
    assert z.operands[0].operation == "update"


def test_a_view_of_parts_has_parts() -> None:
    x, y = given((3, 2), (4, 2))
    turned = view(join(0, x, y), (2, 5), (1, {1: 1}), (0, {0: 1}))
    (z,) = simplified([x, y], apply("exp", turned))
    assert z.operation == "join"
    assert [part.shape for part in z.operands] == [(2, 2), (2, 3)]


@st.composite
def views_of_joins(draw: st.DrawFn) -> tuple[list[Value], Value]:
    """Return arrays, and a view of their join by any map of indices that stays inside."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    parts = given(*[(length, 3) for length in lengths])
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    maps = []
    for length in (sum(lengths), 3):
        steps = st.dictionaries(st.integers(0, len(shape) - 1), st.integers(1, 2), max_size=3)
        terms, rest = {}, length - 1
        for dim, step in draw(steps).items():
            if step * (shape[dim] - 1) <= rest:
                terms[dim] = step
                rest -= step * (shape[dim] - 1)
        maps.append((draw(st.integers(0, rest)), terms))
    return parts, view(join(0, *parts), shape, *maps)


@hypothesis.given(views_of_joins())
def test_any_view_of_parts_has_the_same_numbers(drawn: tuple[list[Value], Value]) -> None:
    parts, whole = drawn
    simplified(parts, apply("exp", whole))  # which compares the bits


def test_an_operation_whose_result_is_only_summed_reads_the_join() -> None:
    x, y = given((3,), (2,))
    whole = join(0, x, y)
    sums = [reduce("sum", apply(name, whole), 0) for name in ("exp", "sin")]
    first, second = simplified([x, y], *sums)
    assert first.operands[0].operands[0].operation == "join"
    assert first.operands[0].operands[0] is second.operands[0].operands[0]


def test_what_broadcasts_is_joined_before_it_is_large() -> None:
    x, y, w = given((3, 1), (2, 1), (1, 50))
    (z,) = simplified([x, y, w], apply("mul", join(0, x, y), w))
    assert z.operation == "mul"


def test_many_updates_in_a_row_are_not_taken_apart() -> None:
    x, y = given((40,), ())
    whole = x
    for k in range(40):
        whole = update(whole, apply("add", y, constant(float(k))), k)
    (z,) = simplified([x, y], apply("exp", whole))
    assert z.operands[0].operation == "update"


def test_many_parts_are_not_taken_apart() -> None:
    rows = given(*[(1, 3)] * 100)
    (z,) = simplified(rows, apply("exp", join(0, *rows)))
    assert z.operands[0].operation == "join"


def test_parts_of_the_same_zeros_are_no_row_of_updates() -> None:
    """The gradients of many slices are added up as parts, however many slices there are."""
    slices = given(*[(1, 3)] * 21)
    zeros = expand(constant(0.0), (21, 3))
    total = update(zeros, slices[0], 0, 3, 1)
    for k, part in enumerate(slices[1:], 1):
        total = apply("add", total, update(zeros, part, 3 * k, 3, 1))
    (z,) = simplified(slices, total)
    assert z.operation == "join" and len(z.operands) == 21
    assert not any(value.operation == "update" for value in Graph(slices, [z]).values())


def test_zero_and_minus_zero_are_told_apart_at_the_edges() -> None:
    (x,) = given((2,))
    (z,) = simplified([x], apply("add", zeros_around(x, 3, 0), zeros_around(x, 3, 1)))
    outcome = evaluate(Graph([x], [z]), [np.array([-0.0, -0.0])])[0]
    assert np.signbit(outcome).tolist() == [False, True, False]


@hypothesis.given(st.data())
def test_any_view_of_what_is_made_of_parts_has_its_elements(data: Any) -> None:
    draw = data.draw
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    dim = draw(st.integers(0, len(shape) - 1))
    lengths = draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    parts = given(*((*shape[:dim], n, *shape[dim + 1 :]) for n in lengths))
    shape[dim] = sum(lengths)
    whole = apply("exp", join(dim, *parts[:-1], apply("neg", parts[-1])))
    order = draw(st.permutations(range(len(shape))))
    maps, counts = [], [0] * len(shape)
    for own, target in enumerate(order):
        step, first = draw(st.integers(1, 3)), draw(st.integers(0, shape[own] - 1))
        counts[target] = draw(st.integers(1, (shape[own] - 1 - first) // step + 1))
        if draw(st.booleans()):
            first, step = first + step * (counts[target] - 1), -step
        maps.append((first, {target: step} if counts[target] > 1 else {}))
    simplified(parts, apply("sin", view(whole, tuple(counts), *maps)))
