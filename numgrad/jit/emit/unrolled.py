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
    Do,
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
)
from numgrad.jit.emit.folds import BlockFolds, combined, folding, kind_of, tree
from numgrad.jit.emit.loop_nest import LoopNest, band_statements
from numgrad.jit.emit.nest_parts import NestParts
from numgrad.jit.emit.row_passes import Pass
from numgrad.jit.emit.scalar_code import STACK, identity_code, type_code
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
        Assign(name, call(STACK, type_code(dtype), size.evaluate(sizes)))
        for name, dtype, size in short.parts.partials
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
        buffer, result = self.buffered(output, value, lines), self.code.results[output.value]
        steps, total = _folded(kind_of(output), buffer, self.facts.length(self.sizes))
        here.flush += steps
        here.flush.append(Assign(result, total, comment_of(output.value)))
        if self.facts.targets[output] is None:
            self.to_number(output, Name(result), here.flush)
        else:
            here.after.append(self.parts.stored(output, Name(result)))

    def to_number(self, output: LoopOutput, value: Expression, lines: list[Statement]) -> None:
        """Combine the values of rows to one number."""
        parts, kind, dtype = self.parts, kind_of(output), output.value.dtype
        buffer, comment = parts.buffer(output.value), comment_of(output.value)
        if not self.facts.loops.rows:
            lines.append(Store(buffer, ZERO, value, comment))
            return
        rows, index = _rows_of(self.facts.loops, self.sizes)
        of_rows = f"z{self.code.results[output.value]}"
        self.code.top.append(Assign(of_rows, call(STACK, type_code(dtype), rows)))
        lines.append(Store(Name(of_rows), index, value))
        if rows <= SPELLED:
            total = _merged(kind, of_rows, rows)
        else:
            levels = f"l{of_rows}"
            self.code.top.append(tree(levels, dtype))
            of_row = Load(Name(of_rows), Name("at"))
            merge = Do(folding("merge", kind, levels, "at", of_row))
            parts.item_end.append(For("at", ZERO, Number(rows), [merge]))
            total = folding("merged", kind, levels, rows, identity_code(kind, dtype))
        parts.item_end.append(Store(buffer, ZERO, total, comment))


def _folded(kind: str, buffer: str, length: int) -> tuple[list[Statement], Expression]:
    """Combine the first elements of an array in the order of ``fold``: statements, then a term."""
    lines: list[Statement] = []
    array, at = Name(buffer), Name("at")
    while length > SPELLED:
        half = (length + 1) >> 1
        joined = combined(kind, Load(array, at), Load(array, plus(half, at)))
        lines.append(For("at", ZERO, Number(length - half), [Store(array, at, joined)]))
        length = half
    terms: list[Expression] = [Load(array, Number(k)) for k in range(length)]
    while len(terms) > 1:
        half = (len(terms) + 1) >> 1
        pairs = zip(terms, terms[half:], strict=False)
        terms = [combined(kind, *pair) for pair in pairs] + terms[len(terms) - half : half]
    return lines, terms[0]


def _merged(kind: str, array: str, length: int) -> Expression:
    """Combine the elements of an array in the order of ``merge``."""
    levels: dict[int, Expression] = {}
    for index in range(length):
        term: Expression = Load(Name(array), Number(index))
        level = 0
        while index >> level & 1:
            term = combined(kind, levels.pop(level), term)
            level += 1
        levels[level] = term
    total, *others = (levels[level] for level in sorted(levels))
    for term in others:
        total = combined(kind, term, total)
    return total


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
        rows = [Assign("block", ZERO), *nest.parts.item_start, *_rows(nest, sizes)]
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
        lines.append(Assign(array.id, call(STACK, type_code(dtype), wide)))
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
