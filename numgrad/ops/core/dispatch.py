"""The one call path of public functions: a key of what matters about a call, and what it leads to.

`dispatched` puts a table in front of a function that reads arguments and applies primitives. The
key of a call holds the dtypes, shapes and strides of its tensors, which of them require grad, and
the arguments as they were written, with their types. A call whose key was met before runs the
straight-line Python that was made for it (`numgrad.ops.core.programs`): array functions, wraps,
nodes. Every other call goes the long way, through all checks: the first two of a key, and all calls
while something is open that has to see them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any
from weakref import WeakSet

from numgrad.base import dtypes
from numgrad.base.tuning import REMEMBERED_CALLS
from numgrad.codegen.define import define
from numgrad.graph.modes import call_interceptors, modes
from numgrad.graph.tensor import NO_EDGE, Tensor, refresh_view
from numgrad.ops.core.catalogue import replaced
from numgrad.ops.core.programs import compile_call
from numgrad.ops.core.steps import Steps, note_steps

__all__ = ["Calls", "dispatched", "program_lines", "tensor_lines", "typed"]

# What an argument of a call that is remembered can be, beside sequences of these.
_STATIC = {int, bool, type(None), str, type(...), dtypes.dtype, type}
_MOST_TENSORS = 16  # of a sequence: the source for more of them is not worth its memory
_MISSING = object()
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
        if key not in self.seen:
            if _is_remembered(statics):
                if len(self.seen) >= REMEMBERED_CALLS:
                    self.seen.clear()
                self.seen.add(key)
            return function(*arguments, **keywords)
        result, steps = note_steps(function, *arguments, **keywords)
        self._remember(key, tensors, result, steps)
        steps.pack()
        return result

    def _remember(self, key: Any, tensors: Sequence[Tensor], result: Any, steps: Steps) -> None:
        """Make a program of what a call came to."""
        in_order = (self.sequence or self.elementwise) and _takes_just(steps, tensors)
        if self.sequence and not in_order and len(set(map(id, tensors))) < len(tensors):
            return
        if not self.elementwise and _follows_default_dtype(tensors, steps):
            program = None
        else:
            program = compile_call(
                tensors, steps, result, sequence=self.sequence, in_order=in_order
            )
        self.keep(key, program or (self.function if self.elementwise else _go_the_long_way))

    def keep(self, key: Any, program: Any) -> Any:
        """Remember something under a key, and return it."""
        if len(self.programs) >= REMEMBERED_CALLS:
            self.programs.clear()
        self.programs[key] = program
        return program


def _is_remembered(statics: Any) -> bool:
    """Whether calls with such arguments are remembered."""
    try:
        typed(statics)
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


# --- functions that are not declared --------------------------------------------------------------


class _WrittenCalls(Calls):
    """Calls whose arguments can be of any type, and are told apart as they were written."""

    __slots__ = ()

    def meet_written(
        self,
        key: tuple[Any, ...] | None,
        tensors: Sequence[Tensor],
        facts: Any,
        statics: tuple[Any, ...],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        """Run a call whose plain key, if it has one, has no program."""
        try:
            typed_key = (facts, *[typed(each) for each in statics])
        except TypeError:
            return self.function(*arguments, **keywords)
        program = self.programs.get(typed_key)
        if program is not None:
            result = program(tensors) if self.sequence else program(*tensors)
            return self.function(*arguments, **keywords) if result is None else result
        result = self.meet(typed_key, tensors, (), arguments, keywords)
        if key is not None and not any(type(each) in (tuple, list, slice) for each in statics):
            program = self.programs.get(typed_key)
            if program is not None:
                self.keep(key, program)
        return result


def dispatched(
    *names: str, sequence: bool = False, written: dict[str, Callable[[Any], Any]] | None = None
) -> Any:
    """Put a table of calls in front of a function that is not declared; a decorator.

    What the function does has to follow from the key of a call: it applies primitives to its
    tensors, and does not look at numbers in them.

    Parameters
    ----------
    *names : str
        The parameters that are tensors, which stand first.
    sequence : bool
        Whether the first parameter is a sequence of tensors.
    written : dict, optional
        For a parameter what gives what stands for it in a key, or None if there is nothing.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        calls = _WrittenCalls(function, sequence)
        source, namespace = _front_source(function, names, sequence, written or {})
        namespace |= calls.names | {
            "__name__": function.__module__,
            "function": function,
            "meet": calls.meet_written,
            "given": _given,
            "MISSING": _MISSING,
        }
        name = function.__name__
        front = define(name, source, f"{function.__module__}.{name}", namespace)
        update_wrapper(front, function)
        return front

    return decorate


