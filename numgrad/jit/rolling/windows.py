"""Arrays that turns fill part by part: ``out[k] = ...``, and gradients of rows.

Each turn writes a window of its own, and nobody reads what others wrote, so that it is enough to
stack the parts, and to write all of them at once behind the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from numgrad.jit.ir.constructors import apply, update
from numgrad.jit.ir.graph import Value
from numgrad.jit.rolling.tokens import Operation, Path

__all__ = ["Window", "place_of_path", "window_of"]


class Window(NamedTuple):
    """What a turn writes of an array.

    Attributes
    ----------
    made : int
        The operation that writes.
    added : int or None
        The one that adds what was written, to zeros, to the array; None if it is the array itself.
    init : Value
        The array before the first turn.
    offset, step : int
        Where the window of the first turn begins, and how far on it is in each turn.
    strides : tuple of int
    """

    made: int
    added: int | None
    init: Value
    offset: int
    step: int
    strides: tuple[int, ...]

    @property
    def final(self) -> int:
        """The operation whose last result is the array behind the loop."""
        return self.made if self.added is None else self.added

    def offset_in(self, turn: int) -> int:
        """Return where the window of a turn begins."""
        return self.offset + turn * self.step

    def filled(self, parts: Value, reverse: bool, zeros: Value) -> Value:
        """Return the array behind the loop, given all parts along a first dim."""
        turns = parts.shape[0]
        first, step = (
            (self.offset_in(turns - 1), -self.step) if reverse else (self.offset, self.step)
        )
        if self.added is None:
            return update(self.init, parts, first, (step, *self.strides))
        # Each turn adds zeros elsewhere, of which -0.0 becomes 0.0.
        written = update(zeros, parts, first, (step, *self.strides))
        return apply("add", apply("add", self.init, written), zeros)


def window_of(
    column: Sequence[Operation], made: int, added: int | None, init: Value
) -> Window | None:
    """Return the window that an update writes in each turn; None if windows meet."""
    offsets = [each.offsets[-1][0] for each in column]
    step = offsets[1] - offsets[0]
    if any(after - before != step for before, after in pairwise(offsets)):
        return None
    value = column[0].value
    part, strides = value.operands[1], value.attributes["strides"]
    reach = 0
    for stride, length in sorted(
        [(abs(step), len(column)), *((abs(s), n) for s, n in zip(strides, part.shape, strict=True))]
    ):
        if length > 1:
            if stride <= reach:
                return None
            reach += stride * (length - 1)
    return Window(made, added, init, offsets[0], step, strides)


def place_of_path(path: Path, base: Value) -> tuple[int, tuple[int, ...]] | None:
    """Return offset and strides, in elements of an array, of a single view of it."""
    if len(path) != 1 or path[0].operation != "view":
        return None
    strides = [0] * len(path[0].shape)
    offset, size = 0, 1
    for length, each in zip(
        reversed(base.shape), reversed(path[0].attributes["maps"]), strict=True
    ):
        offset += each.offset * size
        for dim, step in each.terms:
            strides[dim] += step * size
        size *= length
    return offset, tuple(strides)
