"""Statements that compute elements: in the pass that needs them, or as far out as they can be.

What does not depend on the loop around it is computed in front of all loops, or at a row's start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from numgrad.codegen.loops import (
    Assign,
    Expression,
    Load,
    Name,
    Number,
    Prefix,
    Statement,
    call,
    combine,
    plus,
    times,
)
from numgrad.jit.emit.analysis import TOP, Analysis
from numgrad.jit.emit.scalar_code import operation_code, size_code
from numgrad.jit.ir import symbolic_sizes
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.symbolic_sizes import Place, Size
from numgrad.jit.schedule.axes import Loop
from numgrad.jit.schedule.index_maps import ANYWHERE, Element, weight

__all__ = ["ElementCode", "comment_of"]

_STRIDE = Name("stride", "numgrad.codegen.loop_runtime")


def comment_of(value: Value) -> str:
    """Return the operation and where the user wrote it."""
    return f"{value.operation}: {value.origin}" if value.origin else value.operation


class ElementCode:
    """Computes the elements of a nest, and in front of a pass what is known there.

    Parameters
    ----------
    facts : Analysis
    buffers : mapping
        The name of the array that holds each kept value.
    constants : mapping
        The expression of each constant.
    names : iterator of int
        Running numbers, for names.

    Attributes
    ----------
    top : list of Statement
        What stands in front of all loops.
    row : dict
        What stands in a row, by the pass in front of which it does.
    results : dict
        The variable of each value that rows are reduced to.
    types : dict
        The dtypes of variables; of those in `bases`, places in memory, there is none.
    is_dear : bool
        Whether there is more to compute than arithmetic.
    """

    def __init__(
        self,
        facts: Analysis,
        buffers: Mapping[Value, str],
        constants: Mapping[Value, Expression],
        names: count[int],
    ) -> None:
        self.facts, self.loops, self.elements = facts, facts.loops, facts.plan.elements
        self.buffers, self.constants, self.names = buffers, constants, names
        self.is_dear = False
        self.top: list[Statement] = []
        self.row: dict[int, list[Statement]] = {}
        self.results: dict[Value, str] = {}
        self.types: dict[str, np.dtype[Any]] = {}
        self.bases: set[str] = set()
        self._fixed: dict[Any, Expression] = {}  # elements, sizes and bases outside of passes

    def fresh(self, prefix: str) -> str:
        """Return a variable that is not used yet."""
        return f"{prefix}{next(self.names)}"

    # --- sizes and places ---

    def size(self, size: Size) -> Expression:
        """Return a size: a number, or a variable that holds it."""
        code = size_code(size)
        if isinstance(code, Name | Number):
            return code
        known = self._fixed.get(size)
        if known is None:
            known = self._fixed[size] = Name(self.fresh("s"))
            self.top.append(Assign(known.id, code))
        return known

    def place(self, place: Place) -> Expression:
        """Return a place in memory, but for what depends on no loop of a pass in a variable."""
        steps = sorted(self.loops.steps(place).items())
        outer = [(axis, step) for axis, step in steps if axis in self.facts.outer_axes]
        base = self._base(place.start, tuple(outer))
        inner = [self.term(axis, step) for axis, step in steps if axis in self.facts.inner_axes]
        return plus(base, *inner)

    def place_in_item(self, place: Place) -> Expression:
        """Return a place that depends on outer and inner loops, not on rows."""
        terms = [self.term(axis, step) for axis, step in sorted(self.loops.steps(place).items())]
        return plus(self.size(place.start), *terms)

    def term(self, axis: int, step: Size) -> Expression:
        """Return what an index adds to a place."""
        if step.constant == -1:
            return Prefix("-", Name(f"i{axis}"))
        size = self.size(step)
        if isinstance(size, Name) and self.loops.inner and axis == self.loops.inner[-1].axis:
            size = self._stride(size)
        return times(f"i{axis}", size)

    def _stride(self, size: Name) -> Expression:
        """Return the steps by which a loop of a pass reads or writes."""
        known = self._fixed.get(("stride", size))
        if known is None:
            known = self._fixed["stride", size] = Name(self.fresh("s"))
            self.top.append(Assign(known.id, call(_STRIDE, size)))
        return known

    def _base(self, start: Size, outer: tuple[tuple[int, Size], ...]) -> Expression:
        first = self.size(start)
        if not outer:
            return first
        known = self._fixed.get((start, outer))
        if known is None:
            known = self.of_row(plus(first, *(self.term(axis, step) for axis, step in outer)))
            self._fixed[start, outer] = known
        return known

    def of_row(self, place: Expression) -> Expression:
        """Return a variable for what a row adds to places, computed in front of its passes."""
        if isinstance(place, Name):
            return place
        known = self._fixed.get(place)
        if known is None:
            known = self._fixed[place] = self._hoisted("p", place, 0)
            self.bases.add(known.id)
        return known

    def row_place(self) -> Expression:
        """Return the place within a row."""
        return self.flat(self.loops.inner)

    def flat(self, loops: Sequence[Loop]) -> Expression:
        """Return how many steps of some loops there were."""
        terms, stride = [], symbolic_sizes.ONE
        for loop in reversed(loops):
            terms.append(self.term(loop.axis, stride))
            stride = stride * loop.size
        return plus(*terms)

    def offset(self) -> Expression:
        """Return the innermost index within a block."""
        return combine("-", self.loops.inner[-1].index, "lo")

    def at_positions(
        self,
        element: Element,
        place: Place,
        strides: Sequence[Size],
        names: Mapping[Element, Expression],
        value: Value | None = None,
    ) -> Expression:
        """Return a place that depends on positions, all inputs but for the first."""
        terms = [self.place(place)]
        steps = self.elements.steps_of_positions(value or element[0], strides)
        for position, step in zip(self.facts.inputs[element][1:], steps, strict=True):
            terms.append(times(self.name(position, names), self.size(step)))
        return plus(*terms)

    # --- elements ---

    def computed(self, element: Element, names: Mapping[Element, Expression]) -> Expression:
        """Return what computes or reads an element; `names` are those of a pass."""
        value = element[0]
        inputs = self.facts.inputs[element]
        if not inputs:
            place = self.place(self.facts.read_places[element])
            return Load(Name(self.buffers[value]), place)
        if value.operation == "gather":
            source = self.facts.plan.source_of(value)
            at = self.facts.gather_places[element]
            place = self.at_positions(element, at, source.strides, names)
            return Load(Name(self.buffers[source.base]), place)
        arguments = [self.name(e, names) for e in inputs]
        if not value.is_elementwise:  # a view, or what an update starts from
            return arguments[0]
        self.is_dear |= weight(value) > 4
        return operation_code(value, arguments)

    def name(self, element: Element, names: Mapping[Element, Expression]) -> Expression:
        """Return the variable of an element in a pass, or outside of it."""
        found = self._given(element)
        if found is None:
            found = names.get(element)
        return self._outside(element) if found is None else found

    def _given(self, element: Element) -> Expression | None:
        """Return the expression of an element that needs no computing."""
        value = element[0]
        if value.operation == "constant":
            return self.constants[value]
        if value in self.facts.made:
            return Name(self.results[value])
        return None

    def _is_missing(self, element: Element) -> bool:
        is_read = element[1] is not ANYWHERE  # else nothing reads it but what looks for its place
        return is_read and element not in self._fixed and self._given(element) is None

    def _outside(self, element: Element) -> Expression:
        """Return the variable of an element that is known in front of a pass; compute it there."""
        stack = [element]
        while stack:
            current = stack[-1]
            if current in self._fixed:
                stack.pop()
                continue
            missing = [e for e in self.facts.inputs[current] if self._is_missing(e)]
            if missing:
                stack += missing
                continue
            stack.pop()
            code = self.computed(current, {})
            if not isinstance(code, Name | Number):
                value, is_top = current[0], self.facts.level(current) == TOP
                ready = None if is_top else self.facts.ready[current]
                code = self._hoisted("v", code, ready, comment_of(value))
                self.types[code.id] = value.dtype
            self._fixed[current] = code
        return self._fixed[element]

    def _hoisted(self, prefix: str, code: Expression, ready: int | None, origin: str = "") -> Name:
        """Compute something in front of the pass before which it is known, or of all loops."""
        name = Name(self.fresh(prefix))
        lines = self.top if ready is None else self.row.setdefault(ready, [])
        lines.append(Assign(name.id, code, origin))
        return name
