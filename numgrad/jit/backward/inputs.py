"""What stands in the body of a loop for what each turn of a backward pass has of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from typing import Any

import numpy as np

from numgrad.graph.node import Node
from numgrad.graph.recorder import Traced, place_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.jit.backward.turns import NodeTurns
from numgrad.jit.ir.constructors import broadcast, constant
from numgrad.jit.ir.graph import Value
from numgrad.jit.rolling.columns import is_same_number
from numgrad.jit.rolling.rows import Row, stack
from numgrad.jit.rolling.tokens import are_alike, followed_back, rebased
from numgrad.ops.core.nodes import Call

__all__ = ["Slot", "TurnInputs", "UnlikeTurns", "nothing"]

Slot = tuple[int, int]  # a node's position in a turn, and which of its outputs


class UnlikeTurns(Exception):
    """The turns can't be a loop."""


class TurnInputs:
    """What the body of the loop takes that turns become: carries and rows.

    Attributes
    ----------
    own, inits : list of Value
        Carries, and what they begin with.
    rows : dict
        By what is taken in all turns, the body's input that stands for it.
    """

    def __init__(self, tracer: Any, turns: NodeTurns) -> None:
        self.tracer = tracer
        self.turns, self.like = turns.turns, turns.like
        self._columns: dict[Slot, list[Any]] | None = None
        self.clear()

    def clear(self) -> None:
        """Forget the inputs."""
        self.own: list[Value] = []
        self.inits: list[Value] = []
        self.rows: dict[Row, Value] = {}
        self._unread: dict[Row, tuple[bool, bool]] = {}  # whether the first, and the last one
        self._flag: Value | None = None

    # --- values ---

    def value(self, tensor: Tensor, *, anyhow: bool = False) -> Value:
        """Return the value of a gradient, which lies as what stands in for it, or anyhow."""
        array: Any = tensor._array
        if not anyhow and not place_of(array).flags.c_contiguous:
            raise UnlikeTurns
        self.follow(array)
        found: Value = self.tracer.value_of(array)
        if found.dtype.kind not in "fc":
            raise UnlikeTurns
        return found

    def follow(self, array: Any) -> None:
        """Depend on the strides that an array's follow from."""
        if type(array) is Traced and array.storage.follows:
            self.tracer.depend_on_strides(array.storage.follows)

    def tensor(self, value: Value, like: Any = None) -> Tensor:
        """Return a tensor of a value, which lies as another array does, or contiguous."""
        array: Any = self.tracer._array(value, like)
        return wrap(array)

    def carry(self, init: Value) -> Value:
        """Return what stands for a carry that begins with a value."""
        stand_in = Value("input", (), init.shape, init.dtype, position=0)
        self.own.append(stand_in)
        self.inits.append(init)
        return stand_in

    def row(self, row: Row, like: Value, unread: tuple[bool, bool] = (False, False)) -> Value:
        """Return what stands for a row, of which nobody may read the first or the last one."""
        was = self._unread.get(row, (True, True))
        self._unread[row] = unread[0] and was[0], unread[1] and was[1]
        found = self.rows.get(row)
        if found is None:
            found = Value("input", (), like.shape, like.dtype, position=0)
            self.rows[row] = found
        return found

    def is_first(self) -> Value:
        """Return what says in the body whether it is the first turn."""
        if self._flag is None:
            flags = [constant(turn == 0, np.dtype(bool)) for turn in range(len(self.turns))]
            self._flag = self.row(Row(tuple(flags)), flags[0])
        return self._flag

    def stacked(self, row: Row) -> Value:
        """Return a row for all turns; what the last turn has comes first."""
        found = stack(row, True)
        if found.operation == "join" and len(found.operands) == len(self.turns):
            for is_unread, end in zip(self._unread[row], (-1, 0), strict=True):
                if is_unread:
                    self.tracer.unread.add(found.operands[end])
        return found

    # --- what nodes saved ---

    def _saved_values(self) -> dict[Slot, list[Any]]:
        """Return what the nodes of all turns saved, by position and place in what is saved.

        None where they did not: that is needed for nothing.
        """
        if self._columns is not None:
            return self._columns
        found: dict[Slot, list[Any]] = {}
        for position, like in enumerate(self.like):
            for k in range(0, len(like.saved), 3):
                if like.saved[k + 1] is not None:
                    arrays = [self._saved_in(turn[position], like, k) for turn in self.turns]
                    values = [None if a is None else self.tracer.value_of(a) for a in arrays]
                    found[position, k] = values
        self._complete(found.values())
        self._columns = found
        return found

    def _complete(self, columns: Collection[list[Any]]) -> None:
        """Fill in what ends lack where another node saved the same in all other turns."""
        for end, inner in ((0, slice(1, -1)), (-1, slice(1, -1))):
            known = {tuple(c[inner]): c[end] for c in columns if c[end] is not None}
            for column in columns:
                if column[end] is None:
                    column[end] = known.get(tuple(column[inner]))

    def saved(self, position: int) -> Node:
        """Return a node that saved what stands for what those of all turns saved."""
        like = self.like[position]
        if type(like.call) is Call:  # what lies as it does may follow from other arguments
            for turn in self.turns:
                for each in () if turn[position] is None else turn[position].lies:
                    self.follow(each)
        node: Any = copy(like)
        saved = list(like.saved)
        for k in range(0, len(saved), 3):
            if saved[k + 1] is not None:
                for turn in self.turns:
                    self.follow(self._saved_in(turn[position], like, k))
                stand_in = self._stand_in(self._saved_values()[position, k], like.saved[k])
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
        if any(not are_alike(path, paths[0]) for path in paths):
            value = self.row(Row(tuple(values)), values[0], unread)
        elif all(map(_is_at_place_of(paths[0]), paths)):
            if is_same_number(bases):
                return like
            value = rebased(paths[0], self.row(Row(bases), bases[0], unread))
        else:
            value = self.row(Row(bases, paths), values[0])
        place = place_of(like)
        return self.tracer._array(value, None if place.flags.c_contiguous else place)


def nothing(shape: tuple[int, ...], dtype: Any) -> Value:
    """Return what changes no sum, not even of -0.0."""
    number = complex(-0.0, -0.0) if dtype.kind == "c" else -0.0
    return broadcast(constant(number, dtype), shape)


def _is_at_place_of(path: Sequence[Value]) -> Any:
    """Return what tells whether views begin where those of a path do."""
    maps = [step.attributes.get("maps") for step in path]
    return lambda other: [step.attributes.get("maps") for step in other] == maps
