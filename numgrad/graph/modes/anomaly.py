"""Anomaly mode: nodes remember where they were made, and versions where they were written.

While it is on, it stands among the interceptors that hot functions look for, so that being able to
turn it on costs nothing where it is off.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from numgrad.graph.modes.state import call_interceptors, intercept, modes, stop_intercepting
from numgrad.graph.tensor import Tensor
from numgrad.runtime.frames import user_frame

__all__ = [
    "anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "note_node",
    "note_write",
    "set_anomaly_enabled",
]

_TRACEBACK, _PARENT = "traceback_", "parent_"  # in a node's metadata, as in PyTorch


class Noted(Protocol):
    """What anomaly mode needs to know of a node."""

    attached: Any

    def attach(self) -> Any:
        """Return what users and modes hung on it."""

    def name(self) -> str:
        """Return PyTorch's name for it."""


class Anomaly:
    """Whether the mode is on, for all threads, and what the engine does then."""

    enabled = False
    check_nan = True

    def begin(self, node: Noted) -> Any:
        """Say that a node runs: what is recorded meanwhile is induced by it. Return what ran."""
        before, modes.running = modes.running, node
        return before

    def end(self, node: Noted, before: Any, outputs: Sequence[Any]) -> None:
        """Say that it has run, and look for nan in what it returned.

        Raises
        ------
        RuntimeError
        """
        modes.running = before
        if not self.check_nan:
            return
        for number, output in enumerate(outputs):
            array = output._array if isinstance(output, Tensor) else output
            if array is None:
                continue
            if isinstance(array, np.ndarray):
                found = bool(np.isnan(array).any())
            else:
                found = modes.trace.has_nan(array)
            if found:
                raise RuntimeError(
                    f"Function '{node.name()}' returned nan values in its {number}th output."
                )

    def explain(self, node: Noted) -> None:
        """Warn of where a node was made that failed, and the nodes that induced it."""
        metadata = {} if node.attached is None else node.attached.metadata
        place = metadata.get(_TRACEBACK)
        if place is None:
            _warn_of_unknown(node)
            return
        _warn(
            f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
            + "".join(place)
        )
        parent = metadata.get(_PARENT)
        while parent is not None:
            metadata = {} if parent.attached is None else parent.attached.metadata
            place = metadata.get(_TRACEBACK)
            if place is None:
                _warn_of_unknown(parent)
                return
            _warn(
                f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward "
                "call that induced the previous calculation:\n" + "".join(place)
            )
            parent = metadata.get(_PARENT)


anomaly = Anomaly()


def _warn_of_unknown(node: Noted) -> None:
    _warn(
        f"Error detected in {node.name()}. No forward pass information available. Enable detect "
        "anomaly during forward pass for more information."
    )


def _warn(message: str) -> None:
    frame = user_frame()
    if frame is None:
        warnings.warn(message, UserWarning, stacklevel=1)
        return
    code = frame.f_code
    # Each of these is news, even if another came from the same line.
    warnings.warn_explicit(message, UserWarning, code.co_filename, frame.f_lineno)


def note_node(node: Noted) -> None:
    """Remember where a node is made, and which node runs, if the mode is on."""
    if not anomaly.enabled:
        return
    frame = user_frame()
    metadata = node.attach().metadata
    metadata[_TRACEBACK] = traceback.format_stack(frame)
    if modes.running is not None:
        metadata[_PARENT] = modes.running


def note_write(counter: list[Any]) -> None:
    """Remember, beside a version, where the write was that made it, if the mode is on."""
    counted = anomaly.enabled and type(counter) is list
    frame = user_frame() if counted else None
    if frame is None:
        return
    while len(counter) < 3:
        counter.append(None)
    if counter[2] is None:
        counter[2] = {}
    counter[2][counter[0]] = (frame.f_code, frame.f_lineno)


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on.

    >>> import numgrad as ng
    >>> with ng.autograd.set_detect_anomaly(True):
    ...     ng.is_anomaly_enabled()
    True
    """
    return anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode looks for nan in gradients, once it is on."""
    return anomaly.check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Turn anomaly mode on or off; `numgrad.autograd.set_detect_anomaly` does it for a while.

    Raises
    ------
    TypeError
        If an argument is no bool.
    """
    for position, (name, value) in enumerate((("enabled", enabled), ("check_nan", check_nan)), 1):
        if not isinstance(value, bool):
            raise TypeError(
                f"set_anomaly_enabled(): argument '{name}' (position {position}) must be bool, not "
                f"{type(value).__name__}"
            )
    if enabled and anomaly not in call_interceptors:
        intercept(anomaly)
    elif not enabled and anomaly in call_interceptors:
        stop_intercepting(anomaly)
    anomaly.enabled, anomaly.check_nan = enabled, check_nan
