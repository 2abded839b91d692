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
from numgrad.jit.emit.scalar_code import cast_code, identity_code, type_code
from numgrad.jit.emit.statements import Line, comment_of, indent, sum_of
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
        result, comment = self._row_names[output.value], comment_of(output.value)
        buffer, target = f"b{result}", self.targets[output]
        if target is None and self.loops.rows:
            self._write_run(output, name, self._offset(), lines)
            return
        self.rooms[buffer] = dtype
        lines.append(Line(f"store({buffer}, {self._offset()}, {name})"))
        total = self._folded(kind, buffer, self.length(self.values), dtype)
        here.flush.append(Line(f"{result} = {total}", comment))
        place = "0" if target is None else self._place_code(target)[0] or "0"
        here.after.append(Line(f"store({self.buffers[output.value]}, {place}, {result})"))

    def _write_row_output(self, output: LoopOutput) -> None:
        if output.kind != "reduce" or not self.loops.rows:
            super()._write_row_output(output)
            return
        root = self._root(output)
        name = cast_code(self._name(root, {}), output.source.dtype, output.value.dtype)
        self._write_run(output, name, "", self.row.setdefault(self._ready[root], []))

    def _write_run(self, output: LoopOutput, name: str, offset: str, lines: list[Line]) -> None:
        """Store what all rows have to be reduced to one number, and reduce it behind the rows."""
        kind, dtype = kind_of(output), output.value.dtype
        length = self.length(self.values) if offset else 1
        count, all_ = self._count * length, f"z{self._row_names[output.value]}"
        self.top.append(Line(f"{all_} = stack({type_code(dtype)}, {count})"))
        place = self._flat_row() if length == 1 else f"{self._flat_row()} * {length}"
        lines.append(Line(f"store({all_}, {sum_of([place, offset])}, {name})"))
        total = self._folded(kind, all_, count, dtype)
        line = Line(f"store({self.buffers[output.value]}, 0, {total})", comment_of(output.value))
        self.item_end.append(line)

    def _join(self, kind: str, one: str, other: str) -> str:
        if kind in ("sum", "prod"):
            return f"({one} {'+' if kind == 'sum' else '*'} {other})"
        self.functions.add(f"join_{kind}")
        return f"join_{kind}({one}, {other})"

    def _folded(self, kind: str, array: str, length: int, dtype: np.dtype[Any]) -> str:
        """Return the source of the first elements of an array combined."""
        identity = identity_code(kind, dtype)
        if length > SPELLED:
            self.functions.add(f"fold_{kind}")
            return f"fold_{kind}({array}, {length}, {identity})"
        terms = [f"element({array}, {k})" for k in range(length)]
        if dtype.kind == "c":
            terms = [self._join(kind, identity, term) for term in terms]
        half = SPELLED // 2
        while half:
            pairs = zip(terms, terms[half:], strict=False)
            terms = [self._join(kind, *pair) for pair in pairs] + terms[
                max(0, len(terms) - half) : half
            ]
            half //= 2
        # Of zeros below 0 the sum that begins with 0 is above; everywhere else it is the same.
        begins = kind == "sum" and dtype.kind == "f"
        return self._join(kind, terms[0], identity) if begins else terms[0]

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
        lines += [Line("first_row = 0"), Line(f"last_row = {self._count}")]
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
