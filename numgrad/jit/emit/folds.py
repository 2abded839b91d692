"""Generate reductions of a loop nest: of blocks of elements, then of their results.

The functions that combine, in the order of eager sums, are those of `numgrad.codegen.fold_runtime`.
"""

from __future__ import annotations

from numgrad.codegen.fold_passes import folding, identity
from numgrad.codegen.llvm.combine_ir import COMBINES
from numgrad.codegen.loops import (
    ZERO,
    Do,
    Expression,
    Fold,
    For,
    Load,
    Name,
    Statement,
    Store,
    call,
    combine,
    plus,
    times,
)
from numgrad.jit.emit.nest_parts import ITEM, LANE, NestParts
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
        """Add rows up, those of a block dealt out among lanes of partial sums.

        When an item is done, which has whole blocks, the lanes of each are combined.
        """
        parts, code, loops, kind = self.parts, self.code, self.facts.loops, kind_of(output)
        target, comment = self.facts.targets[output], comment_of(output.value)
        assert target is not None
        size = product([loops.sizes[a] for a in range(len(output.axes)) if a not in output.reduced])
        lanes, step = size_code(parts.counted("lanes")), size_code(parts.counted("dealt"))
        result, dtype = self.result(output), output.value.dtype
        nothing, room = identity(kind, dtype), Name(f"b{result}")
        width, column = parts.width_of_rows(room.id, dtype, self.is_whole)
        held = times(lanes, width)
        cleared = [Store(room, Name("lane"), nothing)]
        parts.item_start.append(For("lane", ZERO, times(parts.blocks_of_item(), held), cleared))
        place = plus(code.of_row(times(LANE, width)), column)
        here.lines.append(Fold(room.id, kind, value, "", (), dtype, comment, place=place))
        partial = Name(f"p{result}")
        parts.partials[partial.id] = dtype, parts.counted("parts") * size
        start, of_item = times("held", held), combine("-", "last_row", "first_row")
        rows = call(Name("min"), lanes, combine("-", of_item, times("held", step)))
        combined = folding("combine_lanes", kind, room, 0, start, rows, lanes, width)
        block = plus(combine("//", "first_row", step), "held")
        to = plus(code.place_in_item(target), times(block, code.size(size)))
        stored = parts.over_columns([Store(partial, to, Load(room, column))])
        each = For("held", ZERO, parts.blocks_of_item(), [Do(combined), *stored])
        parts.item_end.append(each)
        sizes = size_code(parts.counted("parts")), lanes, step, size_code(size)
        total = folding("fold_rows", kind, partial, *sizes, parts.buffer(output.value), nothing)
        parts.combining.append(Do(total, comment))

    def result(self, output: LoopOutput) -> str:
        """Return the variable of what rows are reduced to."""
        return self.code.results[output.value]
