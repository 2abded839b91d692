"""Generate passes over the elements of a row: what is computed, kept and read in each.

A pass is one loop. What is dear and was computed by an earlier pass is kept from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numgrad.codegen.loops import Assign, Expression, Load, Name, Number, Statement, Store
from numgrad.jit.emit.analysis import INNER
from numgrad.jit.emit.statements import ElementCode, comment_of
from numgrad.jit.ir.symbolic_sizes import Size, product
from numgrad.jit.schedule.index_maps import Element, weight
from numgrad.jit.schedule.nests import LoopOutput

__all__ = ["Pass", "RowPasses"]

_KEPT_WEIGHT = 10  # what is dearer than this is not computed again in a later pass


@dataclass
class Pass:
    """One visit to the elements of a row."""

    lines: list[Statement] = field(default_factory=list)  # at each element
    names: dict[Element, Expression] = field(default_factory=dict)
    before: list[Statement] = field(default_factory=list)
    loops: list[Statement] = field(default_factory=list)  # over the elements of a block
    after: list[Statement] = field(default_factory=list)


WriteOutput = Callable[[LoopOutput, Expression, Pass], None]
MakeRoom = Callable[[str, np.dtype[Any], Size], Statement]


class RowPasses:
    """Writes the passes of a nest.

    Parameters
    ----------
    code : ElementCode
    write_output : callable
        Writes what becomes of a value that a pass computed at every element of a row.
    make_room : callable
        Returns what makes an array for a row, given its name, dtype and number of elements.

    Attributes
    ----------
    passes : dict
        By their numbers.
    kept : dict
        The array for each element of a row that a later pass reads.
    """

    def __init__(self, code: ElementCode, write_output: WriteOutput, make_room: MakeRoom) -> None:
        self.facts, self.code = code.facts, code
        self.write_output, self.make_room = write_output, make_room
        self.passes: dict[int, Pass] = {}
        self.kept: dict[Element, str] = {}

    def write(self, number: int, outputs: list[LoopOutput]) -> None:
        """Write the pass that gives some outputs."""
        here = self.passes[number] = Pass()
        roots = [self.facts.root(output) for output in outputs]
        wanted = self._wanted(roots, number)
        for element in self.facts.order:
            if element in wanted:
                self._write_element(element, number, here)
        for output, root in zip(outputs, roots, strict=True):
            self.write_output(output, self.code.name(root, here.names), here)

    def _wanted(self, roots: list[Element], number: int) -> set[Element]:
        """Return the elements of a row that a pass has to compute or read."""
        facts = self.facts
        wanted: set[Element] = set()
        stack = [root for root in roots if facts.level(root) == INNER]
        while stack:
            element = stack.pop()
            if element in wanted:
                continue
            wanted.add(element)
            if self._earlier(element, number) is None:
                stack += [e for e in facts.inputs[element] if facts.level(e) == INNER]
        return wanted

    def _earlier(self, element: Element, number: int) -> int | None:
        """Return the pass before this one that computed an element which is dear."""
        if weight(element[0]) < _KEPT_WEIGHT:
            return None
        for earlier, there in self.passes.items():
            if earlier < number and element in there.names:
                return earlier
        return None

    def _write_element(self, element: Element, number: int, here: Pass) -> None:
        code = self.code
        earlier = self._earlier(element, number)
        if earlier is not None:
            computed: Expression = Load(Name(self._kept(element, earlier)), code.row_place())
        else:
            computed = code.computed(element, here.names)
        if not isinstance(computed, Name | Number):
            name = code.fresh("v")
            code.types[name] = element[0].dtype
            here.lines.append(Assign(name, computed, comment_of(element[0])))
            computed = Name(name)
        here.names[element] = computed

    def _kept(self, element: Element, earlier: int) -> str:
        """Return the name of the row of an element's values, which an earlier pass now keeps."""
        name = self.kept.get(element)
        if name is None:
            name = self.kept[element] = self.code.fresh("w")
            size = product([loop.size for loop in self.facts.loops.inner])
            self.code.top.append(self.make_room(name, element[0].dtype, size))
            there = self.passes[earlier]
            there.lines.append(Store(Name(name), self.code.row_place(), there.names[element]))
        return name
