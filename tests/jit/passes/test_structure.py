"""Reductions and updates."""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest

from numgrad.jit.ir.graph import Graph, Value
from tests.jit.simplified import simplified_graph
from tests.jit.small_graphs import (
    apply,
    constant,
    expand,
    inputs,
    reduce,
    slice_of,
    update,
    view,
)


def simplified(arguments: list[Value], *outputs: Value) -> tuple[Value, ...]:
    """Simplify, and check that the graph is valid and has the same bits."""
    return simplified_graph(Graph(arguments, outputs), range(5)).outputs


@pytest.mark.parametrize("kind", ["max", "min", "prod"])
def test_reducing_dims_of_one_element_is_a_view(kind: str) -> None:
    (x,) = inputs(("float64", (3, 1)))
    (y,) = simplified([x], reduce(kind, x, 1))
    assert y.operation == "view"


def test_a_sum_of_one_float_adds_zero() -> None:
    (x,) = inputs(("float64", (3, 1)))
    (y,) = simplified([x], reduce("sum", x, 1))
    assert y.operation == "add"


def test_whether_any_of_one_is_a_cast() -> None:
    (x,) = inputs(("float64", (1,)))
    (y,) = simplified([x], reduce("any", x, 0))
    assert y.operation == "cast"


@pytest.mark.parametrize(
    ("dtype", "kind", "merged"),
    [
        ("int64", "sum", True),
        ("int8", "prod", True),
        ("int64", "max", True),
        ("bool", "any", True),
        ("bool", "all", True),
        ("float64", "sum", False),
        ("float64", "prod", False),
        ("float64", "max", False),  # of 0.0 and -0.0 the order decides
    ],
)
def test_reductions_of_reductions(dtype: str, kind: str, merged: bool) -> None:
    (x,) = inputs((dtype, (2, 3, 4)))
    (y,) = simplified([x], reduce(kind, reduce(kind, x, 1), 1))
    assert (y.operands[0] is x) == merged
    if merged:
        assert y.attributes["dims"] == (1, 2)


def test_reductions_of_different_kinds_are_not_merged() -> None:
    (x,) = inputs(("int64", (2, 3)))
    (y,) = simplified([x], reduce("max", reduce("sum", x, 1), 0))
    assert y.operands[0].operation == "reduce"


@pytest.mark.parametrize("kind", ["max", "min"])
def test_extrema_of_repeated_elements_are_the_elements(kind: str) -> None:
    (x,) = inputs(("float64", (3,)))
    assert simplified([x], reduce(kind, expand(x, (4, 3)), 0)) == (x,)


def test_a_sum_of_repeated_floats_is_not_a_product() -> None:
    (x,) = inputs(("float64", (3,)))
    (y,) = simplified([x], reduce("sum", expand(x, (10, 3)), 0))
    assert y.operation == "reduce"


@pytest.mark.parametrize(
    ("number", "dtype", "kind", "expected"),
    [
        (3, "int64", "sum", 36),
        (100, "int8", "sum", -80),
        (0.0, "float64", "sum", 0.0),
        (-0.0, "float64", "sum", 0.0),
        (1.0, "float32", "prod", 1.0),
        (-2.5, "float64", "max", -2.5),
        (True, "bool", "any", True),
        (False, "bool", "all", False),
    ],
)
def test_reductions_of_a_fill(number: Any, dtype: str, kind: str, expected: Any) -> None:
    filled = expand(constant(number, dtype), (3, 4))
    (y,) = simplified([], reduce(kind, filled, 0, 1))
    assert repr(y.attributes["value"]) == repr(expected)


@pytest.mark.sampled(0.11, by="kind")
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32", "float64", "complex128"])
def test_reductions_of_any_fill_keep_their_bits(dtype: str, kind: str, dims: Any) -> None:
    if dtype == "complex128" and kind in ("max", "min"):
        return  # they have no order
    (x,) = inputs((dtype, (1,)))
    for number in (0, 1, 2, 3, -1, -0.0, 0.5):
        if np.asarray(number).astype(dtype) != number:
            continue
        fill = reduce(
            kind, expand(constant(np.dtype(dtype).type(number).item(), dtype), (2, 3, 2)), *dims
        )
        simplified([x], fill, reduce(kind, expand(x, (2, 3, 1)), *dims))


def test_a_sum_of_nothing_is_zero() -> None:
    (x,) = inputs(("float64", (3, 0)))
    (y,) = simplified([x], reduce("sum", x, 1))
    assert y.operands[0].attributes["value"] == 0.0


def test_an_update_of_everything_is_the_part() -> None:
    x, y = inputs(("float64", (3, 4)), ("float64", (3, 4)))
    assert simplified([x, y], update(x, y, 0, 4, 1)) == (y,)


