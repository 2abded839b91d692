"""Generate one loop nest: its outputs, and the loops around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from numgrad.base.tuning import FEW_COLUMNS, STACK_ELEMENTS, SUM_BLOCK
from numgrad.codegen.angle_passes import angles_in, near_angles, phases
from numgrad.codegen.fold_passes import in_blocks, without_folds
from numgrad.codegen.known_numbers import with_numbers
from numgrad.codegen.loop_distribution import on_stack
from numgrad.codegen.loop_passes import assigned, in_inner_loops, names_in, without_stores
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Do,
    Expression,
    For,
    If,
    Load,
    Name,
    Number,
    Statement,
    Store,
    Unpack,
    call,
    combine,
    type_code,
)
from numgrad.codegen.narrow_rows import (
    functions_apart,
    has_functions,
    in_segments,
    is_by_rows,
)
from numgrad.jit.emit.analysis import Analysis
from numgrad.jit.emit.folds import BlockFolds
from numgrad.jit.emit.nest_parts import NestParts
from numgrad.jit.emit.row_passes import Pass, RowPasses
from numgrad.jit.emit.scalar_code import (
    FINISHES,
    PART,
    SPAN,
    cast_code,
    new_array,
    size_code,
)
from numgrad.jit.emit.statements import ElementCode, comment_of
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.symbolic_sizes import Size, product, symbol
from numgrad.jit.schedule.axes import Loop
from numgrad.jit.schedule.index_maps import Element
from numgrad.jit.schedule.nests import LoopOutput
from numgrad.jit.schedule.schedule import Schedule
from numgrad.kernels.move.bounds import BOUNDS

__all__ = ["LoopNest", "band_statements", "rooms_of_blocks"]

LINE = 8  # elements of a cache line, at least
_RAISE_OUTSIDE = Name("raise_outside", "numgrad.kernels.move.bounds")


class LoopNest:
    """One nest: the statements of its parts.

    Parameters
    ----------
    plan : Schedule
    position : int
        Which step of the plan it is.
    buffers : mapping
        The name of the array that holds each kept value.
    constants : mapping
        The expression of each constant.
    names : iterator of int
        Running numbers, for names.
    values : mapping
        The numbers that the names of sizes stand for; what is written by them holds for rows of
        one block, or for those of more.
    length : int, optional
        Of the innermost loop, of a nest with a single item: values that are kept are on the stack,
        and no reduction is cut up.

    Attributes
    ----------
    unread : set of str
        Arrays that need not be written to.
    is_near : bool
        Whether sines are computed in the loops, as if no angle was far.
    """

    is_near = False

    def __init__(
        self,
        plan: Schedule,
        position: int,
        buffers: Mapping[Value, str],
        constants: Mapping[Value, Expression],
        names: count[int],
        values: Mapping[str, int],
        *,
        length: int | None = None,
    ) -> None:
        self.given = plan, position, buffers, constants, names, values
        self.position, self.length = position, length
        self.facts = Analysis(plan, position)
        self.nest, self.loops = self.facts.nest, self.facts.loops
        self.code = ElementCode(self.facts, buffers, constants, names)
        self.parts = NestParts(self.facts, self.code)
        self.passes = RowPasses(self.code, self._write_output, self._room_of_row)
        self.unread: set[str] = set()
        self.rooms_between: dict[str, np.dtype[Any]] = {}
        self._items: dict[bool, list[Statement]] = {}
        self.kept_in_strips: set[str] = set()  # arrays for a row that are not read for it then
        self.has_short_rows = self.facts.has_short_rows(values)
        self.is_narrow = length is None and self.facts.is_narrow(values)
        self.length_of_row = self.facts.length(values)
        self.folds = BlockFolds(self.parts, length is not None, self.has_short_rows)
        self._write()
        if length is None:
            self.item()  # so that all arrays are known

    def _write(self) -> None:
        facts, outputs = self.facts, self.nest.outputs
        for output in outputs:  # names of what later outputs read
            if output.kind == "reduce":
                result = self.code.results[output.value] = self.code.fresh("r")
                self.code.types[result] = output.value.dtype
        in_pass = [output for output in outputs if not facts.is_row(output)]
        for number in sorted({facts.pass_of[output] for output in in_pass}):
            self.passes.write(number, [s for s in in_pass if facts.pass_of[s] == number])
        for output in outputs:
            if facts.is_row(output):
                self._write_row_output(output)
        self._write_checks()
        for here in self.passes.passes.values():
            if self.loops.inner:
                loop = self._loop(here)
                here.loops = [loop] if self.is_narrow else self._phases(loop)

    # --- outputs ---

    def _write_output(self, output: LoopOutput, value: Expression, here: Pass) -> None:
        """Write what becomes of a value that a pass computed at every element of a row."""
        value = cast_code(value, output.source.dtype, output.value.dtype)
        if output.kind == "scatter":
            here.lines += self._scattered(output, value, here.names)
        elif output.kind != "reduce":
            here.lines.append(self.parts.stored(output, value, comment_of(output.value)))
        elif self.nest.blocked == output.reduced:
            self.folds.over_rows(output, value, here)
        else:
            self.folds.in_row(output, value, here)

    def _write_row_output(self, output: LoopOutput) -> None:
        """Write what becomes of a value that there is once in each row."""
        root = self.facts.root(output)
        value = cast_code(self.code.name(root, {}), output.source.dtype, output.value.dtype)
        lines = self.code.row.setdefault(self.facts.ready[root], [])
        if output.kind == "reduce":
            self.folds.to_number(output, value, lines)
        elif output.kind == "scatter":
            lines += self._scattered(output, value, {})
        else:
            lines.append(self.parts.stored(output, value, comment_of(output.value)))

    def _scattered(
        self, output: LoopOutput, added: Expression, names: Mapping[Element, Expression]
    ) -> list[Statement]:
        """Return what adds or puts a value at positions."""
        value, target, code = output.value, self.facts.targets[output], self.code
        assert target is not None
        strides = code.elements.dims.strides(value)
        at = code.at_positions(self.facts.root(output), target, strides, names, value)
        lines: list[Statement] = []
        if not isinstance(at, Name | Number):
            name = code.fresh("p")
            lines.append(Assign(name, at))
            at = Name(name)
        buffer = self.parts.buffer(value)
        if value.attributes["adds"]:
            added = combine("|" if value.dtype.kind == "b" else "+", Load(buffer, at), added)
        return [*lines, Store(buffer, at, added, comment_of(value))]

    def _write_checks(self) -> None:
        """Raise for positions that lead outside, once all have been looked at."""
        elements = self.code.elements
        for check in self.nest.checks:
            index, flag = check.operands
            attributes = check.attributes
            low = elements.number_of(check, "bound", 0, attributes["low"])
            size = elements.number_of(check, "bound", 1, attributes["size"])
            count = product([symbol(name) for name in elements.domain(index)])
            which = list(BOUNDS).index(attributes["kind"])
            bounds = size_code(low), which, attributes["dim"], size_code(size)
            error = call(_RAISE_OUTSIDE, self.parts.buffer(index), size_code(count), *bounds)
            self.parts.checks.append(
                If(Load(self.parts.buffer(flag), ZERO), [Do(error, comment_of(check))])
            )

    # --- sines ---

    def near(self, most: int) -> LoopNest | None:
        """Return the nest with sines in the loops, as if none were far; ``far`` is set if one is.

        None if it has none, or more than `most`, or could not be done again: it overwrites inputs.
        """
        passes = self.passes.passes.values() if self.loops.inner else ()
        angles = [angle for here in passes for angle in angles_in(here.lines, self._is_real)]
        written = {self.parts.buffer(output.value) for output in self.nest.outputs}
        read = {self.parts.buffer(value) for value, _ in self.facts.read_places}
        if not 0 < len(angles) <= most or written & read:
            return None
        nest = copy(self)
        nest.is_near = True
        return nest

    def _is_real(self, variable: str) -> bool:
        dtype = self.code.types.get(variable)  # positions have none
        return dtype is not None and dtype.kind == "f"

    def _room_of_block(self, variable: str) -> str:
        room = self.code.fresh("w")
        self.rooms_between[room] = self.code.types[variable]
        return room

    def _phases(self, loop: For) -> list[Statement]:
        return phases(loop, self._room_of_block, self._is_real, self.code.types.get)

    # --- rooms ---

    def _room_of_row(self, name: str, dtype: np.dtype[Any], size: Size) -> Statement:
        if self.length is not None:
            return on_stack(name, dtype, self.length)
        return new_array(name, self.code.size(size), dtype)

    def before_items(self, values: Mapping[str, int] | None) -> list[Statement]:
        """Return what stands in front of the loop over items; given the sizes, for just these."""
        length = SUM_BLOCK
        if values is not None and not self.is_narrow:
            length = min(length, self.facts.length(values))
        rooms = self.parts.rooms if self.is_near else self.parts.rooms | self.rooms_between
        runs = [on_stack(name, *of_run) for name, of_run in self.parts.runs.items()]
        unused = set() if self.is_near else self.kept_in_strips
        top = [line for line in self.code.top if unused.isdisjoint(assigned([line]))]
        return [*rooms_of_blocks(rooms, length, f"blocks_{self.position}"), *runs, *top]

    # --- loops ---

    def item(self) -> list[Statement]:
        """Return what does one item."""
        if self.is_near not in self._items:
            lines = in_blocks(self._item(), self.parts.levels, self.parts.across_items)
            self._items[self.is_near] = self._sized(without_folds(lines, self.parts.room))
        return self._items[self.is_near]

    def _sized(self, lines: list[Statement]) -> list[Statement]:
        """Return lines with the length of a row as a number in them, if it is only a few."""
        size = self.code.size(self.loops.inner[-1].size) if self.is_narrow else None
        if type(size) is not Name or self.length_of_row > FEW_COLUMNS:
            return lines
        return with_numbers([Assign(size.id, Number(self.length_of_row)), *lines])

    def _item(self) -> list[Statement]:
        k, loops, size = self.position, self.loops, self.code.size
        body = self.row()
        head: list[Statement] = []
        rest: Expression = Name("item")
        if self.is_narrow and not self.facts.visits_rows:
            head += [Assign("lo", ZERO), Assign("hi", size(loops.inner[-1].size))]
        elif loops.inner and not self.facts.visits_rows:
            length = size(loops.inner[-1].size)
            chunk = rest
            if loops.rows or loops.outer:
                head.append(Assign("chunk", combine("%", "item", f"chunks{k}")))
                head.append(Assign("rest", combine("//", "item", f"chunks{k}")))
                rest, chunk = Name("rest"), Name("chunk")
            head.append(Assign("lo", combine("*", chunk, SUM_BLOCK)))
            head.append(_block_end(length))
        if loops.rows:
            block = rest
            if loops.outer:
                head.append(Assign("outer", combine("//", rest, f"blocks{k}")))
                block = combine("%", rest, f"blocks{k}")
                head += self.decoded("outer", loops.outer)
            total = size(product([loop.size for loop in loops.rows]))
            end = combine("+", "first_row", f"rows{k}")
            head.append(Assign("block", block))
            head.append(Assign("first_row", combine("*", "block", f"rows{k}")))
            head.append(Assign("last_row", call(Name("min"), end, total)))
            body = self._over_rows(body)
        return [*head, *self.parts.item_start, *body, *self.parts.item_end]

    def _over_rows(self, body: list[Statement]) -> list[Statement]:
        """Return the loop over the rows of an item, in groups of as many as there are lanes.

        Where functions are computed of several rows at once, these are more than a group has.
        """
        rows = For(self.parts.over_rows, Name("first_row"), Name("last_row"), body)
        has_strips = self.is_narrow and has_functions(body)
        if not self.nest.blocked or not is_by_rows(rows) or has_strips:
            return self._over_group(replace(rows, body=[*self.parts.lane(False), *body]))
        lanes = size_code(self.parts.counted("lanes"))
        end = Assign("group_end", call(Name("min"), combine("+", "group", lanes), "last_row"))
        body = [*self.parts.lane(True), *body]
        lines = self._over_group(For(rows.index, Name("group"), Name("group_end"), body))
        return [For("group", rows.first, rows.last, [end, *lines], lanes)]

    def _over_group(self, rows: For) -> list[Statement]:
        """Return a loop over rows; of narrow ones, with functions of many."""
        is_narrow = self.is_narrow and not self.is_near
        if not is_narrow or not is_by_rows(rows):
            decode = self.decoded("row", self.loops.rows) if len(self.loops.rows) > 1 else []
            rows = replace(rows, body=[*decode, *rows.body])
            return in_inner_loops([rows], self._phases) if is_narrow else [rows]
        length = self.code.size(self.loops.inner[-1].size)
        room, kept = self._room_of_block, set(self.passes.kept.values())
        lines = functions_apart(rows, length, room, self._is_real, self._counted, kept)
        self.kept_in_strips = kept.difference(names_in(lines))
        return in_inner_loops(lines, self._phases)

    def _counted(self, rows: For) -> list[Statement]:
        return in_segments(
            rows, [(loop.index, self.code.size(loop.size)) for loop in self.loops.rows]
        )

    def indices_of_rows(self, name: str) -> list[Statement]:
        """Return what finds the indices of a row's loops from that of the loop over all."""
        if len(self.loops.rows) < 2:
            return []
        return [Assign(name, Name(self.parts.over_rows)), *self.decoded(name, self.loops.rows)]

    def dtype_to_hand_on(self, name: str) -> np.dtype[Any] | None:
        """Return the dtype of a variable of a row, if it can be in an array for all rows."""
        dtype = np.dtype(np.int64) if name in self.code.bases else self.code.types.get(name)
        can_be = dtype is not None and (dtype.kind == "f" or name in self.code.bases)
        return dtype if can_be and not self.passes.kept else None

    def decoded(self, name: str, loops: list[Loop]) -> list[Statement]:
        """Find the indices of loops that are counted as one."""
        lines: list[Statement] = []
        for loop in reversed(loops[1:]):
            size = self.code.size(loop.size)
            lines.append(Assign(loop.index, combine("%", name, size)))
            lines.append(Assign(name, combine("//", name, size)))
        return [*lines, Assign(loops[0].index, Name(name))]

    def row(self) -> list[Statement]:
        """Return what does one row."""
        lines: list[Statement] = []
        passes = self.passes.passes
        for number in range(max([0, *self.code.row, *passes]) + 1):
            lines += self.code.row.get(number, [])
            if number in passes:
                lines += self._pass(passes[number])
        return lines

    def _loop(self, here: Pass) -> For:
        """Return the loop of a pass over a block of a row, as it was written."""
        return For(self.loops.inner[-1].index, Name("lo"), Name("hi"), here.lines)

    def block(self, here: Pass) -> list[Statement]:
        """Return what a pass does with a block of a row."""
        if not self.loops.inner:
            return here.lines
        return [near_angles(self._loop(here), self._is_real)] if self.is_near else here.loops

    def _pass(self, here: Pass) -> list[Statement]:
        lines = self.block(here)
        if self.facts.visits_rows and self.loops.inner and self.length is None:
            size = self.code.size(self.loops.inner[-1].size)
            if self.has_short_rows:
                return [*here.before, Assign("lo", ZERO), Assign("hi", size), *lines, *here.after]
            body = [_block_end(size), *lines]
            lines = [For("lo", ZERO, size, body, Number(SUM_BLOCK))]
            for loop in reversed(self.loops.inner[:-1]):
                lines = [For(loop.index, ZERO, self.code.size(loop.size), lines)]
        return [*here.before, *lines, *here.after]


