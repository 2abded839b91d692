"""Bodies of loops: graphs of their own, cut out of the graph that they were recorded in.

A body is recorded like everything else, for inputs that are not known yet. What depends on those
becomes a graph of its own; what does not is computed before the loop, once, and given to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from numgrad.jit.ir.constructors import broadcast
from numgrad.jit.ir.graph import Graph, Value

__all__ = ["cut_out", "fresh_input", "rebuilt", "replaced", "without_known"]


def fresh_input(like: Value, position: int) -> Value:
    """Return an input of a body, of the shape and dtype of a value."""
    return Value("input", (), like.shape, like.dtype, position=position)


def cut_out(
    own: Sequence[Value], results: Sequence[Value], is_whole: bool = False
) -> tuple[Graph, list[Value]]:
    """Return the graph of what depends on some inputs, and the other values that it takes.

    Parameters
    ----------
    own : sequence of Value
        The inputs that the body was recorded for.
    results : sequence of Value
        What it computes.
    is_whole : bool
        Whether all that was recorded for the body is of the body, as of a branch: one that is not
        taken takes no time and raises nothing.

    Returns
    -------
    graph : Graph
        Its inputs are new ones for `own`, and then for those values.
    captured : list of Value
    """
    new: dict[Value, Value] = {}
    captured: list[Value] = []

    def enter(value: Value) -> None:
        new[value] = fresh_input(value, len(new_inputs))
        new_inputs.append(new[value])

    new_inputs: list[Value] = []
    for value in own:
        enter(value)
    depends = set(own)
    uniform: set[Value] = set()  # numbers, repeated: what a body has of its own
    # As they were recorded: so what repeats itself there is found in the body, too.
    order = sorted(Graph([], results).values(), key=lambda value: value.number)
    start = min(value.number for value in own) if is_whole else math.inf
    for value in order:
        is_within = bool(value.operands) and value.number > start
        if is_within or any(operand in depends for operand in value.operands):
            depends.add(value)
        elif value.operation == "constant" or (
            value.operation in ("view", "reshape") and value.operands[0] in uniform
        ):
            uniform.add(value)
    for value in order:
        if value in depends and value not in new:
            for operand in value.operands:
                if operand not in new and operand not in uniform:
                    captured.append(operand)
                    enter(operand)
            new[value] = replaced(value, new)
    for value in results:
        if value not in new and value not in uniform:
            captured.append(value)
            enter(value)
    return Graph(new_inputs, [new.get(value, value) for value in results]), captured


def replaced(value: Value, new: Mapping[Value, Value]) -> Value:
    """Return a value with others for some of its operands."""
    return Value(
        value.operation,
        [new.get(operand, operand) for operand in value.operands],
        value.shape,
        value.dtype,
        value.origin,
        **value.attributes,
    )


def without_known(
    graph: Graph, first: int, operands: Sequence[Value]
) -> tuple[Graph, list[Value]] | None:
    """Return a body without inputs whose values are known, or given to it twice.

    Parameters
    ----------
    graph : Graph
    first : int
        How many inputs come before those that `operands` are given for.
    operands : sequence of Value

    Returns
    -------
    graph, operands : Graph, list of Value
        What is left. None if that is all. What is around the loop shows more once it is
        simplified.
    """
    own, given = graph.inputs[:first], graph.inputs[first:]
    new: dict[Value, Value] = {value: value for value in own}
    kept: dict[Value, Value] = {}
    for inner, operand in zip(given, operands, strict=True):
        base = operand.operands[0] if operand.operation == "view" else operand
        if base.operation == "constant":
            new[inner] = broadcast(base, inner.shape)
            continue
        if operand not in kept:
            kept[operand] = fresh_input(inner, first + len(kept))
        new[inner] = kept[operand]
    if len(kept) == len(operands):
        return None
    outputs = rebuilt(graph.values(), new, graph.outputs)
    return Graph([*own, *kept.values()], outputs), list(kept)


def rebuilt(
    values: Iterable[Value], new: dict[Value, Value], outputs: Sequence[Value]
) -> list[Value]:
    """Return outputs with others for some values; `new` gets all that change with them."""
    for value in values:
        if value not in new and any(operand in new for operand in value.operands):
            new[value] = replaced(value, new)
    return [new.get(output, output) for output in outputs]
