"""How values and names are written in the source of declared functions."""

from __future__ import annotations

from numgrad.ops.signatures.signature import ABSENT, REQUIRED, Parameter

__all__ = ["default_text", "handed_on", "is_default", "is_none", "tuple_of"]


def tuple_of(names: list[str]) -> str:
    """Return a tuple of names."""
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def default_text(default: object) -> str:
    """Return what a default is written as."""
    if default is ABSENT:
        return "ABSENT"
    return "REQUIRED" if default is REQUIRED else repr(default)


def is_default(default: object, value: str, *, given: bool = False) -> str:
    """Return the condition that a value is a default, or that it is `given`.

    Whatever is given may be compared: a tensor in the place of a number says of each element
    whether that is equal to it.
    """
    if default in (None, REQUIRED, ABSENT) or isinstance(default, bool):
        return f"{value} is {'not ' * given}{default_text(default)}"
    if isinstance(default, tuple):
        return f"plain_ints({value}) {'!=' if given else '=='} {default!r}"
    kind = type(default).__name__
    if given:
        return f"(type({value}) is not {kind} or {value} != {default!r})"
    return f"type({value}) is {kind} and {value} == {default!r}"


def handed_on(parameter: Parameter | None, value: str) -> str:
    """Return what the function itself is given for a parameter, where it was left out, too."""
    if parameter is None or parameter.default is not ABSENT:
        return value
    return f"({parameter.left_out!r} if {value} is ABSENT else {value})"


def is_none(parameter: Parameter, value: str) -> str:
    """Return the condition that a value is None, or stands for it."""
    if parameter.default is not ABSENT:
        return f"{value} is None"
    return f"({value} is ABSENT or {value} is None)"
