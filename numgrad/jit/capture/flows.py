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
from numgrad.jit.capture.frames import Frame, Visited
from numgrad.jit.capture.meaning import Lost
from numgrad.jit.capture.origins import Libraries
from numgrad.jit.capture.stack import follow
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
    """What comes of all code that may be run."""

    def follow(self, function: Callable[..., Any], static: Iterable[Any]) -> None:
        """Go through all code until nothing new is found."""
        given = self.of_all(static) | {TENSOR}
        is_awake = False
        while True:
            before = self.changes
            for token in self.of(function):
                self.call_one(token, "", (), {}, given, -1)
            while fresh := [each for each in self.frames.values() if each.known < 0]:
                for frame in fresh:
                    self.follow_frame(frame)
            for frame in reversed(list(self.frames.values())):  # what is called comes first
                if frame.known != self.changes:
                    self.follow_frame(frame)
            if self.changes != before:
                continue
            if is_awake:
                break
            is_awake = True
            for each, bound in self.visited:  # what Python itself calls
                if each.__name__.startswith("__") and each.__name__ not in _MAKERS:
                    self.wake(each, bound)
        if self.is_any_used:
            self.use_all(frozenset(self.escaped))

    def follow_frame(self, frame: Frame) -> None:
        """Go through the code of one function."""
        self.frame, frame.known = frame, self.changes
        follow(frame.code, self)
