"""Which nests a graph becomes, what they share, and which run together: a table."""

from __future__ import annotations

import pytest

from tests.jit import graphs as g
from tests.jit.schedule.steps import (
    Outputs,
    Table,
    check_steps,
    positions,
    product,
    put,
    turned,
    zeros,
)

X, T, S, V = g.given(3, 4), g.given(3, 4, 5), g.given(4, 4), g.given(8)
C = g.given(3, 4, dtype="complex128")
BOTH = g.op("add", C, g.cast(X, "complex128"))
STEPS = Table()


@pytest.mark.parametrize("name", STEPS)
def test_a_graph_becomes_these_nests(name: str) -> None:
    check_steps(*STEPS[name])


@STEPS.becomes(
    "3x4 inner [1] blocked [0]: sum0 input, sum1 input, sum01 input <- input",
)
def sums_both_ways_and_of_all() -> Outputs:
    return [g.reduce("sum", X, 0), g.reduce("sum", X, 1), g.reduce("sum", X)]


@STEPS.becomes(
    "3x4x5 blocked [0, 1]: sum01 input, sum012 input <- input",
)
def sums_over_all_but_the_last_and_of_all() -> Outputs:
    return [g.reduce("sum", T, 0, 1), g.reduce("sum", T)]


@STEPS.becomes(
    "3x4x5 blocked [0]: sum0 input <- input",
    "3x4x5: sum012 input <- input",
)
def sums_over_the_first_and_of_all() -> Outputs:
    return [g.reduce("sum", T, 0), g.reduce("sum", T)]


@STEPS.becomes(
    "3x4x5: sum012 input <- input",
    "3x4x5 blocked [0]: sum0 input <- input",
)
def sums_of_all_and_over_the_first() -> Outputs:
    return [g.reduce("sum", T), g.reduce("sum", T, 0)]


@STEPS.becomes(
    "3x4x5 inner [2] blocked [1]: sum1 input, sum2 input <- input",
    "3x4x5 blocked [0]: sum0 input <- input",
)
def sums_over_each() -> Outputs:
    return [g.reduce("sum", T, 1), g.reduce("sum", T, 2), g.reduce("sum", T, 0)]


@STEPS.becomes(
    "3x4x5 inner [1, 2]: sum12 input <- input",
    "3x4x5 inner [2]: sum2 input <- input",
)
def sums_over_two_and_the_last() -> Outputs:
    return [g.reduce("sum", T, 1, 2), g.reduce("sum", T, 2)]


@STEPS.becomes(
    "3x4x5 inner [2] blocked [0]: sum0 input, sum2 input <- input",
    "3x4x5 inner [0, 2]: sum02 input <- input",
)
def sums_over_first_and_last_together_and_alone() -> Outputs:
    return [g.reduce("sum", T, 0), g.reduce("sum", T, 0, 2), g.reduce("sum", T, 2)]


@STEPS.becomes(
    "3x4x5 inner [0, 2]: sum02 input <- input",
    "3x4x5 blocked [0]: sum0 input <- input",
)
def sums_over_first_and_last_and_over_the_first() -> Outputs:
    return [g.reduce("sum", T, 0, 2), g.reduce("sum", T, 0)]


@STEPS.becomes(
    "3x4x5 inner [0, 2] blocked [1]: sum02 input, sum1 input <- input",
)
def sums_over_the_outer_and_the_middle() -> Outputs:
    return [g.reduce("sum", T, 0, 2), g.reduce("sum", T, 1)]


@STEPS.becomes(
    "3x4x5 inner [2] blocked [1]: sum2 input, sum1 input <- input",
    "3x4x5 inner [1, 2]: sum12 input <- input",
)
def sums_over_the_last_the_last_two_and_the_middle() -> Outputs:
    return [g.reduce("sum", T, 2), g.reduce("sum", T, 1, 2), g.reduce("sum", T, 1)]


@STEPS.becomes(
    "3x4 blocked [0]: sum0 input <- input",
    "3x4 blocked [0]: sum0 add <- input input",
)
def blocks_of_real_and_of_complex_numbers() -> Outputs:
    return [g.reduce("sum", X, 0), g.reduce("sum", BOTH, 0)]


@STEPS.becomes(
    "3x4 blocked [0]: sum0 add <- input input",
    "3x4 blocked [0]: sum0 input <- input",
)
def blocks_of_complex_and_of_real_numbers() -> Outputs:
    return [g.reduce("sum", BOTH, 0), g.reduce("sum", X, 0)]


@STEPS.becomes(
    "3x4 blocked [0]: any0 lt <- input",
    "3x4 blocked [0]: sum0 add <- input input",
)
def blocks_of_bools_and_of_complex_numbers() -> Outputs:
    return [g.reduce("any", g.op("lt", X, 0), 0), g.reduce("sum", BOTH, 0)]


