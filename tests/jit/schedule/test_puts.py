"""Elements that are put at positions of zeros, of a copy, or of what nobody else reads: a table."""

from __future__ import annotations

import pytest

from numgrad.jit.ir.graph import Value
from tests.jit import graphs as g
from tests.jit.schedule.steps import (
    Outputs,
    Table,
    chain,
    check_steps,
    positions,
    product,
    put,
    taken,
    zeros,
)

X, S, V = g.given(3, 4), g.given(4, 4), g.given(8)
MINE = Value("input", (), (8,), g.F64, own=True)


def written() -> Value:
    return g.update(V, g.given(1), 0, 1)


STEPS = Table()


@pytest.mark.parametrize("name", STEPS)
def test_parts_are_put_behind_all_who_read_what_was_there(name: str) -> None:
    check_steps(*STEPS[name])


@STEPS.becomes(
    "8: store scatter <- scatter",
    "3: scatter route <- input input",
)
def parts_put_into_zeros() -> Outputs:
    return [put(zeros(8), g.given(3))]


@STEPS.becomes(
    "8: store scatter <- input scatter",
    "3: scatter route <- input input",
)
def parts_put_into_a_number_that_is_given() -> Outputs:
    return [put(g.view(g.given(), (8,)), g.given(3))]


@STEPS.becomes(
    "8: store scatter <- scatter",
    "matmul of input[0; 4 1], input[0; 4 1]",
    "4x4: scatter route <- matmul input",
    "kept: matmul",
)
def parts_put_into_zeros_behind_a_product() -> Outputs:
    m = product(S, S)
    return [put(zeros(8), g.reshape(m, 16))]


@STEPS.becomes(
    "8: store scatter <- scatter",
    "8: store scatter <- scatter",
    "3: scatter route, scatter route <- input input input",
)
def parts_put_twice_at_the_same_places() -> Outputs:
    at = positions(3)
    return [put(zeros(8), g.given(3), at), put(zeros(8), g.given(3), at)]


@STEPS.becomes(
    "8: store scatter <- input scatter",
    "3: scatter route <- input input",
)
def parts_put_into_an_input() -> Outputs:
    return [put(V, g.given(3))]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "3: scatter route over update <- input input",
    "kept: update",
)
def parts_put_into_what_is_written() -> Outputs:
    return [put(written(), g.given(3))]


@STEPS.becomes(
    "8: store update <- input update",
    "one: window input <- input",
    "8: store scatter <- update scatter",
    "3: scatter route <- input input",
    "3: store exp <- update",
    "kept: update",
)
def parts_put_into_what_is_written_and_read() -> Outputs:
    y = written()
    return [put(y, g.given(3)), g.op("exp", g.part(y, 0, 3))]


@STEPS.becomes(
    "3: scatter route over input <- input input",
)
def parts_put_into_what_is_owned() -> Outputs:
    return [put(MINE, g.given(3))]


@STEPS.becomes(
    "8: store neg <- input",
    "3: scatter route over input <- input input",
)
def parts_put_into_what_is_owned_and_read() -> Outputs:
    return [put(MINE, g.given(3)), g.op("neg", MINE)]


@STEPS.becomes(
    "3x4: store exp <- input",
    "3: store view, sum0 neg <- input",
    "3: scatter route over input <- input input",
    "kept: view",
)
def parts_put_into_what_is_owned_and_read_late() -> Outputs:
    y = chain(g.part(MINE, 0, 3), 2)
    return [g.op("exp", X), put(MINE, g.given(3)), g.reduce("sum", y)]


@STEPS.becomes(
    "8: store neg <- input",
    "8: scatter route over input <- neg input",
    "kept: neg",
)
def parts_put_into_what_is_owned_and_read_by_them() -> Outputs:
    return [put(MINE, g.op("neg", MINE))]


@STEPS.becomes(
    "8: store scatter <- input scatter",
    "8: scatter route <- input input",
)
def parts_put_into_what_is_owned_and_themselves() -> Outputs:
    return [put(MINE, MINE)]


@STEPS.becomes(
    "3: scatter route over input <- input input",
    "3: scatter route over scatter <- input input",
    "kept: scatter",
)
def parts_put_into_what_is_owned_one_after_another() -> Outputs:
    return [put(put(MINE, g.given(3)), g.given(3))]


@STEPS.becomes(
    "8: store scatter <- input scatter",
    "3: scatter route <- input input",
)
def parts_put_into_what_is_owned_and_wanted() -> Outputs:
    return [MINE, put(MINE, g.given(3))]


@STEPS.becomes(
    "8: store scatter <- input scatter",
    "3: scatter route <- input input",
    "3: scatter route over input <- scatter input",
)
def parts_put_into_what_is_owned_twice() -> Outputs:
    first = put(MINE, g.given(3))
    return [first, put(MINE, g.op("neg", g.part(first, 0, 3)))]


@STEPS.becomes(
    "3: store view <- input",
    "3: store view, scatter route over input <- input input",
    "3: scatter route over input <- view input",
    "kept: view, view",
)
def parts_put_into_what_is_owned_twice_in_circles() -> Outputs:
    other = Value("input", (), (8,), g.F64, own=True)
    first = put(MINE, g.part(other, 0, 3))
    return [first, put(other, g.part(MINE, 0, 3))]


@STEPS.becomes(
    "8x4: store scatter <- scatter",
    "3x4 blocked [0]: sum0 input <- input",
    "3x4: scatter route <- input input",
)
def parts_put_beside_blocks() -> Outputs:
    return [g.reduce("sum", X, 0), put(zeros(8, 4), X)]


@STEPS.becomes(
    "8x4: store scatter <- scatter",
    "3x4: scatter route <- input input",
    "3x4 blocked [0]: sum0 input <- input",
)
def parts_put_in_front_of_blocks() -> Outputs:
    return [put(zeros(8, 4), X), g.reduce("sum", X, 0)]


@STEPS.becomes(
    "8x4: store scatter <- scatter",
    "3x4 inner [1]: sum1 input, scatter route <- input input",
)
def parts_put_beside_rows() -> Outputs:
    return [g.reduce("sum", X, 1), put(zeros(8, 4), X)]


@STEPS.becomes(
    "3: any0 bitwise_or, check input <- input",
    "3: store gather <- input check",
    "kept: reduce, check",
)
def places_that_are_checked() -> Outputs:
    return [taken(V, g.checked(positions(3), 8))]


@STEPS.becomes(
    "one: store add, store bitwise_or, check add <- input",
    "one: store gather <- input check",
    "kept: add, bitwise_or, check",
)
def a_place_that_is_checked() -> Outputs:
    return [taken(V, g.checked(g.op("add", positions(), 1), 8))]


@STEPS.becomes(
    "3: any0 bitwise_or, check input <- input",
    "3: store gather, any0 bitwise_or, check gather <- input check",
    "3: store gather <- input check",
    "kept: reduce, check, gather, reduce, check",
)
def places_that_are_checked_and_made_of_others() -> Outputs:
    at = taken(positions(8), g.checked(positions(3), 8))
    return [taken(V, g.checked(at, 8))]
