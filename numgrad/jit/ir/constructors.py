"""Construct values of a graph, with the shape and dtype that follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from numgrad.base.tuning import REMEMBERED_CALLS
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.ir.scalar_semantics import wrap
from numgrad.ops.core.promotion import broadcast_shapes

__all__ = [
    "apply",
    "broadcast",
    "cast",
    "constant",
    "delinearised",
    "join",
    "permute",
    "reduce",
    "reshape",
    "restore_dims",
    "strided",
    "update",
    "view",
]

_BOOL = np.dtype(bool)


def constant(value: Any, dtype: np.dtype[Any]) -> Value:
    """Return a number of a dtype; an integer that it lacks wraps around, as in PyTorch."""
    if dtype.kind == "b":
        value = bool(value)
    elif dtype.kind in "iu":
        value = wrap(int(value), dtype)
    elif dtype.kind == "f":
        value = float(value)
    else:
        value = complex(value)
    return Value("constant", (), (), dtype, value=value)


def cast(value: Value, dtype: np.dtype[Any], origin: str = "") -> Value:
    """Return the elements in another dtype; of complex numbers real dtypes get the real part."""
    if value.dtype == dtype:
        return value
    if value.operation == "constant":
        number = value.attributes["value"]
        if isinstance(number, complex) and dtype.kind not in "cb":
            number = number.real
        if dtype.kind in "fcb" or (dtype.kind in "iu" and isinstance(number, bool)):
            if dtype == np.float32 and isinstance(number, float):
                number = float(np.float32(number))
            return constant(number, dtype)
    return Value("cast", (value,), value.shape, dtype, origin)


def apply(operation: str, *operands: Value, origin: str = "") -> Value:
    """Return an elementwise operation on operands that broadcast."""
    shape = broadcast_shapes([operand.shape for operand in operands])
    voting = operands[1:] if operation == "where" else operands
    dtype = voting[0].dtype
    if any(operand.dtype is not dtype for operand in voting):
        dtype = np.result_type(*{operand.dtype for operand in voting})
    if dtype.kind == "c":
        operands = (*operands[: len(operands) - len(voting)], *(cast(v, dtype) for v in voting))
    dtype = SCALAR_OPS[operation].result_dtype(dtype)
    return Value(operation, operands, shape, dtype, origin)


def view(value: Value, maps: Sequence[Affine], shape: tuple[int, ...]) -> Value:
    """Return the elements that an index finds by one `Affine` for each dim of the operand."""
    return Value("view", (value,), shape, value.dtype, maps=tuple(maps))


def broadcast(value: Value, shape: tuple[int, ...]) -> Value:
    """Return the value repeated to a shape that it broadcasts to."""
    if value.shape == shape:
        return value
    lead = len(shape) - len(value.shape)
    maps = [
        Affine(0, ((lead + dim, 1),) if length == shape[lead + dim] and length != 1 else ())
        for dim, length in enumerate(value.shape)
    ]
    return view(value, maps, shape)


def permute(value: Value, order: Sequence[int]) -> Value:
    """Return the value with its dims in another order: those of the result, by number."""
    if list(order) == sorted(order):
        return value
    position = {dim: at for at, dim in enumerate(order)}
    maps = [Affine(0, ((position[dim], 1),)) for dim in range(len(order))]
    return view(value, maps, tuple([value.shape[dim] for dim in order]))


def reshape(value: Value, shape: tuple[int, ...]) -> Value:
    """Return the elements, in row-major order, in another shape."""
    if value.shape == shape:
        return value
    if value.operation == "reshape":
        return reshape(value.operands[0], shape)
    return Value("reshape", (value,), shape, value.dtype)


def reduce(kind: str, value: Value, dims: Sequence[int], origin: str = "") -> Value:
    """Return the value reduced over dims, which the result lacks; over none it is the value.

    Where results are rounded, dims with others in between are reduced one group after the other,
    the last one first: so eager mode does it.
    """
    if not dims:
        return value
    if value.dtype.kind in "fc":
        long = [dim for dim, n in enumerate(value.shape) if n != 1]
        apart = [
            dim for dim, after in pairwise(long) if dim in dims and after not in dims
        ]  # each the last one of a group
        if (apart and long[-1] in dims) or len(apart) > 1:
            start = apart[-1] if long[-1] in dims else apart[-2]
            last = [dim for dim in dims if dim > start]
            value = reduce(kind, value, last, origin)
            return reduce(kind, value, [dim for dim in dims if dim <= start], origin)
    shape = tuple([n for dim, n in enumerate(value.shape) if dim not in dims])
    dtype = _BOOL if kind in ("any", "all") else value.dtype
    return Value("reduce", (value,), shape, dtype, origin, kind=kind, dims=tuple(sorted(dims)))


def restore_dims(value: Value, shape: tuple[int, ...], dims: Sequence[int]) -> Value:
    """Return a value that was reduced over dims of `shape` with these dims again, of length 1."""
    kept = [dim for dim in range(len(shape)) if dim not in dims]
    maps = [Affine(0, ((dim, 1),)) for dim in kept]
    return view(value, maps, tuple([1 if dim in dims else n for dim, n in enumerate(shape)]))


def update(base: Value, part: Value, offset: int, strides: Sequence[int]) -> Value:
    """Return `base` with `part` in it, at a place that is given in elements of the flat base."""
    if math.prod(part.shape) == 0:
        return base
    if offset == 0 and math.prod(part.shape) == math.prod(base.shape):
        order = sorted(range(len(part.shape)), key=lambda dim: -strides[dim])
        lengths = tuple([part.shape[dim] for dim in order])
        if _is_contiguous(lengths, [strides[dim] for dim in order]):  # nothing of the base is left
            return reshape(permute(part, order), base.shape)
    operands, strides = (base, part), tuple(strides)
    return Value("update", operands, base.shape, base.dtype, offset=offset, strides=strides)


def join(parts: Sequence[Value], dim: int) -> Value:
    """Return parts side by side along a dim; of one that has no elements nothing is left."""
    present = [part for part in parts if part.shape[dim]] or list(parts[:1])
    if len(present) == 1:
        return present[0]
    starts, length = [], 0
    for part in present:
        starts.append(tuple([length if d == dim else 0 for d in range(len(part.shape))]))
        length += part.shape[dim]
    first = present[0]
    shape = (*first.shape[:dim], length, *first.shape[dim + 1 :])
    if 0 in shape:
        return broadcast(constant(0, first.dtype), shape)
    return Value("join", present, shape, first.dtype, starts=tuple(starts))


def strided(value: Value, shape: tuple[int, ...], strides: Sequence[int], offset: int) -> Value:
    """Return what lies at a place of the value's memory, given in elements, as if it lay there."""
    if math.prod(shape) == 0:
        return view(value, [Affine(0, ())] * len(value.shape), shape)
    maps = delinearised(value.shape, shape, tuple(strides), offset)
    if maps is not None:
        if shape == value.shape and all(
            m == Affine(0, ((dim, 1),) if shape[dim] > 1 else ()) for dim, m in enumerate(maps)
        ):
            return value
        return view(value, maps, shape)
    size = math.prod(value.shape)
    terms = tuple((dim, step) for dim, step in enumerate(strides) if shape[dim] > 1 and step)
    if offset == 0 and _is_contiguous(shape, strides) and math.prod(shape) == size:
        return reshape(value, shape)
    return view(reshape(value, (size,)), [Affine(offset, terms)], shape)