@STEPS.becomes(
    "3x4 blocked [0]: any0 lt, sum0 input <- input",
)
def blocks_of_bools_and_of_real_numbers() -> Outputs:
    return [g.reduce("any", g.op("lt", X, 0), 0), g.reduce("sum", X, 0)]


@STEPS.becomes(
    "3x4 inner [1] blocked [0]: sum1 add, sum0 input <- input input",
)
def blocks_of_complex_numbers_beside_a_sum_of_rows() -> Outputs:
    return [g.reduce("sum", BOTH, 1), g.reduce("sum", X, 0)]


@STEPS.becomes(
    "3x4 blocked [0]: sum0 input, sum0 neg <- input",
)
def blocks_of_complex_numbers_twice() -> Outputs:
    return [g.reduce("sum", C, 0), g.reduce("sum", g.op("neg", C), 0)]


@STEPS.becomes(
    "3x4 inner [1]: sum1 input, sum1 add <- input input",
)
def rows_of_real_and_of_complex_numbers() -> Outputs:
    return [g.reduce("sum", X, 1), g.reduce("sum", BOTH, 1)]


@STEPS.becomes(
    "3x4 inner [1]: sum1 input, store exp, store sub <- input reduce",
    "kept: reduce",
)
def what_is_made_of_the_sum_of_a_row() -> Outputs:
    s = g.reduce("sum", X, 1)
    return [g.op("exp", s), g.op("sub", X, g.keep(s, 1))]


@STEPS.becomes(
    "3x4: sum01 input <- input",
    "3x4: store sub <- input reduce",
    "kept: reduce",
)
def what_is_made_of_the_sum_of_all() -> Outputs:
    return [g.op("sub", X, g.reduce("sum", X))]


@STEPS.becomes(
    "3x4 inner [1]: sum1 input, sum0 exp <- input reduce",
    "kept: reduce",
)
def the_sum_of_what_is_made_of_rows() -> Outputs:
    return [g.reduce("sum", g.op("exp", g.reduce("sum", X, 1)))]


@STEPS.becomes(
    "3x4x5 inner [2]: sum2 input <- input",
    "3x4 inner [1]: sum1 reduce <- reduce",
)
def sums_of_rows_summed_over_the_last() -> Outputs:
    s = g.reduce("sum", T, 2)
    return [s, g.reduce("sum", s, 1)]


@STEPS.becomes(
    "3x4x5 inner [2]: sum2 input <- input",
    "3x4 blocked [0]: sum0 reduce <- reduce",
)
def sums_of_rows_summed_over_the_first() -> Outputs:
    s = g.reduce("sum", T, 2)
    return [s, g.reduce("sum", s, 0)]


@STEPS.becomes(
    "3x4x5 inner [2]: sum2 input, sum01 reduce <- input reduce",
    "kept: reduce",
)
def sums_of_rows_summed_to_one() -> Outputs:
    return [g.reduce("sum", g.reduce("sum", T, 2))]


@STEPS.becomes(
    "3x4 inner [1]: sum1 input <- input",
    "2: store add <- reduce reduce",
    "kept: reduce",
)
def sums_of_neighbouring_rows() -> Outputs:
    s = g.reduce("sum", X, 1)
    return [g.op("add", g.part(s, 0, 2), g.part(s, 1, 3))]


@STEPS.becomes(
    "3x4 inner [1]: sum1 input <- input",
    "3: store view <- reduce",
    "kept: reduce",
)
def sums_of_rows_turned() -> Outputs:
    return [turned(g.reduce("sum", X, 1))]


@STEPS.becomes(
    "3x4 blocked [0]: sum0 input <- input",
    "4: store exp <- reduce",
    "3x4: store sub <- input reduce",
    "kept: reduce",
    "together: 0 | 1 2",
)
def what_is_made_of_blocks() -> Outputs:
    s = g.reduce("sum", X, 0)
    return [g.op("exp", s), g.op("sub", X, s)]


@STEPS.becomes(
    "4x4 inner [1]: sum1 input <- input",
    "4x4: store add <- reduce input",
    "kept: reduce",
)
def sums_of_rows_for_columns() -> Outputs:
    return [g.op("add", g.reduce("sum", S, 1), S)]


@STEPS.becomes(
    "3x4 inner [1]: sum1 input <- input",
    "8: store neg <- input",
)
def rows_and_others() -> Outputs:
    return [g.reduce("sum", X, 1), g.op("neg", V)]


@STEPS.becomes(
    "3x4 inner [1]: sum1 input <- input",
    "one: store neg <- input",
)
def rows_and_a_number() -> Outputs:
    return [g.reduce("sum", X, 1), g.op("neg", g.given())]


