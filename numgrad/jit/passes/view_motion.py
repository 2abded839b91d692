"""Moving views before elementwise operations: ``exp(x)[2:]`` becomes ``exp(x[2:])``.

Then what stands between two loads and a store is elementwise throughout, and one loop computes it.
It is done where no element is computed twice: all that is read of an operation's result must be
read through views, by other operations that are moved or by whatever takes the view, and these must
have no more elements than the result.
"""

from __future__ import annotations

from math import prod

from numgrad.base.tuning import MOVED_VIEWS
from numgrad.jit.ir.graph import Affine, Graph, Value
from numgrad.jit.passes.rewriter import Builder

__all__ = ["push_views"]

Maps = tuple[Affine, ...]
View = tuple[tuple[int, ...], Maps]  # the shape, and a map for each dim of what is viewed

_FIRST = Affine(0, ())


def push_views(builder: Builder, graph: Graph) -> Graph | None:
    """Move views where that pays; None if there is nothing to move."""
    values = graph.values()
    if not any(v.operation == "view" and v.operands[0].is_elementwise for v in values):
        return None
    wanted = _find(values, graph.outputs)
    if not wanted:
        return None
    new: dict[Value, Value] = {}
    moved: dict[tuple[Value, View], Value] = {}
    for value in values:
        builder.origin = value.origin
        views = wanted.get(value)
        if views is not None:
            for view in views:
                operands = []
                for operand in value.operands:
                    inner = _through(value, operand, view)
                    found = moved.get((operand, inner))
                    operands.append(found or builder.view(new[operand], *inner))
                moved[value, view] = builder.elementwise(
                    value.operation, *operands, dtype=value.dtype
                )
            continue
        if value.operation == "view" and value.operands[0] in wanted:
            view = value.shape, value.attributes["maps"]
            new[value] = builder.expand(moved[value.operands[0], view], value.shape)
            continue
        same = tuple([new[operand] for operand in value.operands])
        new[value] = value if same == value.operands else rebuild(builder, value, same)
    return Graph(graph.inputs, [new[output] for output in graph.outputs])


def rebuild(builder: Builder, value: Value, operands: tuple[Value, ...]) -> Value:
    """Return the value of the new graph for one of the old, whose operands are given."""
    if operands != value.operands:
        value = Value(
            value.operation, operands, value.shape, value.dtype, value.origin, **value.attributes
        )
    return builder.add(value)


def _find(values: list[Value], outputs: tuple[Value, ...]) -> dict[Value, dict[View, None]]:
    """Return the values to move views before, each with its views."""
    wanted: dict[Value, dict[View, None]] = {}
    stays = set(outputs)
    views: dict[Value, dict[View, None]] = {}  # of elementwise values, as asked for so far
    for value in reversed(values):
        if value.is_elementwise:
            asked = views.get(value)
            if asked and value not in stays and _pays(value, asked):
                wanted[value] = asked
                for operand in value.operands:
                    if operand.is_elementwise:
                        of_operand = views.setdefault(operand, {})
                        for view in asked:
                            of_operand[_through(value, operand, view)] = None
                continue
        elif value.operation == "view" and value.operands[0].is_elementwise:
            asked = views.setdefault(value.operands[0], {})
            asked[value.shape, value.attributes["maps"]] = None
            continue
        stays.update(value.operands)
    return wanted


def _pays(value: Value, asked: dict[View, None]) -> bool:
    """Whether views of a value have no more elements than it."""
    size = prod(value.shape)
    return len(asked) <= MOVED_VIEWS and sum(prod(shape) for shape, _ in asked) <= size


def _through(value: Value, operand: Value, view: View) -> View:
    """Return the view of an operand that goes with one of the value."""
    shape, maps = view
    if operand.shape == value.shape:
        return view
    lead = len(value.shape) - len(operand.shape)
    return shape, tuple(
        [_FIRST if n == 1 else maps[lead + dim] for dim, n in enumerate(operand.shape)]
    )
