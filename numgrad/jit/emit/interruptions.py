"""Ctrl-C in compiled loops: after how many turns they ask for it, and what they leave behind.

Python runs the handlers of signals between its own instructions only. So a loop asks by itself, of
so many turns that asking takes no time beside them; one that is over by then does not ask at all.
What the handler raised is raised at the end of the compiled function: until then memory is given
back, which an exception would not do in compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from numgrad.base.tuning import INTERPRETED_WORK, WORK_BETWEEN_SIGNALS
from numgrad.codegen.loops import (
    ONE,
    ZERO,
    Assign,
    Break,
    Do,
    Expression,
    For,
    Function,
    If,
    Name,
    Number,
    Return,
    Statement,
    Store,
    call,
    combine,
    names,
)
from numgrad.jit.emit.native_steps import is_native
from numgrad.jit.ir.cost import flops_of
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.unit_vectors import Rows

__all__ = [
    "ENDED",
    "asks_within",
    "cleared_stacks",
    "in_stretches",
    "interruption",
    "none_ended",
    "raise_ended",
    "raising",
    "turns_between",
]

ENDED = "ended"  # whether a signal ended a loop, which all loops around it go by

_INTERRUPTED, _RAISE = names("numgrad.codegen.signal_runtime", "interrupted", "raise_interruption")


def none_ended(can_end: bool) -> list[Statement]:
    """Return what a function begins with whose loops a signal may end, if they may."""
    return [Assign(ENDED, ZERO)] * can_end


def raise_ended(can_end: bool) -> list[Statement]:
    """Return what raises, in the function that Python or a user's code calls, if one was ended."""
    return [Do(call(_RAISE, Name(ENDED)))] * can_end


def raising(loop: Function) -> list[Function]:
    """Return a loop's function as Python calls it: one that returns whether it was ended raises."""
    if not isinstance(loop.body[-1], Return):
        return [loop]
    turns = Function("turns", loop.parameters, loop.body)
    ended = Assign(ENDED, call(Name(turns.name), *turns.parameters))
    return [turns, Function(loop.name, loop.parameters, [ended, *raise_ended(True)])]


def turns_between(loop: Loop) -> int:
    """Return after how many turns of a loop there is time for a look: a power of two."""
    return 1 << max(0, (WORK_BETWEEN_SIGNALS // _work_of(loop.graph)).bit_length() - 1)


def asks_within(loop: Loop) -> bool:
    """Whether a loop may take long enough to ask."""
    return loop.stops or loop.length is None or loop.length > turns_between(loop)


def _work_of(graph: Graph) -> int:
    """Return about how many operations on numbers a graph takes, at least 1."""
    return max(1, sum(map(_work_of_value, graph.values())))


def _work_of_value(value: Value) -> int:
    if value.operation != "call":
        return max(flops_of(value), 0 if value.operation in _FOUND else prod(value.shape))
    primitive = value.attributes["primitive"]
    if isinstance(primitive, Loop):  # one without a known end asks by itself
        return (primitive.length or 1) * _work_of(primitive.graph)
    if isinstance(primitive, Rows):
        return primitive.count * _work_of(primitive.graph)
    least = 0 if is_native(value) else INTERPRETED_WORK
    return least + sum(prod(each.shape) * max((1, *each.shape[-1:])) for each in value.operands)


_FOUND = frozenset(("input", "array", "constant", "view", "reshape", "item"))


def interruption(cleared: Sequence[Statement], index: str, between: int) -> If:
    """Return what leaves a loop after a signal, asking in some of the turns an index counts."""
    asks = combine("==", combine("%", index, between), between - 1)
    return If(asks, [If(call(_INTERRUPTED), [*cleared, Assign(ENDED, ONE), Break()])])


def in_stretches(
    index: str,
    count: Expression,
    turn: Sequence[Statement],
    cleared: Sequence[Statement],
    between: int,
) -> For:
    """Return a loop of so many turns that asks for signals between stretches of them.

    The turns themselves are what they are in a loop that does not ask.
    """
    following = combine("+", "stretch", between)
    turns = For(index, Name("stretch"), call(Name("min"), following, count), turn)
    asks = If(combine("<", following, count), [If(call(_INTERRUPTED), [Assign(ENDED, ONE)])])
    leave = If(Name(ENDED), [*cleared, Break()])
    return For("stretch", ZERO, count, [turns, asks, leave], Number(between))


def cleared_stacks(stacks: Sequence[tuple[str, Value]], count: Expression) -> list[Statement]:
    """Return what clears stacked whole numbers, where later loops would look for indices.

    Rows of turns that a signal left out were not written.
    """
    found: list[Statement] = []
    for stack, value in stacks:
        if value.dtype.kind in "iu":
            elements = combine("*", count, prod(value.shape))
            found.append(For("at", ZERO, elements, [Store(Name(stack), Name("at"), ZERO)]))
    return found
