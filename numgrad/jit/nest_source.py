"""The source of one loop nest.

Lines are collected where they belong: in front of all loops, in a row's before and after each pass
over its elements, and in the passes. What a line computes is put as far out as it can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from numgrad.jit.elements import WAVES, Element, weight
from numgrad.jit.graph import Value
from numgrad.jit.nest_axes import Loop, Loops
from numgrad.jit.scalars import cast_code, identity_code, operation_code, type_code
from numgrad.jit.schedule import Nest, Schedule, Sink
from numgrad.jit.sizes import ONE, Place, Size, number, product, symbol

__all__ = ["BLOCK", "ROWS", "Line", "NestSource", "indent"]

BLOCK = 1024  # elements that are computed before what is summed of them is added up
ROWS = 256  # rows that are added up one after the other
_KEPT_WEIGHT = 10  # what is dearer than this is not computed again in a later pass

TOP, ROW, INNER = 0, 1, 2


@dataclass(frozen=True)
class Line:
    """A line of source and where it comes from."""

    code: str
    origin: str = ""


def indent(lines: list[Line], levels: int = 1) -> list[Line]:
    """Move lines to the right."""
    return [Line("    " * levels + line.code, line.origin) for line in lines]


@dataclass
class _Pass:
    """One visit to the elements of a row."""

    phases: dict[int, list[Line]] = field(default_factory=dict)
    waves: dict[int, list[Line]] = field(default_factory=dict)  # what to call after a phase
    names: dict[int, dict[Element, str]] = field(default_factory=dict)
    before: list[Line] = field(default_factory=list)
    flush: list[Line] = field(default_factory=list)
    after: list[Line] = field(default_factory=list)


class NestSource:
    """Writes one nest.

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
        nest = plan.steps[position]
        assert isinstance(nest, Nest)
        self.plan, self.nest, self.position = plan, nest, position
        self.buffers, self.constants, self.names = buffers, constants, names
        self.partials: list[tuple[str, Any, Size]] = []  # name, dtype, number of elements
        self.functions: set[str] = set()  # of kernels.nests
        self.unread: set[str] = set()  # arrays that need not be written to
        self.has_scalars = self.is_dear = False
        self.top: list[Line] = []
        self.row: dict[int, list[Line]] = {}
        self.passes: dict[int, _Pass] = {}
        self.item_start: list[Line] = []
        self.item_end: list[Line] = []
        self.finish: list[Line] = []
        self._fixed: dict[Any, str] = {}  # names of elements, steps and bases outside of passes
        self._inputs: dict[Element, list[Element]] = {}
        self._axes: dict[Element, frozenset[int]] = {}
        self._ready: dict[Element, int] = {}
        self._depth: dict[Element, int] = {}
        self._order: list[Element] = []
        self._made: dict[Value, Sink] = {
            sink.value: sink for sink in nest.sinks if sink.kind == "reduce"
        }
        self._pass_of: dict[Sink, int] = {}
        self._scratch: dict[Element, str] = {}
        self._row_names: dict[Value, str] = {}
        self._prepare()
        self._write()

    # --- what there is ---

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
        self.read_places = places
        self.targets = {sink: self._target(sink) for sink in nest.sinks}
        self.loops = Loops(nest, [*places.values(), *(p for p in self.targets.values() if p)])
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
        value = element[0]
        return value.operation in WAVES and value.dtype.kind == "f"

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
        if sink.kind == "window":
            attributes = value.attributes
            offset = attributes["offset"]
            start = elements.number_of(value, "start", 0, offset) if offset else number(0)
            place = Place(start, {})
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

    # --- names and lines ---

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
        return _sum([base, *terms]), level

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
            code = _sum([text, *(self._term(axis, step) for axis, step in outer)])
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
        arguments = [self._name(e, names) for e in inputs]
        if not value.is_elementwise:  # a view, or what an update starts from
            return arguments[0]
        code = operation_code(value, arguments)
        self.has_scalars |= "scalar." in code
        self.is_dear |= weight(value) > 4
        return code

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
            line = Line(f"{name} = {code}", _comment(current[0]))
            if self.level(current) == TOP:
                self.top.append(line)
            else:
                self.row.setdefault(self._ready[current], []).append(line)
        return self._name_given(element)

    def _is_given(self, element: Element) -> bool:
        return element[0].operation == "constant" or element[0] in self._made

    def _name_given(self, element: Element) -> str:
        if self._is_given(element):
            return self._name(element, {})
        return self._fixed[element]

    # --- passes ---

    def _write(self) -> None:
        for sink in self.nest.sinks:  # names of what later sinks read
            if sink.kind == "reduce":
                self._row_names[sink.value] = self._fresh("r")
        in_row = [s for s in self.nest.sinks if not self._is_inner(s)]
        in_pass = [s for s in self.nest.sinks if self._is_inner(s)]
        for number_ in sorted({self._pass_of[sink] for sink in in_pass}):
            self._write_pass(number_, [s for s in in_pass if self._pass_of[s] == number_])
        for sink in in_row:
            self._write_row_sink(sink)

    def _is_inner(self, sink: Sink) -> bool:
        """Whether a sink takes part in passes over the elements of a row."""
        return not self._is_row(sink)

    def _root(self, sink: Sink) -> Element:
        return self.roots[self.nest.sinks.index(sink)][0]

    def _write_pass(self, number_: int, sinks: list[Sink]) -> None:
        here = self.passes[number_] = _Pass()
        roots = [self._root(sink) for sink in sinks]
        last = max(self._depth[root] if self.level(root) == INNER else 0 for root in roots)
        targets: dict[int, list[Element]] = {last: roots}
        pending_waves: dict[Element, str] = {}
        for phase in range(last, -1, -1):
            wanted = self._wanted(targets.get(phase, []), number_, phase, targets, pending_waves)
            targets[phase] = [e for e in self._order if e in wanted]
        for phase in range(last + 1):
            names = here.names[phase] = {}
            lines = here.phases[phase] = []
            for element in targets[phase]:
                self._write_element(element, number_, phase, names, lines, pending_waves)
            self._write_waves(number_, phase, here, names, pending_waves)
        for sink, root in zip(sinks, roots, strict=True):
            name = self._name(root, here.names[last])
            self._write_sink(sink, name, here, here.phases[last])

    def _wanted(
        self,
        roots: list[Element],
        number_: int,
        phase: int,
        targets: dict[int, list[Element]],
        waves: dict[Element, str],
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
            if self.is_wave(element) and self._depth[element] <= phase:
                if element not in waves:
                    waves[element] = self._fresh("w")
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
        waves: dict[Element, str],
    ) -> None:
        earlier = self._earlier(element, number_)
        if earlier is not None:
            code = f"element({self._saved(element, earlier - 1)}, {self._row_place()})"
        elif element in waves and self._depth[element] <= phase:
            code = f"element({waves[element]}, {self._offset()})"
        else:
            code = self._code(element, names)
        if code.isidentifier():
            names[element] = code
            return
        names[element] = self._fresh("v")
        lines.append(Line(f"{names[element]} = {code}", _comment(element[0])))

    def _offset(self) -> str:
        """Return the source of the innermost index within a block."""
        return f"{self.loops.inner[-1].index} - lo"

    def _row_place(self) -> str:
        """Return the source of the place within a row."""
        terms, stride = [], ONE
        for loop in reversed(self.loops.inner):
            terms.append(self._term(loop.axis, stride))
            stride = stride * loop.size
        return _sum(terms)

    def _saved(self, element: Element, earlier: int) -> str:
        """Return the name of the row of an element's values, which an earlier pass now saves."""
        name = self._scratch.get(element)
        if name is None:
            name = self._scratch[element] = self._fresh("w")
            size = product([loop.size for loop in self.loops.inner])
            dtype = type_code(element[0].dtype)
            self.top.append(Line(f"{name} = np.empty({self.size_name(size)}, {dtype})"))
            there = self.passes[earlier]
            phase = max(p for p, names in there.names.items() if element in names)
            value = there.names[phase][element]
            there.phases[phase].append(Line(f"store({name}, {self._row_place()}, {value})"))
        return name

    def _write_waves(
        self,
        number_: int,
        phase: int,
        here: _Pass,
        names: dict[Element, str],
        waves: dict[Element, str],
    ) -> None:
        """Let sines be computed for a block whose angles are known after a phase."""
        calls = here.waves[phase] = []
        angles: dict[Element, tuple[str, str]] = {}
        for wave, buffer in waves.items():
            if self._depth[wave] != phase + 1:
                continue
            dtype = type_code(wave[0].dtype)
            self.top.append(Line(f"{buffer} = stack({dtype}, {BLOCK})"))
            angle = self._inputs[wave][0]
            if angle not in angles:
                angles[angle] = self._angle(angle, here.phases[phase], names)
            source, start = angles[angle]
            function = f"near_{wave[0].operation}"
            self.functions.add(function)
            self.is_dear = True
            calls.append(
                Line(f"{function}({source}, {start}, hi - lo, {buffer})", _comment(wave[0]))
            )

    def _angle(
        self, angle: Element, lines: list[Line], names: dict[Element, str]
    ) -> tuple[str, str]:
        """Return where the angles of a block are, in which array and from where on."""
        last = self.loops.inner[-1]
        if not self._inputs[angle] and angle in self.read_places:
            place = self.read_places[angle]
            if self.loops.steps(place).get(last.axis) == ONE:
                name = names[angle]
                code, _ = self._place_code(place)
                used = [line for line in lines if name in line.code]
                if len(used) == 1:  # it was read for this only
                    lines.remove(used[0])
                return self.buffers[angle[0]], code.replace(last.index, "lo")
        buffer = self._fresh("w")
        self.top.append(Line(f"{buffer} = stack({type_code(angle[0].dtype)}, {BLOCK})"))
        lines.append(Line(f"store({buffer}, {self._offset()}, {names[angle]})"))
        return buffer, "0"

    # --- sinks ---

    def _write_sink(self, sink: Sink, name: str, here: _Pass, lines: list[Line]) -> None:
        """Write what becomes of a value that a pass computed at every element of a row."""
        dtype = sink.value.dtype
        name = cast_code(name, sink.source.dtype, dtype)
        comment = _comment(sink.value)
        target = self.targets[sink]
        if sink.kind != "reduce":
            assert target is not None
            place, _ = self._place_code(target)
            lines.append(Line(f"store({self.buffers[sink.value]}, {place or 0}, {name})", comment))
            return
        kind = _kind(sink)
        if self.nest.blocked == sink.reduced:
            self._write_blocked(sink, name, lines)
            return
        buffer = "b" + self._row_names[sink.value]
        identity = identity_code(kind, dtype)
        self.functions.add(f"fold_{kind}")
        self.top.append(Line(f"{buffer} = stack({type_code(dtype)}, {BLOCK})"))
        lines.append(Line(f"store({buffer}, {self._offset()}, {name})"))
        block = f"fold_{kind}({buffer}, hi - lo, {identity})"
        result = self._row_names[sink.value]
        if target is None:
            self._write_total(sink, block, here.flush, comment)
            return
        self.functions |= {f"merge_{kind}", f"merged_{kind}"}
        levels, counter = f"l{result}", f"k{result}"
        self.top.append(Line(f"{levels} = stack({type_code(dtype)}, LEVELS)"))
        here.before.append(Line(f"{counter} = 0"))
        here.flush.append(Line(f"merge_{kind}({levels}, {counter}, {block})", comment))
        here.flush.append(Line(f"{counter} += 1"))
        here.after.append(Line(f"{result} = merged_{kind}({levels}, {counter}, {identity})"))
        place, _ = self._place_code(target)
        here.after.append(Line(f"store({self.buffers[sink.value]}, {place or 0}, {result})"))

    def _write_total(self, sink: Sink, block: str, lines: list[Line], comment: str) -> None:
        """Combine the values of blocks to one number."""
        kind, dtype = _kind(sink), sink.value.dtype
        result = self._row_names[sink.value]
        identity = identity_code(kind, dtype)
        self.functions.add(f"fold_{kind}")
        partial = f"p{result}"
        self.partials.append((partial, dtype, self.items))
        if not self.loops.rows and not self.loops.outer and len(self.loops.inner) < 2:
            lines.append(Line(f"store({partial}, item, {block})", comment))
        else:
            self.functions |= {f"merge_{kind}", f"merged_{kind}"}
            levels, counter = f"l{result}", f"k{result}"
            self.top.append(Line(f"{levels} = stack({type_code(dtype)}, LEVELS)"))
            self.item_start.append(Line(f"{counter} = 0"))
            lines.append(Line(f"merge_{kind}({levels}, {counter}, {block})", comment))
            lines.append(Line(f"{counter} += 1"))
            total = f"merged_{kind}({levels}, {counter}, {identity})"
            self.item_end.append(Line(f"store({partial}, item, {total})"))
        total = f"fold_{kind}({partial}, {self.items}, {identity})"
        self.finish.append(Line(f"store({self.buffers[sink.value]}, 0, {total})", comment))

    def _write_blocked(self, sink: Sink, name: str, lines: list[Line]) -> None:
        """Add rows up, those of a block in one row of partial sums."""
        kind, dtype = _kind(sink), sink.value.dtype
        target = self.targets[sink]
        assert target is not None
        width = product(
            [self.loops.sizes[a] for a in range(len(sink.axes)) if a not in sink.reduced]
        )
        partial = f"p{self._row_names[sink.value]}"
        self.partials.append((partial, dtype, self.blocks * width))
        self.functions |= {f"join_{kind}", f"fold_rows_{kind}"}
        place, _ = self._place_code(target)
        skipped = f"block * {self.size_name(width)}"
        loops = [
            f"for {loop.index} in range({self._bounds(position)}):"
            for position, loop in enumerate(self.loops.inner)
        ]
        identity = identity_code(kind, dtype)
        first = _sum([self._outer_place(target), skipped])
        start = [Line(f"store({partial}, {first}, {identity})")]
        for loop in reversed(loops):
            start = [Line(loop), *indent(start)]
        self.item_start += start
        at = self._fresh("p")
        lines.append(Line(f"{at} = {_sum([place, skipped])}"))
        joined = f"join_{kind}(element({partial}, {at}), {name})"
        if kind in ("sum", "prod"):
            joined = f"element({partial}, {at}) {'+' if kind == 'sum' else '*'} {name}"
        lines.append(Line(f"store({partial}, {at}, {joined})", _comment(sink.value)))
        total = f"{partial}, {self.blocks}, {width}"
        self.finish.append(
            Line(
                f"fold_rows_{kind}({total}, {self.buffers[sink.value]}, {identity})",
                _comment(sink.value),
            )
        )

    def _outer_place(self, place: Place) -> str:
        """Return the source of a place that depends on outer and inner loops, not on rows."""
        terms = [self._term(axis, step) for axis, step in sorted(self.loops.steps(place).items())]
        start = "" if place.start.constant == 0 else self.size_name(place.start)
        return _sum([start, *terms])

    def _bounds(self, position: int) -> str:
        """Return the source of the bounds of a loop within a row."""
        loop = self.loops.inner[position]
        if position == len(self.loops.inner) - 1 and not self.loops.reduces_rows:
            return "lo, hi"
        return self.size_name(loop.size)

    def _write_row_sink(self, sink: Sink) -> None:
        """Write what becomes of a value that there is once in each row."""
        root = self._root(sink)
        name = cast_code(self._name(root, {}), sink.source.dtype, sink.value.dtype)
        lines = self.row.setdefault(self._ready[root], [])
        if sink.kind == "reduce":
            self._write_total(sink, name, lines, _comment(sink.value))
            return
        target = self.targets[sink]
        assert target is not None
        place, _ = self._place_code(target)
        code = f"store({self.buffers[sink.value]}, {place or 0}, {name})"
        lines.append(Line(code, _comment(sink.value)))

    # --- the loops around ---

    @property
    def items(self) -> Size:
        """The number of parts that threads can do."""
        return symbol(f"items{self.position}")

    @property
    def blocks(self) -> Size:
        """The number of blocks of rows."""
        return symbol(f"blocks{self.position}")

    def counts(self, values: Mapping[str, int]) -> dict[str, int]:
        """Return the numbers of items, blocks and so on, given the sizes that names stand for."""
        loops, k = self.loops, self.position
        inner = product([loop.size for loop in loops.inner]).evaluate(values)
        rows = product([loop.size for loop in loops.rows]).evaluate(values)
        outer = product([loop.size for loop in loops.outer]).evaluate(values)
        is_split = bool(loops.inner) and not loops.reduces_rows
        chunks = -(-inner // BLOCK) if is_split else 1
        per_block = ROWS if self.nest.blocked else max(1, BLOCK // max(1, inner))
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

    def lines(self) -> list[Line]:
        """Return the source of the nest."""
        writes = tuple(f"store({name}, " for name in self.unread)
        lines = self._all_lines()
        return [line for line in lines if not line.code.lstrip().startswith(writes)]

    def _all_lines(self) -> list[Line]:
        k = self.position
        body = self._row_lines()
        loops = self.loops
        head: list[Line] = []
        rest = "item"
        if loops.inner and not loops.reduces_rows:
            size = self.size_name(loops.inner[-1].size)
            chunk = "item"
            if loops.rows or loops.outer:
                head += [Line(f"chunk = item % chunks{k}"), Line(f"rest = item // chunks{k}")]
                rest, chunk = "rest", "chunk"
            head += [Line(f"lo = {chunk} * {BLOCK}"), Line(f"hi = min(lo + {BLOCK}, {size})")]
        if loops.rows:
            block = rest
            if loops.outer:
                head.append(Line(f"outer = {rest} // blocks{k}"))
                block = f"{rest} % blocks{k}"
                head += self._decode("outer", loops.outer)
            total = self.size_name(product([loop.size for loop in loops.rows]))
            head.append(Line(f"block = {block}"))
            head.append(Line(f"first_row = block * rows{k}"))
            head.append(Line(f"last_row = min(first_row + rows{k}, {total})"))
            if len(loops.rows) == 1:
                start = f"for {loops.rows[0].index} in range(first_row, last_row):"
                body = [Line(start), *indent(body)]
            else:
                inside = [*self._decode("row", loops.rows), *body]
                body = [Line("for row in range(first_row, last_row):"), *indent(inside)]
        body = head + self.item_start + body + self.item_end
        if loops.inner or loops.rows:
            body = [Line("for item in range(first, last):"), *indent(body)]
        span = f"span({k}, header, items{k})"
        lines = [Line(f"first, last = {span}"), Line("if first < last:")]
        lines += indent(self.top) + indent(body)
        if self.finish:
            lines.append(Line(f"if finishes({k}, header):"))
            lines += indent(self.finish)
        return lines

    def _decode(self, name: str, loops: list[Loop]) -> list[Line]:
        """Find the indices of loops that are counted as one."""
        lines = []
        for loop in reversed(loops[1:]):
            size = self.size_name(loop.size)
            lines += [Line(f"{loop.index} = {name} % {size}"), Line(f"{name} //= {size}")]
        return [*lines, Line(f"{loops[0].index} = {name}")]

    def _row_lines(self) -> list[Line]:
        lines: list[Line] = []
        for number_ in range(max([0, *self.row, *self.passes]) + 1):
            lines += self.row.get(number_, [])
            if number_ in self.passes:
                lines += self._pass_lines(self.passes[number_])
        return lines

    def _pass_lines(self, here: _Pass) -> list[Line]:
        if not self.loops.inner:
            return [*here.before, *(line for part in here.phases.values() for line in part)]
        last = self.loops.inner[-1]
        lines: list[Line] = []
        for phase, part in here.phases.items():
            if part:
                lines += [Line(f"for {last.index} in range(lo, hi):"), *indent(part)]
            lines += here.waves[phase]
        lines += here.flush
        if self.loops.reduces_rows:
            size = self.size_name(last.size)
            bound = Line(f"hi = min(lo + {BLOCK}, {size})")
            lines = [Line(f"for lo in range(0, {size}, {BLOCK}):"), *indent([bound, *lines])]
            for loop in reversed(self.loops.inner[:-1]):
                start = Line(f"for {loop.index} in range({self.size_name(loop.size)}):")
                lines = [start, *indent(lines)]
        return [*here.before, *lines, *here.after]


def _kind(sink: Sink) -> str:
    """Return the reduction; extremes of truth values are a matter of any and all."""
    kind: str = sink.value.attributes["kind"]
    if sink.value.dtype.kind == "b":
        kind = {"max": "any", "min": "all", "sum": "any", "prod": "all"}.get(kind, kind)
    return kind


def _comment(value: Value) -> str:
    """Return the operation and where the user wrote it."""
    return f"{value.operation}: {value.origin}" if value.origin else value.operation


def _sum(terms: list[str]) -> str:
    """Return the source of a sum."""
    return " + ".join(term for term in terms if term).replace("+ -", "- ")
