"""Generate reductions of a loop nest: of blocks of elements, then of their results.

The functions that combine, in the order of eager sums, are those of `numgrad.codegen.fold_runtime`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.base.tuning import SUM_BLOCK
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
    Statement,
    Store,
    call,
    combine,
    names,
    plus,
    times,
)
from numgrad.jit.emit.nest_parts import NestParts
from numgrad.jit.emit.row_passes import Pass
from numgrad.jit.emit.scalar_code import identity_code, on_stack, size_code
from numgrad.jit.emit.statements import comment_of
from numgrad.jit.ir.symbolic_sizes import Size, product
from numgrad.jit.schedule.schedule import LoopOutput

__all__ = ["BlockFolds", "combined", "kind_of"]

_RUNTIME = "numgrad.codegen.fold_runtime"
_LEVELS, _SHIFTED = names(_RUNTIME, "LEVELS", "shifted")
_SIGNS = {"sum": "+", "prod": "*"}


def kind_of(output: LoopOutput) -> str:
    """Return the reduction; extremes of truth values are a matter of any and all."""
    kind: str = output.value.attributes["kind"]
    if output.value.dtype.kind == "b":
        kind = {"max": "any", "min": "all", "sum": "any", "prod": "all"}.get(kind, kind)
    return kind


def folding(function: str, kind: str, *arguments: Any) -> Call:
    """Return a call of what combines values: ``fold``, ``merge`` ..., of a kind of reduction."""
    return call(Name(f"{function}_{kind}", _RUNTIME), *arguments)


def combined(kind: str, one: Expression, other: Expression) -> Expression:
    """Return two values combined."""
    sign = _SIGNS.get(kind)
    return folding("join", kind, one, other) if sign is None else combine(sign, one, other)


def _next(counter: Name) -> Statement:
    return Assign(counter.id, plus(counter, 1))


class BlockFolds:
    """Writes reductions of a nest of any size.

    Parameters
    ----------
    parts : NestParts
        To which the statements are added.
    """

    def __init__(self, parts: NestParts) -> None:
        self.parts, self.code, self.facts = parts, parts.code, parts.facts
        self._lane: Name | None = None

    # --- of the elements of rows ---

    def in_row(
        self, output: LoopOutput, value: Expression, here: Pass, lines: list[Statement]
    ) -> None:
        """Reduce a value that a pass computed over the elements of a row."""
        parts, comment = self.parts, comment_of(output.value)
        if self.facts.targets[output] is not None:
            self._to_row(output, value, here, lines)
        elif self.facts.appends:
            partial, counter = self._partial(output, parts.counted("runs")), self._counter(output)
            inner = self.code.size(product([loop.size for loop in self.facts.loops.inner]))
            first = combine("//", times("first_row", inner), SUM_BLOCK)
            is_single = not self.facts.loops.rows
            parts.item_start.append(Assign(counter.id, ZERO if is_single else first))
            places = parts.item_start, here.flush, parts.item_end
            self._append(
                output, value, lines, places, lambda block: Store(partial, counter, block, comment)
            )
        else:
            partial = self._partial(output, parts.counted("items"))
            block = self._block(output, value, lines)
            here.flush.append(Store(partial, Name("item"), block, comment))

    def _to_row(
        self, output: LoopOutput, value: Expression, here: Pass, lines: list[Statement]
    ) -> None:
        """Reduce the elements of a row to its own number."""
        kind, result, comment = kind_of(output), self.result(output), comment_of(output.value)
        counter, levels, identity = self._counter(output), f"l{result}", self.identity(output)

        def merged(block: Expression) -> Statement:
            return Do(folding("merge", kind, levels, counter, block, identity), comment)

        self.code.top.append(on_stack(levels, output.value.dtype, _LEVELS))
        here.before.append(Assign(counter.id, ZERO))
        if len(self.facts.loops.inner) > 1:
            self._append(output, value, lines, (here.before, here.flush, here.after), merged)
        else:
            here.flush += [merged(self._block(output, value, lines)), _next(counter)]
        here.after.append(Assign(result, folding("merged", kind, levels, counter, identity)))
        here.after.append(self.parts.stored(output, Name(result)))

    def _counter(self, output: LoopOutput) -> Name:
        """Return the variable that counts the blocks of a row or an item."""
        return Name(f"k{self.result(output)}")

    def _block(self, output: LoopOutput, value: Expression, lines: list[Statement]) -> Expression:
        """Keep what there is of a block; return what it is reduced to."""
        buffer = f"b{self.result(output)}"
        self.parts.rooms[buffer] = output.value.dtype
        lines.append(Store(Name(buffer), self.code.offset(), value))
        return self.folded(output, buffer, combine("-", "hi", "lo"))

    def _append(
        self,
        output: LoopOutput,
        value: Expression,
        lines: list[Statement],
        places: tuple[list[Statement], list[Statement], list[Statement]],
        found: Callable[[Expression], Statement],
    ) -> None:
        """Reduce elements of several loops as if they were one run, which blocks cut anywhere.

        In front of the loops, behind each run of the innermost one, and behind all stands what the
        `places` get; `found` gives what to do with the result of a block.
        """
        result = self.result(output)
        buffer, filled = f"b{result}", f"f{result}"
        start, flush, end = places
        self.code.top.append(on_stack(buffer, output.value.dtype, 2 * SUM_BLOCK))
        start.append(Assign(filled, ZERO))
        at = plus(filled, self.code.offset())
        lines.append(Store(Name(buffer), at, value, comment_of(output.value)))
        flush.append(Assign(filled, combine("+", filled, combine("-", "hi", "lo"))))
        following = _next(self._counter(output))
        whole = found(self.folded(output, buffer, SUM_BLOCK))
        dropped = Assign(filled, call(_SHIFTED, buffer, filled))
        flush.append(If(combine(">=", filled, SUM_BLOCK), [whole, dropped, following]))
        rest = found(self.folded(output, buffer, filled))
        end.append(If(combine(">", filled, 0), [rest, following]))

    # --- of rows ---

    def to_number(self, output: LoopOutput, value: Expression, lines: list[Statement]) -> None:
        """Combine a value of each row to one number."""
        rows = product([loop.size for loop in self.facts.loops.rows])
        partial = self._partial(output, rows, "fold")
        lines.append(Store(partial, self.flat_row(), value, comment_of(output.value)))

    def over_rows(self, output: LoopOutput, value: Expression, lines: list[Statement]) -> None:
        """Add rows up, those of a block dealt out among lanes of partial sums."""
        parts, code, kind = self.parts, self.code, kind_of(output)
        target = self.facts.targets[output]
        assert target is not None
        loops, comment = self.facts.loops, comment_of(output.value)
        kept = [a for a in range(len(output.axes)) if a not in output.reduced]
        size = product([loops.sizes[a] for a in kept])
        lanes, step = size_code(parts.counted("lanes")), size_code(parts.counted("dealt"))
        count = parts.counted("parts") * parts.counted("lanes")
        partial = Name(f"p{self.result(output)}")
        parts.partials.append((partial.id, output.value.dtype, count * size))
        place = code.place(target)
        bounds = [parts.bounds(position) for position in range(len(loops.inner))]
        width = code.size(size)
        first = plus(code.place_in_item(target), times("lane", width))
        start: Statement = Store(partial, first, self.identity(output))
        for loop, (low, high) in zip(reversed(loops.inner), reversed(bounds), strict=True):
            start = For(loop.index, low, high, [start])
        end = combine("-", plus("last_row", step), 1)
        first_lane, last_lane = (
            times(combine("//", row, step), lanes) for row in (Name("first_row"), end)
        )
        parts.item_start.append(For("lane", first_lane, last_lane, [start]))
        skipped = times(self._lane_of_row(), width)
        at = Name(code.fresh("p"))
        lines.append(Assign(at.id, plus(place, skipped)))
        lines.append(Store(partial, at, combined(kind, Load(partial, at), value), comment))
        rows = product([loop.size for loop in loops.rows])
        sizes = size_code(rows), lanes, step, size_code(size)
        buffer = parts.buffer(output.value)
        total = folding("fold_rows", kind, partial, *sizes, buffer, self.identity(output))
        parts.finish.append(Do(total, comment))

    def _lane_of_row(self) -> Name:
        """Return the number of the lane of a row, of all of its block and before."""
        if self._lane is None:
            self._lane = Name(self.code.fresh("p"))
            lanes, step = (size_code(self.parts.counted(each)) for each in ("lanes", "dealt"))
            row = self.flat_row()
            lane = combine("&", row, combine("-", lanes, 1))
            number = plus(times(combine("//", row, step), lanes), lane)
            self.code.row.setdefault(0, []).insert(0, Assign(self._lane.id, number))
            self.code.bases.add(self._lane.id)
        return self._lane

    def flat_row(self) -> Expression:
        """Return the number of a row."""
        return self.code.flat(self.facts.loops.rows)

    # --- what all have in common ---

    def identity(self, output: LoopOutput) -> Expression:
        """Return what there is of nothing."""
        return identity_code(kind_of(output), output.value.dtype)

    def result(self, output: LoopOutput) -> str:
        """Return the variable of what rows are reduced to."""
        return self.code.results[output.value]

    def folded(self, output: LoopOutput, array: str, count: Any) -> Expression:
        """Return the first elements of an array combined."""
        return folding("fold", kind_of(output), array, count, self.identity(output))

    def _partial(self, output: LoopOutput, size: Size, what: str = "total") -> Name:
        """Return a new array of results of blocks, or of elements (`fold`), reduced in the end."""
        parts, partial = self.parts, f"p{self.result(output)}"
        parts.partials.append((partial, output.value.dtype, size))
        count = size_code(size)
        total = folding(what, kind_of(output), partial, count, self.identity(output))
        comment = comment_of(output.value)
        parts.finish.append(Store(parts.buffer(output.value), ZERO, total, comment))
        return Name(partial)
