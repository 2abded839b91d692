"""Analysis of a loop nest: what is read where, in which pass, before code is generated.

Of every element that it reads or computes: on which loops it depends, and after which pass over a
row it is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from numgrad.base.tuning import NARROW_ROW, SUM_BLOCK
from numgrad.codegen.llvm.run_ir import block_rows, lanes_of_rows
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.symbolic_sizes import Place, number, product
from numgrad.jit.schedule.axes import Loops
from numgrad.jit.schedule.index_maps import Element, weight
from numgrad.jit.schedule.nests import LoopOutput, Nest
from numgrad.jit.schedule.schedule import Schedule

__all__ = ["INNER", "ROW", "TOP", "Analysis"]

TOP, ROW, INNER = 0, 1, 2  # where a line can stand: in front of all loops, in a row, in a pass


class Analysis:
    """What there is to know of a nest.

    Parameters
    ----------
    plan : Schedule
    position : int
        Which step of the plan it is.

    Attributes
    ----------
    order : list of Element
        All that is read or computed, what is needed first.
    inputs : dict
        What each is computed from.
    ready : dict
        After how many passes over a row it is known, where that is outside of a pass.
    made : dict
        The output that gives each value that rows are reduced to.
    """

    def __init__(self, plan: Schedule, position: int) -> None:
        nest = plan.steps[position]
        assert isinstance(nest, Nest)
        self.plan, self.nest, self.position = plan, nest, position
        self.inputs: dict[Element, list[Element]] = {}
        self._axes: dict[Element, frozenset[int]] = {}
        self.ready: dict[Element, int] = {}
        self.order: list[Element] = []
        self.gather_places: dict[Element, Place] = {}
        self.made: dict[Value, LoopOutput] = {
            output.value: output for output in nest.outputs if output.kind == "reduce"
        }
        self.pass_of: dict[LoopOutput, int] = {}
        self._prepare()

    def _prepare(self) -> None:
        """Find out of every element on which loops it depends, and after which pass it is known."""
        nest, plan = self.nest, self.plan
        places: dict[Element, Place] = {}
        seen: set[Element] = set()
        self.roots = plan.roots(nest)
        stored = {root for root, is_stored in self.roots if is_stored}
        per_output = []
        for root in self.roots:
            found = list(plan.walk([root], self.position, seen))
            per_output.append(found)
            for element in found:
                value, index = element
                inputs = plan.inputs(element, self.position, stored=element in stored)
                self.inputs[element] = inputs
                if not inputs and value.operation != "constant" and value not in self.made:
                    places[element] = plan.elements.place(value, index)
                elif inputs and value.operation == "gather":
                    source = plan.source_of(value)
                    place = plan.elements.place_in(value, index, source.strides)
                    self.gather_places[element] = place + Place(source.start, {})
        self.read_places = places
        self.targets = {output: self._target(output) for output in nest.outputs}
        targets = [place for place in self.targets.values() if place]
        self.loops = Loops(nest, [*places.values(), *self.gather_places.values(), *targets])
        inner = frozenset(loop.axis for loop in self.loops.inner)
        outer = frozenset(loop.axis for loop in self.loops.outer + self.loops.rows)
        self.inner_axes, self.outer_axes = inner, outer
        for output, (wanted, _), found in zip(nest.outputs, self.roots, per_output, strict=True):
            for element in found:
                self._describe(element)
            self.pass_of[output] = self.ready[wanted]

    def _describe(self, element: Element) -> None:
        value, _ = element
        inputs = self.inputs[element]
        self.order.append(element)
        if inputs:
            self._axes[element] = frozenset().union(*(self._axes[e] for e in inputs))
            if element in self.gather_places:
                self._axes[element] |= frozenset(self.loops.steps(self.gather_places[element]))
            self.ready[element] = max(self.ready[e] for e in inputs)
        elif value.operation == "constant":
            self._axes[element], self.ready[element] = frozenset(), 0
        elif value in self.made:
            self._axes[element] = self.outer_axes
            self.ready[element] = self.pass_of[self.made[value]] + 1
        else:
            self._axes[element] = frozenset(self.loops.steps(self.read_places[element]))
            self.ready[element] = 0

    def level(self, element: Element) -> int:
        """Return where an element is computed."""
        axes = self._axes[element]
        if axes & self.inner_axes:
            return INNER
        return ROW if axes or self.ready[element] else TOP

    @property
    def appends(self) -> bool:
        """Whether elements are reduced to one number that lie in several loops."""
        is_flat = not self.loops.rows and not self.loops.outer and len(self.loops.inner) < 2
        return not is_flat and bool(self.loops.inner) and self.nest.has_totals

    @property
    def visits_rows(self) -> bool:
        """Whether an item has all elements of its rows, not a part of them."""
        return self.loops.reduces_rows or self.appends

    def has_short_rows(self, values: Mapping[str, int]) -> bool:
        """Whether an item has rows of a block at most, in one loop, that are reduced by itself."""
        loops = self.loops
        is_one_loop = loops.reduces_rows and len(loops.inner) == 1 and not self.appends
        return is_one_loop and self.length(values) <= SUM_BLOCK

    def is_narrow(self, values: Mapping[str, int]) -> bool:
        """Whether an item has rows of so few elements that a loop over them is no use."""
        loops = self.loops
        is_whole = not self.visits_rows or self.has_short_rows(values)
        is_one_loop = bool(loops.rows) and len(loops.inner) == 1 and is_whole
        return is_one_loop and 0 < self.length(values) <= NARROW_ROW

    def root(self, output: LoopOutput) -> Element:
        return self.roots[self.nest.outputs.index(output)][0]

    def is_row(self, output: LoopOutput) -> bool:
        """Whether there is one element for a row, not one for each of its elements."""
        return len(output.axes) < len(self.nest.domain)

    def _target(self, output: LoopOutput) -> Place | None:
        """Return where the element of an output goes; None if all elements go to one number."""
        elements = self.plan.elements
        value = output.value
        if output.kind in ("store", "copy"):
            index = elements.index(value, list(output.axes))
            return elements.place(value, index)
        if output.kind == "scatter":
            index = elements.index(output.source, list(output.axes))
            return elements.place_in(value, index, elements.dims.strides(value))
        if output.kind == "window" and value.operation == "join":
            return self._place_in_join(output)
        if output.kind == "window":
            attributes = value.attributes
            offset = attributes["offset"]
            place = Place(elements.start_of(value, 0, offset), {})
            index = elements.index(output.source, list(output.axes))
            assert isinstance(index, tuple)
            for dim, step in enumerate(attributes["strides"]):
                if output.source.shape[dim] != 1:
                    along = elements.whole(output.source, dim, index[dim])
                    place = place + along.times(elements.step_of(value, dim, step))
            return place
        if len(output.reduced) == len(output.axes):
            return None
        kept = [axis for axis in range(len(output.axes)) if axis not in output.reduced]
        return elements.place(value, elements.index(value, kept))

    def _place_in_join(self, output: LoopOutput) -> Place:
        """Return where the element of a part of a join goes."""
        elements, part = self.plan.elements, output.source
        index = elements.index(part, list(output.axes))
        assert isinstance(index, tuple)
        place = Place(number(0), {})
        starts = output.value.attributes["starts"][output.number]
        for dim, stride in enumerate(elements.dims.strides(output.value)):
            along = elements.whole(part, dim, index[dim])
            along = along + Place(
                elements.start_of(output.value, (output.number, dim), starts[dim]), {}
            )
            place = place + along.times(stride)
        return place

    def counts(self, values: Mapping[str, int]) -> dict[str, int]:
        """Return the numbers of items, blocks and so on, given the sizes that names stand for."""
        loops, k = self.loops, self.position
        inner = product([loop.size for loop in loops.inner]).evaluate(values)
        rows = product([loop.size for loop in loops.rows]).evaluate(values)
        outer = product([loop.size for loop in loops.outer]).evaluate(values)
        is_split = bool(loops.inner) and not self.visits_rows
        chunks = -(-inner // SUM_BLOCK) if is_split else 1
        lanes, step, per_block = 1, 1, max(1, SUM_BLOCK // max(1, inner))
        if self.nest.blocked:
            columns = self._columns(values)
            step = block_rows(columns)
            # More lanes than rows would only hold what combining leaves as it is.
            lanes = min(lanes_of_rows(columns), 1 << max(0, rows - 1).bit_length())
            per_block = step
        if self.appends:  # the elements of an item are whole blocks
            per_block = step * (SUM_BLOCK // gcd(step * inner, SUM_BLOCK))
        blocks = -(-rows // per_block)
        items = outer * blocks * chunks
        return {
            f"items{k}": items,
            f"blocks{k}": blocks,
            f"chunks{k}": chunks,
            f"rows{k}": per_block,
            f"lanes{k}": lanes,
            f"dealt{k}": step,
            f"held{k}": max(1, per_block // step),
            f"parts{k}": -(-rows // step),
            f"runs{k}": -(-rows * inner // SUM_BLOCK),
        }

    def _columns(self, values: Mapping[str, int]) -> int:
        """Return how many numbers lie behind a step of the innermost blocked axis."""
        blocked = self.nest.blocked or frozenset()
        behind = range(max(blocked) + 1, len(self.nest.domain))
        columns = product([self.loops.sizes[axis] for axis in behind]).evaluate(values)
        return 2 * columns if self.nest.has_complex_blocks else columns

    def length(self, values: Mapping[str, int]) -> int:
        """Return the length of the innermost loop."""
        return self.loops.inner[-1].size.evaluate(values) if self.loops.inner else 1

    def cost(self) -> int:
        """Return about what an element of the domain takes, where an addition is 1."""
        return sum(weight(e[0]) for e in self.order if self.level(e) == INNER)
