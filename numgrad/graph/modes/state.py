"""The modes of each thread, and what is open and must be looked at by hot functions.

`numgrad.graph.modes.grad_modes` has what users enter and leave.
"""

from __future__ import annotations

import threading
from typing import Any

__all__ = [
    "call_interceptors",
    "intercept",
    "interceptors",
    "is_transformed",
    "modes",
    "note_inference",
    "recording",
    "restore",
    "stop_intercepting",
    "stop_watching",
    "watch",
]


class _Modes(threading.local):
    """The modes of one thread; the class attributes are what a new thread starts with."""

    grad = True  # whether operations record
    inference = False
    claimed = False  # in inference mode: what `is_grad_enabled` says although nothing records
    steps: Any = None  # while a call is found out: what notes its steps (numgrad.ops.calls.steps)
    trace: Any = None  # while a function is traced: what records it (numgrad.graph.recorder)
    # The level of forward mode that is open (numgrad.autograd.forward.duals), set on the class, for
    # all threads; a thread that computes tangents hides it from itself.
    dual: Any = None
    covered = False  # whether inference tensors may be saved: in what `numgrad.func` differentiates
    multithreading = True  # what `set_multithreading_enabled` was told
    running: Any = None  # in anomaly mode: the node that the engine runs
    # In a function that forward mode differentiates: what of it runs with recording switched off,
    # and since when it is (numgrad.graph.modes.unrecorded).
    unrecorded: Any = None
    stretch: Any = None
    overwritten: Any = None  # in such a function: what was saved (numgrad.graph.modes.overwritten)
    level: Any = None  # the innermost function that `numgrad.func` is differentiating (a Level)
    saved_hooks: tuple[Any, ...] = ()  # pairs (numgrad.graph.saved_tensors)
    keeper: Any = None  # who keeps what tensors hold before a write (numgrad.autograd.saving)
    hooks_disabled: str | None = None  # the words of the error for who enters such a pair
    exec_group: Any = None  # backward passes that share what they compute again
    depth = 0  # how many backward passes that call the user's code run inside of each other
    worker: Any = None  # on a thread for the innermost of these: who it is (graph.backward.nested)
    task: Any = None  # in a hook: the run of the engine that called it (graph.backward.engine)
    watching: tuple[Any, ...] = ()  # what this thread has put into the lists below


modes = _Modes()
# What is open on any thread and changes what operations do: recorders, levels of forward mode,
# hooks on saved tensors, inference modes, anomaly mode. While there is one, hot functions look at
# what it changes: which counter a result has, whether a node packs what it saves.
interceptors: list[Any] = []
# Of these the ones that must see every call: traces, levels of forward mode, anomaly mode. While
# there is one, no call takes the straight-line code that there is for ordinary ones.
call_interceptors: list[Any] = []
_INFERENCE = "inference mode"  # stands for it in the first list, once for each thread


def intercept(interceptor: Any) -> None:
    """Have hot functions take no straight-line code, so that `interceptor` sees every operation."""
    call_interceptors.append(interceptor)
    interceptors.append(interceptor)


def stop_intercepting(interceptor: Any) -> None:
    """Take back an `intercept`, or what of it there was time for before Ctrl-C."""
    _discard(interceptors, interceptor)
    _discard(call_interceptors, interceptor)


def _discard(entered: list[Any], interceptor: Any) -> None:
    if interceptor in entered:
        entered.remove(interceptor)


class _Watched:
    """What stands for a mode of a thread in the lists above: equal to nothing but itself."""

    __slots__ = ("mode", "sees_calls")

    def __init__(self, mode: Any, sees_calls: bool) -> None:
        self.mode = mode
        self.sees_calls = sees_calls


def watch(mode: Any, *, sees_calls: bool) -> None:
    """Enter a mode of this thread in the lists above, in the second if it must see every call.

    `restore` takes it back.
    """
    watched = _Watched(mode, sees_calls)
    modes.watching = (*modes.watching, watched)
    _enter(watched)


def stop_watching(mode: Any) -> None:
    """Take back the last `watch` of this mode, if the thread is not rid of it already."""
    watching = modes.watching
    for at in reversed(range(len(watching))):
        if watching[at].mode is mode:
            modes.watching = (*watching[:at], *watching[at + 1 :])
            _forget(watching[at])
            return


def is_transformed() -> bool:
    """Return whether this thread runs a function that `numgrad.func` transforms."""
    return modes.level is not None or (modes.trace is not None and modes.trace.transforms)


def _enter(watched: _Watched) -> None:
    if watched.sees_calls:
        call_interceptors.append(watched)
    interceptors.append(watched)


def _forget(watched: _Watched) -> None:
    _discard(interceptors, watched)
    if watched.sees_calls:
        _discard(call_interceptors, watched)


def note_inference(inference: bool) -> None:
    """Let hot functions know that inference mode is on from now on, on this thread, or off."""
    if inference is not modes.inference:
        if inference:
            interceptors.append(_INFERENCE)
        else:
            interceptors.remove(_INFERENCE)


def restore(state: dict[str, Any]) -> None:
    """Make the modes of this thread what they were, whatever was entered or left since.

    Parameters
    ----------
    state : dict
        A copy of ``modes.__dict__``.
    """
    now = modes.__dict__
    before, after = state.get("watching", ()), modes.watching
    if before is not after:
        for watched in after:
            if not any(watched is other for other in before):
                _forget(watched)
        for watched in before:
            if not any(watched is other for other in after):
                _enter(watched)
    note_inference(state.get("inference", False))
    now.update(state)
    for name in now.keys() - state.keys():
        del now[name]


class recording:  # noqa: N801 - as the modes that users enter
    """Have this thread's operations recorded, or not, where that is nothing that a user asked for.

    What a user asks for counts in the world outside of a mapped function, too.
    """

    __slots__ = ("_previous", "_value")

    def __init__(self, value: bool) -> None:
        self._value = value
        self._previous = value

    def __enter__(self) -> None:
        self._previous = modes.grad
        if not modes.inference:
            modes.grad = self._value

    def __exit__(self, *exception: object) -> None:
        modes.grad = self._previous
