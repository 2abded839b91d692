"""Reading and writing at a place in a storage, as values: views of any kind, and what they write.

A place is an array over memory that nobody reads (`numgrad.graph.tracing`): where it lies in the
array over the whole storage says which elements it has. It may take complex numbers for pairs of
real ones, or pairs for complex numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.graph.tracing import address_of
from numgrad.jit.build import apply, broadcast, constant, strided, update, view
from numgrad.jit.calls import call_of
from numgrad.jit.graph import Affine, Value

__all__ = ["place_in", "read_place", "root_of", "write_place"]

Array = np.ndarray[Any, Any]


def place_in(whole: Array, place: Array) -> tuple[list[int], int]:
    """Return the strides and the offset of a place, in elements."""
    itemsize = place.itemsize
    offset = (address_of(place) - address_of(whole)) // itemsize if place.size else 0
    return [stride // itemsize for stride in place.strides], offset


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
    if place.dtype != whole.dtype:
        return _read_in_dtype(value, whole, place)
    strides, offset = place_in(whole, place)
    if place.shape == value.shape and offset == 0 and _same_strides(whole, place):
        return value
    return strided(value, place.shape, strides, offset)


def write_place(value: Value, whole: Array, place: Array, part: Value) -> Value:
    """Return the value of a storage after a write of `part`, in the place's shape and dtype."""
    if place.dtype != whole.dtype:
        return _write_in_dtype(value, whole, place, part)
    strides, offset = place_in(whole, place)
    if place.shape == whole.shape and offset == 0 and _same_strides(whole, place):
        return part
    return update(value, part, offset, strides)


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
