"""Reads and writes of a storage, as values: views of any kind, and what writes to them change.

A place is an array over memory that nobody reads (`numgrad.graph.recorder`): where it lies in the
array over the whole storage says which elements it has. It may take complex numbers for pairs of
real ones, or pairs for complex numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.graph.recorder import TraceError, address_of
from numgrad.jit.ir.constructors import apply, broadcast, constant, strided, update, view
from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.lowering.indexing import GATHERINGS
from numgrad.jit.lowering.opaque_calls import call_of
from numgrad.kernels.move.strides import layout_of, may_overlap, positions
from numgrad.runtime.frames import where_user_is

__all__ = ["place_in", "read_place", "root_of", "update_at", "write_place"]

Array = np.ndarray[Any, Any]


def place_in(whole: Array, place: Array) -> tuple[list[int], int]:
    """Return the strides and the offset of a place, in elements, as if the whole had no gaps.

    Raises
    ------
    LookupError
        If the place can't be said in these terms.
    """
    itemsize = place.itemsize
    offset = address_of(place) - address_of(whole) if place.size else 0
    if whole.flags.c_contiguous or not place.size:
        return [stride // itemsize for stride in place.strides], offset // itemsize
    start, reached = _without_gaps(whole, offset)
    low, high = list(reached), list(reached)
    strides = []
    for length, stride in zip(place.shape, place.strides, strict=True):
        step, steps = _without_gaps(whole, stride if length > 1 else 0)
        strides.append(step // itemsize)
        for dim, count in enumerate(steps):
            low[dim] += min(0, count * (length - 1))
            high[dim] += max(0, count * (length - 1))
    if min(low) < 0 or any(n >= length for n, length in zip(high, whole.shape, strict=True)):
        raise LookupError
    return strides, start // itemsize


def _without_gaps(whole: Array, distance: int) -> tuple[int, list[int]]:
    """Return a distance in bytes, as it is without the gaps, and the steps along each dim in it."""
    rest, sign, result = abs(distance), 1 if distance >= 0 else -1, 0
    steps = [0] * whole.ndim
    size = whole.nbytes
    for dim, (length, stride) in enumerate(zip(whole.shape, whole.strides, strict=True)):
        size //= length
        if length > 1:
            count, rest = divmod(rest, stride)
            steps[dim] = sign * count
            result += sign * count * size
    if rest >= whole.itemsize:
        raise LookupError
    return result + sign * rest, steps


def root_of(array: Array) -> Array:
    """Return the contiguous array that an array is a view of; itself if there is none."""
    root = array
    base = array.base
    while type(base) is np.ndarray and base.dtype == array.dtype and base.flags.c_contiguous:
        root, base = base, base.base
    return root


def _same_strides(whole: Array, place: Array) -> bool:
    return all(
        n < 2 or own == other
        for n, own, other in zip(whole.shape, whole.strides, place.strides, strict=True)
    )


def read_place(value: Value, whole: Array, place: Array) -> Value:
    """Return what lies at a place in a storage of that value."""
    try:
        if place.dtype != whole.dtype:
            return _read_in_dtype(value, whole, place)
        strides, offset = place_in(whole, place)
    except LookupError:
        return _gathered(value, whole, place)
    if place.shape == value.shape and offset == 0 and _same_strides(whole, place):
        return value
    return strided(value, place.shape, strides, offset)


def _gathered(value: Value, whole: Array, place: Array) -> Value:
    """Return what lies at a place that takes any elements of the whole, found one by one."""
    offset = (address_of(place) - address_of(whole)) // whole.itemsize
    known = positions(layout_of(whole)).reshape(-1)
    order = np.argsort(known, kind="stable")
    shape, strides, _ = layout_of(place)
    wanted = positions((shape, strides, offset)).reshape(-1)
    at = np.searchsorted(known[order], wanted)
    found = order[np.minimum(at, known.size - 1)]
    if place.dtype != whole.dtype or (known[found] != wanted).any():
        raise _outside("reads")
    return GATHERINGS["take"](value, found.reshape(place.shape))


def _outside(does: str) -> TraceError:
    return TraceError(
        f"{where_user_is()}jit: this {does} memory between the elements of an array, which "
        "compiled code does not have. Pass or make one that is contiguous"
    )


def write_place(value: Value, whole: Array, place: Array, part: Value) -> Value:
    """Return the value of a storage after a write of `part`, in the place's shape and dtype."""
    try:
        if place.dtype != whole.dtype:
            return _write_in_dtype(value, whole, place, part)
        strides, offset = place_in(whole, place)
    except LookupError:
        raise _outside("writes to") from None
    if place.shape == whole.shape and offset == 0 and _same_strides(whole, place):
        return part
    return update_at(value, part, offset, strides)


