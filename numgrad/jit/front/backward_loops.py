"""Backward passes of Python loops recorded as loops, before their nodes run one by one.

The rules of one turn of nodes run once, on stand-ins for what each turn has of its own: what its
nodes saved, and the gradients that come to them. Sums are taken in the order in which the engine
takes them, so the bits are the same. The forward half is rolled up later, from the trace
(`numgrad.jit.rolling`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from typing import Any

import numpy as np

from numgrad.graph.backward.accumulate import AccumulateGrad
from numgrad.graph.node import Arrived, Node
from numgrad.graph.recorder import Traced, place_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.jit.front.node_turns import NodeTurns, Target, find_turns
from numgrad.jit.ir.constructors import apply, broadcast, constant
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.bodies import cut_out
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.opaque_calls import results_of
from numgrad.jit.passes.simplify import simplify
from numgrad.jit.rolling.columns import is_same_number
from numgrad.jit.rolling.rows import Row, stack
from numgrad.jit.rolling.tokens import (
    followed_back,
    is_alike,
    meaning_of,
    rebased,
    row_of,
)
from numgrad.ops.core.nodes import Call

__all__ = ["BackwardLoops"]

Table = dict[Any, Arrived]
Slot = tuple[int, int]  # a node's position in a turn, and which of its outputs


class _Unlike(Exception):
    """The turns can't be a loop."""


class BackwardLoops:
    """The turns of nodes of a backward pass.

    Attributes
    ----------
    starts : dict
        By the node that runs first, the turns that it begins.
    """

    def __init__(self, tracer: Any, needed: set[Node], captures: dict[Node, Any]) -> None:
        self.tracer = tracer
        self.starts: dict[Node, NodeTurns] = {}
        for turns in find_turns(needed, captures):
            first = next(node for node in turns.turns[0] if node is not None)
            self.starts[first] = turns

    def run(self, node: Node, pending: Table, leaves: Table, keep_graph: bool) -> bool:
        """Run the turns that a node begins, and enter what comes of that; tell if there are any.

        Parameters
        ----------
        node : Node
        pending, leaves : dict
            The gradients that came to nodes, and to leaves.
        keep_graph : bool
            Keep what the nodes saved.
        """
        turns = self.starts.get(node)
        if turns is None:
            return False
        for chosen in (turns, turns.without_last()):  # which may be mixed up with what is behind it
            try:
                _Recording(self.tracer, chosen, pending, leaves).run()
            except _Unlike:
                continue
            for each in chosen.nodes():
                pending.pop(each, None)
                if each.saved and not keep_graph:
                    each.saved = None
            return True
        return False


