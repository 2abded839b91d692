"""What is known of a nest before a line of it is written.

Of every element that it reads or computes: on which loops it depends, after which pass over a row
it is known, and how many sines are inside each other in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from numgrad.base.tuning import SUM_BLOCK
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.symbolic_sizes import Place, number, product
from numgrad.jit.schedule.axes import Loops
from numgrad.jit.schedule.index_maps import WAVES, Element, weight
from numgrad.jit.schedule.schedule import Nest, Schedule, Sink

__all__ = ["INNER", "ROW", "ROWS", "TOP", "NestFacts"]

ROWS = 256  # rows that are added up one after the other
TOP, ROW, INNER = 0, 1, 2  # where a line can stand: in front of all loops, in a row, in a pass


class NestFacts:
    """Finds out what there is to know of a nest.

    Parameters
    ----------
    plan : Schedule
    position : int
        Which step of the plan it is.

    Attributes
    ----------
    supposes_near : bool
        Whether sines are computed where they are needed, as if no angle was far.
    """

    supposes_near = False

    def __init__(self, plan: Schedule, position: int) -> None:
        nest = plan.steps[position]
        assert isinstance(nest, Nest)
        self.plan, self.nest, self.position = plan, nest, position
        self._inputs: dict[Element, list[Element]] = {}
        self._axes: dict[Element, frozenset[int]] = {}
        self._ready: dict[Element, int] = {}
        self._depth: dict[Element, int] = {}
        self._order: list[Element] = []
        self.gather_places: dict[Element, Place] = {}
        self._made: dict[Value, Sink] = {
            sink.value: sink for sink in nest.sinks if sink.kind == "reduce"
        }
        self._pass_of: dict[Sink, int] = {}
        self._prepare()

    def _prepare(self) -> None:
        """Find out of every element on which loops it depends, and after which pass it is known."""
        nest, plan = self.nest, self.plan
        places: dict[Element, Place] = {}
        seen: set[Element] = set()
        self.roots = plan.roots(nest)
        stored = {root for root, is_stored in self.roots if is_stored}
        per_sink = []
        for root in self.roots:
            found = list(plan.walk([root], self.position, seen))
            per_sink.append(found)
            for element in found:
                value, index = element
                inputs = plan.inputs(element, self.position, stored=element in stored)
                self._inputs[element] = inputs
                if not inputs and value.operation != "constant" and value not in self._made:
                    places[element] = plan.elements.place(value, index)
                elif inputs and value.operation == "gather":
                    source = plan.source_of(value)
                    place = plan.elements.place_in(value, index, source.strides)
                    self.gather_places[element] = place + Place(source.start, {})
        self.read_places = places
        self.targets = {sink: self._target(sink) for sink in nest.sinks}
        targets = [place for place in self.targets.values() if place]
        self.loops = Loops(nest, [*places.values(), *self.gather_places.values(), *targets])
        inner = frozenset(loop.axis for loop in self.loops.inner)
        outer = frozenset(loop.axis for loop in self.loops.outer + self.loops.rows)
        self.inner_axes, self.outer_axes = inner, outer
        for sink, (wanted, _), found in zip(nest.sinks, self.roots, per_sink, strict=True):
            for element in found:
                self._describe(element)
            self._pass_of[sink] = self._ready[wanted]

    def _describe(self, element: Element) -> None:
        value, _ = element
        inputs = self._inputs[element]
        self._order.append(element)
        self._depth[element] = 0
        if inputs:
            self._axes[element] = frozenset().union(*(self._axes[e] for e in inputs))
            if element in self.gather_places:
                self._axes[element] |= frozenset(self.loops.steps(self.gather_places[element]))
            self._ready[element] = max(self._ready[e] for e in inputs)
            depth = max(self._depth[e] for e in inputs)
            if self.level(element) == INNER:
                self._depth[element] = depth + self.is_wave(element)
        elif value.operation == "constant":
            self._axes[element], self._ready[element] = frozenset(), 0
        elif value in self._made:
            self._axes[element] = self.outer_axes
            self._ready[element] = self._pass_of[self._made[value]] + 1
        else:
            self._axes[element] = frozenset(self.loops.steps(self.read_places[element]))
            self._ready[element] = 0

    def level(self, element: Element) -> int:
        """Return where an element is computed."""
        axes = self._axes[element]
        if axes & self.inner_axes:
            return INNER
        return ROW if axes or self._ready[element] else TOP

    def is_wave(self, element: Element) -> bool:
        """Whether an element is a sine or so, which is computed for a block at a time."""
        return not self.supposes_near and self.has_angle(element)

    def has_angle(self, element: Element) -> bool:
        """Whether an element is a sine or so, which takes longer if the angle is far."""
        value = element[0]
        is_computed = bool(self._inputs[element])  # not read from memory
        return is_computed and value.operation in WAVES and value.dtype.kind == "f"

    def _root(self, sink: Sink) -> Element:
        return self.roots[self.nest.sinks.index(sink)][0]

    def _is_row(self, sink: Sink) -> bool:
        """Whether there is one element for a row, not one for each of its elements."""
        return len(sink.axes) < len(self.nest.domain)

    def _target(self, sink: Sink) -> Place | None:
        """Return where the element of a sink goes; None if all elements go to one number."""
        elements = self.plan.elements
        value = sink.value
        if sink.kind in ("store", "copy"):
            index = elements.index(value, list(sink.axes))
            return elements.place(value, index)
        if sink.kind == "scatter":
            index = elements.index(sink.source, list(sink.axes))
            return elements.place_in(value, index, elements.dims.strides(value))
        if sink.kind == "window" and value.operation == "join":
            return self._place_in_join(sink)
        if sink.kind == "window":
            attributes = value.attributes
            offset = attributes["offset"]
            place = Place(elements.start_of(value, 0, offset), {})
            index = elements.index(sink.source, list(sink.axes))
            assert isinstance(index, tuple)
            for dim, step in enumerate(attributes["strides"]):
                if sink.source.shape[dim] != 1:
                    along = elements.whole(sink.source, dim, index[dim])
                    place = place + along.times(elements.step_of(value, dim, step))
            return place
        if len(sink.reduced) == len(sink.axes):
            return None
        kept = [axis for axis in range(len(sink.axes)) if axis not in sink.reduced]
        return elements.place(value, elements.index(value, kept))

    def _place_in_join(self, sink: Sink) -> Place:
        """Return where the element of a part of a join goes."""
        elements, part = self.plan.elements, sink.source
        index = elements.index(part, list(sink.axes))
        assert isinstance(index, tuple)
        place = Place(number(0), {})
        starts = sink.value.attributes["starts"][sink.number]
        for dim, stride in enumerate(elements.dims.strides(sink.value)):
            along = elements.whole(part, dim, index[dim])
            which = sink.number * len(starts) + dim
            along = along + Place(elements.start_of(sink.value, which, starts[dim]), {})
            place = place + along.times(stride)
        return place

    def counts(self, values: Mapping[str, int]) -> dict[str, int]:
        """Return the numbers of items, blocks and so on, given the sizes that names stand for."""
        loops, k = self.loops, self.position
        inner = product([loop.size for loop in loops.inner]).evaluate(values)
        rows = product([loop.size for loop in loops.rows]).evaluate(values)
        outer = product([loop.size for loop in loops.outer]).evaluate(values)
        is_split = bool(loops.inner) and not loops.reduces_rows
        chunks = -(-inner // SUM_BLOCK) if is_split else 1
        per_block = ROWS if self.nest.blocked else max(1, SUM_BLOCK // max(1, inner))
        blocks = -(-rows // per_block)
        items = outer * blocks * chunks
        return {
            f"items{k}": items,
            f"blocks{k}": blocks,
            f"chunks{k}": chunks,
            f"rows{k}": per_block,
        }

    def cost(self) -> int:
        """Return about what an element of the domain takes, where an addition is 1."""
        return sum(weight(e[0]) for e in self._order if self.level(e) == INNER)
