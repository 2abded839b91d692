"""What comes out of containers and arrays while code is followed, and what is computed of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.jit.capture.guards import is_a
from numgrad.jit.capture.lookups import CONTAINERS, in_class
from numgrad.jit.capture.meaning import Tokens, Value
from numgrad.jit.capture.values import ANY, ROWS, TENSOR, Values
from numgrad.jit.lowering.storage import root_of

__all__ = ["Contents", "rows"]

_NONE: Tokens = frozenset()
_TENSOR: Tokens = frozenset((TENSOR,))
_NO_OPERANDS = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type, Tensor)


class Contents(Values):
    """What is in values."""

    def put(self, value: Tokens, given: Tokens) -> None:
        for token in value:
            if token == ANY:
                self.escape(given)
            elif token[0] in ("is", "made", "code"):
                self.grow(self.inside[token], given)
                if token in self.escaped:
                    self.escape(given)

    def make(self, at: int, given: Tokens) -> Tokens:
        token = ("made", self.frame.key, at)
        self.grow(self.inside[token], given)
        return frozenset((token,))

    def look_up(self, key: Tokens) -> None:
        for token in self.with_contents(key):
            thing: Any = self.things.get(token)
            if not is_a(thing, np.ndarray) or not thing.ndim:  # else it is an operand of indexing
                self.decide((token,))

    def entry(self, value: Tokens, key: Value) -> Tokens:
        thing: Any
        self.look_up(key.tokens)
        found: set[Any] = set()
        for token in value:
            thing = self.things.get(token)
            if type(thing) in (list, tuple, dict) and type(key.constant) in (int, str):
                found |= self.read(self.inside[token])
                try:
                    found |= self.of(thing[key.constant])
                except (LookupError, TypeError):  # it is the key of another container
                    continue
            else:
                found |= self.contents(token) | self.special(token, "__getitem__", [key])
        return frozenset(found)

    def items(self, value: Tokens) -> Tokens:
        found: set[Any] = set()
        for token in value:
            if token[0] == "rows":
                found.add(("row", token[1]))
            else:
                found |= self.contents(token) | self.special(token, "__iter__", [])
        return frozenset(found)

    def contents(self, token: Any) -> Tokens:
        """Return what may come out of something, and views of it."""
        if len(token) == 1:
            return frozenset((token,))
        found = self.read(self.inside[token])
        if token[0] == "of":
            self.decide(frozenset((token,)))  # by how many there are
            return found | {token}
        if token[0] in ROWS:
            return found.union(*token[1])
        if token[0] == "made":
            return found | {token}
        if token not in self.from_outside:
            self.from_outside[token] = self.in_object(self.things.get(token), token)
        return found | self.from_outside[token]

    def in_object(self, thing: Any, token: Any) -> Tokens:
        """Return what may come out of an object from outside, as it is."""
        own: Tokens = frozenset((token,))
        if is_a(thing, np.ndarray):
            things = thing.flat if thing.dtype.kind == "O" else ()
            return own | {("of", id(root_of(thing)))} | self.of_all(things)
        if is_a(thing, dict):
            return own | self.of_all([*thing.keys(), *thing.values()])
        if is_a(thing, (*CONTAINERS, tuple, frozenset)):
            return own | self.of_all(thing)
        return _NONE

    def of_all(self, values: Iterable[Any]) -> Tokens:
        return frozenset().union(*map(self.of, values))

    def special(self, token: Any, name: str, given: Sequence[Value]) -> Tokens:
        """Return what a method gives that Python itself calls."""
        thing: Any = self.things.get(token)
        if token[0] not in ("is", "made") or is_a(thing, (np.ndarray, *CONTAINERS, tuple)):
            return _NONE
        kind = self.classes.get(token) or type(thing)
        if token[0] == "made" and token not in self.classes:
            return _NONE
        _, method = in_class(kind, name)
        if is_a(method, FunctionType) and not self.libraries.has_code(method.__code__):
            found = self.called(method, [Value(frozenset((token,))), *given])
            return found if name == "__getitem__" else found | self.items(found) | {ANY}
        self.escape(frozenset((token,)))
        return frozenset((ANY,))

    def unpack(self, value: Tokens, count: int) -> Sequence[Tokens]:
        rows = [token for token in value if token[0] == "row" and len(token[1]) == count]
        rest = self.items(frozenset(value) - frozenset(rows))
        return [rest.union(*[row[1][k] for row in rows]) for k in range(count)]

    def find(self, value: Value, container: Tokens) -> None:
        if not isinstance(value.constant, str):
            self.decide(value.tokens | container)
            self.decide(self.with_contents(container))

    def measure(self, value: Tokens) -> None:
        self.decide(frozenset(token for token in value if token[0] == "of"))

    # --- what is computed -------------------------------------------------------------------------

    def computed(self, *values: Tokens) -> Tokens:
        if any(map(self.is_tensor, values)):
            return _TENSOR
        if not all(values):  # nothing has been found yet
            return _NONE
        found: set[Any] = set()
        for token in self.with_contents(frozenset().union(*values)):
            thing: Any = self.things.get(token)
            if is_a(thing, np.ndarray):
                found.add(("of", id(root_of(thing))))
            elif token[0] == "of" or len(token) == 1:
                found.add(token)
            elif token[0] in ROWS or self.is_container(token):
                self.decide(frozenset().union(*values))  # it may be repeated
                found.add(token)
            elif token in self.classes or (token[0] == "is" and not is_a(thing, _NO_OPERANDS)):
                self.escape(frozenset((token,)))
                found.add(ANY)
        return frozenset(found)

    def is_tensor(self, value: Tokens) -> bool:
        """Whether a value is a tensor, and can't be anything else."""
        return bool(value) and all(
            token == TENSOR or is_a(self.things.get(token), Tensor) for token in value
        )

    def with_contents(self, value: Iterable[Any]) -> set[Any]:
        """Return values with all that is in containers among them."""
        found: set[Any] = set()
        todo = list(value)
        while todo:
            token = todo.pop()
            if token not in found:
                found.add(token)
                if token[0] in ROWS or self.is_container(token):
                    todo += self.contents(token)
        return found

    def is_container(self, token: Any) -> bool:
        """Whether something is a container of Python's."""
        if token[0] == "made":
            return token not in self.classes
        return is_a(self.things.get(token), (*CONTAINERS, tuple, frozenset))


def rows(parts: Sequence[Tokens]) -> Tokens:
    """Return what gives tuples with such values; of nested ones the places are not told apart."""
    flat = [frozenset().union(*[_flat(token) for token in part]) for part in parts]
    return frozenset((("rows", tuple(flat)),))


def _flat(token: Any, depth: int = 0) -> Tokens:
    """Return a tuple in a tuple as it is, and what is in one further inside."""
    if token[0] not in ROWS:
        return frozenset((token,))
    if depth:
        return frozenset().union(*[_flat(each, depth) for part in token[1] for each in part])
    parts = [frozenset().union(*[_flat(each, 1) for each in part]) for part in token[1]]
    return frozenset(((token[0], tuple(parts)),))
