"""The one call path of public functions: a key of what matters about a call, and what it leads to.

A function that reads arguments and applies primitives has a table, which the lines in front of it
look into (`numgrad.ops.signatures.declared_source`). The key of a call holds the dtypes, shapes and
strides of its tensors, which of them require grad, and the arguments as they were written, with
their types. A call whose key was met before runs the straight-line Python that was made for it
(`numgrad.ops.core.programs`): array functions, wraps, nodes. Every other call goes the long way,
through all checks: the first two of a key, and all calls while something is open that has to see
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from numgrad.base import dtypes
from numgrad.base.tuning import REMEMBERED_CALLS
from numgrad.graph.modes import call_interceptors, modes
from numgrad.graph.tensor import NO_EDGE, Tensor, refresh_view
from numgrad.ops.core.catalogue import replaced
from numgrad.ops.core.programs import compile_call
from numgrad.ops.core.steps import Steps, note_steps

__all__ = ["Calls", "program_lines", "tensor_lines", "typed"]

# What an argument of a call that is remembered can be, beside sequences of these.
_STATIC = {int, bool, type(None), str, type(...), dtypes.dtype, type}
_MOST_TENSORS = 16  # of a sequence: the source for more of them is not worth its memory
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
    if kind is float and value and value == value:  # 0.0 and -0.0 would be one key
        return (kind, value)
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

    Attributes
    ----------
    function : callable
        The long way.
    programs : dict
        For each key what runs the call, or returns None if it has to go the long way.
    seen : set
        Keys that were met once: whose calls may differ every time.
    """

    __slots__ = ("__weakref__", "elementwise", "function", "programs", "seen", "sequence")

    def __init__(
        self, function: Callable[..., Any], sequence: bool = False, elementwise: bool = False
    ) -> None:
        self.function = function
        self.sequence = sequence  # whether the tensors are given as one sequence
        # Whether it applies one primitive to just its arguments, of which some are numbers, and
        # its keys tell the default dtype.
        self.elementwise = elementwise
        self.programs: dict[Any, Any] = {}
        self.seen: set[Any] = set()
        _TABLES.add(self)

    @property
    def names(self) -> dict[str, Any]:
        """What the lines name that `tensor_lines` and `program_lines` give."""
        return {**_NAMES, "find": self.programs.get, "meet": self.meet}

    def meet(
        self,
        key: Any,
        tensors: Sequence[Tensor],
        statics: tuple[Any, ...],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any] = _NO_KEYWORDS,
    ) -> Any:
        """Run a call whose key has no program.

        Parameters
        ----------
        key
            Where the call is looked up.
        tensors, statics
            The tensors, and the other arguments.
        arguments, keywords
            All of them, for the function.
        """
        function = self.function
        if modes.inference:
            return function(*arguments, **keywords)
        if key not in self.seen:
            if _is_remembered(statics):
                if len(self.seen) >= REMEMBERED_CALLS:
                    self.seen.clear()
                self.seen.add(key)
            return function(*arguments, **keywords)
        result, steps = note_steps(function, *arguments, **keywords)
        in_order = (self.sequence or self.elementwise) and _takes_just(steps, tensors)
        if self.sequence and not in_order and len(set(map(id, tensors))) < len(tensors):
            return result
        if not self.elementwise and _follows_default_dtype(tensors, steps):
            program = None
        else:
            program = compile_call(
                tensors, steps, result, sequence=self.sequence, in_order=in_order
            )
        self.keep(key, program or (function if self.elementwise else _go_the_long_way))
        return result

    def keep(self, key: Any, program: Any) -> Any:
        """Remember something under a key, and return it."""
        if len(self.programs) >= REMEMBERED_CALLS:
            self.programs.clear()
        self.programs[key] = program
        return program


def _is_remembered(statics: tuple[Any, ...]) -> bool:
    """Whether calls with such arguments are remembered; keys tell 0.0 from -0.0 by their text."""
    try:
        typed(tuple([each or repr(each) for each in statics]))
    except TypeError:
        return False
    return True


def _takes_just(steps: Steps, tensors: Any) -> bool:
    """Whether there is one step, which takes just these tensors."""
    return len(steps.steps) == 1 and [*map(id, steps.steps[0].operands)] == [*map(id, tensors)]


def _follows_default_dtype(tensors: Any, steps: Steps) -> bool:
    """Whether floating point numbers meet others, or are made of them: their dtype can be set."""
    if any(tensor._array.dtype.kind in "fc" for tensor in tensors):
        return False
    return any(
        output._array.dtype.kind in "fc" or any(isinstance(each, float) for each in step.operands)
        for step in steps.steps
        for output in step.outputs
    )


# --- what stands in front of a function ----------------------------------------------------------


def tensor_lines(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return lines that look at tensors, and what gives the part of a key that is about these."""
    lines, facts = [], []
    for name in names:
        lines += [
            f"if {name}._base is not None: refresh_view({name})",
            f"array_{name} = {name}._array",
        ]
        facts += [f"array_{name}.shape", f"array_{name}.strides", f"array_{name}.dtype"]
    lines += [f"needs_{name} = {name}._edge is not NO_EDGE" for name in names]
    needs = [f"needs_{name}" for name in names]
    anyone = needs[0] if len(needs) == 1 else f"({' or '.join(needs)})"
    facts += [*needs, f"{anyone} and modes.grad"]
    facts += [f"{a} is {b}" for i, a in enumerate(names) for b in names[:i]]
    return lines, facts


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
        f"result_ = program_({', '.join(tensors)})",
        "if result_ is not None:",
        "    return result_",
    ]


_NAMES = {
    "NO_EDGE": NO_EDGE,
    "Tensor": Tensor,
    "call_interceptors": call_interceptors,
    "facts_of": facts_of,
    "modes": modes,
    "refresh_view": refresh_view,
}
