"""Lower gather, scatter and indexing by arrays of positions.

Positions are checked by an operation of their own, in a loop over the positions alone; what is read
or written at them then needs no condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.jit.ir.constructors import apply, broadcast, constant, reduce, reshape, view
from numgrad.jit.ir.graph import Affine, Value
from numgrad.kernels.move.bounds import BOUNDS
from numgrad.ops.core.promotion import broadcast_shapes

__all__ = ["CHECKS", "GATHERINGS"]

Dims = tuple[int, ...]
Lowering = Callable[..., Value]
Positions = Any  # a value, or an array that the trace knows

_FROM_END = ("from_front", "filled_positions", "flat_index")  # count negative positions from there


# --- checks ---------------------------------------------------------------------------------------


def _checked(name: str) -> Lowering:
    """Return the lowering of a check of positions."""

    def lower(
        index: Value, size: int, dim: int = 0, ordinal: int = 0, ignored: int | None = None
    ) -> Value:
        from_end = name in _FROM_END
        if ignored is not None:
            is_ignored = apply("eq", index, constant(ignored, index.dtype))
            index = apply("where", is_ignored, constant(0, index.dtype), index)
        low = -size if from_end else 0
        if 0 in index.shape:
            return index
        ends = [constant(end, index.dtype) for end in (low, size)]
        bad = apply("bitwise_or", apply("lt", index, ends[0]), apply("ge", index, ends[1]))
        flag = reduce("any", bad, range(len(index.shape)))
        found = Value(
            "check",
            (index, flag),
            index.shape,
            index.dtype,
            kind=name,
            low=low,
            size=size,
            dim=dim or ordinal,
        )
        if not from_end:
            return found
        negative = apply("lt", found, constant(0, index.dtype))
        return apply("where", negative, apply("add", found, ends[1]), found)

    return lower


CHECKS: dict[str, Lowering] = {name: _checked(name) for name in BOUNDS}


# --- where positions lead -------------------------------------------------------------------------


def _value(positions: Positions) -> Value:
    if isinstance(positions, Value):
        return positions
    array = np.asarray(positions)
    return Value("array", (), array.shape, array.dtype, array=array, made=False)


def _spread(positions: Value, shape: Dims, at: int, count: int) -> Value:
    """Return positions, repeated to a shape whose dims from `at` to `at` + `count` are theirs."""
    lead = at + count - len(positions.shape)
    maps = [Affine(0, ((lead + d, 1),) if n != 1 else ()) for d, n in enumerate(positions.shape)]
    return positions if positions.shape == shape else view(positions, maps, shape)


def _by_indices(own: Dims, indices: Sequence[Positions | None]) -> tuple[Dims, list[Value], Any]:
    """Return the shape that indices take of a shape, the positions, and how they are read there."""
    dims = [dim for dim, positions in enumerate(indices) if positions is not None]
    given = [_value(indices[dim]) for dim in dims]
    common = broadcast_shapes([positions.shape for positions in given])
    at = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    rest = [dim for dim in range(len(own)) if dim not in dims]
    lengths = [own[dim] for dim in rest]
    shape = (*lengths[:at], *common, *lengths[at:])
    spread = [_spread(positions, shape, at, len(common)) for positions in given]
    maps = [Affine(0, ())] * len(own)
    for number, dim in enumerate(dims):
        maps[dim] = Affine(0, ((len(shape) + number, 1),))
    for number, dim in enumerate(rest):
        target = number if number < at else number + len(common)
        maps[dim] = Affine(0, ((target, 1),) if own[dim] != 1 else ())
    return shape, spread, maps


def _along(own: Dims, dim: int, index: Positions) -> tuple[Dims, list[Value], Any]:
    """Return the same for an index of as many dims, which has positions along one of them."""
    positions = _value(index)
    if not own or not positions.shape:
        raise NotImplementedError  # no dims to walk: the interpreter does it
    maps = [Affine(0, ((d, 1),) if n != 1 else ()) for d, n in enumerate(positions.shape)]
    maps[dim] = Affine(0, ((len(own), 1),))
    return positions.shape, [positions], maps


def _in_dim(own: Dims, dim: int, index: Positions) -> tuple[Dims, list[Value], Any]:
    """Return the same for an index of one dim."""
    if not own:
        raise NotImplementedError  # no dims to walk: the interpreter does it
    return _by_indices(own, [None] * dim + [_value(index)])


def _gather(source: Value, where: tuple[Dims, list[Value], Any]) -> Value:
    shape, positions, maps = where
    if 0 in shape:
        return broadcast(constant(0, source.dtype), shape)
    return Value("gather", (source, *positions), shape, source.dtype, maps=tuple(maps))


def _scatter(
    base: Value, part: Value, where: tuple[Dims, list[Value], Any], *, adds: bool
) -> Value:
    shape, positions, maps = where
    if 0 in shape or 0 in base.shape:
        return base
    operands = (base, broadcast(part, shape), *positions)
    return Value("scatter", operands, base.shape, base.dtype, maps=tuple(maps), adds=adds)


def _zeros(shape: Dims, dtype: np.dtype[Any]) -> Value:
    return broadcast(constant(0, dtype), shape)


# --- taking ---------------------------------------------------------------------------------------


def _index(value: Value, indices: Sequence[Any]) -> Value:
    return _gather(value, _by_indices(value.shape, indices))


def _gather_along(value: Value, dim: int, index: Positions) -> Value:
    return _gather(value, _along(value.shape, dim, index))


def _index_select(value: Value, dim: int, index: Positions) -> Value:
    return _gather(value, _in_dim(value.shape, dim, index))


def _take(value: Value, index: Positions) -> Value:
    flat = reshape(value, (math.prod(value.shape),))
    return _gather(flat, _by_indices(flat.shape, [index]))


# --- adding up and putting ------------------------------------------------------------------------


def _index_backward(value: Value, shape: Dims, indices: Sequence[Any]) -> Value:
    return _scatter(_zeros(shape, value.dtype), value, _by_indices(shape, indices), adds=True)


def _index_put_accumulate(value: Value, part: Value, indices: Sequence[Any]) -> Value:
    return _scatter(value, part, _by_indices(value.shape, indices), adds=True)


def _gather_backward(value: Value, shape: Dims, dim: int, index: Positions) -> Value:
    return _scatter(_zeros(shape, value.dtype), value, _along(shape, dim, index), adds=True)


def _scatter_add(value: Value, part: Value, dim: int, index: Positions) -> Value:
    where = _along(value.shape, dim, index)
    maps = [Affine(0, ((d, 1),) if n != 1 else ()) for d, n in enumerate(where[0])]
    corner = part if part.shape == where[0] else view(part, maps, where[0])
    return _scatter(value, corner, where, adds=True)


def _index_add(value: Value, part: Value, dim: int, index: Positions) -> Value:
    return _scatter(value, part, _in_dim(value.shape, dim, index), adds=True)


def _take_backward(value: Value, shape: Dims, index: Positions) -> Value:
    flat = (math.prod(shape),)
    found = _scatter(_zeros(flat, value.dtype), value, _by_indices(flat, [index]), adds=True)
    return reshape(found, shape)


GATHERINGS: dict[str, Lowering] = {
    "gather": _gather_along,
    "gather_backward": _gather_backward,
    "index": _index,
    "index_add": _index_add,
    "index_backward": _index_backward,
    "index_put_accumulate": _index_put_accumulate,
    "index_select": _index_select,
    "scatter_add": _scatter_add,
    "take": _take,
    "take_backward": _take_backward,
}
