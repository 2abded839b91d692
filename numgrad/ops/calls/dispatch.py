"""The one call path of public functions: tables of calls, from their keys to what runs them.

A function that reads arguments and applies primitives has a table, which the lines in front of it
look into (`numgrad.ops.signatures.remembered_source`) by what matters about a call
(`numgrad.ops.calls.keys`). A call whose key was met before runs the straight-line Python that was
made for it (`numgrad.ops.calls.programs`, and of writes `numgrad.ops.calls.write_programs`): array
functions, wraps, nodes. Every other call goes the long way, through all checks: the first two of a
key, and all calls while something is open that has to see them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.graph.tensor import Tensor
from numgrad.ops.calls.keys import NAMES, typed
from numgrad.ops.calls.programs import compile_call
from numgrad.ops.calls.steps import Steps, note_steps
from numgrad.ops.calls.table import Table
from numgrad.ops.calls.write_programs import compile_write

__all__ = ["Calls", "forget_calls"]

# The call of a key for which there will be a program; with floats in the key, that may all differ.
_SECOND, _OFTEN = 2, 32
_NO_KEYWORDS: dict[str, Any] = {}
_TABLES: WeakSet[Calls] = WeakSet()


def forget_calls() -> None:
    """Forget all calls: what a name of an operation stands for has changed."""
    for calls in _TABLES:
        calls.programs.clear()
        calls.seen.clear()


def _go_the_long_way(*_: Any) -> None:
    """Stand in for the program of a call that has none."""


class Calls:
    """The calls of a function that are remembered.

    Parameters
    ----------
    function : callable
        The long way.
    sequence : bool
        Whether the tensors are given as one sequence.
    elementwise : bool
        Whether it applies one primitive to just its arguments, of which some are numbers, and its
        keys tell the default dtype.
    numbers : bool
        Whether some arguments are numbers that its keys tell the type of alone: operands of the one
        primitive that it applies to them.
    writes : bool
        Whether it writes to its first argument.

    Attributes
    ----------
    programs : Table
        For each key what runs the call, or returns None if it has to go the long way.
    seen : Table
        For keys that have no program how often they were met: calls may differ every time.
    """

    __slots__ = (
        "__weakref__",
        "elementwise",
        "function",
        "numbers",
        "programs",
        "seen",
        "sequence",
        "writes",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        sequence: bool = False,
        *,
        elementwise: bool = False,
        numbers: bool = False,
        writes: bool = False,
    ) -> None:
        self.function = function
        self.sequence, self.elementwise = sequence, elementwise
        self.numbers, self.writes = numbers, writes
        self.programs = Table()
        self.seen = Table()
        _TABLES.add(self)

    @property
    def names(self) -> dict[str, Any]:
        """What the lines of `numgrad.ops.calls.keys` name."""
        return {**NAMES, "find": self.programs.get, "meet": self.meet}

    def meet(
        self,
        key: Any,
        tensors: Sequence[Any],
        statics: tuple[Any, ...],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any] = _NO_KEYWORDS,
        constants: Sequence[bool] = (),
    ) -> Any:
        """Run a call whose key has no program.

        Parameters
        ----------
        key
            Where the call is looked up.
        tensors, statics
            What programs are given: tensors, and what may be one; and the other arguments.
        arguments, keywords
            All of them, for the function.
        constants
            Of what programs are given which are no tensors now, and stand in the key.
        """
        function = self.function
        if True in constants:
            statics = (*statics, *itertools.compress(tensors, constants))
        if not self._is_met_often(key, statics):
            return function(*arguments, **keywords)
        if self.sequence and len(set(map(id, tensors))) < len(tensors):
            result = function(*arguments, **keywords)
            apart = _told_apart(tensors)
            arguments = tuple([apart if each is tensors else each for each in arguments])
            tensors = apart
            noted, steps = note_steps(function, *arguments, **keywords)
        else:
            result, steps = note_steps(function, *arguments, **keywords)
            noted = result
        given = range(len(tensors))
        in_order = [at for at in given if not constants or not constants[at]]
        applies_one = _takes_just(steps, tensors, in_order)
        if not applies_one and _takes_just(steps, tensors, given):  # constants, too
            in_order, applies_one = [*given], True
        program = self._compile(tensors, steps, noted, in_order, applies_one)
        self.programs.keep(key, program or (function if self.elementwise else _go_the_long_way))
        if noted is result:
            steps.pack()
        return result

    def _is_met_often(self, key: Any, statics: tuple[Any, ...]) -> bool:
        """Count a call; return whether a program for its key would pay, if there can be one."""
        times = self.seen.keep(key, self.seen.get(key, 0) + 1)
        if times < _SECOND or (times < _OFTEN and float in map(type, statics)):
            return False
        return _is_remembered(statics)

    def _compile(
        self,
        tensors: Sequence[Any],
        steps: Steps,
        result: Any,
        in_order: Sequence[int],
        applies_one: bool,
    ) -> Callable[..., Any] | None:
        """Return what runs calls like one that came to these steps; None if nothing can."""
        holds = not self.elementwise and _follows_default_dtype(tensors, steps)
        operands = [tensors[at] for at in in_order]
        if self.numbers and not applies_one and not all(isinstance(e, Tensor) for e in operands):
            return None  # of numbers the types alone are known
        if isinstance(result, np.ndarray):  # made of no tensor
            return _maker_of(result, steps)
        is_told = self.sequence or self.elementwise or self.numbers
        only = in_order if applies_one and is_told else None
        if self.writes:
            return compile_write(tensors, steps, only, default_dtype=holds)
        if steps.write is not None:
            return None
        return compile_call(
            tensors,
            steps,
            result,
            sequence=self.sequence,
            in_order=only,
            default_dtype=holds,
        )


def _told_apart(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors that are all different: another one that is alike for what is there again."""
    found: dict[int, Tensor] = {}
    for each in tensors:
        if id(each) in found:
            twin: Tensor = Tensor.__new__(Tensor)
            vars(twin).update(vars(each))
            twin._array, twin._retains_grad = each._array.view(), False
            each = twin
        found[id(each)] = each
    return [*found.values()]


def _maker_of(result: Any, steps: Steps) -> Callable[[], Any] | None:
    """Return what makes an array like one that was made of no tensor; None if nothing can."""
    if steps.steps:
        (first, *others) = steps.steps
        is_made = not others and not first.read and first.written[0] is result
        return first.run if is_made else None
    return result.copy().copy if result.size <= FEW_ELEMENTS else None


def _is_remembered(statics: tuple[Any, ...]) -> bool:
    """Whether calls with such arguments are remembered."""
    try:
        typed(statics)
    except TypeError:
        return False
    return True


def _takes_just(steps: Steps, tensors: Sequence[Any], in_order: Sequence[int]) -> bool:
    """Whether there is one step, which takes just these of the tensors (or what stands for one)."""
    if len(steps.steps) != 1:
        return False
    if steps.write is not None:
        tensors = (steps.write.stand_in, *tensors[1:])
    return [*map(id, steps.steps[0].operands)] == [id(tensors[at]) for at in in_order]


def _follows_default_dtype(tensors: Any, steps: Steps) -> bool:
    """Whether floating point numbers meet others, or are made of them: their dtype can be set."""
    given = {each._array.dtype for each in tensors if isinstance(each, Tensor)}
    made = {each._array.dtype for each in steps.constants if each._array.dtype.kind in "fc"}
    if made - given:
        return True
    if any(each.kind in "fc" for each in given):
        return False
    return any(
        output._array.dtype.kind in "fc" or any(isinstance(each, float) for each in step.operands)
        for step in steps.steps
        for output in step.outputs
    )
