"""What is kept in memory for it to be read again: a table."""

from __future__ import annotations

import pytest

from tests.jit import graphs as g
from tests.jit.schedule.steps import Outputs, Table, chain, check_steps, turned

X, T, S, V = g.given(3, 4), g.given(3, 4, 5), g.given(4, 4), g.given(8)
STEPS = Table()


@pytest.mark.parametrize("name", STEPS)
def test_what_is_dear_or_lies_otherwise_is_kept(name: str) -> None:
    check_steps(*STEPS[name])


@STEPS.becomes(
    "3: store add <- input input",
)
def two_slices_of_what_is_cheap() -> Outputs:
    y = chain(V, 8)
    return [g.op("add", g.part(y, 0, 3), g.part(y, 1, 4))]


@STEPS.becomes(
    "8: store neg <- input",
    "3: store add <- neg neg",
    "kept: neg",
)
def two_slices_of_what_is_dear() -> Outputs:
    y = chain(V, 9)
    return [g.op("add", g.part(y, 0, 3), g.part(y, 1, 4))]


@STEPS.becomes(
    "3: store view <- input",
    "8: store exp <- input",
    "together: 0 1",
)
def two_nests_of_what_is_cheap() -> Outputs:
    y = chain(V, 8)
    return [g.part(y, 0, 3), g.op("exp", y)]


@STEPS.becomes(
    "8: store neg, store exp <- input",
    "3: store view <- neg",
    "kept: neg",
)
def two_nests_of_what_is_dear() -> Outputs:
    y = chain(V, 9)
    return [g.part(y, 0, 3), g.op("exp", y)]


@STEPS.becomes(
    "8: store neg <- input",
    "3: store add <- neg neg",
)
def what_is_stored_anyway() -> Outputs:
    y = chain(V, 8)
    return [y, g.op("add", g.part(y, 0, 3), g.part(y, 1, 4))]


@STEPS.becomes(
    "3x4: store add <- input input",
)
def cheap_for_each_row() -> Outputs:
    return [g.op("add", chain(g.given(4), 8), X)]


@STEPS.becomes(
    "4: store neg <- input",
    "3x4: store add <- neg input",
    "kept: neg",
)
def dear_for_each_row() -> Outputs:
    return [g.op("add", chain(g.given(4), 9), X)]


@STEPS.becomes(
    "3x4: store add <- input input",
)
def dear_once_a_row() -> Outputs:
    return [g.op("add", g.keep(chain(g.given(3), 9), 1), X)]


@STEPS.becomes(
    "3x4 inner [1]: sum1 add <- input input",
)
def dear_once_a_reduced_row() -> Outputs:
    return [g.reduce("sum", g.op("add", g.keep(chain(g.given(3), 9), 1), X), 1)]


@STEPS.becomes(
    "4: store neg <- input",
    "3x4 inner [1]: sum1 add <- neg input",
    "kept: neg",
)
def dear_for_each_reduced_row() -> Outputs:
    return [g.reduce("sum", g.op("add", chain(g.given(4), 9), X), 1)]


@STEPS.becomes(
    "8: store neg, store view <- input input",
)
def stored_and_turned_what_is_cheap() -> Outputs:
    y = chain(V, 8)
    return [y, turned(y)]


@STEPS.becomes(
    "8: store neg <- input",
    "8: store view <- neg",
)
def stored_and_turned_what_is_dear() -> Outputs:
    y = chain(V, 9)
    return [y, turned(y)]


@STEPS.becomes(
    "3x4 inner [1]: sum1 input, store add <- input reduce",
    "3x4: store view <- add",
    "kept: reduce",
)
def stored_and_turned_what_is_made_of_a_row() -> Outputs:
    y = g.op("add", X, g.keep(g.reduce("sum", X, 1), 1))
    return [y, turned(y)]


