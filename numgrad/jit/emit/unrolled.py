"""Generate unrolled loop nests: few elements, sizes written out.

There is a single item, of one block and one chunk, so nothing is cut up: sums are spelled out, in
the order in which blocks are added up. And rows are not done one after the other where a function
such as ``exp`` is computed once in a row: first comes what leads to it in all rows, then it, of
several rows at a time, then what follows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.base.tuning import UNROLLED_LANES
from numgrad.jit.emit.loop_nest import NestSource, kind_of
from numgrad.jit.emit.row_passes import Pass
from numgrad.jit.emit.scalar_code import identity_code, type_code
from numgrad.jit.emit.statements import Line, comment_of, indent
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.symbolic_sizes import product
from numgrad.jit.schedule.schedule import LoopOutput

__all__ = ["ShortSource", "is_simple", "nest_lines"]

MANY_ANGLES = 64  # sines that a loop is given for itself: with more LLVM gives up
SPELLED = 16  # numbers whose sum is one expression
MANY_ROWS = 8  # from which on LLVM shall not unroll what a row is
_ASSIGNED = re.compile(r"(\w+) = ")
_NAME = re.compile(r"[a-z]\w*")
_MADE = re.compile(r"(\w+) = np\.empty\(.*, (np\.\w+)\)$")


def is_simple(nest: NestSource, values: Mapping[str, int]) -> bool:
    """Whether a nest has a single item, and one loop within its rows at most."""
    loops = nest.loops
    sizes = [loop.size.evaluate(values) for loop in [*loops.rows, *loops.inner]]
    return (
        values[f"items{nest.position}"] == 1
        and not loops.outer
        and len(loops.inner) <= 1
        and 0 not in sizes
    )


def nest_lines(nest: NestSource, values: Mapping[str, int]) -> list[Line]:
    """Return the source of a short nest, with sines in the loops instead of in between.

    They are computed as if no angle was far; if one was, all is done again. That takes no calls,
    and lets LLVM see the nest as a whole: what a small one needs.
    """
    if nest.may_suppose_near(MANY_ANGLES):
        near = _lines(nest, values, supposes_near=True)
        return [Line("far = False"), *near, Line("if far:"), *indent(_lines(nest, values))]
    return _lines(nest, values)


def _lines(
    nest: NestSource, values: Mapping[str, int], *, supposes_near: bool = False
) -> list[Line]:
    """Return the source of a nest for these sizes."""
    kind = ShortSource if is_simple(nest, values) else NestSource
    source = kind(
        nest.plan,
        nest.position,
        nest.buffers,
        nest.constants,
        nest.names,
        values=values,
        supposes_near=supposes_near,
    )
    source.unread = nest.unread
    rooms = [
        Line(f"{name} = stack({type_code(dtype)}, {size.evaluate(values)})")
        for name, dtype, size in source.partials
    ]
    lines = source.lines(values)
    nest.short_functions |= source.functions
    used = {name for line in lines for name in _NAME.findall(line.code)}
    sizes = [Line(f"{name} = {values[name]}") for name in sorted(used) if name in values]
    return [*sizes, *rooms, *lines]


class ShortSource(NestSource):
    """Writes a nest for which `is_simple` holds; the parameters are those of `NestSource`."""

    @property
    def _count(self) -> int:
        """The number of rows."""
        return product([loop.size for loop in self.loops.rows]).evaluate(self.values)

    @property
    def _row_index(self) -> str:
        rows = self.loops.rows
        return rows[0].index if len(rows) == 1 else "row"

    # --- reductions ---

    def _write_reduced(self, output: LoopOutput, name: str, here: Pass, lines: list[Line]) -> None:
        kind, dtype = kind_of(output), output.value.dtype
        result = self._row_names[output.value]
        buffer, target = f"b{result}", self.targets[output]
        self.rooms[buffer] = dtype
        lines.append(Line(f"store({buffer}, {self._offset()}, {name})"))
        steps, total = self._folded(kind, buffer, self.length(self.values))
        here.flush += steps
        here.flush.append(Line(f"{result} = {total}", comment_of(output.value)))
        if target is None:
            self._write_total(output, result, here.flush, comment_of(output.value))
            return
        place, _ = self._place_code(target)
        here.after.append(Line(f"store({self.buffers[output.value]}, {place or 0}, {result})"))

    def _write_total(self, output: LoopOutput, block: str, lines: list[Line], comment: str) -> None:
        kind, dtype = kind_of(output), output.value.dtype
        buffer = self.buffers[output.value]
        if not self.loops.rows:
            lines.append(Line(f"store({buffer}, 0, {block})", comment))
            return
        of_rows, rows = f"z{self._row_names[output.value]}", self._count
        self.top.append(Line(f"{of_rows} = stack({type_code(dtype)}, {rows})"))
        lines.append(Line(f"store({of_rows}, {self._row_index}, {block})"))
        if rows <= SPELLED:
            total = self._merged(kind, of_rows, rows)
        else:
            self.functions |= {f"merge_{kind}", f"merged_{kind}"}
            levels = f"l{of_rows}"
            self.top.append(Line(f"{levels} = stack({type_code(dtype)}, LEVELS)"))
            self.item_end.append(Line(f"for at in range({rows}):"))
            self.item_end.append(Line(f"    merge_{kind}({levels}, at, element({of_rows}, at))"))
            total = f"merged_{kind}({levels}, {rows}, {identity_code(kind, dtype)})"
        self.item_end.append(Line(f"store({buffer}, 0, {total})", comment))

    def _join(self, kind: str, one: str, other: str) -> str:
        if kind in ("sum", "prod"):
            return f"({one} {'+' if kind == 'sum' else '*'} {other})"
        self.functions.add(f"join_{kind}")
        return f"join_{kind}({one}, {other})"

    def _folded(self, kind: str, buffer: str, length: int) -> tuple[list[Line], str]:
        """Combine the first elements of an array in the order of ``fold``: lines, then a term."""
        lines = []
        while length > SPELLED:
            half = (length + 1) >> 1
            joined = self._join(kind, f"element({buffer}, at)", f"element({buffer}, {half} + at)")
            lines.append(Line(f"for at in range({length - half}):"))
            lines.append(Line(f"    store({buffer}, at, {joined})"))
            length = half
        terms = [f"element({buffer}, {k})" for k in range(length)]
        while len(terms) > 1:
            half = (len(terms) + 1) >> 1
            pairs = zip(terms, terms[half:], strict=False)
            terms = [self._join(kind, *pair) for pair in pairs] + terms[len(terms) - half : half]
        return lines, terms[0]

    def _merged(self, kind: str, array: str, length: int) -> str:
        """Combine the elements of an array in the order of ``merge``."""
        levels: dict[int, str] = {}
        for index in range(length):
            term, level = f"element({array}, {index})", 0
            while index >> level & 1:
                term = self._join(kind, levels.pop(level), term)
                level += 1
            levels[level] = term
        total, *others = (levels[level] for level in sorted(levels))
        for term in others:
            total = self._join(kind, term, total)
        return total

    # --- loops ---

    def lines(self, values: Mapping[str, int] | None = None) -> list[Line]:
        """Return the source of the nest."""
        body = self._item()
        lines = [*self._room_lines(self.values), *self.top, *body, *self.finish]
        return [self._on_stack(line) for line in self.without_unread(lines)]

    def _on_stack(self, line: Line) -> Line:
        made = _MADE.match(line.code)
        if made is None:
            return line
        return Line(f"{made[1]} = stack({made[2]}, {self.length(self.values)})", line.origin)

    def _item(self) -> list[Line]:
        lines = [Line("item = 0")]
        if self.loops.inner:
            length = self.length(self.values)
            is_long = (
                bool(self.loops.rows) and self._count >= MANY_ROWS and length >= UNROLLED_LANES
            )
            lines.append(Line("lo = 0"))
            lines.append(Line(f"hi = {self._unseen(length) if is_long else length}"))
        if not self.loops.rows:
            return [*lines, *self.item_start, *self._row_lines(), *self.item_end]
        lines.append(Line("block = 0"))
        return [*lines, *self.item_start, *self._rows(), *self.item_end]

    def _pass_lines(self, here: Pass) -> list[Line]:
        lines = list(here.before)
        for phase, part in here.phases.items():
            if part and self.loops.inner:
                start = f"for {self.loops.inner[-1].index} in range(lo, hi):"
                part = [Line(start), *indent(part)]
            lines += [*part, *here.trigonometric.get(phase, ())]
        return [*lines, *here.flush, *here.after]

    def _rows(self) -> list[Line]:
        """Return the loops over rows: several, if some of it is dear."""
        parts: list[list[Line]] = [[]]
        dear: list[list[Line]] = []
        for number in range(max([0, *self.row, *self.passes]) + 1):
            for line in self.row.get(number, []):
                if "scalar." in line.code:
                    parts += [[line], []]
                    dear.append(parts[-2])
                else:
                    parts[-1].append(line)
            if number in self.passes:
                parts[-1] += self._pass_lines(self.passes[number])
        names = self._apart(parts) if dear else None
        if names is None:
            return self._loop([line for part in parts for line in part], str(self._count))
        return self._expanded(parts, dear, names)

    def _unseen(self, steps: int) -> str:
        """Return the source of a number of steps that LLVM cannot see.

        A loop of few steps it would unroll before it thinks of vectors, and then find none.
        """
        self.functions.add("unseen")
        return f"unseen({steps})"

    def _loop(self, body: Sequence[Line], rows: str) -> list[Line]:
        body = list(body)
        if len(self.loops.rows) > 1:
            body = [*self._decode("at_row", self.loops.rows), *body]
            body.insert(0, Line("at_row = row"))
        return [Line(f"for {self._row_index} in range({rows}):"), *indent(body)]

    def _apart(self, parts: list[list[Line]]) -> dict[str, np.dtype[Any]] | None:
        """Return what parts hand on to later ones, with dtypes; None if there is more to it."""
        if self.scratch:
            return None
        types: dict[str, Any] = {}
        for key, name in self._fixed.items():
            if isinstance(key, tuple) and isinstance(key[0], Value):
                types[name] = key[0].dtype
            elif isinstance(key, tuple):
                types[name] = np.dtype(np.int64)
        types |= {name: value.dtype for value, name in self._row_names.items()}
        found: dict[str, np.dtype[Any]] = {}
        made: set[str] = set()
        for part in parts:
            inside = self._assigned(part)
            for name in self._used(part) & made - inside:
                dtype = types.get(name)
                is_index = name.startswith("p") and dtype == np.int64
                if dtype is None or not (dtype.kind == "f" or is_index):
                    return None
                found[name] = dtype
            made |= inside
        return found

    @staticmethod
    def _assigned(part: Sequence[Line]) -> set[str]:
        matches = (_ASSIGNED.match(line.code) for line in part)
        return {match[1] for match in matches if match and match[1] != "far"}

    @staticmethod
    def _used(part: Sequence[Line]) -> set[str]:
        return {name for line in part for name in _NAME.findall(line.code)}

    def _expanded(
        self, parts: list[list[Line]], dear: list[list[Line]], names: Mapping[str, np.dtype[Any]]
    ) -> list[Line]:
        """Return a loop for each part; what is handed on is in arrays in between."""
        rows, index = self._count, self._row_index
        wide = -(-rows // UNROLLED_LANES) * UNROLLED_LANES if rows > 1 else rows
        lines = []
        for name, dtype in names.items():
            lines.append(Line(f"x{name} = stack({type_code(dtype)}, {wide})"))
            if wide > rows:
                lines.append(Line(f"for {index} in range({rows}, {wide}):"))
                lines.append(Line(f"    store(x{name}, {index}, 0)"))
        for part in parts:
            inside = self._assigned(part)
            taken = [name for name in sorted(self._used(part) - inside) if name in names]
            handed = [name for name in sorted(inside) if name in names]
            body = [Line(f"{name} = element(x{name}, {index})") for name in taken] + part
            body += [Line(f"store(x{name}, {index}, {name})") for name in handed]
            is_alone = any(part is each for each in dear) and "element(" not in part[0].code
            if not part:
                continue
            if is_alone and len(self.loops.rows) == 1 and wide > 1:
                lines += self._loop(body, self._unseen(wide))
            else:
                lines += self._loop(body, str(rows))
        return lines
