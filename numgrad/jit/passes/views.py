"""Simplify views and reshapes: composed, removed, moved through other operations.

Nothing here touches a number, so every identity is exact: it is about which element is read. A map
of a view is linear in the index of the result, so a view of a view is a view (`compose`). A reshape
that splits dims, or merges dims that lie as in row-major order, is a view too (`reshaped_steps`);
one that merges others is not, since its index needs a division.

A view may read the same element for all indices of a dim. Such a dim carries no information, and
elementwise operations are computed without it (`core`, and `numgrad.jit.passes.algebra`):
``exp(expand(x))`` is ``expand(exp(x))``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import Any

from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.passes.indexing import view_of_gather
from numgrad.jit.passes.rewriter import Builder, Shape

__all__ = [
    "box_of",
    "compose",
    "core",
    "is_contiguous",
    "simplify_reshape",
    "simplify_view",
    "view_of_dims",
]

_FIRST = Affine(0, ())


def compose(outer: Sequence[Affine], inner: Sequence[Affine]) -> tuple[Affine, ...]:
    """Return the maps of the view `outer` of the view `inner`."""
    result = []
    for offset, terms in inner:
        if len(terms) == 1 and offset == 0 and terms[0][1] == 1:
            result.append(outer[terms[0][0]])
            continue
        steps: dict[int, int] = {}
        for dim, step in terms:
            offset += step * outer[dim].offset
            for target, outer_step in outer[dim].terms:
                steps[target] = steps.get(target, 0) + step * outer_step
        result.append(Affine(offset, tuple(sorted(steps.items()))))
    return tuple(result)


def _normal(maps: Sequence[Affine], shape: Shape) -> tuple[Affine, ...]:
    """Return maps without the terms that are 0 for every index."""
    if all(step and shape[dim] != 1 for _, terms in maps for dim, step in terms):
        return tuple(maps)
    return tuple(
        [
            Affine(offset, tuple([t for t in terms if t[1] and shape[t[0]] != 1]))
            for offset, terms in maps
        ]
    )


def _is_identity(maps: Sequence[Affine], shape: Shape, own: Shape) -> bool:
    """Whether a view with normal maps is its operand."""
    if shape != own:
        return False
    for dim, (offset, terms) in enumerate(maps):
        if offset or terms != (() if shape[dim] == 1 else ((dim, 1),)):
            return False
    return True


def simplify_view(builder: Builder, value: Value) -> Value | None:
    """Compose, drop what is the identity, read through an update, and keep the rest."""
    (operand,), shape = value.operands, value.shape
    given: Sequence[Affine] = value.attributes["maps"]
    maps = given
    if operand.operation == "view":
        maps = compose(maps, operand.attributes["maps"])
        operand = operand.operands[0]
    if 0 not in shape:
        maps = _normal(maps, shape)
    if _is_identity(maps, shape, operand.shape):
        return operand
    if operand.operation == "update":
        found = _view_of_update(builder, operand, shape, tuple(maps))
        if found is not None:
            return found
    elif operand.operation == "join":
        found = _view_of_join(builder, operand, shape, maps)
        if found is not None:
            return found
    elif operand.operation == "gather":
        found = view_of_gather(builder, operand, shape, maps)
        if found is not None:
            return found
    elif operand.operation == "reshape" and _row_major(operand.shape, shape, maps):
        return builder.reshape(operand.operands[0], shape)
    if operand is not value.operands[0] or maps != given:
        return builder.view(operand, shape, maps)
    return None


def core(builder: Builder, value: Value) -> Value:
    """Return a value without the dims along which it repeats: it broadcasts to `value`."""
    if value.operation != "view":
        return value
    found = builder.facts.get(("core", value))
    if found is None:
        found = builder.facts["core", value] = _core(builder, value)
    result: Value = found
    return result


def _core(builder: Builder, value: Value) -> Value:
    (operand,), shape, maps = value.operands, value.shape, value.attributes["maps"]
    if operand.operation == "constant" and 0 not in shape:
        return operand
    used = {dim for _, terms in maps for dim, _ in terms}
    if all(n == 1 or dim in used for dim, n in enumerate(shape)) or 0 in shape:
        return value
    small = [n if dim in used else 1 for dim, n in enumerate(shape)]
    lead = 0
    while len(small) - lead > len(operand.shape) and small[lead] == 1:
        lead += 1
    if lead:
        maps = [Affine(o, tuple([(dim - lead, s) for dim, s in terms])) for o, terms in maps]
    return builder.view(operand, tuple(small[lead:]), maps)


def view_of_dims(builder: Builder, operand: Value, kept: Sequence[int]) -> Value:
    """Return the first elements along all dims but those in `kept`, which are the result's."""
    maps = [_FIRST] * len(operand.shape)
    for position, dim in enumerate(kept):
        maps[dim] = Affine(0, ((position, 1),))
    return builder.view(operand, tuple([operand.shape[dim] for dim in kept]), maps)


