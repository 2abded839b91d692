"""The pattern of turns: from where each operand of an operation of a turn comes."""

from __future__ import annotations

from typing import NamedTuple

from numgrad.jit.rolling.columns import is_same_number
from numgrad.jit.rolling.repetition import Run
from numgrad.jit.rolling.tokens import Operation
from numgrad.jit.rolling.trace import Trace

__all__ = ["FURTHEST", "TURNS_BESIDE", "Pattern", "Source"]

TURNS_BESIDE = 2  # before or behind a run, among whose operations is looked for more of its like
FURTHEST = 4  # turns back from which a value may be taken


class Source(NamedTuple):
    """From where an operand comes: from an operation, of this turn or of one before.

    Attributes
    ----------
    made : int or None
        The operation; None if it comes from outside of the turns.
    back : int
        How many turns before.
    same : bool
        Whether it is the same value from outside in all turns.
    """

    made: int | None
    back: int
    same: bool


class Pattern:
    """What turns have in common, read off two in their middle."""

    def __init__(self, trace: Trace, run: Run) -> None:
        self.trace, self.run = trace, run
        first, period, turns = run
        middle = max(turns // 2, 1)
        start = first + middle * period
        self.turn = trace.operations[start : start + period]
        before = trace.operations[start - period : start]
        self.sources: list[list[Source]] = []
        self.users: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for position, (now, then) in enumerate(zip(self.turn, before, strict=True)):
            sources = [self._source(now, then, slot, middle) for slot in range(len(now.bases))]
            self.sources.append(sources)
            for slot, source in enumerate(sources):
                if source.made is not None:
                    key = source.made, source.back
                    self.users.setdefault(key, []).append((position, slot))

    def _source(self, now: Operation, then: Operation, slot: int, turn: int) -> Source:
        first, period, turns = self.run
        base = now.bases[slot]
        place = self.trace.place.get(base)
        if place is not None and first <= place < first + period * turns:
            when, made = divmod(place - first, period)
            if turn - when <= FURTHEST:
                return Source(made, turn - when, False)
        same = base is then.bases[slot] or is_same_number([base, then.bases[slot]])
        same = (
            same and now.ways[slot] == then.ways[slot] and now.offsets[slot] == then.offsets[slot]
        )
        return Source(None, 0, same)

    def fits(self, position: int, operation: Operation) -> bool:
        """Whether an operation may be the one at a position, in another turn."""
        own = self.turn[position]
        if own.token != operation.token:
            return False
        return all(
            self.is_same(position, slot, operation)
            for slot, source in enumerate(self.sources[position])
            if source.same
        )

    def is_same(self, position: int, slot: int, operation: Operation) -> bool:
        """Whether an operation takes the same value from outside as the one at a position."""
        own, other = self.turn[position], operation
        bases = own.bases[slot], other.bases[slot]
        if bases[0] is not bases[1] and not is_same_number(bases):
            return False
        return own.ways[slot] == other.ways[slot] and own.offsets[slot] == other.offsets[slot]