@STEPS.becomes(
    "3x4: sum01 input <- input",
    "3x4 inner [1]: sum1 sub <- input reduce",
    "kept: reduce",
)
def rows_and_a_sum_that_they_need() -> Outputs:
    s = g.reduce("sum", g.op("sub", X, g.reduce("sum", X)), 1)
    return [s]


@STEPS.becomes(
    "3x4 inner [1]: max1 input, sum1 exp, store true_divide <- input reduce reduce",
    "kept: reduce, reduce",
)
def rows_of_rows() -> Outputs:
    s = g.keep(g.reduce("max", X, 1), 1)
    y = g.op("exp", g.op("sub", X, s))
    return [g.op("true_divide", y, g.keep(g.reduce("sum", y, 1), 1))]


@STEPS.becomes(
    "3: copy neg <- input",
)
def a_sum_over_nothing() -> Outputs:
    return [g.reduce("sum", g.op("neg", g.given(3, 1)), 1)]


@STEPS.becomes(
    "8: store exp <- input",
    "3: store neg <- input",
    "together: 0 1",
)
def neighbours() -> Outputs:
    return [g.op("exp", V), g.op("neg", g.part(V, 0, 3))]


@STEPS.becomes(
    "8: store exp <- input",
    "3x4: store neg <- input",
)
def neighbours_that_read_nothing_together() -> Outputs:
    return [g.op("exp", V), g.op("neg", X)]


@STEPS.becomes(
    "8: store exp <- input",
    "3: store exp <- exp",
)
def neighbours_of_which_one_needs_the_other() -> Outputs:
    y = g.op("exp", V)
    return [y, g.op("exp", g.part(y, 0, 3))]


@STEPS.becomes(
    "8: sum0 input <- input",
    "3: sum0 view <- input",
    "2: store neg <- input",
    "together: 0 1 2",
)
def neighbours_of_which_one_adds_up() -> Outputs:
    return [g.reduce("sum", V), g.reduce("sum", g.part(V, 0, 3)), g.op("neg", g.part(V, 1, 3))]


@STEPS.becomes(
    "2x4: store neg <- input",
    "3x4 inner [1]: sum1 input <- input",
    "2x4: store neg <- input",
)
def neighbours_of_which_one_has_rows() -> Outputs:
    return [g.op("neg", g.part(X, 1, 3)), g.reduce("sum", X, 1), g.op("neg", g.part(X, 0, 2))]


@STEPS.becomes(
    "2x4: store neg <- input",
    "3x4 blocked [0]: sum0 input <- input",
    "2x4: store neg <- input",
)
def neighbours_of_which_one_has_blocks() -> Outputs:
    return [g.op("neg", g.part(X, 1, 3)), g.reduce("sum", X, 0), g.op("neg", g.part(X, 0, 2))]


@STEPS.becomes(
    "5: store scatter <- scatter",
    "8: store neg <- input",
    "3: scatter route <- input input",
    "4: store neg <- input",
)
def neighbours_of_which_one_puts() -> Outputs:
    return [g.op("neg", V), put(zeros(5), g.part(V, 0, 3)), g.op("neg", g.part(V, 0, 4))]


@STEPS.becomes(
    "0x4: store exp <- input",
    "0x2: store exp <- input",
    "0x3: store exp <- input",
)
def neighbours_without_elements() -> Outputs:
    x = g.given(0, 4)
    parts = [g.view(x, (0, n), (0, ((0, 1),)), (0, ((1, 1),))) for n in (2, 3)]
    return [g.op("exp", each) for each in (x, *parts)]


@STEPS.becomes(
    "8: store neg <- input",
    "one: store exp <- input",
    "together: 0 1",
)
def neighbours_of_which_one_is_a_number() -> Outputs:
    return [g.op("neg", V), g.op("exp", g.given())]


@STEPS.becomes(
    "2x4: store neg <- input",
    "matmul of input[0; 4 1], input[0; 4 1]",
    "3x4: store neg <- input",
)
def neighbours_around_a_product() -> Outputs:
    return [g.op("neg", g.part(S, 0, 2)), product(S, S), g.op("neg", g.part(S, 1, 4))]


@STEPS.becomes(
    "matmul of input[0; 4 1], input[0; 4 1]",
    "2x4: store neg <- matmul",
    "3x4: store exp <- matmul",
    "together: 1 2",
)
def neighbours_behind_a_product() -> Outputs:
    m = product(S, S)
    return [m, g.op("neg", g.part(m, 0, 2)), g.op("exp", g.part(m, 1, 4))]


@STEPS.becomes(
    "8: store exp <- input",
    "2: store neg <- exp",
    "3: store exp <- exp",
    "together: 0 | 1 2",
)
def neighbours_that_come_from_one_before() -> Outputs:
    y = g.op("exp", V)
    return [y, g.op("neg", g.part(y, 0, 2)), g.op("exp", g.part(y, 1, 4))]


