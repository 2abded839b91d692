"""Loops of mapped functions that are traced: one loop outside, for all examples.

Where all examples make the same turns the body of the loop outside does just what the body inside
does for all of them. Otherwise there is a turn as long as an example makes one; the others wait.
While a body inside is recorded, one outside is, so that neither is run again for the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from numgrad.batching.memory import Part, Stacked
from numgrad.batching.selection import Selected
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.state import modes, recording
from numgrad.graph.tensor import NO_EDGE, Tensor, fresh
from numgrad.ops.creation.ranges import arange
from numgrad.ops.movement.shape import reshape
from numgrad.ops.pointwise.selection import where

__all__ = ["body_of_batch", "loop_of_batch", "spread_carries"]


def spread_carries(
    batcher: Any,
    given: Sequence[Tensor],
    after: Sequence[Tensor],
    stops: bool,
    shared: int,
    turns: Tensor | None,
) -> list[Tensor] | None:
    """Return a loop's first carries, batched where they are to be; None if they are already.

    The last ones are `shared` by all examples.
    """
    before = [batcher.part(each) for each in given[: len(after)]]
    wanted = [
        part.batched or batcher.part(each).batched for part, each in zip(before, after, strict=True)
    ]
    counted = turns is not None and batcher.part(turns).batched
    if counted or (stops and wanted[0]):  # some examples wait for others
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


@contextmanager
def body_of_batch(batcher: Any, first: Any) -> Iterator[Any]:
    """Record a body inside, and with it what that does outside; see `FirstTurn`."""
    given = [batcher.part(each) for each in first.given]
    count = None if first.turns is None else batcher.part(first.turns)
    waits = count.batched if count is not None else first.stops and given[0].batched
    body = (_Apart if waits else _Body)(batcher, first, given, count)
    with ExitStack() as stack:
        with batcher.outside():
            trace: Any = modes.trace
            outside = stack.enter_context(trace.body(body.first_outside(given)))
        inside = body.inside(outside.read, first.required)
        body.recorded = outside, inside
        read = stack.enter_context(inside.reading(batcher))
        yield type(outside)(inside.inputs, read, body)


def loop_of_batch(batcher: Any, call: Any) -> list[Tensor]:
    """Record a loop outside, and return its results inside.

    See `numgrad.jit.front.control_flow.loops`.
    """
    body = call.recorded.note
    given = [batcher.part(each) for each in call.given]
    with batcher.outside():
        carries, rows = body.call_outside(call, given)
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
            recorded=body.recorded_outside(),
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


class _Inside(NamedTuple):
    """The inputs of a body inside.

    Attributes
    ----------
    inputs : list of Tensor
    mask : Tensor or None
        Which examples the body is for; None for all.
    first : Tensor or None
        The number of one of them.
    """

    inputs: list[Tensor]
    mask: Tensor | None = None
    first: Tensor | None = None

    def reading(self, batcher: Any) -> AbstractContextManager[list[Tensor]]:
        """Have a body run for these examples; what is entered is what it is called with."""
        if self.mask is None or self.first is None:
            return nullcontext(self.inputs)
        return self._selecting(batcher, self.mask, self.first)

    @contextmanager
    def _selecting(self, batcher: Any, mask: Tensor, first: Tensor) -> Iterator[list[Tensor]]:
        with Selected(batcher, mask, lambda each: _example(batcher, each, first)) as selected:
            yield [selected.read(each) for each in self.inputs]


class _Body:
    """The body of a loop outside, in which all examples make the same turns.

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
    recorded : tuple
        What stood for its inputs when the body inside was recorded, and for those.
    """

    extra = 0
    waits = False

    def __init__(self, batcher: Any, first: Any, given: Sequence[Part], count: Part | None) -> None:
        self.batcher, self.first = batcher, first
        self.count: Any = None if count is None else count.tensor
        self.own_count: Any = count
        self.batched = self._batched(given, first.carried - first.shared)
        self.stacked: list[bool] = []
        self.summed: list[bool] = []
        self.recorded: Any = None
        self.call: Any = None
        self._again = batcher.reopening()

    def _batched(self, given: Sequence[Part], own: int) -> list[bool]:
        return [part.batched or (self.waits and k < own) for k, part in enumerate(given)]

    def first_outside(self, given: Sequence[Part]) -> Any:
        """Return what the recorder outside is told."""
        first = self.first
        carries = self.start(given[: first.carried])
        found = [*carries, *map(_rows_first, given[first.carried :])]
        required = [modes.grad and each.requires_grad for each in found]
        return first._replace(
            given=found, carried=len(carries), required=required, turns=self.count
        )

    def call_outside(self, call: Any, given: Sequence[Part]) -> tuple[list[Tensor], list[Tensor]]:
        """Note what the loop inside is, and return what that outside is given."""
        self.call, self.batched = call, self._batched(given, call.carried - call.shared)
        rows = [_rows_first(part) for part in given[call.carried :]]
        return self.start(given[: call.carried]), rows

    def start(self, carries: Sequence[Part]) -> list[Tensor]:
        """Return what the carries of the loop outside begin with."""
        return [
            part.every(self.batcher.size) if batched else part.tensor
            for part, batched in zip(carries, self.batched, strict=False)
        ]

    def inside(self, outside: Sequence[Tensor], required: Sequence[bool] = ()) -> _Inside:
        """Return the inputs inside of those outside."""
        inputs = self._inputs(outside)
        for each, is_required in zip(inputs, required, strict=False):
            if is_required:
                each._edge = None
        return _Inside(inputs)

    def _inputs(self, outside: Sequence[Tensor]) -> list[Tensor]:
        pairs = zip(outside[self.extra :], self.batched, strict=True)
        return [self.batcher.inside(*pair) for pair in pairs]

    def __call__(self, carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Any:
        """Make a turn for the examples that have one."""
        outside, own = [*carries, *rows], len(carries) - self.extra
        with self._again():
            inside = self.inside(outside)
            with inside.reading(self.batcher) as read:
                turn = self.call.body(read[:own], read[own:])
        return self._turn(outside, turn, inside)

    def recorded_outside(self) -> Any:
        """Return the body outside: what it does was recorded while that inside was."""
        recorded, (outside, inside) = self.call.recorded, self.recorded
        found = recorded._replace(inputs=outside.inputs, note=outside.note)
        finish = recorded.finish
        if finish is None:
            return found._replace(turn=self._turn(outside.read, recorded.turn, inside))

        def finish_outside(inputs: list[Tensor]) -> Any:
            with self._again():
                turn = finish(self._inputs(inputs))
            return self._turn(inputs, turn, inside)

        return found._replace(finish=finish_outside)

    def _turn(self, outside: Sequence[Tensor], turn: Any, inside: _Inside) -> Any:
        """Return what a turn outside gives, of the inputs there and of a turn inside."""
        own = outside[self.extra :]
        given = [Part(*pair) for pair in zip(own, self.batched, strict=False)][: self.call.carried]
        with self._again():
            carries, stacked, summed = self._parts(turn, given, inside)
        after = self._after(outside, self._every(carries))
        if self.call.keeps:
            stacked = [*stacked, *given]
        self.stacked = [part.batched for part in stacked]
        self.summed = [part.batched for part in summed]
        return type(turn)(
            after, [part.tensor for part in stacked], [part.tensor for part in summed]
        )

    def _every(self, carries: Sequence[Part]) -> list[Tensor]:
        return _Body.start(self, carries)

    def _parts(self, turn: Any, given: Sequence[Part], inside: _Inside) -> Sequence[Sequence[Part]]:
        """Return what a turn inside gives; inside."""
        return [[self.batcher.part(each) for each in tensors] for tensors in turn]

    def _after(self, outside: Sequence[Tensor], carries: list[Tensor]) -> list[Tensor]:
        """Return the next carries outside, of those that are the loop's inside."""
        return carries


