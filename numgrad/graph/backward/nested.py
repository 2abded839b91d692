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
    waiting : list of callable
        The call, until it begins or is called off: whoever takes it out decides.
    """

    __slots__ = (
        "active",
        "done",
        "error",
        "finished",
        "inner",
        "lock",
        "thread",
        "value",
        "waiting",
    )

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        state = {**modes.__dict__, "depth": 0, "worker": self}
        self.waiting: list[Callable[[], Any]] = [lambda: function(*arguments)]
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
                if self.waiting:
                    self.value = self.waiting.pop()()
            except BaseException as error:  # for the thread that waits
                self.error = error
            with self.lock:
                self.active = False
        except BaseException as error:  # an interruption that came late
            self.active = False
            self.error = error
        finally:
            restore(before)
            self.done = True
            self.finished.release()

    def result(self) -> Any:
        """Start the thread, wait, and return or raise what the call does."""
        try:
            self.thread.start()
        except BaseException as error:
            if self._call_off():
                raise
            raised = self._wait(error)
        else:
            raised = self._wait()
        raised = raised or self.error
        self.error = None
        if raised is not None:
            try:
                raise raised
            finally:
                raised = None  # its traceback holds this frame
        return self.value

    def _call_off(self) -> bool:
        """See to it that a call that has not begun never does, and return whether that is so.

        Whoever is interrupted while the thread starts can't know whether it will.
        """
        try:
            self.waiting.pop()
        except IndexError:
            return False
        return True

    def _wait(self, interruption: BaseException | None = None) -> BaseException | None:
        """Wait until the call has ended; return what interrupted that, if anything did.

        An interruption is sent until somebody works whom it can reach: threads that wait for each
        other may be about to begin, or to end.
        """
        unheard = interruption
        while True:
            try:
                while not self.done:
                    if unheard is not None and self._interrupt(type(unheard)):
                        unheard = None
                    self.finished.acquire(timeout=_SECONDS)
                return interruption
            except BaseException as error:
                interruption = unheard = error

    def _interrupt(self, kind: type[BaseException]) -> bool:
        """Raise in the last of those that wait for each other, and return whether it works."""
        worker = self
        while worker.inner is not None:
            worker = worker.inner
        with worker.lock:
            if worker.active:
                raise_in(worker.thread.ident or 0, kind)
            return worker.active


#: How long a thread waits before it looks around. Python takes note of a signal that comes between
#: its last look and the wait itself only when that ends.
_SECONDS = 0.05
