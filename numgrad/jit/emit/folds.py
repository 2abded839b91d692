"""Generate reductions of a loop nest: of blocks of elements, then of their results.

The functions that combine, in the order of eager sums, are those of `numgrad.codegen.fold_runtime`.
"""

from __future__ import annotations

from numgrad.codegen.fold_passes import folding, identity, lane_of
from numgrad.codegen.llvm.combine_ir import COMBINES
from numgrad.codegen.loops import (
    ZERO,
    Do,
    Expression,
    Fold,
    For,
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
    has_short_rows : bool
        Whether a row is one block, so that its reductions are not cut up.
    """

    def __init__(self, parts: NestParts, is_whole: bool, has_short_rows: bool) -> None:
        self.is_whole, self.has_short_rows = is_whole, has_short_rows
        self.parts, self.code, self.facts = parts, parts.code, parts.facts

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
        whole = run if len(loops.inner) > 1 else "" if self.has_short_rows else "lo"
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
        lines.append(fold if self.facts.loops.rows else self.parts.in_rows(fold))

    def over_rows(self, output: LoopOutput, value: Expression, here: Pass) -> None:
        """Add rows up, those of a block dealt out among lanes of partial sums."""
        parts, code, loops, kind = self.parts, self.code, self.facts.loops, kind_of(output)
        target, comment = self.facts.targets[output], comment_of(output.value)
        assert target is not None
        size = product([loops.sizes[a] for a in range(len(output.axes)) if a not in output.reduced])
        rows = product([loop.size for loop in loops.rows])
        lanes, step = size_code(parts.counted("lanes")), size_code(parts.counted("dealt"))
        partial, dtype = Name(f"p{self.result(output)}"), output.value.dtype
        count = parts.counted("parts") * parts.counted("lanes")
        parts.partials[partial.id] = dtype, count * size
        nothing, width = identity(kind, dtype), code.size(size)
        first = plus(code.place_in_item(target), times("lane", width))
        start: Statement = Store(partial, first, nothing)
        for position, loop in reversed(list(enumerate(loops.inner))):
            start = For(loop.index, *parts.bounds(position), [start])
        end = combine("-", plus("last_row", step), 1)
        first_lane, last_lane = (
            times(combine("//", row, step), lanes) for row in (Name("first_row"), end)
        )
        parts.item_start.append(For("lane", first_lane, last_lane, [start]))
        row = code.flat(loops.rows)
        lane = code.of_row(times(lane_of(row, combine("//", row, step), lanes), width))
        place, run = plus(code.place(target), lane), parts.over_rows
        here.lines.append(Fold(partial.id, kind, value, run, (), dtype, comment, place=place))
        sizes = size_code(rows), lanes, step, size_code(size)
        total = folding("fold_rows", kind, partial, *sizes, parts.buffer(output.value), nothing)
        parts.combining.append(Do(total, comment))

    def result(self, output: LoopOutput) -> str:
        """Return the variable of what rows are reduced to."""
        return self.code.results[output.value]
