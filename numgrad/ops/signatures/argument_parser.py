"""Read the arguments of a call as PyTorch's parser does, and say in its words what is wrong.

Well-formed calls don't come here (`numgrad.ops.signatures.declared` sees to that), so that this can
be written for the reader: try the signatures one after the other, as they are declared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.ops.signatures.kinds import KINDS, is_index, type_name
from numgrad.ops.signatures.numbers import is_integer
from numgrad.ops.signatures.signature import REQUIRED, Parameter, Signature

__all__ = ["NUMPY_NAMES", "bind", "describe", "find", "fits_deprecated", "given_at"]

NUMPY_NAMES = {"dim": ("axis",), "dims": ("axis", "axes"), "keepdim": ("keepdims",)}
Values = dict[str, Any]
# Where an argument was given: its position, its name, that name in a tuple if it stands for a list
# of itself, or None if it is all that was given by position.
Place = int | str | tuple[str] | None


def bind(
    signatures: Sequence[Signature], arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[Signature, Values]:
    """Return the signature that a call fits, and its arguments by name, as they were given.

    Raises
    ------
    TypeError
        If it fits none.
    """
    signature, places = find(signatures, arguments, keywords)
    return signature, {name: given_at(place, arguments, keywords) for name, place in places.items()}


def given_at(place: Place, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Return what stands at a place among arguments."""
    if place is None:
        return arguments
    if isinstance(place, tuple):
        return (keywords[place[0]],)
    return arguments[place] if isinstance(place, int) else keywords[place]