def update_at(value: Value, part: Value, offset: int, strides: Sequence[int]) -> Value:
    """Return a value with a part replaced; of what is written twice, the last counts.

    That is the last in the order of memory, in which NumPy and PyTorch write.
    """
    if not may_overlap((part.shape, tuple(strides), offset)):
        return update(value, part, offset, strides)
    walked = [dim for dim, length in enumerate(part.shape) if length > 1]
    still = [dim for dim in walked if not strides[dim]]
    dim = still[0] if still else max(walked, key=lambda each: abs(strides[each]))
    rest = [step for d, step in enumerate(strides) if d != dim]
    length = part.shape[dim]
    for k in [length - 1] if still else range(length):
        value = update_at(value, _row(part, dim, k), offset + k * strides[dim], rest)
    return value


def _row(part: Value, dim: int, k: int) -> Value:
    """Return what is at one index of a dim, without that dim."""
    shape = part.shape[:dim] + part.shape[dim + 1 :]
    maps = [Affine(0, ((d - (d > dim), 1),)) for d in range(len(part.shape))]
    maps[dim] = Affine(k, ())
    return view(part, maps, shape)


def _read_in_dtype(value: Value, whole: Array, place: Array) -> Value:
    """Return what lies at a place that takes complex numbers for pairs, or pairs for numbers."""
    strides, offset = place_in(whole, place)
    if place.dtype.kind == "c":
        pairs = [
            strided(value, place.shape, [2 * n for n in strides], start + 2 * offset)
            for start in (0, 1)
        ]
        return call_of("complex", pairs, place.shape, place.dtype)
    if not any(step % 2 for step in strides):
        halves = [step // 2 for step in strides]
        numbers = strided(value, place.shape, halves, offset // 2)
        return apply("imag" if offset % 2 else "real", numbers)
    return strided(_as_pairs(value), place.shape, strides, offset)


def _write_in_dtype(value: Value, whole: Array, place: Array, part: Value) -> Value:
    """Return the value of a storage after a write to such a place."""
    strides, offset = place_in(whole, place)
    if place.dtype.kind == "c":
        for start, name in enumerate(("real", "imag")):
            at = start + 2 * offset
            value = update(value, apply(name, part), at, [2 * step for step in strides])
        return value
    pairs = update(_as_pairs(value), part, offset, strides)
    maps = [Affine(0, ((dim, 1),)) for dim in range(len(value.shape))]
    parts = [view(pairs, [*maps, Affine(start, ())], value.shape) for start in (0, 1)]
    return call_of("complex", parts, value.shape, value.dtype)


def _as_pairs(value: Value) -> Value:
    """Return complex numbers as real ones, with a last dim: real, imaginary."""
    parts = [apply("real", value), apply("imag", value)]
    shape = (*value.shape, 2)
    pairs = broadcast(constant(0, parts[0].dtype), shape)
    strides = [math.prod(shape[dim + 1 :]) for dim in range(len(value.shape))]
    for start, part in enumerate(parts):
        pairs = update(pairs, part, start, strides)
    return pairs
