"""Loops that keep some of their carries: the first run, and derivatives of parts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from numgrad.func.control.checkpoints import Marks, Policy, binomial_marks
from numgrad.func.control.replayed import (
    Captured,
    Leaves,
    Map,
    apply,
    hang,
    moves,
    pulled,
    push_through,
    record,
)
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.func_levels import StandIn
from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.modes.state import modes
from numgrad.graph.node import next_sequence
from numgrad.graph.tensor import NO_EDGE, fresh, is_inference
from numgrad.ops.creation.generator import default_generator
from numgrad.ops.movement.joining import cat, stack

__all__ = ["keeps", "replay"]

# Takes a carry and a row, returns the next carry and what it gives.
Step = Callable[[Leaves, Leaves], tuple[Leaves, Leaves]]


class _Mark(NamedTuple):
    """What is kept before a step.

    Attributes
    ----------
    step : int
    carry : list of tensor or None
    random : Any
        Where the generator of random numbers was; None if no step draws any.
    """

    step: int
    carry: Leaves
    random: Any


class _Loop(NamedTuple):
    """What all parts of a loop have in common.

    Attributes
    ----------
    step : callable
        Takes a carry, a row, and what is the same in each step.
    captured : Captured
    widths : tuple of int
        How many leaves the carry has, the rows, and what a step gives.
    """

    step: Callable[[Leaves, Leaves, Leaves], tuple[Leaves, Leaves]]
    captured: Captured
    widths: tuple[int, int, int]


def keeps() -> bool:
    """Return whether a loop with checkpoints has anything to keep.

    While tangents are computed beside the results nothing is; a recorder sees the loop itself.
    """
    return modes.grad and modes.trace is None and modes.dual is None


def replay(
    step: Step,
    carry: Leaves,
    columns: Leaves,
    policy: Policy,
    count: int | Callable[[Leaves], bool],
) -> tuple[Leaves, Leaves]:
    """Run a loop without recording it, keep carries as a policy says, and record one node.

    Parameters
    ----------
    step : callable
    carry : list of tensor or None
    columns : list of tensor or None
        Their rows are handed to the steps.
    policy : Every, Binomial, "sqrt" or "log"
    count : int or callable
        The number of steps, or whether to go on from a carry.

    Returns
    -------
    carry, stacked
        The last carry, and what the steps gave, stacked.
    """
    captured = Captured()
    marks = Marks(policy, count if isinstance(count, int) else None)
    edges = [gradient_edge(leaf) if moves(leaf) else NO_EDGE for leaf in (*carry, *columns)]
    moving = [edge is not NO_EDGE for edge in edges]
    row_moving = moving[len(carry) :]
    plain = [None if column is None else column.detach() for column in columns]
    current = [None if leaf is None else hang(leaf, NO_EDGE) for leaf in carry]
    collected: list[Leaves | None] = []
    gave_moving: list[bool] = []
    before = default_generator.snapshot()
    done = 0
    while done < count if isinstance(count, int) else _goes_on(count, current):
        if marks.wants(done):
            marks.keep(done, (current, default_generator.snapshot()))
        start = next_sequence()
        given = _watched([*current, *_rows(plain, done)], [*moving[: len(carry)], *row_moving])
        versions = [_version(leaf) for leaf in given]
        hooks, modes.saved_hooks = modes.saved_hooks, ()  # what it saves is not kept
        try:
            after, gave = step(given[: len(carry)], given[len(carry) :])
        finally:
            modes.saved_hooks = hooks
        for leaf, version in zip(given, versions, strict=True):
            if _version(leaf) != version:
                raise RuntimeError(
                    "a step of a loop with checkpoints writes to its carry or its row in place, so "
                    "that it could not run again: clone it first"
                )
        places = [gradient_edge(leaf) if moves(leaf) else NO_EDGE for leaf in (*after, *gave)]
        captured.note(places, start)
        moving = [place is not NO_EDGE for place in places]
        own = moving[len(carry) :]
        gave_moving = own if not gave_moving else [a or b for a, b in zip(own, gave_moving)]  # noqa: B905 - hot
        current = [None if leaf is None else hang(leaf, NO_EDGE) for leaf in after]
        _collect(collected, [None if leaf is None else hang(leaf, NO_EDGE) for leaf in gave])
        done += 1
    captured.settle(done)
    with no_grad():
        stacked = _stacked(collected)
    results = [*current, *stacked]
    if not done or all(edge is NO_EDGE for edge in (*edges, *captured.edges)):
        return (current, stacked) if done else (carry, stacked)
    draws = default_generator.snapshot() != before
    loop = _Loop(
        lambda carry, row, _: step(carry, row),
        captured,
        (len(carry), len(columns), len(stacked)),
    )
    kept = [_Mark(k, state, random if draws else None) for k, (state, random) in marks.kept]
    positions = [mark.step for mark in kept]
    carries = marks.carries(done)
    range_ = _Range(loop, 0, done, carries, kept[0].random, True, positions, kept)
    found = record(
        range_, [*carry, *columns], edges, results, [*moving[: len(carry)], *gave_moving]
    )
    return found[: len(carry)], found[len(carry) :]


def _version(leaf: Any) -> int:
    return 0 if leaf is None or is_inference(leaf) else leaf._version


def _goes_on(condition: Callable[[Leaves], bool], carry: Leaves) -> bool:
    with no_grad():
        return condition(carry)


def _watched(leaves: Leaves, moving: list[bool]) -> Leaves:
    """Return leaves that record what is done with those that are moving."""
    return [
        hang(leaf, (StandIn((NO_EDGE,)), 0)) if moves_on else leaf
        for leaf, moves_on in zip(leaves, moving, strict=True)
    ]


def _rows(columns: Leaves, number: int) -> Leaves:
    return [None if column is None else column[number] for column in columns]


def _collect(collected: list[Leaves | None], gave: Leaves) -> None:
    """Add what a step gives to what those before it gave; nothing is kept where that is None."""
    if not collected:
        collected += [None if leaf is None else [] for leaf in gave]
    for parts, leaf in zip(collected, gave, strict=True):
        if parts is not None:
            parts.append(leaf)


def _stacked(collected: list[Leaves | None]) -> Leaves:
    return [None if parts is None else stack(parts) for parts in collected]


class _Range(Map):
    """A part of a loop: from its carry and rows (and constants) to the next carry and its gifts.

    Parameters
    ----------
    loop : _Loop
    start, stop : int
        Which steps.
    carries : int
        How many carries may be kept while gradients are computed, the one before it included;
        with 0, what the steps save is kept instead.
    random : Any
        Where the generator was before it.
    gives : bool
        Whether what the steps give is wanted.
    positions : list of int, optional
        Where to divide it, beginning with `start`; otherwise that follows from `carries`.
    marks : list of _Mark, optional
        The carries at these positions, if they are kept.
    """

    def __init__(
        self,
        loop: _Loop,
        start: int,
        stop: int,
        carries: int,
        random: Any,
        gives: bool,
        positions: list[int] | None = None,
        marks: list[_Mark] | None = None,
    ) -> None:
        self._loop = loop
        self.captured = loop.captured
        self._start = start
        self._stop = stop
        self._carries = carries
        self._random = random
        self._gives = gives
        self._positions = positions
        self._marks = marks
        self.random_after: Any = None

    def __call__(self, inputs: Leaves) -> Leaves:
        """Make the steps."""
        carry, columns, constants = self._split(inputs)
        step = self._loop.step
        rows = [None if column is None else column.unbind(0) for column in columns]
        collected: list[Leaves | None] = []
        now = None
        if self._random is not None:
            now = default_generator.snapshot()
            default_generator.restore(self._random)
        try:
            for number in range(self._stop - self._start):
                row = [None if each is None else each[number] for each in rows]
                carry, gave = step(carry, row, constants)
                if self._gives:
                    _collect(collected, gave)
            if now is not None:
                self.random_after = default_generator.snapshot()
        finally:
            if now is not None:
                default_generator.restore(now)
        return [*carry, *_stacked(collected)] if self._gives else carry

    def _split(self, inputs: Leaves) -> tuple[Leaves, Leaves, Leaves]:
        width, rows, _ = self._loop.widths
        return inputs[:width], inputs[width : width + rows], inputs[width + rows :]

    def _part(self, start: int, stop: int, carries: int, random: Any, gives: bool) -> _Range:
        return _Range(self._loop, start, stop, carries, random, gives)

    def pull(self, inputs: Leaves, cotangents: Leaves) -> Leaves:
        """Go back through the steps, part by part."""
        if self._positions is None and (not self._carries or self._stop - self._start == 1):
            return super().pull(inputs, cotangents)
        carry, columns, constants = self._split(inputs)
        width = len(carry)
        bounds = self._bounds()
        sizes = [stop - start for start, stop in pairwise(bounds)]
        parts, given = _cut(columns, sizes), _cut(cotangents[width:], sizes)
        marks = self._last_to_first(carry, columns, parts, constants, bounds)
        back = cotangents[:width]
        totals: Leaves = [None] * (len(constants) + len(self.captured.edges))
        pieces: list[Leaves] = []
        for number, mark in zip(reversed(range(len(sizes))), marks, strict=True):
            carries = self._carries
            if self._positions is None and carries > 1:  # those before this part are kept, too
                carries -= number
            start, stop = bounds[number], bounds[number + 1]
            part = self._part(start, stop, carries, mark.random, self._gives)
            found = pulled(part, [*mark.carry, *parts[number], *constants], [*back, *given[number]])
            back = found[:width]
            pieces.append(found[width : width + len(columns)])
            rest = found[width + len(columns) :]
            totals = [_sum(total, each) for total, each in zip(totals, rest, strict=True)]
        pieces.reverse()
        return [*back, *_joined(pieces, parts), *totals]

    def _bounds(self) -> list[int]:
        """Return where the parts begin, and where the last one ends."""
        if self._positions is not None:
            return [*self._positions, self._stop]
        if self._carries == 1:  # nothing may be kept on the way: step by step, from the beginning
            return list(range(self._start, self._stop + 1))
        return [*binomial_marks(self._start, self._stop, self._carries), self._stop]

    def _last_to_first(
        self,
        carry: Leaves,
        columns: Leaves,
        parts: list[Leaves],
        constants: Leaves,
        bounds: list[int],
    ) -> Iterator[_Mark]:
        """Yield the mark before each part; what was yielded is kept no longer."""
        if self._marks is not None and not modes.grad:
            yield from reversed(self._marks)
            return
        first = _Mark(self._start, carry, self._random)
        if self._positions is None and self._carries == 1:
            for number in reversed(range(1, len(parts))):
                before = [None if c is None else c[:number] for c in columns]
                yield self._after(first, bounds[number], before, constants)
            yield first
            return
        marks = [first]
        for number in range(len(parts) - 1):
            marks.append(self._after(marks[-1], bounds[number + 1], parts[number], constants))
        while marks:
            yield marks.pop()

    def _after(self, mark: _Mark, stop: int, columns: Leaves, constants: Leaves) -> _Mark:
        """Return the mark that is reached from another one."""
        part = self._part(mark.step, stop, self._carries, mark.random, False)
        return _Mark(stop, apply(part, [*mark.carry, *columns, *constants]), part.random_after)

    def push(self, inputs: Leaves, tangents: Leaves) -> Leaves:
        """Make the steps with tangents: a loop over pairs, which keeps as few carries as this."""
        carry, columns, constants = self._split(inputs)
        moved, moved_columns, moved_constants = self._split(tangents)
        width, rows, gifts = self._loop.widths
        single = _Step(self._loop)

        def step(pair: Leaves, row: Leaves, fixed: Leaves) -> tuple[Leaves, Leaves]:
            results, found = push_through(
                single,
                [*pair[:width], *row[:rows], *fixed[: len(constants)]],
                [*pair[width:], *row[rows:], *fixed[len(constants) :]],
            )
            found = [_or_zeros(*each) for each in zip(found, results, strict=True)]
            after = [*results[:width], *found[:width]]
            return after, [*results[width:], *found[width:]]

        loop = _Loop(step, self.captured, (2 * width, 2 * rows, 2 * gifts))
        range_ = _Range(
            loop,
            self._start,
            self._stop,
            self._carries,
            self._random,
            self._gives,
            self._positions,
        )
        moved = [_or_zeros(*each) for each in zip(moved, carry, strict=True)]
        found = apply(
            range_,
            [*carry, *moved, *columns, *moved_columns, *constants, *moved_constants],
        )
        return [*found[width : 2 * width], *found[2 * width + gifts :]]


class _Step(Map):
    """One step of a loop."""

    def __init__(self, loop: _Loop) -> None:
        self._loop = loop
        self.captured = loop.captured

    def __call__(self, inputs: Leaves) -> Leaves:
        width, rows, _ = self._loop.widths
        carry, row, constants = inputs[:width], inputs[width:], inputs[width + rows :]
        after, gave = self._loop.step(carry, row[:rows], constants)
        return [*after, *gave]


def _or_zeros(tangent: Any, like: Any) -> Any:
    """Return a tangent, zeros where there is none but could be."""
    if tangent is not None or not moves(like):
        return tangent
    return fresh(np.zeros(like._array.shape, like._array.dtype))


def _sum(total: Any, gradient: Any) -> Any:
    return gradient if total is None else total if gradient is None else total + gradient


def _cut(columns: Leaves, sizes: list[int]) -> list[Leaves]:
    """Return the rows of each part."""
    cut = [[None] * len(sizes) if c is None else c.split_with_sizes(sizes) for c in columns]
    return [[parts[number] for parts in cut] for number in range(len(sizes))]


def _joined(pieces: list[Leaves], parts: list[Leaves]) -> Leaves:
    """Return the gradients of columns, given those of each part's."""
    joined: Leaves = []
    for column in range(len(parts[0])):
        found = [piece[column] for piece in pieces]
        if all(gradient is None for gradient in found):
            joined.append(None)
            continue
        rows = [part[column] for part in parts]
        joined.append(cat([_or_zeros(*each) for each in zip(found, rows, strict=True)]))
    return joined