@STEPS.becomes(
    "2: store neg <- input",
    "8: store exp <- input",
    "3: store sin <- input",
    "4: store neg <- exp",
    "together: 0 1 2 | 3",
)
def neighbours_that_read_what_one_before_stores() -> Outputs:
    y = g.op("exp", V)
    first, second = g.op("neg", g.part(V, 0, 2)), g.op("sin", g.part(V, 0, 3))
    return [first, y, second, g.op("neg", g.part(y, 0, 4))]


@STEPS.becomes(
    "8: store exp <- input",
    "one: store neg <- input",
    "3: store neg <- input",
    "together: 0 1 2",
)
def neighbours_of_which_the_third_reads_as_the_first() -> Outputs:
    return [g.op("exp", V), g.op("neg", g.given()), g.op("neg", g.part(V, 0, 3))]


@STEPS.becomes(
    "4x4 inner [1] blocked [0]: sum1 input, sum0 input <- input",
    "4: store add <- reduce reduce",
    "kept: reduce, reduce",
)
def sums_of_rows_and_of_columns() -> Outputs:
    return [g.op("add", g.reduce("sum", S, 1), g.reduce("sum", S, 0))]


@STEPS.becomes(
    "3x4x5 inner [2]: sum2 input, sum01 reduce <- input reduce",
    "3x4: store sub <- reduce reduce",
    "kept: reduce, reduce",
)
def sums_of_rows_and_what_they_add_up_to() -> Outputs:
    s = g.reduce("sum", T, 2)
    return [g.op("sub", s, g.reduce("sum", s))]


@STEPS.becomes(
    "3x2 inner [1]: sum1 gather, store exp, store neg <- input input reduce input",
    "kept: reduce",
)
def rows_of_elements_and_of_what_they_are_taken_from() -> Outputs:
    rows = g.gather(X, (3, 2), [(0, ((0, 1),)), (0, ((2, 1),))], positions(3, 2))
    first = g.view(X, (3,), (0, ((0, 1),)), (0, ()))
    return [g.op("exp", g.reduce("sum", rows, 1)), g.op("neg", first)]


@STEPS.becomes(
    "4x2 inner [1]: sum1 gather, store exp, store neg <- input input reduce input",
    "kept: reduce",
)
def columns_of_elements_and_of_what_they_are_taken_from() -> Outputs:
    rows = g.gather(X, (4, 2), [(0, ((2, 1),)), (0, ((0, 1),))], positions(4, 2))
    first = g.view(X, (4,), (0, ()), (0, ((0, 1),)))
    return [g.op("exp", g.reduce("sum", rows, 1)), g.op("neg", first)]


@STEPS.becomes(
    "3x4 inner [1]: store scatter, sum1 input <- input scatter",
    "3x2: scatter route <- input input",
    "3x4: store neg <- scatter",
    "kept: scatter",
)
def rows_that_are_put_and_rows_they_are_put_into() -> Outputs:
    maps = [(0, ((0, 1),)), (0, ((2, 1),))]
    into = g.scatter(X, g.given(3, 2), maps, positions(3, 2), adds=True)
    return [g.op("neg", into), g.reduce("sum", X, 1)]


@STEPS.becomes(
    "matmul of input[0; 4 1], input[0; 5 1]",
    "3x5 inner [1]: sum1 matmul, store exp <- matmul input",
    "kept: matmul",
)
def rows_of_a_product_and_of_its_left_operand() -> Outputs:
    first = g.view(X, (3,), (0, ((0, 1),)), (0, ()))
    return [g.reduce("sum", product(X, g.given(4, 5)), 1), g.op("exp", first)]


@STEPS.becomes(
    "matmul of input[0; 4 1], input[0; 5 1]",
    "5x3 inner [1]: sum1 view, store exp <- matmul input",
    "kept: matmul",
)
def columns_of_a_product_and_of_its_right_operand() -> Outputs:
    right = g.given(4, 5)
    columns = g.transpose(product(X, right))
    first = g.view(right, (5,), (0, ()), (0, ((0, 1),)))
    return [g.reduce("sum", columns, 1), g.op("exp", first)]


@STEPS.becomes(
    "matmul of input[0; 4 1], input[0; 5 1]",
    "4x3 inner [1]: sum1 view, store exp <- input input",
)
def columns_and_rows_that_are_multiplied() -> Outputs:
    right = g.given(4, 5)
    first = g.view(right, (4,), (0, ((0, 1),)), (0, ()))
    return [product(X, right), g.reduce("sum", g.transpose(X), 1), g.op("exp", first)]


@STEPS.becomes(
    "0x4: store exp <- input",
    "2x0: store neg <- exp",
    "kept: exp",
)
def shapes_without_elements() -> Outputs:
    return [g.op("neg", g.reshape(g.op("exp", g.given(0, 4)), 2, 0))]
