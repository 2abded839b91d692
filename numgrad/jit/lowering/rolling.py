"""Roll up what repeats itself in a trace: a plain ``for`` of the traced function becomes a loop.

A loop written in Python records the same operations in every turn. Where they take what the turn
before computed (or one further back), what is the same in all turns, or the next row of something,
they become one `Loop`, which is compiled once, however many turns it has. The backward half of a
gradient repeats itself the other way round; it reads row by row what the forward half stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numgrad.jit.ir.constructors import broadcast, constant, join, reshape, view
from numgrad.jit.ir.graph import Affine, Graph, Value
from numgrad.jit.lowering.bodies import cut_out
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.opaque_calls import results_of
from numgrad.jit.lowering.repetition import OPERATIONS, Run, runs
from numgrad.jit.lowering.tokens import Operation, Tokens, followed_back, rebased, row_of
from numgrad.jit.lowering.windows import Window, place_of_path, window_of

__all__ = ["rolled"]

PEELED = 2  # turns at either end that may be unlike the others
FURTHEST = 4  # turns back from which a value may be taken
_NO_OPERATIONS = frozenset(("input", "array", "constant", "view", "reshape"))


def rolled(graph: Graph) -> Graph:
    """Return a graph in which what repeats itself is done in loops.

    Parameters
    ----------
    graph : Graph
        As it was traced: the order in which values were made is that of the function.
    """
    refused: set[tuple[int, int]] = set()
    tokens = Tokens()
    while True:
        found = _rolled_once(graph, tokens, refused)
        if found is None:
            return graph
        graph = found


def _rolled_once(graph: Graph, tokens: Tokens, refused: set[tuple[int, int]]) -> Graph | None:
    """Return the graph with one loop more; None if there is none.

    `refused` gets what was looked at in vain.
    """
    trace = _Trace(graph, tokens)
    if sum(trace.weights) < OPERATIONS:
        return None
    for run in runs([each.token for each in trace.operations], trace.last_used, trace.weights):
        key = (trace.operations[run.first].value.number, run.period)
        if key in refused:
            continue
        for peeled in range(PEELED + 1):
            shorter = Run(run.first + peeled * run.period, run.period, run.turns - peeled)
            for cut in range(PEELED + 1):
                if shorter.turns - cut < 2:
                    continue
                part = _Part(trace, shorter._replace(turns=shorter.turns - cut))
                try:
                    part.find()
                    return part.replaced()
                except _Unlike:
                    continue
        refused.add(key)
    return None


class _Unlike(Exception):
    """The turns are not alike after all."""


class _Trace:
    """The operations of a graph in the order in which they were recorded."""

    def __init__(self, graph: Graph, tokens: Tokens) -> None:
        self.graph = graph
        values = [value for value in graph.values() if value.operation not in _NO_OPERATIONS]
        values.sort(key=lambda value: value.number)
        self.operations = [tokens.operation(value) for value in values]
        self.weights = [_weight(value) for value in values]
        self.place = {value: k for k, value in enumerate(values)}
        self.last_used = [0] * len(values)
        for k, operation in enumerate(self.operations):
            for base in operation.bases:
                made = self.place.get(base)
                if made is not None:
                    self.last_used[made] = k
        for output in graph.outputs:
            made = self.place.get(followed_back(output)[1])
            if made is not None:
                self.last_used[made] = len(values)


def _weight(value: Value) -> int:
    """Return how many operations are compiled for a value."""
    body = getattr(value.attributes.get("primitive"), "graph", None)
    return 1 if body is None else len(body.values())


class _Carry(NamedTuple):
    """What is taken from some turns back: which operation's result, and what the first ones get."""

    made: int
    back: int
    inits: tuple[Value, ...]


class _Row(NamedTuple):
    """What is another in each turn: all of it, in the order of the turns."""

    values: tuple[Value, ...]  # one for each turn
    paths: tuple[tuple[Value, ...], ...] = ()  # the views of them, if these differ