# --- reshape ----------------------------------------------------------------------------------


def simplify_reshape(builder: Builder, value: Value) -> Value | None:
    """Skip a reshape of a reshape; make a view of what is one."""
    (operand,), shape = value.operands, value.shape
    if operand.operation == "reshape":
        return builder.reshape(operand.operands[0], shape)
    if operand.shape == shape:
        return operand
    if 0 in shape:
        return None
    base, maps = operand, None
    if operand.operation == "view":
        base, maps = operand.operands[0], operand.attributes["maps"]
    rank = range(len(base.shape))
    if maps is None:
        steps = [tuple([int(d == dim) for d in rank]) for dim in rank]
        offsets = [0] * len(base.shape)
    else:
        by_dim = [dict(each.terms) for each in maps]
        steps = [tuple([by.get(dim, 0) for by in by_dim]) for dim in range(len(operand.shape))]
        offsets = [each.offset for each in maps]
    reshaped = reshaped_steps(operand.shape, steps, shape, len(base.shape))
    if reshaped is None:
        if maps is not None and _row_major(base.shape, operand.shape, maps):
            return builder.reshape(base, shape)
        return None
    terms = [
        tuple([(dim, step[d]) for dim, step in enumerate(reshaped) if step[d] and shape[dim] != 1])
        for d in rank
    ]
    return builder.view(base, shape, [Affine(*each) for each in zip(offsets, terms, strict=True)])


def reshaped_steps(
    shape: Shape, steps: Sequence[tuple[int, ...]], new: Shape, rank: int
) -> list[tuple[int, ...]] | None:
    """Return for each dim of a view that is reshaped what a step along it does to the index.

    Parameters
    ----------
    shape : tuple of int
        The view's shape, without a 0.
    steps : sequence of tuple of int
        For each of its dims how far a step along it goes, in each dim of the operand.
    new : tuple of int
        The new shape.
    rank : int
        How many dims the operand has.

    Returns
    -------
    list or None
        None if the result is no view: two dims are merged, and a step along the outer one is not
        as far as all steps along the inner one.
    """
    old = [(n, step) for n, step in zip(shape, steps, strict=True) if n != 1]
    result = [(0,) * rank] * len(new)
    first = 0  # of the old dims in the group
    dim = 0  # of the new ones
    while first < len(old):
        while new[dim] == 1:
            dim += 1
        last, inner = first, dim
        size, reached = old[first][0], new[dim]
        while size != reached:
            if size < reached:
                last += 1
                size *= old[last][0]
            else:
                inner += 1
                reached *= new[inner]
        for k in range(first, last):
            length, step = old[k + 1]
            if any(a != length * b for a, b in zip(old[k][1], step, strict=True)):
                return None
        step = old[last][1]
        for k in range(inner, dim - 1, -1):
            result[k] = step
            step = tuple([n * new[k] for n in step])
        first, dim = last + 1, inner + 1
    return result


# --- where a view lies in memory --------------------------------------------------------------


def strides_of(shape: Shape) -> tuple[int, ...]:
    """Return the strides, in elements, of an array in row-major order."""
    strides, stride = [], 1
    for n in reversed(shape):
        strides.append(stride)
        stride *= n
    return tuple(reversed(strides))


def flat(own: Shape, shape: Shape, maps: Sequence[Affine]) -> tuple[int, tuple[int, ...]]:
    """Return offset and strides of a view in terms of its operand's elements in order."""
    offset, steps = 0, [0] * len(shape)
    for stride, each in zip(strides_of(own), maps, strict=True):
        offset += stride * each.offset
        for dim, step in each.terms:
            steps[dim] += stride * step
    return offset, tuple(steps)


def is_contiguous(shape: Shape, offset: int, strides: Sequence[int]) -> bool:
    """Whether elements lie in row-major order from the first on."""
    expected = strides_of(shape)
    return offset == 0 and all(
        n == 1 or a == b for n, a, b in zip(shape, strides, expected, strict=True)
    )


