"""Two loops of which one reads the other's stacks, row by row, seen as one body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from numgrad.jit.ir.constructors import reshape, view
from numgrad.jit.ir.graph import Affine, Graph, Value
from numgrad.jit.lowering.bodies import fresh_input, rebuilt
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.shared_calls import with_calls_once

__all__ = ["Pair", "pairs"]


class _Place(NamedTuple):
    """Which turn of the maker a row of the reader is of: ``offset + step * row``."""

    offset: int
    step: int


class _Row(NamedTuple):
    """Rows of a stack: the maker's result, which of its rows, and the views of each row."""

    position: int
    place: _Place
    path: tuple[Value, ...]  # those of the stack, the first one first


def pairs(graph: Graph) -> list[tuple[Value, Value]]:
    """Return the loops of a graph that read rows of what another one stacks: makers and readers."""
    found: dict[tuple[Value, Value], None] = {}
    for reader in graph.values():
        loop = reader.attributes.get("primitive")
        if not isinstance(loop, Loop) or loop.length is None:
            continue
        for operand in reader.operands[loop.carries : loop.carries + loop.rows]:
            base = _followed_back(operand)[1]
            if base.operation == "item":
                maker = base.operands[0]
                other = maker.attributes["primitive"]
                if isinstance(other, Loop) and other.length is not None:
                    found[maker, reader] = None
    return list(found)


