"""First and last turns that lack operations which the others have, found beside a run.

What a loop begins with may be a constant, or no gradient may have come there yet; at the end it may
be that nobody needs what a turn hands on. So the turns at the ends record fewer operations. Which
of those of the others they are follows from what hands values to what: from the turn beside them on
along operands and users.
"""

from __future__ import annotations

from typing import NamedTuple

from numgrad.jit.ir.graph import Value
from numgrad.jit.rolling.pattern import TURNS_BESIDE, Pattern
from numgrad.jit.rolling.tokens import Operation, had_by, viewed

__all__ = ["End", "turn_after", "turn_before"]

PRESENT = 4  # the part of a turn (operations, or nodes) that has to be there: one of so many


class End(NamedTuple):
    """A turn that lacks operations.

    Attributes
    ----------
    operations : dict
        Those that are there, by their positions.
    instead : dict
        What others take in the place of those that are missing, by their positions.
    alone : dict
        Sums that are missing since there is nothing yet to add to: by their positions, which
        operand it is that is taken instead.
    """

    operations: dict[int, Operation]
    instead: dict[int, Value]
    alone: dict[int, int]


class _Search:
    """Who is who in a turn at an end."""

    def __init__(self, pattern: Pattern, low: int, high: int) -> None:
        self.pattern = pattern
        self.region = pattern.trace.operations[low:high]
        self.by_value = {each.value: each for each in self.region}
        self.users: dict[Value, list[tuple[Operation, int]]] = {}
        for each in self.region:
            for slot, base in enumerate(each.bases):
                self.users.setdefault(base, []).append((each, slot))
        self.found: dict[int, Operation] = {}
        self.position: dict[Value, int] = {}
        self.instead: dict[int, Value] = {}
        self.alone: dict[int, int] = {}
        self.down: list[int] = []
        self.up: list[tuple[tuple[int, int], Value]] = []

    def propose(self, position: int, value: Value) -> bool:
        """Take an operation for the one at a position; tell whether it may be."""
        operation = self.by_value.get(value)
        if operation is None or not self.pattern.fits(position, operation):
            return False
        if position in self.found or value in self.position:
            return self.found.get(position) is operation
        if operation.value.operation == "add" and not self._adds_alike(position, operation):
            return False
        self.found[position] = operation
        self.position[value] = position
        self.down.append(position)
        self.up.append(((position, 0), value))
        return True

    def _adds_alike(self, position: int, operation: Operation) -> bool:
        """Whether a sum has an operand in common with the one at a position.

        Sums follow each other, and where one is missing, the others are like the next.
        """
        for slot, source in enumerate(self.pattern.sources[position]):
            base = viewed(operation.value.operands[slot], self.pattern.turn[position].paths[slot])
            other = None if base is None else self.by_value.get(base)
            if source.made is None or source.back:
                if other is None:
                    return True
            elif other is not None and other.token == self.pattern.turn[source.made].token:
                return True
        return False

    def propose_users(self, key: tuple[int, int], value: Value) -> None:
        """Take the users of a value for those of an operation, where that is not ambiguous."""
        pattern = self.pattern
        own: dict[tuple[int, int], list[int]] = {}
        for position, slot in pattern.users.get(key, ()):
            if position not in self.found:
                own.setdefault((pattern.turn[position].token, slot), []).append(position)
        for each, slot in self.users.get(value, ()):
            if each.value in self.position:
                continue
            fitting = [p for p in own.get((each.token, slot), ()) if pattern.fits(p, each)]
            if fitting:
                self.propose(fitting[0], each.value)
                own[each.token, slot].remove(fitting[0])

    def run(self) -> End | None:
        """Return the turn, once all that follows from what was proposed is found."""
        while self.down or self.up:
            if self.down:
                self._enter_operands(self.down.pop())
            else:
                self.propose_users(*self.up.pop())
        if len(self.found) * PRESENT < len(self.pattern.turn):
            return None
        instead = {made: v for made, v in self.instead.items() if made not in self.found}
        return End(self.found, instead, self.alone)

    def _enter_operands(self, position: int) -> None:
        operation = self.found[position]
        for slot, source in enumerate(self.pattern.sources[position]):
            if source.made is None or source.back:
                continue
            like = had_by(operation, slot, self.pattern.turn[position])
            if like is not None:
                self.enter(source.made, like.bases[slot])

    def enter(self, made: int, value: Value) -> None:
        """Take a value for the result of an operation, or for what is in its place."""
        if self.propose(made, value) or made in self.found:
            return
        self.instead.setdefault(made, value)
        while self.pattern.turn[made].value.operation == "add":
            # Nothing to add to: one of the operands alone.
            operation, sources = self.pattern.turn[made], self.pattern.sources[made]
            own = [
                (slot, source.made, viewed(value, operation.paths[slot]))
                for slot, source in enumerate(sources)
                if source.made is not None and source.back == 0
            ]
            for slot, other, base in own:
                if base is not None and self.propose(other, base):
                    rest = 1 - slot
                    if sources[rest].back == 1 and not operation.paths[rest]:
                        self.alone.setdefault(made, slot)
                    return
            sums = [
                (other, base)
                for _, other, base in own
                if base is not None
                and other not in self.found
                and self.pattern.turn[other].value.operation == "add"
            ]
            if len(sums) != 1:
                return
            made, value = sums[0]


def turn_before(pattern: Pattern) -> End | None:
    """Return the turn before a run; None if there is none."""
    first, period, turns = pattern.run
    search = _Search(pattern, max(first - TURNS_BESIDE * period, 0), first)
    operations = pattern.trace.operations
    for position, sources in enumerate(pattern.sources):
        for slot, source in enumerate(sources):
            if source.made is not None and 1 <= source.back <= turns:
                taker = operations[first + (source.back - 1) * period + position]
                like = had_by(taker, slot, pattern.turn[position])
                if like is not None:
                    search.enter(source.made, like.bases[slot])
    return search.run()


def turn_after(pattern: Pattern) -> End | None:
    """Return the turn behind a run; None if there is none."""
    first, period, turns = pattern.run
    stop = first + period * turns
    search = _Search(pattern, stop, stop + TURNS_BESIDE * period)
    for made, back in pattern.users:
        if 1 <= back <= turns:
            taken = pattern.trace.operations[stop - back * period + made].value
            search.up.append(((made, back), taken))
    return search.run()
