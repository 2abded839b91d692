"""How gradients that one kernel computes lie in memory: as if the rules ran operation by operation.

A rule says in which order it computes, and each of its operations lays its result out by its
operands. The kernel computes the whole rule at once, so this is worked out from the rule's symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.expression import Symbol
from numgrad.codegen.render import Formula
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.kernels.move.loop_order import ResultOrder, loop_order
from numgrad.kernels.move.memory_order import copy_in_order, empty_for
from numgrad.kernels.pointwise.flat_calls import Number
from numgrad.ops.core.elementwise.half_kernels import ElementwiseKernel
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.runtime.memory import empty

__all__ = ["GradientKernel", "empty_in_order", "orders_of"]

Array = np.ndarray[Any, Any]
Order = tuple[int, ...]


def _decides(symbol: Symbol) -> str | None:
    """Return the operand that decides how a value lies, if it tells all dims apart.

    >>> g, x = Symbol.input("g", False), Symbol.input("x", False)
    >>> _decides((x > 0) * g)
    'x'
    """
    if symbol.operation == "input":
        return str(symbol.arguments[0])
    if symbol.operation == "constant":
        return None
    return next(filter(None, map(_decides, symbol.arguments)), None)


def _place(symbol: Symbol, operands: dict[str, Array], known: dict[Symbol, Any]) -> Array | None:
    """Return memory that lies as the value of a symbol would; None for a number."""
    if symbol.operation == "input":
        return operands.get(symbol.arguments[0])
    if symbol.operation == "constant":
        return None
    if symbol not in known:
        below = [_place(argument, operands, known) for argument in symbol.arguments]
        places = [place for place in below if place is not None]
        if SCALAR_OPS[symbol.operation].gives_operand or not places:
            known[symbol] = places[0] if places else None
        else:
            shape = broadcast_shapes([place.shape for place in places])
            known[symbol] = empty_for(shape, bool, places)
    found: Array | None = known[symbol]
    return found


def orders_of(shape: tuple[int, ...], operands: dict[str, Any], lies: Formula) -> list[Order]:
    """Return for each output of a formula the order of its dims in memory.

    >>> operands = {"g": np.zeros((2, 3)), "x": np.zeros((3, 2)).T}
    >>> orders_of((2, 3), operands, lambda given: [given["x"] * given["g"], given["g"]])
    [(1, 0), (0, 1)]
    """
    places, symbols = {}, {}
    for name, operand in operands.items():
        is_array = type(operand) is np.ndarray
        symbols[name] = Symbol.input(name, is_array and operand.dtype.kind == "c")
        if is_array:
            places[name] = operand
    known: dict[Symbol, Any] = {}
    found = [_place(each, places, known) for each in lies(symbols)]
    return [loop_order(shape, [] if each is None else [each]) for each in found]


def empty_in_order(shape: tuple[int, ...], order: Order, dtype: Any) -> Array:
    """Return new memory that has the dims of a shape in an order.

    >>> empty_in_order((2, 3), (1, 0), bool).strides
    (1, 2)
    """
    memory = empty(tuple([shape[dim] for dim in order]), dtype)
    return memory.transpose(np.argsort(order).tolist())


class _Placed:
    """A call whose results are put in other orders than it computes them in."""

    __slots__ = ("call", "orders")

    def __init__(self, call: Any, orders: Sequence[Order | None]) -> None:
        self.call = call
        self.orders = orders

    def __call__(self, operands: Sequence[Array | Number]) -> list[Array]:
        """Compute the results; those of an order are copied into it."""
        results = self.call(operands)
        return [
            result if order is None else copy_in_order(result, order)
            for result, order in zip(results, self.orders, strict=True)
        ]


class GradientKernel(ElementwiseKernel):
    """An `Elementwise` whose outputs lie as operations would lay them out, one after the other.

    Parameters
    ----------
    name, inputs, formula
        Those of `Elementwise`.
    lies : callable
        Given a symbol for each name, returns for each output the symbol as whose operations it
        lies: a constant where it lies row by row.
    """

    def __init__(self, name: str, inputs: Sequence[str], formula: Formula, lies: Formula) -> None:
        super().__init__(name, inputs, formula)
        self.lies = lies

    def deciding(self) -> set[str]:
        """Return the operands that decide how the outputs lie, if they tell all dims apart."""
        symbols = {name: Symbol.input(name, False) for name in self.inputs}
        return {name for name in map(_decides, self.lies(symbols)) if name is not None}

    def _prepare(
        self,
        shape: tuple[int, ...],
        shapes: Sequence[tuple[int, ...]] | None,
        operands: Sequence[Any],
        dtypes: Sequence[np.dtype[Any]],
        lying: Sequence[Any],
    ) -> tuple[Any, ResultOrder]:
        """Find out what a call takes."""
        if shapes is not None:
            return super()._prepare(shape, shapes, operands, dtypes, lying)
        rows = tuple(range(len(shape)))
        orders = self._orders_of(shape, lying, len(dtypes))
        first = orders[0]
        walked = None if first == rows else first
        call: Any = self._make_call(shape, walked, operands, dtypes)
        # The call gives dims in the order of its loops.
        others = [
            None if order == first else tuple([first.index(dim) for dim in order])
            for order in orders
        ]
        if any(others):
            call = _Placed(call, others)
        return call, ResultOrder(walked, None)

    def _orders_of(
        self, shape: tuple[int, ...], operands: Sequence[Any], outputs: int
    ) -> list[Order]:
        arrays = [operand for operand in operands if type(operand) is np.ndarray]
        if len(shape) < 2 or all(array.flags.c_contiguous for array in arrays):
            return super()._orders_of(shape, operands, outputs)
        places = dict(zip(self.inputs, operands, strict=True))
        return orders_of(shape, places, self.lies)
