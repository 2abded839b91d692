"""Python state around the bodies of loops and branches: what they read must stay what it is.

A body is run to be traced: once for all its steps, and again for each derivative. What it changes
of Python would change as often, where without a trace it changes in every step. So what functions
of a loop or branch read from outside is noted before they run (`numgrad.jit.front.watch`), and with
it what the functions that are running around them read of the same objects and variables: a change
of that could reach a number, and is refused. What nobody reads, a list that is only added to or a
counter, may change.

A variable of an enclosing function may hold something else by the time that a derivative is asked
for, as that of a Python loop does: while a body runs again, it has what it had.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CellType, FrameType
from typing import Any

from numgrad.graph.recorder import TraceError
from numgrad.jit.capture.guards import Guard, is_a
from numgrad.jit.capture.lookups import in_class
from numgrad.jit.capture.origins import Libraries
from numgrad.jit.capture.reads import instructions_of, reads_of
from numgrad.jit.front.watch import UNBOUND, Watch, contents_of
from numgrad.runtime.frames import user_frame, where_user_is

__all__ = ["BodyState"]


class BodyState:
    """What the functions of a loop or branch read from outside.

    Parameters
    ----------
    functions : sequence of callable
        That are going to run, in which the user's are.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        self._guards = _BodyWatch(functions).guards

    def run(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return what one of the functions gives.

        Raises
        ------
        TraceError
            If something is not what it was, or the function changes it.
        """
        with self._as_it_was():
            label = self._broken()
            if label is not None:
                raise TraceError(
                    f"{where_user_is()}jit: {label} is not what it was when this loop or branch "
                    "was recorded, and for its gradient the body is traced again: pass it to the "
                    "body as an operand or a carry, or change it only after the gradient"
                )
            result = function(*given)
            label = self._broken()
        if label is not None:
            raise TraceError(
                f"{where_user_is()}jit: the body of this loop or branch changes {label}, which is "
                "read, too. While a function is traced a body is not run in every step, so that "
                "the change would not be made as often as it is without jit: make it a part of the "
                "carry and return it, or pass what it is to be as an operand"
            )
        return result

    @contextmanager
    def _as_it_was(self) -> Iterator[None]:
        """Have variables of enclosing functions hold what they held."""
        moved: list[tuple[CellType, Any]] = []
        try:
            if not self._guards.hold():
                for cell, held in self._guards.variables():
                    moved.append((cell, contents_of(cell)))
                    cell.cell_contents = held
            yield
        finally:
            for cell, now in moved:
                if now is UNBOUND:
                    del cell.cell_contents
                else:
                    cell.cell_contents = now

    def _broken(self) -> str | None:
        """Return the name of something that is not what it was, None if all is."""
        if self._guards.hold():
            return None
        broken = [each.label for each in self._guards.all_broken() if not _is_kept(each)]
        return broken[0] if broken else None


def _is_kept(guard: Guard) -> bool:
    """Whether what is new is what a property keeps, which Python computes once in any case."""
    if not guard.text.startswith("not has_own"):
        return False
    return is_a(in_class(type(guard.object), guard.key)[1], functools.cached_property)


class _BodyWatch(Watch):
    """What the functions of a loop or branch read, and of that the functions around them, too."""

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        frame = user_frame()
        first, *others = functions
        super().__init__(first, others, Libraries(None if frame is None else frame.f_code))
        while frame is not None and frame.f_globals.get("__name__") != _TRACING:
            if not self.libraries.has_code(frame.f_code):
                self._visit_frame(frame)
            frame = frame.f_back
        self._follow_words()

    def _visit_frame(self, frame: FrameType) -> None:
        """Look at what running code reads of what the body has, too."""
        reads = reads_of(frame.f_code, "len" not in frame.f_globals)
        cells: dict[str, CellType] = {}
        stored: set[str] = set()
        known = set(self._seen)
        for function, bound in self._functions:
            known.update(map(id, bound))
            cells.update(
                zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            )
            stored |= _stored(function.__code__)
        for name, value in frame.f_locals.items():
            chains = reads.variables.get(name)
            if not chains:
                continue
            cell = cells.get(name)
            if cell is not None and contents_of(cell) is value:
                self.guards.add(name, "{o}.cell_contents is {v}", cell, value)
            elif id(value) not in known:
                continue
            self._follow(value, chains, name)
        for name in stored & reads.names.keys():
            self._follow_global(frame.f_globals, name, reads.names[name])


_TRACING = "numgrad.jit.front.trace_function"


def _stored(code: Any) -> set[str]:
    """Return the global names that code, and that of functions inside it, gives values to."""
    found = {each.argval for each in instructions_of(code) if each.opname == "STORE_GLOBAL"}
    return found.union(*[_stored(each) for each in code.co_consts if isinstance(each, type(code))])