@STEPS.becomes(
    "7: store add <- input input",
    "6: store add <- add add",
    "5: store add <- add add",
    "4: store add <- add add",
    "3: store add <- add add",
    "kept: add, add, add, add",
)
def slices_of_slices() -> Outputs:
    y = V
    for n in range(7, 2, -1):
        y = g.op("add", g.op("mul", g.part(y, 0, n), 0.5), g.op("sin", g.part(y, 1, n + 1)))
    return [y]


@STEPS.becomes(
    "4: store add <- input input input input input",
    "3: store add <- add add",
    "kept: add",
)
def slices_of_slices_that_are_cheap() -> Outputs:
    y = V
    for n in range(7, 2, -1):
        y = g.op("add", g.part(y, 0, n), g.part(y, 1, n + 1))
    return [y]


@STEPS.becomes(
    "26: store add <- input input input input input",
    "22: store add <- add add add add add",
    "18: store add <- add add add add add",
    "14: store add <- add add add add add",
    "12: store add <- add add add",
    "11: store add <- add add",
    "kept: add, add, add, add, add",
)
def many_slices_of_slices_that_are_cheap() -> Outputs:
    y = g.given(30)
    for n in range(29, 10, -1):
        y = g.op("add", g.part(y, 0, n), g.part(y, 1, n + 1))
    return [y]


@STEPS.becomes(
    "2: store add <- input input input input input input input",
)
def slices_of_three_of_slices() -> Outputs:
    y = V
    for n in (6, 4, 2):
        y = g.op("add", g.op("add", g.part(y, 0, n), g.part(y, 1, n + 1)), g.part(y, 2, n + 2))
    return [y]


@STEPS.becomes(
    "7: store add <- input input",
    "6: store add <- add add",
    "3: store add <- add add",
    "kept: add, add",
)
def slices_within_what_is_dear() -> Outputs:
    y = V
    for n in (7, 6):
        y = g.op("add", g.op("neg", g.part(y, 0, n)), g.op("exp", g.part(y, 1, n + 1)))
    return [g.op("add", g.part(y, 0, 3), g.part(g.op("exp", y), 1, 4))]


@STEPS.becomes(
    "4x3: store add <- input input",
)
def a_shape_that_needs_a_division() -> Outputs:
    return [g.op("add", g.reshape(X, 4, 3), g.op("exp", g.given(4, 3)))]


@STEPS.becomes(
    "3x4: store exp <- input",
    "4x3: store add <- exp",
    "kept: exp",
)
def a_shape_that_needs_a_division_of_what_is_made() -> Outputs:
    return [g.op("add", g.reshape(g.op("exp", X), 4, 3), 1.0)]


@STEPS.becomes(
    "3x4: store exp <- input",
    "2x6: store add <- exp",
)
def a_shape_that_needs_a_division_of_what_is_stored() -> Outputs:
    y = g.op("exp", X)
    return [y, g.op("add", g.reshape(y, 2, 6), 1.0)]


@STEPS.becomes(
    "3x4: store neg <- input",
    "4x3: store add <- neg",
)
def a_shape_that_needs_a_division_of_what_is_cheap() -> Outputs:
    y = g.op("neg", X)
    return [y, g.op("add", g.reshape(y, 4, 3), 1.0)]


@STEPS.becomes(
    "3x4: store add <- input",
)
def a_shape_that_merges() -> Outputs:
    return [g.op("add", g.reshape(g.op("exp", X), 12), 1.0)]


@STEPS.becomes(
    "3x4: store add, store reshape <- input",
    "4: store neg <- reshape",
    "kept: reshape",
)
def a_part_of_what_is_merged() -> Outputs:
    y = g.op("exp", X)
    return [g.op("add", y, 1.0), g.op("neg", g.part(g.reshape(y, 12), 1, 5))]


@STEPS.becomes(
    "3x4: store add, store reshape <- input",
    "6: store neg <- reshape",
    "kept: reshape",
)
def a_step_in_what_is_merged() -> Outputs:
    y = g.op("exp", X)
    return [g.op("add", y, 1.0), g.op("neg", g.view(g.reshape(y, 12), (6,), (0, ((0, 2),))))]


