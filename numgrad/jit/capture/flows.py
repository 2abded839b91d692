"""Find the arrays whose numbers a traced function turns into Python's numbers and decisions.

An operation says what it is given while a function is traced; a number of Python's has no origin.
So where an array from outside is an operand, the code is followed once more with what its
variables may hold: objects from outside, what NumPy computes from arrays of these, and what the
code makes itself. Where Python goes by something, an array in it is noted.

Tensors are not followed: who asks one for a number while it is traced gets an error. What can't be
followed may be any object that went out of sight, and any array in those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from numgrad.jit.capture.calls import Calls
from numgrad.jit.capture.frames import Visited
from numgrad.jit.capture.meaning import Lost, Tokens
from numgrad.jit.capture.origins import Libraries
from numgrad.jit.capture.values import TENSOR

__all__ = ["arrays_gone_by"]

# What Python calls where a class is called, or made.
_MAKERS = frozenset(
    (
        "__init__",
        "__new__",
        "__post_init__",
        "__call__",
        "__init_subclass__",
        "__set_name__",
    )
)


def arrays_gone_by(
    libraries: Libraries, function: Callable[..., Any], static: Iterable[Any], visited: Visited
) -> set[int] | None:
    """Return the ids of arrays that Python goes by, or may; None if the code can't be followed.

    Parameters
    ----------
    libraries : Libraries
        Whose code is not followed.
    function : callable
        What is traced.
    static : iterable
        Those of its arguments that are no tensors.
    visited : iterable
        The functions that it may call, with their first arguments where these are known.
    """
    flows = _Flows(libraries, visited)
    try:
        flows.follow(function, static)
    except Lost:
        return None
    return flows.found


class _Flows(Calls):
    """What comes of all code that may be run.

    An instruction is done again when there is more in a place that it read; no other one is.
    """

    def follow(self, function: Callable[..., Any], static: Iterable[Any]) -> None:
        """Go through all code until nothing new is found."""
        self.wait_for(_Beginning(self, function, self.of_all(static) | {TENSOR}))
        self.go_on()
        for each, bound in self.visited:  # what Python itself calls
            if each.__name__.startswith("__") and each.__name__ not in _MAKERS:
                self.wake(each, bound)
        self.go_on()
        if self.is_any_used:
            self.use_all(frozenset(self.escaped))

    def go_on(self) -> None:
        """Do what is to be done: of the newest function first, which others wait for."""
        while self.waiting:
            run = self.waiting[-1]
            if run.todo:
                self.frame = run.frame
                run.advance()
            else:
                run.is_waiting = False
                self.waiting.pop()


class _Beginning:
    """The call of what is traced, in the place of an instruction."""

    frame = None

    def __init__(self, flows: _Flows, function: Callable[..., Any], given: Tokens) -> None:
        self.flows, self.function, self.given = flows, function, given
        self.todo = [0]
        self.is_waiting = False

    def do(self, k: int) -> None:
        self.todo = [k]

    def advance(self) -> None:
        self.todo = []
        self.flows.reader = self, 0
        for token in self.flows.of(self.function):
            self.flows.call_one(token, "", (), {}, self.given, -1)
