"""What is another in each turn, put side by side for a loop to take rows of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numgrad.jit.ir.constructors import join, reshape, view
from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.rolling.tokens import rebased

__all__ = ["Row", "is_even", "stack", "step"]


class Row(NamedTuple):
    """What is another in each turn: all of it, in the order of the turns."""

    values: tuple[Value, ...]  # one for each turn
    paths: tuple[tuple[Value, ...], ...] = ()  # the views of them, if these differ


def step(row: Row) -> int:
    """Return by how much each turn is further on in what it takes; 0 if it is no such row."""
    found = _strided(row)
    return 0 if found is None else sum(found[1])


def is_even(row: Row) -> bool:
    """Whether it is views of one value, each as far behind the one before."""
    return _strided(row) is not None


def _strided(row: Row) -> tuple[list[int], list[int]] | None:
    """Return where a row of views begins, and its steps, one for each map on the way.

    None if it takes rows of different values, or not at equal distances.
    """
    if not row.paths or any(value is not row.values[0] for value in row.values):
        return None
    offsets = np.array(
        [
            [each.offset for step in path for each in step.attributes.get("maps", ())]
            for path in row.paths
        ]
    )
    steps = offsets[1] - offsets[0]
    if (np.diff(offsets, axis=0) != steps).any():
        return None
    return offsets[0].tolist(), steps.tolist()


def stack(row: Row, reverse: bool) -> Value:
    """Return what is taken in all turns, along a first dim."""
    turns = len(row.values)
    strided = _strided(row)
    if strided is not None:
        return _stacked_path(row.paths[0], row.values[0], strided[1], turns, reverse)
    parts = [
        rebased(path, base)
        for path, base in zip(row.paths or [()] * turns, row.values, strict=True)
    ]
    if reverse:
        parts.reverse()
    if all(part.operation == "constant" for part in parts):
        numbers = np.array([part.attributes["value"] for part in parts], parts[0].dtype)
        return Value("array", (), numbers.shape, numbers.dtype, array=numbers, made=True)
    return join([reshape(part, (1, *part.shape)) for part in parts], 0)


def _stacked_path(
    path: Sequence[Value], base: Value, steps: Sequence[int], turns: int, reverse: bool
) -> Value:
    """Return views of a value that begin further on in each turn, along a first dim."""
    remaining = list(steps)
    counts = [len(step.attributes.get("maps", ())) for step in path]
    starts = np.cumsum([0, *counts])
    found, has_turns = base, False
    for k in range(len(path) - 1, -1, -1):
        step = path[k]
        own = remaining[starts[k] : starts[k] + counts[k]]
        if step.operation == "reshape":
            shape = (turns, *step.shape) if has_turns else step.shape
            found = reshape(found, shape)
            continue
        if not has_turns and not any(own):
            found = view(found, step.attributes["maps"], step.shape)
            continue
        maps = [] if not has_turns else [Affine(0, ((0, 1),))]
        for each, by in zip(step.attributes["maps"], own, strict=True):
            terms = [(dim + 1, factor) for dim, factor in each.terms]
            offset = each.offset
            if by:
                offset += by * (turns - 1) if reverse else 0
                terms.insert(0, (0, -by if reverse else by))
            maps.append(Affine(offset, tuple(terms)))
        found = view(found, maps, (turns, *step.shape))
        has_turns = True
    return found
