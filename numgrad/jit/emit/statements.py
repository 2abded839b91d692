"""Statements of generated source: names of elements, offsets and sizes; lines with comments.

What a line computes is put as far out as it can be: in front of all loops, or at a row's start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from numgrad.jit.emit.analysis import INNER, ROW, TOP, NestFacts
from numgrad.jit.emit.scalar_code import operation_code
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.symbolic_sizes import ONE, Place, Size
from numgrad.jit.schedule.index_maps import ANYWHERE, Element, weight
from numgrad.jit.schedule.schedule import Schedule

__all__ = ["Line", "NestLines", "comment_of", "indent", "sum_of"]


@dataclass(frozen=True)
class Line:
    """A line of source and where it comes from."""

    code: str
    origin: str = ""


def indent(lines: list[Line], levels: int = 1) -> list[Line]:
    """Move lines to the right."""
    return [Line("    " * levels + line.code, line.origin) for line in lines]


def comment_of(value: Value) -> str:
    """Return the operation and where the user wrote it."""
    return f"{value.operation}: {value.origin}" if value.origin else value.operation


def sum_of(terms: list[str]) -> str:
    """Return the source of a sum."""
    return " + ".join(term for term in terms if term).replace("+ -", "- ")


class NestLines(NestFacts):
    """Names things, and computes in front of a pass what is known there.

    Parameters
    ----------
    plan : Schedule
    position : int
        Which step of the plan it is.
    buffers : mapping
        The name of the array that holds each kept value.
    constants : mapping
        The name or source of each constant.
    names : iterator of int
        Running numbers, for names.
    """

    def __init__(
        self,
        plan: Schedule,
        position: int,
        buffers: Mapping[Value, str],
        constants: Mapping[Value, str],
        names: count[int],
    ) -> None:
        super().__init__(plan, position)
        self.buffers, self.constants, self.names = buffers, constants, names
        self.has_scalars = self.is_dear = False
        self.top: list[Line] = []
        self.row: dict[int, list[Line]] = {}  # by the pass in front of which they stand
        self._fixed: dict[Any, str] = {}  # names of elements, steps and bases outside of passes
        self._row_names: dict[Value, str] = {}  # of what rows are reduced to

    def _fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self.names)}"

    def size_name(self, size: Size) -> str:
        """Return the source of a size: a number, a name, or the name of a product."""
        text = str(size)
        if size.constant is not None or text.isidentifier():
            return text
        known = self._fixed.get(size)
        if known is None:
            known = self._fixed[size] = self._fresh("s")
            self.top.append(Line(f"{known} = {text}"))
        return known

    def _place_code(self, place: Place) -> tuple[str, int]:
        """Return the source of a place, and where it can stand."""
        steps = self.loops.steps(place)
        outer = [(axis, step) for axis, step in sorted(steps.items()) if axis in self.outer_axes]
        inner = [(axis, step) for axis, step in sorted(steps.items()) if axis in self.inner_axes]
        base = self._base(place.start, tuple(outer))
        terms = [self._term(axis, step) for axis, step in inner]
        level = INNER if inner else ROW if outer else TOP
        return sum_of([base, *terms]), level

    def _term(self, axis: int, step: Size) -> str:
        constant = step.constant
        if constant == 1:
            return f"i{axis}"
        if constant == -1:
            return f"-i{axis}"
        return f"i{axis} * {self.size_name(step)}"

    def _base(self, start: Size, outer: tuple[tuple[int, Size], ...]) -> str:
        text = "" if start.constant == 0 else self.size_name(start)
        if not outer:
            return text
        key = (start, outer)
        known = self._fixed.get(key)
        if known is None:
            code = sum_of([text, *(self._term(axis, step) for axis, step in outer)])
            if code.isidentifier():
                known = code
            else:
                known = self._fresh("p")
                self.row.setdefault(0, []).append(Line(f"{known} = {code}"))
            self._fixed[key] = known
        return known

    def _code(self, element: Element, names: Mapping[Element, str]) -> str:
        """Return the source that computes or reads an element."""
        value = element[0]
        inputs = self._inputs[element]
        if not inputs:
            place, _ = self._place_code(self.read_places[element])
            return f"element({self.buffers[value]}, {place or 0})"
        if value.operation == "gather":
            source = self.plan.source_of(value)
            place = self._position_code(element, self.gather_places[element], source.strides, names)
            return f"element({self.buffers[source.base]}, {place or 0})"
        arguments = [self._name(e, names) for e in inputs]
        if not value.is_elementwise:  # a view, or what an update starts from
            return arguments[0]
        code = operation_code(value, arguments)
        self.has_scalars |= "scalar." in code
        self.is_dear |= weight(value) > 4
        return code

    def _position_code(
        self,
        element: Element,
        place: Place,
        strides: Sequence[Size],
        names: Mapping[Element, str],
        value: Value | None = None,
    ) -> str:
        """Return the source of a place that depends on positions, all inputs but for the first."""
        code, _ = self._place_code(place)
        steps = self.plan.elements.steps_of_positions(value or element[0], strides)
        terms = [code]
        for position, step in zip(self._inputs[element][1:], steps, strict=True):
            name = self._name(position, names)
            if step != ONE:
                name = f"{name} * {self.size_name(step)}"
            terms.append(name)
        return sum_of(terms)

    def _name(self, element: Element, names: Mapping[Element, str]) -> str:
        """Return the name of an element in a pass, or outside of it."""
        value = element[0]
        if value.operation == "constant":
            return self.constants[value]
        if value in self._made:
            return self._row_names[value]
        found = names.get(element)
        return self._outside(element) if found is None else found

    def _outside(self, element: Element) -> str:
        """Return the name of an element that is known in front of a pass; compute it there."""
        stack = [element]
        while stack:
            current = stack[-1]
            if current in self._fixed or self._is_given(current):
                stack.pop()
                continue
            missing = [
                e for e in self._inputs[current] if e not in self._fixed and not self._is_given(e)
            ]
            if missing:
                stack += missing
                continue
            stack.pop()
            code = self._code(current, {})
            if code.isidentifier():
                self._fixed[current] = code
                continue
            name = self._fixed[current] = self._fresh("v")
            line = Line(f"{name} = {code}", comment_of(current[0]))
            if self.level(current) == TOP:
                self.top.append(line)
            else:
                self.row.setdefault(self._ready[current], []).append(line)
        return self._name_given(element)

    def _is_given(self, element: Element) -> bool:
        value, index = element
        return value.operation == "constant" or value in self._made or index is ANYWHERE

    def _name_given(self, element: Element) -> str:
        if self._is_given(element):
            return self._name(element, {})
        return self._fixed[element]

    def _offset(self) -> str:
        """Return the source of the innermost index within a block."""
        return f"{self.loops.inner[-1].index} - lo"

    def _row_place(self) -> str:
        """Return the source of the place within a row."""
        terms, stride = [], ONE
        for loop in reversed(self.loops.inner):
            terms.append(self._term(loop.axis, stride))
            stride = stride * loop.size
        return sum_of(terms)