def _is_contiguous(shape: tuple[int, ...], strides: Sequence[int]) -> bool:
    expected = 1
    for length, step in zip(reversed(shape), reversed(strides), strict=True):
        if length > 1 and step != expected:
            return False
        expected *= length
    return True


@lru_cache(REMEMBERED_CALLS)
def delinearised(
    base: tuple[int, ...], shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> tuple[Affine, ...] | None:
    """Return for each dim of the base its index, if a place can be said in such terms."""
    steps = [math.prod(base[dim + 1 :]) for dim in range(len(base))]
    first = [offset // step % length for step, length in zip(steps, base, strict=True)]
    low, high = list(first), list(first)
    terms: list[list[tuple[int, int]]] = [[] for _ in base]
    for dim, (length, stride) in enumerate(zip(shape, strides, strict=True)):
        if length == 1 or stride == 0:
            continue
        rest, sign = abs(stride), 1 if stride > 0 else -1
        for own, step in enumerate(steps):
            count, rest = divmod(rest, step)
            if count:
                terms[own].append((dim, sign * count))
                reach = sign * count * (length - 1)
                low[own] += min(reach, 0)
                high[own] += max(reach, 0)
    if any(n < 0 for n in low) or any(n >= length for n, length in zip(high, base, strict=True)):
        return None
    return tuple([Affine(start, tuple(own)) for start, own in zip(first, terms, strict=True)])
