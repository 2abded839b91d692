"""Short ways of making the values of a graph by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.jit.ir.graph import Affine, Value

F64 = np.dtype(np.float64)
F32 = np.dtype(np.float32)
BOOL = np.dtype(np.bool_)
_TRUTH = {"eq", "ne", "lt", "le", "gt", "ge", "logical_not", "isnan"}


def given(*shape: int, dtype: Any = F64) -> Value:
    """Return an input."""
    return Value("input", (), shape, np.dtype(dtype))


def number(value: Any, dtype: Any = F64) -> Value:
    """Return a constant."""
    return Value("constant", (), (), np.dtype(dtype), value=value)


def op(name: str, *operands: Any) -> Value:
    """Return an elementwise operation; numbers take the dtype of the first value."""
    like = next(o for o in operands[name == "where" :] if isinstance(o, Value))
    values = [o if isinstance(o, Value) else number(o, like.dtype) for o in operands]
    shape = np.broadcast_shapes(*(value.shape for value in values))
    dtype = BOOL if name in _TRUTH else like.dtype
    return Value(name, values, shape, dtype, f"{name} at test.py:1")


def cast(value: Value, dtype: Any) -> Value:
    """Return a value in another dtype."""
    return Value("cast", (value,), value.shape, np.dtype(dtype))


def reduce(kind: str, value: Value, *dims: int, dtype: Any = None) -> Value:
    """Return a reduction, over all dims if none is named."""
    dims = dims or tuple(range(len(value.shape)))
    shape = tuple(n for d, n in enumerate(value.shape) if d not in dims)
    return Value("reduce", (value,), shape, np.dtype(dtype or value.dtype), kind=kind, dims=dims)


def view(value: Value, shape: tuple[int, ...], *maps: Any) -> Value:
    """Return a view: for each dim of the value an offset, and pairs of a dim and a step."""
    return Value("view", (value,), shape, value.dtype, maps=tuple(Affine(*m) for m in maps))


def part(value: Value, first: int, last: int) -> Value:
    """Return ``value[first:last]``."""
    maps = [(first if d == 0 else 0, ((d, 1),)) for d in range(len(value.shape))]
    return view(value, (last - first, *value.shape[1:]), *maps)


def transpose(value: Value) -> Value:
    """Return a matrix transposed."""
    return view(value, value.shape[::-1], (0, ((1, 1),)), (0, ((0, 1),)))


def reshape(value: Value, *shape: int) -> Value:
    """Return a value in another shape."""
    return Value("reshape", (value,), shape, value.dtype)


def keep(value: Value, dim: int) -> Value:
    """Return a value with one more dim, of size 1."""
    return reshape(value, *value.shape[:dim], 1, *value.shape[dim:])


def join(dim: int, *parts: Value) -> Value:
    """Return parts side by side along a dim."""
    starts, length = [], 0
    for each in parts:
        starts.append(tuple(length if d == dim else 0 for d in range(len(each.shape))))
        length += each.shape[dim]
    shape = (*parts[0].shape[:dim], length, *parts[0].shape[dim + 1 :])
    return Value("join", parts, shape, parts[0].dtype, starts=tuple(starts))


def update(value: Value, other: Value, offset: int, *strides: int) -> Value:
    """Return a value with a part replaced."""
    return Value("update", (value, other), value.shape, value.dtype, offset=offset, strides=strides)


def gather(value: Value, shape: tuple[int, ...], maps: Any, *positions: Value) -> Value:
    """Return elements of a value at positions: dims of the maps after the shape's are positions."""
    operands = (value, *positions)
    return Value("gather", operands, shape, value.dtype, maps=tuple(Affine(*m) for m in maps))


def scatter(value: Value, other: Value, maps: Any, *positions: Value, adds: bool) -> Value:
    """Return a value with another one added, or put, at positions."""
    affine = tuple(Affine(*m) for m in maps)
    operands = (value, other, *positions)
    return Value("scatter", operands, value.shape, value.dtype, maps=affine, adds=adds)


def checked(index: Value, size: int) -> Value:
    """Return positions that are checked to be those of a dim of some size."""
    bad = op("bitwise_or", op("lt", index, 0), op("ge", index, size))
    flag = reduce("any", bad) if index.shape else bad
    attributes = {"kind": "check_bounds", "low": 0, "size": size, "dim": 0}
    return Value("check", (index, flag), index.shape, index.dtype, **attributes)
