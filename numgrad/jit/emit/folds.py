"""Generate reductions of a loop nest: blocks that are combined pairwise, with arrays in between.

The functions that combine are those of `numgrad.codegen.loop_runtime`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Call,
    Do,
    Expression,
    For,
    Load,
    Name,
    Statement,
    Store,
    call,
    combine,
    plus,
)
from numgrad.jit.emit.nest_parts import NestParts
from numgrad.jit.emit.row_passes import Pass
from numgrad.jit.emit.scalar_code import LEVELS, STACK, identity_code, size_code, type_code
from numgrad.jit.emit.statements import comment_of
from numgrad.jit.ir.symbolic_sizes import product
from numgrad.jit.schedule.schedule import LoopOutput

__all__ = ["BlockFolds", "combined", "folding", "kind_of", "tree"]

_RUNTIME = "numgrad.codegen.loop_runtime"
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


def tree(name: str, dtype: np.dtype[Any]) -> Statement:
    """Return what makes the array of a tree of blocks: see `merge` of `loop_runtime`."""
    return Assign(name, call(STACK, type_code(dtype), LEVELS))


class BlockFolds:
    """Writes reductions of a nest of any size.

    Parameters
    ----------
    parts : NestParts
        To which the statements are added.
    """

    def __init__(self, parts: NestParts) -> None:
        self.parts, self.code, self.facts = parts, parts.code, parts.facts

    def _identity(self, output: LoopOutput) -> Expression:
        return identity_code(kind_of(output), output.value.dtype)

    def _result(self, output: LoopOutput) -> str:
        return self.code.results[output.value]

    def in_row(
        self, output: LoopOutput, value: Expression, here: Pass, lines: list[Statement]
    ) -> None:
        """Reduce a value that a pass computed over the elements of a row."""
        kind, result = kind_of(output), self._result(output)
        buffer = self.buffered(output, value, lines)
        length = combine("-", "hi", "lo")
        folded = folding("fold", kind, buffer, length, self._identity(output))
        if self.facts.targets[output] is None:
            self.to_number(output, folded, here.flush)
            return
        here.before.append(Assign(f"k{result}", ZERO))
        here.flush += self._merged(output, folded)
        here.after.append(Assign(result, self._total(output)))
        here.after.append(self.parts.stored(output, Name(result)))

    def buffered(self, output: LoopOutput, value: Expression, lines: list[Statement]) -> str:
        """Store the values of a block in an array; return its name."""
        buffer = f"b{self._result(output)}"
        self.parts.rooms[buffer] = output.value.dtype
        lines.append(Store(Name(buffer), self.code.offset(), value))
        return buffer

    def _merged(self, output: LoopOutput, value: Expression) -> list[Statement]:
        """Put the value of a block into the tree of those of a row or an item."""
        result = self._result(output)
        levels, counter = f"l{result}", f"k{result}"
        self.code.top.append(tree(levels, output.value.dtype))
        merged = folding("merge", kind_of(output), levels, counter, value)
        return [Do(merged, comment_of(output.value)), Assign(counter, plus(counter, 1))]

    def _total(self, output: LoopOutput) -> Expression:
        result = self._result(output)
        arguments = f"l{result}", f"k{result}", self._identity(output)
        return folding("merged", kind_of(output), *arguments)

    def to_number(self, output: LoopOutput, value: Expression, lines: list[Statement]) -> None:
        """Combine the values of blocks, or of rows, to one number."""
        parts, kind, comment = self.parts, kind_of(output), comment_of(output.value)
        result, identity = self._result(output), self._identity(output)
        partial = f"p{result}"
        parts.partials.append((partial, output.value.dtype, parts.counted("items")))
        loops = self.facts.loops
        if not loops.rows and not loops.outer and len(loops.inner) < 2:
            lines.append(Store(Name(partial), Name("item"), value, comment))
        else:
            parts.item_start.append(Assign(f"k{result}", ZERO))
            lines += self._merged(output, value)
            parts.item_end.append(Store(Name(partial), Name("item"), self._total(output)))
        total = folding("fold", kind, partial, size_code(parts.counted("items")), identity)
        parts.finish.append(Store(parts.buffer(output.value), ZERO, total, comment))

    def over_rows(self, output: LoopOutput, value: Expression, lines: list[Statement]) -> None:
        """Add rows up, those of a block in one row of partial sums."""
        parts, code, kind = self.parts, self.code, kind_of(output)
        target = self.facts.targets[output]
        assert target is not None
        loops, identity = self.facts.loops, self._identity(output)
        kept = [a for a in range(len(output.axes)) if a not in output.reduced]
        width = product([loops.sizes[a] for a in kept])
        partial = f"p{self._result(output)}"
        parts.partials.append((partial, output.value.dtype, parts.counted("blocks") * width))
        place = code.place(target)
        skipped = combine("*", "block", code.size(width))
        bounds = [parts.bounds(position) for position in range(len(loops.inner))]
        first = plus(code.place_in_item(target), skipped)
        start: Statement = Store(Name(partial), first, identity)
        for loop, (low, high) in zip(reversed(loops.inner), reversed(bounds), strict=True):
            start = For(loop.index, low, high, [start])
        parts.item_start.append(start)
        at = code.fresh("p")
        so_far = Load(Name(partial), Name(at))
        comment = comment_of(output.value)
        lines.append(Assign(at, plus(place, skipped)))
        lines.append(Store(Name(partial), Name(at), combined(kind, so_far, value), comment))
        sizes = size_code(parts.counted("blocks")), size_code(width)
        buffer = parts.buffer(output.value)
        total = folding("fold_rows", kind, partial, *sizes, buffer, identity)
        parts.finish.append(Do(total, comment))
