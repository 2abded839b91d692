"""How calls that are not plainly as declared are read once the parser has read one like them.

Which signature a call fits, and what it means by each argument, follows from what the parser asks
of the arguments: their types, and of arrays, and of tensors with one element, also their dtype, and
whether they may stand for a number. That is the pattern of the call. The first call of a pattern is
parsed; what came of it is a `Reading`, by which the others are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.graph.modes.state import call_interceptors
from numgrad.graph.tensor import NO_EDGE, Tensor
from numgrad.ops.core.type_names import OWNERS
from numgrad.ops.signatures.numbers import NUMPY_NUMBERS
from numgrad.ops.signatures.signature import ABSENT, REQUIRED

__all__ = ["Reading", "pattern_of"]

# Of these types all the parser asks for is the type.
_BY_TYPE = {
    *NUMPY_NUMBERS,
    *(bool, int, float, complex, str, type(None), type(ABSENT), type(REQUIRED)),
}


class _Unknown(Exception):
    """An argument of which the parser may ask more."""


def pattern_of(given: Sequence[Any], defaults: Sequence[Any]) -> Any:
    """Return what decides how a call is read; None if that can't be told.

    Parameters
    ----------
    given, defaults : sequence
        The arguments, and what those are that were not given.

    Examples
    --------
    >>> pattern_of((1, True), (0, 0)) == pattern_of((2, False), (0, 0))
    True
    >>> pattern_of((1,), (0,)) == pattern_of((0,), (0,))
    False
    """
    if call_interceptors:
        return None
    found = []
    try:
        for value, default in zip(given, defaults, strict=True):
            kind = type(value)
            found.append(
                None if value is default else kind if kind in _BY_TYPE else _told(value, kind)
            )
    except _Unknown:
        return None
    return tuple(found)


def _told(value: Any, kind: type) -> Any:
    """Return what the parser may ask of an argument of a type."""
    if kind is Tensor:
        array = value._array
        if array.size != 1:
            return kind
        return (kind, array.ndim == 0, array.dtype.kind, value._edge is NO_EDGE)
    if kind is np.ndarray:
        return (kind, value.ndim == 0, value.dtype.kind)
    if kind is tuple or kind is list:
        if not value:
            return (kind,)
        first = type(value[0])
        told = first if first in _BY_TYPE else _told(value[0], first)
        return (kind, told) if len(value) == 1 else (kind, told, frozenset(map(type, value)))
    if kind in OWNERS:
        return kind
    if kind is type:
        return ("type", value)
    raise _Unknown


class Reading:
    """What the calls of a pattern hand on.

    Parameters
    ----------
    constants : sequence
        What is the same in all of them.
    conversions : sequence of (int or slice, function)
        Where arguments stand that are checked or converted, and what does it: all that are given,
        in the order of the signature.
    handed : sequence of int
        Where what is handed on stands, among what was given, the constants and what was converted.
    """

    __slots__ = ("_constants", "_conversions", "_handed")

    def __init__(
        self,
        constants: Sequence[Any],
        conversions: Sequence[tuple[int | slice, Callable[[Any], Any]]],
        handed: Sequence[int],
    ) -> None:
        self._constants, self._conversions = tuple(constants), tuple(conversions)
        self._handed = tuple(handed)

    def __call__(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what a call of the pattern hands on."""
        converted = [convert(given[at]) for at, convert in self._conversions]
        values = (*given, *self._constants, *converted)
        return tuple([values[at] for at in self._handed])
