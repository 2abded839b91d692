"""Control flow in functions that are traced: the one seam to who traces.

A recorder (`numgrad.graph.recorder.LoopRecorder`) records a loop or a branch as one step with a
body, which is compiled once. It gets lists of leaves (tensors and Nones) and functions of such
lists, which check what the user's functions return and name these in errors; pytrees are put
together again behind it. Where tangents are computed in the trace (`numgrad.autograd.forward_ad`),
loops of known length are unrolled, because the Python loop just runs, and what goes by numbers that
are not there is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import TraceError, is_traced_array, note_numbers
from numgrad.graph.tensor import Tensor
from numgrad.runtime.frames import where_user_is

__all__ = ["is_traced", "is_true", "read_predicate", "recorder_of"]


def recorder_of(name: str) -> Callable[..., Any] | None:
    """Return the method of the open recorder that records a loop or branch, None if none is open.

    Parameters
    ----------
    name : str
        - ``"scan"``: ``(step, carry, columns, length, reverse, divided=False)`` returns the last
          carry and the stacked results, where ``step(carry, row)`` returns the next carry and its
          results.
        - ``"while_loop"``: ``(predicate, step, carry)`` returns the last carry. The predicate is a
          tensor of one element, or a truth value.
        - ``"switch"``: ``(index, branches, operands)`` returns what the branch does; of `cond`, the
          index is the predicate.
    """
    recorder = modes.trace
    if recorder is None or (modes.dual is not None and not recorder.has_numbers):
        return None
    # Over a batch (`numgrad.batching`) loops of known length run as they are, if they can.
    found: Callable[..., Any] | None = getattr(recorder, name, None)
    return found


def is_traced(leaf: Any) -> bool:
    """Whether a leaf has no numbers."""
    return isinstance(leaf, Tensor) and is_traced_array(leaf._array)


def read_predicate(value: Any, api: str, what: str, words: str) -> Any:
    """Return a truth value, or a tensor of one element and of dtype bool.

    Raises
    ------
    RuntimeError
        If it is neither.
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if not isinstance(value, Tensor):
        raise RuntimeError(f"{api}: Expected {what} {words}, but got {value!r}.")
    array = value._array
    if array.size != 1 or array.dtype != np.bool_:
        got = f"a tensor of shape {list(array.shape)} and dtype {value.dtype}"
        raise RuntimeError(f"{api}: Expected {what} {words}, but got {got}.")
    return value


def is_true(predicate: Any, api: str, what: str) -> bool:
    """Return what a predicate is; `TraceError` if it is traced."""
    if isinstance(predicate, bool):
        return predicate
    array = predicate._array
    if is_traced_array(array):
        if modes.dual is None:  # one of a batch, of which each has its own: that says so
            return bool(predicate)
        raise TraceError(
            f"{where_user_is()}{api} goes by a traced {what}, which has no numbers while a "
            "function is traced, and is not compiled where forward-mode tangents are computed: use "
            "numgrad.func.jvp, or choose with where(condition, a, b)"
        )
    note_numbers(array)
    return bool(array.reshape(-1)[0])
