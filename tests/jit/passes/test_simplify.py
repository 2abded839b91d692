"""What holds for every graph: bits, validity, idempotence; identities have their own files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numgrad.jit.ir.cost import cost
from numgrad.jit.ir.graph import Graph
from numgrad.jit.ir.validate import validate
from numgrad.jit.passes.simplify import simplify
from tests.jit.evaluate import evaluate, same_bits
from tests.jit.small_graphs import arguments_of, graphs


@given(graphs(), st.integers(0, 1 << 16))
def test_bits_are_the_same(graph: Graph, seed: int) -> None:
    validate(graph)
    simple = simplify(graph)
    validate(simple)
    arguments = arguments_of(graph, seed)
    before, after = evaluate(graph, arguments), evaluate(simple, arguments)
    for one, other in zip(before, after, strict=True):
        assert same_bits(one, other), f"{graph}\n{simple}\n{one}\n{other}"


@given(graphs())
def test_simplifying_again_changes_nothing(graph: Graph) -> None:
    once = simplify(graph)
    assert str(simplify(once)) == str(once), str(graph)


@given(graphs())
def test_it_costs_no_more(graph: Graph) -> None:
    before, after = cost(graph), cost(simplify(graph))
    assert after.flops <= before.flops, f"{graph}\n{simplify(graph)}"