class _Part:
    """A run of alike turns, and the loop that it becomes."""

    def __init__(self, trace: _Trace, run: Run) -> None:
        self.trace, self.run = trace, run
        self.carries: dict[_Carry, Value] = {}  # and the body's input that stands for each
        self.rows: dict[_Row, Value] = {}
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
        _Unlike
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
                place = self._place(base)
                if place is not None:
                    found.setdefault(place[1], []).append((position, slot))
        return found

    def _window(
        self, column: Sequence[Operation], made: int, uses: dict[int, list[tuple[int, int]]]
    ) -> Window:
        """Return the windows that an update writes, if each turn writes another."""
        found: Window | None = None
        before = [self._place(each.bases[0]) for each in column]
        if column[0].value.operation == "update" and not _moves(column, 0):
            if before[0] is None and not column[0].paths[0]:  # an array that is handed on
                if before[1:] == [(turn, made) for turn in range(len(before) - 1)]:
                    found = window_of(column, made, None, column[0].bases[0])
            elif all(place is None for place in before) and len(uses.get(made, ())) == 1:
                found = self._added_window(column, made, uses)
        if found is None:
            raise _Unlike
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
        places = [self._place(base) for base in others]
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
            raise _Unlike
        paths = tuple([each.paths[slot] for each in column])
        for turn, path in enumerate(paths):
            if place_of_path(path, window.init) != (window.offset_in(turn), window.strides):
                raise _Unlike
        # Nobody has written there yet.
        return self._row(_Row((window.init,) * len(column), paths))

    def _operand(self, column: Sequence[Operation], slot: int, moves: bool) -> Value:
        """Return what stands in the body for an operand of an operation."""
        bases = [each.bases[slot] for each in column]
        places = [self._place(base) for base in bases]
        path = column[0].paths[slot]
        is_same = all(base is bases[0] for base in bases)
        if all(place is None for place in places):
            if moves:
                paths = tuple([each.paths[slot] for each in column])
                return self._row(_Row(tuple(bases), paths))
            if is_same or _same_number(bases):
                return rebased(path, bases[0])
            return rebased(path, self._row(_Row(tuple(bases))))
        of_window = self._of_window(column, slot, places)
        if of_window is not None:
            return of_window
        if moves:
            raise _Unlike
        for back in range(FURTHEST + 1):
            place = places[back] if back < len(places) else None
            if place is None:
                continue
            if place[0] != 0:
                raise _Unlike
            made = place[1]
            if any(places[k] is not None for k in range(back)):
                raise _Unlike
            if any(places[k] != (k - back, made) for k in range(back, len(places))):
                raise _Unlike
            if back == 0:
                return rebased(path, self.body[made])
            return rebased(path, self._carry(_Carry(made, back, tuple(bases[:back]))))
        raise _Unlike

    def _place(self, base: Value) -> tuple[int, int] | None:
        """Return in which turn a value is computed, and by which operation; None if in none."""
        first, period, turns = self.run
        place = self.trace.place.get(base)
        if place is None or not first <= place < first + period * turns:
            return None
        return divmod(place - first, period)

    def _carry(self, carry: _Carry) -> Value:
        found = self.carries.get(carry)
        if found is None:
            like = carry.inits[0]
            found = Value("input", (), like.shape, like.dtype, position=0)
            self.carries[carry] = found
        return found

    def _row(self, row: _Row) -> Value:
        found = self.rows.get(row)
        if found is None:
            like = row.paths[0][0] if row.paths and row.paths[0] else row.values[0]
            found = Value("input", (), like.shape, like.dtype, position=0)
            self.rows[row] = found
        return found

    # --- the loop ---

    def replaced(self) -> Graph:
        """Return the graph with the loop in the place of the turns."""
        used = self._used()
        filled = {window.final: window for window in self.windows.values()}
        written = {made: used.pop(made) for made in filled if made in used}
        if any(when != {self.run.turns - 1} for when in written.values()):
            raise _Unlike
        if any(made in used for made in self.windows):
            raise _Unlike
        if any(
            self.body[made].operation == "call" for made in [*used, *(c.made for c in self.carries)]
        ):
            raise _Unlike  # its results are had by other operations, which are not of the same turn
        before = constant(0, np.dtype(bool)).number
        turns = self.run.turns
        reverse = self._is_reverse()
        last = {made for made, when in used.items() if when == {turns - 1}}
        stacked = [made for made in used if made not in last]
        carried = {carry.made for carry in self.carries}
        for made in last - carried:  # of a carry the last value is known
            like = self.body[made]
            self._carry(_Carry(made, 1, (_zeros(like),)))
        own: list[Value] = []
        nexts: list[Value] = []
        inits: list[Value] = []
        finals: dict[int, int] = {}
        for carry, stand_in in self.carries.items():
            first = len(own)
            finals.setdefault(carry.made, first)
            # The value of the last turn, of the one before ...: the oldest one is what is taken.
            chain = [
                Value("input", (), stand_in.shape, stand_in.dtype, position=0)
                for _ in range(carry.back - 1)
            ]
            own += [*chain, stand_in]
            nexts += [self.body[carry.made], *chain]
            inits += reversed(carry.inits)
        own += self.rows.values()
        parts = {made: k for k, made in enumerate(self.windows, len(nexts) + len(stacked))}
        given = [*nexts, *(self.body[made] for made in stacked), *self.parts.values()]
        graph, captured = cut_out(own, given)
        loop = Loop(graph, len(nexts), len(self.rows), turns, reverse)
        operands = [*inits, *(_stack(row, reverse) for row in self.rows), *captured]
        origin = self.trace.operations[self.run.first].value.origin
        results = results_of(loop, operands, loop.metas(), origin)
        first, period, _ = self.run
        new: dict[Value, Value] = {}
        for made in written:
            window = filled[made]
            operation = self.trace.operations[first + window.made]
            zeros = operation.value.operands[0]
            array = window.filled(results[parts[window.made]], reverse, zeros)
            new[self.trace.operations[first + (turns - 1) * period + made].value] = array
        for value in Graph([], [*results, *new.values()]).values():
            if value.number > before:  # in the order of the trace they are where the turns were
                value.number = self.trace.operations[self.run.first].value.number
        for made, when in used.items():
            for turn in when:
                value = self.trace.operations[first + turn * period + made].value
                if made in last:
                    new[value] = results[finals[made]]
                else:
                    whole = results[len(nexts) + stacked.index(made)]
                    new[value] = row_of(whole, turns - 1 - turn if reverse else turn)
        return self._rebuilt(new)

    def _used(self) -> dict[int, set[int]]:
        """Return which results are needed outside, and of which turns."""
        first, period, turns = self.run
        end = first + period * turns
        found: dict[int, set[int]] = {}
        bases = [base for each in self.trace.operations[end:] for base in each.bases]
        bases += [followed_back(output)[1] for output in self.trace.graph.outputs]
        for base in bases:
            place = self._place(base)
            if place is not None:
                found.setdefault(place[1], set()).add(place[0])
        return dict(sorted(found.items()))

    def _is_reverse(self) -> bool:
        """Whether more rows are taken from the last to the first."""
        steps = [_step(row) for row in self.rows]
        return sum(step < 0 for step in steps) > sum(step > 0 for step in steps)

    def _rebuilt(self, new: dict[Value, Value]) -> Graph:
        """Return the graph with other values for some."""
        graph = self.trace.graph

        def entered(value: Value) -> Value:
            path, base = followed_back(value)
            found = new.get(base, base)
            return value if found is base else rebased(path, found)

        for operation in self.trace.operations[self.run.first + self.run.period * self.run.turns :]:
            value = operation.value
            operands = [entered(operand) for operand in value.operands]
            if any(a is not b for a, b in zip(operands, value.operands, strict=True)):
                fresh = Value(
                    value.operation,
                    operands,
                    value.shape,
                    value.dtype,
                    value.origin,
                    **value.attributes,
                )
                fresh.number = value.number
                new[value] = fresh
        return Graph(graph.inputs, [entered(output) for output in graph.outputs])


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


