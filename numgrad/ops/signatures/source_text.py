"""How values and names are written in the source of declared functions."""

from __future__ import annotations

from numgrad.ops.signatures.signature import ABSENT, REQUIRED

__all__ = ["default_text", "handed_on", "tuple_of"]


def tuple_of(names: list[str]) -> str:
    """Return a tuple of names."""
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def default_text(default: object) -> str:
    """Return what a default is written as."""
    if default is ABSENT:
        return "ABSENT"
    return "REQUIRED" if default is REQUIRED else repr(default)


def handed_on(default: object, value: str) -> str:
    """Return what the function itself is given for a parameter: None if it was left out."""
    return f"(None if {value} is ABSENT else {value})" if default is ABSENT else value
