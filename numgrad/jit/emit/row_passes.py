"""Generate passes over the elements of a row: what is computed, kept and read in each.

A pass is one loop, unless it has sines in it: those are computed for a block of angles at a time
(see `numgrad.codegen.loop_runtime`), in between two *phases*. What is dear and was computed by an
earlier pass is kept from there.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numgrad.jit.emit.analysis import INNER
from numgrad.jit.emit.scalar_code import type_code
from numgrad.jit.emit.statements import Line, NestLines, comment_of
from numgrad.jit.ir.symbolic_sizes import ONE, product
from numgrad.jit.schedule.index_maps import Element, weight
from numgrad.jit.schedule.schedule import LoopOutput

__all__ = ["NestPasses", "Pass"]

_KEPT_WEIGHT = 10  # what is dearer than this is not computed again in a later pass


@dataclass
class Pass:
    """One visit to the elements of a row."""

    phases: dict[int, list[Line]] = field(default_factory=dict)
    trigonometric: dict[int, list[Line]] = field(default_factory=dict)  # what to call after a phase
    names: dict[int, dict[Element, str]] = field(default_factory=dict)
    before: list[Line] = field(default_factory=list)
    flush: list[Line] = field(default_factory=list)
    after: list[Line] = field(default_factory=list)


class NestPasses(NestLines, abc.ABC):
    """Writes the passes, but for what becomes of the values."""

    passes: dict[int, Pass]
    rooms: dict[str, np.dtype[Any]]  # arrays for the elements of a block
    functions: set[str]  # of codegen.loop_runtime and math.angle_blocks
    scratch: dict[Element, str]

    @abc.abstractmethod
    def _write_output(self, output: LoopOutput, name: str, here: Pass, lines: list[Line]) -> None:
        """Write what becomes of a value that a pass computed at every element of a row."""

    def _write_pass(self, number_: int, outputs: list[LoopOutput]) -> None:
        here = self.passes[number_] = Pass()
        roots = [self._root(output) for output in outputs]
        last = max(self._depth[root] if self.level(root) == INNER else 0 for root in roots)
        targets: dict[int, list[Element]] = {last: roots}
        pending: dict[Element, str] = {}
        for phase in range(last, -1, -1):
            wanted = self._wanted(targets.get(phase, []), number_, phase, targets, pending)
            targets[phase] = [e for e in self._order if e in wanted]
        for phase in range(last + 1):
            names = here.names[phase] = {}
            lines = here.phases[phase] = []
            for element in targets[phase]:
                self._write_element(element, number_, phase, names, lines, pending)
            self._write_trigonometric(number_, phase, here, names, pending)
        for output, root in zip(outputs, roots, strict=True):
            name = self._name(root, here.names[last])
            self._write_output(output, name, here, here.phases[last])

    def _wanted(
        self,
        roots: list[Element],
        number_: int,
        phase: int,
        targets: dict[int, list[Element]],
        trigonometric: dict[Element, str],
    ) -> set[Element]:
        """Return the elements of a row that a phase has to compute or read."""
        wanted: set[Element] = set()
        stack = [root for root in roots if self.level(root) == INNER]
        while stack:
            element = stack.pop()
            if element in wanted:
                continue
            wanted.add(element)
            if self._earlier(element, number_):
                continue
            if self.is_trigonometric(element) and self._depth[element] <= phase:
                if element not in trigonometric:
                    trigonometric[element] = self._fresh("w")
                    angle = self._inputs[element][0]
                    targets.setdefault(self._depth[element] - 1, []).append(angle)
                continue
            stack += [e for e in self._inputs[element] if self.level(e) == INNER]
        return wanted

    def _earlier(self, element: Element, number_: int) -> int | None:
        """Return the pass before this one that computed an element which is dear, plus 1."""
        if weight(element[0]) < _KEPT_WEIGHT:
            return None
        for earlier in self.passes:
            if earlier < number_ and any(
                element in names for names in self.passes[earlier].names.values()
            ):
                return earlier + 1
        return None

    def _write_element(
        self,
        element: Element,
        number_: int,
        phase: int,
        names: dict[Element, str],
        lines: list[Line],
        trigonometric: dict[Element, str],
    ) -> None:
        earlier = self._earlier(element, number_)
        if earlier is not None:
            code = f"element({self._saved(element, earlier - 1)}, {self._row_place()})"
        elif element in trigonometric and self._depth[element] <= phase:
            code = f"element({trigonometric[element]}, {self._offset()})"
        elif self.supposes_near and self.has_angle(element):
            angle = self._name(self._inputs[element][0], names)
            lines.append(Line(f"far = far | scalar.is_far({angle})"))
            value = element[0]
            code = f"{type_code(value.dtype)}(scalar.{value.operation}_near({angle}))"
            self.is_dear = True
        else:
            code = self._code(element, names)
        if code.isidentifier():
            names[element] = code
            return
        names[element] = self._fresh("v")
        lines.append(Line(f"{names[element]} = {code}", comment_of(element[0])))

    def _saved(self, element: Element, earlier: int) -> str:
        """Return the name of the row of an element's values, which an earlier pass now saves."""
        name = self.scratch.get(element)
        if name is None:
            name = self.scratch[element] = self._fresh("w")
            size = product([loop.size for loop in self.loops.inner])
            dtype = type_code(element[0].dtype)
            self.top.append(Line(f"{name} = np.empty({self.size_name(size)}, {dtype})"))
            there = self.passes[earlier]
            phase = max(p for p, names in there.names.items() if element in names)
            value = there.names[phase][element]
            there.phases[phase].append(Line(f"store({name}, {self._row_place()}, {value})"))
        return name

    def _write_trigonometric(
        self,
        number_: int,
        phase: int,
        here: Pass,
        names: dict[Element, str],
        trigonometric: dict[Element, str],
    ) -> None:
        """Let sines be computed for a block whose angles are known after a phase."""
        calls = here.trigonometric[phase] = []
        lines = here.phases[phase]
        of_angle: dict[Element, list[Element]] = {}
        for element, buffer in trigonometric.items():
            if self._depth[element] == phase + 1:
                self.rooms[buffer] = element[0].dtype
                of_angle.setdefault(self._unviewed(self._inputs[element][0]), []).append(element)
        places: dict[Element, tuple[str, str]] = {}
        for angle in of_angle:
            place = self._place_of_angles(angle, trigonometric)
            if place is None:
                buffer = self._fresh("w")
                self.rooms[buffer] = angle[0].dtype
                lines.append(Line(f"store({buffer}, {self._offset()}, {names[angle]})"))
                place = buffer, "0"
            places[angle] = place
        for angle in of_angle:  # what was read for this only
            name = re.compile(rf"\b{names[angle]}\b") if angle in names else None
            used = [line for line in lines if name and name.search(line.code)]
            if len(used) == 1 and used[0].code.startswith(f"{names[angle]} = "):
                lines.remove(used[0])
        for angle, found in of_angle.items():
            source, start = places[angle]
            for together in _together(found):
                function = "_".join(["near", *(element[0].operation for element in together)])
                self.functions.add(function)
                self.is_dear = True
                given = [
                    source,
                    start,
                    "hi - lo",
                    *(trigonometric[element] for element in together),
                ]
                comment = comment_of(together[0][0])
                calls.append(Line(f"{function}({', '.join(given)})", comment))

    def _unviewed(self, element: Element) -> Element:
        """Return what has the same number as an element, but for views of it."""
        while self._inputs[element] and not (
            element[0].is_elementwise or element in self.gather_places
        ):
            element = self._inputs[element][0]
        return element

    def _place_of_angles(
        self, angle: Element, trigonometric: Mapping[Element, str]
    ) -> tuple[str, str] | None:
        """Return where the angles of a block are anyway: in which array, and from where on.

        That is an array that is read, or sines that are angles in turn.
        """
        if angle in trigonometric:
            return trigonometric[angle], "0"
        last = self.loops.inner[-1]
        if not self._inputs[angle] and angle in self.read_places:
            place = self.read_places[angle]
            if self.loops.steps(place).get(last.axis) == ONE:
                code, _ = self._place_code(place)
                return self.buffers[angle[0]], code.replace(last.index, "lo")
        return None


def _together(trigonometric: list[Element]) -> list[list[Element]]:
    """Return what to compute in one go of the sines and so on of an angle: sine and cosine."""
    sines = [element for element in trigonometric if element[0].operation == "sin"]
    cosines = [element for element in trigonometric if element[0].operation == "cos"]
    pairs = [list(pair) for pair in zip(sines, cosines, strict=False)]
    return [
        *pairs,
        *([element] for element in trigonometric if not any(element in pair for pair in pairs)),
    ]
