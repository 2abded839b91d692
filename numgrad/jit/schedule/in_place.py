"""Updates that write over their operand: nobody needs what it was any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.passes.views import flat

__all__ = ["users_of", "writes_in_place"]

Users = Mapping[Value, Sequence["Value | None"]]


def users_of(graph: Graph) -> dict[Value, list[Value | None]]:
    """Return what takes each value; None is whoever gets an output."""
    found: dict[Value, list[Value | None]] = {}
    for value in graph.values():
        for operand in value.operands:
            found.setdefault(operand, []).append(value)
    for output in graph.outputs:
        found.setdefault(output, []).append(None)
    return found


def writes_in_place(update: Value, users: Users, kept: Set[Value]) -> bool:
    """Whether what an update or scatter is done to is read by nobody else, or by its part alone.

    Such a part is computed where it is written, element by element, of elements that are read at
    that very place: ``out[2:5] += y``.
    """
    base, part, *_ = update.operands
    if update.operation != "update":
        return len(users[base]) == 1
    if part is base:  # whose elements may go to other places, as those of a transpose
        return False
    waiting = []
    for user in users[base]:
        if user is not update:
            if user is None or not _is_same_window(user, update):
                return False
            waiting.append(user)
    while waiting:
        for user in users[waiting.pop()]:
            if user is update:
                continue
            if user is None or not user.is_elementwise or user in kept:
                return False
            waiting.append(user)
    return True


def _is_same_window(value: Value, update: Value) -> bool:
    """Whether a value is a view of the very elements that an update writes, in their order."""
    base, part = update.operands
    if value.operation != "view" or value.shape != part.shape:
        return False
    offset, strides = flat(base.shape, value.shape, value.attributes["maps"])
    written = update.attributes["strides"]
    return offset == update.attributes["offset"] and all(
        n == 1 or one == other for n, one, other in zip(part.shape, strides, written, strict=True)
    )
