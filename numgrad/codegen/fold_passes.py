"""Passes over loops with reductions in them: a `Fold` becomes memory for a block, and calls.

One of more than a block becomes one of blocks first (`in_blocks`), then all do (`without_folds`).

What is called stands in `numgrad.codegen.fold_runtime`, and combines in the order of eager sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from numgrad.base.tuning import SUM_BLOCK
from numgrad.codegen.llvm.combine_ir import COMBINES
from numgrad.codegen.loop_passes import names_in
from numgrad.codegen.loops import (
    ONE,
    ZERO,
    Assign,
    Call,
    Do,
    Expression,
    Fold,
    For,
    If,
    Infix,
    Load,
    Name,
    Number,
    Prefix,
    Statement,
    Store,
    While,
    call,
    combine,
    literal,
    plus,
    times,
    type_code,
)
from numgrad.codegen.scalar_ops import SCALAR_OPS

__all__ = ["folding", "identity", "in_blocks", "lane_of", "without_folds"]

SPELLED = 16  # numbers whose sum is one expression
_RUNTIME = "numgrad.codegen.fold_runtime"

Room = Callable[[Fold, int | None], str]
Across = Callable[[Fold, str], tuple[Sequence[Statement], Statement]]


def folding(function: str, kind: str, *arguments: Any) -> Call:
    """Return a call of what combines values: ``fold``, ``merge`` ..., of a kind of reduction."""
    return call(Name(f"{function}_{kind}", _RUNTIME), *arguments)


def lane_of(row: Expression, block: Expression, lanes: Expression) -> Expression:
    """Return to which lane a row is dealt, counted from the first block on."""
    return plus(times(block, lanes), combine("&", row, combine("-", lanes, 1)))


def _combined(kind: str, one: Expression, other: Expression) -> Expression:
    """Return two values combined."""
    sign = SCALAR_OPS[COMBINES[kind].operation].symbol
    return folding("join", kind, one, other) if sign is None else combine(sign, one, other)


def identity(kind: str, dtype: np.dtype[Any] | None) -> Expression:
    """Return what a reduction of nothing gives (for extremes: what yields to all others)."""
    if dtype is None:
        return ZERO
    number = COMBINES[kind].identity(dtype)
    if dtype.kind == "b":
        return Number(bool(number))
    return call(type_code(dtype), literal(number))


def in_blocks(
    statements: Sequence[Statement], levels: Callable[[Fold], str], across: Across
) -> list[Statement]:
    """Return statements whose reductions are of one block each, and what combines the blocks.

    Parameters
    ----------
    statements : sequence of Statement
    levels : callable
        Returns the name of an array for what the blocks of a `Fold` are combined to: `LEVELS` of
        `numgrad.codegen.fold_runtime`.
    across : callable
        Of a `Fold` that is the whole of a loop that stands further out, and the index of the loop
        that it stands in, returns what to do in front of its run, and what in its place: a `Fold`
        of blocks, or what keeps the values.

    Examples
    --------
    >>> from numgrad.codegen.loops import Function
    >>> from numgrad.codegen.printer import print_module
    >>> element, stored = Load(Name("x"), Name("i")), Store(Name("y"), ZERO, Name("s"))
    >>> fold = Fold("s", "sum", element, "i", [stored], np.dtype("float64"), whole="lo")
    >>> loop = For("i", Name("lo"), combine("+", "lo", 1024), [fold])
    >>> rows = [For("lo", ZERO, Name("n"), [loop], Number(1024))]
    >>> blocks = in_blocks(rows, lambda fold: "levels", lambda fold, loop: ((), fold))
    >>> lines = without_folds(blocks, lambda fold, count: "room")
    >>> print(print_module([Function("f", ["x", "y", "n"], lines)]).partition("def ")[2])
    f(x, y, n):
        ks = 0
        for lo in range(0, n, 1024):
            ds = run_sum(x, lo, lo + 1024 - lo, np.float64(0))
            merge_sum(levels, ks, ds, np.float64(0))
            ks = ks + 1
        s = merged_sum(levels, ks, np.float64(0))
        store(y, 0, s)
    <BLANKLINE>
    """
    return _Blocks(levels, across).of(statements, ())


class _Blocks:
    """What `in_blocks` does; `open` says what stands in front of loops around and behind them."""

    def __init__(self, levels: Callable[[Fold], str], across: Across) -> None:
        self.levels, self.across = levels, across
        self.open: dict[str, tuple[str, Sequence[Statement], Sequence[Statement]]] = {}

    def of(self, statements: Sequence[Statement], around: tuple[str, ...]) -> list[Statement]:
        """Return statements in loops of some indices."""
        lines: list[Statement] = []
        for line in statements:
            if type(line) is For:
                lines += self._loop(line, around)
            elif type(line) is If:
                then, otherwise = (self.of(each, around) for each in (line.then, line.otherwise))
                lines.append(If(line.condition, then, otherwise))
            elif type(line) is Fold and line.whole:
                lines.append(self._fold(line, around))
            else:
                lines.append(line)
        return lines

    def _loop(self, loop: For, around: tuple[str, ...]) -> list[Statement]:
        outside, self.open = self.open, {}
        body = self.of(loop.body, (*around, loop.index))
        before: list[Statement] = []
        after: list[Statement] = []
        for target, (index, start, end) in self.open.items():
            if index == loop.index:
                before += start
                after += end
            else:
                outside[target] = index, start, end
        self.open = outside
        return [*before, replace(loop, body=body), *after]

    def _fold(self, fold: Fold, around: tuple[str, ...]) -> Statement:
        """Return the reduction of a block."""
        if fold.whole in around:
            counter, block = Name(f"k{fold.target}"), Name(f"d{fold.target}")
            levels, nothing = self.levels(fold), identity(fold.kind, fold.dtype)
            merged = folding("merged", fold.kind, levels, counter, nothing)
            end = [Assign(fold.target, merged), *fold.each]
            self.open[fold.target] = fold.whole, [Assign(counter.id, ZERO)], end
            each = Do(folding("merge", fold.kind, levels, counter, block, nothing), fold.origin)
            done: list[Statement] = [each, Assign(counter.id, plus(counter, 1))]
            return replace(fold, target=block.id, each=done, whole="")
        start, of_block = self.across(fold, around[-1])
        self.open[fold.target] = fold.run, start, ()
        return of_block


def without_folds(
    statements: Sequence[Statement], room: Room, turns: Mapping[str, int] | None = None
) -> list[Statement]:
    """Return statements with memory and calls in the place of reductions.

    A `Fold` whose run begins further out, or in front of an `If` or `While`, stays as it is, unless
    it is of rows. It has one block, or each block is a result: what `in_blocks` does is done.

    Parameters
    ----------
    statements : sequence of Statement
    room : callable
        Returns the name of an array for so many values of a `Fold`; for those of a block, if the
        number is None.
    turns : mapping, optional
        How many turns loops have, by their index. Few values are combined in one expression.

    Examples
    --------
    >>> from numgrad.codegen.loops import Function
    >>> from numgrad.codegen.printer import print_module
    >>> def show(value):
    ...     fold = Fold("s", "sum", value, "i", dtype=np.dtype("float64"))
    ...     loop = For("i", Name("lo"), Name("hi"), [fold])
    ...     lines = without_folds([loop], lambda fold, count: "room")
    ...     print(print_module([Function("f", ["x", "lo", "hi"], lines)]).partition("def ")[2])
    >>> element = Load(Name("x"), Name("i"))
    >>> show(times(element, 2))
    f(x, lo, hi):
        for i in range(lo, hi):
            store(room, i - lo, element(x, i) * 2)
        s = run_sum(room, 0, hi - lo, np.float64(0))
    <BLANKLINE>

    Values that lie in memory already, in this order, are combined from there.

    >>> show(element)
    f(x, lo, hi):
        s = run_sum(x, lo, hi - lo, np.float64(0))
    <BLANKLINE>
    """
    return _Lowering(room, turns or {}).of(statements, ())


class _Lowering:
    """What `without_folds` does; `open` are the runs whose loops have not ended yet."""

    def __init__(self, room: Room, turns: Mapping[str, int]) -> None:
        self.room, self.turns = room, turns
        self.open: list[_Run] = []

    def of(self, statements: Sequence[Statement], around: tuple[For, ...]) -> list[Statement]:
        """Return statements in some loops, the outermost first."""
        lines: list[Statement] = []
        for line in statements:
            if type(line) is For:
                lines += self._loop(line, around)
            elif type(line) is If:  # a run in it begins in it: of others not all values are there
                lines.append(
                    If(line.condition, self.of(line.then, ()), self.of(line.otherwise, ()))
                )
            elif type(line) is While:
                lines.append(While(line.condition, self.of(line.body, ())))
            elif type(line) is Fold and line.place is not None:
                array = Name(line.target)
                joined = _combined(line.kind, Load(array, line.place), line.value)
                lines.append(Store(array, line.place, joined, line.origin))
            elif type(line) is Fold and any(loop.index == line.run for loop in around):
                start = next(k for k, loop in enumerate(around) if loop.index == line.run)
                run = _Run(line, around[start:], self.room, self.turns)
                self.open.append(run)
                if run.fills_room:
                    lines.append(Store(run.array, run.place, line.value, line.origin))
            else:
                lines.append(line)
        return lines

    def _loop(self, loop: For, around: tuple[For, ...]) -> list[Statement]:
        """Return a loop, with what runs need in front of it and behind."""
        outside, self.open = self.open, []
        body = self.of(loop.body, (*around, loop))
        lines: list[Statement] = [For(loop.index, loop.first, loop.last, body, loop.step)]
        if self.open and all(type(line) is Assign for line in body):
            lines = []  # what it computes is only named
        for run in self.open:
            if run.is_cut and run.loops[-1] is loop:
                lines += run.whole_block()
            if run.loops[0] is loop:
                lines = [*run.start(), *lines, *run.end()]
            else:
                outside.append(run)
        self.open = outside
        return lines


class _Run:
    """What becomes of one `Fold`.

    Its values are combined when they are all there, if there is a block of them at most or it is
    known how many there are. Else the run is cut into blocks, anywhere (`is_cut`): `filled` values
    wait in an array for twice as many. They wait in a room of the run, unless they lie in memory
    already, from `first` on.
    """

    def __init__(
        self, fold: Fold, loops: tuple[For, ...], room: Room, turns: Mapping[str, int]
    ) -> None:
        self.fold, self.loops = fold, loops
        self.nothing = identity(fold.kind, fold.dtype)
        inner = loops[-1]
        self.length = combine("-", inner.last, inner.first)
        self.place: Expression = plus(inner.index, *_negative(inner.first))
        self.count: int | None = None
        if all(loop.index in turns for loop in loops):
            self.count = turns[inner.index]
            for loop in reversed(loops[:-1]):
                self.place = plus(times(loop.index, self.count), self.place)
                self.count *= turns[loop.index]
        self.is_cut = self.count is None and len(loops) > 1
        if self.is_cut:
            self.filled = Name(f"f{fold.target}")
            self.place = plus(self.filled, self.place)
        self.first: Expression = ZERO
        there = _in_memory(fold, inner) if len(loops) == 1 and self.count is None else None
        self.fills_room = there is None
        if there is None:
            self.array: Expression = Name(room(fold, 2 * SUM_BLOCK if self.is_cut else self.count))
        else:
            self.array, self.first = there.array, there.index

    def start(self) -> list[Statement]:
        """Return what stands in front of its loops."""
        return [Assign(self.filled.id, ZERO)] if self.is_cut else []

    def whole_block(self) -> list[Statement]:
        """Return what stands behind the innermost loop of a run that is cut into blocks."""
        filled, shifted = self.filled, Name("shifted", _RUNTIME)
        dropped = Assign(filled.id, call(shifted, self.array, filled))
        block = [*self._done(self._block(SUM_BLOCK)), dropped]
        more = Assign(filled.id, combine("+", filled, self.length))
        return [more, If(combine(">=", filled, SUM_BLOCK), block)]

    def end(self) -> list[Statement]:
        """Return what stands behind its loops."""
        if self.is_cut:
            return [If(combine(">", self.filled, 0), self._done(self._block(self.filled)))]
        if self.count is None:
            return self._done(self._block(self.length))
        if self.count > SPELLED:
            fold = folding("fold", self.fold.kind, self.array, self.count, self.nothing)
            return self._done(fold)
        return self._done(self._spelled(self.count))

    def _done(self, result: Expression) -> list[Statement]:
        return [Assign(self.fold.target, result, self.fold.origin), *self.fold.each]

    def _block(self, count: Any) -> Expression:
        return folding("run", self.fold.kind, self.array, self.first, count, self.nothing)

    def _spelled(self, count: int) -> Expression:
        """Return few values combined, written out in the order of a block."""
        kind, dtype = self.fold.kind, self.fold.dtype
        terms: list[Expression] = [Load(self.array, Number(k)) for k in range(count)]
        if dtype.kind == "c":
            terms = [_combined(kind, self.nothing, term) for term in terms]
        half = SPELLED // 2
        while half:
            rest = terms[max(0, len(terms) - half) : half]
            terms = [_combined(kind, *pair) for pair in zip(terms, terms[half:], strict=False)]
            terms += rest
            half //= 2
        # Of zeros below 0 the sum that begins with 0 is above; everywhere else it is the same.
        begins = kind == "sum" and dtype.kind == "f"
        return _combined(kind, terms[0], self.nothing) if begins else terms[0]


def _in_memory(fold: Fold, loop: For) -> Load | None:
    """Return the first of the values of a loop's turns, if these lie side by side in an array.

    A loop that does more than to name values and to combine them may write to that array.
    """
    if fold.dtype is None or fold.dtype.kind == "b" or fold.dtype == np.float16:
        return None  # memory may hold other bytes than 0 and 1; halves are no numbers of LLVM's
    if any(type(line) is not Assign and type(line) is not Fold for line in loop.body):
        return None
    named = {line.target: line.value for line in loop.body if type(line) is Assign}
    value = fold.value
    while type(value) is Name and value.id in named:
        value = named[value.id]
    if type(value) is not Load or value.subscript or loop.step != ONE:
        return None
    before, own, after = _around(value.index, loop.index)
    varying = {loop.index, *named}
    if not own or not varying.isdisjoint(names_in((value.array, *before, *after))):
        return None
    return Load(value.array, plus(*before, loop.first, *after))


def _around(index: Expression, name: str) -> tuple[list[Expression], bool, list[Expression]]:
    """Return the terms of a sum in front of a variable and behind it, and whether it is one."""
    match index:
        case Name(id, "") if id == name:
            return [], True, []
        case Infix("+", left, right):
            before, own, after = _around(left, name)
            if own:
                return before, True, [*after, right]
            more, own, after = _around(right, name)
            return [*before, *more], own, after
        case Infix("-", left, right):
            before, own, after = _around(left, name)
            if own:
                return before, True, [*after, Prefix("-", right)]
    return [index], False, []


def _negative(first: Expression) -> list[Expression]:
    return [] if first == ZERO else [Prefix("-", first)]
