"""Where generators of random numbers are while a function is traced.

The state of a generator is a value like others: an input of the traced function, which each draw
takes and gives another for, and a result at the end, which the generator goes on from. Loops hand
it on from turn to turn; where a function is computed again for its gradients, it begins where it
began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple
from weakref import proxy

import numpy as np

from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import TraceError
from numgrad.graph.tensor import Tensor
from numgrad.ops.creation.generator import Generator
from numgrad.runtime.frames import where_user_is

__all__ = ["States", "drawing_alike", "drawing_from", "hold", "let_go"]

Known = dict[Generator, Any]  # generators and arrays: their states


class _Frame(NamedTuple):
    known: Known
    is_body: bool


class States:
    """The states of generators, in the function that is traced and in bodies of loops in it.

    Parameters
    ----------
    tracer : Tracer
        Its ``first_state()`` and ``state_of_body()`` return the array of a state that is not known
        yet: at the beginning of the function, and of a body of a loop. It has these states itself,
        so it is not kept by them: a cycle would keep the trace until Python looks for one.
    """

    def __init__(self, tracer: Any) -> None:
        self._tracer = proxy(tracer)
        self._frames = [_Frame({}, True)]

    @property
    def inputs(self) -> list[Generator]:
        """The generators whose states are inputs of the function, in their order."""
        return list(self._frames[0].known)

    @property
    def in_scope(self) -> list[Generator]:
        """The generators whose states are known here: in this body, or in the function itself.

        What others are is not asked for: a body that is recorded again, for gradients, has not been
        given more than it was at first.
        """
        found: dict[Generator, None] = {}
        for frame in reversed(self._frames):
            found |= dict.fromkeys(frame.known)
            if frame.is_body:
                break
        return list(found)

    def of(self, generator: Generator) -> Any:
        """Return the array that is the state of a generator now."""
        known = self._frame_of(generator).known
        if generator not in known:
            is_first = known is self._frames[0].known
            state = self._tracer.first_state if is_first else self._tracer.state_of_body
            known[generator] = state()
        return known[generator]

    def set(self, generator: Generator, state: Any) -> None:
        """Have a generator go on from another state."""
        self.of(generator)
        self._frame_of(generator).known[generator] = state

    def now(self) -> Known:
        """Return the states that are known here."""
        return dict(self._frames[-1].known)

    @contextmanager
    def body(self, given: Known) -> Iterator[Known]:
        """Record the body of a loop, given states; what is yielded has those behind it in the end.

        Generators that it was given no state of are found among them, too.
        """
        known = dict(given)
        self._frames.append(_Frame(known, True))
        try:
            yield known
        finally:
            self._frames.pop()

    @contextmanager
    def replayed(self, given: Known) -> Iterator[None]:
        """Have some generators begin anew, and then go on as if nothing had been drawn."""
        self._frames.append(_Frame(dict(given), False))
        try:
            yield
        finally:
            self._frames.pop()

    def _frame_of(self, generator: Generator) -> _Frame:
        for frame in reversed(self._frames):
            if frame.is_body or generator in frame.known:
                return frame
        return self._frames[0]


@contextmanager
def drawing_from(given: Mapping[Generator, Any]) -> Iterator[None]:
    """Have generators draw from given states, and leave them where they were.

    Whatever is open: a trace, a batch, or nothing.
    """
    trace: Any = modes.trace
    if trace is None:
        with ExitStack() as held:
            for generator, state in given.items():
                held.callback(generator.restore, generator.snapshot())
                generator.set_words(np.asarray(_array(state)))
            yield
        return
    if hasattr(trace, "states"):
        with trace.states.replayed({g: _traced(trace, state) for g, state in given.items()}):
            yield
        return
    parts = {g: trace.part_of(_array(state)).tensor for g, state in given.items()}
    with _in_common(trace), ExitStack() as outside:
        with trace.outside():
            outside.enter_context(drawing_from(parts))
        try:
            yield
        finally:
            with trace.outside():
                outside.close()


@contextmanager
def drawing_alike(states: Sequence[Tensor], tracer: Any) -> Iterator[list[Any]]:
    """Have all examples of batches draw the same, but for a tracer's batch and those around it.

    What is yielded are arrays of the trace.
    """
    trace: Any = modes.trace
    if hasattr(trace, "states"):
        yield [_array(state) for state in states]
        return
    parts = [trace.part(state).tensor for state in states]
    is_known = trace is tracer
    with nullcontext() if is_known else _in_common(trace), ExitStack() as outside:
        with trace.outside():
            around = modes.trace if is_known else tracer
            arrays = outside.enter_context(drawing_alike(parts, around))
        yield arrays


@contextmanager
def _in_common(batcher: Any) -> Iterator[None]:
    """Draw once for a batch whose cotangents differ, not what was computed before them."""
    randomness, batcher.randomness = batcher.randomness, "same"
    try:
        yield
    finally:
        batcher.randomness = randomness


def hold(generators: Sequence[Generator]) -> list[Any]:
    """Take the locks of generators, in one order whoever does, and return them."""
    locks = sorted([each._numpy.bit_generator.lock for each in generators], key=id)
    if len(set(map(id, generators))) < len(generators):
        raise TraceError(
            f"{where_user_is()}jit: a generator of random numbers is given to a compiled function "
            "that draws from it by another way, too, as another argument or from outside: have it "
            "come by one way"
        )
    for lock in locks:
        lock.acquire()
    return locks


def let_go(locks: Sequence[Any]) -> None:
    """Release locks."""
    for lock in locks:
        lock.release()


def _array(state: Any) -> Any:
    return state._array if isinstance(state, Tensor) else state


def _traced(trace: Any, state: Any) -> Any:
    array = _array(state)
    return trace.captured(array) if isinstance(array, np.ndarray) else array
