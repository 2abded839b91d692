"""Record what `numgrad.func` has for control flow: all of it as loops.

A branch is a loop of one turn or none, and of several branches exactly one has its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.modes.state import recording
from numgrad.graph.node import next_sequence
from numgrad.graph.tensor import Tensor, wrap
from numgrad.jit.front.control_flow.body_state import BodyState
from numgrad.jit.front.control_flow.loop_calls import FirstTurn, Recorded, Turn
from numgrad.jit.front.control_flow.loops import drawing_for, record_loop

__all__ = ["RECORDING", "Recording", "record_scan", "record_switch", "record_while"]

Leaves = list[Any]


def record_scan(
    tracer: Any,
    step: Callable[[Leaves, Leaves], tuple[Leaves, Leaves]],
    carry: Leaves,
    columns: Leaves,
    length: int,
    reverse: bool,
    divided: bool = False,
) -> tuple[Leaves, Leaves]:
    """Record a loop over rows; see `numgrad.graph.open_recorder.LoopRecorder.scan`."""
    results: list[Leaves] = []
    state = BodyState([step])

    def turn(current: Sequence[Tensor], row: Sequence[Tensor]) -> Turn:
        after, ys = state.run(step, _filled(carry, current), _filled(columns, row))
        results[:] = [ys]
        return Turn(_present(after), _present(ys))

    given = _present(carry), _present(columns)
    found = record_loop(tracer, turn, *given, length, reverse, divided=divided)
    return _filled(carry, found.carries), _filled(results[0], found.stacked)


def record_while(
    tracer: Any,
    predicate: Callable[[Leaves], Any],
    step: Callable[[Leaves], Leaves],
    carry: Leaves,
) -> Leaves:
    """Record a loop without a limit; see `numgrad.graph.open_recorder.LoopRecorder.while_loop`."""

    def flag(current: Leaves) -> Tensor:
        found = predicate(current)
        if not isinstance(found, Tensor):
            return _constant(tracer, np.asarray(found, np.bool_))
        return found if not found._array.ndim else found.reshape(())

    state = BodyState([predicate, step])

    def turn(carries: Sequence[Tensor], rows: Sequence[Tensor]) -> Turn:
        following = state.run(step, _filled(carry, carries[2:]))
        with recording(False):
            goes_on = state.run(flag, following)
            return Turn([goes_on, carries[1] + one, *_present(following)], ())

    zero, one = (_constant(tracer, np.asarray(number, np.int64)) for number in (0, 1))
    with recording(False):
        goes_on = flag(carry)
    found = record_loop(tracer, turn, [goes_on, zero, *_present(carry)], (), None, stops=True)
    return _filled(carry, found.carries[2:])


def record_switch(
    tracer: Any,
    index: Tensor,
    branches: Sequence[Callable[[Leaves], Leaves]],
    operands: Leaves,
) -> Leaves:
    """Record branches; see `numgrad.graph.open_recorder.LoopRecorder.switch`."""
    state = BodyState(branches)
    with recording(False):
        which = index.reshape(())
        if which._array.dtype == np.bool_:
            flags: list[Any] = [which.logical_not(), which]
        else:
            which = which.clamp(0, len(branches) - 1)
            flags = [which == k for k in range(len(branches))]
    no = _constant(tracer, np.zeros((), np.bool_))
    zero, one = (_constant(tracer, np.asarray(number, np.int64)) for number in (0, 1))
    bodies = [
        _recorded_branch(tracer, [flag, zero], [no, one], state, branch, operands)
        for flag, branch in zip(flags, branches, strict=True)
    ]
    like = bodies[0][0]
    arrays = [each._array for each in _present(like)]
    found: Sequence[Tensor] = [_constant(tracer, np.zeros(a.shape, a.dtype)) for a in arrays]
    for flag, branch, (_, recorded) in zip(flags, branches, bodies, strict=True):

        def turn(
            carries: Sequence[Tensor],
            rows: Sequence[Tensor],
            branch: Callable[[Leaves], Leaves] = branch,
        ) -> Turn:
            return Turn([no, one, *_present(state.run(branch, operands))], ())

        given = [flag, zero, *found]
        after = record_loop(tracer, turn, given, (), 1, stops=True, recorded=recorded)
        found = after.carries[2:]
    return _filled(like, found)


def _recorded_branch(
    tracer: Any,
    given: Sequence[Tensor],
    after: Sequence[Tensor],
    state: BodyState,
    branch: Callable[[Leaves], Leaves],
    operands: Leaves,
) -> tuple[Leaves, Recorded | None]:
    """Return what a branch returns, and its body; None if it draws random numbers.

    `given` and `after` are the first carries, before the only turn and after it.
    """
    start = next_sequence()
    first = FirstTurn(given, len(given), [False] * len(given), stops=True)
    with (
        tracer.body(first) as (inputs, _, note),
        drawing_for(tracer).states.body({}) as drawn,
    ):
        leaves = state.run(branch, operands)
    if drawn:
        return leaves, None
    turn = Turn([*after, *_present(leaves)], ())
    return leaves, Recorded(inputs, turn, start, note, lambda _: turn)


def _constant(tracer: Any, array: np.ndarray[Any, Any]) -> Tensor:
    return wrap(tracer.constant(array))


def _present(leaves: Leaves) -> list[Tensor]:
    return [leaf for leaf in leaves if leaf is not None]


def _filled(likes: Leaves, found: Sequence[Tensor]) -> Leaves:
    """Return what was found, with None where it is in `likes`."""
    rest = iter(found)
    return [None if like is None else next(rest) for like in likes]


class Recording(NamedTuple):
    """What records control flow, for a tracer, or for batches of what one traces."""

    scan: Callable[..., tuple[Leaves, Leaves]] = record_scan
    while_loop: Callable[..., Leaves] = record_while
    switch: Callable[..., Leaves] = record_switch
    loop: Callable[..., Turn] = record_loop


RECORDING = Recording()
