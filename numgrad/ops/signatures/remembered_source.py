"""The source of functions whose calls are remembered: the key of a call, and what it leads to.

In ``narrow(Tensor input, int dim, int length=1)`` of `numgrad.ops.signatures.declared_source` this
comes before the last line:

        if type(input) is Tensor and not call_interceptors:
            if input._base is not None and (...): refresh_view(input)
            kind_input = input._kind or kind_of(input)
            needs_input = input._edge is not NO_EDGE
            key_ = (kind_input, needs_input, needs_input and modes.grad, dim, length)
            program_ = find(key_)
            if program_ is None:
                return meet(key_, (input,), (dim, length), (input, dim, length))
            result_ = program_(input)
            if result_ is not None:
                return result_

`numgrad.ops.calls.keys` has the lines that look at tensors.
"""

from __future__ import annotations

from typing import NamedTuple

from numgrad.ops.calls.keys import program_lines, tensor_lines, told_number, written_condition
from numgrad.ops.signatures.declaration import Declaration
from numgrad.ops.signatures.signature import REQUIRED
from numgrad.ops.signatures.source_text import default_text, handed_on, is_none, tuple_of

__all__ = ["check_remembered", "remembered_lines"]

# Of these kinds, values that are equal are the same.
_TELLING = {"int", "int[]", "size", "dtype", "str", "memory_format"}
_TENSORS = {"Tensor", "operand", "mask"}
_IN_KEYS = _TELLING | _TENSORS | {"bool", "float", "number", "index[]", "generator"}


def check_remembered(declaration: Declaration) -> None:
    """Raise if calls can't be told apart by what the signature says of the arguments.

    Raises
    ------
    ValueError
        If the rule takes other things than tensors, numbers, strings and dtypes, or no tensor, or
        some in a sequence and others beside it.
    """
    kinds = {each: declaration.kinds_of(each) for each in declaration.handed if each != "out"}
    sequences = [each for each in kinds.values() if "Tensor[]" in each]
    tensors = [each for each in kinds.values() if each & _TENSORS]
    others = [each for each in kinds if not kinds[each] <= _IN_KEYS and kinds[each] != {"Tensor[]"}]
    if others:
        raise ValueError(f"{declaration.name}: calls can't be remembered by {', '.join(others)}")
    count = len(sequences) + bool(tensors or declaration.bound)
    if (
        count > 1
        or (count == 0 and declaration.finish is None)
        or (declaration.finish is not None and sequences)
    ):
        raise ValueError(
            f"{declaration.name}: calls are remembered of functions of tensors, of one sequence, "
            "or of functions that make tensors of none"
        )


class _Given(NamedTuple):
    """How the arguments of a call stand in its key.

    Attributes
    ----------
    arguments : list of str
        All that the rule is given.
    tensors, mixed, optional : list of str
        Those that are tensors, those that may be something else, and those that may be left out.
    factors : list of str
        Numbers, also among `mixed`, that are operands where they are floats of an ordinary size.
    indices : list of str
        Tuples of indices, of which there may be one.
    statics, key : list of str
        The others, and what stands for them in the key.
    absent : list of str
        Conditions that hold for calls that have a key.
    """

    arguments: list[str]
    tensors: list[str]
    mixed: list[str]
    optional: list[str]
    factors: list[str]
    indices: list[str]
    statics: list[str]
    key: list[str]
    absent: list[str]


def _given(declaration: Declaration, local: dict[str, str]) -> _Given:
    """Return how the arguments of a function stand in the keys of its calls."""
    parameters = declaration.parameters
    owner = ["self"] * declaration.bound
    out = [is_none(parameters["out"], "out")] if "out" in parameters else []
    given = _Given([*owner], [*owner], [], [], [], [], [], [], out)
    for name in declaration.handed:
        value = local.get(name, name) if name in parameters else "None"
        given.arguments.append(handed_on(declaration.parameters.get(name), value))
        if name not in parameters or name == "out" or parameters[name] is declaration.sequence:
            continue
        kinds = declaration.kinds_of(name)
        if kinds == {"generator"}:  # the default one, which numbers are drawn from in each call
            others = dict.fromkeys(["None", default_text(declaration.defaults[name])])
            given.absent.append(f"({' or '.join([f'{value} is {each}' for each in others])})")
            continue
        if kinds == {"index[]"}:
            given.indices.append(value)
            continue
        if name in declaration.factors:
            given.factors.append(value)
        are_tensors = kinds <= _TENSORS - {"operand"}
        if are_tensors and declaration.defaults[name] is REQUIRED and not parameters[name].optional:
            given.tensors.append(value)
        elif are_tensors and declaration.finish is None:
            given.optional.append(value)
            left_out = f"{value} is {declaration.not_given(name)}"
            given.absent.append(f"({left_out} or type({value}) is Tensor)")
        elif kinds & _TENSORS and declaration.finish is None:
            given.mixed.append(value)
            given.absent.append(f"(type({value}) is Tensor or not isinstance({value}, Tensor))")
        elif name not in declaration.factors:
            if kinds & _TENSORS:
                given.absent.append(f"not isinstance({value}, Tensor)")
            given.statics.append(handed_on(parameters[name], value))
            telling = kinds <= _TELLING or kinds == {"bool"}
            given.key.extend([value] if telling else [told_number(value), f"type({value})"])
    return given


