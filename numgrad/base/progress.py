"""Progress bars: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque
from typing import TextIO

__all__ = ["Progress", "duration"]

RECENT = 40  # the steps that the estimate of the remaining time looks back on
LINES = 20  # where there is no terminal: lines in all, about
MIN_SECONDS = 0.1  # between two pictures of the bar
BAR = 24  # its width


class Progress:
    """A bar, with an estimate of the time that remains; a context manager.

    Parameters
    ----------
    total : int
        The number of steps.
    stream : text file, optional
        Where to show it; standard error if left out.
    """

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self.total = total
        self.done = 0
        self.stream = sys.stderr if stream is None else stream
        self.is_terminal = self.stream.isatty()
        self.started = time.monotonic()
        self.times = deque([self.started], maxlen=RECENT + 1)
        self.shown = -1.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        """End the line of the bar."""
        if self.is_terminal and self.shown >= 0:
            self.stream.write("\n")
            self.stream.flush()

    def step(self, label: str) -> None:
        """Count one step; the label says what it was."""
        self.done += 1
        now = time.monotonic()
        self.times.append(now)
        if self.is_terminal:
            if self.done == self.total or now - self.shown >= MIN_SECONDS:
                self.shown = now
                columns = shutil.get_terminal_size().columns
                self.stream.write(f"\r{self.line(label)[: columns - 1]}\x1b[K")
                self.stream.flush()
        elif self.done * LINES // self.total > (self.done - 1) * LINES // self.total:
            self.stream.write(f"{self.line(label)}\n")
            self.stream.flush()

    def line(self, label: str) -> str:
        """Return what is shown after this step."""
        full = BAR * self.done // self.total
        bar = f"[{'#' * full}{'.' * (BAR - full)}] " if self.is_terminal else ""
        elapsed = duration(self.times[-1] - self.started)
        remaining = self.remaining()
        left = "" if remaining is None else f", about {duration(remaining)} left"
        return f"{bar}{self.done}/{self.total}, {elapsed}{left}: {label}"

    def remaining(self) -> float | None:
        """Return the seconds that remain, if the steps to come take as long as the last ones."""
        if self.done == self.total:
            return None
        recent = (self.times[-1] - self.times[0]) / (len(self.times) - 1)
        return recent * (self.total - self.done)


def duration(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> duration(3.2), duration(75), duration(7260)
    ('3 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
