"""The statements of a loop nest by where they stand, for what writes outputs and loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from numgrad.base.tuning import SUM_BLOCK
from numgrad.codegen.fold_passes import folding, identity, lane_of
from numgrad.codegen.loops import (
    ONE,
    ZERO,
    Assign,
    Expression,
    Fold,
    For,
    Name,
    Statement,
    Store,
    combine,
    names,
    plus,
    times,
)
from numgrad.jit.emit.analysis import Analysis
from numgrad.jit.emit.scalar_code import new_array, size_code
from numgrad.jit.emit.statements import ElementCode
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.symbolic_sizes import Size, number, product, symbol
from numgrad.jit.schedule.nests import LoopOutput

__all__ = ["ITEM", "LANE", "NestParts"]

ITEM = Name("item")  # the index of the loop over items, which threads share
LANE = Name("at_lane")  # of a row, where rows are added up
(_LEVELS,) = names("numgrad.codegen.fold_runtime", "LEVELS")


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
    item_end : list of Statement
        Behind them.
    combining, checks : list of Statement
        When all items are done: what combines their results, and what looks at these then.
    rooms : dict
        The dtypes of arrays for the elements of a block.
    runs : dict
        The dtypes of arrays for elements that are reduced, or results of blocks, and how many.
    partials : dict
        The arrays for results of blocks of all items: dtype and number of elements.
    """

    def __init__(self, facts: Analysis, code: ElementCode) -> None:
        self.facts, self.code, self.position = facts, code, facts.position
        self.item_start: list[Statement] = []
        self.item_end: list[Statement] = []
        self.combining: list[Statement] = []
        self.checks: list[Statement] = []
        self.rooms: dict[str, np.dtype[Any]] = {}
        self.runs: dict[str, tuple[np.dtype[Any], Any]] = {}
        self.partials: dict[str, tuple[np.dtype[Any], Size]] = {}

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

    def levels(self, fold: Fold) -> str:
        """Return the name of an array for what the blocks of a reduction are combined to."""
        name = f"l{fold.target}"
        self.runs[name] = fold.dtype, _LEVELS
        return name

    def across_items(self, fold: Fold, loop: str) -> tuple[list[Statement], Statement]:
        """Return a reduction of blocks of an item, for one of all items; see `in_blocks`.

        The results of blocks are put side by side: as there is one in each item, or as the items
        have all blocks of their rows, by how many there are in front of these. So are values that
        there is one of in each row.
        """
        if loop == self.over_rows:
            return [], self.in_rows(fold)
        loops, block = self.facts.loops, Name(f"d{fold.target}")
        if not self.facts.appends:
            partial = self.partial(fold, self.counted("items"))
            return [], replace(fold, target=block.id, each=[Store(partial, ITEM, block)], whole="")
        counter = Name(f"k{fold.target}")
        inner = self.code.size(product([loop.size for loop in loops.inner]))
        first = combine("//", times("first_row", inner), SUM_BLOCK) if loops.rows else ZERO
        stored = Store(self.partial(fold, self.counted("runs")), counter, block)
        each: list[Statement] = [stored, Assign(counter.id, plus(counter, 1))]
        before: list[Statement] = [Assign(counter.id, first)]
        return before, replace(fold, target=block.id, each=each, whole="")

    def in_rows(self, fold: Fold) -> Statement:
        """Return what keeps the value of a row, for a reduction of all."""
        rows = self.facts.loops.rows
        partial = self.partial(fold, product([loop.size for loop in rows]), "fold")
        return Store(partial, self.code.flat(rows), fold.value, fold.origin)

    def partial(self, fold: Fold, size: Size, what: str = "total") -> Name:
        """Return a new array for parts of a reduction, which is the rest when all items are done.

        These are results of blocks, or elements (`fold`).
        """
        name = f"p{fold.target}"
        if name not in self.partials:
            self.partials[name] = fold.dtype, size
            nothing = identity(fold.kind, fold.dtype)
            total = folding(what, fold.kind, name, size_code(size), nothing)
            self.combining += [Assign(fold.target, total, fold.origin), *fold.each]
        return Name(name)

    @property
    def finish(self) -> list[Statement]:
        """What stands behind the loop over items."""
        return [*self.combining, *self.checks]

    @property
    def over_rows(self) -> str:
        """The index of the loop over the rows of an item."""
        rows = self.facts.loops.rows
        return rows[0].index if len(rows) == 1 else "row"

    def width_of_rows(
        self, name: str, dtype: np.dtype[Any], is_whole: bool
    ) -> tuple[Expression, Expression]:
        """Make an array for the lanes of rows of an item; `is_whole` if that is all, and few.

        Returns
        -------
        width : expression
            How many elements of a row an item has.
        column : expression
            Which of them an element is.
        """
        loops, code = self.facts.loops, self.code
        if self.facts.visits_rows:
            size = product([loop.size for loop in loops.inner])
            count = self.counted("held") * self.counted("lanes") * size
            if is_whole:
                self.runs[name] = dtype, 2 * SUM_BLOCK
            else:
                code.top.append(new_array(name, code.size(count), dtype))
            return code.size(size), code.flat(loops.inner)
        blocked = self.facts.nest.blocked or frozenset()
        if is_whole or all(axis > max(blocked) for loop in loops.inner for axis in loop.axes):
            self.runs[name] = dtype, 2 * SUM_BLOCK  # there are fewer lanes the wider rows are
        else:
            code.top.append(
                new_array(name, code.size(self.counted("lanes") * number(SUM_BLOCK)), dtype)
            )
        return (combine("-", "hi", "lo"), code.offset()) if loops.inner else (ONE, ZERO)

    def over_columns(self, body: list[Statement]) -> list[Statement]:
        """Return loops over the elements of a row that an item has."""
        for position, loop in reversed(list(enumerate(self.facts.loops.inner))):
            body = [For(loop.index, *self.bounds(position), body)]
        return body

    def blocks_of_item(self) -> Expression:
        """Return how many blocks of rows that are added up an item has."""
        if not self.facts.appends:
            return ONE
        rows, step = combine("-", "last_row", "first_row"), size_code(self.counted("dealt"))
        return combine("//", combine("-", plus(rows, step), 1), step)

    def lane(self, is_first: bool) -> list[Statement]:
        """Return what finds the lane of a row; perhaps a group begins with the first of them."""
        if not self.facts.nest.blocked:
            return []
        row = self.code.flat(self.facts.loops.rows)
        lanes, step = size_code(self.counted("lanes")), size_code(self.counted("dealt"))
        if is_first:
            within: Expression = combine("-", row, "group")
        elif self.facts.appends:
            within = lane_of(row, combine("//", combine("-", row, "first_row"), step), lanes)
        else:
            within = combine("&", row, combine("-", lanes, 1))
        return [Assign(LANE.id, within)]

    def bounds(self, position: int) -> tuple[Expression, Expression]:
        """Return the bounds of a loop within a row."""
        loops = self.facts.loops
        if position == len(loops.inner) - 1 and not self.facts.visits_rows:
            return Name("lo"), Name("hi")
        return ZERO, self.code.size(loops.inner[position].size)
