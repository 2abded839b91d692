"""Ctrl-C during compiling: interruptions are delivered when the work has ended.

Python runs the handlers of signals between any two instructions of the main thread, and that of
Ctrl-C raises an exception there. Numba and LLVM don't expect one: a table that is filled by half
makes later kernels fail, and code that is linked by half ends the process. So while a kernel is
compiled or loaded, handlers are replaced by one that takes notes. Then they are put back, and those
of the signals that came are called, in order: the call is lost, and nothing else.

The end of Python's stack tears them, too: what was called close to it is given room meanwhile.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # what `signal` wraps in enums, at ten times the time
import ctypes
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from numgrad.base.tuning import FRAMES_OF_COMPILERS, FRAMES_OF_SHIELDS
from numgrad.runtime.forks import forkable_lock

__all__ = ["raise_in", "undisturbed"]

Result = TypeVar("Result")

_SIGNALS = tuple(sorted(map(int, signal.valid_signals())))


def undisturbed(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function; handlers of signals, and what `raise_in` is asked to do, have to wait.

    Parameters
    ----------
    function : callable
        Something short that runs no code of the user's.
    *arguments
        What to call it with.

    Returns
    -------
    Any
        What the function does. An exception of a handler's comes in its place.

    Examples
    --------
    >>> undisturbed(divmod, 7, 2)
    (3, 1)
    """
    thread = threading.get_ident()
    outer = _shields.get(thread)
    if outer is not None and outer.active:
        return function(*arguments)
    shield = _Shield()
    _descend(FRAMES_OF_SHIELDS)  # where there is no room for that, nothing is begun
    try:
        shield.raise_over(thread)
        _deepen(FRAMES_OF_COMPILERS)
        try:
            return function(*arguments)
        finally:
            _deepen(-FRAMES_OF_COMPILERS)
    finally:
        # From here on a signal that still comes to the shield is handed on at once. So nothing is
        # lost if a handler raises while the others are being put back.
        shield.active = False
        try:
            shield.take_away(thread)
        finally:
            shield.deliver()


_depth = forkable_lock()


def _descend(frames: int) -> None:
    """Raise RecursionError unless the stack has room for some frames."""
    if frames:
        _descend(frames - 1)


def _deepen(frames: int) -> None:
    """Let the stack of Python grow by some frames more, or fewer; those of all threads."""
    with _depth:
        sys.setrecursionlimit(sys.getrecursionlimit() + frames)


def raise_in(thread: int, kind: type[BaseException]) -> None:
    """Raise an exception in another thread, as soon as it does nothing that must not be torn.

    Parameters
    ----------
    thread : int
        Its identifier.
    kind : class
        Of the exception.
    """
    with _lock:
        shield = _shields.get(thread)
        if shield is not None and shield.active:
            shield.asked.append(kind)
            return
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


class _Shield:
    """What stands in for the handlers of signals.

    Attributes
    ----------
    active : bool
        Whether signals are noted; else they are handed on.
    handlers : dict
        What is replaced, by the signal's number.
    noted : list of int
        The signals that came; one that comes twice is called once, as by the system.
    asked : list of class
        What `raise_in` was asked to raise.
    """

    __slots__ = ("active", "asked", "handlers", "noted")

    def __init__(self) -> None:
        self.active = True
        self.handlers: dict[int, Callable[[int, Any], Any]] = {}
        self.noted: list[int] = []
        self.asked: list[type[BaseException]] = []

    def __call__(self, number: int, frame: Any) -> None:
        """Be the handler of a signal."""
        if not self.active:
            self.handlers[number](number, frame)
        elif number not in self.noted:
            self.noted.append(number)

    def raise_over(self, thread: int) -> None:
        """Stand in for the handlers that can run in a thread."""
        with _lock:
            _shields[thread] = self
        if thread != threading.main_thread().ident:  # elsewhere Python runs none
            return
        for number in _SIGNALS:
            handler = _signal.getsignal(number)
            if callable(handler):  # not what is ignored, left to the system, or not Python's
                self.handlers[number] = handler
                _signal.signal(number, self)

    def take_away(self, thread: int) -> None:
        """Put the handlers back."""
        with _lock:
            if _shields.get(thread) is self:
                del _shields[thread]
        for number, handler in self.handlers.items():
            if _signal.getsignal(number) is self:
                _signal.signal(number, handler)

    def deliver(self) -> None:
        """Do what had to wait, all of it even if a part of it raises."""
        while self.noted:
            number = self.noted.pop(0)
            try:
                self.handlers[number](number, sys._getframe())
            finally:
                self.deliver()
        if self.asked:
            raise self.asked.pop()


_shields: dict[int, _Shield] = {}  # of the threads that must not be disturbed now
_lock = forkable_lock()
