"""Generate reductions of a loop nest: of blocks of elements, then of their results.

The functions that combine, in the order of eager sums, are those of `numgrad.codegen.fold_runtime`.
"""

from __future__ import annotations

from numgrad.codegen.fold_passes import combined, folding, identity
from numgrad.codegen.llvm.combine_ir import COMBINES
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Do,
    Expression,
    Fold,
    For,
    Load,
    Name,
    Statement,
    Store,
    combine,
    plus,
    times,
)
from numgrad.jit.emit.nest_parts import ITEM, NestParts
from numgrad.jit.emit.row_passes import Pass
from numgrad.jit.emit.scalar_code import size_code
from numgrad.jit.emit.statements import comment_of
from numgrad.jit.ir.symbolic_sizes import product
from numgrad.jit.schedule.nests import LoopOutput

__all__ = ["BlockFolds", "kind_of"]


def kind_of(output: LoopOutput) -> str:
    """Return the reduction; extremes of truth values are a matter of any and all."""
    kind: str = output.value.attributes["kind"]
    if output.value.dtype.kind == "b":
        kind = COMBINES[kind].of_bools
    return kind


class BlockFolds:
    """Writes reductions of a nest.

    Parameters
    ----------
    parts : NestParts
        To which the statements are added.
    is_whole : bool
        Whether the nest is one item, of so few elements that no reduction is cut up.
    """

    def __init__(self, parts: NestParts, is_whole: bool) -> None:
        self.is_whole = is_whole
        self.parts, self.code, self.facts = parts, parts.code, parts.facts
        self._lane: Name | None = None

    # --- of the elements of rows ---

    def in_row(self, output: LoopOutput, value: Expression, here: Pass) -> None:
        """Reduce a value that a pass computed over the elements of a row."""
        parts, loops = self.parts, self.facts.loops
        if self.facts.targets[output] is None:
            is_run = loops.rows and (self.is_whole or self.facts.appends)
            run = parts.over_rows if is_run else loops.inner[0].index
            here.lines.append(self._to_one(output, value, run))
            return
        result, run = self.result(output), loops.inner[0].index
        stored = parts.stored(output, Name(result))
        whole = run if len(loops.inner) > 1 else "lo"
        here.lines.append(self._fold(output, value, run, stored, whole))

    def _fold(
        self, output: LoopOutput, value: Expression, run: str, stored: Statement, whole: str
    ) -> Fold:
        dtype, origin = output.value.dtype, comment_of(output.value)
        return Fold(
            self.result(output), kind_of(output), value, run, [stored], dtype, origin, whole
        )

    def _to_one(self, output: LoopOutput, value: Expression, run: str) -> Fold:
        """Return the reduction of all items to one number."""
        result = Name(self.result(output))
        stored = Store(self.parts.buffer(output.value), ZERO, result)
        return self._fold(output, value, run, stored, ITEM.id)

    # --- of rows ---

    def to_number(self, output: LoopOutput, value: Expression, lines: list[Statement]) -> None:
        """Combine a value of each row to one number."""
        fold = self._to_one(output, value, self.parts.over_rows)
        if self.is_whole and self.facts.loops.rows:
            lines.append(fold)
            return
        rows = product([loop.size for loop in self.facts.loops.rows])
        partial = self.parts.partial(fold, rows, "fold")
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
        parts.partials[partial.id] = output.value.dtype, count * size
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
        parts.combining.append(Do(total, comment))

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
        return identity(kind_of(output), output.value.dtype)

    def result(self, output: LoopOutput) -> str:
        """Return the variable of what rows are reduced to."""
        return self.code.results[output.value]