def _block_end(size: Expression) -> Statement:
    return Assign("hi", call(Name("min"), combine("+", "lo", SUM_BLOCK), size))


def rooms_of_blocks(rooms: Mapping[str, np.dtype[Any]], length: int, name: str) -> list[Statement]:
    """Make arrays for the elements of blocks of a length.

    The arrays do not begin a power of two apart: they would compete for the same cache lines.
    """
    length += LINE - length % LINE
    if len(rooms) * length <= STACK_ELEMENTS:
        return [on_stack(room, dtype, length) for room, dtype in rooms.items()]
    lines: list[Statement] = []
    at = 0
    for room, dtype in rooms.items():
        lines.append(Assign(room, call(PART, name, at, length, type_code(dtype))))
        at += length * dtype.itemsize
    return [new_array(name, at, np.dtype(np.uint8)), *lines]


def band_statements(
    nests: Sequence[LoopNest], values: Mapping[str, int] | None = None
) -> list[Statement]:
    """Return nests that are done together, an item of each after the other.

    Parameters
    ----------
    nests : sequence of LoopNest
        In the order of their positions.
    values : mapping, optional
        What the sizes are; the statements are for just these, and do all items.
    """
    k = nests[0].position
    items = f"items{k}" if len(nests) == 1 else f"band{k}"
    before: list[Statement] = []
    body: list[Statement] = []
    for nest in nests:
        item = without_stores(nest.item(), nest.unread)  # may name sizes, before the loop
        before += without_stores(nest.before_items(values), nest.unread)
        if len(nests) > 1:
            item = [If(combine("<", "item", Name(f"items{nest.position}")), item)]
        body += item
    first = nests[0].loops
    if len(nests) > 1 or first.inner or first.rows:
        body = [For("item", Name("first"), Name("last"), body)]
    finish = [line for nest in nests for line in nest.parts.finish]
    if values is not None:  # all items, on one thread
        return [Assign("first", ZERO), Assign("last", Name(items)), *before, *body, *finish]
    lines: list[Statement] = [
        Unpack(("first", "last"), call(SPAN, k, "header", items)),
        If(combine("<", "first", "last"), before + body),
    ]
    if finish:
        lines.append(If(call(FINISHES, k, "header"), finish))
    return lines
