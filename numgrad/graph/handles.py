"""RemovableHandle, and collections of hooks."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["Hooks", "RemovableHandle", "register"]


class Hooks(dict[int, Callable[..., Any]]):
    """Hooks by the ids of their handles, in the order they were registered."""

    __slots__ = ("__weakref__",)


class RemovableHandle:
    """What registering a hook returns: call `remove()`, or use it as a context manager.

    It does not keep the hook alive.
    """

    __module__ = "numgrad.utils.hooks"  # where people find it

    _next_id = itertools.count().__next__

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = weakref.ref(hooks)
        self.id = RemovableHandle._next_id()

    def remove(self) -> None:
        """Unregister the hook; calling it again does nothing."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register(hooks: Hooks, hook: Callable[..., Any]) -> RemovableHandle:
    """Add a hook to others and return what removes it."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