def remembered_lines(declaration: Declaration, local: dict[str, str]) -> list[str]:
    """Return the lines that run a call by the program of its key, if it has one."""
    given = _given(declaration, local)
    if declaration.finish is not None:
        return _made(declaration, given)
    writes = declaration.writes
    look: list[str] = []
    if declaration.sequence is not None:
        handed = [local[declaration.sequence.name]]
        tensors, facts, conditions = handed[0], ["facts_"], ["facts_ is not None"]
    else:
        handed = [*given.tensors, *given.mixed, *given.optional, *given.factors]
        handed = list(dict.fromkeys(handed))
        by_type = declaration.direct
        look, facts = tensor_lines(
            given.tensors, given.mixed, by_type, given.factors, writes, given.optional
        )
        known = declaration.parameters
        tensors = tuple_of([handed_on(known.get(each), each) for each in handed])
        conditions = [f"type({each}) is Tensor" for each in given.tensors]
        if not conditions:  # of these one is, if they are no symbols of a formula
            some = [f"type({each}) is Tensor" for each in given.mixed or given.optional]
            conditions = [f"({' or '.join(some)})"]
        conditions.append(
            "(not interceptors or not watches_writes())" if writes else "not call_interceptors"
        )
    missed = f"meet(key_, {tensors}, {tuple_of(given.statics)}, {tuple_of(given.arguments)}"
    if given.mixed or given.optional or given.factors:
        constants = [_is_constant(each, given, declaration.direct) for each in handed]
        missed += f", constants={tuple_of(constants)}"
    for indices in given.indices:
        look += [f"operands_ = [{', '.join(handed)}]", f"found_ = key_of({indices}, operands_)"]
        missed = missed.replace(tensors, "operands_", 1)
        facts, handed = [*facts, "found_[0]"], ["*operands_"]
        if writes:
            look.append(
                "if any([each._counter is counter_ for each in operands_[1:]]): view_ = None"
            )
    lines = [f"key_ = {tuple_of([*facts, *given.key])}", "program_ = find(key_)"]
    lines += program_lines(handed, f"{missed})")
    if given.indices:
        lines = ["if found_ is not None:", *[f"    {one}" for one in lines]]
    if writes:
        lines = [f"if {written_condition(declaration.written)}:", *[f"    {one}" for one in lines]]
    conditions += given.absent
    if declaration.itself:
        first = given.tensors[0]
        look.insert(0, f"if {declaration.itself.format(first)}: return {first}")
    return [f"    if {' and '.join(conditions)}:", *[f"        {one}" for one in [*look, *lines]]]


def _is_constant(name: str, given: _Given, by_type: bool) -> str:
    """Return whether what a program is given is a number that stands in its key."""
    if name in given.mixed and by_type:
        return "False"
    conditions = [f"type({name}) is not Tensor"] * (name in [*given.mixed, *given.optional])
    if name in given.factors:
        conditions.append(f"fact_{name} is not float")
    return " and ".join(conditions) or "False"


def _made(declaration: Declaration, given: _Given) -> list[str]:
    """Return the lines that copy what a function made of the same arguments before.

    Of tensors it goes by their kinds alone.
    """
    finished = f"{declaration.name!r}, array_"
    if "requires_grad" in declaration.defaults:
        finished += f", {handed_on(declaration.parameters['requires_grad'], 'requires_grad')}"
    missed = f"meet(key_, (), {tuple_of(given.statics)}, {tuple_of(given.arguments)})"
    plain = [f"type({each}) is Tensor" for each in given.tensors]
    kinds = [f"{each}._kind or kind_of({each})" for each in given.tensors]
    return [
        f"    if {' and '.join([*plain, 'not call_interceptors', *given.absent])}:",
        f"        key_ = {tuple_of(['defaults.floating', *kinds, *given.key])}",
        "        program_ = find(key_)",
        f"        array_ = {missed} if program_ is None else program_()",
        f"        if array_ is not None: return finish({finished})",
    ]
