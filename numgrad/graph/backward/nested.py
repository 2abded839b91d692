"""Nested backward passes: reentrant backward, to any depth.

What a user's backward function or hook calls stands on Python's stack, and so does what that calls
in turn. So every some passes inside of each other, the next call gets a thread, and with it a
stack, of its own.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

from numgrad.graph.modes.state import modes, restore
from numgrad.runtime.interrupts import raise_in

__all__ = ["elsewhere"]


def elsewhere(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function on a thread of its own, in this thread's modes, and wait for it.

    Whatever interrupts the wait, such as Ctrl-C, interrupts the call, and is raised when that has
    ended: nobody goes on behind the caller's back.

    Parameters
    ----------
    function : callable
    *arguments
        What to call it with.
    """
    outer = modes.worker
    worker = _Worker(function, arguments)
    if outer is not None:
        outer.inner = worker
    try:
        return worker.result()
    finally:
        if outer is not None:
            outer.inner = None


class _Worker:
    """One call on a thread of its own.

    Attributes
    ----------
    inner : _Worker or None
        Whom this one waits for.
    """

    __slots__ = (
        "active",
        "done",
        "error",
        "finished",
        "function",
        "inner",
        "lock",
        "thread",
        "value",
    )

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        state = {**modes.__dict__, "depth": 0, "worker": self}
        self.function: Callable[[], Any] | None = lambda: function(*arguments)
        self.value: Any = None
        self.error: BaseException | None = None
        self.inner: _Worker | None = None
        self.active = self.done = False
        self.lock = threading.Lock()
        self.finished = threading.Lock()
        self.finished.acquire()
        context = contextvars.copy_context()
        self.thread = threading.Thread(
            target=context.run, args=(self._work, state), name="numgrad backward"
        )

    def _work(self, state: dict[str, Any]) -> None:
        modes.__dict__.update(state)
        before = modes.__dict__.copy()
        try:
            try:
                self.active = True
                if self.function is not None:
                    self.value = self.function()
            except BaseException as error:  # for the thread that waits
                self.error = error
            with self.lock:
                self.active = False
        except BaseException as error:  # an interruption that came late
            self.active = False
            self.error = error
        finally:
            restore(before)
            self.function = None
            self.done = True
            self.finished.release()

    def result(self) -> Any:
        """Start the thread, wait, and return or raise what the call does."""
        interruption: BaseException | None = None
        self.thread.start()
        while not self.done:
            try:
                self.finished.acquire()
            except BaseException as error:
                interruption = error
                self._interrupt(type(error))
        raised = interruption or self.error
        self.error = None
        if raised is not None:
            try:
                raise raised
            finally:
                raised = interruption = None  # its traceback holds this frame
        return self.value

    def _interrupt(self, kind: type[BaseException]) -> None:
        """Raise in the thread that works: the last of those that wait for each other."""
        worker = self
        while worker.inner is not None:
            worker = worker.inner
        with worker.lock:
            if worker.active:
                raise_in(worker.thread.ident or 0, kind)