def _given(defaults: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that were given: those that are not what they are without."""
    return {
        name: value
        for name, value in values.items()
        if value is not _MISSING and not (name in defaults and value is defaults[name])
    }


def _front_source(
    function: Callable[..., Any],
    names: tuple[str, ...],
    sequence: bool,
    readers: dict[str, Callable[[Any], Any]],
) -> tuple[str, dict[str, Any]]:
    """Return the source of what stands in front of a function, and some of what it names."""
    renames = hasattr(function, "__wrapped__")  # it takes other keywords, too: `accept_axis`
    parameters = list(inspect.signature(function).parameters.values())
    namespace: dict[str, Any] = {"defaults": {}}
    head: list[str] = []
    written: list[str] = []  # what goes on by position, and what by name
    named: list[str] = []
    statics: list[str] = []  # what is no tensor
    key: list[str] = []
    for parameter in parameters:
        name = parameter.name
        if parameter.kind is parameter.KEYWORD_ONLY:
            if "*" not in head and not any(each.startswith("*") for each in head):
                head.append("*")
            named.append(name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            head.append(f"*{name}")
            written.append(f"*{name}")
            statics.append(f"*{name}")
            key += [name, f"(*map(type, {name}),)"]
            continue
        elif parameter.kind is parameter.VAR_KEYWORD:
            continue
        else:
            written.append(name)
        if parameter.default is not parameter.empty:
            namespace[f"default_{name}"] = namespace["defaults"][name] = parameter.default
            head.append(f"{name}=default_{name}")
        else:
            head.append(f"{name}=MISSING" if renames and len(head) >= len(names) else name)
        if name in readers:
            namespace[f"read_{name}"] = readers[name]
        elif name not in names:
            statics.append(name)
            key += [name, f"type({name})"]
    if renames:
        head.append("**others")
    lines = [f"def {function.__name__}({', '.join(head)}):"]
    if renames:
        required = [
            each.name
            for each in parameters[len(names) :]
            if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
        ]
        condition = " or ".join(["others", *[f"{name} is MISSING" for name in required]])
        values = ", ".join([f"{n!r}: {n}" for n in (*written[len(names) :], *named)])
        rest = f"**given(defaults, {{{values}}}), **others"
        lines += [f"    if {condition}:", f"        return function({', '.join(names)}, {rest})"]
    tensors = f"({', '.join(names)},)"
    call = ", ".join([*written, *[f"{name}={name}" for name in named]])
    if sequence:
        (only,) = names
        tensors = only
        lines += [
            "    if not call_interceptors:",
            f"        facts_ = facts_of({only})",
            f"        if facts_ is None: return function({call})",
        ]
    else:
        are = " and ".join([f"type({name}) is Tensor" for name in names])
        lines.append(f"    if {are} and not call_interceptors:")
        look, facts = tensor_lines(names)
        for name in readers:
            look += [
                f"written_{name} = read_{name}({name})",
                f"if written_{name} is None: return function({call})",
            ]
            facts.append(f"written_{name}")
        lines += [f"        {line}" for line in look]
        lines.append(f"        facts_ = ({', '.join(facts)})")
    arguments = f"({', '.join(written)},), {{{', '.join(f'{n!r}: {n}' for n in named)}}}"
    others = f"({', '.join(statics)}{',' if statics else ''})"
    lines += [
        f"        key_ = ({', '.join(['facts_', *key])},)" if key else "        key_ = facts_",
        "        try:",
        "            program_ = find(key_)",
        "        except TypeError:  # of a list",
        "            program_ = key_ = None",
    ]
    missed = f"meet(key_, {tensors}, facts_, {others}, {arguments})"
    lines += [f"        {line}" for line in program_lines(names, missed)]
    return "\n".join([*lines, f"    return function({call})"]) + "\n", namespace
