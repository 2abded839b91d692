"""Turns at the ends completed by stand-ins: operations that the trace lacks there.

What stands in computes something that nobody takes; or it adds to -0.0, which changes no bit; or
who takes its result gets something else in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.constructors import broadcast, constant, reshape, view
from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.lowering.bodies import replaced
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.rolling.ends import End
from numgrad.jit.rolling.pattern import FURTHEST, Pattern
from numgrad.jit.rolling.tokens import Operation, Path, had_by, is_same_view, rebased, with_operand

__all__ = ["Columns", "Unlike"]


# Operations that may raise, or read and write elsewhere, if numbers are not what they are to be.
_STRICT = frozenset(("check", "gather", "scatter", "route"))


class Unlike(Exception):
    """The turns are not alike after all."""


class Columns:
    """The operations of all turns, by their positions, and those of the ends completed.

    Attributes
    ----------
    columns : list of list of Operation
    places : dict
        In which turn a value of the ends is computed, and by which operation.
    stand_ins : set of Value
    instead : dict
        By turn and position: what others take in the place of a stand-in's result.
    odd : dict
        By position and operand: turns at the ends that take something else, and what.
    """

    def __init__(self, pattern: Pattern, before: End | None, after: End | None) -> None:
        self.pattern = pattern
        first, period, turns = pattern.run
        operations = pattern.trace.operations
        stop = first + period * turns
        self.lead = 0 if before is None else 1
        self.turns = turns + self.lead + (after is not None)
        self.columns = [operations[first + k : stop : period] for k in range(period)]
        self.places: dict[Value, tuple[int, int]] = {}
        self.stand_ins: set[Value] = set()
        self.instead: dict[tuple[int, int], Value] = {}
        self.odd: dict[tuple[int, int], list[tuple[int, Value]]] = {}
        for end, turn in ((before, 0), (after, self.turns - 1)):
            if end is not None:
                self._complete(end, turn)
        begins = self._begins()
        for position, sources in enumerate(pattern.sources):
            for slot, source in enumerate(sources):
                for turn in (0, self.turns - 1):
                    self._compare(turn, position, slot, begins)
                for turn in range(1, source.back):
                    column = self.columns[position]
                    found = had_by(column[turn], slot, pattern.turn[position])
                    column[turn] = found or column[turn]

    def place(self, base: Value) -> tuple[int, int] | None:
        """Return in which turn a value is computed, and by which operation; None if in none."""
        first, period, turns = self.pattern.run
        place = self.pattern.trace.place.get(base)
        if place is None or not first <= place < first + period * turns:
            return self.places.get(base)
        turn, made = divmod(place - first, period)
        return turn + self.lead, made

    def value(self, turn: int, position: int) -> Value:
        """Return the result of an operation."""
        return self.columns[position][turn].value

    def _complete(self, end: End, turn: int) -> None:
        for position, column in enumerate(self.columns):
            operation = end.operations.get(position)
            if operation is None:
                operation = self._stand_in(column[-1 if turn else 0])
                self.stand_ins.add(operation.value)
            self.places[operation.value] = turn, position
            column.insert(len(column) if turn else 0, operation)
        for position, value in end.instead.items():
            self._take_instead(turn, position, value)
        begins = {} if turn else self._begins()
        for position in range(len(self.columns)):
            if position not in end.operations:
                self._fill(turn, position, begins)
        for position, value in end.instead.items():
            slot = end.alone.get(position)
            if slot is None or not self._is_operand(turn, position, slot, value):
                self.instead[turn, position] = value
            else:
                self._add_alone(turn, position, slot)

    def _stand_in(self, like: Operation) -> Operation:
        value = like.value
        if not _is_harmless(value):
            raise Unlike
        return like._replace(value=replaced(value, {}))

    def _take_instead(self, turn: int, position: int, value: Value) -> None:
        """Have who takes a value in the place of a stand-in's result take that."""
        stand_in = self.value(turn, position)
        for back in range(FURTHEST + 1):
            if turn + back >= self.turns:
                break
            for user, slot in self.pattern.users.get((position, back), ()):
                operation = self.columns[user][turn + back]
                like = had_by(operation, slot, self.pattern.turn[user])
                if like is not None and is_same_view(like.bases[slot], value):
                    bases = list(like.bases)
                    bases[slot] = stand_in
                    self.columns[user][turn + back] = like._replace(bases=bases)

    def _begins(self) -> dict[tuple[int, int], Value]:
        """Return what the first turn takes in the place of results of turns before it."""
        found: dict[tuple[int, int], Value] = {}
        for position, sources in enumerate(self.pattern.sources):
            operation = self.columns[position][0]
            if operation.value in self.stand_ins:
                continue
            for slot, source in enumerate(sources):
                if source.made is not None and source.back:
                    like = had_by(operation, slot, self.pattern.turn[position])
                    if like is not None and self.place(like.bases[slot]) is None:
                        found.setdefault((source.made, source.back), like.bases[slot])
        return found

    def _fill(self, turn: int, position: int, begins: dict[tuple[int, int], Value]) -> None:
        """Find out what a stand-in takes."""
        column = self.columns[position]
        for slot in range(len(self.pattern.sources[position])):
            column[turn] = self._expected(turn, position, slot, begins)
        if column[turn].value.operation == "update":
            near, far = (column[-2], column[-3]) if turn else (column[1], column[2])
            if near.offsets[-1] != far.offsets[-1]:
                raise Unlike

    def _expected(
        self, turn: int, position: int, slot: int, begins: dict[tuple[int, int], Value]
    ) -> Operation:
        """Return an operation at an end with the operand that turns beside it lead to expect."""
        column = self.columns[position]
        near, far = (column[-2], column[-3]) if turn else (column[1], column[2])
        source = self.pattern.sources[position][slot]
        base = near.bases[slot]
        if source.made is not None:
            found = had_by(near, slot, self.pattern.turn[position])
            if found is None:
                raise Unlike
            near = found
            if turn >= source.back:
                base = self.value(turn - source.back, source.made)
            else:
                like = self.columns[source.made][1].value
                zeros = broadcast(constant(0, like.dtype), like.shape)
                base = begins.setdefault((source.made, source.back), zeros)
        return with_operand(column[turn], slot, _further(near, far, slot, base), base, near)

    def _compare(
        self, turn: int, position: int, slot: int, begins: dict[tuple[int, int], Value]
    ) -> None:
        """Find out whether an operand at an end comes from where it does in the other turns."""
        column, source = self.columns[position], self.pattern.sources[position][slot]
        own, like = column[turn], self.pattern.turn[position]
        if source.made is None:
            is_other = source.same and not self.pattern.is_same(position, slot, own)
            if is_other or self.place(own.bases[slot]) is not None:
                self._set_odd(turn, position, slot, begins)
            return
        found = had_by(own, slot, like)
        expected = (turn - source.back, source.made) if turn >= source.back else None
        if found is None or self.place(found.bases[slot]) != expected:
            self._set_odd(turn, position, slot, begins)
            return
        near, far = (column[-2], column[-3]) if turn else (column[1], column[2])
        if found.offsets[slot] != near.offsets[slot] == far.offsets[slot]:
            self._set_odd(turn, position, slot, begins)
            return
        column[turn] = found

    def _set_odd(
        self, turn: int, position: int, slot: int, begins: dict[tuple[int, int], Value]
    ) -> None:
        own = self.columns[position][turn]
        if own.value in self.stand_ins or own.value.operation == "item":
            raise Unlike
        self.odd.setdefault((position, slot), []).append((turn, own.value.operands[slot]))
        self.columns[position][turn] = self._expected(turn, position, slot, begins)

    def _is_operand(self, turn: int, position: int, slot: int, value: Value) -> bool:
        own = self.columns[position][turn]
        return is_same_view(rebased(own.paths[slot], own.bases[slot]), value)

    def _add_alone(self, turn: int, position: int, slot: int) -> None:
        """Have a stand-in add an operand to -0.0."""
        own = self.columns[position][turn]
        kind, shape = own.value.dtype.kind, own.value.shape
        nothing = {"f": -0.0, "c": complex(-0.0, -0.0)}.get(kind, 0)
        bases = list(own.bases)
        bases[1 - slot] = broadcast(constant(nothing, own.value.dtype), shape)
        self.columns[position][turn] = own._replace(bases=bases)


