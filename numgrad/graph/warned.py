"""Warnings that stand at the user's line, however many frames of ours are between."""

from __future__ import annotations

import sys
import warnings
from typing import ClassVar

from numgrad.graph.modes.state import modes
from numgrad.runtime.frames import is_of_package

__all__ = ["Repetition", "is_due", "warn"]


class Repetition:
    """The warnings that are given once in a process: whether always all the same, and which were.

    Attributes
    ----------
    always : bool
        What `numgrad.set_warn_always` was told.
    given : set of str
    """

    always = False
    given: ClassVar[set[str]] = set()


def is_due(message: str) -> bool:
    """Return whether to give a warning that is given once in a process; from then on it was."""
    due = Repetition.always or message not in Repetition.given
    Repetition.given.add(message)
    return due


def _is_ours(file: str) -> bool:
    return is_of_package(file) or file.startswith("<numgrad ")  # that is generated


def warn(message: str, category: type[Warning] = UserWarning, more: int = 0) -> None:
    """Warn at the line that called the public function, or `more` frames above it.

    A call that is warned of is not remembered: the next one like it is to warn, too.
    """
    if modes.steps is not None:
        modes.steps.failed = True
    level, frame = 1, sys._getframe(1)
    while _is_ours(frame.f_code.co_filename) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1 + more)
