"""Views, reshapes, broadcasting, and moving views before elementwise operations."""

from __future__ import annotations

from typing import Any

import pytest

from numgrad.jit.ir.graph import Affine, Graph, Value
from numgrad.jit.passes.simplify import simplify
from tests.jit.simplified import simplified_graph
from tests.jit.small_graphs import (
    apply,
    constant,
    expand,
    inputs,
    reshape,
    slice_of,
    view,
)


def simplified(arguments: list[Value], *outputs: Value) -> tuple[Value, ...]:
    """Simplify, and check that the graph is valid and has the same bits."""
    return simplified_graph(Graph(arguments, outputs)).outputs


def given(*shape: int) -> Any:
    return inputs(("float64", shape))


def transpose(x: Value) -> Value:
    return view(x, x.shape[::-1], (0, {1: 1}), (0, {0: 1}))


def test_identity_views_vanish() -> None:
    (x,) = given(3, 1)
    assert simplified([x], view(x, (3, 1), (0, {0: 1}), (0, {1: 5}))) == (x,)


def test_views_of_views_are_composed() -> None:
    (x,) = given(4, 6)
    every_second = view(x, (4, 3), (0, {0: 1}), (1, {1: 2}))
    (y,) = simplified([x], transpose(slice_of(every_second, 1, 3)))
    assert y.operands == (x,)
    assert str(y.attributes["maps"][0]) == "i1 + 1"
    assert str(y.attributes["maps"][1]) == "2*i0 + 1"


def test_a_transpose_of_a_transpose_is_nothing() -> None:
    (x,) = given(3, 4)
    assert simplified([x], transpose(transpose(x))) == (x,)


def test_equal_views_are_one() -> None:
    (x,) = given(5)
    one, other = simplified([x], slice_of(x, 1, 4), slice_of(slice_of(x, 1, 5), 0, 3))
    assert one is other


@pytest.mark.parametrize(
    ("shape", "new"),
    [((12,), (3, 4)), ((3, 4), (3, 2, 2)), ((3,), (3, 1)), ((1, 3, 1), (3,)), ((6, 2), (2, 3, 2))],
)
def test_reshapes_that_split_dims_are_views(shape: Any, new: Any) -> None:
    (x,) = given(*shape)
    (y,) = simplified([x], reshape(x, *new))
    assert y.operation == "view"


@pytest.mark.parametrize(("shape", "new"), [((3, 4), (12,)), ((3, 4), (4, 3)), ((2, 3), (3, 2))])
def test_reshapes_that_merge_dims_stay(shape: Any, new: Any) -> None:
    (x,) = given(*shape)
    (y,) = simplified([x], reshape(x, *new))
    assert y.operation == "reshape"


def test_reshapes_undo_each_other() -> None:
    (x,) = given(3, 4)
    assert simplified([x], reshape(reshape(x, 12), 3, 4)) == (x,)
    (y,) = given(12)
    assert simplified([y], reshape(reshape(y, 3, 4), 12)) == (y,)


def test_a_view_that_is_a_reshape_merges_with_one() -> None:
    (x,) = given(3, 4)
    flat = reshape(x, 12)
    (y,) = simplified([x], view(flat, (4, 3), (0, {0: 3, 1: 1})))
    assert y.operation == "reshape"
    assert y.operands == (x,)


def test_reshape_of_an_expanded_value_is_a_view() -> None:
    (x,) = given(4)
    (y,) = simplified([x], reshape(expand(x, (2, 3, 4)), 6, 4))
    assert y.operation == "view"
    assert y.operands == (x,)


def test_dims_are_not_merged_across_a_slice() -> None:
    (x,) = given(3, 4)
    part = view(x, (3, 2), (0, {0: 1}), (0, {1: 1}))
    (y,) = simplified([x], reshape(part, 6))
    assert y.operation == "reshape"


def test_operations_run_before_their_operand_is_expanded() -> None:
    (x,) = given(4, 1)
    (y,) = simplified([x], apply("exp", expand(x, (4, 100))))
    assert y.operation == "view"
    assert y.operands[0].operation == "exp"
    assert y.operands[0].operands == (x,)


