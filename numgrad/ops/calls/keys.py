"""Keys of calls: what of a call decides what it comes to, and the lines that find that out.

The key of a call holds the kinds of its tensors (dtype, shape and strides: `numgrad.graph.kinds`),
which of them require grad, and the arguments as they were written, with their types; of a tensor
that the call writes to also what decides whether it may be, and where its history goes on. The
lines stand in functions that `numgrad.ops.signatures.remembered_source` writes; tables of what keys
lead to are in `numgrad.ops.calls.dispatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.modes.state import call_interceptors, interceptors, modes
from numgrad.graph.recorder import distance
from numgrad.graph.tensor import NO_EDGE, Tensor, kind_of, refresh_view
from numgrad.ops.calls.index_facts import key_of
from numgrad.ops.calls.node_source import define_lines

__all__ = [
    "IN_EVERY_FLOAT",
    "NAMES",
    "in_int64",
    "program_lines",
    "refresh_line",
    "tensor_lines",
    "told_number",
    "typed",
    "watches_writes",
    "written_condition",
    "written_facts",
]

# What an argument of a call that is remembered can be, beside sequences of these.
_STATIC = {int, bool, type(None), str, type(...), dtypes.dtype, type}
_OVERLAP_WORK: Any = 100  # what NumPy may try until it says that views share no element
_MOST_TENSORS = 16  # of a sequence: the source for more of them is not worth its memory
IN_EVERY_FLOAT = 65504.0  # what is smaller fits into every floating point dtype


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
        facts.append(tensor._kind or kind_of(tensor))
        if tensor._edge is not NO_EDGE:
            needs |= bit
        bit <<= 1
    facts.append(needs if modes.grad else -needs)
    return tuple(facts)


def watches_writes() -> bool:
    """Return whether something is open that has to see writes: all but hooks on saved tensors."""
    if call_interceptors or modes.inference or modes.level is not None:
        return True
    return modes.keeper is not None or modes.overwritten is not None


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
        _kind_line(name),
        f"counter_ = {name}._counter",
        f"base_ = {name}._base",
        "if base_ is None:",
        "    view_ = ''",
        f"elif base_._edge is None or {name}._view_origin:",
        f"    view_ = view_fact({name})",
        "else:",
        "    view_ = 'constant' if base_._edge is NO_EDGE else 'result'",
        f"    refresh_view({name})",
    ], [f"kind_{name}", "view_"]


def _kind_line(name: str) -> str:
    """Return the line that asks for the kind of a tensor."""
    return f"kind_{name} = {name}._kind or kind_of({name})"


def refresh_line(name: str) -> str:
    """Return the line that gives a view its history as it stands.

    Where neither it nor its base has one there is nothing to call `refresh_view` for.
    """
    has_history = f"{name}._edge is not NO_EDGE or {name}._base._edge is not NO_EDGE"
    return f"if {name}._base is not None and ({has_history}): refresh_view({name})"


def shared_fact(view: str | None, written: Tensor, other: Tensor, name: str) -> str | None:
    """Return what a key says of a view that is written to, and how another tensor shares memory.

    That is itself, the same elements, or others; None if some elements are the same.
    """
    if view is None:
        return None
    if other is written:
        return f"{view} {name} itself"
    array, read = written._array, other._array
    if kind_of(other) is kind_of(written) and distance(array, read) == 0:
        return f"{view} {name} same"
    if np.may_share_memory(array, read, max_work=_OVERLAP_WORK):
        return None
    return f"{view} {name} apart"


def _read_lines(name: str, written: str) -> list[str]:
    """Return the lines that look at a tensor that may overlap another that is `written` to."""
    lines = [refresh_line(name), _kind_line(name)]
    if written:
        shares = f"view_ = shared_fact(view_, {written}, {name}, {name!r})"
        lines.append(f"if {name}._counter is counter_: {shares}")
    return lines


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
    optional: Sequence[str] = (),
) -> tuple[list[str], list[str]]:
    """Return lines that look at tensors, and what gives the part of a key that is about these.

    Parameters
    ----------
    names : sequence of str
        What are tensors.
    mixed : sequence of str
        What are tensors or anything else.
    by_type : bool
        Whether of the latter the kind of number alone matters, otherwise also which it is.
    factors : sequence of str
        Numbers, among `mixed` or beside it, of which the type alone matters if they are floats in
        the range of every dtype.
    written : bool
        Whether the first is written to. The lines call ``view_`` None if they found what the long
        way may have to say something about, and ``records_`` whether the call is recorded.
    """
    lines, facts = _written_lines(names[0]) if written else ([], [])
    target = names[0] if written else ""
    for name in names[1:] if written else names:
        lines += _read_lines(name, target)
        facts.append(f"kind_{name}")
    lines += [f"needs_{name} = {name}._edge is not NO_EDGE" for name in names]
    for name in [*mixed, *optional]:
        known = _kind_of_number(name) if by_type else _number_fact(name, name in factors)
        if name in optional:
            known = "None"
        lines += [
            f"if type({name}) is Tensor:",
            *[f"    {line}" for line in _read_lines(name, target)],
            f"    needs_{name} = {name}._edge is not NO_EDGE",
            f"    fact_{name} = kind_{name}",
            "else:",
            f"    needs_{name} = False",
            f"    fact_{name} = {known}",
        ]
        facts += [f"fact_{name}", *[f"type({name})"] * (name in mixed and not by_type)]
    for name in [each for each in factors if each not in mixed]:
        lines.append(f"fact_{name} = {_number_fact(name, True)}")
        facts += [f"fact_{name}", f"type({name})"]
    tensors = [*names, *mixed, *optional]
    needs = [f"needs_{name}" for name in tensors]
    anyone = needs[0] if len(needs) == 1 else f"({' or '.join(needs)})"
    if written:
        lines.append(f"records_ = {anyone} and modes.grad")
    facts += [*needs, "records_" if written else f"{anyone} and modes.grad"]
    alike = tensors[1:] if written else tensors
    facts += [f"{a} is {b}" for i, a in enumerate(alike) for b in alike[:i]]
    return lines, facts


def written_facts(names: Sequence[str]) -> Callable[..., Any]:
    """Return a function of tensors, of which the first is written to, that gives what a key has.

    It returns None where the long way may have to say something.
    """
    lines, facts = tensor_lines(names, written=True)
    condition = written_condition(names[0])
    lines.append(f"return ({', '.join(facts)}) if {condition} else None")
    return define_lines("facts", ", ".join(names), lines, NAMES)


def told_number(name: str) -> str:
    """Return what tells a number in a key, beside its type: 0.0 and -0.0 differ as text alone."""
    return f"({name} if type({name}) is not float or {name} else repr({name}))"


def in_int64(name: str) -> str:
    """Return what asks whether int64 holds an int, without a call."""
    return f"{-(2**63)} <= {name} < {2**63}"


def _kind_of_number(name: str) -> str:
    """Return what asks for `kind_of_number`, without a call for all but very great ints."""
    usual = f"type({name}) is not int or {in_int64(name)}"
    return f"type({name}) if {usual} else kind_of_number({name})"


def _number_fact(name: str, is_factor: bool) -> str:
    """Return what stands for a number in a key, beside its type; of a factor `float`, if it can."""
    if not is_factor:
        return told_number(name)
    plain = f"type({name}) is float and {-IN_EVERY_FLOAT} < {name} < {IN_EVERY_FLOAT}"
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


# What the lines name.
NAMES = {
    "NO_EDGE": NO_EDGE,
    "Tensor": Tensor,
    "call_interceptors": call_interceptors,
    "defaults": dtypes.defaults,
    "facts_of": facts_of,
    "key_of": key_of,
    "kind_of": kind_of,
    "kind_of_number": dtypes.kind_of_number,
    "modes": modes,
    "interceptors": interceptors,
    "refresh_view": refresh_view,
    "shared_fact": shared_fact,
    "view_fact": view_fact,
    "watches_writes": watches_writes,
}