@STEPS.becomes(
    "2x3: store neg <- input",
)
def a_diagonal_of_what_is_merged() -> Outputs:
    y = g.reshape(g.op("exp", g.given(2, 3, 6)), 6, 6)
    both = g.view(y, (6,), (0, ((0, 1),)), (0, ((0, 1),)))
    return [g.op("neg", both)]


@STEPS.becomes(
    "8: store neg, store view <- input input",
)
def stored_and_turned_what_is_very_cheap() -> Outputs:
    y = chain(V, 2)
    return [y, turned(y)]


@STEPS.becomes(
    "5: store neg <- input input input input",
    "4: store neg <- neg neg",
    "kept: neg",
)
def slices_of_slices_that_just_can_be_afforded() -> Outputs:
    y = V
    for n in (7, 6, 5, 4):
        y = chain(g.op("add", g.part(y, 0, n), g.part(y, 1, n + 1)), 1)
    return [y]


@STEPS.becomes(
    "3x4: store exp, store reshape <- input",
    "3x4: store neg <- reshape",
    "kept: reshape",
)
def what_is_stored_and_read_where_its_place_is_one_number() -> Outputs:
    y = g.op("exp", X)
    return [y, g.op("neg", g.reshape(turned(g.reshape(y, 12)), 3, 4))]


@STEPS.becomes(
    "3x4: store add, store reshape <- input",
    "one: store neg <- reshape",
    "kept: reshape",
)
def the_first_of_what_is_merged() -> Outputs:
    y = g.op("exp", X)
    return [g.op("add", y, 1.0), g.op("neg", g.view(g.reshape(y, 12), (), (0, ())))]


@STEPS.becomes(
    "3x4: store add, store reshape <- input",
    "3x4: store neg <- reshape",
    "kept: reshape",
)
def turned_what_is_merged() -> Outputs:
    y = g.op("exp", X)
    return [g.op("add", y, 1.0), g.op("neg", turned(g.reshape(y, 12)))]


@STEPS.becomes(
    "3x4x5: store exp, store add <- input",
    "5x3x4: store neg <- exp",
    "kept: exp",
)
def moved_what_is_merged() -> Outputs:
    y = g.op("exp", T)
    moved = g.view(g.reshape(y, 12, 5), (5, 12), (0, ((1, 1),)), (0, ((0, 1),)))
    return [g.op("add", y, 1.0), g.op("neg", moved)]


@STEPS.becomes(
    "3x4x5: store add <- input input",
)
def a_shape_that_merges_three_dims() -> Outputs:
    return [g.op("add", g.reshape(g.op("exp", T), 60), g.given(60))]


@STEPS.becomes(
    "3x4x5: store add <- input input",
)
def a_shape_that_splits_in_three_dims() -> Outputs:
    return [g.op("add", g.reshape(g.op("exp", g.given(60)), 3, 4, 5), T)]


@STEPS.becomes(
    "2x3: store exp, store neg <- input",
    "3x2: store neg <- exp",
    "kept: exp",
)
def two_shapes_of_one_vector() -> Outputs:
    y = g.op("exp", g.given(6))
    return [g.op("neg", g.reshape(y, 2, 3)), g.op("neg", g.reshape(y, 3, 2))]


@STEPS.becomes(
    "3x2: store exp, store neg <- input",
    "2x3: store neg <- exp",
    "kept: exp",
)
def two_shapes_of_one_vector_the_other_way() -> Outputs:
    y = g.op("exp", g.given(6))
    return [g.op("neg", g.reshape(y, 3, 2)), g.op("neg", g.reshape(y, 2, 3))]


@STEPS.becomes(
    "8: store exp <- input input",
    "7: store add <- exp exp",
    "6: store add <- add add",
    "kept: exp, add",
)
def what_is_the_same_for_all_of_what_is_kept() -> Outputs:
    z = g.op("exp", g.op("mul", V, g.op("exp", g.op("exp", g.given(1)))))
    y = g.op("add", g.part(z, 0, 7), g.part(z, 1, 8))
    return [g.op("add", g.part(y, 0, 6), g.part(y, 1, 7))]