def test_expanded_operands_broadcast_by_themselves() -> None:
    x, y = inputs(("float64", (3,)), ("float64", (2, 3)))
    (z,) = simplified([x, y], apply("add", expand(x, (2, 3)), y))
    assert z.operands == (x, y)


def test_leading_dims_broadcast_by_a_dim_of_one() -> None:
    x, y = inputs(("float64", (3,)), ("float64", (3, 5)))
    columns = view(x, (3, 5), (0, {0: 1}))
    (z,) = simplified([x, y], apply("add", columns, y))
    assert z.operands[0].shape == (3, 1)


def test_filled_values_fold() -> None:
    ones = expand(constant(1.0), (2, 3))
    (y,) = simplified([], apply("add", reshape(ones, 6), expand(constant(2.0), (6,))))
    assert y.operation == "view"
    assert y.operands[0].attributes["value"] == 3.0


def test_a_view_moves_before_operations_that_nothing_else_needs() -> None:
    (x,) = given(10)
    (y,) = simplified([x], slice_of(apply("exp", apply("sin", x)), 2, 5))
    assert y.operation == "exp"
    assert y.operands[0].operation == "sin"
    assert y.shape == (3,)


def test_a_view_moves_to_operands_that_broadcast() -> None:
    x, y = inputs(("float64", (4, 1)), ("float64", (6,)))
    (z,) = simplified([x, y], transpose(apply("add", x, y)))
    assert z.operation == "add"
    assert z.shape == (6, 4)


def test_a_view_does_not_move_where_the_whole_is_needed() -> None:
    (x,) = given(10)
    whole = apply("exp", x)
    y, z = simplified([x], slice_of(whole, 2, 5), whole)
    assert y.operation == "view"
    assert y.operands == (z,)


def test_parts_of_a_value_move_if_they_do_not_overlap_much() -> None:
    (x,) = given(10)
    whole = apply("exp", x)
    outputs = simplified([x], slice_of(whole, 0, 5), slice_of(whole, 5, 10))
    assert [y.operation for y in outputs] == ["exp", "exp"]
    outputs = simplified([x], slice_of(whole, 0, 9), slice_of(whole, 1, 10))
    assert [y.operation for y in outputs] == ["view", "view"]


def test_a_view_that_repeats_elements_does_not_move() -> None:
    (x,) = given(10)
    windows = view(apply("exp", x), (8, 3), (0, {0: 1, 1: 1}))
    (y,) = simplified([x], windows)
    assert y.operation == "view"


def test_long_chains_do_not_recurse() -> None:
    (x,) = given(10)
    y = x
    for _ in range(3000):
        y = apply("sin", y)
    (y,) = simplify(Graph([x], [slice_of(y, 0, 2)])).outputs
    assert y.operation == "sin"


def test_one_element_is_reshaped() -> None:
    (x,) = given(3)
    (y,) = simplified([x], reshape(view(x, (), (2, {})), 1, 1))
    assert y.operation == "view"


def test_nothing_without_elements_is_harmed() -> None:
    (x,) = given(0, 3)
    (y,) = simplified([x], reshape(transpose(apply("exp", x)), 3, 0))
    assert y.shape == (3, 0)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("first", "second"), [(0, 0), (3, 4), (1, 2), (0, 4), (3, 0)])
def test_a_gather_at_known_positions_is_a_view(first: int, second: int, count: int) -> None:
    x, known = inputs(("float64", (4, 5)), ("bool", (3,)))
    numbers = [expand(constant(n, "int64"), (3,)) for n in (first, second)]
    positions = [*numbers[:count], apply("cast", known, dtype="int64")][:2]
    maps = (Affine(0, ((1, 1),)), Affine(0, ((2, 1),)))
    found = Value("gather", (x, *positions), (3,), x.dtype, maps=maps)
    (y,) = simplified([x, known], found)
    assert (y.operation == "view") == (count == 2)
    assert len(y.operands) == 3 - count


@pytest.mark.parametrize("position", [-1, 4, 9])
def test_a_gather_at_known_positions_that_are_not_there_stays(position: int) -> None:
    (x,) = given(4)
    positions = expand(constant(position, "int64"), (3,))
    gather = Value("gather", (x, positions), (3,), x.dtype, maps=(Affine(0, ((1, 1),)),))
    (y,) = simplify(Graph([x], [gather])).outputs
    assert y.operation == "gather"
