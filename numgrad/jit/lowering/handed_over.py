"""What a loop keeps for a later one: as little as is worth it, the rest is computed again.

The backward half of a gradient reads row by row what the forward half stacks. A loop that was
traced as such computes each turn again from the carries; one found in a plain ``for`` reads every
value of the forward half that it needs. Neither is best: a product of matrices had better be
stacked than computed twice, a sum of two numbers that are there anyway had better not.

So both bodies are put together as one graph, in which what the reader computes or reads of the
turns of the first loop is seen to be the same. Which of these values are stacked, and which the
reader computes, is a minimum cut. Either way the same operations give the same bits.

Loops in these bodies are operations like others: what an inner loop stacks for its own gradient is
stacked once more, of all turns, or that loop runs again in each turn of the reader, and its stacks
take the memory of one turn. The innermost loops decide first, so this goes to any depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from numgrad.jit.ir.cost import flops_of
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.loops import Loop, change_bodies
from numgrad.jit.lowering.min_cut import ENDLESS, cheapest_supply
from numgrad.jit.lowering.paired_loops import Pair, pairs

__all__ = ["with_less_kept"]

# What it takes to write an element of a stack and to read it, where an addition is 1.
WRITTEN, READ = 5, 3
GAIN = 0.8  # of what it takes as it is, below which it is worth another body
NEVER = 1e12  # what it takes to hand over what can't be, but can be computed
# Bytes of all turns' stacks of an inner loop, beyond which they are computed again in each turn.
MOST_NESTED = 1 << 28
UNKNOWN_TURNS = 16  # of a loop that may have any number, as far as costs go
OPAQUE = 1_000  # what a call that is left to others takes within a loop


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
    nested = _nested_stacks(pair)
    computing = {value: _computing(value) for value in pair.shared}
    keeping = {value: _keeping(pair, value, computing[value]) for value in pair.shared}
    keeping |= dict.fromkeys(nested, NEVER)
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


def _nested_stacks(pair: Pair) -> list[Value]:
    """Return what inner loops stack, and parts of it, that can't be stacked again, or should not.

    These are stacks of turns that nobody has counted yet, which are too large, or which a
    checkpoint says are not to be kept.
    """
    growing: set[Value] = set()
    stacks: set[Value] = set()
    for value in pair.shared:
        if value.operation == "item":
            loop, position = value.operands[0].attributes["primitive"], value.attributes["position"]
            if isinstance(loop, Loop) and position >= loop.carries:
                (growing if loop.grows(position) else stacks).add(value)
        elif not growing.isdisjoint(value.operands):
            growing |= {value} if value.operation != "call" else set()
        elif value.operation not in ("call", "reduce") and not stacks.isdisjoint(value.operands):
            stacks.add(value)
    most = 0 if pair.first.divided else MOST_NESTED // (pair.first.length or 1)
    large = [each for each in stacks if prod(each.shape) * each.dtype.itemsize > most]
    return [*growing, *large]


def _computing(value: Value) -> float:
    """Return what it takes to compute a value."""
    if value.operation == "call" and isinstance(value.attributes["primitive"], Loop):
        return _running(value.attributes["primitive"])
    if value.operation in ("input", "call"):
        return ENDLESS
    if value.operation == "item":
        return 0 if isinstance(value.operands[0].attributes["primitive"], Loop) else ENDLESS
    if value.operation in ("update", "join", "scatter", "gather", "check"):
        return prod(value.shape)
    return flops_of(value)


def _running(loop: Loop) -> float:
    """Return what it takes to run a loop."""
    turn = sum(
        OPAQUE if cost == ENDLESS else cost
        for value in loop.graph.values()
        if value.operation != "input"
        for cost in [_computing(value)]
    )
    handed_on = sum(prod(value.shape) for value in loop.graph.outputs)
    return (turn + handed_on) * (loop.length or UNKNOWN_TURNS)


def _keeping(pair: Pair, value: Value, computing: float) -> float:
    """Return what it takes to hand a value over."""
    if value.operation == "call":
        return NEVER if computing < ENDLESS else ENDLESS
    if value in pair.invariant:
        return 0
    size = prod(value.shape) * max(1, value.dtype.itemsize / 8)
    if value in pair.written:
        return READ * size
    own = 0 if value in pair.live or computing == ENDLESS else computing
    return own + (READ + WRITTEN) * size
