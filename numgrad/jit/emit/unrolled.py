"""Generate unrolled loop nests: few elements, sizes written out.

There is a single item, of one block and one chunk, so nothing is cut up: sums are spelled out, in
the order in which blocks are added up. And rows are not done one after the other where a function
such as ``exp`` is computed once in a row: first comes what leads to it in all rows, then it, of
several rows at a time, then what follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from numgrad.base.tuning import UNROLLED_LANES
from numgrad.codegen.expression import SCALAR
from numgrad.codegen.loop_passes import assigned, calls, names_in, walk, without_stores
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Call,
    Expression,
    For,
    If,
    Load,
    Name,
    Number,
    Statement,
    Store,
    call,
    names,
    plus,
    times,
)
from numgrad.jit.emit.folds import BlockFolds, combined, kind_of
from numgrad.jit.emit.loop_nest import LoopNest, band_statements
from numgrad.jit.emit.nest_parts import NestParts
from numgrad.jit.emit.row_passes import Pass
from numgrad.jit.emit.scalar_code import on_stack
from numgrad.jit.emit.statements import comment_of
from numgrad.jit.ir.symbolic_sizes import product
from numgrad.jit.schedule.axes import Loops
from numgrad.jit.schedule.schedule import LoopOutput

__all__ = ["nest_statements"]

MANY_ANGLES = 64  # sines that a loop is given for itself: with more LLVM gives up
SPELLED = 16  # numbers whose sum is one expression
MANY_ROWS = 8  # from which on LLVM shall not unroll what a row is
(_UNSEEN,) = names("numgrad.codegen.loop_runtime", "unseen")

Sizes = Mapping[str, int]


def nest_statements(nest: LoopNest, sizes: Sizes) -> list[Statement]:
    """Return a short nest, with sines in the loops instead of in between.

    They are computed as if no angle was far; if one was, all is done again. That takes no calls,
    and lets LLVM see the nest as a whole: what a small one needs.
    """
    if nest.may_suppose_near(MANY_ANGLES):
        near = _for_sizes(nest, sizes, supposes_near=True)
        return [
            Assign("far", Number(False)),
            *near,
            If(Name("far"), _for_sizes(nest, sizes)),
        ]
    return _for_sizes(nest, sizes)


def _for_sizes(nest: LoopNest, sizes: Sizes, *, supposes_near: bool = False) -> list[Statement]:
    """Return a nest for these sizes."""
    if _is_simple(nest, sizes):
        folds = partial(SpelledFolds, sizes=sizes)
        length = nest.facts.length(sizes)
        short = LoopNest(*nest.given, supposes_near=supposes_near, folds=folds, length=length)
        lines = without_stores(_single_item(short, sizes), nest.unread)
    else:
        short = LoopNest(*nest.given, supposes_near=supposes_near)
        short.unread = nest.unread
        lines = band_statements([short], sizes)
    rooms = [
        on_stack(name, dtype, size.evaluate(sizes)) for name, dtype, size in short.parts.partials
    ]
    known = [Assign(name, Number(sizes[name])) for name in sorted(names_in(lines)) if name in sizes]
    return [*known, *rooms, *lines]


def _is_simple(nest: LoopNest, sizes: Sizes) -> bool:
    """Whether a nest has a single item, and one loop within its rows at most."""
    loops = nest.loops
    lengths = [loop.size.evaluate(sizes) for loop in [*loops.rows, *loops.inner]]
    is_single = sizes[f"items{nest.position}"] == 1 and not loops.outer
    return is_single and len(loops.inner) <= 1 and 0 not in lengths


def _rows_of(loops: Loops, sizes: Sizes) -> tuple[int, Name]:
    """Return the number of rows, and their index."""
    rows = loops.rows
    count = product([loop.size for loop in rows]).evaluate(sizes)
    return count, Name(rows[0].index if len(rows) == 1 else "row")


class SpelledFolds(BlockFolds):
    """Writes reductions of few elements.

    Parameters
    ----------
    parts : NestParts
    sizes : mapping
        The sizes that names stand for.
    """

    def __init__(self, parts: NestParts, *, sizes: Sizes) -> None:
        super().__init__(parts)
        self.sizes = sizes

    def in_row(
        self, output: LoopOutput, value: Expression, here: Pass, lines: list[Statement]
    ) -> None:
        """Reduce a value that a pass computed over the elements of a row."""
        result, is_total = self.result(output), self.facts.targets[output] is None
        if is_total and self.facts.loops.rows:
            self._run(output, value, lines, self.code.offset())
            return
        buffer = f"b{result}"
        self.parts.rooms[buffer] = output.value.dtype
        lines.append(Store(Name(buffer), self.code.offset(), value))
        total = self.folded(output, buffer, self.facts.length(self.sizes))
        here.flush.append(Assign(result, total, comment_of(output.value)))
        if is_total:
            here.after.append(Store(self.parts.buffer(output.value), ZERO, Name(result)))
        else:
            here.after.append(self.parts.stored(output, Name(result)))

    def to_number(self, output: LoopOutput, value: Expression, lines: list[Statement]) -> None:
        """Combine a value of each row to one number."""
        if self.facts.loops.rows:
            self._run(output, value, lines)
        else:
            super().to_number(output, value, lines)

    def _run(
        self,
        output: LoopOutput,
        value: Expression,
        lines: list[Statement],
        offset: Expression = ZERO,
    ) -> None:
        """Store what all rows have to be reduced to one number, and reduce it behind the rows."""
        length = 1 if offset == ZERO else self.facts.length(self.sizes)
        count, array = _rows_of(self.facts.loops, self.sizes)[0] * length, f"z{self.result(output)}"
        self.code.top.append(on_stack(array, output.value.dtype, count))
        lines.append(Store(Name(array), plus(times(self.flat_row(), length), offset), value))
        total = self.folded(output, array, count)
        buffer, comment = self.parts.buffer(output.value), comment_of(output.value)
        self.parts.item_end.append(Store(buffer, ZERO, total, comment))

    def folded(self, output: LoopOutput, array: str, count: Any) -> Expression:
        """Return the first elements of an array combined, written out if they are few."""
        if count > SPELLED:
            return super().folded(output, array, count)
        kind, dtype, identity = kind_of(output), output.value.dtype, self.identity(output)
        terms: list[Expression] = [Load(Name(array), Number(k)) for k in range(count)]
        if dtype.kind == "c":
            terms = [combined(kind, identity, term) for term in terms]
        half = SPELLED // 2
        while half:
            rest = terms[max(0, len(terms) - half) : half]
            terms = [combined(kind, *pair) for pair in zip(terms, terms[half:], strict=False)]
            terms += rest
            half //= 2
        # Of zeros below 0 the sum that begins with 0 is above; everywhere else it is the same.
        begins = kind == "sum" and dtype.kind == "f"
        return combined(kind, terms[0], identity) if begins else terms[0]


# --- loops ---------------------------------------------------------------------------------------


def _single_item(nest: LoopNest, sizes: Sizes) -> list[Statement]:
    """Return a nest for which `_is_simple` holds."""
    item: list[Statement] = [Assign("item", ZERO)]
    if nest.loops.inner:
        length = nest.facts.length(sizes)
        is_many = bool(nest.loops.rows) and _rows_of(nest.loops, sizes)[0] >= MANY_ROWS
        is_long = is_many and length >= UNROLLED_LANES
        item.append(Assign("lo", ZERO))
        item.append(Assign("hi", _unseen(length) if is_long else Number(length)))
    if nest.loops.rows:
        count = Number(_rows_of(nest.loops, sizes)[0])
        item += [Assign("block", ZERO), Assign("first_row", ZERO), Assign("last_row", count)]
        rows = [*nest.parts.item_start, *_rows(nest, sizes)]
    else:
        rows = [*nest.parts.item_start, *nest.row()]
    return [*nest.before_items(sizes), *item, *rows, *nest.parts.item_end, *nest.parts.finish]


def _unseen(steps: int) -> Call:
    """Return a number of steps that LLVM cannot see.

    A loop of few steps it would unroll before it thinks of vectors, and then find none.
    """
    return call(_UNSEEN, steps)


def _rows(nest: LoopNest, sizes: Sizes) -> list[Statement]:
    """Return the loops over rows: several, if some of it is dear."""
    parts: list[list[Statement]] = [[]]
    dear: list[list[Statement]] = []
    passes = nest.passes.passes
    for number in range(max([0, *nest.code.row, *passes]) + 1):
        for line in nest.code.row.get(number, []):
            if calls(line, SCALAR):
                parts += [[line], []]
                dear.append(parts[-2])
            else:
                parts[-1].append(line)
        if number in passes:
            here = passes[number]
            parts[-1] += [*here.before, *nest.phases(here), *here.after]
    handed = _handed_on(nest, parts) if dear else None
    if handed is None:
        count, _ = _rows_of(nest.loops, sizes)
        return [_over_rows(nest, [line for part in parts for line in part], Number(count))]
    return _distributed(nest, sizes, parts, dear, handed)


def _over_rows(nest: LoopNest, body: Sequence[Statement], count: Expression) -> For:
    rows = nest.loops.rows
    if len(rows) == 1:
        return For(rows[0].index, ZERO, count, body)
    body = [Assign("at_row", Name("row")), *nest.decoded("at_row", rows), *body]
    return For("row", ZERO, count, body)


def _assigned(part: Sequence[Statement]) -> set[str]:
    return assigned(part) - {"far"}


def _handed_on(
    nest: LoopNest, parts: Sequence[Sequence[Statement]]
) -> dict[str, np.dtype[Any]] | None:
    """Return what parts hand on to later ones, with dtypes; None if there is more to it."""
    if nest.passes.kept:
        return None
    found: dict[str, np.dtype[Any]] = {}
    made: set[str] = set()
    for part in parts:
        inside = _assigned(part)
        for name in names_in(part):
            if name not in made or name in inside:
                continue
            dtype = nest.code.types.get(name)
            if name in nest.code.bases:
                dtype = np.dtype(np.int64)
            elif dtype is None or dtype.kind != "f":
                return None
            found[name] = dtype
        made |= inside
    return found


def _distributed(
    nest: LoopNest,
    sizes: Sizes,
    parts: Sequence[list[Statement]],
    dear: Sequence[list[Statement]],
    handed: Mapping[str, np.dtype[Any]],
) -> list[Statement]:
    """Return a loop for each part; what is handed on is in arrays in between."""
    rows, index = _rows_of(nest.loops, sizes)
    wide = -(-rows // UNROLLED_LANES) * UNROLLED_LANES if rows > 1 else rows
    lines: list[Statement] = []
    for name, dtype in handed.items():
        array = Name(f"x{name}")
        lines.append(on_stack(array.id, dtype, wide))
        if wide > rows:
            cleared = Store(array, index, ZERO)
            lines.append(For(index.id, Number(rows), Number(wide), [cleared]))
    for part in parts:
        if not part:
            continue
        inside = _assigned(part)
        taken = [name for name in sorted(names_in(part).keys() - inside) if name in handed]
        body = [
            *(Assign(name, Load(Name(f"x{name}"), index)) for name in taken),
            *part,
            *(Store(Name(f"x{n}"), index, Name(n)) for n in sorted(inside) if n in handed),
        ]
        is_dear = any(part is each for each in dear)
        is_alone = is_dear and not any(type(node) is Load for node in walk(part[0]))
        if is_alone and len(nest.loops.rows) == 1 and wide > 1:
            lines.append(_over_rows(nest, body, _unseen(wide)))
        else:
            lines.append(_over_rows(nest, body, Number(rows)))
    return lines
