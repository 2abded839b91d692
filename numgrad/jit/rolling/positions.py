"""Positions: where a turn reads or writes in an array that is handed on.

What begins elsewhere in each turn is found by numbers that are handed on, too, and grow by the same
in each turn: the body gathers and scatters there. Where they do not grow evenly, they are rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple
from weakref import proxy

import numpy as np

from numgrad.jit.ir.constructors import (
    apply,
    broadcast,
    constant,
    delinearised,
    reshape,
    view,
)
from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.rolling.rows import Row
from numgrad.jit.rolling.tokens import Path

__all__ = ["Positions"]

_INT = np.dtype(np.int64)

Numbers = np.ndarray[Any, np.dtype[np.int64]]  # one for each turn, or one for each turn and dim


class Counter(NamedTuple):
    """A number that is handed on.

    Attributes
    ----------
    value : Value
        What stands for it in the body.
    first, step : int
        What it begins with, and by how much it grows in each turn.
    """

    value: Value
    first: int
    step: int


class Positions:
    """The positions that a body takes.

    Parameters
    ----------
    turns : object
        Its ``row(row)`` returns what stands in the body for a row. It has these positions itself,
        so it is not kept by them: a cycle would keep the whole trace until Python looks for one.
    """

    def __init__(self, turns: Any) -> None:
        self._turns = proxy(turns)
        self.counters: dict[tuple[int, ...], Counter] = {}
        self.uneven: dict[bytes, Row] = {}

    def at(self, numbers: Numbers, size: int) -> Value:
        """Return what stands in the body for a position along a dim of some size."""
        first, step = int(numbers[0]), int(numbers[1] - numbers[0])
        if (np.diff(numbers) != step).any():
            key = numbers.tobytes()
            if key not in self.uneven:
                self.uneven[key] = Row(tuple([constant(each, _INT) for each in numbers]))
            row: Value = self._turns.row(self.uneven[key])
            return row
        # Those that grow alike are one number, and another one that is the same in all turns. What
        # does not grow may do so in turns around these.
        group = (step, size) if step else (step, size, first)
        found = self.counters.get(group)
        if found is None:
            found = Counter(Value("input", (), (), _INT, position=0), first, step)
            self.counters[group] = found
        if first == found.first:
            return found.value
        return apply("add", found.value, constant(first - found.first, _INT))

    def read(self, base: Value, path: Path, offsets: Numbers) -> Value:
        """Return views of a value.

        Parameters
        ----------
        base : Value
        path : tuple of Value
            The views, as those of the first turn, the last one first.
        offsets : ndarray
            Where they begin: a row for each turn.
        """
        stop = offsets.shape[1]
        for step in reversed(path):
            if step.operation == "reshape":
                base = reshape(base, step.shape)
                continue
            maps = step.attributes["maps"]
            own = offsets[:, stop - len(maps) : stop]
            stop -= len(maps)
            if (own == own[0]).all():
                base = view(base, maps, step.shape)
                continue
            terms = [each.terms for each in maps]
            found, positions = self._places(base.shape, step.shape, terms, own)
            operands = (base, *positions)
            base = Value("gather", operands, step.shape, base.dtype, step.origin, maps=found)
        return base

    def written(
        self, base: Value, part: Value, offsets: Numbers, strides: Sequence[int], *, adds: bool
    ) -> Value:
        """Return an array with a part put there, or added.

        Parameters
        ----------
        base, part : Value
        offsets : ndarray
            Where, in elements of the flat array: a number for each turn.
        strides : sequence of int
        adds : bool
        """
        box = _box(base.shape, part.shape, strides, offsets)
        if box is None:
            flat = reshape(base, (prod(base.shape),))
            terms = [tuple([(dim, stride) for dim, stride in enumerate(strides) if stride])]
            found = self._scattered(flat, part, terms, offsets[:, None], adds)
            return reshape(found, base.shape)
        return self._scattered(base, part, *box, adds)

    def _scattered(
        self, base: Value, part: Value, terms: Sequence[Any], own: Numbers, adds: bool
    ) -> Value:
        maps, positions = self._places(base.shape, part.shape, terms, own)
        operands = (base, part, *positions)
        return Value("scatter", operands, base.shape, base.dtype, maps=maps, adds=adds)

    def _places(
        self, sizes: Sequence[int], shape: tuple[int, ...], terms: Sequence[Any], own: Numbers
    ) -> tuple[tuple[Affine, ...], list[Value]]:
        """Return the maps of a gather or scatter, and its positions."""
        maps: list[Affine] = []
        positions: list[Value] = []
        for dim, size in enumerate(sizes):
            steps = tuple(terms[dim])
            if not own[:, dim].any() and (steps or size == 1):
                maps.append(Affine(0, steps))
                continue
            maps.append(Affine(0, (*steps, (len(shape) + len(positions), 1))))
            positions.append(broadcast(self.at(own[:, dim], size), shape))
        return tuple(maps), positions


def _box(
    sizes: tuple[int, ...], shape: tuple[int, ...], strides: Sequence[int], offsets: Numbers
) -> tuple[list[Any], Numbers] | None:
    """Return for each dim of an array the steps of a part of it, and where it begins in each turn.

    None if that can't be said dim by dim.
    """
    maps = delinearised(sizes, shape, tuple(strides), int(offsets[0]))
    if maps is None:
        return None
    steps = [prod(sizes[dim + 1 :]) for dim in range(len(sizes))]
    own = offsets[:, None] // np.array(steps, np.int64) % np.array(sizes, np.int64)
    for dim, each in enumerate(maps):
        reach = [step * (shape[other] - 1) for other, step in each.terms]
        low = own[:, dim].min() + sum(min(n, 0) for n in reach)
        high = own[:, dim].max() + sum(max(n, 0) for n in reach)
        if low < 0 or high >= sizes[dim]:
            return None
    return [each.terms for each in maps], own
