"""Lower primitives of the catalogue to the graph's operations.

A lowering takes the values of the operands and the primitive's parameters, and returns the value
of the result. A primitive without one stays as it is, a ``call``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from numgrad.base.tuning import REMEMBERED_CALLS
from numgrad.codegen.expression import Symbol
from numgrad.jit.ir.constructors import (
    apply,
    broadcast,
    cast,
    constant,
    join,
    permute,
    reduce,
    reshape,
    update,
)
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.ir.memory_order import flipped
from numgrad.jit.lowering.storage import update_at
from numgrad.kernels.move.strides import extent, may_overlap
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive

__all__ = ["LOWERINGS", "lower_elementwise"]

Lowering = Callable[..., Any]
Dims = tuple[int, ...]
# An operation of `lower_elementwise`: what it is, the places of its operands among what was lowered
# so far, its shape and dtype, and of a constant the number.
_Step = tuple[str, tuple[int, ...], tuple[int, ...], np.dtype[Any], Any]
_BOOL = np.dtype(bool)
LOWERINGS: dict[str, Lowering] = {}


def lowering(*names: str) -> Callable[[Lowering], Lowering]:
    """Enter a function as the lowering of primitives."""

    def enter(function: Lowering) -> Lowering:
        for name in names:
            LOWERINGS[name] = function
        return function

    return enter


def lower_elementwise(
    primitive: ElementwisePrimitive,
    operands: Sequence[Any],
    dtype: np.dtype[Any],
    origin: str = "",
) -> Value:
    """Return the value of an elementwise primitive.

    Parameters
    ----------
    operands : sequence of Value or number
        In the dtype of the computation, which numbers take.
    dtype : numpy.dtype
        Of the result.
    """
    kinds = tuple([(v.dtype, v.shape) if type(v) is Value else type(v) for v in operands])
    compute, steps, result = _lowered(primitive, kinds, dtype)
    values: list[Any] = list(operands)
    for position, operand in enumerate(values):
        if type(operand) is not Value:
            is_mask = position in primitive.masks
            values[position] = constant(operand, _BOOL if is_mask else compute)
    for operation, places, shape, of, number in steps:
        if operation == "cast":
            values.append(cast(values[places[0]], of, origin))
        elif operation == "constant":
            values.append(constant(number, of))
        else:
            values.append(Value(operation, [values[k] for k in places], shape, of, origin))
    lowered: Value = values[result]
    return lowered


@lru_cache(REMEMBERED_CALLS)
def _lowered(
    primitive: ElementwisePrimitive, kinds: tuple[Any, ...], dtype: np.dtype[Any]
) -> tuple[np.dtype[Any], list[_Step], int]:
    """Return what operands of such kinds are computed with, by which steps, and which is the last.

    Parameters
    ----------
    kinds : tuple
        Of each operand: (dtype, shape) of a value, the type of a number.
    """
    voting = [k for p, k in enumerate(kinds) if type(k) is tuple and p not in primitive.masks]
    compute = voting[0][0] if voting else dtype
    operands = []
    symbols = {}
    for position, (name, kind) in enumerate(zip(primitive.inputs, kinds, strict=True)):
        of = _BOOL if position in primitive.masks else compute
        given, shape = kind if type(kind) is tuple else (of, ())
        operands.append(Value("input", (), shape, given))
        is_complex = given.kind == "c" if type(kind) is tuple else kind is complex
        symbols[name] = Symbol.input(name, is_complex)
    (result,) = primitive._formula(symbols)
    values = dict(zip(map(id, symbols.values()), operands, strict=True))

    def evaluate(symbol: Symbol) -> Value:
        value = values.get(id(symbol))
        if value is None:
            if symbol.operation == "constant":
                number = symbol.arguments[0]
                value = constant(number, _BOOL if isinstance(number, bool) else compute)
            else:
                value = apply(symbol.operation, *map(evaluate, symbol.arguments))
            values[id(symbol)] = value
        return value

    last = cast(evaluate(result), dtype)
    made = sorted(set(Graph(operands, [last]).values()).difference(operands), key=_number)
    places = {value: place for place, value in enumerate([*operands, *made])}
    steps: list[_Step] = [
        (
            each.operation,
            tuple([places[operand] for operand in each.operands]),
            each.shape,
            each.dtype,
            each.attributes.get("value"),
        )
        for each in made
    ]
    return compute, steps, places[last]


_number = operator.attrgetter("number")


# --- copies ---------------------------------------------------------------------------------------


@lowering("clone")
def _clone(value: Value, contiguous: Any = False) -> Value:
    return value


@lowering("to_copy")
def _to_copy(value: Value, dtype: np.dtype[Any]) -> Value:
    return cast(value, dtype)


@lowering("unsafe_view")
def _unsafe_view(value: Value, shape: Dims) -> Value:
    return reshape(value, shape)


@lowering("drop_first_dim")
def _drop_first_dim(value: Value) -> Value:
    return reshape(value, value.shape[1:])


@lowering("copy", "fill_tensor", "fill_tensor_in_place")
def _copy(value: Value, source: Value) -> Value:
    return broadcast(cast(source, value.dtype), value.shape)


@lowering("fill_number", "fill_number_in_place")
def _fill_number(input: Value, value: Any) -> Value:
    return broadcast(constant(value.item(), value.dtype), input.shape)


@lowering("zero")
def _zero(value: Value) -> Value:
    return broadcast(constant(0, value.dtype), value.shape)


@lowering("flip")
def _flip(value: Value, dims: Dims) -> Value:
    return flipped(value, dims)


# --- products -------------------------------------------------------------------------------------


@lowering("dot")
def _dot(left: Value, right: Value) -> Value:
    return reduce("sum", apply("mul", left, right), (0,))


@lowering("mm")
def _mm(left: Value, right: Value) -> Value:
    if left.dtype.kind not in "fc":
        raise NotImplementedError
    if left.shape[1] == 1:  # of one term each
        return apply("mul", left, right)
    shape = (left.shape[0], right.shape[1])
    return Value("matmul", (left, right), shape, left.dtype)


@lowering("mv")
def _mv(matrix: Value, vector: Value) -> Value:
    column = reshape(vector, (*vector.shape, 1))
    return reshape(_mm(matrix, column), (matrix.shape[0],))


# --- joining --------------------------------------------------------------------------------------


@lowering("cat")
def _cat(*parts: Value, dim: int, dtype: np.dtype[Any]) -> Value:
    present = [part for part in parts if part.shape != (0,)] or list(parts[:1])
    return join([cast(part, dtype) for part in present], dim)


@lowering("stack")
def _stack(*parts: Value, dim: int, dtype: np.dtype[Any]) -> Value:
    given = parts[0].shape
    present = [reshape(part, (*given[:dim], 1, *given[dim:])) for part in parts]
    return join([cast(part, dtype) for part in present], dim)


# --- parts ----------------------------------------------------------------------------------------


def _contiguous(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


@lowering("as_strided_scatter")
def _as_strided_scatter(
    value: Value, source: Value, outer: Any, inner: Any, storage_offset: Any = None
) -> Value:
    shape, steps, offset = outer
    order = sorted(range(len(shape)), key=lambda dim: (-steps[dim], dim))
    in_memory = permute(value, order)
    expected = _contiguous(in_memory.shape)
    if offset or any(
        shape[dim] > 1 and steps[dim] != step for dim, step in zip(order, expected, strict=True)
    ):
        raise NotImplementedError
    found = update_at(in_memory, source, inner[2], inner[1])
    return permute(found, [order.index(dim) for dim in range(len(order))])


@lowering("as_strided_backward")
def _as_strided_backward(value: Value, source: Any, target: Any, shared: Any) -> Value:
    low, high = extent(source)
    if may_overlap(source) or may_overlap(shared) or low < 0 or high > math.prod(target[0]):
        raise NotImplementedError  # what adds up, or is not seen
    zeros = broadcast(constant(0, value.dtype), target[0])
    return _as_strided_scatter(zeros, value, target, source)


@lowering("slice_backward")
def _slice_backward(value: Value, shape: Dims, dim: int, start: int, stop: int, step: int) -> Value:
    return _placed(value, shape, dim, start, step)


@lowering("select_backward")
def _select_backward(value: Value, shape: Dims, dim: int, index: int) -> Value:
    part = reshape(value, (*value.shape[:dim], 1, *value.shape[dim:]))
    return _placed(part, shape, dim, index, 1)


def _placed(part: Value, shape: Dims, dim: int, start: int, step: int) -> Value:
    """Return zeros with a part of them, along one dim every `step` from `start`, replaced."""
    strides = _contiguous(shape)
    offset = start * strides[dim]
    strides[dim] *= step
    return update(broadcast(constant(0, part.dtype), shape), part, offset, strides)
