"""Opaque calls: primitives that stay as they are in a graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base.float_errors import restore, silence
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import Traced
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.memory_order import Order, numberless
from numgrad.ops.core.primitive import CATALOGUE, Primitive

__all__ = ["ARRAYS", "Whole", "call_of", "lift", "results_of"]

Array = np.ndarray[Any, Any]

ARRAYS = (np.ndarray, Traced)  # the types that become operands


class Whole:
    """A primitive in a graph, with the parameters that are no operands.

    Its first operand may be what there is in memory; `order` tells how it lies there. What reduces
    in that order (`in_order`) is given it row by row, however the program reads it. `single` tells
    whether it returns an array, and not a tuple of them; None where it was never run.
    """

    __slots__ = ("count", "in_order", "name", "order", "primitive", "single", "template")

    def __init__(
        self, primitive: Primitive, count: int, template: dict[str, Any], in_order: bool = False
    ) -> None:
        self.primitive = primitive
        self.name = primitive.name
        self.count = count
        self.template = template
        self.order: Order | None = None
        self.in_order = in_order
        self.single: bool | None = None

    def __repr__(self) -> str:
        return self.name

    def forward(self, *arrays: Array) -> tuple[Array, ...]:
        """Run it on arrays, and return its results."""
        if self.in_order:
            arrays = (_row_by_row(arrays[0]), *arrays[1:])
        if self.order is not None:
            arrays = (self.order.out_of_memory(arrays[0]), *arrays[1:])
        result = self.run(arrays)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    def prepared(self, arrays: Sequence[Array]) -> Callable[..., Any]:
        """Return what `forward` does on arrays that lie as these do, with less around it."""
        return self.plain(arrays) or self.forward

    def plain(self, arrays: Sequence[Array]) -> Callable[..., Any] | None:
        """Return what computes in eager calls, of arrays that lie as these do; None if none does.

        What it returns is new, but may lie in any order.
        """
        is_copied = self.in_order and not arrays[0].flags.c_contiguous
        if is_copied or self.order is not None or self.count < len(arrays):
            return None
        if self.primitive.view or self.single is None:
            return None
        found = self.primitive.prepared(arrays, self.template)
        return found or functools.partial(self.primitive.forward, **self.template)

    def run(self, arrays: Sequence[Array]) -> Any:
        """Run it on arrays, and return what it returns."""
        parameters = {name: _fill(value, arrays) for name, value in self.template.items()}
        before = silence()
        try:
            return self.primitive.forward(*arrays[: self.count], **parameters)
        finally:
            restore(before)

    def results(self, values: Sequence[Value], places: Sequence[Array]) -> tuple[bool, list[Array]]:
        """Return whether there is one result, and arrays as the results will be, in memory, too.

        They are found by running it on numbers that mean nothing, which lie as `places` do.
        """
        stand_in = self.primitive.stand_in
        if stand_in is not None:
            arrays = [stand_in(numberless(place)) for place in places]
        else:
            arrays = [
                value.attributes["array"] if value.operation == "array" else numberless(place)
                for value, place in zip(values, places, strict=True)
            ]
        trace, modes.trace = modes.trace, None
        try:
            result = self.run(arrays)
        finally:
            modes.trace = trace
        self.single = single = not isinstance(result, (tuple, list))
        return single, [np.asarray(array) for array in ([result] if single else result)]


def _row_by_row(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(array.shape)


class _Slot(int):
    """The place of an operand in the parameters of a call."""


def lift(value: Any, operands: list[Any]) -> Any:
    """Replace arrays in a parameter by slots, and append them to the operands."""
    if type(value) in ARRAYS:
        operands.append(value)
        return _Slot(len(operands) - 1)
    if type(value) in (tuple, list):
        return type(value)(lift(item, operands) for item in value)
    return value


def _fill(value: Any, arrays: Sequence[Array]) -> Any:
    """Put arrays in the place of the slots of a parameter."""
    if type(value) is _Slot:
        return arrays[value]
    if type(value) in (tuple, list):
        return type(value)(_fill(item, arrays) for item in value)
    return value


def call_of(
    name: str, operands: Sequence[Value], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Value:
    """Return the result of a primitive of the catalogue that has one, and takes no parameters."""
    whole = Whole(CATALOGUE[name], len(operands), {})
    return results_of(whole, operands, [(shape, dtype)], name)[0]


def results_of(
    whole: Any, operands: Sequence[Value], metas: Sequence[Any], origin: str
) -> list[Value]:
    """Return the results of a call, of which shape and dtype are given."""
    call = Value("call", operands, (), np.dtype(bool), origin, primitive=whole)
    return [
        Value("item", (call,), shape, dtype, origin, position=position)
        for position, (shape, dtype) in enumerate(metas)
    ]
