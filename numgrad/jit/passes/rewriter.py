"""Rewrite a graph: common subexpressions, and simplification of every new value.

A `Builder` numbers values: two with the same operation, operands and attributes are one. It asks
the rules before it takes a value in, so rules see operands that are simplified already, look one or
two operations down, and build what they find better by the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.graph import STRUCTURAL, Affine, Value

__all__ = ["Builder", "Rule", "broadcast", "expanding_maps"]

Shape = tuple[int, ...]

BOOL = np.dtype(bool)


class Builder:
    """The values of a new graph.

    Parameters
    ----------
    rules : mapping
        For the structural operations, and as ``"elementwise"`` for all others, a function of the
        builder and a value: it returns a better value, or None where there is none.
    """

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self.rules = rules
        self.known: dict[Any, Value] = {}
        self.origin = ""  # of the values that rules make
        self.facts: dict[Any, Any] = {}  # what rules have found out about values

    def add(self, value: Value) -> Value:
        """Return the value of the new graph that equals `value`, whose operands are in it."""
        operation = value.operation
        if operation in STRUCTURAL:
            rule = self.rules.get(operation)
            better = rule(self, value) if rule is not None else None
            if better is not None:
                return better
            key = _KEYS[operation](value)
            if key is None:
                return value
        else:
            better = self.rules["elementwise"](self, value)
            if better is not None:
                return better
            operands = value.operands
            key = (operation, value.dtype, operands)
            mirrored = SCALAR_OPS[operation].mirrored
            if mirrored is not None:
                found = self.known.get((mirrored, value.dtype, operands[::-1]))
                if found is not None:
                    return found
        return self.known.setdefault(key, value)

    def constant(self, number: Any, dtype: np.dtype[Any]) -> Value:
        """Return a constant."""
        return self.add(Value("constant", (), (), dtype, self.origin, value=number))

    def fill(self, number: Any, dtype: np.dtype[Any], shape: Shape) -> Value:
        """Return a constant in a shape."""
        return self.expand(self.constant(number, dtype), shape)

    def elementwise(
        self, operation: str, *operands: Value, dtype: np.dtype[Any] | None = None
    ) -> Value:
        """Return a scalar operation on values that broadcast; `dtype` is needed for a cast only."""
        if dtype is None:
            dtype = SCALAR_OPS[operation].result_dtype(operands[-1].dtype)
        return self.add(Value(operation, operands, broadcast(operands), dtype, self.origin))

    def view(self, operand: Value, shape: Shape, maps: Sequence[Affine]) -> Value:
        """Return a view."""
        maps = tuple(maps)
        return self.add(Value("view", (operand,), shape, operand.dtype, self.origin, maps=maps))

    def reshape(self, operand: Value, shape: Shape) -> Value:
        """Return the elements in another shape."""
        if operand.shape == shape:
            return operand
        return self.add(Value("reshape", (operand,), shape, operand.dtype, self.origin))

    def expand(self, operand: Value, shape: Shape) -> Value:
        """Return the elements broadcast to a shape."""
        if operand.shape == shape:
            return operand
        return self.view(operand, shape, expanding_maps(operand.shape, shape))


Rule = Callable[[Builder, Value], "Value | None"]


def broadcast(values: Sequence[Value]) -> Shape:
    """Return the shape that values broadcast to."""
    shape = values[0].shape
    for value in values:
        other = value.shape
        if other == shape or not other:
            continue
        if len(other) > len(shape):
            shape, other = other, shape
        lead = len(shape) - len(other)
        shape = shape[:lead] + tuple(
            [b if a == 1 else a for a, b in zip(shape[lead:], other, strict=True)]
        )
    return shape


_FIRST = Affine(0, ())


@cache
def _index(dim: int) -> Affine:
    """Return the map that gives the index of a dim."""
    return Affine(0, ((dim, 1),))


def expanding_maps(own: Shape, shape: Shape) -> tuple[Affine, ...]:
    """Return the maps of the view that broadcasts `own` to `shape`."""
    lead = len(shape) - len(own)
    return tuple([_FIRST if n == 1 else _index(lead + dim) for dim, n in enumerate(own)])


# For each structural operation what makes a value the same as another; None if nothing does.
_KEYS: dict[str, Callable[[Value], Any]] = {
    "input": lambda value: None,
    "array": lambda value: ("array", id(value.attributes["array"])),
    # repr tells -0.0 from 0.0, and one nan is as good as another
    "constant": lambda value: ("constant", value.dtype, repr(value.attributes["value"])),
    "view": lambda value: ("view", value.operands[0], value.shape, value.attributes["maps"]),
    "reshape": lambda value: ("reshape", value.operands[0], value.shape),
    "reduce": lambda value: (
        "reduce",
        value.operands[0],
        value.attributes["kind"],
        value.attributes["dims"],
    ),
    "update": lambda value: (
        "update",
        value.operands,
        value.attributes["offset"],
        value.attributes["strides"],
    ),
    "join": lambda value: ("join", value.operands, value.attributes["starts"]),
    "gather": lambda value: ("gather", value.operands, value.shape, value.attributes["maps"]),
    "scatter": lambda value: (
        "scatter",
        value.operands,
        value.attributes["maps"],
        value.attributes["adds"],
    ),
    "check": lambda value: (
        "check",
        value.operands,
        *sorted(value.attributes.items()),
    ),
    "matmul": lambda value: ("matmul", value.operands),
    # What a primitive does (draw random numbers, say) is not known here: each call is its own.
    "call": lambda value: None,
    "item": lambda value: ("item", value.operands[0], value.attributes["position"]),
}
