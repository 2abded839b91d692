"""Simplify reductions, updates and joins, where not a bit changes.

A sum has a fixed order of additions, which follows from the shape: the sum of a sum is not a sum
over all dims, and the sum of n equal numbers is not n times the number. Integers, and any and all,
have no roundings, so there it is. A float's max of a max is not merged either: of 0.0 and -0.0 it
gives the later one, and which that is depends on the order. Where all elements are the same one,
though, it is that one.

A sum begins with 0.0: that of one element x is ``x + 0.0``, which is 0.0 for -0.0, and that of
zeros of either sign is 0.0.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.base.tuning import SPELLED_ELEMENTS, SPELLED_RESULTS, SUMMED_PARTS
from numgrad.codegen.llvm.combine_ir import COMBINES
from numgrad.codegen.llvm.run_ir import lanes_of_rows
from numgrad.jit.ir.constructors import join
from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.ir.scalar_semantics import number_of, wrap
from numgrad.jit.passes.rewriter import Builder
from numgrad.jit.passes.views import flat, is_contiguous, same_window, strides_of, view_of_dims

__all__ = ["simplify_join", "simplify_reduce", "simplify_update"]

_EXACT = "biu"  # kinds of dtypes that are computed with without rounding


def simplify_reduce(builder: Builder, value: Value) -> Value | None:
    """Skip dims of one element, and all dims of equal elements where their number is no matter."""
    (operand,), kind, dims = value.operands, value.attributes["kind"], value.attributes["dims"]
    shape = operand.shape
    if 0 in shape:
        nothing = COMBINES[kind].of_nothing
        if nothing is not None and any(shape[dim] == 0 for dim in dims):
            return builder.fill(nothing, value.dtype, value.shape)
        return None
    kept = [dim for dim in range(len(shape)) if dim not in dims]
    if all(shape[dim] == 1 for dim in dims):
        return _of_one(builder, kind, view_of_dims(builder, operand, kept), value.dtype)
    if operand.operation == "view":
        found = _of_repeated(builder, value, kept)
        if found is not None:
            return found
    if (
        operand.operation == "reduce"
        and operand.attributes["kind"] == kind
        and value.dtype.kind in _EXACT
    ):
        (first,) = operand.operands
        own = [dim for dim in range(len(first.shape)) if dim not in operand.attributes["dims"]]
        both = sorted([*operand.attributes["dims"], *(own[dim] for dim in dims)])
        return _reduce(builder, kind, first, tuple(both), value.dtype)
    return _spelled(builder, value, kept)


def _spelled(builder: Builder, value: Value, kept: list[int]) -> Value | None:
    """Return a reduction of few elements to each of many, written out in the order of a block.

    So it is elementwise: no loop of few turns stands in another one, and what is reduced is nowhere
    in memory. That does not pay where there are few results.
    """
    (operand,), kind, dims = value.operands, value.attributes["kind"], value.attributes["dims"]
    shape = operand.shape
    count = prod([shape[dim] for dim in dims])
    if count > SPELLED_ELEMENTS or prod(value.shape) < SPELLED_RESULTS:
        return None
    long = [dim for dim in dims if shape[dim] != 1]
    if any(shape[dim] != 1 for dim in kept if long[0] < dim < long[-1]):
        return None
    if value.dtype.kind == "b":
        kind = COMBINES[kind].of_bools
    behind = prod(shape[long[-1] + 1 :])
    lanes = lanes_of_rows(2 * behind if value.dtype.kind == "c" else behind)
    nothing = builder.constant(COMBINES[kind].identity(value.dtype), value.dtype)
    begins = value.dtype.kind == "c"
    found: list[Value] = []
    for number, at in enumerate(np.ndindex(*(shape[dim] for dim in dims))):
        places = dict(zip(dims, at, strict=True))
        maps = [
            Affine(places[dim], ()) if dim in places else Affine(0, ((kept.index(dim), 1),))
            for dim in range(len(shape))
        ]
        term = builder.view(operand, value.shape, maps)
        if kind in ("any", "all"):
            term = builder.elementwise("cast", term, dtype=value.dtype)
        if number >= lanes:
            found[number % lanes] = _combined(builder, kind, found[number % lanes], term)
        else:
            found.append(_combined(builder, kind, nothing, term) if begins else term)
    half = lanes // 2
    while half:
        for lane, other in enumerate(found[half:]):
            found[lane] = _combined(builder, kind, found[lane], other)
        del found[half:]
        half //= 2
    # Of zeros below 0 the sum that begins with 0 is above; everywhere else it is the same.
    is_float_sum = kind == "sum" and value.dtype.kind == "f"
    return _combined(builder, kind, nothing, found[0]) if is_float_sum else found[0]


def _combined(builder: Builder, kind: str, one: Value, other: Value) -> Value:
    """Return two values combined as elements of a reduction are."""
    if kind not in ("max", "min"):
        return builder.elementwise(COMBINES[kind].operation, one, other)
    wins = builder.elementwise("ge" if kind == "max" else "le", one, other)
    if one.dtype.kind == "f":
        is_nan = builder.elementwise("ne", one, one)
        wins = builder.elementwise("logical_or", wins, is_nan)
    return builder.elementwise("where", wins, one, other)


def _reduce(
    builder: Builder, kind: str, operand: Value, dims: tuple[int, ...], dtype: np.dtype[Any]
) -> Value:
    shape = tuple([n for dim, n in enumerate(operand.shape) if dim not in dims])
    reduced = Value("reduce", (operand,), shape, dtype, builder.origin, kind=kind, dims=dims)
    return builder.add(reduced)


def _of_one(builder: Builder, kind: str, x: Value, dtype: np.dtype[Any]) -> Value | None:
    """Return the reduction of one element, the element itself but for a sum of floats."""
    if kind in ("any", "all"):
        return builder.elementwise("cast", x, dtype=dtype)
    if kind == "sum" and dtype.kind in "fc":
        return builder.elementwise("add", x, builder.constant(0.0, dtype))
    if kind == "prod" and dtype.kind == "c":
        return None
    return x


def _of_repeated(builder: Builder, value: Value, kept: list[int]) -> Value | None:
    """Reduce a view with dims along which it repeats."""
    (view,), kind, dims = value.operands, value.attributes["kind"], value.attributes["dims"]
    if COMBINES[kind].idempotent:
        used = {dim for _, terms in view.attributes["maps"] for dim, _ in terms}
        rest = [dim for dim in range(len(view.shape)) if dim in used or dim in kept]
        if len(rest) < len(view.shape):
            still = tuple([k for k, dim in enumerate(rest) if dim in dims])
            return _reduce(builder, kind, view_of_dims(builder, view, rest), still, value.dtype)
    (base,) = view.operands
    if base.operation != "constant":
        return None
    number = number_of(base)
    count = prod([view.shape[dim] for dim in dims])
    if kind == "sum" and value.dtype.kind in "iu":
        return builder.fill(wrap(number * count, value.dtype), value.dtype, value.shape)
    if kind == "sum" and number == 0:
        return builder.fill(0, value.dtype, value.shape)
    if kind == "prod" and number == 1 and value.dtype.kind != "c":
        return builder.fill(1, value.dtype, value.shape)
    return None


def simplify_update(builder: Builder, value: Value) -> Value | None:
    """Skip an update of everything, of nothing, with what is there already, or before the same."""
    whole, part = value.operands
    offset, strides = value.attributes["offset"], value.attributes["strides"]
    if 0 in part.shape:
        return whole
    if prod(part.shape) == prod(whole.shape) and is_contiguous(part.shape, offset, strides):
        return builder.reshape(part, whole.shape)
    window = (offset, strides)
    if whole.operation == "update":
        before = whole.attributes["offset"], whole.attributes["strides"]
        if whole.operands[1].shape == part.shape and same_window(part.shape, window, before):
            first = whole.operands[0]
            return builder.add(
                Value(
                    "update",
                    (first, part),
                    value.shape,
                    value.dtype,
                    value.origin,
                    **value.attributes,
                )
            )
    base, read = _source(part)
    if base is whole:
        if same_window(part.shape, window, read):
            return whole
    elif base.operation == "constant" and _source(whole)[0] is base:
        return whole
    return None


def simplify_join(builder: Builder, value: Value) -> Value | None:
    """Take joins in joins apart, and read together what was one."""
    starts, parts = value.attributes["starts"], value.operands
    if len(parts) == 1:
        return parts[0]
    if any(part.operation == "join" for part in parts) and sum(map(_count, parts)) <= SUMMED_PARTS:
        operands: list[Value] = []
        places: list[tuple[int, ...]] = []
        for part, start in zip(parts, starts, strict=True):
            if part.operation != "join":
                operands.append(part)
                places.append(start)
                continue
            operands += part.operands
            for own in part.attributes["starts"]:
                places.append(tuple([a + b for a, b in zip(start, own, strict=True)]))
        return builder.add(
            Value("join", operands, value.shape, value.dtype, value.origin, starts=tuple(places))
        )
    base = _source(parts[0])[0]
    if base.operation == "constant" and all(_source(part)[0] is base for part in parts):
        return builder.expand(base, value.shape)
    return _with_longer_parts(builder, value)


def _with_longer_parts(builder: Builder, value: Value) -> Value | None:
    """Make one part of parts that follow each other in what they are views of."""
    starts, parts = value.attributes["starts"], value.operands
    dims = {dim for start in starts for dim, at in enumerate(start) if at}
    if len(dims) != 1:
        return None
    (dim,) = dims
    found: list[Value] = []
    stretch = _Stretch(parts[0], dim)
    for part in parts[1:]:
        if not stretch.goes_on_with(part):
            found.append(stretch.whole(builder))
            stretch = _Stretch(part, dim)
    found.append(stretch.whole(builder))
    return None if len(found) == len(parts) else builder.add(join(found, dim))


class _Stretch:
    """Parts that follow each other along a dim, as one view."""

    def __init__(self, part: Value, dim: int) -> None:
        self.first, self.dim, self.length = part, dim, part.shape[dim]
        self.steps: list[int] | None = None  # along the dim, of each map; None of a single element
        if self.length > 1:
            self.steps = self._steps_of(part)

    def _steps_of(self, part: Value) -> list[int]:
        maps = part.attributes.get("maps", ())
        return [dict(each.terms).get(self.dim, 0) for each in maps]

    def _others(self, part: Value) -> Any:
        """Return what has to be the same in all parts."""
        shape = (*part.shape[: self.dim], *part.shape[self.dim + 1 :])
        maps = part.attributes["maps"]
        return shape, [[term for term in each.terms if term[0] != self.dim] for each in maps]

    def goes_on_with(self, part: Value) -> bool:
        """Take another part, if it follows."""
        if not part.operation == self.first.operation == "view":
            return False
        if part.operands != self.first.operands or self._others(part) != self._others(self.first):
            return False
        before, after = self.first.attributes["maps"], part.attributes["maps"]
        moved = [b.offset - a.offset for a, b in zip(before, after, strict=True)]
        steps = self.steps
        if steps is None:
            steps = moved
        if moved != [step * self.length for step in steps]:
            return False
        if part.shape[self.dim] > 1 and self._steps_of(part) != steps:
            return False
        self.steps = steps
        self.length += part.shape[self.dim]
        return True

    def whole(self, builder: Builder) -> Value:
        """Return all of the parts as one."""
        first = self.first
        if self.steps is None or self.length == first.shape[self.dim]:
            return first
        maps = []
        for (offset, terms), step in zip(first.attributes["maps"], self.steps, strict=True):
            others = [term for term in terms if term[0] != self.dim]
            along = [(self.dim, step)] if step else []
            maps.append(Affine(offset, tuple(sorted(others + along))))
        shape = (*first.shape[: self.dim], self.length, *first.shape[self.dim + 1 :])
        return builder.view(first.operands[0], shape, maps)


def _count(value: Value) -> int:
    return len(value.operands) if value.operation == "join" else 1


def _source(value: Value) -> tuple[Value, Any]:
    """Return what a view is of and where it reads; for any other value, itself."""
    if value.operation != "view":
        return value, (0, strides_of(value.shape))
    (base,), maps = value.operands, value.attributes["maps"]
    return base, flat(base.shape, value.shape, maps)
