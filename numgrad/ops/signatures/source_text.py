"""How values and names are written in the source of declared functions."""

from __future__ import annotations

from numgrad.ops.signatures.signature import REQUIRED

__all__ = ["default_text", "tuple_of"]


def tuple_of(names: list[str]) -> str:
    """Return a tuple of names."""
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def default_text(default: object) -> str:
    """Return what a default is written as."""
    return "REQUIRED" if default is REQUIRED else repr(default)
