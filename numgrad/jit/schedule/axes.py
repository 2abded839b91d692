"""Axes of a loop nest: which merge, and which are outer, row and inner loops.

Two neighbouring axes along which every array that the nest touches goes on evenly are one loop, so
most nests over contiguous arrays are one flat loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from numgrad.jit.ir.symbolic_sizes import Place, Size, product, symbol
from numgrad.jit.schedule.nests import Nest

__all__ = ["Loop", "Loops"]


@dataclass(frozen=True)
class Loop:
    """Neighbouring axes in one."""

    axes: tuple[int, ...]
    size: Size

    @property
    def axis(self) -> int:
        """The axis whose steps are those of the loop."""
        return self.axes[-1]

    @property
    def index(self) -> str:
        """The name of its index."""
        return f"i{self.axis}"


class Loops:
    """The loops of a nest, outermost first.

    Attributes
    ----------
    outer : list of Loop
        Around everything; what blocked axes give is kept apart for each of their steps.
    rows : list of Loop
        Which are done in blocks.
    inner : list of Loop
        Those of a row, the innermost last. If rows are not reduced there is at most one.
    """

    def __init__(self, nest: Nest, places: Iterable[Place]) -> None:
        self.places = list(places)
        self.sizes = [symbol(name) for name in nest.domain]
        axes = range(len(nest.domain))
        inner, blocked = nest.inner or frozenset(), nest.blocked or frozenset()
        self.reduces_rows = bool(inner)
        self.outer: list[Loop] = []
        self.rows: list[Loop] = []
        self.inner: list[Loop] = []
        if inner:
            self.inner = self._merge([a for a in axes if a in inner])
            rest = [a for a in axes if a not in inner and a not in blocked]
            if blocked:
                self.outer = self._merge(rest)
                self.rows = self._merge([a for a in axes if a in blocked])
            else:
                self.rows = self._merge(rest)
        else:
            kept = self._merge([a for a in axes if a not in blocked], blocked)
            self.inner = kept[-1:]
            if blocked:
                self.outer = kept[:-1]
                self.rows = self._merge([a for a in axes if a in blocked])
            else:
                self.rows = kept[:-1]
        self.used = {loop.axis for loop in self.outer + self.rows + self.inner}

    def _merge(self, axes: list[int], apart: frozenset[int] = frozenset()) -> list[Loop]:
        """Return loops of axes; those on both sides of an axis that is `apart` are not one."""
        groups: list[list[int]] = []
        for axis in axes:
            between = apart.intersection(range(groups[-1][-1], axis)) if groups else apart
            if groups and not between and self._is_even(groups[-1][-1], axis):
                groups[-1].append(axis)
            else:
                groups.append([axis])
        return [Loop(tuple(group), product([self.sizes[a] for a in group])) for group in groups]

    def _is_even(self, axis: int, following: int) -> bool:
        """Whether a step of an axis is a full run of the following one, in all arrays."""
        size, none = self.sizes[following], Size({})
        return all(
            place.steps.get(axis, none) == size * place.steps.get(following, none)
            for place in self.places
        )

    def steps(self, place: Place) -> dict[int, Size]:
        """Return the steps of a place, by the axes of the loops."""
        return {axis: step for axis, step in place.steps.items() if axis in self.used}
