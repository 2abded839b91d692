"""Fork-safe locks and imports, and values computed once.

A child has one thread, a copy of the one that forked. A lock that another thread held at that
moment stays held in the child for ever, and a module that another one was importing stays halfway.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

__all__ = ["forkable_lock", "hold_imports", "importing", "lazy", "release_imports"]

Value = TypeVar("Value")

# Weak references, which take themselves out: a WeakSet does that in Python, for every packed node.
_locks: set[weakref.ref[Any]] = set()


def forkable_lock() -> threading.RLock:
    """Return a lock that is free in a forked child, unless the thread that forked holds it.

    Examples
    --------
    >>> with forkable_lock() as taken:
    ...     taken
    True
    """
    lock = threading.RLock()
    _locks.add(weakref.ref(lock, _locks.discard))
    return lock


def _free_locks() -> None:
    """Take locks from threads that are not there."""
    for lock in [reference() for reference in _locks.copy()]:
        if lock is not None and not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)


_imports = threading.Condition()
_importing: dict[int, int] = {}  # by thread, how many of our imports it is in


@contextmanager
def importing() -> Iterator[None]:
    """Import something of ours meanwhile: no other thread forks.

    Of imports none waits for another here, but for those locks that Python has for modules.
    """
    thread = threading.get_ident()
    with _imports:
        _importing[thread] = _importing.get(thread, 0) + 1
    try:
        yield
    finally:
        with _imports:
            _importing[thread] -= 1
            if not _importing[thread]:
                del _importing[thread]
                _imports.notify_all()


def hold_imports() -> None:
    """Wait for what other threads import, and let none begin until `release_imports`."""
    _imports.acquire()
    while _importing.keys() - {threading.get_ident()}:
        _imports.wait()


def release_imports() -> None:
    """Let threads import again."""
    _imports.release()


class lazy(Generic[Value]):  # noqa: N801 - a decorator
    """An attribute that is computed when it is first asked for.

    `functools.cached_property` holds a lock meanwhile, before Python 3.12: one for all objects of a
    class. What compiles for seconds must hold none, or a child that is forked then waits for ever.
    Two threads that ask at once may both compute it.

    Parameters
    ----------
    compute : callable
        Takes the object.

    Examples
    --------
    >>> class Circle:
    ...     radius = 2
    ...
    ...     @lazy
    ...     def diameter(self):
    ...         return 2 * self.radius
    >>> Circle().diameter
    4
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]
        value: Value = instance.__dict__.setdefault(self.name, self.compute(instance))
        return value
