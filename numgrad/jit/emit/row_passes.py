"""Generate passes over the elements of a row: what is computed, kept and read in each.

A pass is one loop, unless it has sines in it: those are computed for a block of angles at a time
(see `numgrad.math.angle_blocks`), in between two *phases*. What is dear and was computed by an
earlier pass is kept from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numgrad.codegen.expression import scalar
from numgrad.codegen.loop_passes import names_in, rewritten
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Do,
    Expression,
    Load,
    Name,
    Number,
    Statement,
    Store,
    call,
    combine,
)
from numgrad.jit.emit.analysis import INNER
from numgrad.jit.emit.nest_parts import NestParts
from numgrad.jit.emit.scalar_code import type_code
from numgrad.jit.emit.statements import comment_of
from numgrad.jit.ir.symbolic_sizes import ONE, Size, product
from numgrad.jit.schedule.index_maps import Element, weight
from numgrad.jit.schedule.schedule import LoopOutput

__all__ = ["Pass", "RowPasses"]

_KEPT_WEIGHT = 10  # what is dearer than this is not computed again in a later pass


@dataclass
class Pass:
    """One visit to the elements of a row."""

    phases: dict[int, list[Statement]] = field(default_factory=dict)
    trigonometric: dict[int, list[Statement]] = field(default_factory=dict)  # calls after a phase
    names: dict[int, dict[Element, Expression]] = field(default_factory=dict)
    before: list[Statement] = field(default_factory=list)
    flush: list[Statement] = field(default_factory=list)
    after: list[Statement] = field(default_factory=list)


WriteOutput = Callable[[LoopOutput, Expression, Pass, list[Statement]], None]
MakeRoom = Callable[[str, np.dtype[Any], Size], Statement]


class RowPasses:
    """Writes the passes of a nest.

    Parameters
    ----------
    parts : NestParts
        That get rooms for the elements of blocks.
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

    def __init__(self, parts: NestParts, write_output: WriteOutput, make_room: MakeRoom) -> None:
        self.facts, self.code, self.rooms = parts.facts, parts.code, parts.rooms
        self.write_output, self.make_room = write_output, make_room
        self.passes: dict[int, Pass] = {}
        self.kept: dict[Element, str] = {}

    def write(self, number: int, outputs: list[LoopOutput]) -> None:
        """Write the pass that gives some outputs."""
        facts = self.facts
        here = self.passes[number] = Pass()
        roots = [facts.root(output) for output in outputs]
        last = max(facts.depth[root] if facts.level(root) == INNER else 0 for root in roots)
        targets: dict[int, list[Element]] = {last: roots}
        pending: dict[Element, str] = {}
        for phase in range(last, -1, -1):
            wanted = self._wanted(targets.get(phase, []), number, phase, targets, pending)
            targets[phase] = [e for e in facts.order if e in wanted]
        for phase in range(last + 1):
            names = here.names[phase] = {}
            lines = here.phases[phase] = []
            for element in targets[phase]:
                self._write_element(element, number, phase, names, lines, pending)
            self._write_trigonometric(phase, here, names, pending)
        for output, root in zip(outputs, roots, strict=True):
            name = self.code.name(root, here.names[last])
            self.write_output(output, name, here, here.phases[last])

    def _wanted(
        self,
        roots: list[Element],
        number: int,
        phase: int,
        targets: dict[int, list[Element]],
        trigonometric: dict[Element, str],
    ) -> set[Element]:
        """Return the elements of a row that a phase has to compute or read."""
        facts = self.facts
        wanted: set[Element] = set()
        stack = [root for root in roots if facts.level(root) == INNER]
        while stack:
            element = stack.pop()
            if element in wanted:
                continue
            wanted.add(element)
            if self._earlier(element, number) is not None:
                continue
            if facts.is_trigonometric(element) and facts.depth[element] <= phase:
                if element not in trigonometric:
                    trigonometric[element] = self.code.fresh("w")
                    angle = facts.inputs[element][0]
                    targets.setdefault(facts.depth[element] - 1, []).append(angle)
                continue
            stack += [e for e in facts.inputs[element] if facts.level(e) == INNER]
        return wanted

    def _earlier(self, element: Element, number: int) -> int | None:
        """Return the pass before this one that computed an element which is dear."""
        if weight(element[0]) < _KEPT_WEIGHT:
            return None
        for earlier, there in self.passes.items():
            if earlier < number and any(element in names for names in there.names.values()):
                return earlier
        return None

    def _write_element(
        self,
        element: Element,
        number: int,
        phase: int,
        names: dict[Element, Expression],
        lines: list[Statement],
        trigonometric: dict[Element, str],
    ) -> None:
        facts, code = self.facts, self.code
        earlier = self._earlier(element, number)
        computed: Expression
        if earlier is not None:
            kept = self._kept(element, earlier)
            computed = Load(Name(kept), code.row_place())
        elif element in trigonometric and facts.depth[element] <= phase:
            computed = Load(Name(trigonometric[element]), code.offset())
        elif facts.supposes_near and facts.has_angle(element):
            angle = code.name(facts.inputs[element][0], names)
            lines.append(Assign("far", combine("|", "far", call(scalar("is_far"), angle))))
            value = element[0]
            near = call(scalar(f"{value.operation}_near"), angle)
            computed = call(type_code(value.dtype), near)
            code.is_dear = True
        else:
            computed = code.computed(element, names)
        if isinstance(computed, Name | Number):
            names[element] = computed
            return
        name = code.fresh("v")
        names[element] = Name(name)
        lines.append(Assign(name, computed, comment_of(element[0])))

    def _kept(self, element: Element, earlier: int) -> str:
        """Return the name of the row of an element's values, which an earlier pass now keeps."""
        name = self.kept.get(element)
        if name is None:
            name = self.kept[element] = self.code.fresh("w")
            size = product([loop.size for loop in self.facts.loops.inner])
            self.code.top.append(self.make_room(name, element[0].dtype, size))
            there = self.passes[earlier]
            phase = max(p for p, names in there.names.items() if element in names)
            value = there.names[phase][element]
            there.phases[phase].append(Store(Name(name), self.code.row_place(), value))
        return name

    def _write_trigonometric(
        self,
        phase: int,
        here: Pass,
        names: dict[Element, Expression],
        trigonometric: dict[Element, str],
    ) -> None:
        """Let sines be computed for a block whose angles are known after a phase."""
        facts, lines = self.facts, here.phases[phase]
        calls = here.trigonometric[phase] = []
        of_angle: dict[Element, list[Element]] = {}
        for element, buffer in trigonometric.items():
            if facts.depth[element] == phase + 1:
                self.rooms[buffer] = element[0].dtype
                of_angle.setdefault(self._unviewed(facts.inputs[element][0]), []).append(element)
        places: dict[Element, tuple[str, Expression]] = {}
        for angle in of_angle:
            place = self._place_of_angles(angle, trigonometric)
            if place is None:
                buffer = self.code.fresh("w")
                self.rooms[buffer] = angle[0].dtype
                lines.append(Store(Name(buffer), self.code.offset(), names[angle]))
                place = buffer, ZERO
            places[angle] = place
        for angle in of_angle:
            if angle in names:
                _drop_unused(lines, names[angle])
        for angle, found in of_angle.items():
            source, start = places[angle]
            for together in _together(found):
                function = "_".join(["near", *(element[0].operation for element in together)])
                self.code.is_dear = True
                buffers = [trigonometric[element] for element in together]
                length = combine("-", "hi", "lo")
                near = call(Name(function, _ANGLE_BLOCKS), source, start, length, *buffers)
                calls.append(Do(near, comment_of(together[0][0])))

    def _unviewed(self, element: Element) -> Element:
        """Return what has the same number as an element, but for views of it."""
        inputs = self.facts.inputs
        while inputs[element] and not (
            element[0].is_elementwise or element in self.facts.gather_places
        ):
            element = inputs[element][0]
        return element

    def _place_of_angles(
        self, angle: Element, trigonometric: Mapping[Element, str]
    ) -> tuple[str, Expression] | None:
        """Return where the angles of a block are anyway: in which array, and from where on.

        That is an array that is read, or sines that are angles in turn.
        """
        if angle in trigonometric:
            return trigonometric[angle], ZERO
        last = self.facts.loops.inner[-1]
        if not self.facts.inputs[angle] and angle in self.facts.read_places:
            place = self.facts.read_places[angle]
            if self.facts.loops.steps(place).get(last.axis) == ONE:
                index, first = Name(last.index), Name("lo")
                code = rewritten(self.code.place(place), lambda e: first if e == index else e)
                return self.code.buffers[angle[0]], code
        return None


_ANGLE_BLOCKS = "numgrad.math.angle_blocks"


def _drop_unused(lines: list[Statement], name: Expression) -> None:
    """Drop what computes a variable, if nothing else is done with it."""
    if isinstance(name, Name) and name.id not in names_in(lines):
        lines[:] = [line for line in lines if not (type(line) is Assign and line.target == name.id)]


def _together(trigonometric: list[Element]) -> list[list[Element]]:
    """Return what to compute in one go of the sines and so on of an angle: sine and cosine."""
    sines = [element for element in trigonometric if element[0].operation == "sin"]
    cosines = [element for element in trigonometric if element[0].operation == "cos"]
    pairs = [list(pair) for pair in zip(sines, cosines, strict=False)]
    return [
        *pairs,
        *([element] for element in trigonometric if not any(element in pair for pair in pairs)),
    ]
