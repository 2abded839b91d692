"""Drop what loops compute and nobody needs: results, carries, rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.bodies import fresh_input, rebuilt, replaced

__all__ = ["needed_loops"]


def needed_loops(graph: Graph) -> Graph:
    """Return the graph with loops that compute no more than what is needed.

    A result that nobody reads goes, and so does a carry that no needed result depends on. A carry
    that no turn changes is an operand like others: it is the same in all turns.
    """
    while True:
        smaller = _without_unneeded(graph)
        if smaller is None:
            return graph
        graph = smaller  # in which what led to an operand may not be needed any more


def _without_unneeded(graph: Graph) -> Graph | None:
    values = graph.values()
    read: dict[Value, set[int]] = {}
    for value in values:
        if value.operation == "item" and value.operands[0].attributes["primitive"].name == "loop":
            read.setdefault(value.operands[0], set()).add(value.attributes["position"])
    new: dict[Value, Value] = {}
    calls: dict[Value, tuple[Value, dict[int, int], dict[int, Value]]] = {}
    for value in values:
        if value in read:
            found = _without_unread(replaced(value, new), read[value])
            if found is not None:
                calls[value] = found
                new[value] = found[0]
                continue
        if value.operation == "item" and value.operands[0] in calls:
            call, positions, known = calls[value.operands[0]]
            position = value.attributes["position"]
            if position in known:
                new[value] = known[position]
                continue
            new[value] = Value(
                "item",
                (call,),
                value.shape,
                value.dtype,
                value.origin,
                position=positions[position],
            )
        elif any(operand in new for operand in value.operands):
            new[value] = replaced(value, new)
    if not new:
        return None
    return Graph(graph.inputs, [new.get(output, output) for output in graph.outputs])


def _without_unread(
    call: Value, read: set[int]
) -> tuple[Value, dict[int, int], dict[int, Value]] | None:
    """Return a call of a loop without what is not needed; None if all of it is.

    With it comes for results that are left their new positions, and for others what they are.
    """
    loop = call.attributes["primitive"]
    body = loop.graph
    fixed = [k for k in range(loop.stops, loop.carries) if body.outputs[k] is body.inputs[k]]
    live, needed = _live(loop, (read | {0} if loop.stops else read) - set(fixed), fixed)
    if len(live) == len(body.outputs) and len(needed) + loop.counted == len(body.inputs):
        return None
    carries = [k for k in needed if k < loop.carries and k not in fixed]
    rows = [k for k in needed if loop.carries <= k < loop.carries + loop.rows]
    count = [loop.fixed - 1] * loop.counted
    rest = [*count, *(k for k in needed if k in fixed or k >= loop.fixed)]
    chosen = [*carries, *rows, *rest]
    inputs = [fresh_input(body.inputs[k], position) for position, k in enumerate(chosen)]
    new = {body.inputs[k]: value for k, value in zip(chosen, inputs, strict=True)}
    outputs = rebuilt(body.values(), new, [body.outputs[k] for k in live])
    smaller = loop.with_body(Graph(inputs, outputs), len(carries), len(rows))
    operands = [call.operands[k] for k in chosen]
    attributes = {**call.attributes, "primitive": smaller}
    found = Value("call", operands, call.shape, call.dtype, call.origin, **attributes)
    positions = {k: position for position, k in enumerate(live)}
    return found, positions, {k: call.operands[k] for k in fixed}


def _live(loop: Any, read: set[int], fixed: Iterable[int]) -> tuple[list[int], list[int]]:
    """Return which outputs and which inputs of a body are needed for some results."""
    body = loop.graph
    position = {value: k for k, value in enumerate(body.inputs)}
    live = set(read)
    while True:
        reached = Graph([], [body.outputs[k] for k in sorted(live)]).values()
        needed = {position[value] for value in reached if value in position}
        more = {k for k in needed if k < loop.carries and k not in fixed} - live
        if not more:
            needed |= {k for k in live if k < loop.carries}
            return sorted(live), sorted(needed)
        live |= more
