"""Turns of a backward pass: nodes that a Python loop recorded, alike turn after turn.

The nodes of a turn hand gradients to each other, to those of the turn before, or out of the loop.
Turns at either end may lack nodes: nobody needed what the last one handed on, or what the first one
began with requires no gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.backward.accumulate import AccumulateGrad
from numgrad.graph.node import Node
from numgrad.jit.backward.tokens import is_alike_in_part, metas_of, token_of
from numgrad.jit.rolling.ends import PRESENT
from numgrad.jit.rolling.repetition import OPERATIONS, Run, runs

__all__ = ["End", "NodeTurns", "Way", "find_turns", "reached"]

OPERATIONS_OF_A_RULE = 3  # about so many are recorded of a node

Target = tuple[Node, int]  # a node, and which of its outputs


class Way(NamedTuple):
    """Where the gradient of an input of a node goes.

    Attributes
    ----------
    kind : str
        To a node of the ``same`` turn, or of the ``next`` that is run, which is the one before; to
        the ``sum`` of what all turns give to one node; or ``out``, to another in each turn.
    position, number : int
        Which node of a turn that is, and which of its outputs.
    target : Node or None
        Of a sum.
    """

    kind: str
    position: int
    number: int
    target: Node | None


class End(NamedTuple):
    """Where gradients go that the last turn hands on: by position and input of its nodes."""

    targets: dict[tuple[int, int], Target | None]


class NodeTurns(NamedTuple):
    """Turns of nodes, in the order in which the engine runs them.

    Attributes
    ----------
    turns : list of list of (Node or None)
        Their nodes, by position; None where a turn lacks one.
    like : list of Node
        Those of a turn that lacks none.
    ways : list of list of (Way or None)
        For each node and input of it; None where no gradient goes on.
    end : End
    """

    turns: list[list[Any]]
    like: list[Any]
    ways: list[list[Way | None]]
    end: End

    def without_last(self) -> NodeTurns:
        """Return all turns but the last that is run."""
        *turns, last = self.turns
        targets: dict[tuple[int, int], Target | None] = {}
        for position, slot in self.end.targets:
            way = self.ways[position][slot]
            assert way is not None
            node = last[way.position]
            targets[position, slot] = None if node is None else (node, way.number)
        return self._replace(turns=turns, end=End(targets))

    def unevenness(self) -> tuple[int, int, int]:
        """Return what is to be small: how much a turn hands on, what is left out, what lacks."""
        handed_on = {
            (way.position, way.number)
            for ways in self.ways
            for way in ways
            if way is not None and way.kind == "next"
        }
        lacking = (self.turns[0] + self.turns[-1]).count(None)
        return len(handed_on), lacking - len(self.turns) * len(self.like), lacking

    def nodes(self) -> list[Node]:
        """Return all nodes."""
        return [node for turn in self.turns for node in turn if node is not None]


def find_turns(needed: set[Node], captures: Mapping[Node, Any]) -> list[NodeTurns]:
    """Return the turns among the nodes of a backward pass.

    Parameters
    ----------
    needed : set of Node
        Those that run.
    captures : mapping
        By node, what is asked for of the gradients that come to it.
    """
    if len(needed) * OPERATIONS_OF_A_RULE < OPERATIONS:
        return []
    search = _Search(needed, captures)
    found: list[NodeTurns] = []
    taken = np.zeros(len(search.nodes), bool)
    count = len(search.nodes)
    # A turn begins where the function's turn ends: so what repeats is looked for from the oldest.
    for run in runs(search.tokens[::-1], search.last_users(), [OPERATIONS_OF_A_RULE] * count):
        first = count - run.first - run.period * run.turns
        if taken[first : count - run.first].any():
            continue
        choices = [run._replace(first=first), search.from_youngest(run._replace(first=first))]
        found_turns = [turns for each in dict.fromkeys(choices) if (turns := search.turns_of(each))]
        turns = min(found_turns, key=NodeTurns.unevenness, default=None)
        if turns is not None:
            found.append(turns)
            for node in turns.nodes():
                taken[search.index[node]] = True
    return found


def reached(roots: Iterable[Node]) -> set[Node]:
    """Return the nodes that some lead to, without leaves."""
    found = set(roots)
    stack = list(found)
    while stack:
        for target in stack.pop().targets:
            if target is not None and target not in found and type(target) is not AccumulateGrad:
                found.add(target)
                stack.append(target)
    return found


class _Search:
    """The nodes of a backward pass, the youngest first."""

    def __init__(self, needed: set[Node], captures: Mapping[Node, Any]) -> None:
        self.needed, self.captures = needed, captures
        self.nodes: list[Any] = sorted(needed, key=lambda node: -node.sequence)
        self.index: dict[Any, int] = {node: k for k, node in enumerate(self.nodes)}
        self.metas = metas_of(reversed(self.nodes))
        known: dict[Any, int] = {}
        calls: dict[Any, Any] = {}
        self.tokens: list[int] = []
        for k, node in enumerate(self.nodes):
            token = None if node in captures else token_of(node, self.metas, calls)
            self.tokens.append(-k - 1 if token is None else known.setdefault(token, len(known)))

    def last_users(self) -> list[int]:
        """Return for each node the last one that has it as a target, counted from the oldest."""
        last = len(self.nodes) - 1
        found = [0] * len(self.nodes)
        for k in range(last, -1, -1):
            for target in self.nodes[k].targets:
                at = self.index.get(target)
                if at is not None:
                    found[last - at] = last - k
        return found

    def from_youngest(self, run: Run) -> Run:
        """Return the run whose first turn begins where what repeats itself does."""
        first, period, count = run
        start = first
        while start > 0 and self.tokens[start - 1] == self.tokens[start - 1 + period]:
            start -= 1
        return Run(start, period, (first + period * count - start) // period)

    def turns_of(self, run: Run) -> NodeTurns | None:
        """Return the turns of a run; None if they are not alike after all."""
        first, period, count = run
        stop = first + period * count
        columns = [self.nodes[first + k : stop : period] for k in range(period)]
        end = End({})
        ways = []
        for position, column in enumerate(columns):
            own = [self._way(run, column, position, k, end) for k in range(len(column[0].targets))]
            if any(way is _UNLIKE for way in own):
                return None
            ways.append(own)
        turns = [list(turn) for turn in zip(*columns, strict=True)]
        like = turns[count // 2]
        before = self._turn_before(run, like, ways, turns[0])
        if before is not None:
            turns.insert(0, before)
        behind = self._turn_behind(stop, like, ways, turns[-1], end)
        if behind is not None:
            turn, end = behind
            turns.append(turn)
        return NodeTurns(turns, like, ways, end)

    def _target(self, node: Any, slot: int) -> Target | None:
        """Return where a gradient goes; None if it goes nowhere, or nobody needs it."""
        target = node.targets[slot]
        if target is None or not (
            target in self.needed or target in self.captures or type(target) is AccumulateGrad
        ):
            return None
        return target, node.numbers[slot]

    def _way(self, run: Run, column: Sequence[Any], position: int, slot: int, end: End) -> Any:
        first, period, count = run
        targets = [self._target(node, slot) for node in column]
        if targets[0] is None or targets[1] is None:
            return None if not any(targets) else _UNLIKE
        places = [-1 if t is None else self.index.get(t[0], -1) for t in targets]
        stop = first + period * count
        ahead, number = places[0] - first, targets[0][1]
        if 0 <= ahead < 2 * period:
            expected = [first + turn * period + ahead for turn in range(count)]
            if any(t is None or t[1] != number for t in targets[:-1]):
                return _UNLIKE
            if ahead < period:
                last = targets[-1]
                fits = places == expected and last is not None and last[1] == number
                return Way("same", ahead, number, None) if fits else _UNLIKE
            if places[:-1] != expected[:-1] or first <= places[-1] < stop:
                return _UNLIKE
            end.targets[position, slot] = targets[-1]
            return Way("next", ahead - period, number, None)
        if any(t is None for t in targets) or any(first <= place < stop for place in places):
            return _UNLIKE
        if all(t == targets[0] for t in targets):
            return Way("sum", 0, number, targets[0][0])
        return Way("out", 0, 0, None)

    def _turn_before(
        self, run: Run, like: list[Any], ways: list[list[Way | None]], following: list[Any]
    ) -> list[Any] | None:
        """Return a turn that runs before a run, and lacks nodes; None if there is none."""
        first, period, _ = run
        turn: list[Any] = [None] * period
        at = first - 1
        tokens = [self.tokens[self.index[node]] for node in like]
        for position in reversed(range(period)):
            if at < 0:
                break
            node = self.nodes[at]
            if self.tokens[at] == tokens[position] and self._goes_like(
                node, ways[position], turn, following
            ):
                turn[position] = node
                at -= 1
        return turn if (first - 1 - at) * PRESENT >= period else None

    def _goes_like(
        self,
        node: Any,
        ways: list[Way | None],
        turn: list[Any],
        following: Sequence[Any] | None,
        fewer: bool = False,
    ) -> bool:
        """Whether gradients of a node go where they do in other turns."""
        for slot, way in enumerate(ways):
            target = self._target(node, slot)
            if target is None and (fewer or way is None):
                continue
            if target is None or way is None:
                return False
            if way.kind == "sum":
                if target != (way.target, way.number):
                    return False
            elif way.kind != "out":
                there = turn if way.kind == "same" else following
                if there is None:  # what is behind the last turn
                    continue
                if target != (there[way.position], way.number):
                    return False
        return True

    def _turn_behind(
        self,
        stop: int,
        like: list[Any],
        ways: list[list[Way | None]],
        last: list[Any],
        end: End,
    ) -> tuple[list[Any], End] | None:
        """Return a turn that runs behind a run and lacks nodes, and where it hands gradients on."""
        turn: list[Any] = [None] * len(like)
        for (position, slot), target in end.targets.items():
            way = ways[position][slot]
            if target is not None and not self._enter(turn, like, way, target):
                return None
        for position, own in enumerate(ways):  # these come before what they hand gradients to
            node = turn[position]
            if node is None:
                continue
            if not is_alike_in_part(node, like[position], self.metas):
                return None
            for slot, way in enumerate(own):
                target = self._target(node, slot)
                same = way is not None and way.kind == "same"
                if same and target is not None and not self._enter(turn, like, way, target):
                    return None
        present = [node for node in turn if node is not None]
        block = self.nodes[stop : stop + len(present)]
        if len(present) * PRESENT < len(like) or set(block) != set(present):
            return None
        behind = End({})
        for position, node in enumerate(turn):
            if node is not None and not self._goes_like(node, ways[position], turn, None, True):
                return None
            for slot, way in enumerate(ways[position]):
                target = None if node is None else self._target(node, slot)
                if way is not None and way.kind == "next":
                    behind.targets[position, slot] = target
                elif (
                    way is not None
                    and target is None
                    # What is computed in vain must not come to what is needed.
                    and (way.kind != "same" or turn[way.position] is not None)
                ):
                    return None
        return turn, behind

    def _enter(self, turn: list[Any], like: Sequence[Any], way: Way | None, target: Target) -> bool:
        assert way is not None
        node, number = target
        known = turn[way.position]
        if number != way.number or type(node) is not type(like[way.position]):
            return False
        if known is None:
            if node in turn or node in self.captures or node not in self.index:
                return False
            turn[way.position] = node
            return True
        return known is node


_UNLIKE: Any = object()
