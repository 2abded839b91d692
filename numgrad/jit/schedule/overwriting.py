"""Scatters that write over an input of the graph, behind all who read it.

What a loop hands on is its own: a turn that puts few elements into a large array need not copy it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from numgrad.jit.ir.graph import Graph, Value

__all__ = ["in_order", "overwriting"]


def overwriting(graph: Graph, own: Collection[Value]) -> dict[Value, list[Value]]:
    """Return the scatters that may write over what they are given, and who must read it before.

    Parameters
    ----------
    graph : Graph
    own : collection of Value
        Inputs that may be written over.
    """
    found: dict[Value, list[Value]] = {}
    if not own:
        return found
    values = graph.values()
    users: dict[Value, list[Value]] = {}
    for value in values:
        for operand in dict.fromkeys(value.operands):
            users.setdefault(operand, []).append(value)
    for value in values:
        if value.operation != "scatter" or value.operands[1:].count(value.operands[0]):
            continue
        base = value.operands[0]
        if base in graph.outputs or not (base in own or base in found):
            continue
        readers = [each for each in users[base] if each is not value]
        if in_order(values, {**found, value: readers}) is not None:
            found[value] = readers
    return found


def in_order(
    values: Sequence[Value], before: Mapping[Value, Collection[Value]]
) -> list[Value] | None:
    """Return values, operands first, and those of `before` behind who has to come before them.

    None if they go in circles.
    """
    if not before:
        return list(values)
    done: dict[Value, bool] = {}  # False while what it needs is being done
    found: list[Value] = []
    for root in values:
        stack = [root]
        while stack:
            value = stack[-1]
            if done.get(value):
                stack.pop()
                continue
            needs = (*value.operands, *before.get(value, ()))
            open_ = [each for each in needs if not done.get(each)]
            if not open_:
                done[value] = True
                found.append(stack.pop())
                continue
            done[value] = False
            if any(each in done for each in open_):  # which waits for this one
                return None
            stack += open_
    return found