class _Recording:
    """The recording of turns as one loop."""

    def __init__(self, tracer: Any, turns: NodeTurns, pending: Table, leaves: Table) -> None:
        self.tracer, self.pending, self.leaves = tracer, pending, leaves
        self.turns, self.like, self.ways, self.end = turns
        self.count = len(self.turns)
        self.seeds = [self._seeds(turn) for turn in self.turns]
        self.seeded = set(self.seeds[self.count // 2])
        self.handed_on = self._handed_on()
        self.as_given = ""
        self._clear()

    def _clear(self) -> None:
        # The body's inputs: carries, with what they begin with, and rows.
        self.own: list[Value] = []
        self.inits: list[Value] = []
        self.rows: dict[Row, Value] = {}
        self.unread: dict[Row, tuple[bool, bool]] = {}  # whether the first, and the last one
        self.flag: Value | None = None
        self.laid: set[Target] = set()  # those of which it is known how they lie
        self.sums: dict[Target, tuple[int, Any]] = {}  # by target: which carry, and the sum so far
        self.results: list[tuple[int, int, Value]] = []  # what goes out, of which node and input

    # --- what comes to the turns, and where what they hand on goes ---

    def _seeds(self, turn: Sequence[Any]) -> dict[Slot, Tensor]:
        """Return what came to the nodes of a turn from outside, before the first turn runs."""
        found = {}
        for position, node in enumerate(turn):
            arrived = () if node is None else self.pending.get(node, ())
            for number, gradient in enumerate(arrived[::2]):
                if gradient is not None:
                    found[position, number] = gradient
        return found

    def _handed_on(self) -> dict[Slot, Target | None]:
        """Return what a turn hands on to the next, and where the last one hands it."""
        found: dict[Slot, Target | None] = {}
        for position, ways in enumerate(self.ways):
            for slot, way in enumerate(ways):
                if way is not None and way.kind == "next":
                    target = self.end.targets[position, slot]
                    key = way.position, way.number
                    if found.setdefault(key, target) != target:
                        raise _Unlike
        ends = [target for target in found.values() if target is not None]
        if len(set(ends)) < len(ends):
            raise _Unlike
        return found

    def _check_seeds(self) -> None:
        """Raise if gradients come to other nodes in some turns than in others."""
        for turn, seeds in zip(self.turns[1:], self.seeds[1:], strict=True):
            if set(seeds) != {slot for slot in self.seeded if turn[slot[0]] is not None}:
                raise _Unlike
        for slot in self.seeded - set(self.handed_on):
            if self.turns[0][slot[0]] is not None and slot not in self.seeds[0]:
                raise _Unlike

    def _table(self, target: Node) -> Table:
        return self.leaves if type(target) is AccumulateGrad else self.pending

    def _present(self, target: Target) -> Tensor | None:
        """Return the gradient that has come somewhere by now."""
        node, number = target
        arrived = self._table(node).get(node)
        return None if arrived is None else arrived[2 * number]

    def _put(self, target: Target, gradient: Tensor) -> None:
        node, number = target
        arrived = self._table(node).setdefault(node, [None, False] * node.num_outputs)
        arrived[2 * number] = gradient

    def _add(self, target: Target, gradient: Tensor) -> None:
        present = self._present(target)
        self._put(target, gradient if present is None else present + gradient)

    # --- values ---

    def _value(self, tensor: Tensor, *, anyhow: bool = False) -> Value:
        """Return the value of a gradient, which lies as what stands in for it, or anyhow."""
        array: Any = tensor._array
        if not anyhow and not place_of(array).flags.c_contiguous:
            raise _Unlike
        self._follow(array)
        found: Value = self.tracer.value_of(array)
        if found.dtype.kind not in "fc":
            raise _Unlike
        return found

    def _follow(self, array: Any) -> None:
        if type(array) is Traced and array.storage.follows:
            self.tracer.depend_on_strides(array.storage.follows)

    def _tensor(self, value: Value, like: Any = None) -> Tensor:
        array: Any = self.tracer._array(value, like)
        return wrap(array)

    def _carry(self, init: Value) -> Value:
        stand_in = Value("input", (), init.shape, init.dtype, position=0)
        self.own.append(stand_in)
        self.inits.append(init)
        return stand_in

    def _row(self, row: Row, like: Value, unread: tuple[bool, bool] = (False, False)) -> Value:
        was = self.unread.get(row, (True, True))
        self.unread[row] = unread[0] and was[0], unread[1] and was[1]
        found = self.rows.get(row)
        if found is None:
            found = Value("input", (), like.shape, like.dtype, position=0)
            self.rows[row] = found
        return found

    def _seed_row(self, slot: Slot, later: int, pad: Value) -> Tensor:
        """Return what stands for what came to a node, of this turn or a `later` one."""
        given = [
            self.seeds[turn].get(slot) if turn < self.count else None
            for turn in range(later, self.count + later)
        ]
        values = [pad if each is None else self._value(each, anyhow=True) for each in given]
        if any(value.shape != pad.shape or value.dtype != pad.dtype for value in values):
            raise _Unlike
        places = [place_of(each._array) for each in given if each is not None]
        if any(place.strides != places[0].strides for place in places):
            raise _Unlike
        like = None if places[0].flags.c_contiguous else places[0]
        return self._tensor(self._row(Row(tuple(values)), pad), like)

    # --- what nodes saved ---

    def _saved_arrays(self) -> dict[Slot, list[Any]]:
        """Return what the nodes of all turns saved, by position and place in what is saved.

        None where they did not: that is needed for nothing.
        """
        found: dict[Slot, list[Any]] = {}
        for position, like in enumerate(self.like):
            for k in range(0, len(like.saved), 3):
                if like.saved[k + 1] is not None:
                    arrays = [self._saved_in(turn[position], like, k) for turn in self.turns]
                    values = [None if a is None else self.tracer.value_of(a) for a in arrays]
                    found[position, k] = values
        self._complete(found.values())
        return found

    def _complete(self, columns: Collection[list[Any]]) -> None:
        """Fill in what ends lack where another node saved the same in all other turns."""
        for end, inner in ((0, slice(1, -1)), (-1, slice(1, -1))):
            known = {tuple(c[inner]): c[end] for c in columns if c[end] is not None}
            for column in columns:
                if column[end] is None:
                    column[end] = known.get(tuple(column[inner]))

    def _saved(self, position: int) -> Node:
        """Return a node that saved what stands for what those of all turns saved."""
        like = self.like[position]
        if type(like.call) is Call:  # what lies as it does may follow from other arguments
            for turn in self.turns:
                for each in () if turn[position] is None else turn[position].lies:
                    self._follow(each)
        node: Any = copy(like)
        saved = list(like.saved)
        for k in range(0, len(saved), 3):
            if saved[k + 1] is not None:
                for turn in self.turns:
                    self._follow(self._saved_in(turn[position], like, k))
                stand_in = self._stand_in(self.saved[position, k], like.saved[k])
                saved[k : k + 3] = stand_in, [0], 0
        node.saved = type(like.saved)(saved)
        return node

    def _saved_in(self, node: Any, like: Any, k: int) -> Any:
        """Return what a node of a turn saved; None if it did not."""
        if node is None:
            return None
        if node.plan is like.plan:
            return node.saved[k]
        names = node.plan.names
        name = like.plan.names[k // 3]
        return node.saved[3 * names.index(name)] if name in names else None

    def _stand_in(self, column: Sequence[Value | None], like: Any) -> Any:
        """Return what stands for the values of all turns; `like` itself if they are one."""
        unread = column[0] is None, column[-1] is None
        first, *inner, last = column
        values: list[Any] = [first or inner[0], *inner, last or inner[-1]]
        if all(value is values[0] for value in values):
            return like
        found = [followed_back(value) for value in values]
        paths = tuple([path for path, _ in found])
        bases = tuple([base for _, base in found])
        if any(not _is_like(path, paths[0]) for path in paths):
            value = self._row(Row(tuple(values)), values[0], unread)
        elif all(map(_is_at_place_of(paths[0]), paths)):
            if is_same_number(bases):
                return like
            value = rebased(paths[0], self._row(Row(bases), bases[0], unread))
        else:
            value = self._row(Row(bases, paths), values[0])
        place = place_of(like)
        return self.tracer._array(value, None if place.flags.c_contiguous else place)

    # --- the body ---

    def run(self) -> None:
        """Record the loop."""
        self._check_seeds()
        self.saved = self._saved_arrays()
        given = [place_of(each._array) for each in self.seeds[0].values()]
        if not all(place.flags.c_contiguous for place in given):
            self._check_that_it_lies_anyhow()
        self._finish(self._body())

    def _check_that_it_lies_anyhow(self) -> None:
        """Raise if more follows from how what the first turn is given lies than its numbers."""
        bodies = []
        for self.as_given in ("numbers", "places"):
            self._clear()
            bodies.append(self._cut_out(self._body()))
        if not _is_same_body(*bodies):
            raise _Unlike
        self.as_given = ""
        self._clear()

    def _body(self) -> list[Value]:
        """Run the rules of a turn, and return what the carries are next."""
        arriving, handed_on = self._arriving()
        for position in range(len(self.like)):
            if position not in arriving:
                raise _Unlike
            outputs = self._saved(position).run_tensors(arriving.pop(position)[::2])
            for slot, (way, gradient) in enumerate(zip(self.ways[position], outputs, strict=True)):
                if way is None:
                    continue
                if gradient is None:
                    raise _Unlike
                if self._is_missing(position, way):
                    gradient = self._but_in_first(gradient)
                self._hand_on(way, gradient, position, slot, arriving, handed_on)
        slots = [
            (position, number)
            for position, arrived in handed_on.items()
            for number, gradient in enumerate(arrived[::2])
            if gradient is not None
        ]
        if set(slots) != set(self.handed_on):
            raise _Unlike
        following: list[Value] = []
        for position, number in self.handed_on:
            following.append(self._value(handed_on[position][2 * number]))
        following += [self._value(total) for _, total in self.sums.values()]
        for init, value in zip(self.inits, following, strict=True):
            if init.shape != value.shape or init.dtype != value.dtype:
                raise _Unlike
        return following

    def _cut_out(self, following: Sequence[Value]) -> tuple[Graph, list[Value]]:
        """Return the body, and what it takes that is the same in all turns."""
        given = [*following, *[value for _, _, value in self.results]]
        return cut_out([*self.own, *self.rows.values()], given)

    def _arriving(self) -> tuple[dict[int, Arrived], dict[int, Arrived]]:
        """Return what comes to the nodes of a turn, and from outside to those of the next."""
        arriving: dict[int, Arrived] = {}
        handed_on: dict[int, Arrived] = {}
        for slot, target in self.handed_on.items():
            given = self.seeds[0].get(slot)
            if given is None:
                init = _nothing(*self._meta(slot))
            else:
                init = self._value(given, anyhow=True)
            carry = self._carry(init)
            self._enter(arriving, slot, self._lying_as(given, carry))
            present = None if target is None else self._present(target)
            if slot in self.seeded:
                pad = _nothing(init.shape, init.dtype) if present is None else self._value(present)
                self._enter(handed_on, slot, self._seed_row(slot, 1, pad))
            elif present is not None and self._comes_from_many(slot):
                raise _Unlike
        for slot in sorted(self.seeded - set(self.handed_on)):
            like = self._value(self.seeds[self.count // 2][slot], anyhow=True)
            pad = _nothing(like.shape, like.dtype)
            self._enter(arriving, slot, self._seed_row(slot, 0, pad))
        for slot in sorted(set(self.seeds[0]) - self.seeded - set(self.handed_on)):
            self._enter(arriving, slot, self._in_first(self.seeds[0][slot]))
        return arriving, handed_on

    def _lying_as(self, given: Tensor | None, value: Value) -> Tensor:
        """Return a tensor of that value; to see what follows from that, as one lies that is given.

        Or, to compare it with that, of the same numbers.
        """
        if given is None or not self.as_given:
            return self._tensor(value)
        tensor = self._tensor(value, place_of(given._array))
        if self.as_given == "places":
            return tensor
        return self._tensor(self.tracer.value_of(tensor._array))

    def _in_first(self, gradient: Tensor) -> Tensor:
        """Return a gradient in the first turn, and in others what changes no sum."""
        value = self._value(gradient, anyhow=True)
        if self.as_given:
            return self._lying_as(gradient, self._row(Row((value,)), value))
        nothing = _nothing(value.shape, value.dtype)
        return self._tensor(apply("where", self._is_first(), value, nothing))

    def _is_first(self) -> Value:
        """Return what says in the body whether it is the first turn."""
        if self.flag is None:
            flags = [constant(turn == 0, np.dtype(bool)) for turn in range(self.count)]
            self.flag = self._row(Row(tuple(flags)), flags[0])
        return self.flag

    def _meta(self, slot: Slot) -> tuple[tuple[int, ...], Any]:
        meta = self.like[slot[0]].output_meta(slot[1])
        if meta is None:
            raise _Unlike
        return meta[0], np.dtype(meta[1])

    def _enter(self, table: dict[int, Arrived], slot: Slot, gradient: Tensor) -> None:
        position, number = slot
        count = self.like[position].num_outputs
        table.setdefault(position, [None, False] * count)[2 * number] = gradient

    def _comes_from_many(self, slot: Slot) -> bool:
        ways = [way for own in self.ways for way in own if way is not None]
        return sum(w.kind == "next" and (w.position, w.number) == slot for w in ways) > 1

    def _hand_on(
        self,
        way: Any,
        gradient: Tensor,
        position: int,
        slot: int,
        arriving: dict[int, Arrived],
        handed_on: dict[int, Arrived],
    ) -> None:
        if way.kind in ("same", "next"):
            table = arriving if way.kind == "same" else handed_on
            count = self.like[way.position].num_outputs
            arrived = table.setdefault(way.position, [None, False] * count)
            present = arrived[2 * way.number]
            arrived[2 * way.number] = gradient if present is None else present + gradient
        elif way.kind == "sum":
            key = way.target, way.number
            present = self._present(key)
            if key not in self.sums:
                like = self._value(gradient, anyhow=True)
                none = _nothing(like.shape, like.dtype)
                init = none if present is None else self._value(present)
                self.sums[key] = len(self.own), self._tensor(self._carry(init))
            if present is None and key not in self.laid and self.turns[0][position] is not None:
                # It lies as the first that comes, or if that has one dim, as any sum.
                self._value(gradient, anyhow=gradient._array.ndim < 2)
                self.laid.add(key)
            number, total = self.sums[key]
            self.sums[key] = number, total + gradient
        else:
            self.results.append((position, slot, self._value(gradient)))

    def _is_missing(self, position: int, way: Any) -> bool:
        """Whether the first turn lacks a node, but not who gets its gradient."""
        first = self.turns[0]
        return first[position] is None and (way.kind != "same" or first[way.position] is not None)

    def _but_in_first(self, gradient: Tensor) -> Tensor:
        """Return a gradient, but in the first turn, which has none there, what changes no sum."""
        value = self._value(gradient)
        nothing = _nothing(value.shape, value.dtype)
        return self._tensor(apply("where", self._is_first(), nothing, value))

    # --- the loop ---

    def _finish(self, following: Sequence[Value]) -> None:
        """Record the loop, and enter what it gives."""
        outside = self._outside()
        graph, captured = self._cut_out(following)
        loop = Loop(graph, len(following), len(self.rows), self.count, True)
        operands = [*self.inits, *map(self._stacked, self.rows), *captured]
        origin = self.tracer.origin("gradients")
        found = results_of(loop, operands, loop.metas(), origin)
        tensors = [self._tensor(value) for value in found[: len(following)]]
        for (slot, target), tensor in zip(self.handed_on.items(), tensors, strict=False):
            if target is not None:
                (self._put if slot in self.seeded else self._add)(target, tensor)
        for target, (number, _) in self.sums.items():
            self._put(target, tensors[number])
        for turn, k, target in outside:
            whole = found[len(following) + k]
            self._add(target, self._tensor(row_of(whole, self.count - 1 - turn)))

    def _stacked(self, row: Row) -> Value:
        """Return a row for all turns; what the last turn has comes first."""
        found = stack(row, True)
        if found.operation == "join" and len(found.operands) == self.count:
            for is_unread, end in zip(self.unread[row], (-1, 0), strict=True):
                if is_unread:
                    self.tracer.unread.add(found.operands[end])
        return found

    def _outside(self) -> list[tuple[int, int, Target]]:
        """Return where the results of each turn go, in the order in which they are added."""
        found: list[tuple[int, int, Target]] = []
        for turn, nodes in enumerate(self.turns):
            for k, (position, slot, _) in enumerate(self.results):
                node = nodes[position]
                if node is not None:
                    found.append((turn, k, (node.targets[slot], node.numbers[slot])))
        summed = set(self.sums)
        ends = {target for target in self.handed_on.values() if target is not None}
        reached = {target for _, _, target in found}
        if reached & summed or (reached | summed) & ends:  # then it matters what comes first
            raise _Unlike
        return found


def _is_same_body(one: tuple[Graph, list[Value]], other: tuple[Graph, list[Value]]) -> bool:
    """Whether two bodies compute the same of the same."""
    taken = zip(one[1], other[1], strict=False)
    return (
        len(one[1]) == len(other[1])
        and all(a is b for a, b in taken)
        and meaning_of(simplify(one[0])) == meaning_of(simplify(other[0]))
    )


def _nothing(shape: tuple[int, ...], dtype: Any) -> Value:
    """Return what changes no sum, not even of -0.0."""
    number = complex(-0.0, -0.0) if dtype.kind == "c" else -0.0
    return broadcast(constant(number, dtype), shape)


def _is_like(path: Sequence[Value], other: Sequence[Value]) -> bool:
    return len(path) == len(other) and all(map(is_alike, path, other))


def _is_at_place_of(path: Sequence[Value]) -> Any:
    """Return what tells whether views begin where those of a path do."""
    maps = [step.attributes.get("maps") for step in path]
    return lambda other: [step.attributes.get("maps") for step in other] == maps
