"""The statements of a loop nest by where they stand, for what writes outputs and loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.codegen.loops import ZERO, Expression, Fold, Name, Statement, Store
from numgrad.jit.emit.analysis import Analysis
from numgrad.jit.emit.statements import ElementCode
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.symbolic_sizes import Size, symbol
from numgrad.jit.schedule.nests import LoopOutput

__all__ = ["NestParts"]


class NestParts:
    """What of a nest stands outside of its rows.

    Parameters
    ----------
    facts : Analysis
    code : ElementCode
        Which knows what stands in front of all loops, and of passes.

    Attributes
    ----------
    item_start : list of Statement
        In front of the rows of an item.
    finish : list of Statement
        When all items are done.
    rooms : dict
        The dtypes of arrays for the elements of a block.
    runs : dict
        The dtypes of arrays for elements that are reduced, and how many.
    partials : list
        The arrays for the results of blocks: name, dtype, number of elements.
    """

    def __init__(self, facts: Analysis, code: ElementCode) -> None:
        self.facts, self.code, self.position = facts, code, facts.position
        self.item_start: list[Statement] = []
        self.finish: list[Statement] = []
        self.rooms: dict[str, np.dtype[Any]] = {}
        self.runs: dict[str, tuple[np.dtype[Any], int]] = {}
        self.partials: list[tuple[str, np.dtype[Any], Size]] = []

    def counted(self, what: str) -> Size:
        """Return a number of `Analysis.counts`."""
        return symbol(f"{what}{self.position}")

    def buffer(self, value: Value) -> Name:
        """Return the array of a kept value."""
        return Name(self.code.buffers[value])

    def stored(self, output: LoopOutput, value: Expression, origin: str = "") -> Statement:
        """Return what stores the value of an output where it goes."""
        target = self.facts.targets[output]
        assert target is not None
        return Store(self.buffer(output.value), self.code.place(target), value, origin)

    def room(self, fold: Fold, count: int | None) -> str:
        """Return the name of an array for so many values of a reduction, or those of a block."""
        name = f"b{fold.target}"
        if count is None:
            self.rooms[name] = fold.dtype
        else:
            self.runs[name] = fold.dtype, count
        return name

    @property
    def over_rows(self) -> str:
        """The index of the loop over the rows of an item."""
        rows = self.facts.loops.rows
        return rows[0].index if len(rows) == 1 else "row"

    def bounds(self, position: int) -> tuple[Expression, Expression]:
        """Return the bounds of a loop within a row."""
        loops = self.facts.loops
        if position == len(loops.inner) - 1 and not self.facts.visits_rows:
            return Name("lo"), Name("hi")
        return ZERO, self.code.size(loops.inner[position].size)
