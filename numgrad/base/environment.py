"""Environment variables that take words from a list: read, and refused if they have another."""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = ["words_of"]


def words_of(variable: str, known: Sequence[str]) -> frozenset[str]:
    """Return the words that an environment variable has, parted by commas.

    Raises
    ------
    ValueError
        If it has one that nobody knows.

    Examples
    --------
    >>> words_of("NUMGRAD_NO_SUCH_VARIABLE", ["plain"])
    frozenset()
    """
    setting = os.environ.get(variable, "")
    found = frozenset(filter(None, map(str.strip, setting.split(","))))
    if not found <= {*known}:
        expected = " or ".join(map(repr, known))
        raise ValueError(f"{variable} expects {expected}, but got {setting!r}")
    return found