class Pair:
    """A loop and one that reads what it stacks.

    Attributes
    ----------
    shared : dict of Value
        What both bodies, as one graph, have of the maker's turns.
    needed : set of Value
        What the reader takes of these.
    given : set of Value
        What it is given of them.
    invariant : set of Value
        Those that are the same in all turns.
    written : set of Value
        Those that are stacked anyway, or rows that the maker was given.
    live : set of Value
        Those that the maker computes anyway.
    """

    def __init__(self, graph: Graph, maker: Value, reader: Value) -> None:
        self.graph, self.maker, self.reader = graph, maker, reader
        self.first: Loop = maker.attributes["primitive"]
        self.second: Loop = reader.attributes["primitive"]
        self.users: dict[Value, list[Value]] = {}
        for value in graph.values():
            for operand in value.operands:
                self.users.setdefault(operand, []).append(value)
        self.place = _Place(0, 1)
        self.carried: dict[int, int] = {}  # which of the reader's inputs are the maker's carries
        self.rows = self._aligned(self._rows())  # by the reader's inputs
        self.read_alone: dict[Value, tuple[int, int]] = {}  # single rows: position and turn
        self._combine()
        self._sort()

    # --- which rows are of which turn ---

    def _rows(self) -> dict[int, _Row]:
        """Return what the reader takes row by row of the maker's stacks, by its inputs."""
        found = {}
        for k in range(self.second.carries, self.second.carries + self.second.rows):
            path, base = _followed_back(self.reader.operands[k])
            if base.operation != "item" or base.operands[0] is not self.maker:
                continue
            place = _place_of(path)
            if place is not None:
                found[k] = _Row(base.attributes["position"], place, path)
        return found

    def _aligned(self, rows: dict[int, _Row]) -> dict[int, _Row]:
        """Return those that are of the turn that most are of, or what that turn was given.

        What the turn before handed on is what this one was given: a carry.
        """
        first = self.first
        handed_on = first.graph.outputs[: first.carries]
        after = {k for k, row in rows.items() if first.graph.outputs[row.position] in handed_on}
        counts = Counter([row.place for k, row in rows.items() if k not in after])
        counts = counts or Counter([row.place for row in rows.values()])
        if not counts:
            return {}
        self.place = counts.most_common(1)[0][0]
        offset, step = self.place
        before = _Place(offset + (1 if first.reverse else -1), step)
        found = {k: row for k, row in rows.items() if row.place == self.place}
        for k in after:
            if rows[k].place == before:
                found[k] = rows[k]
                self.carried[k] = handed_on.index(first.graph.outputs[rows[k].position])
        return found

    # --- both bodies as one ---

    def _combine(self) -> None:
        """Put both bodies together, where the reader's rows are what the maker computes."""
        first, second = self.first, self.second
        self.own: dict[int, Value] = {}  # inputs that the reader does not share
        new: dict[Value, Value] = {}
        fixed = {
            self.maker.operands[k]: first.graph.inputs[k]
            for k in range(first.fixed, len(first.graph.inputs))
        }
        known = {
            _at(self.maker.operands[k], self.place, second.length): first.graph.inputs[k]
            for k in range(first.carries, first.carries + first.rows)
        }
        same: list[Value] = []
        for k, value in enumerate(second.graph.inputs):
            operand, found = self.reader.operands[k], None
            if k in self.rows:
                source = first.graph.outputs[self.rows[k].position]
                if k in self.carried:
                    source = first.graph.inputs[self.carried[k]]
                found = _along(self.rows[k].path, source)
            elif k >= second.fixed:
                found = fixed.get(operand)
            elif k >= second.carries:
                found = known.get(operand)
            if found is None:
                found = self.own[k] = fresh_input(value, k)
            elif found.operation == "input":
                same.append(found)
            new[value] = found
        self.same = set(same)
        outputs = rebuilt(second.graph.values(), new, second.graph.outputs)
        inputs = [*first.graph.inputs, *self.own.values()]
        both = [*first.graph.outputs, *outputs]
        self.body = with_calls_once(Graph(inputs, both))
        count = len(first.graph.outputs)
        self.made, self.wanted = self.body.outputs[:count], self.body.outputs[count:]

    def _sort(self) -> None:
        """Find out what is of the maker's turns, and what it is for."""
        first = self.first
        values = self.body.values()
        inputs = first.graph.inputs
        makers = set(Graph([], self.made).values())
        own = set(self.own.values())
        self.shared: dict[Value, None] = dict.fromkeys(inputs)
        for value in values:
            is_call = value.operation in ("call", "check")
            takes_own = value in own or any(operand in own for operand in value.operands)
            if takes_own or (is_call and value not in makers):
                own.add(value)
            elif any(operand in self.shared for operand in value.operands):
                self.shared[value] = None
        taken = [operand for value in own for operand in value.operands]
        self.needed = {value for value in [*taken, *self.wanted] if value in self.shared}
        self.invariant = set(inputs[first.fixed - first.counted :])
        kept = [k for k in range(first.carries, len(self.made)) if self._is_kept(k)]
        self.written = {self.made[k] for k in kept}
        self.written |= set(inputs[first.carries : first.carries + first.rows])
        handed_on = [*self.made[: first.carries], *(self.made[k] for k in kept)]
        self.live = set(Graph([], handed_on).values())
        alone = {self.made[k] for k, _ in self.read_alone.values() if k not in kept}
        self.needed |= alone & self.shared.keys()
        given = {self.made[row.position] for k, row in self.rows.items() if k not in self.carried}
        given |= {inputs[j] for j in self.carried.values()} | self.same
        given |= alone
        self.given = given & self.shared.keys()

    def _is_kept(self, position: int) -> bool:
        """Whether a result of the maker is read by others than the reader, and in whole."""
        waiting = [
            value
            for value in self.users.get(self.maker, ())
            if value.attributes["position"] == position
        ]
        slots = {self.reader.operands[k] for k in self.rows}
        kept = any(value in self.graph.outputs for value in waiting)
        while waiting:
            value = waiting.pop()
            kept |= value in self.graph.outputs
            for user in self.users.get(value, ()):
                if user is self.reader:
                    kept |= value not in slots or self.reader.operands.count(value) != sum(
                        self.reader.operands[k] is value for k in self.rows
                    )
                elif value.operation == "item" and _is_one_row(user):
                    self.read_alone[user] = position, user.attributes["maps"][0].offset
                elif user.operation in ("view", "reshape"):
                    waiting.append(user)
                else:
                    kept = True
        return kept

    # --- the loops anew ---

    def handing_over(self, kept: set[Value]) -> tuple[Graph, dict[Value, Value]]:
        """Return the graph in which the reader is given that much of the maker's turns.

        And what other values of it became.
        """
        stacks, maker = self._stacking([value for value in self.shared if value in kept])
        graph, new = _substituted(self.graph, {self.maker: maker}, {})
        stacks = {value: new.get(stack, stack) for value, stack in stacks.items()}
        rows: dict[Value, Value] = {}
        for value, (position, turn) in self.read_alone.items():
            if self.made[position] not in self.written:
                row = self._evaluated(self.made[position], stacks, turn)
                rows[value] = view(row, value.attributes["maps"][1:], value.shape)
        graph, new = _substituted(graph, rows, new)
        stacks = {value: new.get(stack, stack) for value, stack in stacks.items()}
        return _substituted(graph, {self.reader: self._reading(stacks, new)}, new)

    def _stacking(self, kept: Sequence[Value]) -> tuple[dict[Value, Value], Value]:
        """Return the maker with stacks of some values, and these, whole.

        What is the same in all turns stays what it is.
        """
        first, maker = self.first, self.maker
        inputs = list(first.graph.inputs)
        stacks: dict[Value, Value] = {}
        stacked: dict[Value, int] = {}
        more: list[Value] = []
        for value in kept:
            if value in inputs and inputs.index(value) >= first.carries:
                stacks[value] = maker.operands[inputs.index(value)]
                continue
            position = max(
                [k for k in range(first.carries, len(self.made)) if self.made[k] is value],
                default=len(self.made) + len(more),
            )
            if position >= len(self.made):
                more.append(value)
            stacked[value] = position
        if more:
            loop = first.with_body(Graph(inputs, [*self.made, *more]), first.carries, first.rows)
            maker = _called(loop, maker, maker.operands)
        for value, position in stacked.items():
            shape = (first.length or 0, *value.shape)
            stacks[value] = Value(
                "item", (maker,), shape, value.dtype, self.maker.origin, position=position
            )
        return stacks, maker

    def _reading(self, stacks: dict[Value, Value], new: dict[Value, Value]) -> Value:
        """Return the call of the reader, given these stacks."""
        second, reader = self.second, self.reader
        start = second.carries + second.rows
        own = {k: new.get(reader.operands[k], reader.operands[k]) for k in self.own}
        inputs: list[Value] = []
        operands: list[Value] = []

        def take(places: Sequence[int]) -> None:
            inputs.extend([self.own[k] for k in places])
            operands.extend([own[k] for k in places])

        replacing = {value: fresh_input(value, 0) for value in stacks}
        rows = [value for value in stacks if value not in self.invariant]
        take([k for k in own if k < start])
        inputs += [replacing[value] for value in rows]
        operands += [_at(stacks[value], self.place, second.length) for value in rows]
        take([k for k in own if k >= start])
        fixed = [value for value in stacks if value in self.invariant]
        inputs += [replacing[value] for value in fixed]
        operands += [stacks[value] for value in fixed]
        outputs = rebuilt(self.body.values(), replacing, self.wanted)
        count = sum(second.carries <= k < start for k in own) + len(rows)
        loop = second.with_body(Graph(inputs, outputs), second.carries, count)
        return _called(loop, reader, operands)

    def _evaluated(self, value: Value, stacks: dict[Value, Value], turn: int) -> Value:
        """Return what a value is in one turn, outside of the loops."""
        new = {
            each: stack if each in self.invariant else _row(stack, turn)
            for each, stack in stacks.items()
        }
        return rebuilt(Graph([], [value]).values(), new, [value])[0]