def test_an_update_with_nothing_is_the_whole() -> None:
    x, y = inputs(("float64", (3, 4)), ("float64", (0, 4)))
    assert simplified([x, y], update(x, y, 0, 4, 1)) == (x,)


def test_the_last_update_of_a_window_counts() -> None:
    x, y, z = inputs(("float64", (10,)), ("float64", (3,)), ("float64", (3,)))
    (last,) = simplified([x, y, z], update(update(x, y, 2, 1), z, 2, 1))
    assert last.operation == "join"
    assert last.operands[1] is z
    assert all(part.operands == (x,) for part in (last.operands[0], last.operands[2]))


def test_writing_what_is_there_changes_nothing() -> None:
    (x,) = inputs(("float64", (10,)))
    assert simplified([x], update(x, slice_of(x, 2, 5), 2, 1)) == (x,)
    (y,) = simplified([x], update(x, slice_of(x, 2, 5), 3, 1))
    assert y.operation == "join"


def test_zeros_in_zeros_are_zeros() -> None:
    zeros = expand(constant(0.0), (10,))
    (y,) = simplified([], update(zeros, expand(constant(0.0), (3,)), 2, 1))
    assert y.operation == "view"
    (y,) = simplified([], update(zeros, expand(constant(-0.0), (3,)), 2, 1))
    assert y.operation == "join"


def test_adding_a_gradient_in_zeros_stays_an_addition() -> None:
    x, y = inputs(("float64", (10,)), ("float64", (3,)))
    inside = update(expand(constant(0.0), (10,)), y, 2, 1)
    (z,) = simplified([x, y], apply("add", inside, x))
    assert z.operation == "join"
    assert [part.operation for part in z.operands] == ["add", "add", "add"]


def test_reading_what_was_written() -> None:
    x, y = inputs(("float64", (4, 5)), ("float64", (4, 2)))
    written = update(x, y, 1, 5, 1)
    columns = view(written, (4, 2), (0, {0: 1}), (1, {1: 1}))
    assert simplified([x, y], columns) == (y,)


@pytest.mark.parametrize("start", [3, 0])
def test_reading_past_what_was_written(start: int) -> None:
    x, y = inputs(("float64", (4, 5)), ("float64", (4, 2)))
    columns = view(update(x, y, 1, 5, 1), (4, 1), (0, {0: 1}), (start, {}))
    (z,) = simplified([x, y], columns)
    assert z.operands == (x,)


def test_reading_between_what_was_written() -> None:
    x, y = inputs(("float64", (10,)), ("float64", (5,)))
    odd = view(update(x, y, 0, 2), (5,), (1, {0: 2}))
    (z,) = simplified([x, y], odd)
    assert z.operands == (x,)


def test_reading_across_what_was_written_stays() -> None:
    x, y = inputs(("float64", (10,)), ("float64", (5,)))
    (z,) = simplified([x, y], slice_of(update(x, y, 2, 1), 1, 6))
    assert z.operation == "join"
    assert [part.operands for part in z.operands] == [(x,), (y,)]


def test_windows_that_wrap_around_rows_are_told_apart() -> None:
    x, y = inputs(("float64", (3, 4)), ("float64", (4,)))
    written = update(x, y, 2, 1)  # the end of a row and the beginning of the next
    column = view(written, (3,), (0, {0: 1}), (1, {}))
    (z,) = simplified([x, y], column)
    assert z.operands[0].operation == "update"


def window(random: Random, shape: list[int]) -> list[tuple[int, int, int]]:
    """Draw slices of every dim: the first index, the step, and how many there are."""
    found = []
    for n in shape:
        start, step = random.randrange(n), random.randint(1, 3)
        found.append((start, step, random.randint(1, (n - 1 - start) // step + 1)))
    return found


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("seed", range(150))
def test_a_window_is_read_through_one_that_was_written_elsewhere(seed: int) -> None:
    random = Random(seed)
    shape = [random.randint(1, 6) for _ in range(random.randint(1, 3))]
    written, read = window(random, shape), window(random, shape)
    own = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    counts = [tuple(count for _, _, count in each) for each in (written, read)]
    x, y = inputs(("float64", tuple(shape)), ("float64", counts[0]))
    offset = sum(a * start for a, (start, _, _) in zip(own, written, strict=True))
    strides = [a * step for a, (_, step, _) in zip(own, written, strict=True)]
    maps = [
        (start, {dim: step} if count > 1 else {}) for dim, (start, step, count) in enumerate(read)
    ]
    (z,) = simplified([x, y], view(update(x, y, offset, *strides), counts[1], *maps))
    apart = [
        a + step * (count - 1) < b or b + other_step * (other_count - 1) < a
        for (a, step, count), (b, other_step, other_count) in zip(written, read, strict=True)
    ]
    if any(apart):
        steps = Graph([x, y], [z]).values()
        assert all(each.operation in ("input", "view", "reshape") for each in steps)