def _is_harmless(value: Value) -> bool:
    """Whether an operation ends, and raises nothing, whatever numbers it is given."""
    if value.operation != "call":
        op = SCALAR_OPS.get(value.operation)
        may_divide = op is not None and op.divides and value.dtype.kind in "iu"
        return value.operation not in _STRICT and not may_divide
    loop = value.attributes["primitive"]
    if not isinstance(loop, Loop) or loop.length is None or loop.stops:
        return False
    return all(map(_is_harmless, loop.graph.values()))


def _further(near: Operation, far: Operation, slot: int, base: Value) -> Path:
    """Return the views of an operand one turn further on.

    As they are in the turn beside it where there is nothing further on.
    """
    path = near.paths[slot]
    offsets = near.offsets[slot]
    if near.ways[slot] == far.ways[slot]:
        further = [2 * a - b for a, b in zip(offsets, far.offsets[slot], strict=True)]
        moved = _moved(path, base, further)
        if moved is not None:
            return moved
    found = _moved(path, base, offsets)
    assert found is not None
    return found


def _moved(path: Sequence[Value], base: Value, offsets: Sequence[int]) -> Path | None:
    """Return views that begin elsewhere, of another value; None if it has no such elements."""
    found: list[Value] = []
    stop = len(offsets)
    for step in reversed(path):
        if step.operation == "reshape":
            base = reshape(base, step.shape)
            found.append(base)
            continue
        maps = step.attributes["maps"]
        starts = offsets[stop - len(maps) : stop]
        stop -= len(maps)
        moved = [Affine(start, m.terms) for start, m in zip(starts, maps, strict=True)]
        for each, size in zip(moved, base.shape, strict=True):
            reaches = [by * (step.shape[dim] - 1) for dim, by in each.terms]
            low = each.offset + sum(min(n, 0) for n in reaches)
            high = each.offset + sum(max(n, 0) for n in reaches)
            if low < 0 or high >= size:
                return None
        base = view(base, moved, step.shape)
        found.append(base)
    return tuple(reversed(found))
