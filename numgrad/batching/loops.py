"""Loops of mapped functions that are traced: one loop outside, for all examples.

Where all examples make the same turns the body of the loop outside does just what the body inside
does for all of them. Otherwise there is a turn as long as an example makes one; the others wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.batching.memory import Part, Stacked
from numgrad.batching.selection import Selected
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.state import modes, recording
from numgrad.graph.tensor import NO_EDGE, Tensor, fresh
from numgrad.ops.creation.ranges import arange
from numgrad.ops.movement.shape import reshape
from numgrad.ops.pointwise.selection import where

__all__ = ["loop_of_batch", "spread_carries"]


def spread_carries(
    batcher: Any, given: Sequence[Tensor], after: Sequence[Tensor], stops: bool, shared: int
) -> list[Tensor] | None:
    """Return a loop's first carries, batched where they are to be; None if they are already.

    The last ones are `shared` by all examples.
    """
    before = [batcher.part(each) for each in given[: len(after)]]
    wanted = [
        part.batched or batcher.part(each).batched for part, each in zip(before, after, strict=True)
    ]
    if stops and wanted[0]:  # some examples wait for others
        own = len(wanted) - shared
        wanted = [True] * own + wanted[own:]
    if wanted == [part.batched for part in before]:
        return None
    found: list[Tensor] = []
    for tensor, part, batched in zip(given, before, wanted, strict=False):
        if part.batched or not batched:
            found.append(tensor)
            continue
        with batcher.outside():
            every = part.every(batcher.size)
        found.append(batcher.inside(every, True))
        found[-1]._edge = gradient_edge(tensor) if tensor.requires_grad else NO_EDGE
    return found


def loop_of_batch(batcher: Any, call: Any) -> list[Tensor]:
    """Record a loop outside, and return its results inside; see `numgrad.jit.front.loops`."""
    given = [batcher.part(each) for each in call.given]
    count = None if call.turns is None else batcher.part(call.turns)
    waits = count.batched if count is not None else call.stops and given[0].batched
    body = (_Apart if waits else _Together)(batcher, call, [p.batched for p in given], count)
    with batcher.outside():
        rows = [_rows_first(part) for part in given[call.carried :]]
        carries = body.start(given[: call.carried])
        outer = batcher.outside().trace
        result = outer.recording.loop(
            outer,
            body,
            carries,
            rows,
            call.length,
            call.reverse,
            stops=call.stops,
            count=body.count,
            divided=call.divided,
            shared=call.shared,
            recorded=body.recorded(),
        )
    grows = call.turns is not None and call.length is None
    inside = [
        batcher.inside(tensor, each)
        for tensor, each in zip(result.carries[body.extra :], body.batched, strict=False)
    ]
    inside += map(batcher.inside, result.summed, body.summed)
    for tensor, each in zip(result.stacked, body.stacked, strict=True):
        if not each:
            inside.append(batcher.inside(tensor, False))
        elif grows:
            inside.append(batcher.inside_stacked(tensor))
        else:
            with batcher.outside():
                moved = tensor.movedim(1, 0)
            inside.append(batcher.inside(moved, True))
    return inside


def _rows_first(part: Part) -> Tensor:
    """Return rows for a loop outside: its turns take them along the first dim."""
    if not part.batched or type(part) is Stacked:
        return part.tensor
    return part.tensor.movedim(0, 1)


class _Body:
    """The body of a loop outside.

    Attributes
    ----------
    batched : sequence of bool
        Of which carries and rows the examples have their own.
    stacked, summed : list of bool
        The same of what the body gives.
    count : Tensor or None
        How many turns the loop outside makes, if it is not known.
    extra : int
        How many carries it has before those of the loop inside.
    """

    extra = 0

    def __init__(
        self, batcher: Any, call: Any, batched: Sequence[bool], count: Part | None
    ) -> None:
        self.batcher, self.call, self.batched = batcher, call, batched
        self.count: Any = None if count is None else count.tensor
        self.own_count: Any = count
        self.stacked: list[bool] = []
        self.summed: list[bool] = []
        self._again = batcher.reopening()

    def start(self, carries: Sequence[Part]) -> list[Tensor]:
        """Return what the carries of the loop outside begin with."""
        return [
            part.every(self.batcher.size) if batched else part.tensor
            for part, batched in zip(carries, self.batched, strict=False)
        ]

    def __call__(self, carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Any:
        raise NotImplementedError

    def recorded(self) -> Any:
        """Return the body outside as it was recorded with the one inside; None if it was not."""
        return None

    def _turn(self, carries: Sequence[Tensor], stacked: Any, summed: Any, given: Any) -> Any:
        """Return what a turn outside gives, of parts."""
        if self.call.keeps:
            stacked = [*stacked, *given]
        self.stacked = [part.batched for part in stacked]
        self.summed = [part.batched for part in summed]
        tensors = [part.tensor for part in stacked], [part.tensor for part in summed]
        return type(self.call.recorded.turn)(carries, *tensors)


class _Together(_Body):
    """The body of a loop in which all examples make the same turns."""

    def __call__(self, carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Any:
        """Make a turn for all examples."""
        batcher = self.batcher
        given = [Part(*each) for each in zip((*carries, *rows), self.batched, strict=True)]
        with self._again():
            inside = [batcher.inside(*part) for part in given]
            parts = self._parts(self.call.body(inside[: len(carries)], inside[len(carries) :]))
        return self._turn_of(parts, given[: len(carries)])

    def recorded(self) -> Any:
        """Return the body outside: what it does was recorded while that inside was."""
        inside = self.call.recorded
        given = [self.batcher.part(each) for each in inside.inputs]
        turn = self._turn_of(self._parts(inside.turn), given[: self.call.carried])
        inputs = [part.tensor for part in given]
        return inside._replace(inputs=inputs, turn=turn, takes=inside.takes or self.call.keeps)

    def _parts(self, turn: Any) -> list[list[Part]]:
        return [[self.batcher.part(each) for each in tensors] for tensors in turn]

    def _turn_of(self, parts: Sequence[Sequence[Part]], given: Sequence[Part]) -> Any:
        carries, stacked, summed = parts
        return self._turn(self.start(carries), stacked, summed, given)


class _Apart(_Body):
    """The body of a loop in which each example has its own number of turns.

    If the loop stops, it has two more carries: whether an example goes on, and the number of turns.
    If it is counted, it has one more: the number of turns before.
    """

    def __init__(
        self, batcher: Any, call: Any, batched: Sequence[bool], count: Part | None
    ) -> None:
        own = call.carried - call.shared
        super().__init__(batcher, call, [*[True] * own, *batched[own:]], count)
        self.extra = 2 if call.stops else 1

    def start(self, carries: Sequence[Part]) -> list[Tensor]:
        """Return what the carries of the loop outside begin with."""
        own = super().start(carries)
        if self.own_count is not None:
            with recording(False):
                self.count = self.own_count.tensor.amax()
        trace: Any = modes.trace
        none = fresh(trace.constant(np.zeros((), np.int64)))
        return [own[0].any(), none, *own] if self.call.stops else [none, *own]

    def __call__(self, carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Any:
        """Make a turn for the examples that have one."""
        batcher, call = self.batcher, self.call
        own = carries[self.extra :]
        given = [Part(*each) for each in zip((*own, *rows), self.batched, strict=True)]
        with recording(False):
            if call.stops:
                going = own[0]
            else:
                (number,) = carries[:1]
                turn_number = self.count - 1 - number if call.reverse else number
                going = turn_number < self.own_count.tensor
            first = _first_of(going, batcher.size)
        with self._again():
            mask = batcher.inside(going, True)
            inside = [batcher.inside(*part) for part in given]
            with Selected(batcher, mask, lambda each: _example(batcher, each, first)) as selected:
                read = [selected.read(each) for each in inside]
                turn = call.body(read[: len(own)], read[len(own) :])
            found = [
                batcher.part(where(mask, after, before) if batched else after)
                for after, before, batched in zip(turn.carries, inside, self.batched, strict=False)
            ]
            shared = set(map(id, inside[len(own) - call.shared : len(own)]))
            stacked, summed = (
                [
                    batcher.part(each if id(each) in shared else _where_selected(mask, each))
                    for each in tensors
                ]
                for tensors in (turn.stacked, turn.summed)
            )
        after = super().start(found)
        with recording(False):
            if call.stops:
                lead = [after[0].any(), carries[1] + 1]
            else:
                lead = [number + 1]
        return self._turn([*lead, *after], stacked, summed, given[: len(own)])


def _where_selected(mask: Tensor, tensor: Tensor) -> Tensor:
    """Return zeros for the examples that are not selected."""
    zero: Any = np.zeros((), tensor._array.dtype)
    trace: Any = modes.trace
    return where(mask, tensor, fresh(trace.constant(zero)))


def _first_of(mask: Tensor, size: int) -> Tensor:
    """Return the number of the first example that a mask selects."""
    numbers = where(mask, arange(size), size - 1)
    return reshape(numbers.amin(), (1,))


def _example(batcher: Any, tensor: Tensor, number: Tensor) -> Tensor:
    """Return one example, as one for all."""
    part = batcher.part(tensor)
    with batcher.outside():
        found = part.tensor
        if part.batched:
            found = reshape(found.index_select(0, number), part.shape)
    one: Tensor = batcher.inside(found, False)
    return one
