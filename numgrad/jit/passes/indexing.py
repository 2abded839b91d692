"""Simplify gathers, scatters and checks of positions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.ir.scalar_semantics import number_of
from numgrad.jit.passes.rewriter import Builder, Shape

__all__ = ["simplify_check", "simplify_gather", "view_of_gather"]


def simplify_check(builder: Builder, value: Value) -> Value | None:
    """Skip a check that is known to find nothing."""
    index, flag = value.operands
    if flag.operation == "constant" and not flag.attributes["value"]:
        return index
    return None


def simplify_gather(builder: Builder, value: Value) -> Value | None:
    """Make a view of what is one, since its positions are known numbers."""
    source, *positions = value.operands
    rank, maps = len(value.shape), value.attributes["maps"]
    numbers = [_number(each) for each in positions]
    if all(number is None for number in numbers):
        return None
    kept = [each for each, number in zip(positions, numbers, strict=True) if number is None]
    order = {position: k for k, position in enumerate(dict.fromkeys(kept))}
    found = []
    for offset, terms in maps:
        steps: dict[int, int] = {}
        for dim, step in terms:
            number = numbers[dim - rank] if dim >= rank else None
            if number is not None:
                offset += step * number
                continue
            target = dim if dim < rank else rank + order[positions[dim - rank]]
            steps[target] = steps.get(target, 0) + step
        found.append(Affine(offset, tuple(sorted(steps.items()))))
    if not order:
        for (offset, _), size in zip(found, source.shape, strict=True):
            if not 0 <= offset < size:
                return None
        return builder.view(source, value.shape, found)
    return _gather(builder, source, list(order), value.shape, found)


def _number(position: Value) -> int | None:
    """Return the number that all positions are, if that is known."""
    if position.operation == "view":
        position = position.operands[0]
    return int(number_of(position)) if position.operation == "constant" else None


def _gather(
    builder: Builder,
    source: Value,
    positions: Sequence[Value],
    shape: Shape,
    maps: Sequence[Affine],
) -> Value:
    operands = (source, *positions)
    return builder.add(
        Value("gather", operands, shape, source.dtype, builder.origin, maps=tuple(maps))
    )


def view_of_gather(
    builder: Builder, gather: Value, shape: Shape, maps: Sequence[Affine]
) -> Value | None:
    """Gather what a view reads, where that is not more."""
    if 0 in shape or prod(shape) > prod(gather.shape):
        return None
    rank = len(gather.shape)
    found = []
    for offset, terms in gather.attributes["maps"]:
        steps: dict[int, int] = {}
        for dim, step in terms:
            if dim >= rank:
                target = len(shape) + dim - rank
                steps[target] = steps.get(target, 0) + step
                continue
            offset += step * maps[dim].offset
            for target, inner in maps[dim].terms:
                steps[target] = steps.get(target, 0) + step * inner
        found.append(Affine(offset, tuple(sorted(steps.items()))))
    positions = [builder.view(each, shape, maps) for each in gather.operands[1:]]
    return _gather(builder, gather.operands[0], positions, shape, found)
