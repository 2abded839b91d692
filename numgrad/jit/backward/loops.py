"""Backward passes of Python loops recorded as loops, before their nodes run one by one.

The rules of one turn of nodes run once, on stand-ins for what each turn has of its own: what its
nodes saved, and the gradients that come to them. Sums are taken in the order in which the engine
takes them, so the bits are the same. The forward half is rolled up later, from the trace
(`numgrad.jit.rolling`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.graph.backward.accumulate import AccumulateGrad
from numgrad.graph.node import Arrived, Node
from numgrad.graph.recorder import place_of
from numgrad.graph.tensor import Tensor
from numgrad.jit.backward.inputs import Slot, TurnInputs, UnlikeTurns, nothing
from numgrad.jit.backward.turns import NodeTurns, Target, find_turns
from numgrad.jit.ir.constructors import apply
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.bodies import cut_out
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.opaque_calls import results_of
from numgrad.jit.passes.simplify import simplify
from numgrad.jit.rolling.rolling import rolled
from numgrad.jit.rolling.rows import Row
from numgrad.jit.rolling.tokens import (
    meaning_of,
    row_of,
)

__all__ = ["BackwardLoops"]

Table = dict[Any, Arrived]


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
            except UnlikeTurns:
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
        self.inputs = TurnInputs(tracer, turns)
        self._clear()

    def _clear(self) -> None:
        self.inputs.clear()
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
                        raise UnlikeTurns
        ends = [target for target in found.values() if target is not None]
        if len(set(ends)) < len(ends):
            raise UnlikeTurns
        return found

    def _check_seeds(self) -> None:
        """Raise if gradients come to other nodes in some turns than in others."""
        for turn, seeds in zip(self.turns[1:], self.seeds[1:], strict=True):
            if set(seeds) != {slot for slot in self.seeded if turn[slot[0]] is not None}:
                raise UnlikeTurns
        for slot in self.seeded - set(self.handed_on):
            if self.turns[0][slot[0]] is not None and slot not in self.seeds[0]:
                raise UnlikeTurns

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

    def _seed_row(self, slot: Slot, later: int, pad: Value) -> Tensor:
        """Return what stands for what came to a node, of this turn or a `later` one."""
        given = [
            self.seeds[turn].get(slot) if turn < self.count else None
            for turn in range(later, self.count + later)
        ]
        values = [pad if each is None else self.inputs.value(each, anyhow=True) for each in given]
        if any(value.shape != pad.shape or value.dtype != pad.dtype for value in values):
            raise UnlikeTurns
        places = [place_of(each._array) for each in given if each is not None]
        if any(place.strides != places[0].strides for place in places):
            raise UnlikeTurns
        like = None if places[0].flags.c_contiguous else places[0]
        return self.inputs.tensor(self.inputs.row(Row(tuple(values)), pad), like)

    # --- the body ---

    def run(self) -> None:
        """Record the loop."""
        self._check_seeds()
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
            raise UnlikeTurns
        self.as_given = ""
        self._clear()

    def _body(self) -> list[Value]:
        """Run the rules of a turn, and return what the carries are next."""
        arriving, handed_on = self._arriving()
        for position in range(len(self.like)):
            if position not in arriving:
                raise UnlikeTurns
            outputs = self.inputs.saved(position).run_tensors(arriving.pop(position)[::2])
            for slot, (way, gradient) in enumerate(zip(self.ways[position], outputs, strict=True)):
                if way is None:
                    continue
                if gradient is None:
                    raise UnlikeTurns
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
            raise UnlikeTurns
        following: list[Value] = []
        for position, number in self.handed_on:
            following.append(self.inputs.value(handed_on[position][2 * number]))
        following += [self.inputs.value(total) for _, total in self.sums.values()]
        for init, value in zip(self.inputs.inits, following, strict=True):
            if init.shape != value.shape or init.dtype != value.dtype:
                raise UnlikeTurns
        return following

    def _cut_out(self, following: Sequence[Value]) -> tuple[Graph, list[Value]]:
        """Return the body, and what it takes that is the same in all turns."""
        given = [*following, *[value for _, _, value in self.results]]
        return cut_out([*self.inputs.own, *self.inputs.rows.values()], given)

    def _arriving(self) -> tuple[dict[int, Arrived], dict[int, Arrived]]:
        """Return what comes to the nodes of a turn, and from outside to those of the next."""
        arriving: dict[int, Arrived] = {}
        handed_on: dict[int, Arrived] = {}
        for slot, target in self.handed_on.items():
            given = self.seeds[0].get(slot)
            if given is None:
                init = nothing(*self._meta(slot))
            else:
                init = self.inputs.value(given, anyhow=True)
            carry = self.inputs.carry(init)
            self._enter(arriving, slot, self._lying_as(given, carry))
            present = None if target is None else self._present(target)
            if slot in self.seeded:
                pad = (
                    nothing(init.shape, init.dtype)
                    if present is None
                    else self.inputs.value(present)
                )
                self._enter(handed_on, slot, self._seed_row(slot, 1, pad))
            elif present is not None and self._comes_from_many(slot):
                raise UnlikeTurns
        for slot in sorted(self.seeded - set(self.handed_on)):
            like = self.inputs.value(self.seeds[self.count // 2][slot], anyhow=True)
            pad = nothing(like.shape, like.dtype)
            self._enter(arriving, slot, self._seed_row(slot, 0, pad))
        for slot in sorted(set(self.seeds[0]) - self.seeded - set(self.handed_on)):
            self._enter(arriving, slot, self._in_first(self.seeds[0][slot]))
        return arriving, handed_on

    def _lying_as(self, given: Tensor | None, value: Value) -> Tensor:
        """Return a tensor of that value; to see what follows from that, as one lies that is given.

        Or, to compare it with that, of the same numbers.
        """
        if given is None or not self.as_given:
            return self.inputs.tensor(value)
        tensor = self.inputs.tensor(value, place_of(given._array))
        if self.as_given == "places":
            return tensor
        return self.inputs.tensor(self.tracer.value_of(tensor._array))

    def _in_first(self, gradient: Tensor) -> Tensor:
        """Return a gradient in the first turn, and in others what changes no sum."""
        value = self.inputs.value(gradient, anyhow=True)
        if self.as_given:
            return self._lying_as(gradient, self.inputs.row(Row((value,)), value))
        none = nothing(value.shape, value.dtype)
        return self.inputs.tensor(apply("where", self.inputs.is_first(), value, none))

    def _meta(self, slot: Slot) -> tuple[tuple[int, ...], Any]:
        meta = self.like[slot[0]].output_meta(slot[1])
        if meta is None:
            raise UnlikeTurns
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
                like = self.inputs.value(gradient, anyhow=True)
                none = nothing(like.shape, like.dtype)
                init = none if present is None else self.inputs.value(present)
                self.sums[key] = len(self.inputs.own), self.inputs.tensor(self.inputs.carry(init))
            if present is None and key not in self.laid and self.turns[0][position] is not None:
                # It lies as the first that comes, or if that has one dim, as any sum.
                self.inputs.value(gradient, anyhow=gradient._array.ndim < 2)
                self.laid.add(key)
            number, total = self.sums[key]
            self.sums[key] = number, total + gradient
        else:
            self.results.append((position, slot, self.inputs.value(gradient)))

    def _is_missing(self, position: int, way: Any) -> bool:
        """Whether the first turn lacks a node, but not who gets its gradient."""
        first = self.turns[0]
        return first[position] is None and (way.kind != "same" or first[way.position] is not None)

    def _but_in_first(self, gradient: Tensor) -> Tensor:
        """Return a gradient, but in the first turn, which has none there, what changes no sum."""
        value = self.inputs.value(gradient)
        none = nothing(value.shape, value.dtype)
        return self.inputs.tensor(apply("where", self.inputs.is_first(), none, value))

    # --- the loop ---

    def _finish(self, following: Sequence[Value]) -> None:
        """Record the loop, and enter what it gives."""
        outside = self._outside()
        graph, captured = self._cut_out(following)
        loop = Loop(rolled(graph), len(following), len(self.inputs.rows), self.count, True)
        operands = [*self.inputs.inits, *map(self.inputs.stacked, self.inputs.rows), *captured]
        origin = self.tracer.origin("gradients")
        found = results_of(loop, operands, loop.metas(), origin)
        tensors = [self.inputs.tensor(value) for value in found[: len(following)]]
        for (slot, target), tensor in zip(self.handed_on.items(), tensors, strict=False):
            if target is not None:
                (self._put if slot in self.seeded else self._add)(target, tensor)
        for target, (number, _) in self.sums.items():
            self._put(target, tensors[number])
        for turn, k, target in outside:
            whole = found[len(following) + k]
            self._add(target, self.inputs.tensor(row_of(whole, self.count - 1 - turn)))

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
            raise UnlikeTurns
        return found


def _is_same_body(one: tuple[Graph, list[Value]], other: tuple[Graph, list[Value]]) -> bool:
    """Whether two bodies compute the same of the same."""
    taken = zip(one[1], other[1], strict=False)
    return (
        len(one[1]) == len(other[1])
        and all(a is b for a, b in taken)
        and meaning_of(simplify(one[0])) == meaning_of(simplify(other[0]))
    )
