"""What a turn of a loop computes for the next one: common subexpressions across turns, handed on.

``while_loop(lambda x: f(x) > 1e-9, lambda x: x - f(x) / slope(x), start)`` asks at the end of a
turn for `f` of what it hands on, and computes that again at the beginning of the next. A value that
depends on carries alone, and that is there of what these become as well, is a carry itself. The
first turn is given it from outside. Either way the same operations give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.cost import flops_of
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.bodies import fresh_input, rebuilt, replaced
from numgrad.jit.lowering.loops import Loop, change_bodies

__all__ = ["with_carried_values"]

WORTH = 10  # floating point operations for each element, from which on it is worth handing on
_FREE = ("view", "reshape")


def with_carried_values(graph: Graph) -> Graph:
    """Return the graph with loops that hand on what they have computed of the next turn."""
    graph = change_bodies(graph, with_carried_values)
    new: dict[Value, Value] = {}
    more: dict[Value, int] = {}  # how many carries a call has got
    for value in graph.values():
        if value.operation == "item" and value.operands[0] in more:
            call, position = value.operands[0], value.attributes["position"]
            if position >= call.attributes["primitive"].carries:
                position += more[call]
            new[value] = Value(
                "item", (new[call],), value.shape, value.dtype, value.origin, position=position
            )
            continue
        fresh = replaced(value, new) if any(each in new for each in value.operands) else value
        if isinstance(value.attributes.get("primitive"), Loop):
            found = _handing_on(fresh)
            if found is not None:
                fresh, more[value] = found
        if fresh is not value:
            new[value] = fresh
    if not new:
        return graph
    return Graph(graph.inputs, [new.get(output, output) for output in graph.outputs])


def _handing_on(call: Value) -> tuple[Value, int] | None:
    """Return a call of a loop that hands on more, and how much; None if there is nothing."""
    loop: Loop = call.attributes["primitive"]
    body = loop.graph
    values = body.values()
    after = _after_a_turn(loop, values)
    chosen = _worth_handing_on(loop, values, after)
    if not chosen:
        return None
    inputs = [fresh_input(value, 0) for value in chosen]
    outputs = rebuilt(values, dict(zip(chosen, inputs, strict=True)), body.outputs)
    # What the next turn is given is computed of this one's, which is replaced as well.
    new = dict(zip(chosen, inputs, strict=True))
    handed_on = rebuilt(values, new, [after[value] for value in chosen])
    carries = loop.carries
    own, rest = body.inputs[:carries], body.inputs[carries:]
    graph = Graph([*own, *inputs, *rest], [*outputs[:carries], *handed_on, *outputs[carries:]])
    longer = loop.with_body(graph, carries + len(chosen), loop.rows)
    known = dict(zip(body.inputs, call.operands, strict=True))
    first = rebuilt(values, known, chosen)
    operands = [*call.operands[:carries], *first, *call.operands[carries:]]
    attributes = {**call.attributes, "primitive": longer}
    fresh = Value("call", operands, call.shape, call.dtype, call.origin, **attributes)
    return fresh, len(chosen)


def _after_a_turn(loop: Loop, values: Iterable[Value]) -> dict[Value, Value]:
    """Return for values of a body what they are in the next turn, if that is in the body, too.

    Of these are those alone that are computed of carries, and of what is the same in all turns.
    """
    body = loop.graph
    values = list(values)
    known: dict[Any, Value] = {}
    for value in values:
        known.setdefault(_key(value, value.operands), value)
    after = dict(zip(body.inputs, body.outputs[: loop.carries], strict=False))
    same = set(body.inputs[loop.fixed - loop.counted :])
    found: dict[Value, Value] = {}
    for value in values:
        if value in after or value in body.inputs:
            continue
        if value.operation in ("constant", "array"):
            same.add(value)
            continue
        if not (value.is_elementwise or value.operation in ("reduce", *_FREE)):
            continue
        if all(operand in same for operand in value.operands):
            same.add(value)
            continue
        if not all(operand in same or operand in after for operand in value.operands):
            continue
        operands = tuple([after.get(operand, operand) for operand in value.operands])
        next_one = known.get(_key(value, operands))
        if next_one is None and value.is_elementwise:
            mirrored = SCALAR_OPS[value.operation].mirrored
            next_one = known.get(_key(value, operands[::-1], mirrored)) if mirrored else None
        if next_one is not None and next_one is not value:
            after[value] = found[value] = next_one
    return found


def _key(value: Value, operands: tuple[Value, ...], operation: str | None = None) -> Any:
    attributes = tuple(sorted(value.attributes.items()))
    if value.operation in ("constant", "array", "input", "call"):
        return id(value)
    return operation or value.operation, value.shape, value.dtype, operands, attributes


def _worth_handing_on(
    loop: Loop, values: Iterable[Value], after: dict[Value, Value]
) -> list[Value]:
    """Return what others take of the values that are there of the next turn, if it costs much."""
    taken = {each for value in values if value not in after for each in value.operands}
    taken |= set(loop.graph.outputs)
    found = []
    for value in values:
        if value not in after or value not in taken:
            continue
        cone: dict[Value, None] = {}
        waiting = [value]
        while waiting:
            each = waiting.pop()
            if each in after and each not in cone:
                cone[each] = None
                waiting += each.operands
        cost = sum(flops_of(each) for each in cone)
        if value.operation not in _FREE and cost >= WORTH * max(1, prod(value.shape)):
            found.append(value)
    return found