def find(
    signatures: Sequence[Signature], arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[Signature, dict[str, Place]]:
    """Return the signature that a call fits, and where the arguments that it names were given.

    Raises
    ------
    TypeError
        If it fits none.
    """
    if len(signatures) > 1:
        # A single number is a list of one only where nothing takes it alone.
        alone = len(arguments) == 1
        for signature in sorted(signatures, key=lambda each: alone and bool(each.variadic)):
            places = _find_in(signature, arguments, keywords, raises=False)
            if places is not None:
                return signature, places
        takes_out = any(each.name == "out" for one in signatures for each in one.parameters)
        # A method in place gives itself as `out`, which does not count.
        unused = ("out",) if "out" in keywords and not takes_out else ()
        count = len(arguments) + len(keywords.keys() - {*unused})
        of_this_count = [each for each in signatures if each.least <= count <= each.most(unused)]
        if len(of_this_count) != 1:
            options = "".join([_option(each, arguments, keywords) for each in signatures])
            raise TypeError(
                f"{signatures[0].name}() received an invalid combination of arguments - got "
                f"{_given(arguments, keywords)}, but expected one of:{options}\n"
            )
        signatures = of_this_count
    places = _find_in(signatures[0], arguments, keywords, raises=True)
    assert places is not None
    return signatures[0], places


def _given(
    arguments: tuple[Any, ...], keywords: Mapping[str, Any], marks: Sequence[str] | None = None
) -> str:
    """Return the types of arguments as PyTorch's messages list them, each between its mark."""
    marks = marks or [""] * (len(arguments) + len(keywords))
    told = [*map(type_name, arguments)]
    # PyTorch lists them as its table of hashes has them: mostly the last one first.
    told += [f"{name}={type_name(value)}" for name, value in reversed([*keywords.items()])]
    text = ", ".join([f"{mark}{each}{mark}" for mark, each in zip(marks, told, strict=True)])
    return f"({text})" if arguments or not keywords else f"({text}, )"


def _option(signature: Signature, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> str:
    """Return the line about a signature, and why a call with as many arguments does not fit it.

    PyTorch finds that out in the printed line: where there is a default, the last word of it is
    what the parameter goes by, and its type is none.
    """
    text = describe(signature)
    expected = [each.rpartition(" ") for each in text[1:-1].split(", ")]
    line = f"\n * {text}"
    if len(expected) != len(arguments) + len(keywords):
        return line
    types = {name: kind for kind, _, name in expected}
    unknown = [name for name in keywords if name not in types]
    if unknown:
        words = ", ".join(unknown)
        return f"{line}\n      didn't match because some of the keywords were incorrect: {words}"
    wanted = [kind for kind, _, _ in expected[: len(arguments)]]
    wanted += [types[name] for name in reversed([*keywords])]
    given = [*arguments, *reversed([*keywords.values()])]
    fits = [
        type_name(value) in ("float", "int") if kind == "float" else type_name(value) == kind
        for kind, value in zip(wanted, given, strict=True)
    ]
    told = _given(arguments, keywords, ["" if each else "!" for each in fits])
    return f"{line}\n      didn't match because some of the arguments have invalid types: {told}"


_said: list[str] = []  # of what was warned


def fits_deprecated(
    signature: Signature,
    present: Signature,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
) -> dict[str, Place] | None:
    """Return where the arguments of a call are that fits a deprecated signature; None if not.

    Of the first such call of a process PyTorch warns.
    """
    places = _find_in(signature, arguments, keywords, raises=False)
    if places is not None and not _said:
        _said.append(signature.name)
        warnings.warn(
            f"This overload of {signature.name} is deprecated:\n"
            f"\t{signature.name}{describe(signature)}\n"
            "Consider using one of the following signatures instead:\n"
            f"\t{signature.name}{describe(present)}",
            UserWarning,
            stacklevel=4,
        )
    return places


def describe(signature: Signature) -> str:
    """Return the parameters of a signature as PyTorch's messages list them."""
    parts: list[str] = []
    for each in signature.parameters:
        if each.keyword_only and "*" not in parts:
            parts.append("*")
        shown = f'"{each.default}"' if isinstance(each.default, str) else each.default
        default = "" if each.default is REQUIRED else f" = {shown}"
        # A number in the place of the first tensor goes by the name that no tensor has.
        word = "self" if each.kind == "number" and each.name == "input" else each.word
        parts.append(f"{KINDS[each.kind].words} {word}{default}")
    return f"({', '.join(parts)})"


def accepts(parameter: Parameter, value: Any) -> bool:
    """Whether the parser takes a value for a parameter."""
    if value is None and parameter.optional:
        return True
    if parameter.alone and is_index(value) and not isinstance(value, np.ndarray):
        return True
    return KINDS[parameter.kind].accepts(value)


def _find_in(
    signature: Signature, arguments: tuple[Any, ...], keywords: Mapping[str, Any], *, raises: bool
) -> dict[str, Place] | None:
    """Return where the arguments that a signature names were given.

    If they don't fit, raise PyTorch's TypeError, or return None unless it `raises`.
    """

    def fail(message: Callable[..., str], *details: Any) -> dict[str, Place] | None:
        if raises:
            raise TypeError(message(signature, *details))
        return None

    places: dict[str, Place] = {}
    unknown = len(keywords)
    position, count = 0, len(arguments)
    if count > len(signature.positional) and not signature.variadic:
        return fail(_too_many, count)
    for number, parameter in enumerate(signature.parameters):
        if position < count:
            if parameter.keyword_only:
                return fail(_too_many, count)
            value = arguments[position]
            place: Place = position
            if position == 0 and signature.variadic and not accepts(parameter, value):
                if KINDS[parameter.kind].accepts(arguments):
                    places[parameter.name] = None
                    position = count
                    continue
                if count > 1:
                    return fail(_too_many, count)
            position += 1
        else:
            name = parameter.name
            if name not in keywords:
                name = next((each for each in NUMPY_NAMES.get(name, ()) if each in keywords), "")
            if not name:
                if parameter.default is REQUIRED:
                    return fail(_missing, number)
                continue
            value, place = keywords[name], name
            if name != parameter.name and parameter.kind == "int[]" and is_integer(value):
                value, place = (value,), (name,)  # as NumPy's functions take it
            unknown -= 1
        if not accepts(parameter, value):
            return fail(_wrong, parameter, value, place + 1 if isinstance(place, int) else 0)
        places[parameter.name] = place
    if count > position:
        return fail(_too_many, count)
    return fail(_unknown, keywords, count) if unknown else places


def _wrong(signature: Signature, parameter: Parameter, value: Any, place: int) -> str:
    kind = KINDS[parameter.kind]
    where = f" (position {place})" if place else ""
    start = f"{signature.name}(): argument '{parameter.word}'{where} must be {kind.words}"
    if place and kind.words == "tuple of ints" and isinstance(value, (tuple, list)):
        return f"{start}, but found element of type {type_name(value[0])} at pos 0"
    return f"{start}, not {type_name(value)}"


def _missing(signature: Signature, number: int) -> str:
    names = [each.word for each in signature.parameters[number:] if each.default is REQUIRED]
    listed = ", ".join([f'"{name}"' for name in names])
    plural = "s" if len(names) == 1 else ""  # as PyTorch has it
    return f"{signature.name}() missing {len(names)} required positional argument{plural}: {listed}"


def _too_many(signature: Signature, count: int) -> str:
    most = len(signature.positional)
    least = signature.least  # which counts keywords, too, as PyTorch does
    if least != most:
        takes = f"from {least} to {most} positional arguments but {count} were"
    else:
        takes = f"{most} positional argument{'' if most == 1 else 's'} but {count} "
        takes += "was" if count == 1 else "were"
    return f"{signature.name}() takes {takes} given"


def _unknown(signature: Signature, keywords: Mapping[str, Any], count: int) -> str:
    names = [each.name for each in signature.parameters]
    for name in keywords:
        if name not in names:
            return f"{signature.name}() got an unexpected keyword argument '{name}'"
        if names.index(name) < count:
            word = signature.parameters[names.index(name)].word
            return f"{signature.name}() got multiple values for argument '{word}'"
    raise AssertionError(signature)
