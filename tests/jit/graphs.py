"""Graphs by hand: short ways of making values."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.jit.graph import Affine, Graph, Value

F64 = np.dtype(np.float64)
F32 = np.dtype(np.float32)
BOOL = np.dtype(np.bool_)
_TRUTH = {"eq", "ne", "lt", "le", "gt", "ge", "logical_not", "isnan"}


def given(*shape: int, dtype: Any = F64) -> Value:
    return Value("input", (), shape, np.dtype(dtype))


def number(value: Any, dtype: Any = F64) -> Value:
    return Value("constant", (), (), np.dtype(dtype), value=value)


def op(name: str, *operands: Any, dtype: Any = None) -> Value:
    like = next(
        o for o in operands if isinstance(o, Value) and not (name == "where" and o is operands[0])
    )
    values = [o if isinstance(o, Value) else number(o, like.dtype) for o in operands]
    shape = np.broadcast_shapes(*(value.shape for value in values))
    if dtype is None:
        dtype = BOOL if name in _TRUTH else like.dtype
    return Value(name, values, shape, np.dtype(dtype), f"{name} at test.py:1")


def cast(value: Value, dtype: Any) -> Value:
    return Value("cast", (value,), value.shape, np.dtype(dtype))


def reduce(kind: str, value: Value, *dims: int, dtype: Any = None) -> Value:
    dims = dims or tuple(range(len(value.shape)))
    shape = tuple(n for d, n in enumerate(value.shape) if d not in dims)
    return Value(
        "reduce", (value,), shape, np.dtype(dtype or value.dtype), "reduce", kind=kind, dims=dims
    )


def view(
    value: Value, shape: tuple[int, ...], *maps: tuple[int, tuple[tuple[int, int], ...]]
) -> Value:
    return Value("view", (value,), shape, value.dtype, maps=tuple(Affine(*m) for m in maps))


def part(value: Value, first: int, last: int, step: int = 1) -> Value:
    """Return value[first:last:step] along the first dim."""
    length = len(range(*slice(first, last, step).indices(value.shape[0])))
    start = slice(first, last, step).indices(value.shape[0])[0]
    maps = [(start, ((0, step),)), *((0, ((d, 1),)) for d in range(1, len(value.shape)))]
    return view(value, (length, *value.shape[1:]), *maps)


def transpose(value: Value) -> Value:
    return view(value, value.shape[::-1], (0, ((1, 1),)), (0, ((0, 1),)))


def keep(value: Value, dim: int) -> Value:
    """Return a value with one more dim of size 1."""
    shape = (*value.shape[:dim], 1, *value.shape[dim:])
    return Value("reshape", (value,), shape, value.dtype)


def reshape(value: Value, *shape: int) -> Value:
    return Value("reshape", (value,), shape, value.dtype)


def update(value: Value, other: Value, offset: int, *strides: int) -> Value:
    return Value("update", (value, other), value.shape, value.dtype, offset=offset, strides=strides)


def graph(inputs: list[Value], *outputs: Value) -> Graph:
    return Graph(inputs, outputs)
