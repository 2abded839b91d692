"""Find where a trace repeats itself: runs of operations that are alike, turn after turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Run", "runs"]

TURNS = 4  # a loop has at least
OPERATIONS = 200  # that a loop saves the compiler at least
CONTEXT = 4  # operations that have to be alike for a distance to count
MULTIPLES = (2, 3, 4)
DISTANCES = 64  # that are looked at, the shortest first

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Run(NamedTuple):
    """Operations that repeat: the first one, how many make a turn, and how many turns there are."""

    first: int
    period: int
    turns: int


def runs(
    tokens: Sequence[int],
    last_used: Sequence[int],
    weights: Sequence[int],
    parts: Mapping[int, int] = MappingProxyType({}),
) -> list[Run]:
    """Return runs in which operations are alike, those of the shortest turns first.

    But for what repeats itself within turns of others, which comes behind these.

    Parameters
    ----------
    tokens : sequence of int
        What each operation is; equal for those that are alike.
    last_used : sequence of int
        For each operation the last one that takes its result. A turn begins where least is handed
        on to the next.
    weights : sequence of int
        How many operations each stands for.
    parts : mapping, optional
        For operations whose results others have for them, the last of these: a turn has all.
    """
    given: Numbers = np.asarray(tokens, np.int64)
    used: Numbers = np.asarray(last_used, np.int64)
    until: Numbers = np.concatenate(([0], np.cumsum(weights)))
    apart = _handed_across(
        np.asarray(list(parts), np.int64), np.asarray([*parts.values()], np.int64), len(given)
    )
    found: list[Run] = []
    for period in _distances(given, int(until[-1])):
        alike = given[period:] == given[:-period]
        for first, length in _stretches(alike):
            if length < (TURNS - 1) * period:
                continue
            if until[first + length + period] - until[first] < OPERATIONS:
                continue
            start = _best_start(first, period, length, used, apart)
            turns = (first + length + period - start) // period
            if turns >= TURNS:
                found.append(Run(start, period, turns))
    return _outermost_first(found, len(given))


def _outermost_first(found: Sequence[Run], count: int) -> list[Run]:
    """Return runs in the order of their periods, but those within turns of others behind these.

    What is beside a run, up to a turn, may be a turn of it that lacks operations.
    """
    extents = [run.period * run.turns for run in found]
    widest = np.zeros(count, np.int64)  # the extent of the largest run there
    for (first, period, _), extent in zip(found, extents, strict=True):
        part = widest[max(first - period, 0) : first + extent + period]
        np.maximum(part, extent, out=part)

    def order(run: Run) -> tuple[int, int, int]:
        extent = run.period * run.turns
        around = int(widest[run.first : run.first + extent].max())
        return (around // extent).bit_length(), run.period, run.first

    return sorted(found, key=order)


def _distances(tokens: Numbers, weight: int) -> list[int]:
    """Return at which distances operations repeat themselves, together with those behind them."""
    if weight < OPERATIONS or len(tokens) < TURNS + CONTEXT:
        return []
    mixed = np.zeros(len(tokens) - CONTEXT + 1, np.uint64)
    with np.errstate(over="ignore"):
        for k in range(CONTEXT):
            part = tokens[k : k + len(mixed)].astype(np.uint64)
            mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + part + np.uint64(1)
    order = np.argsort(mixed, kind="stable")
    found = _often_apart(mixed, order, 1)
    # Turns may differ in what takes turns itself: each second one is like the one before that, say.
    found += [length * times for times in MULTIPLES for length in found]
    # And a turn may repeat itself in parts: then its like of the turn before is not the next one.
    for times in MULTIPLES:
        found += _often_apart(mixed, order, times)
    return list(dict.fromkeys(found))


def _often_apart(mixed: np.ndarray[Any, Any], order: Numbers, times: int) -> list[int]:
    """Return how far operations are from their like, from that so many times before, if often.

    What turns have but once, beside loops within them, is little: so it is those which reach over
    most operations in all.
    """
    same = mixed[order[times:]] == mixed[order[:-times]]
    apart = (order[times:] - order[:-times])[same]
    lengths, counts = np.unique(apart, return_counts=True)
    often = counts >= TURNS - 1  # each turn but the first one has its like so far before it
    lengths, counts = lengths[often], counts[often]
    largest = np.argsort(-lengths * counts, kind="stable")[:DISTANCES]
    return [int(length) for length in np.sort(lengths[largest])]


def _stretches(alike: np.ndarray[Any, np.dtype[np.bool_]]) -> list[tuple[int, int]]:
    """Return where truth values are true: first places and lengths."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], alike, [False])).astype(np.int8)))
    return [(int(a), int(b - a)) for a, b in edges.reshape(-1, 2)]


def _best_start(first: int, period: int, length: int, used: Numbers, parted: Numbers) -> int:
    """Return where turns are to begin: where least is handed on, and of such places the first.

    Of `parted` operations, which are counted for each place, best none.
    """
    low, high = first + period, min(first + 2 * period, first + length + 1)
    makers = np.arange(first, high)
    handed = _handed_across(
        makers - first, np.minimum(used[first:high], high) - first, high - first
    )
    costs = handed[low - first :] + parted[low:high] * (high - first)
    return first + int(np.argmin(costs))


def _handed_across(makers: Numbers, last: Numbers, count: int) -> Numbers:
    """Return for each place how many operations before it are used there, or behind it."""
    handed = np.zeros(count + 2, np.int64)
    alive = last > makers
    np.add.at(handed, makers[alive] + 1, 1)  # it is handed on across the places behind it,
    np.add.at(handed, last[alive] + 1, -1)  # up to who takes it last
    return np.cumsum(handed)[:count]
