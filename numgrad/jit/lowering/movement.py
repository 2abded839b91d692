"""Lower what moves elements to views, joins and parts that are replaced.

So it is done where it is read, or in compiled loops; as a ``call`` it would need the interpreter.
Where elements lie in memory is another matter: see `numgrad.jit.front.places`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.jit.ir.constructors import (
    apply,
    broadcast,
    cast,
    constant,
    join,
    permute,
    reshape,
    update,
    view,
)
from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.ir.memory_order import flipped

__all__ = ["MOVES"]

Dims = tuple[int, ...]


def _steps(shape: Sequence[int]) -> list[int]:
    """Return how far apart neighbours along each dim are, row by row."""
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


def _zeros(shape: Dims, dtype: np.dtype[Any]) -> Value:
    return broadcast(constant(0, dtype), shape)


def _narrow(value: Value, dim: int, start: int, length: int) -> Value:
    """Return a part along one dim."""
    maps = [Affine(0, ((d, 1),)) for d in range(len(value.shape))]
    maps[dim] = Affine(start, ((dim, 1),))
    return view(value, maps, (*value.shape[:dim], length, *value.shape[dim + 1 :]))


# --- diagonals ------------------------------------------------------------------------------------


def _diagonal_copy(value: Value, offset: int, dim1: int, dim2: int) -> Value:
    rows, columns = max(-offset, 0), max(offset, 0)
    length = max(min(value.shape[dim1] - rows, value.shape[dim2] - columns), 0)
    kept = [dim for dim in range(len(value.shape)) if dim not in (dim1, dim2)]
    shape = (*(value.shape[dim] for dim in kept), length)
    if 0 in shape:
        return _zeros(shape, value.dtype)
    maps = [Affine(0, ())] * len(value.shape)
    for position, dim in enumerate(kept):
        maps[dim] = Affine(0, ((position, 1),))
    maps[dim1], maps[dim2] = (Affine(start, ((len(kept), 1),)) for start in (rows, columns))
    return view(value, maps, shape)


def _diagonal_scatter(value: Value, part: Value, offset: int, dim1: int, dim2: int) -> Value:
    steps = _steps(value.shape)
    start = max(-offset, 0) * steps[dim1] + max(offset, 0) * steps[dim2]
    kept = [step for dim, step in enumerate(steps) if dim not in (dim1, dim2)]
    part = cast(part, value.dtype)
    return update(value, part, start, [*kept, steps[dim1] + steps[dim2]])


def _diagonal_backward(value: Value, shape: Dims, offset: int, dim1: int, dim2: int) -> Value:
    return _diagonal_scatter(_zeros(shape, value.dtype), value, offset, dim1, dim2)


def _diag_embed(value: Value, offset: int, dim1: int, dim2: int) -> Value:
    size = value.shape[-1] + abs(offset)
    shape = list(value.shape[:-1])
    for dim in sorted((dim1, dim2)):
        shape.insert(dim, size)
    return _diagonal_backward(value, tuple(shape), offset, dim1, dim2)


# --- parts ----------------------------------------------------------------------------------------


def _select_scatter(value: Value, part: Value, dim: int, index: int) -> Value:
    steps = _steps(value.shape)
    start = index * steps.pop(dim)
    return update(value, cast(part, value.dtype), start, steps)


def _slice_scatter(value: Value, part: Value, dim: int, start: int, stop: int, step: int) -> Value:
    steps = _steps(value.shape)
    first = start * steps[dim]
    steps[dim] *= step
    return update(value, cast(part, value.dtype), first, steps)


def _pad_behind(value: Value, shape: Dims) -> Value:
    return update(_zeros(shape, value.dtype), value, 0, _steps(shape))


def _constant_pad_nd(input: Value, widths: Sequence[tuple[int, int]], value: Any) -> Value:
    number = np.asarray(value)
    if number.astype(input.dtype) != number:
        raise NotImplementedError  # rounded as the kernel rounds it
    for dim, (before, behind) in enumerate(widths):
        first, last = max(-before, 0), max(-behind, 0)
        if first or last:
            input = _narrow(input, dim, first, input.shape[dim] - first - last)
    sizes = zip(input.shape, widths, strict=True)
    shape = tuple([size + max(before, 0) + max(behind, 0) for size, (before, behind) in sizes])
    steps = zip(widths, _steps(shape), strict=True)
    start = sum([max(before, 0) * step for (before, _), step in steps])
    whole = broadcast(constant(number.item(), input.dtype), shape)
    return update(whole, input, start, _steps(shape))


# --- rearranging ----------------------------------------------------------------------------------


def _roll(value: Value, shifts: Dims, dims: Dims) -> Value:
    if 0 in value.shape or not value.shape:
        return value
    if not dims:
        flat = reshape(value, (math.prod(value.shape),))
        return reshape(_roll(flat, (sum(shifts),), (0,)), value.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        length = value.shape[dim]
        by = shift % length
        parts = _narrow(value, dim, length - by, by), _narrow(value, dim, 0, length - by)
        value = join(parts, dim)
    return value


def _rot90(value: Value, k: int, dims: Dims) -> Value:
    first, second = dims
    order = list(range(len(value.shape)))
    order[first], order[second] = second, first
    match k % 4:
        case 0:
            return value
        case 1:
            return permute(flipped(value, (second,)), order)
        case 2:
            return flipped(value, dims)
    return flipped(permute(value, order), (second,))


def _repeat(value: Value, repeats: Dims) -> Value:
    whole = (1,) * (len(repeats) - len(value.shape)) + value.shape
    shape = tuple([count * length for count, length in zip(repeats, whole, strict=True)])
    if 0 in shape:
        return _zeros(shape, value.dtype)
    apart = [length for pair in zip((1,) * len(whole), whole, strict=True) for length in pair]
    pairs = [length for pair in zip(repeats, whole, strict=True) for length in pair]
    return reshape(broadcast(reshape(value, tuple(apart)), tuple(pairs)), shape)


def _shift(value: Value, dim: int, by: int, fill: float) -> Value:
    number = constant(fill, value.dtype)
    if not value.shape or not value.shape[dim]:
        return broadcast(number, value.shape)
    free = broadcast(number, (*value.shape[:dim], 1, *value.shape[dim + 1 :]))
    kept = _narrow(value, dim, int(by < 0), value.shape[dim] - 1)
    return join((free, kept) if by > 0 else (kept, free), dim)


# --- masks ----------------------------------------------------------------------------------------


def _masked_fill_number(input: Value, mask: Any, value: Any) -> Value:
    if value.dtype != input.dtype:
        raise NotImplementedError  # converted as the kernel does it
    return _masked_fill_tensor(input, constant(value.item(), value.dtype), mask)


def _masked_fill_tensor(input: Value, value: Value, mask: Any) -> Value:
    if value.dtype != input.dtype or not isinstance(mask, Value) or mask.dtype.kind != "b":
        raise NotImplementedError
    return apply("where", mask, value, input)


#: By the names of primitives; parameters are theirs.
MOVES: dict[str, Callable[..., Value]] = {
    "constant_pad_nd": _constant_pad_nd,
    "diag_embed": _diag_embed,
    "diagonal_backward": _diagonal_backward,
    "diagonal_copy": _diagonal_copy,
    "diagonal_scatter": _diagonal_scatter,
    "masked_fill_number": _masked_fill_number,
    "masked_fill_tensor": _masked_fill_tensor,
    "pad_behind": _pad_behind,
    "repeat": _repeat,
    "roll": _roll,
    "rot90": _rot90,
    "select_scatter": _select_scatter,
    "shift": _shift,
    "slice_scatter": _slice_scatter,
}
