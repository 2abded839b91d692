"""Turns of a trace that may become a loop: what they take from each other, and from outside."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from numgrad.jit.ir.constructors import apply, constant
from numgrad.jit.ir.graph import Value
from numgrad.jit.rolling.columns import (
    added_to,
    are_zeros,
    is_same_number,
    moves_in,
    scale_of,
    where_written,
)
from numgrad.jit.rolling.completion import Columns, Unlike
from numgrad.jit.rolling.pattern import FURTHEST, TURNS_BESIDE
from numgrad.jit.rolling.positions import Positions
from numgrad.jit.rolling.rows import Row, is_even
from numgrad.jit.rolling.tokens import (
    Operation,
    followed_back,
    is_alike,
    rebased,
    row_number,
    row_of,
)
from numgrad.jit.rolling.windows import Window, place_of_path, window_of

__all__ = ["Carry", "Turns"]

ODD = 4  # operands of the turns at the ends may be others: of so many operations one


class _Otherwise(Exception):
    """What is written has to be written in the loop, or all of it added."""


class Carry(NamedTuple):
    """What is taken from some turns back: which operation's result, and what the first ones get."""

    made: int
    back: int
    inits: tuple[Value, ...]


class Turns:
    """A run of alike turns, and the loop that it becomes."""

    def __init__(self, completed: Columns) -> None:
        self.completed, self.columns, self.count = completed, completed.columns, completed.turns
        self.trace, self.run = completed.pattern.trace, completed.pattern.run
        self.uses = self._uses()
        self.used = self._used()
        # Updates that can't be done at once behind the loop, and those to be added as a whole.
        self.in_turns: set[int] = set()
        self.whole: set[int] = set()
        self._clear()

    def _clear(self) -> None:
        self.carries: dict[Carry, Value] = {}  # and the body's input that stands for each
        self.rows: dict[Row, Value] = {}
        self.body: dict[int, Value] = {}
        self.windows: dict[int, Window] = {}  # by the operation that writes
        self.parts: dict[int, Value] = {}  # and what it writes
        self.positions = Positions(self)
        self.added: dict[int, tuple[int, int]] = {}  # sums: the update of zeros that they add
        self.nested: dict[int, int] = {}  # updates of zeros, and those that are all they write
        self.without_zeros: set[Carry] = set()  # carries that are not to begin with -0.0
        self.told: dict[object, Row] = {}  # rows that are had otherwise at the ends
        self.flags: dict[int, Value] = {}  # whether it is one of the turns
        self.odd = 0

    # --- what the turns take ---

    def find(self) -> None:
        """Find out what the turns take, and write the body.

        Raises
        ------
        Unlike
            If they take it from different places.
        """
        while True:
            try:
                return self._find()
            except _Otherwise:
                self._clear()

    def _find(self) -> None:
        for position, column in enumerate(self.columns):
            if column[0].value.operation == "update":
                self._find_written(column, position)
        special = {*self.windows, *self.added, *self.nested, *self.nested.values()}
        special |= {window.final for window in self.windows.values()}
        special |= {made for made, _ in self.added.values()}
        if any(position in special for position, _ in self.completed.odd):
            raise Unlike
        done_elsewhere = {window.added for window in self.windows.values()}
        done_elsewhere |= {made for made, _ in self.added.values()} | set(self.nested.values())
        for position, column in enumerate(self.columns):
            if position in self.windows:
                self.parts[position] = self._operand(position, 1)
            elif position not in done_elsewhere:
                self.body[position] = self._or_instead(self._operation(column, position), position)
        for position, (made, _) in self.added.items():
            self._check_added(position, made)

    def _operation(self, column: Sequence[Operation], position: int) -> Value:
        """Return an operation of the body."""
        value = column[0].value
        if position in self.added:
            made, slot = self.added[position]
            array = self._operand(position, 1 - slot)
            return self._written(made, array, adds=True)
        if value.operation == "update" and moves_in(column, len(value.operands)):
            return self._written(position, self._operand(position, 0), adds=False)
        operands = [self._operand(position, slot) for slot in range(len(value.operands))]
        return Value(
            value.operation, operands, value.shape, value.dtype, value.origin, **value.attributes
        )

    def _or_instead(self, result: Value, position: int) -> Value:
        """Return a result, but for the turns that take something else in its place."""
        for turn in (0, self.count - 1):
            value = self.completed.instead.get((turn, position))
            if value is not None:
                if result.operation == "call":
                    raise Unlike
                result = self._unless(turn, self._of_turn(value, turn), result)
        return result

    def _unless(self, turn: int, value: Value, otherwise: Value) -> Value:
        """Return a value in one turn, and another one in all others."""
        self.odd += 1
        if self.odd * ODD > len(self.columns) + ODD:
            raise Unlike
        if turn not in self.flags:
            numbers = np.arange(self.count)
            counter = self.positions.at(numbers, self.count)
            self.flags[turn] = apply("eq", counter, constant(turn, counter.dtype))
        return apply("where", self.flags[turn], value, otherwise)

    def _of_turn(self, value: Value, turn: int) -> Value:
        """Return what stands in the body for a value that one turn takes."""
        path, base = followed_back(value)
        place = self.completed.place(base)
        if place is None:
            return value
        found = self.body.get(place[1])
        if place[0] != turn or found is None:
            raise Unlike
        return rebased(path, found)

    def _written(self, made: int, array: Value, *, adds: bool) -> Value:
        """Return an array with what an update writes, at positions."""
        offsets, strides = where_written(self.columns[made])
        while made in self.nested:  # a part of a part
            scale = scale_of(self.columns[made])
            assert scale is not None
            made = self.nested[made]
            inner, steps = where_written(self.columns[made])
            offsets, strides = offsets + scale * inner, tuple([scale * step for step in steps])
        part = self._operand(made, 1)
        return self.positions.written(array, part, offsets, strides, adds=adds)

    def _uses(self) -> dict[int, list[tuple[int, int]]]:
        """Return which operations of a turn take a result, of this turn or the one before."""
        found: dict[int, list[tuple[int, int]]] = {}
        for position, column in enumerate(self.columns):
            for slot, base in enumerate(column[1].bases):
                place = self.completed.place(base)
                if place is not None:
                    found.setdefault(place[1], []).append((position, slot))
        return found

    def _used(self) -> dict[int, set[int]]:
        """Return which results are needed outside, and of which turns."""
        found: dict[int, set[int]] = {}
        bases = [base for each in self.outside() for base in each.bases]
        bases += [followed_back(output)[1] for output in self.trace.graph.outputs]
        for base in bases:
            place = self.completed.place(base)
            if place is not None:
                found.setdefault(place[1], set()).add(place[0])
        return dict(sorted(found.items()))

    def outside(self) -> list[Operation]:
        """Return the operations that may take results of the turns, and are none of them."""
        first, period, turns = self.run
        operations = self.trace.operations
        beside = [*operations[max(first - TURNS_BESIDE * period, 0) : first]]
        beside += operations[first + period * turns :]
        ends = self.completed.places
        return [each for each in beside if each.value not in ends]

    # --- what is written ---

    def _find_written(self, column: Sequence[Operation], position: int) -> None:
        """Find out how to do an update that is another in each turn."""
        moves = moves_in(column, len(column[0].bases))
        nested = self._nested(column, position)
        if moves and not nested and position not in self.in_turns:
            window = self._window(column, position)
            if window is not None:
                self.windows[position] = window
                return
        moves = moves or any(
            moves_in(self.columns[each], len(self.columns[each][0].bases)) for each in nested
        )
        if moves and position not in self.whole:
            found = self._zeros_added(column, position)
            if found is not None:
                self.added[found[0]] = (position, found[1])
                self.nested.update(zip([position, *nested], nested, strict=False))

    def _nested(self, column: Sequence[Operation], position: int) -> list[int]:
        """Return the updates of zeros that are all that an update writes, each of the next."""
        found: list[int] = []
        while scale_of(column) is not None:
            made = self.completed.place(column[0].bases[1])
            if made is None or self.uses.get(made[1]) != [(position, 1)] or made[1] in self.used:
                break
            inner, outer = self.columns[made[1]], column
            if inner[0].value.operation != "update" or not are_zeros(inner):
                break
            if any(a.bases[1] is not b.value for a, b in zip(outer, inner, strict=True)):
                break
            position, column = made[1], inner
            found.append(position)
        return found

    def _window(self, column: Sequence[Operation], made: int) -> Window | None:
        """Return the windows that an update writes, if all can be written behind the loop."""
        found: Window | None = None
        before = [self.completed.place(each.bases[0]) for each in column]
        if moves_in(column, 0):
            return None
        if before[0] is None and not column[0].paths[0]:  # an array that is handed on
            if before[1:] == [(turn, made) for turn in range(len(before) - 1)]:
                found = window_of(column, made, None, column[0].bases[0])
        else:
            sums = self._zeros_added(column, made)
            if sums is not None:
                found = self._added_window(column, made, *sums)
        last = {len(column) - 1}
        return None if found is None or self.used.get(found.final, last) != last else found

    def _zeros_added(self, column: Sequence[Operation], made: int) -> tuple[int, int] | None:
        """Return who adds an update of zeros to an array, and as which operand.

        None if that is not all that is done with it.
        """
        uses = self.uses.get(made, ())
        if len(uses) != 1 or made in self.used:
            return None
        ((added, slot),) = uses
        sums, value = self.columns[added], column[0].value
        if sums[0].value.operation != "add" or any(any(each.paths) for each in sums):
            return None
        if not are_zeros(column):
            return None
        if any(each.bases[slot] is not column[turn].value for turn, each in enumerate(sums)):
            return None
        other = sums[0].bases[1 - slot]
        is_whole = other.shape == value.shape == sums[0].value.shape
        return (added, slot) if is_whole and value.dtype.kind != "b" else None

    def _added_window(
        self, column: Sequence[Operation], made: int, added: int, slot: int
    ) -> Window | None:
        """Return the windows of an update of zeros that is added to an array, unread."""
        others = [each.bases[1 - slot] for each in self.columns[added]]
        places = [self.completed.place(base) for base in others]
        is_carried = places == [None, *((turn, added) for turn in range(len(places) - 1))]
        is_alone = self.uses.get(added) == [(added, 1 - slot)]
        return window_of(column, made, added, others[0]) if is_carried and is_alone else None

    def _check_added(self, position: int, made: int) -> None:
        """Have all of an update of zeros added if the sum may tell: -0.0 becomes 0.0.

        It can't where all that happens to the array is that numbers are added to it, and zeros put:
        then what it begins with is all that may be -0.0.
        """
        root = added_to(self.body[position])
        for carry, stand_in in self.carries.items():
            is_handed_on = stand_in is root and carry.back == 1
            if is_handed_on and added_to(self.body[carry.made]) is root:
                self.without_zeros.add(carry)
                return
        self.whole.add(made)
        raise _Otherwise

    def _of_window(
        self, column: Sequence[Operation], slot: int, places: Sequence[tuple[int, int] | None]
    ) -> Value | None:
        """Return what is read of an array that turns write; None if it is no such."""
        made = None if places[1] is None else places[1][1]
        window = None if made is None else self.windows.get(made)
        if window is None or made is None or window.added is not None:
            return None
        paths = tuple([each.paths[slot] for each in column])
        is_before = places == [None, *((turn, made) for turn in range(len(places) - 1))]
        if not is_before or any(
            place_of_path(path, window.init) != (window.offset_in(turn), window.strides)
            for turn, path in enumerate(paths)
        ):
            self.in_turns.add(made)
            raise _Otherwise
        # Nobody has written there yet.
        return self.row(Row((window.init,) * len(column), paths))

    # --- what is read ---

    def _operand(self, position: int, slot: int) -> Value:
        """Return what stands in the body for an operand of an operation."""
        result = self._in_all_turns(self.columns[position], slot)
        for turn, value in self.completed.odd.get((position, slot), ()):
            result = self._unless(turn, self._of_turn(value, turn), result)
        return result

    def _in_all_turns(self, column: Sequence[Operation], slot: int) -> Value:
        moves = moves_in(column, slot)
        bases = [each.bases[slot] for each in column]
        places = [self.completed.place(base) for base in bases]
        path = column[0].paths[slot]
        if all(place is None for place in places):
            if any(each.ways[slot] != column[0].ways[slot] for each in column):
                return self._had_otherwise(column, slot)
            is_same = all(base is bases[0] for base in bases)
            if moves:
                row = Row(tuple(bases), tuple([each.paths[slot] for each in column]))
                if is_same and not is_even(row):
                    return self._read(column, slot, bases[0])
                return self.row(row)
            if is_same or is_same_number(bases):
                return rebased(path, bases[0])
            return rebased(path, self.row(Row(tuple(bases))))
        if any(each.ways[slot] != column[0].ways[slot] for each in column):
            raise Unlike
        of_window = self._of_window(column, slot, places)
        if of_window is not None:
            return of_window
        base = self._carried(bases, places)
        return self._read(column, slot, base) if moves else rebased(path, base)

    def _had_otherwise(self, column: Sequence[Operation], slot: int) -> Value:
        """Return what stands in the body for what ends have by other views than the others do."""
        ways = {each.ways[slot]: each.paths[slot] for each in column}
        common = column[1].paths[slot]
        for path in ways.values():
            alike = [is_alike(one, other) for one, other in zip(path, common, strict=False)]
            common = common[: [*alike, False].index(False)]
        starts = [[s.attributes.get("maps") for s in common]]
        for each in column:
            own = [step.attributes.get("maps") for step in each.paths[slot][: len(common)]]
            if own != starts[0]:
                common = ()
                break
        values = tuple([each.bases[slot] for each in column])
        paths = tuple([each.paths[slot][len(common) :] for each in column])
        told = tuple([tuple([(s.shape, s.attributes.get("maps")) for s in path]) for path in paths])
        row = self.told.get((values, told))
        if row is None:
            row = self.told[values, told] = self._handed_on(Row(values, paths))
        return rebased(common, self.row(row))

    def _handed_on(self, row: Row) -> Row:
        """Return a row of what was handed on to each turn of a loop, if it is that.

        What the first turn was given is not among what the turns computed.
        """
        for value, end in ((row.values[1], 0), (row.values[1], -1)):
            known = self.trace.handed_on.get(value)
            if known is None or rebased(row.paths[end], row.values[end]) is not known[1]:
                continue
            rest = slice(1, None) if end == 0 else slice(None, -1)
            if any(each is not value for each in row.values[rest]):
                continue
            rows = [row_number(path) for path in row.paths[rest]]
            numbers = [number for number in rows if number is not None]
            if len(numbers) < len(rows):
                continue
            by = numbers[1] - numbers[0]
            numbers.insert(0, numbers[0] - by) if end == 0 else numbers.append(numbers[-1] + by)
            evenly = all(b - a == by for a, b in pairwise(numbers))
            if evenly and numbers[end] == -1 and max(numbers) + 1 < known[0].shape[0]:
                paths = tuple([(row_of(known[0], number + 1),) for number in numbers])
                return Row((known[0],) * len(numbers), paths)
        return row

    def _carried(self, bases: list[Value], places: list[tuple[int, int] | None]) -> Value:
        """Return what stands in the body for what some turn computed."""
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
            if back > 0:
                return self.carry(Carry(made, back, tuple(bases[:back])))
            found = self.body.get(made)
            if found is None:
                raise Unlike
            return found
        raise Unlike

    def _read(self, column: Sequence[Operation], slot: int, base: Value) -> Value:
        """Return what is read of a value, elsewhere in each turn."""
        offsets = np.array([each.offsets[slot] for each in column], np.int64)
        return self.positions.read(base, column[0].paths[slot], offsets)

    def carry(self, carry: Carry) -> Value:
        found = self.carries.get(carry)
        if found is None:
            like = carry.inits[0]
            found = Value("input", (), like.shape, like.dtype, position=0)
            self.carries[carry] = found
        return found

    def row(self, row: Row) -> Value:
        found = self.rows.get(row)
        if found is None:
            like = row.paths[0][0] if row.paths and row.paths[0] else row.values[0]
            found = Value("input", (), like.shape, like.dtype, position=0)
            self.rows[row] = found
        return found
