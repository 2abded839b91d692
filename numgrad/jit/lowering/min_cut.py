"""Choose what to keep and what to compute again, at the least cost: a minimum cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

__all__ = ["cheapest_supply"]

Key = TypeVar("Key", bound=Hashable)

ENDLESS = float("inf")


def cheapest_supply(
    needed: Iterable[Key],
    operands: Mapping[Key, Sequence[Key]],
    keeping: Mapping[Key, float],
    computing: Mapping[Key, float],
) -> tuple[set[Key], set[Key]]:
    """Return what to keep and what to compute so that all that is needed is there.

    What is there is kept or computed, and whatever is computed needs its operands to be there. To
    say that something is there costs what keeping it does; that it is computed then gives back the
    difference. The best choice is a closed set of such statements, which a minimum cut finds.

    Parameters
    ----------
    needed : iterable
    operands : mapping
        Of everything, what it is computed of.
    keeping, computing : mapping
        What either costs; infinity where it can't be.

    Returns
    -------
    kept, computed : set

    Examples
    --------
    >>> operands = {"x": [], "y": ["x"], "z": ["y"], "w": ["y"]}
    >>> keeping = dict.fromkeys(operands, 8)
    >>> cheapest_supply("zw", operands, keeping | {"x": 4}, {"x": 99, "y": 1, "z": 1, "w": 1})
    ({'x'}, {...})
    >>> cheapest_supply("zw", operands, keeping, {"x": float("inf"), "y": 30, "z": 1, "w": 1})
    ({'y'}, {...})
    """
    flow = _Flow()
    for key, sources in operands.items():
        flow.add((key, "there"), "end", keeping[key])
        saved = keeping[key] - computing[key] if computing[key] < ENDLESS else 0
        if saved > 0:
            flow.add("start", (key, "computed"), saved)
            for each in (key, *sources):
                flow.add((key, "computed"), (each, "there"), ENDLESS)
    for key in needed:
        flow.add("start", (key, "there"), ENDLESS)
    chosen = flow.start_side()
    computed = {key for key in operands if (key, "computed") in chosen}
    return {key for key in operands if (key, "there") in chosen} - computed, computed


class _Flow:
    """A network from ``start`` to ``end``."""

    def __init__(self) -> None:
        self.rest: dict[Any, dict[Any, float]] = {"start": {}, "end": {}}

    def add(self, tail: Any, head: Any, capacity: float) -> None:
        self.rest.setdefault(tail, {})
        self.rest.setdefault(head, {}).setdefault(tail, 0)
        self.rest[tail][head] = self.rest[tail].get(head, 0) + capacity

    def start_side(self) -> set[Any]:
        """Return what can be reached from the start when as much flows as can: the smaller side."""
        while True:
            before = self._reached()
            if "end" not in before:
                return set(before)
            path = ["end"]
            while path[-1] != "start":
                path.append(before[path[-1]])
            path.reverse()
            steps = list(pairwise(path))
            amount = min([self.rest[tail][head] for tail, head in steps])
            if amount == ENDLESS:
                raise ValueError("something is needed that can be neither kept nor computed")
            for tail, head in steps:
                self.rest[tail][head] -= amount
                self.rest[head][tail] += amount

    def _reached(self) -> dict[Any, Any]:
        """Return what has capacity left from the start, and from where it was found."""
        before: dict[Any, Any] = {"start": None}
        waiting = deque(["start"])
        while waiting:
            tail = waiting.popleft()
            for head, capacity in self.rest[tail].items():
                if capacity > 0 and head not in before:
                    before[head] = tail
                    if head == "end":
                        return before
                    waiting.append(head)
        return before
