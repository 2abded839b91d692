"""Backward passes inside of backward passes, to any depth.

What a user's backward function calls stands on Python's stack, and so does what that calls in turn.
So every some passes inside of each other, the next one gets a thread, and with it a stack, of its
own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from numgrad.graph.modes import modes

__all__ = ["reenter"]

DEEP = 25  # passes inside of each other that one stack takes, with the user's own calls between


def reenter(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call what may start a backward pass while one runs.

    Parameters
    ----------
    function : callable
    *arguments
        What to call it with.
    """
    depth = modes.depth
    if depth >= DEEP:
        return _elsewhere(function, arguments)
    modes.depth = depth + 1
    try:
        return function(*arguments)
    finally:
        modes.depth = depth


def _elsewhere(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call a function on a thread of its own, in this thread's modes, and wait for it."""
    state = {**modes.__dict__, "depth": 0}
    results: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        modes.__dict__.update(state)
        try:
            results.append(function(*arguments))
        except BaseException as error:  # for the thread that waits
            errors.append(error)

    thread = threading.Thread(target=work, name="numgrad backward")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
