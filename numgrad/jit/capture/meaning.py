"""What the values are of which bytecode is followed, and what is asked about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple, Protocol

__all__ = ["NOTHING", "Lost", "Meaning", "Place", "Tokens", "Value"]

Tokens = frozenset[Any]


class Lost(Exception):
    """An instruction is not known here, or the stack is not what it was taken for."""


class Value(NamedTuple):
    """What may be in one place of the stack.

    Attributes
    ----------
    tokens : frozenset
    name : str
        The variable or attribute that it was last.
    constant : Any
        What it is, if it is a constant.
    is_null : bool
        Whether it is what stands beside a function that has no first argument yet.
    """

    tokens: Tokens = frozenset()
    name: str = ""
    constant: Any = None
    is_null: bool = False


NOTHING = Value()


class Place:
    """Where tokens are found, and the instructions that looked for some there."""

    __slots__ = ("readers", "tokens")

    def __init__(self) -> None:
        self.tokens: Tokens = frozenset()
        self.readers: set[tuple[Any, int]] = set()  # the run of a function's code, and where in it


class Meaning(Protocol):
    """What becomes of values; results are tokens."""

    reader: Any  # the run of a function's code, and the place of the instruction in it

    def load(self, kind: str, name: str) -> Tokens:
        """Return what a variable holds, by an instruction of some kind."""

    def store(self, kind: str, name: str, value: Tokens) -> None:
        """Put something in a variable."""

    def attribute(self, value: Tokens, name: str) -> Tokens:
        """Return an attribute."""

    def set_attribute(self, value: Tokens, name: str, given: Tokens) -> None:
        """Put something in an attribute."""

    def inherited(self, value: Tokens, name: str) -> Tokens:
        """Return an attribute of ``super()``."""

    def entry(self, value: Tokens, key: Value) -> Tokens:
        """Return ``value[key]``."""

    def look_up(self, key: Tokens) -> None:
        """Note that something is looked up, or put, by a key or an index."""

    def put(self, value: Tokens, given: Tokens) -> None:
        """Put something in a container."""

    def items(self, value: Tokens) -> Tokens:
        """Return what comes out of an iteration."""

    def unpack(self, value: Tokens, count: int) -> Sequence[Tokens]:
        """Return so many items of a value."""

    def make(self, at: int, given: Tokens) -> Tokens:
        """Return a container that is made by the instruction at some place."""

    def function(self, at: int, code: CodeType, defaults: Tokens) -> Tokens:
        """Return a function that is made."""

    def call(
        self,
        function: Value,
        given: Sequence[Value],
        named: Mapping[str, Value],
        spread: Tokens,
        at: int,
    ) -> Tokens:
        """Return what a call gives; `spread` may be any of the arguments."""

    def entered(self, value: Tokens) -> Tokens:
        """Return what ``with`` gives."""

    def of(self, value: Any) -> Tokens:
        """Return a constant."""

    def computed(self, *values: Tokens) -> Tokens:
        """Return what an operator makes of values."""

    def measure(self, value: Tokens) -> None:
        """Note that Python goes by how many items there are."""

    def decide(self, value: Tokens) -> None:
        """Note that Python goes by a value."""

    def find(self, value: Value, container: Tokens) -> None:
        """Note that a value is looked for in a container."""

    def unknown(self, value: Tokens) -> Tokens:
        """Return what is made of a value in some way."""

    def leave(self, value: Tokens) -> None:
        """Note that a value is returned or yielded."""
