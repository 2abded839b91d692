"""Domains: where an operand of an elementwise operation is defined and smooth.

Property tests draw points from a domain and differentiate numerically there, so it keeps away
from kinks, poles and branch points; these have tests of their own, against PyTorch. Complex points
have a real part from the domain and an imaginary part that is not small: no branch cut is near.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = [
    "MASK",
    "NONZERO",
    "POSITIVE",
    "REAL",
    "UNIT",
    "Domain",
    "apart",
    "away_from",
    "interval",
    "number",
]


_OFF = (0.25, 1.25)  # how far complex points are from the real axis


@dataclass(frozen=True)
class Domain:
    """A union of intervals.

    Attributes
    ----------
    intervals : tuple of (float, float)
        The intervals; points are drawn from all of them.
    is_mask : bool
        The operand is a bool mask.
    is_number : bool
        The operand is a static number, not a tensor.
    apart : float
        How far two operands drawn for the same element must be from each other, for operations
        with a kink where they are equal.
    """

    intervals: tuple[tuple[float, float], ...]
    is_mask: bool = False
    is_number: bool = False
    apart: float = 0.0

    def draw(
        self, shape: tuple[int, ...], random: np.random.Generator, *, is_complex: bool = False
    ) -> np.ndarray[Any, Any]:
        """Return numbers from all intervals in float64, or complex ones beside them.

        Examples
        --------
        >>> POSITIVE.draw((2,), np.random.default_rng(0), is_complex=True).dtype
        dtype('complex128')
        """
        intervals = np.array(self.intervals)
        chosen = intervals[random.integers(len(intervals), size=shape)]
        low, high = chosen[..., 0], chosen[..., 1]
        values = np.asarray(low + random.random(shape) * (high - low))
        if not is_complex:
            return values
        return np.asarray(
            values + 1j * random.choice([-1, 1], shape) * random.uniform(*_OFF, shape)
        )


def interval(low: float, high: float) -> Domain:
    """Return the domain from `low` to `high`."""
    return Domain(((low, high),))


def away_from(*points: float, within: float = 3.0, gap: float = 0.1) -> Domain:
    """Return the domain around 0 with a gap about each of `points`."""
    edges = [-within, *sorted(points), within]
    intervals = []
    for left, right in pairwise(edges):
        low = left + gap if left in points else left
        high = right - gap if right in points else right
        if low < high:
            intervals.append((low, high))
    return Domain(tuple(intervals))


def number(value: float) -> Domain:
    """Return the domain of a static parameter, with the value that tests give it."""
    return Domain(((value, value),), is_number=True)


def apart(first: Domain, gap: float = 0.1) -> tuple[Domain, Domain]:
    """Return the domains of two operands that are never closer than `gap` to each other."""
    return first, Domain(first.intervals, apart=gap)


REAL = interval(-3.0, 3.0)
POSITIVE = interval(0.2, 4.0)
UNIT = interval(-0.9, 0.9)
NONZERO = away_from(0.0, gap=0.3)
MASK = Domain(((0.0, 1.0),), is_mask=True)
