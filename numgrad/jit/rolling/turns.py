"""Turns of a trace that may become a loop: what they take from each other, and from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from numgrad.jit.ir.graph import Value
from numgrad.jit.rolling.repetition import Run
from numgrad.jit.rolling.rows import Row
from numgrad.jit.rolling.tokens import Operation, rebased
from numgrad.jit.rolling.trace import Trace
from numgrad.jit.rolling.windows import Window, place_of_path, window_of

__all__ = ["Carry", "Turns", "Unlike"]

FURTHEST = 4  # turns back from which a value may be taken


class Unlike(Exception):
    """The turns are not alike after all."""


class Carry(NamedTuple):
    """What is taken from some turns back: which operation's result, and what the first ones get."""

    made: int
    back: int
    inits: tuple[Value, ...]


class Turns:
    """A run of alike turns, and the loop that it becomes."""

    def __init__(self, trace: Trace, run: Run) -> None:
        self.trace, self.run = trace, run
        self.carries: dict[Carry, Value] = {}  # and the body's input that stands for each
        self.rows: dict[Row, Value] = {}
        self.body: dict[int, Value] = {}
        self.windows: dict[int, Window] = {}  # by the operation that writes
        self.parts: dict[int, Value] = {}  # and what it writes

    def turn(self, position: int) -> list[Operation]:
        """Return an operation of a turn, in all turns."""
        first, period, turns = self.run
        return [self.trace.operations[first + k * period + position] for k in range(turns)]

    # --- what the turns take ---

    def find(self) -> None:
        """Find out what the turns take, and write the body.

        Raises
        ------
        Unlike
            If they take it from different places.
        """
        uses = self._uses()
        for position in range(self.run.period):
            column = self.turn(position)
            if _moves(column, len(column[0].bases)):
                window = self._window(column, position, uses)
                self.windows[position] = window
        added = {window.added for window in self.windows.values()}
        for position in range(self.run.period):
            column = self.turn(position)
            value = column[0].value
            if position in added:
                continue
            if position in self.windows:
                self.parts[position] = self._operand(column, 1, _moves(column, 1))
                continue
            operands = [
                self._operand(column, slot, _moves(column, slot))
                for slot in range(len(value.operands))
            ]
            self.body[position] = Value(
                value.operation,
                operands,
                value.shape,
                value.dtype,
                value.origin,
                **value.attributes,
            )

    def _uses(self) -> dict[int, list[tuple[int, int]]]:
        """Return which operations of a turn take a result, of this turn or the one before."""
        found: dict[int, list[tuple[int, int]]] = {}
        for position in range(self.run.period):
            for slot, base in enumerate(self.turn(position)[1].bases):
                place = self.place(base)
                if place is not None:
                    found.setdefault(place[1], []).append((position, slot))
        return found

    def _window(
        self, column: Sequence[Operation], made: int, uses: dict[int, list[tuple[int, int]]]
    ) -> Window:
        """Return the windows that an update writes, if each turn writes another."""
        found: Window | None = None
        before = [self.place(each.bases[0]) for each in column]
        if column[0].value.operation == "update" and not _moves(column, 0):
            if before[0] is None and not column[0].paths[0]:  # an array that is handed on
                if before[1:] == [(turn, made) for turn in range(len(before) - 1)]:
                    found = window_of(column, made, None, column[0].bases[0])
            elif all(place is None for place in before) and len(uses.get(made, ())) == 1:
                found = self._added_window(column, made, uses)
        if found is None:
            raise Unlike
        return found

    def _added_window(
        self, column: Sequence[Operation], made: int, uses: dict[int, list[tuple[int, int]]]
    ) -> Window | None:
        """Return the windows of an update of zeros, if all it does is to be added to an array."""
        ((added, slot),) = uses[made]
        sums = self.turn(added)
        if sums[0].value.operation != "add" or any(any(each.paths) for each in sums):
            return None
        is_zero = _same_number([each.bases[0] for each in column])
        if not is_zero or column[0].bases[0].attributes["value"] != 0:
            return None
        others = [each.bases[1 - slot] for each in sums]
        places = [self.place(base) for base in others]
        is_carried = places == [None, *((turn, added) for turn in range(len(places) - 1))]
        own = [each.bases[slot] is column[turn].value for turn, each in enumerate(sums)]
        is_alone = uses.get(added) == [(added, 1 - slot)]
        if not (is_carried and all(own) and is_alone):
            return None
        if others[0].shape != sums[0].value.shape or column[0].value.shape != sums[0].value.shape:
            return None
        return window_of(column, made, added, others[0])

    def _of_window(
        self, column: Sequence[Operation], slot: int, places: Sequence[tuple[int, int] | None]
    ) -> Value | None:
        """Return what is read of an array that turns write; None if it is no such."""
        made = None if places[1] is None else places[1][1]
        window = None if made is None else self.windows.get(made)
        if window is None or made is None or window.added is not None:
            return None
        if places != [None, *((turn, made) for turn in range(len(places) - 1))]:
            raise Unlike
        paths = tuple([each.paths[slot] for each in column])
        for turn, path in enumerate(paths):
            if place_of_path(path, window.init) != (window.offset_in(turn), window.strides):
                raise Unlike
        # Nobody has written there yet.
        return self._row(Row((window.init,) * len(column), paths))

    def _operand(self, column: Sequence[Operation], slot: int, moves: bool) -> Value:
        """Return what stands in the body for an operand of an operation."""
        bases = [each.bases[slot] for each in column]
        places = [self.place(base) for base in bases]
        path = column[0].paths[slot]
        is_same = all(base is bases[0] for base in bases)
        if all(place is None for place in places):
            if moves:
                paths = tuple([each.paths[slot] for each in column])
                return self._row(Row(tuple(bases), paths))
            if is_same or _same_number(bases):
                return rebased(path, bases[0])
            return rebased(path, self._row(Row(tuple(bases))))
        of_window = self._of_window(column, slot, places)
        if of_window is not None:
            return of_window
        if moves:
            raise Unlike
        for back in range(FURTHEST + 1):
            place = places[back] if back < len(places) else None
            if place is None:
                continue
            if place[0] != 0:
                raise Unlike
            made = place[1]
            if any(places[k] is not None for k in range(back)):
                raise Unlike
            if any(places[k] != (k - back, made) for k in range(back, len(places))):
                raise Unlike
            if back == 0:
                return rebased(path, self.body[made])
            return rebased(path, self.carry(Carry(made, back, tuple(bases[:back]))))
        raise Unlike

    def place(self, base: Value) -> tuple[int, int] | None:
        """Return in which turn a value is computed, and by which operation; None if in none."""
        first, period, turns = self.run
        place = self.trace.place.get(base)
        if place is None or not first <= place < first + period * turns:
            return None
        return divmod(place - first, period)

    def carry(self, carry: Carry) -> Value:
        found = self.carries.get(carry)
        if found is None:
            like = carry.inits[0]
            found = Value("input", (), like.shape, like.dtype, position=0)
            self.carries[carry] = found
        return found

    def _row(self, row: Row) -> Value:
        found = self.rows.get(row)
        if found is None:
            like = row.paths[0][0] if row.paths and row.paths[0] else row.values[0]
            found = Value("input", (), like.shape, like.dtype, position=0)
            self.rows[row] = found
        return found


def _moves(column: Sequence[Operation], slot: int) -> bool:
    """Whether the views that lead to an operand begin elsewhere in each turn.

    Behind the operands comes where an update writes.
    """
    counts = [
        sum(len(step.attributes.get("maps", ())) for step in path) for path in column[0].paths
    ]
    start = sum(counts[:slot])
    stop = start + counts[slot] if slot < len(counts) else None
    return len({each.offsets[start:stop] for each in column}) > 1


def _same_number(values: Sequence[Value]) -> bool:
    if any(value.operation != "constant" for value in values):
        return False
    first = repr(values[0].attributes["value"])
    return all(repr(value.attributes["value"]) == first for value in values)
