"""What is another in each turn, put side by side for a loop to take rows of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from numgrad.jit.ir.constructors import broadcast, join, reshape, view
from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.rolling.tokens import are_alike, rebased

__all__ = ["Row", "is_even", "stack", "step"]


FEW_RUNS = 4  # of a number in all turns of a run: of so many the numbers are an array


class Row(NamedTuple):
    """What is another in each turn: all of it, in the order of the turns."""

    values: tuple[Value, ...]  # one for each turn
    paths: tuple[tuple[Value, ...], ...] = ()  # the views of them, if these differ


def step(row: Row) -> int:
    """Return by how much each turn is further on in what it takes; 0 if it is no such row."""
    found = _strided(row)
    return 0 if found is None else sum(found.steps)


def is_even(row: Row) -> bool:
    """Whether it is views of one value, each as far behind the one before."""
    found = _strided(row)
    return found is not None and found.stop - found.start == len(row.values)


class _Strided(NamedTuple):
    """The turns that take views of one value at equal distances, and these, one for each map."""

    start: int
    stop: int
    steps: list[int]


def _strided(row: Row) -> _Strided | None:
    """Return which turns take views of one value, all of them but perhaps one at either end.

    None if they take rows of different values, or not at equal distances.
    """
    if not row.paths:
        return None
    count = len(row.values)
    middle = row.paths[1]
    base = row.values[1]
    start, stop = 0, count
    for turn in range(count):
        if row.values[turn] is not base or not are_alike(row.paths[turn], middle):
            if 0 < turn < count - 1:
                return None
            start, stop = (1, stop) if turn == 0 else (start, turn)
    if stop - start < 2:
        return None
    offsets = np.array(
        [
            [each.offset for step in path for each in step.attributes.get("maps", ())]
            for path in row.paths[start:stop]
        ],
        np.int64,
    ).reshape(stop - start, -1)
    steps = offsets[2] - offsets[1] if stop - start > 2 else offsets[1] - offsets[0]
    uneven = np.flatnonzero((np.diff(offsets, axis=0) != steps).any(1))
    last = stop - start - 2
    if not set(uneven.tolist()) <= {0, last}:
        return None
    if len(uneven) and uneven[0] == 0:
        start += 1
    if last in uneven:
        stop -= 1
    return _Strided(start, stop, steps.tolist()) if stop - start > 1 else None


def stack(row: Row, reverse: bool) -> Value:
    """Return what is taken in all turns, along a first dim."""
    turns = len(row.values)
    strided = _strided(row)
    start, stop = (turns, turns) if strided is None else (strided.start, strided.stop)
    parts = [
        rebased(path, base)
        for path, base in zip(row.paths or [()] * turns, row.values, strict=True)
    ]
    if strided is None and all(part.operation == "constant" for part in parts):
        if reverse:
            parts.reverse()
        return _numbers(parts)
    found = [reshape(part, (1, *part.shape)) for part in (*parts[:start], *parts[stop:])]
    if strided is not None:
        whole = _stacked_path(
            row.paths[start], row.values[start], strided.steps, stop - start, reverse
        )
        found.insert(start, whole)
    if reverse:
        found.reverse()
    return join(found, 0)


def _numbers(constants: Sequence[Value]) -> Value:
    """Return numbers along a dim: an array, or where few alternate what loops fill in.

    Whether it is the first turn is such a row. With an array in it a program is not compiled as one
    function, unless that is so short that its numbers are written down.
    """
    dtype = constants[0].dtype
    numbers = np.array([each.attributes["value"] for each in constants], dtype)
    bits = numbers.view(np.uint8).reshape(len(numbers), -1)
    ends = np.flatnonzero((bits[1:] != bits[:-1]).any(1)) + 1
    if len(ends) >= FEW_RUNS:
        return Value("array", (), numbers.shape, dtype, array=numbers, made=True)
    bounds = [0, *ends.tolist(), len(numbers)]
    return join([broadcast(constants[a], (b - a,)) for a, b in pairwise(bounds)], 0)


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
