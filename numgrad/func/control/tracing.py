"""Control flow in functions that are traced: the one seam to who traces.

A recorder that has a method of a function's name (``scan``, ``while_loop``, ``cond``) takes over
whenever one of the operands is traced: it is called with what the method's caller here hands over,
and its result is the function's. Without such a method, loops of known length are unrolled, because
the Python loop just runs; and what goes by numbers that are not there is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from numgrad.graph.frames import where_user_is
from numgrad.graph.modes import modes
from numgrad.graph.recorder import TraceError, is_traced_array
from numgrad.graph.tensor import Tensor

__all__ = ["is_true", "recorder_of"]


def recorder_of(name: str, leaves: Iterable[Any]) -> Callable[..., Any] | None:
    """Return the method of the open recorder that records a loop or branch, None if there is none.

    Parameters
    ----------
    name : str
        ``"scan"``: ``(f, carry, xs, length, reverse)`` gives the last carry and the stacked rows.
        ``"while_loop"``: ``(cond_fn, body_fn, carry)`` gives the last carry.
        ``"switch"``: ``(index, branches, operands)`` gives what the branch returns.
    leaves : iterable of tensor or None
        The operands' leaves.
    """
    trace = modes.trace
    if trace is None or not any(is_traced(leaf) for leaf in leaves):
        return None
    found: Callable[..., Any] | None = getattr(trace, name, None)
    return found


def is_traced(leaf: Any) -> bool:
    """Whether a leaf has no numbers."""
    return isinstance(leaf, Tensor) and is_traced_array(leaf._array)


def is_true(value: Any, api: str, what: str, words: str) -> bool:
    """Return a predicate as a truth value.

    Raises
    ------
    RuntimeError
        Unless it is a truth value or a tensor of one element of dtype bool.
    TraceError
        If it is traced.
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if not isinstance(value, Tensor):
        raise RuntimeError(f"{api}: Expected {what} {words}, but got {value!r}.")
    array = value._array
    if array.size != 1 or array.dtype != np.bool_:
        got = f"a tensor of shape {list(array.shape)} and dtype {value.dtype}"
        raise RuntimeError(f"{api}: Expected {what} {words}, but got {got}.")
    if is_traced_array(array):
        raise TraceError(
            f"{where_user_is()}{api} goes by a traced {what}, which has no numbers while a "
            "function is traced, and branches and loops that follow one are not compiled yet: call "
            f"{api} outside of the function, compute both branches and choose with "
            "where(condition, a, b), or give a loop a fixed number of steps (scan, fori_loop)"
        )
    return bool(array.reshape(-1)[0])
