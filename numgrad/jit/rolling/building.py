"""Put a loop into the place of turns that are alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numgrad.jit.ir.constructors import apply, broadcast, constant
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.bodies import cut_out
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.opaque_calls import results_of
from numgrad.jit.rolling.completion import Unlike
from numgrad.jit.rolling.joined_rows import Places, joined_rows
from numgrad.jit.rolling.rows import stack, step
from numgrad.jit.rolling.tokens import followed_back, rebased, row_of
from numgrad.jit.rolling.turns import Carry, Turns

__all__ = ["with_loop"]


def with_loop(turns: Turns, change: Callable[[Graph], Graph]) -> Graph:
    """Return the graph with a loop in the place of turns, of which is known what they take.

    Parameters
    ----------
    turns : Turns
    change : callable
        Is done to the body while it still is as it was recorded.

    Raises
    ------
    Unlike
        If what is needed of them can't be had from a loop.
    """
    trace = turns.trace
    first, count = turns.run.first, turns.count
    used = dict(turns.used)
    filled = {window.final: window for window in turns.windows.values()}
    written = {made: used.pop(made) for made in filled if made in used}
    if any(made not in turns.body for made in used):
        raise Unlike
    handed = [*used, *(carry.made for carry in turns.carries)]
    if any(turns.body[made].operation == "call" for made in handed):
        raise Unlike  # its results are had by other operations, which are not of the same turn
    if any(0 in turns.body[made].shape for made in handed) or any(
        0 in value.shape for value in turns.rows.values()
    ):
        raise Unlike  # as many rows as a loop has turns, which is not known
    before = constant(0, np.dtype(bool)).number
    reverse = _is_reverse(turns)
    last = {made for made, when in used.items() if when == {count - 1}}
    stacked = [made for made in used if made not in last]
    for made in last - {carry.made for carry in turns.carries}:  # of a carry the last is known
        like = turns.body[made]
        turns.carry(Carry(made, 1, (broadcast(constant(0, like.dtype), like.shape),)))
    own, nexts, inits, finals = _carried(turns)
    # What the first turn begins with may be needed beside what the turns make of it.
    carried = {
        carry.made: (value, carry.inits[0])
        for carry, value in turns.carries.items()
        if carry.back == 1 and carry.made in stacked and carry not in turns.without_zeros
    }
    given = [*nexts, *(turns.body[made] for made in stacked)]
    given += [value for value, _ in carried.values()]
    parts = {made: k for k, made in enumerate(turns.windows, len(given))}
    given += turns.parts.values()
    graph, captured = cut_out([*own, *turns.rows.values()], given)
    loop = Loop(change(graph), len(nexts), len(turns.rows), count, reverse)
    operands = [*inits, *(stack(row, reverse) for row in turns.rows), *captured]
    origin = trace.operations[first].value.origin
    results = results_of(loop, operands, loop.metas(), origin)
    for k, (made, (_, init)) in enumerate(carried.items(), len(nexts) + len(stacked)):
        if not reverse:
            whole = results[len(nexts) + stacked.index(made)]
            trace.handed_on[whole] = results[k], init
    new: dict[Value, Value] = {}
    rows: dict[Value, tuple[Value, int]] = {}
    for made in written:
        window = filled[made]
        zeros = turns.columns[window.made][0].value.operands[0]
        array = window.filled(results[parts[window.made]], reverse, zeros)
        new[turns.completed.value(count - 1, made)] = array
    fresh = []
    number = trace.operations[first].value.number
    for value in Graph([], [*results, *new.values()]).values():
        if value.number > before:
            fresh.append(value)
        elif turns.completed.place(value) is not None:
            raise Unlike  # something outside is done with results of turns, and taken by others
        elif value in trace.place:  # it is taken, and recorded between the turns, maybe
            number = max(number, value.number)
    for value in fresh:  # in the order of the trace they are where the turns were
        value.number = number
    for made, when in used.items():
        for turn in when:
            value = turns.completed.value(turn, made)
            if made in last:
                new[value] = results[finals[made]]
            else:
                whole = results[len(nexts) + stacked.index(made)]
                row = count - 1 - turn if reverse else turn
                rows[value] = whole, row
                new[value] = row_of(whole, row)
    return _rebuilt(turns, new, rows, number)


def _carried(
    turns: Turns,
) -> tuple[list[Value], list[Value], list[Value], dict[int, int]]:
    """Return a body's inputs for carries, what they are next, and what they begin with.

    And which of them an operation's last result is.
    """
    own: list[Value] = []
    nexts: list[Value] = []
    inits: list[Value] = []
    finals: dict[int, int] = {}
    for carry, stand_in in turns.carries.items():
        finals.setdefault(carry.made, len(own))
        # The value of the last turn, of the one before ...: the oldest one is what is taken.
        chain = [
            Value("input", (), stand_in.shape, stand_in.dtype, position=0)
            for _ in range(carry.back - 1)
        ]
        own += [*chain, stand_in]
        nexts += [turns.body[carry.made], *chain]
        is_clean = carry not in turns.without_zeros
        inits += reversed(carry.inits) if is_clean else map(_without_negative_zeros, carry.inits)
    for counter in turns.positions.counters.values():
        own.append(counter.value)
        dtype = counter.value.dtype
        nexts.append(apply("add", counter.value, constant(counter.step, dtype)))
        inits.append(constant(counter.first, dtype))
    return own, nexts, inits, finals


def _without_negative_zeros(value: Value) -> Value:
    if value.dtype.kind not in "fc":
        return value
    return apply("add", value, broadcast(constant(0, value.dtype), value.shape))


def _is_reverse(turns: Turns) -> bool:
    """Whether more rows are taken from the last to the first."""
    steps = [step(row) for row in turns.rows]
    return sum(each < 0 for each in steps) > sum(each > 0 for each in steps)


def _rebuilt(turns: Turns, new: dict[Value, Value], rows: Places, number: int) -> Graph:
    """Return the graph with other values for some, which come after a number.

    Some of these are `rows` of what a loop stacks: of which, and which one.
    """
    graph = turns.trace.graph

    def entered(value: Value) -> Value:
        path, base = followed_back(value)
        found = new.get(base, base)
        return value if found is base else rebased(path, found)

    for operation in turns.outside():
        value = operation.value
        if value.operation == "join":
            fresh = joined_rows(value, rows, graph.unread, turns.trace.handed_on, entered)
            if fresh is not None:
                if fresh.operation == "join":  # else it was there before
                    fresh.number = max(value.number, number)
                new[value] = fresh
                continue
        operands = [entered(operand) for operand in value.operands]
        if any(a is not b for a, b in zip(operands, value.operands, strict=True)):
            fresh = Value(
                value.operation,
                operands,
                value.shape,
                value.dtype,
                value.origin,
                **value.attributes,
            )
            fresh.number = max(value.number, number)
            new[value] = fresh
    outputs = [entered(output) for output in graph.outputs]
    return Graph(graph.inputs, outputs, graph.unread)
