"""What runs with recording switched off in a function that forward mode differentiates.

PyTorch's `no_grad` concerns reverse mode alone: tangents go on. Here forward mode follows nodes,
those of reverse mode. So while it differentiates a function, ``no_grad`` and its like leave
recording on, and note when they were entered and left: nodes of between are for tangents alone.
Reverse mode does not go through them, and they are cut off before their results leave.
"""

from __future__ import annotations

from numgrad.graph.modes.state import modes
from numgrad.graph.node import Node, next_sequence

__all__ = ["Unrecorded"]


class Stretch:
    """A stretch of time in which a user has recording switched off.

    Attributes
    ----------
    start, stop : int
        What nodes that were made meanwhile have their `sequence` between.
    """

    __slots__ = ("start", "stop")

    def __init__(self) -> None:
        self.start = next_sequence()
        self.stop: int | None = None

    def covers(self, node: Node) -> bool:
        """Whether a node was made meanwhile."""
        return self.start < node.sequence and (self.stop is None or node.sequence < self.stop)


class Unrecorded:
    """The stretches in a function that forward mode differentiates, and in all that it calls."""

    __slots__ = ("_stretches",)

    def __init__(self) -> None:
        self._stretches: list[Stretch] = []

    def __bool__(self) -> bool:
        return bool(self._stretches)

    def covers(self, node: Node, since: int = 0) -> bool:
        """Whether a node was made in a stretch that began after `since`."""
        return any(each.covers(node) for each in self._stretches if each.start > since)

    def begin(self) -> None:
        """Have what this thread records from now on be for tangents alone."""
        modes.stretch = Stretch()
        self._stretches.append(modes.stretch)

    def end(self) -> None:
        """Have this thread record as usual."""
        if modes.stretch is not None:
            modes.stretch.stop = next_sequence()
            modes.stretch = None

    def switch(self, on: bool) -> None:
        """Do what a user's grad mode does: switch recording on this thread on or off."""
        if on:
            self.end()
            modes.grad = True
        elif modes.stretch is None and modes.grad:
            self.begin()

    def restore(self, grad: bool, stretch: Stretch | None) -> None:
        """Have this thread record as it did when these were its modes."""
        if modes.stretch is not stretch:
            self.end()
            if stretch is not None:
                self.begin()
        modes.grad = grad

    def cut(self, nodes: list[Node]) -> None:
        """Take from nodes of the stretches, and all that lead to them, where they lead to."""
        seen = set(nodes)
        while nodes:
            node = nodes.pop()
            if self.covers(node):
                node.targets = (None,) * len(node.targets)
                continue
            new = {each for each in node.targets if each is not None} - seen
            seen |= new
            nodes += new