def _zeros(like: Value) -> Value:
    return broadcast(constant(0, like.dtype), like.shape)


def _step(row: _Row) -> int:
    """Return by how much each turn is further on in what it takes; 0 if it is no such row."""
    found = _strided(row)
    return 0 if found is None else sum(found[1])


def _strided(row: _Row) -> tuple[list[int], list[int]] | None:
    """Return where a row of views begins, and its steps, one for each map on the way.

    None if it takes rows of different values, or not at equal distances.
    """
    if not row.paths or any(value is not row.values[0] for value in row.values):
        return None
    offsets = np.array(
        [
            [each.offset for step in path for each in step.attributes.get("maps", ())]
            for path in row.paths
        ]
    )
    steps = offsets[1] - offsets[0]
    if (np.diff(offsets, axis=0) != steps).any():
        return None
    return offsets[0].tolist(), steps.tolist()


def _stack(row: _Row, reverse: bool) -> Value:
    """Return what is taken in all turns, along a first dim."""
    turns = len(row.values)
    strided = _strided(row)
    if strided is not None:
        return _stacked_path(row.paths[0], row.values[0], strided[1], turns, reverse)
    parts = [
        rebased(path, base)
        for path, base in zip(row.paths or [()] * turns, row.values, strict=True)
    ]
    if reverse:
        parts.reverse()
    if all(part.operation == "constant" for part in parts):
        numbers = np.array([part.attributes["value"] for part in parts], parts[0].dtype)
        return Value("array", (), numbers.shape, numbers.dtype, array=numbers)
    return join([reshape(part, (1, *part.shape)) for part in parts], 0)


def _stacked_path(
    path: Sequence[Value], base: Value, steps: Sequence[int], turns: int, reverse: bool
) -> Value:
    """Return views of a value that begin further on in each turn, along a first dim."""
    remaining = list(steps)
    counts = [len(step.attributes.get("maps", ())) for step in path]
    starts = np.cumsum([0, *counts])
    found, has_turns = base, False
    for k in range(len(path) - 1, -1, -1):
        step = path[k]
        own = remaining[starts[k] : starts[k] + counts[k]]
        if step.operation == "reshape":
            shape = (turns, *step.shape) if has_turns else step.shape
            found = reshape(found, shape)
            continue
        if not has_turns and not any(own):
            found = view(found, step.attributes["maps"], step.shape)
            continue
        maps = [] if not has_turns else [Affine(0, ((0, 1),))]
        for each, by in zip(step.attributes["maps"], own, strict=True):
            terms = [(dim + 1, factor) for dim, factor in each.terms]
            offset = each.offset
            if by:
                offset += by * (turns - 1) if reverse else 0
                terms.insert(0, (0, -by if reverse else by))
            maps.append(Affine(offset, tuple(terms)))
        found = view(found, maps, (turns, *step.shape))
        has_turns = True
    return found
