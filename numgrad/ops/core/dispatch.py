"""The one call path of public functions: a key of what matters about a call, and what it leads to.

A function that reads arguments and applies primitives has a table, which the lines in front of it
look into (`numgrad.ops.signatures.declared_source`). The key of a call holds the dtypes, shapes and
strides of its tensors, which of them require grad, and the arguments as they were written, with
their types; of a tensor that the call writes to also what decides whether it may be, and where its
history goes on. A call whose key was met before runs the straight-line Python that was made for it
(`numgrad.ops.core.programs`, and of writes `numgrad.ops.core.write_programs`): array functions,
wraps, nodes. Every other call goes the long way, through all checks: the first two of a key, and
all calls while something is open that has to see them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from numgrad.base import dtypes
from numgrad.base.tuning import FEW_ELEMENTS, REMEMBERED_CALLS
from numgrad.graph.modes import call_interceptors, interceptors, modes
from numgrad.graph.tensor import NO_EDGE, Tensor, refresh_view
from numgrad.ops.core.catalogue import replaced
from numgrad.ops.core.programs import compile_call
from numgrad.ops.core.steps import Steps, note_steps
from numgrad.ops.core.write_programs import compile_write

__all__ = [
    "Calls",
    "program_lines",
    "tensor_lines",
    "told_number",
    "typed",
    "written_condition",
]

# What an argument of a call that is remembered can be, beside sequences of these.
_STATIC = {int, bool, type(None), str, type(...), dtypes.dtype, type}
# The call of a key for which there will be a program; with floats in the key, that may all differ.
_SECOND, _OFTEN = 2, 32
_MOST_TENSORS = 16  # of a sequence: the source for more of them is not worth its memory
_IN_EVERY_FLOAT = 65504.0
_NO_KEYWORDS: dict[str, Any] = {}


def typed(value: Any) -> Any:
    """Return what stands for an argument in a key: equal to others of the same type alone.

    Raises
    ------
    TypeError
        If calls with such an argument are not remembered.

    Examples
    --------
    >>> typed((1, True)) == typed((1, 1)), typed([2]) == typed((2,))
    (False, False)
    """
    kind = type(value)
    if kind in _STATIC:
        return (kind, value)
    if kind is tuple or kind is list:
        return (kind, *[typed(each) for each in value])
    if kind is slice:
        return (kind, typed(value.start), typed(value.stop), typed(value.step))
    if kind is float and value == value:
        return (kind, value or repr(value))  # 0.0 and -0.0 would be one key
    raise TypeError(f"calls with {kind.__name__} are not remembered")


def facts_of(tensors: Any) -> Any:
    """Return what of a key is about a tuple or list of tensors; None if it is anything else."""
    if (type(tensors) is not tuple and type(tensors) is not list) or (
        not 0 < len(tensors) <= _MOST_TENSORS
    ):
        return None
    facts: list[Any] = []
    needs, bit = 0, 1
    for tensor in tensors:
        if type(tensor) is not Tensor:
            return None
        if tensor._base is not None:
            refresh_view(tensor)
        array = tensor._array
        facts += (array.shape, array.strides, array.dtype)
        if tensor._edge is not NO_EDGE:
            needs |= bit
        bit <<= 1
    facts.append(needs if modes.grad else -needs)
    return tuple(facts)


_TABLES: WeakSet[Calls] = WeakSet()


def _forget() -> None:
    """Forget all calls: what a name of an operation stands for has changed."""
    for calls in _TABLES:
        calls.programs.clear()
        calls.seen.clear()


replaced.append(_forget)


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
    programs : dict
        For each key what runs the call, or returns None if it has to go the long way.
    seen : dict
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
        self.programs: dict[Any, Any] = {}
        self.seen: dict[Any, int] = {}
        _TABLES.add(self)

    @property
    def names(self) -> dict[str, Any]:
        """What the lines name that `tensor_lines` and `program_lines` give."""
        return {**_NAMES, "find": self.programs.get, "meet": self.meet}

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
        result, steps = note_steps(function, *arguments, **keywords)
        in_order = [at for at in range(len(tensors)) if not constants or not constants[at]]
        applies_one = _takes_just(steps, tensors, in_order)
        if not self.sequence or applies_one or len(set(map(id, tensors))) == len(tensors):
            program = self._compile(tensors, steps, result, in_order, applies_one)
            self.keep(key, program or (function if self.elementwise else _go_the_long_way))
        steps.pack()
        return result

    def _is_met_often(self, key: Any, statics: tuple[Any, ...]) -> bool:
        """Count a call; return whether a program for its key would pay, if there can be one."""
        seen = self.seen
        if len(seen) >= REMEMBERED_CALLS:
            seen.clear()
        times = seen[key] = seen.get(key, 0) + 1
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
        if not self.elementwise and _follows_default_dtype(tensors, steps):
            return None
        operands = [tensors[at] for at in in_order]
        if self.numbers and not applies_one and not all(isinstance(e, Tensor) for e in operands):
            return None  # of numbers the types alone are known
        if isinstance(result, np.ndarray):  # made of no tensor
            return result.copy().copy if result.size <= FEW_ELEMENTS else None
        is_told = self.sequence or self.elementwise or self.numbers
        only = in_order if applies_one and is_told else None
        if self.writes:
            return compile_write(tensors, steps, only)
        if steps.write is not None:
            return None
        return compile_call(tensors, steps, result, sequence=self.sequence, in_order=only)

    def keep(self, key: Any, program: Any) -> Any:
        """Remember something under a key, and return it."""
        if len(self.programs) >= REMEMBERED_CALLS:
            self.programs.clear()
        self.programs[key] = program
        return program


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
    if any(isinstance(each, Tensor) and each._array.dtype.kind in "fc" for each in tensors):
        return False
    return any(
        output._array.dtype.kind in "fc" or any(isinstance(each, float) for each in step.operands)
        for step in steps.steps
        for output in step.outputs
    )


# --- what stands in front of a function ----------------------------------------------------------


def view_fact(view: Tensor) -> str | None:
    """Return what of a key is about a view that is written to; None if the long way has to look.

    What it is a view of decides where its history goes on, and how it was made whether it may be
    written to.
    """
    base: Any = view._base
    history, origin = base._edge, view._view_origin
    if modes.grad and (history is None or (origin and history is not NO_EDGE)):
        return None
    try:
        refresh_view(view)
    except RuntimeError:  # it has no history
        return None
    return f"{'constant' if history is NO_EDGE else 'result'} {origin}"


def _written_lines(name: str) -> tuple[list[str], list[str]]:
    """Return the lines that look at what is written to, and what they found."""
    return [
        f"array_{name} = {name}._array",
        f"counter_ = {name}._counter",
        f"base_ = {name}._base",
        "if base_ is None:",
        "    view_ = ''",
        f"elif base_._edge is None or {name}._view_origin:",
        f"    view_ = view_fact({name})",
        "else:",
        "    view_ = 'constant' if base_._edge is NO_EDGE else 'result'",
        f"    refresh_view({name})",
    ], [f"array_{name}.shape", f"array_{name}.strides", f"array_{name}.dtype", "view_"]


def _read_lines(name: str, written: bool) -> list[str]:
    """Return the lines that look at a tensor that may overlap another that is `written` to."""
    lines = [
        f"if {name}._base is not None: refresh_view({name})",
        f"array_{name} = {name}._array",
    ]
    return [*lines, *[f"if {name}._counter is counter_: view_ = None"] * written]


def written_condition(name: str) -> str:
    """Return whether what `tensor_lines` found leaves nothing to check about what is written to."""
    return (
        f"view_ is not None and type(counter_) is list"
        f" and (not records_ or {name}._edge is not None)"
    )


def tensor_lines(
    names: Sequence[str],
    mixed: Sequence[str] = (),
    by_type: bool = False,
    factors: Sequence[str] = (),
    written: bool = False,
) -> tuple[list[str], list[str]]:
    """Return lines that look at tensors, and what gives the part of a key that is about these.

    Parameters
    ----------
    names : sequence of str
        What are tensors.
    mixed : sequence of str
        What are tensors or anything else.
    by_type : bool
        Whether of the latter the type alone matters, otherwise also which it is.
    factors : sequence of str
        Numbers, among `mixed` or beside it, of which the type alone matters if they are floats in
        the range of every dtype.
    written : bool
        Whether the first is written to. The lines call ``view_`` None if they found what the long
        way may have to say something about, and ``records_`` whether the call is recorded.
    """
    lines, facts = _written_lines(names[0]) if written else ([], [])
    for name in names[1:] if written else names:
        lines += _read_lines(name, written)
        facts += [f"array_{name}.shape", f"array_{name}.strides", f"array_{name}.dtype"]
    lines += [f"needs_{name} = {name}._edge is not NO_EDGE" for name in names]
    for name in mixed:
        known = f"type({name})" if by_type else _number_fact(name, name in factors)
        shape = ", ".join([f"array_{name}.{each}" for each in ("shape", "strides", "dtype")])
        lines += [
            f"if type({name}) is Tensor:",
            *[f"    {line}" for line in _read_lines(name, written)],
            f"    needs_{name} = {name}._edge is not NO_EDGE",
            f"    fact_{name} = ({shape})",
            "else:",
            f"    needs_{name} = False",
            f"    fact_{name} = {known}",
        ]
        facts += [f"fact_{name}", *[f"type({name})"] * (not by_type)]
    for name in [each for each in factors if each not in mixed]:
        lines.append(f"fact_{name} = {_number_fact(name, True)}")
        facts += [f"fact_{name}", f"type({name})"]
    tensors = [*names, *mixed]
    needs = [f"needs_{name}" for name in tensors]
    anyone = needs[0] if len(needs) == 1 else f"({' or '.join(needs)})"
    if written:
        lines.append(f"records_ = {anyone} and modes.grad")
    facts += [*needs, "records_" if written else f"{anyone} and modes.grad"]
    alike = tensors[1:] if written else tensors
    facts += [f"{a} is {b}" for i, a in enumerate(alike) for b in alike[:i]]
    return lines, facts


def told_number(name: str) -> str:
    """Return what tells a number in a key, beside its type: 0.0 and -0.0 differ as text alone."""
    return f"({name} if type({name}) is not float or {name} else repr({name}))"


def _number_fact(name: str, is_factor: bool) -> str:
    """Return what stands for a number in a key, beside its type; of a factor `float`, if it can."""
    if not is_factor:
        return told_number(name)
    plain = f"type({name}) is float and {-_IN_EVERY_FLOAT} < {name} < {_IN_EVERY_FLOAT}"
    return f"float if {plain} else {told_number(name)}"


def program_lines(tensors: Sequence[str], missed: str) -> list[str]:
    """Return the lines that run the program of a key.

    Parameters
    ----------
    tensors : sequence of str
        What it is given.
    missed : str
        What runs the call where there is none.
    """
    return [
        "if program_ is None:",
        f"    return {missed}",
        "try:",
        f"    result_ = program_({', '.join(tensors)})",
        "except OverflowError: result_ = None  # of a number that may be greater than 64 bits hold",
        "if result_ is not None:",
        "    return result_",
    ]


_NAMES = {
    "NO_EDGE": NO_EDGE,
    "Tensor": Tensor,
    "call_interceptors": call_interceptors,
    "defaults": dtypes.defaults,
    "facts_of": facts_of,
    "modes": modes,
    "interceptors": interceptors,
    "refresh_view": refresh_view,
    "view_fact": view_fact,
}