def _row_major(own: Shape, shape: Shape, maps: Sequence[Affine]) -> bool:
    """Whether a view has all elements of its operand in order: it is a reshape."""
    return prod(own) == prod(shape) and is_contiguous(shape, *flat(own, shape, maps))


# --- updates and joins --------------------------------------------------------------------------


def _view_of_update(
    builder: Builder, update: Value, shape: Shape, maps: tuple[Affine, ...]
) -> Value | None:
    """Read the part that was written, or past it, if the view has only the one or the other."""
    whole, part = update.operands
    offset, strides = flat(update.shape, shape, maps)
    if 0 in shape:
        return None
    window: Any = (update.attributes["offset"], update.attributes["strides"])
    if shape == part.shape and same_window(shape, (offset, strides), window):
        return part
    if _disjoint((offset, strides, shape), (*window, part.shape), update.shape):
        return builder.view(whole, shape, maps)
    return None


def same_window(shape: Shape, one: tuple[int, Any], other: tuple[int, Any]) -> bool:
    """Whether two windows of a shape have the same elements in the same places."""
    return one[0] == other[0] and all(
        n == 1 or a == b for n, a, b in zip(shape, one[1], other[1], strict=True)
    )


def _view_of_join(
    builder: Builder, join: Value, shape: Shape, maps: Sequence[Affine]
) -> Value | None:
    """Read the part that the view is of, if it is one."""
    if 0 in shape:
        return None
    reach = []
    for offset, terms in maps:
        ends = [step * (shape[dim] - 1) for dim, step in terms]
        low = offset + sum([min(end, 0) for end in ends])
        reach.append((low, offset + sum([max(end, 0) for end in ends])))
    for part, start in zip(join.operands, join.attributes["starts"], strict=True):
        if all(
            first <= low and high < first + n
            for (low, high), first, n in zip(reach, start, part.shape, strict=True)
        ):
            own = [
                Affine(offset - first, terms)
                for (offset, terms), first in zip(maps, start, strict=True)
            ]
            return builder.view(part, shape, own)
    return None


def box_of(
    shape: Shape, offset: int, strides: Sequence[int], lengths: Shape
) -> list[tuple[int, int]] | None:
    """Return where a window begins and ends along each dim of `shape`.

    None if it has gaps, or not its dims in order.
    """
    own = strides_of(shape)
    low, rest = [], offset
    for stride in own:
        low.append(rest // stride)
        rest -= low[-1] * stride
    high = [start + 1 for start in low]
    dim = 0
    for stride, n in zip(strides, lengths, strict=True):
        if n == 1:
            continue
        while dim < len(shape) and (shape[dim] == 1 or own[dim] != stride):
            dim += 1
        if dim == len(shape):
            return None
        high[dim] = low[dim] + n
        dim += 1
    if any(last > n for last, n in zip(high, shape, strict=True)):
        return None
    return list(zip(low, high, strict=True))


def _disjoint(one: Any, other: Any, shape: Shape) -> bool:
    """Whether two windows, (offset, strides, shape), have no element in common, for sure."""
    # All elements of a window are equal modulo every common divisor of its strides.
    step = 0
    for _, strides, lengths in (one, other):
        step = gcd(step, *[s for s, n in zip(strides, lengths, strict=True) if n != 1])
    if step == 0:
        return bool(one[0] != other[0])
    if (one[0] - other[0]) % step:
        return True
    first, second = _box(shape, *one), _box(shape, *other)
    if first is None or second is None:
        return False
    return any(a[1] < b[0] or b[1] < a[0] for a, b in zip(first, second, strict=True))


def _box(
    shape: Shape, offset: int, strides: Sequence[int], lengths: Shape
) -> list[tuple[int, int]] | None:
    """Return the first and the last index along each dim of `shape` in a window; None if unsure."""
    own = strides_of(shape)
    low, rest = [], offset
    for stride in own:
        low.append(rest // stride if stride else 0)
        rest -= low[-1] * stride
    high = list(low)
    for stride, n in zip(strides, lengths, strict=True):
        if n == 1:
            continue
        if stride <= 0:
            return None
        # The dim whose stride is the largest that divides this one, among those not larger.
        for dim, size in enumerate(own):
            if size and size <= stride and stride % size == 0 and shape[dim] != 1:
                high[dim] += stride // size * (n - 1)
                break
        else:
            return None
    if any(last >= n for last, n in zip(high, shape, strict=True)):
        return None  # a step leads from the end of a row into the next
    return list(zip(low, high, strict=True))
