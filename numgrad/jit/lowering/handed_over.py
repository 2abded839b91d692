"""What a loop keeps for a later one: as little as is worth it, the rest is computed again.

The backward half of a gradient reads row by row what the forward half stacks. A loop that was
traced as such computes each turn again from the carries; one found in a plain ``for`` reads every
value of the forward half that it needs. Neither is best: a product of matrices had better be
stacked than computed twice, a sum of two numbers that are there anyway had better not.

So both bodies are put together as one graph, in which what the reader computes or reads of the
turns of the first loop is seen to be the same. Which of these values are stacked, and which the
reader computes, is a minimum cut. Either way the same operations give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from numgrad.jit.ir.cost import flops_of
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.loops import change_bodies
from numgrad.jit.lowering.min_cut import ENDLESS, cheapest_supply
from numgrad.jit.lowering.paired_loops import Pair, pairs

__all__ = ["with_less_kept"]

# What it takes to write an element of a stack and to read it, where an addition is 1.
WRITTEN, READ = 5, 3
GAIN = 0.8  # of what it takes as it is, below which it is worth another body


def with_less_kept(graph: Graph) -> Graph:
    """Return the graph with loops that hand over to each other what is worth it."""
    graph = change_bodies(graph, with_less_kept)
    found = pairs(graph)
    for k, (maker, reader) in enumerate(found):
        pair = Pair(graph, maker, reader)
        kept = _worth_keeping(pair)
        if kept is None:
            continue
        graph, new = pair.handing_over(kept)
        for later in range(k + 1, len(found)):
            one, other = found[later]
            found[later] = new.get(one, one), new.get(other, other)
    return graph


def _worth_keeping(pair: Pair) -> set[Value] | None:
    """Return what the reader had better be given of the maker's turns; None if it is that."""
    needed = pair.needed
    if not needed or not pair.rows:
        return None
    if any(value.operation == "call" for value in needed):  # its results are what can be kept
        return None
    computing = {value: _computing(value) for value in pair.shared}
    keeping = {value: _keeping(pair, value, computing[value]) for value in pair.shared}
    operands = {
        value: [operand for operand in value.operands if operand in pair.shared]
        for value in pair.shared
    }
    kept, computed = cheapest_supply(needed, operands, keeping, computing)
    before = _total(pair.given, _computed_of(needed, pair.given, operands), keeping, computing)
    return kept if _total(kept, computed, keeping, computing) < GAIN * before else None


def _total(
    kept: Iterable[Value],
    computed: Iterable[Value],
    keeping: Mapping[Value, float],
    computing: Mapping[Value, float],
) -> float:
    return sum(keeping[value] for value in kept) + sum(computing[value] for value in computed)


def _computed_of(
    needed: Iterable[Value], given: set[Value], operands: Mapping[Value, list[Value]]
) -> set[Value]:
    """Return what is computed if that much is given."""
    found: set[Value] = set()
    waiting = list(needed)
    while waiting:
        value = waiting.pop()
        if value not in found and value not in given and operands[value]:
            found.add(value)
            waiting += operands[value]
    return found


def _computing(value: Value) -> float:
    """Return what it takes to compute a value."""
    if value.operation in ("input", "call"):
        return ENDLESS
    if value.operation in ("update", "join", "scatter", "gather", "check"):
        return prod(value.shape)
    return flops_of(value)


def _keeping(pair: Pair, value: Value, computing: float) -> float:
    """Return what it takes to hand a value over."""
    if value.operation == "call":
        return ENDLESS
    if value in pair.invariant:
        return 0
    size = prod(value.shape) * max(1, value.dtype.itemsize / 8)
    if value in pair.written:
        return READ * size
    own = 0 if value in pair.live or computing == ENDLESS else computing
    return own + (READ + WRITTEN) * size
