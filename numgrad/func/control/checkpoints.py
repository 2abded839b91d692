"""Which carries of a loop are kept for its derivatives: policies, and where they put their marks.

The first run keeps every k-th carry. Where the number of steps is not known (a ``while_loop``), it
begins with every one, and whenever these are too many, every second one is dropped, and carries are
kept half as often from then on.

What is between two marks is held at once, or divided further by binomial checkpointing: A. Griewank
and A. Walther, Algorithm 799: Revolve, ACM TOMS 26 (2000). With s carries, and each step run at
most r times over, C(s + r, s) steps can be reversed.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

__all__ = [
    "Binomial",
    "Every",
    "Marks",
    "Policy",
    "binomial_marks",
    "depth_of",
    "read_policy",
    "segments_of",
]


@dataclasses.dataclass(frozen=True)
class Binomial:
    """Keep a fixed number of a loop's carries: for the ``checkpoint`` of `scan` and `while_loop`.

    Parameters
    ----------
    carries : int
        How many, at least 1. Half of them mark the first run; in between, the other ones are set as
        the gradient is computed, so that a step is run as seldom as can be. The graph of one step
        is held beside them.

    Raises
    ------
    ValueError
        If that is no integer, or below 1.

    Examples
    --------
    >>> import numgrad as ng
    >>> few = ng.func.Binomial(carries=4)
    >>> def decay(x):
    ...     return ng.func.scan(lambda c, _: (c * 0.99, None), x, length=100, checkpoint=few)[0]
    >>> ng.func.grad(decay)(ng.tensor(1.0))
    tensor(0.3660)
    """

    carries: int

    def __post_init__(self) -> None:
        _check_count("Binomial: carries", self.carries)


@dataclasses.dataclass(frozen=True)
class Every:
    """Keep every k-th carry."""

    steps: int


_DEEPEST = 4  # loops within loops that are compiled: each takes twice as long as the one around it

Policy = Every | Binomial | str


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an int of at least 1, but got {value!r}")


def read_policy(api: str, value: Any) -> Policy | None:
    """Return what a call's ``checkpoint`` means."""
    if value is None or isinstance(value, (Binomial, Every)):
        return value
    if isinstance(value, str):
        if value not in ("sqrt", "log"):
            raise ValueError(
                f"{api}: checkpoint must be None, an int, 'sqrt', 'log' or func.Binomial(carries), "
                f"but got {value!r}"
            )
        return value
    _check_count(f"{api}: checkpoint", value)
    return Every(value)


def segments_of(policy: Policy | None, count: int) -> list[int]:
    """Return into steps of what sizes a compiled loop is divided, the largest first.

    A loop of n steps that consists of loops within loops, d deep, keeps about d n^(1/d) carries.
    """
    if policy is None:
        return []
    if isinstance(policy, Every):
        return [policy.steps] if 1 < policy.steps < count else []
    depth = 2
    if policy != "sqrt":
        budget = policy.carries if isinstance(policy, Binomial) else 2 * count.bit_length()
        while depth < _DEEPEST and depth * count ** (1 / depth) > budget:
            depth += 1
    sizes = [round(count ** (level / depth)) for level in range(depth - 1, 0, -1)]
    return [size for size in sizes if 1 < size < count]


def depth_of(policy: Policy | None) -> tuple[int, int | None]:
    """Return how deep a compiled loop of unknown length is divided, and the turns of those within.

    These are None if they are to grow.
    """
    if policy is None or (isinstance(policy, Every) and policy.steps == 1):
        return 1, None
    if isinstance(policy, Every):
        return 2, policy.steps
    return (2 if policy == "sqrt" else _DEEPEST), None


class Marks:
    """The carries that the first run of a loop keeps.

    Parameters
    ----------
    policy : Every, Binomial, "sqrt" or "log"
    count : int or None
        The number of steps, if that is known.

    Attributes
    ----------
    kept : list of (int, Any)
        The number of the step before which a carry is, and that carry with what belongs to it.
    """

    def __init__(self, policy: Policy, count: int | None) -> None:
        self._policy = policy
        self._every = 1
        self.kept: list[tuple[int, Any]] = []
        if isinstance(policy, Every):
            self._every = policy.steps
        elif count is not None:
            marks = math.isqrt(count) if policy == "sqrt" else self._limit(count)
            self._every = -(-count // marks)

    def wants(self, step: int) -> bool:
        """Return whether to `keep` the carry before a step."""
        return not step % self._every

    def keep(self, step: int, state: Any) -> None:
        """Keep a carry; drop others if they become too many."""
        self.kept.append((step, state))
        while self._is_crowded(step):
            self._every *= 2
            self.kept = [mark for mark in self.kept if not mark[0] % self._every]

    def carries(self, count: int) -> int:
        """Return how many carries may be kept of a part between marks, the one before it included.

        None at all, said by 0, where everything in between is held.
        """
        if isinstance(self._policy, Every) or self._policy == "sqrt":
            return 0
        return self._budget(count) - len(self.kept) + 1

    def _budget(self, count: int) -> int:
        if isinstance(self._policy, Binomial):
            return self._policy.carries
        return 2 * max(2, count.bit_length())

    def _limit(self, count: int) -> int:
        """Return how many carries the first run may keep."""
        return (self._budget(count) + 1) // 2

    def _is_crowded(self, step: int) -> bool:
        if isinstance(self._policy, Every):
            return False
        most = 2 * self._every if self._policy == "sqrt" else self._limit(step)
        return len(self.kept) > most


def binomial_marks(start: int, stop: int, carries: int) -> list[int]:
    """Return where to keep carries on the way from `start` to `stop`, beginning with `start`.

    >>> binomial_marks(0, 10, 3)
    [0, 4, 7]
    """
    marks = [start]
    while stop - marks[-1] > 1 and carries > 1:
        marks.append(marks[-1] + _advance(stop - marks[-1], carries))
        carries -= 1
    return marks


def _advance(length: int, carries: int) -> int:
    """Return how far from its beginning to split a range of at least two steps.

    With r the fewest repetitions for which C(carries + r, r) steps can be reversed, the rest may
    have C(carries - 1 + r, r) of them, with one carry fewer, and what is before the split is
    reversed with r - 1 repetitions.
    """
    repetitions = 1
    while math.comb(carries + repetitions, repetitions) < length:
        repetitions += 1
    return max(1, length - math.comb(carries - 1 + repetitions, repetitions))
