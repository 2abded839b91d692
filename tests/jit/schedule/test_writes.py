"""What is written over what was there, and what is copied before: a table."""

from __future__ import annotations

import pytest

from numgrad.jit.ir.graph import Value
from tests.jit import graphs as g
from tests.jit.schedule.steps import Outputs, Table, call, chain, check_steps, item, turned

X, S, V = g.given(3, 4), g.given(4, 4), g.given(8)


def written() -> Value:
    return g.update(V, g.given(1), 0, 1)


STEPS = Table()


@pytest.mark.parametrize("name", STEPS)
def test_what_nobody_else_reads_is_written_over(name: str) -> None:
    check_steps(*STEPS[name])


@STEPS.becomes(
    "8: store update <- input update",
    "2: window input <- input",
)
def a_part_of_an_input() -> Outputs:
    return [g.update(V, g.given(2), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "2: window input <- input",
)
def a_part_of_what_is_made() -> Outputs:
    return [g.update(g.op("exp", V), g.given(2), 3, 1)]


@STEPS.becomes(
    "8: store exp, store update <- input update",
    "2: window input <- input",
)
def a_part_of_what_is_wanted_too() -> Outputs:
    y = g.op("exp", V)
    return [y, g.update(y, g.given(2), 3, 1)]


@STEPS.becomes(
    "8: store update, store neg <- input update",
    "2: window input <- input",
)
def a_part_of_what_is_read_elsewhere() -> Outputs:
    y = g.op("exp", V)
    return [g.update(y, g.given(2), 3, 1), g.op("neg", y)]


@STEPS.becomes(
    "call of input[0; 1]",
    "8: store update <- item update",
    "2: window input <- input",
    "kept: item",
)
def a_part_of_what_a_call_gave() -> Outputs:
    return [g.update(item(call(V), 8), g.given(2), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "2: window input <- input",
    "one: window input over update <- input",
    "kept: update",
)
def one_part_after_another() -> Outputs:
    return [g.update(g.update(g.op("exp", V), g.given(2), 3, 1), g.given(1), 0, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "2: window add over update <- update input",
    "kept: update",
)
def a_part_that_reads_its_place() -> Outputs:
    y = written()
    return [g.update(y, g.op("add", g.part(y, 3, 5), g.given(2)), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "2: store add <- update input",
    "8: store update <- update update",
    "2: window add <- add",
    "kept: update",
    "together: 0 | 1 | 2 3 | 4",
)
def a_part_that_reads_its_place_and_is_wanted() -> Outputs:
    y = written()
    part = g.op("add", g.part(y, 3, 5), g.given(2))
    return [part, g.update(y, part, 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "8: store update <- update update",
    "2: window add <- update input",
    "kept: update",
)
def a_part_that_reads_another_place() -> Outputs:
    y = written()
    return [g.update(y, g.op("add", g.part(y, 2, 4), g.given(2)), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "8: store update <- update update",
    "2: window add <- update input",
    "kept: update",
)
def a_part_that_reads_a_place_behind() -> Outputs:
    y = written()
    return [g.update(y, g.op("add", g.part(y, 4, 6), g.given(2)), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "8: store update <- update update",
    "2: window add <- update input",
    "kept: update",
)
def a_part_that_reads_a_wider_place() -> Outputs:
    y = written()
    return [g.update(y, g.op("add", g.view(y, (2,), (3, ((0, 2),))), g.given(2)), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "8: store update <- update update",
    "2: window add <- update input",
    "kept: update",
)
def a_part_that_reads_a_narrower_place() -> Outputs:
    y = written()
    return [g.update(y, g.op("add", g.part(y, 3, 5), g.given(2)), 3, 2)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "8: store update <- update update",
    "2: window view <- update",
    "kept: update",
)
def a_part_that_reads_its_place_backwards() -> Outputs:
    y = written()
    return [g.update(y, g.view(y, (2,), (4, ((0, -1),))), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "8: store update <- update update",
    "2: window add <- update update",
    "kept: update",
)
def a_part_that_reads_two_places() -> Outputs:
    y = written()
    return [g.update(y, g.op("add", g.part(y, 3, 5), g.part(y, 4, 6)), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "2: window add over update <- update update",
    "kept: update",
)
def a_part_that_reads_its_place_twice() -> Outputs:
    y = written()
    part = g.op("add", g.op("neg", g.part(y, 3, 5)), g.op("exp", g.part(y, 3, 5)))
    return [g.update(y, part, 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "2: sum0 view <- update",
    "8: store update <- update update",
    "2: window add <- reduce input",
    "kept: update, reduce",
    "together: 0 | 1 | 2 3 | 4",
)
def a_part_that_adds_up_its_place() -> Outputs:
    y = written()
    return [g.update(y, g.op("add", g.reduce("sum", g.part(y, 3, 5)), g.given(2)), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "2: store neg <- update",
    "8: store update <- update update",
    "2: window add <- neg neg",
    "kept: update, neg",
    "together: 0 | 1 | 2 3 | 4",
)
def a_part_that_reads_its_place_and_keeps_it() -> Outputs:
    y = written()
    dear = chain(g.part(y, 3, 5), 9)
    return [g.update(y, g.op("add", dear, turned(dear)), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "3x2 blocked [0]: sum0 add <- update input",
    "8: store update <- update update",
    "2: window reduce <- reduce",
    "kept: update, reduce",
)
def a_part_that_reads_its_place_several_times() -> Outputs:
    y = written()
    return [g.update(y, g.reduce("sum", g.op("add", g.part(y, 3, 5), g.given(3, 2)), 0), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "8: store update <- update update",
    "2: window add <- update input",
    "kept: update",
)
def a_part_that_reads_the_first_element_of_its_place() -> Outputs:
    y = written()
    return [g.update(y, g.op("add", g.part(y, 3, 4), g.given(2)), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "3x2 blocked [0]: sum0 view <- update",
    "8: store update <- update update",
    "2: window reduce <- reduce",
    "kept: update, reduce",
)
def a_part_that_reads_its_place_repeated() -> Outputs:
    y = written()
    rows = g.view(y, (3, 2), (3, ((1, 1),)))
    return [g.update(y, g.reduce("sum", rows, 0), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "8: store update <- update update",
    "2: window view <- update",
    "kept: update",
)
def a_part_that_reads_its_place_and_is_turned() -> Outputs:
    y = written()
    return [g.update(y, turned(g.op("neg", g.part(y, 3, 5))), 3, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "8: store update <- update update",
    "2: window view, store neg <- update",
    "kept: update",
)
def a_part_that_is_its_place_and_read_elsewhere() -> Outputs:
    y = written()
    part = g.part(y, 3, 5)
    return [g.update(y, part, 3, 1), g.op("neg", part)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "one: window neg over update <- update",
    "kept: update",
)
def one_element_that_reads_its_place() -> Outputs:
    y = written()
    return [g.update(y, g.op("neg", g.part(y, 3, 4)), 3, 1)]


@STEPS.becomes(
    "4x4: store update <- input update",
    "one: window input <- input",
    "4: window neg over update <- update",
    "kept: update",
)
def a_row_that_reads_its_place() -> Outputs:
    y = g.update(S, g.given(1), 0, 1)
    return [g.update(y, g.op("neg", g.view(y, (1, 4), (1, ()), (0, ((1, 1),)))), 4, 4, 1)]


@STEPS.becomes(
    "4x4: store update <- input update",
    "one: window input <- input",
    "4: window neg over update <- update",
    "kept: update",
)
def a_column_that_reads_its_place() -> Outputs:
    y = g.update(S, g.given(1), 0, 1)
    return [g.update(y, g.op("neg", g.view(y, (4, 1), (0, ((0, 1),)), (1, ()))), 1, 4, 1)]


@STEPS.becomes(
    "4x4: store update <- input update",
    "one: window input <- input",
    "4x4: store update <- update update",
    "2x2: window neg <- update",
    "kept: update",
)
def a_part_that_reads_its_place_transposed() -> Outputs:
    y = g.update(S, g.given(1), 0, 1)
    corner = g.view(y, (2, 2), (0, ((1, 1),)), (0, ((0, 1),)))
    return [g.update(y, g.op("neg", corner), 0, 4, 1)]


@STEPS.becomes(
    "8: store exp <- input",
    "2: window neg over exp <- exp",
    "kept: exp",
)
def a_part_of_what_is_dear_that_reads_its_place() -> Outputs:
    y = g.op("exp", g.op("exp", V))
    return [g.update(y, g.op("neg", g.part(y, 3, 5)), 3, 1)]


@STEPS.becomes(
    "1000x1000: store update <- input update",
    "one: window input <- input",
    "20x30: window neg over update <- update",
    "kept: update",
)
def a_part_of_a_large_matrix_that_reads_its_place() -> Outputs:
    y = g.update(g.given(1000, 1000), g.given(1), 0, 1)
    rows = g.view(y, (20, 30), (300, ((0, 1),)), (0, ((1, 1),)))
    return [g.update(y, g.op("neg", rows), 300_000, 1000, 1)]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "8: store update, store neg <- update update",
    "8: window input <- input",
    "kept: update",
)
def all_of_what_is_read_elsewhere() -> Outputs:
    y = written()
    return [g.update(y, g.given(8), 0, 1), g.op("neg", y)]


@STEPS.becomes(
    "4x4: store update <- input update",
    "2: window input <- input",
    "4x4: store update <- update update",
    "4x4: window update <- update",
    "kept: update",
)
def what_is_written_over_itself_transposed() -> Outputs:
    y = g.update(S, g.given(2), 3, 1)
    return [g.update(y, y, 0, 1, 4)]


@STEPS.becomes(
    "8: window exp, window input, window exp <- input",
)
def parts_side_by_side() -> Outputs:
    y = g.op("exp", V)
    return [g.join(0, y, V, y)]


@STEPS.becomes(
    "3x4 inner [1] blocked [0]: sum1 input, sum0 input, window reduce <- input reduce",
    "4: window reduce <- reduce",
    "kept: reduce, reduce",
)
def sums_side_by_side() -> Outputs:
    return [g.join(0, g.reduce("sum", X, 1), g.reduce("sum", X, 0))]
