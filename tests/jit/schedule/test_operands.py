"""What products, calls and gathers read: views of memory, or what is stored for them: a table."""

from __future__ import annotations

import pytest

from tests.jit import graphs as g
from tests.jit.schedule.steps import (
    Outputs,
    Table,
    call,
    chain,
    check_steps,
    item,
    positions,
    product,
    taken,
)

X, T, S, V = g.given(3, 4), g.given(3, 4, 5), g.given(4, 4), g.given(8)
STEPS = Table()


@pytest.mark.parametrize("name", STEPS)
def test_operands_are_views_or_stored(name: str) -> None:
    check_steps(*STEPS[name])


@STEPS.becomes(
    "3x4: store exp <- input",
    "matmul of exp[0; 4 1], input[0; 1 4]",
    "kept: exp",
)
def a_product_of_what_is_made() -> Outputs:
    return [product(g.op("exp", X), g.transpose(X))]


@STEPS.becomes(
    "4x4: store exp <- input",
    "matmul of input[4; 4 1], exp[0; 4 1]",
    "kept: exp",
)
def a_product_of_a_part() -> Outputs:
    return [product(g.part(S, 1, 3), g.op("exp", S))]


@STEPS.becomes(
    "matmul of input[0; 3 1], input[0; 20 1]",
)
def a_product_of_other_shapes() -> Outputs:
    return [product(g.reshape(X, 4, 3), g.reshape(T, 3, 20))]


@STEPS.becomes(
    "3x4x5: store exp <- input",
    "matmul of input[0; 5 1], input[0; 2 1]",
)
def a_product_of_what_is_merged() -> Outputs:
    return [g.op("exp", T), product(g.reshape(T, 12, 5), g.given(5, 2))]


@STEPS.becomes(
    "2x3x4x5: store exp <- input",
    "matmul of input[0; 5 1], input[0; 2 1]",
)
def a_product_of_three_merged() -> Outputs:
    F = g.given(2, 3, 4, 5)
    return [g.op("exp", F), product(g.reshape(F, 24, 5), g.given(5, 2))]


@STEPS.becomes(
    "3x4x5: store exp <- input",
    "matmul of input[0; 1 5], input[0; 2 1]",
)
def a_product_of_what_is_merged_and_turned() -> Outputs:
    return [g.op("exp", T), product(g.transpose(g.reshape(T, 12, 5)), g.given(12, 2))]


@STEPS.becomes(
    "3x4x5: store exp, store reshape <- input",
    "matmul of reshape[5; 5 1], input[0; 2 1]",
    "kept: reshape",
)
def a_product_of_a_part_of_what_is_merged() -> Outputs:
    return [g.op("exp", T), product(g.part(g.reshape(T, 12, 5), 1, 5), g.given(5, 2))]


@STEPS.becomes(
    "5x3x4: store view <- input",
    "matmul of view[0; 2 1], input[0; 2 1]",
    "kept: view",
)
def a_product_of_what_lies_otherwise_when_merged() -> Outputs:
    y = g.transpose(g.reshape(T, 12, 5))
    return [product(g.reshape(y, 30, 2), g.given(2, 2))]


@STEPS.becomes(
    "4x3x5: store reshape <- input",
    "matmul of reshape[0; 5 1], input[0; 2 1]",
    "kept: reshape",
)
def a_product_of_dims_that_are_swapped_and_merged() -> Outputs:
    y = g.view(T, (4, 3, 5), (0, ((1, 1),)), (0, ((0, 1),)), (0, ((2, 1),)))
    return [product(g.reshape(y, 12, 5), g.given(5, 2))]


@STEPS.becomes(
    "matmul of input[39; 20 -10], input[0; 2 1]",
)
def a_product_of_steps() -> Outputs:
    y = g.view(T, (2, 2), (1, ((0, 1),)), (3, ((1, -2),)), (4, ()))
    return [product(y, g.given(2, 2))]


@STEPS.becomes(
    "2x3: store view <- ",
    "matmul of view[0; 3 1], input[0; 2 1]",
    "kept: view",
)
def a_product_of_a_number() -> Outputs:
    return [product(g.view(g.number(2.0), (2, 3)), g.given(3, 2))]


@STEPS.becomes(
    "8: store exp <- input",
    "3: store gather <- exp input",
    "kept: exp",
)
def elements_of_what_is_made() -> Outputs:
    return [taken(g.op("exp", V), positions(3))]


@STEPS.becomes(
    "3: store gather <- input input",
)
def elements_of_a_part() -> Outputs:
    return [taken(g.part(V, 1, 5), positions(3))]


@STEPS.becomes(
    "4x3: store reshape <- input",
    "3: store gather <- reshape input",
    "kept: reshape",
)
def elements_of_what_is_merged_otherwise() -> Outputs:
    return [taken(g.reshape(g.transpose(X), 12), positions(3))]


@STEPS.becomes(
    "3: store gather <- input input",
)
def elements_at_places_that_are_made() -> Outputs:
    return [taken(V, g.op("abs", positions(3)))]


@STEPS.becomes(
    "4: store gather <- input input input input",
    "3: store add <- input gather gather",
    "kept: gather",
)
def elements_at_places_that_are_dear() -> Outputs:
    at = taken(positions(8), taken(positions(8), taken(positions(8), positions(4))))
    return [g.op("add", g.part(taken(V, at), 0, 3), g.part(taken(V, at), 1, 4))]


@STEPS.becomes(
    "4x4: store exp <- input",
    "call of exp[0; 1 4], input[0; 1]",
    "3: store neg <- item",
    "kept: exp, item",
)
def a_call() -> Outputs:
    return [g.op("neg", item(call(g.transpose(g.op("exp", S)), V), 3))]


@STEPS.becomes(
    "call of input[0; 1]",
    "call of item[0; 1]",
    "kept: item",
)
def a_call_of_what_another_gave() -> Outputs:
    return [item(call(item(call(V), 8)), 3)]


@STEPS.becomes(
    "matmul of input[0; 4 1], input[0; 4 1]",
    "4x4: store neg, store exp <- matmul",
    "3x4: store view <- neg",
    "kept: matmul, neg",
)
def what_is_dear_behind_a_product() -> Outputs:
    y = chain(product(S, S), 9)
    return [g.part(y, 0, 3), g.op("exp", y)]


@STEPS.becomes(
    "3: store gather <- input input",
)
def elements_of_one_row() -> Outputs:
    return [g.gather(X, (3,), [(1, ()), (0, ((1, 1),))], positions(3))]


@STEPS.becomes(
    "3: store gather <- input input input",
)
def elements_at_pairs_of_places() -> Outputs:
    maps = [(0, ((1, 1),)), (0, ((2, 1),))]
    return [g.gather(X, (3,), maps, positions(3), positions(3))]


@STEPS.becomes(
    "3x2: store neg <- input input",
    "4x4: store exp <- input",
    "together: 0 1",
)
def parts_of_rows_at_positions() -> Outputs:
    columns = [(0, ((2, 1),)), (0, ((1, 1),))]
    taken = g.gather(S, (3, 2), columns, positions(3, 2))
    return [g.op("neg", taken), g.op("exp", S)]


@STEPS.becomes(
    "4x4: store scatter <- input scatter",
    "3x2: scatter route <- input input",
    "4x4: store neg <- scatter",
    "kept: scatter",
)
def parts_put_into_parts_of_rows() -> Outputs:
    columns = [(0, ((2, 1),)), (0, ((1, 1),))]
    put = g.scatter(S, g.given(3, 2), columns, positions(3, 2), adds=True)
    return [g.op("neg", put)]
