"""Stacks of which only a loop knows how many rows they have, and operations on them.

A loop without a limit stacks something in each turn. What follows from such stacks alone, element
by element, is another loop over as many rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.graph.recorder import Storage, Traced
from numgrad.jit.ir.graph import Value
from numgrad.jit.lowering.bodies import cut_out, fresh_input
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.opaque_calls import ARRAYS
from numgrad.jit.lowering.primitives import lower_elementwise
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive

__all__ = ["GrownStacks", "by_rows"]


class GrownStacks:
    """The stacks of a trace whose length is found by a loop, with what says how long they are."""

    def __init__(self) -> None:
        self._lengths: dict[Storage, Value] = {}

    def enter(self, stack: Traced, length: Value) -> None:
        """Note that an array has so many rows."""
        self._lengths[stack.storage] = length

    def length_of(self, arrays: Sequence[Any]) -> Value | None:
        """Return how many rows arrays have, if only a loop knows."""
        if not self._lengths:
            return None
        return next((self._lengths[each.storage] for each in self.among(arrays)), None)

    def among(self, arrays: Sequence[Any]) -> list[Traced]:
        """Return those of some arrays that are such stacks."""
        return [a for a in arrays if type(a) is Traced and a.storage in self._lengths]


def by_rows(
    tracer: Any,
    stacks: GrownStacks,
    length: Value,
    primitive: ElementwisePrimitive,
    arrays: Sequence[Any],
    dtype: np.dtype[Any],
) -> Traced:
    """Record an elementwise operation on stacks of some length: a loop over their rows."""
    given = stacks.among(arrays)
    rows = [Value("input", (), a.shape[1:], a.dtype, position=k) for k, a in enumerate(given)]
    of_array = dict(zip(map(id, given), rows, strict=True))
    operands = [
        of_array.get(id(a)) or (tracer.value_of(a) if type(a) in ARRAYS else a) for a in arrays
    ]
    row = lower_elementwise(primitive, operands, dtype, tracer.origin(primitive.function_name))
    graph, captured = cut_out([*rows, fresh_input(length, 0)], [row])
    loop = Loop(graph, 0, len(rows), None, counted=True)
    stacked = [tracer.value_of(a) for a in given]
    found: Traced = tracer.results(loop, [*stacked, length, *captured])[0]._array
    return found
