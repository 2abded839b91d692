"""Control flow in functions that are traced: the one seam to who traces.

A recorder (`numgrad.graph.recorder.Recorder`) records a loop or a branch as one step with a body,
which is compiled once. Where tangents are computed, too, loops of known length are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.graph.frames import where_user_is
from numgrad.graph.modes import modes
from numgrad.graph.recorder import TraceError, is_traced_array, note_numbers
from numgrad.graph.tensor import Tensor

__all__ = [
    "check_flag",
    "is_traced",
    "is_true",
    "recorded_branches",
    "recorded_scan",
    "recorded_while",
    "recorder",
]

Leaves = list[Any]


def recorder() -> Any:
    """Return who records loops and branches, None if nobody does."""
    return None if modes.dual is not None else modes.trace


def recorded_scan(
    trace: Any, step: Callable[..., Any], carry: Leaves, columns: Leaves, count: int, reverse: bool
) -> tuple[Leaves, Leaves]:
    """Record a loop over rows; leaves that are None stay out of it."""
    stacked: list[Leaves] = []

    def turn(current: Sequence[Tensor], row: Sequence[Tensor]) -> tuple[Any, Any]:
        after, ys = step(_filled(carry, current), _filled(columns, row))
        stacked[:] = [ys]
        return _present(after), _present(ys)

    last, found = trace.scan(turn, _present(carry), _present(columns), count, reverse)
    return _filled(carry, last), _filled(stacked[0], found)


def recorded_while(
    trace: Any,
    goes_on: Callable[[Leaves], Tensor],
    step: Callable[[Leaves], Leaves],
    carry: Leaves,
) -> Leaves:
    """Record a loop that goes on while something holds; leaves that are None stay out of it."""
    found = trace.while_loop(
        lambda current: goes_on(_filled(carry, current)),
        lambda current: _present(step(_filled(carry, current))),
        _present(carry),
    )
    return _filled(carry, found)


def recorded_branches(
    trace: Any,
    flags: Sequence[Tensor],
    branches: Sequence[Callable[[], Leaves]],
    likes: Leaves,
) -> Leaves:
    """Record branches, of which the one whose flag holds gives what is `like` some leaves."""
    functions = [lambda branch=branch: _present(branch()) for branch in branches]
    return _filled(likes, trace.branches(flags, functions, _present(likes)))


def _present(leaves: Leaves) -> list[Tensor]:
    return [leaf for leaf in leaves if leaf is not None]


def _filled(likes: Leaves, found: Sequence[Tensor]) -> Leaves:
    """Return what was found, with None where it is in `likes`."""
    rest = iter(found)
    return [None if like is None else next(rest) for like in likes]


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
    array = check_flag(value, api, what, words)._array
    if is_traced_array(array):
        raise TraceError(
            f"{where_user_is()}{api} goes by a traced {what}, which has no numbers while a "
            "function is traced, and is not compiled where forward-mode tangents are computed: use "
            "numgrad.func.jvp, or choose with where(condition, a, b)"
        )
    note_numbers(array)
    return bool(array.reshape(-1)[0])


def check_flag(value: Any, api: str, what: str, words: str) -> Tensor:
    """Return a predicate that is a tensor, with no dims; raise as `is_true` does if it is none."""
    if not isinstance(value, Tensor):
        raise RuntimeError(f"{api}: Expected {what} {words}, but got {value!r}.")
    array = value._array
    if array.size != 1 or array.dtype != np.bool_:
        got = f"a tensor of shape {list(array.shape)} and dtype {value.dtype}"
        raise RuntimeError(f"{api}: Expected {what} {words}, but got {got}.")
    return value if not array.ndim else value.reshape(())