class _Apart(_Body):
    """The body of a loop in which each example has its own number of turns.

    If the loop stops, it has two more carries: whether an example goes on, and the number of turns.
    If it is counted, it has one more: the number of turns before.
    """

    waits = True

    def __init__(self, batcher: Any, first: Any, given: Sequence[Part], count: Part | None) -> None:
        super().__init__(batcher, first, given, count)
        self.extra = 2 if first.stops else 1

    def start(self, carries: Sequence[Part]) -> list[Tensor]:
        """Return what the carries of the loop outside begin with."""
        own = super().start(carries)
        if self.own_count is not None:
            with recording(False):
                self.count = self.own_count.tensor.amax()
        trace: Any = modes.trace
        none = fresh(trace.constant(np.zeros((), np.int64)))
        return [own[0].any(), none, *own] if self.first.stops else [none, *own]

    def inside(self, outside: Sequence[Tensor], required: Sequence[bool] = ()) -> _Inside:
        """Return the inputs inside of those outside, and which examples have a turn."""
        batcher, (inputs, *_) = self.batcher, super().inside(outside, required)
        with batcher.outside(), recording(False):
            if self.first.stops:
                going = outside[self.extra]
            else:
                number = outside[0]
                turn_number = self.count - 1 - number if self.first.reverse else number
                going = turn_number < self.own_count.tensor
            first = _first_of(going, batcher.size)
        return _Inside(inputs, batcher.inside(going, True), first)

    def _parts(self, turn: Any, given: Sequence[Part], inside: _Inside) -> Sequence[Sequence[Part]]:
        mask, part = inside.mask, self.batcher.part
        assert mask is not None
        carries = [
            part(where(mask, after, self.batcher.inside(*before)) if before.batched else after)
            for after, before in zip(turn.carries, given, strict=True)
        ]
        own = len(given) - self.call.shared
        shared = set(map(id, inside.inputs[own : len(given)]))
        stacked, summed = (
            [part(each if id(each) in shared else _where_selected(mask, each)) for each in tensors]
            for tensors in (turn.stacked, turn.summed)
        )
        return [carries, stacked, summed]

    def _after(self, outside: Sequence[Tensor], carries: list[Tensor]) -> list[Tensor]:
        with recording(False):
            lead = [carries[0].any(), outside[1] + 1] if self.first.stops else [outside[0] + 1]
        return [*lead, *carries]


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