def _substituted(
    graph: Graph, found: dict[Value, Value], new: dict[Value, Value]
) -> tuple[Graph, dict[Value, Value]]:
    """Return the graph with others for some values, by what they were at first.

    `new` has what became of values before; with the graph comes what it is then.
    """
    changed = {new.get(value, value): other for value, other in found.items()}
    outputs = rebuilt(graph.values(), changed, graph.outputs)
    after = {value: changed.get(other, other) for value, other in new.items()}
    return Graph(graph.inputs, outputs), {**changed, **after}


def _called(loop: Loop, like: Value, operands: Sequence[Value]) -> Value:
    attributes = {**like.attributes, "primitive": loop}
    return Value("call", operands, like.shape, like.dtype, like.origin, **attributes)


def _row(stack: Value, turn: int) -> Value:
    """Return one element of the first dim."""
    maps = [Affine(turn, ()), *(Affine(0, ((dim, 1),)) for dim in range(len(stack.shape) - 1))]
    return view(stack, maps, stack.shape[1:])


def _at(stack: Value, place: _Place, length: int | None) -> Value:
    """Return the rows of a stack that the reader has beside its own."""
    if place == (0, 1) and stack.shape[0] == length:
        return stack
    maps = [Affine(place.offset, ((0, place.step),))]
    maps += [Affine(0, ((dim, 1),)) for dim in range(1, len(stack.shape))]
    return view(stack, maps, (length or 0, *stack.shape[1:]))


def _followed_back(value: Value) -> tuple[tuple[Value, ...], Value]:
    """Return the views that lead to a value, the first one first, and what they are of."""
    path = []
    while value.operation in ("view", "reshape"):
        path.append(value)
        value = value.operands[0]
    return tuple(reversed(path)), value


def _place_of(path: Sequence[Value]) -> _Place | None:
    """Return which rows of a stack views leave, if they do the same to each of them."""
    offset, step = 0, 1
    for value in path:
        if not value.shape or not value.operands[0].shape:
            return None
        if value.operation == "reshape":
            if value.shape[0] != value.operands[0].shape[0]:
                return None
            continue
        lead, *rest = value.attributes["maps"]
        if any(dim == 0 for each in rest for dim, _ in each.terms):
            return None
        if len(lead.terms) != 1 or lead.terms[0][0] != 0:
            return None
        offset += step * lead.offset
        step *= lead.terms[0][1]
    return _Place(offset, step)


def _is_one_row(value: Value) -> bool:
    """Whether a view is of one element of the first dim."""
    return value.operation == "view" and not value.attributes["maps"][0].terms


def _along(path: Sequence[Value], row: Value) -> Value:
    """Return the views of a row that are done to each row of a stack."""
    for value in path:
        if value.operation == "reshape":
            row = reshape(row, value.shape[1:])
            continue
        maps = [
            Affine(each.offset, tuple([(dim - 1, step) for dim, step in each.terms]))
            for each in value.attributes["maps"][1:]
        ]
        row = view(row, maps, value.shape[1:])
    return row
