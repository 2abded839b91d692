"""A simplified graph, after a look at whether it is valid and has the same bits."""

from __future__ import annotations

from collections.abc import Iterable

from numgrad.jit.ir.graph import Graph
from numgrad.jit.ir.validate import validate
from numgrad.jit.passes.simplify import simplify
from tests.jit.evaluate import evaluate, same_bits
from tests.jit.small_graphs import arguments_of

__all__ = ["simplified_graph"]


def simplified_graph(graph: Graph, seeds: Iterable[int] = (1,)) -> Graph:
    """Simplify; arguments are drawn by each seed to compare the bits of what both give."""
    validate(graph)
    simple = simplify(graph)
    validate(simple)
    for seed in seeds:
        numbers = arguments_of(graph, seed)
        for one, other in zip(evaluate(graph, numbers), evaluate(simple, numbers), strict=True):
            assert same_bits(one, other)
    return simple
