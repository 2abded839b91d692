"""Generate the source of one loop nest: its outputs, and the loops around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from numgrad.base.tuning import STACK_ELEMENTS, SUM_BLOCK
from numgrad.jit.emit.analysis import INNER
from numgrad.jit.emit.row_passes import NestPasses, Pass
from numgrad.jit.emit.scalar_code import cast_code, identity_code, type_code
from numgrad.jit.emit.statements import Line, comment_of, indent, sum_of
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.symbolic_sizes import ONE, Place, Size, product, symbol
from numgrad.jit.schedule.axes import Loop
from numgrad.jit.schedule.index_maps import Element
from numgrad.jit.schedule.schedule import LoopOutput, Schedule
from numgrad.kernels.move.bounds import BOUNDS

__all__ = ["NestSource", "band_lines", "kind_of"]

LINE = 8  # elements of a cache line, at least


class NestSource(NestPasses):
    """Writes one nest; the parameters are those of `NestLines`, and two more.

    Parameters
    ----------
    values : mapping, optional
        What the sizes are, if the source is for just these.
    supposes_near : bool
        Whether to compute sines where they are needed, as if no angle was far; ``far`` then notes
        if one was.

    Attributes
    ----------
    partials : list
        The arrays for the results of blocks: name, dtype, number of elements.
    functions, short_functions : set of str
        What of `numgrad.codegen.loop_runtime` it calls; and what it calls where it is short.
    unread : set of str
        Arrays that need not be written to.
    """

    def __init__(
        self,
        plan: Schedule,
        position: int,
        buffers: Mapping[Value, str],
        constants: Mapping[Value, str],
        names: count[int],
        *,
        values: Mapping[str, int] | None = None,
        supposes_near: bool = False,
    ) -> None:
        self.supposes_near = supposes_near
        super().__init__(plan, position, buffers, constants, names)
        self.values = values or {}
        self.partials: list[tuple[str, Any, Size]] = []
        self.functions = set()
        self.short_functions: set[str] = set()
        self.unread: set[str] = set()
        self.passes, self.scratch, self.rooms = {}, {}, {}
        self.item_start: list[Line] = []
        self.item_end: list[Line] = []
        self.finish: list[Line] = []
        self._write()

    def _write(self) -> None:
        for output in self.nest.outputs:  # names of what later outputs read
            if output.kind == "reduce":
                self._row_names[output.value] = self._fresh("r")
        in_row = [s for s in self.nest.outputs if not self._is_inner(s)]
        in_pass = [s for s in self.nest.outputs if self._is_inner(s)]
        for number_ in sorted({self._pass_of[output] for output in in_pass}):
            self._write_pass(number_, [s for s in in_pass if self._pass_of[s] == number_])
        for output in in_row:
            self._write_row_output(output)
        self._write_checks()

    def _is_inner(self, output: LoopOutput) -> bool:
        """Whether an output takes part in passes over the elements of a row."""
        return not self._is_row(output)

    def _write_output(self, output: LoopOutput, name: str, here: Pass, lines: list[Line]) -> None:
        """Write what becomes of a value that a pass computed at every element of a row."""
        dtype = output.value.dtype
        name = cast_code(name, output.source.dtype, dtype)
        comment = comment_of(output.value)
        target = self.targets[output]
        if output.kind == "scatter":
            lines += self._scatter_lines(output, name, here.names[max(here.names)])
            return
        if output.kind != "reduce":
            assert target is not None
            place, _ = self._place_code(target)
            lines.append(
                Line(f"store({self.buffers[output.value]}, {place or 0}, {name})", comment)
            )
            return
        if self.nest.blocked == output.reduced:
            self._write_blocked(output, name, lines)
            return
        self._write_reduced(output, name, here, lines)

    def _write_reduced(self, output: LoopOutput, name: str, here: Pass, lines: list[Line]) -> None:
        """Reduce a value that a pass computed over the elements of a row."""
        kind, dtype, target = kind_of(output), output.value.dtype, self.targets[output]
        comment = comment_of(output.value)
        result, identity = self._row_names[output.value], identity_code(kind, dtype)
        counter = f"k{result}"
        self.functions.add(f"fold_{kind}")
        if target is None and not self.appends:
            partial = self._partial(output, self.items)
            block = self._write_block(output, name, lines)
            here.flush.append(Line(f"store({partial}, item, {block})", comment))
            self._write_total(output, partial, self.items)
            return
        if target is None:
            partial = self._partial(output, self.runs)
            inner = self.size_name(product([loop.size for loop in self.loops.inner]))
            first = f"first_row * {inner} // {SUM_BLOCK}" if self.loops.rows else "0"
            start, end = self.item_start, self.item_end
            found = f"store({partial}, {counter}, {{}})"
            self._write_total(output, partial, self.runs)
        else:
            self.functions |= {f"merge_{kind}", f"merged_{kind}", "LEVELS"}
            levels, first = f"l{result}", "0"
            self.top.append(Line(f"{levels} = stack({type_code(dtype)}, LEVELS)"))
            start, end = here.before, here.after
            found = f"merge_{kind}({levels}, {counter}, {{}}, {identity})"
        start.append(Line(f"{counter} = {first}"))
        if len(self.loops.inner) > 1 or target is None:
            self._write_appended(output, name, lines, (start, here.flush, end), found)
        else:
            block = self._write_block(output, name, lines)
            here.flush += [Line(found.format(block), comment), Line(f"{counter} += 1")]
        if target is None:
            return
        here.after.append(Line(f"{result} = merged_{kind}({levels}, {counter}, {identity})"))
        place, _ = self._place_code(target)
        here.after.append(Line(f"store({self.buffers[output.value]}, {place or 0}, {result})"))

    def _write_block(self, output: LoopOutput, name: str, lines: list[Line]) -> str:
        """Keep what there is of a block; return the source of what it is reduced to."""
        kind, dtype = kind_of(output), output.value.dtype
        buffer = f"b{self._row_names[output.value]}"
        self.rooms[buffer] = dtype
        lines.append(Line(f"store({buffer}, {self._offset()}, {name})"))
        return f"fold_{kind}({buffer}, hi - lo, {identity_code(kind, dtype)})"

    def _write_appended(
        self,
        output: LoopOutput,
        name: str,
        lines: list[Line],
        places: tuple[list[Line], list[Line], list[Line]],
        found: str,
    ) -> None:
        """Reduce elements of several loops as if they were one run, which blocks cut anywhere.

        In front of the loops, behind each run of the innermost one, and behind all stands what the
        `places` get; `found` is what to do with the result of a block.
        """
        kind, dtype, comment = kind_of(output), output.value.dtype, comment_of(output.value)
        result, identity = self._row_names[output.value], identity_code(kind, dtype)
        buffer, filled, counter = f"b{result}", f"f{result}", f"k{result}"
        start, flush, end = places
        self.functions.add("shifted")
        self.top.append(Line(f"{buffer} = stack({type_code(dtype)}, {2 * SUM_BLOCK})"))
        start.append(Line(f"{filled} = 0"))
        lines.append(Line(f"store({buffer}, {filled} + {self._offset()}, {name})", comment))
        whole = found.format(f"fold_{kind}({buffer}, {SUM_BLOCK}, {identity})")
        flush += [
            Line(f"{filled} += hi - lo"),
            Line(f"if {filled} >= {SUM_BLOCK}:"),
            Line(f"    {whole}", comment),
            Line(f"    {filled} = shifted({buffer}, {filled})"),
            Line(f"    {counter} += 1"),
        ]
        rest = found.format(f"fold_{kind}({buffer}, {filled}, {identity})")
        end += [
            Line(f"if {filled} > 0:"),
            Line(f"    {rest}", comment),
            Line(f"    {counter} += 1"),
        ]

    def _partial(self, output: LoopOutput, size: Size) -> str:
        """Return the name of a new array for what blocks, or rows, are reduced to."""
        partial = f"p{self._row_names[output.value]}"
        self.partials.append((partial, output.value.dtype, size))
        return partial

    def _write_total(
        self, output: LoopOutput, partial: str, size: Size, what: str = "total"
    ) -> None:
        """Reduce what is in an array in the end: results of blocks, or else elements (`fold`)."""
        kind, dtype = kind_of(output), output.value.dtype
        self.functions.add(f"{what}_{kind}")
        total = f"{what}_{kind}({partial}, {size}, {identity_code(kind, dtype)})"
        line = Line(f"store({self.buffers[output.value]}, 0, {total})", comment_of(output.value))
        self.finish.append(line)

    def _scatter_lines(
        self, output: LoopOutput, name: str, names: Mapping[Element, str]
    ) -> list[Line]:
        """Return the lines that add or put a value at positions."""
        value, target = output.value, self.targets[output]
        assert target is not None
        strides = self.plan.elements.dims.strides(value)
        at = self._position_code(self._root(output), target, strides, names, value) or "0"
        lines = []
        if not at.isidentifier():
            code, at = at, self._fresh("p")
            lines.append(Line(f"{at} = {code}"))
        buffer = self.buffers[value]
        if value.attributes["adds"]:
            sign = "|" if value.dtype.kind == "b" else "+"
            name = f"element({buffer}, {at}) {sign} {name}"
        return [*lines, Line(f"store({buffer}, {at}, {name})", comment_of(value))]

    def _write_checks(self) -> None:
        """Raise for positions that lead outside, once all have been looked at."""
        elements = self.plan.elements
        for check in self.nest.checks:
            index, flag = check.operands
            attributes = check.attributes
            low = elements.number_of(check, "bound", 0, attributes["low"])
            size = elements.number_of(check, "bound", 1, attributes["size"])
            count = product([symbol(name) for name in elements.domain(index)])
            which = list(BOUNDS).index(attributes["kind"])
            given = f"{self.buffers[index]}, {count}, {low}, {which}, {attributes['dim']}, {size}"
            self.finish.append(Line(f"if element({self.buffers[flag]}, 0):"))
            self.finish.append(Line(f"    raise_outside({given})", comment_of(check)))

    def _write_blocked(self, output: LoopOutput, name: str, lines: list[Line]) -> None:
        """Add rows up, those of a block in one row of partial sums."""
        kind, dtype = kind_of(output), output.value.dtype
        target = self.targets[output]
        assert target is not None
        width = product(
            [self.loops.sizes[a] for a in range(len(output.axes)) if a not in output.reduced]
        )
        partial = f"p{self._row_names[output.value]}"
        self.partials.append((partial, dtype, self.parts * self.lanes * width))
        self.functions |= {f"join_{kind}", f"fold_rows_{kind}"}
        place, _ = self._place_code(target)
        loops = [
            f"for {loop.index} in range({self._bounds(position)}):"
            for position, loop in enumerate(self.loops.inner)
        ]
        identity = identity_code(kind, dtype)
        skipped = f"lane * {self.size_name(width)}"
        first = sum_of([self._outer_place(target), skipped])
        start = [Line(f"store({partial}, {first}, {identity})")]
        first_lane = f"first_row // {self.step} * {self.lanes}"
        last_lane = f"(last_row + {self.step} - 1) // {self.step} * {self.lanes}"
        for loop in reversed([f"for lane in range({first_lane}, {last_lane}):", *loops]):
            start = [Line(loop), *indent(start)]
        self.item_start += start
        lane = self._lane()
        at = self._fresh("p")
        lines.append(Line(f"{at} = {sum_of([place, f'{lane} * {self.size_name(width)}'])}"))
        joined = f"join_{kind}(element({partial}, {at}), {name})"
        if kind in ("sum", "prod"):
            joined = f"element({partial}, {at}) {'+' if kind == 'sum' else '*'} {name}"
        lines.append(Line(f"store({partial}, {at}, {joined})", comment_of(output.value)))
        rows = product([loop.size for loop in self.loops.rows])
        how = f"{rows}, {self.lanes}, {self.step}, {width}"
        self.finish.append(
            Line(
                f"fold_rows_{kind}({partial}, {how}, {self.buffers[output.value]}, {identity})",
                comment_of(output.value),
            )
        )

    def _lane(self) -> str:
        """Return the name of the number of the lane of a row, of all of its block and before."""
        known = self._fixed.get(("lane",))
        if known is None:
            known = self._fixed["lane",] = self._fresh("p")
            row = self._flat_row()
            code = f"{row} // {self.step} * {self.lanes} + ({row} & ({self.lanes} - 1))"
            self.row.setdefault(0, []).insert(0, Line(f"{known} = {code}"))
        return known

    def _flat_row(self) -> str:
        """Return the source of the number of a row."""
        terms, stride = [], ONE
        for loop in reversed(self.loops.rows):
            terms.append(self._term(loop.axis, stride))
            stride = stride * loop.size
        return f"({sum_of(terms)})" if len(terms) > 1 else sum_of(terms) or "0"

    def _outer_place(self, place: Place) -> str:
        """Return the source of a place that depends on outer and inner loops, not on rows."""
        terms = [self._term(axis, step) for axis, step in sorted(self.loops.steps(place).items())]
        start = "" if place.start.constant == 0 else self.size_name(place.start)
        return sum_of([start, *terms])

    def _bounds(self, position: int) -> str:
        """Return the source of the bounds of a loop within a row."""
        loop = self.loops.inner[position]
        if position == len(self.loops.inner) - 1 and not self.visits_rows:
            return "lo, hi"
        return self.size_name(loop.size)

    def _write_row_output(self, output: LoopOutput) -> None:
        """Write what becomes of a value that there is once in each row."""
        root = self._root(output)
        name = cast_code(self._name(root, {}), output.source.dtype, output.value.dtype)
        lines = self.row.setdefault(self._ready[root], [])
        if output.kind == "reduce":
            rows = product([loop.size for loop in self.loops.rows])
            partial = self._partial(output, rows)
            lines.append(
                Line(f"store({partial}, {self._flat_row()}, {name})", comment_of(output.value))
            )
            self._write_total(output, partial, rows, "fold")
            return
        if output.kind == "scatter":
            lines += self._scatter_lines(output, name, {})
            return
        target = self.targets[output]
        assert target is not None
        place, _ = self._place_code(target)
        code = f"store({self.buffers[output.value]}, {place or 0}, {name})"
        lines.append(Line(code, comment_of(output.value)))

    @property
    def items(self) -> Size:
        """The number of parts that threads can do."""
        return symbol(f"items{self.position}")

    @property
    def runs(self) -> Size:
        """The number of blocks of elements, where these are one run."""
        return symbol(f"runs{self.position}")

    @property
    def lanes(self) -> Size:
        """Among how many lanes rows are dealt out."""
        return symbol(f"lanes{self.position}")

    @property
    def step(self) -> Size:
        """The number of rows that a lane of a block has, times the lanes."""
        return symbol(f"step{self.position}")

    @property
    def parts(self) -> Size:
        """The number of such blocks."""
        return symbol(f"parts{self.position}")

    def lines(self, values: Mapping[str, int] | None = None) -> list[Line]:
        """Return the source of the nest; given what its sizes are, the source for just these."""
        return band_lines([self], values)

    def without_unread(self, lines: list[Line]) -> list[Line]:
        """Return lines but for those that write to arrays that nobody reads."""
        writes = tuple(f"store({name}, " for name in self.unread)
        return [line for line in lines if not line.code.lstrip().startswith(writes)]

    def length(self, values: Mapping[str, int]) -> int:
        """Return the length of the innermost loop."""
        return self.loops.inner[-1].size.evaluate(values) if self.loops.inner else 1

    def may_suppose_near(self, most: int) -> bool:
        """Whether it has sines, at `most` so many, and can be done again if an angle was far."""
        angles = [e for e in self._order if self.level(e) == INNER and self.has_angle(e)]
        written = {self.buffers[output.value] for output in self.nest.outputs}
        read = {self.buffers[value] for value, _ in self.read_places}
        return 0 < len(angles) <= most and not written & read

    def _room_lines(self, values: Mapping[str, int] | None) -> list[Line]:
        """Make room for the elements of blocks.

        The arrays do not begin a power of two apart: they would compete for the same cache lines.
        """
        if not self.rooms:
            return []
        length = SUM_BLOCK
        if values is not None:
            length = min(SUM_BLOCK, self.length(values))
        length += LINE - length % LINE
        kinds = {name: type_code(dtype) for name, dtype in self.rooms.items()}
        if len(self.rooms) * length <= STACK_ELEMENTS:
            return [Line(f"{name} = stack({kind}, {length})") for name, kind in kinds.items()]
        lines, at = [], 0
        blocks = f"blocks_{self.position}"
        for name, kind in kinds.items():
            lines.append(Line(f"{name} = part({blocks}, {at}, {length}, {kind})"))
            at += length * self.rooms[name].itemsize
        return [Line(f"{blocks} = np.empty({at}, np.uint8)"), *lines]

    def before_items(self, values: Mapping[str, int] | None) -> list[Line]:
        """Return the lines in front of the loop over items."""
        return self._room_lines(values) + self.top

    def item_lines(self) -> list[Line]:
        """Return the lines that do one item."""
        k = self.position
        body = self._row_lines()
        loops = self.loops
        head: list[Line] = []
        rest = "item"
        if loops.inner and not self.visits_rows:
            size = self.size_name(loops.inner[-1].size)
            chunk = "item"
            if loops.rows or loops.outer:
                head += [Line(f"chunk = item % chunks{k}"), Line(f"rest = item // chunks{k}")]
                rest, chunk = "rest", "chunk"
            head += [
                Line(f"lo = {chunk} * {SUM_BLOCK}"),
                Line(f"hi = min(lo + {SUM_BLOCK}, {size})"),
            ]
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
        return head + self.item_start + body + self.item_end

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

    def _pass_lines(self, here: Pass) -> list[Line]:
        if not self.loops.inner:
            return [*here.before, *(line for part in here.phases.values() for line in part)]
        last = self.loops.inner[-1]
        lines: list[Line] = []
        for phase, part in here.phases.items():
            if part:
                lines += [Line(f"for {last.index} in range(lo, hi):"), *indent(part)]
            lines += here.trigonometric[phase]
        lines += here.flush
        if self.visits_rows:
            size = self.size_name(last.size)
            bound = Line(f"hi = min(lo + {SUM_BLOCK}, {size})")
            lines = [Line(f"for lo in range(0, {size}, {SUM_BLOCK}):"), *indent([bound, *lines])]
            for loop in reversed(self.loops.inner[:-1]):
                start = Line(f"for {loop.index} in range({self.size_name(loop.size)}):")
                lines = [start, *indent(lines)]
        return [*here.before, *lines, *here.after]


def band_lines(nests: Sequence[NestSource], values: Mapping[str, int] | None = None) -> list[Line]:
    """Return the source of nests that are done together, an item of each after the other.

    Parameters
    ----------
    nests : sequence of NestSource
        In the order of their positions.
    values : mapping, optional
        What the sizes are; the source is for just these.
    """
    k = nests[0].position
    items = f"items{k}" if len(nests) == 1 else f"band{k}"
    before: list[Line] = []
    body: list[Line] = []
    for nest in nests:
        lines = nest.without_unread(nest.item_lines())  # may give names to sizes, before the loop
        before += nest.without_unread(nest.before_items(values))
        if len(nests) > 1:
            lines = [Line(f"if item < {nest.items}:"), *indent(lines)]
        body += lines
    first = nests[0].loops
    if len(nests) > 1 or first.inner or first.rows:
        body = [Line("for item in range(first, last):"), *indent(body)]
    lines = [Line(f"first, last = span({k}, header, {items})"), Line("if first < last:")]
    lines += indent(before) + indent(body)
    finish = [line for nest in nests for line in nest.finish]
    if finish:
        lines.append(Line(f"if finishes({k}, header):"))
        lines += indent(finish)
    return lines


def kind_of(output: LoopOutput) -> str:
    """Return the reduction; extremes of truth values are a matter of any and all."""
    kind: str = output.value.attributes["kind"]
    if output.value.dtype.kind == "b":
        kind = {"max": "any", "min": "all", "sum": "any", "prod": "all"}.get(kind, kind)
    return kind
