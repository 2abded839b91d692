"""Signatures of calls: what a trace depends on in its arguments."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base.dtypes import defaults
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import TraceError
from numgrad.graph.tensor import NO_EDGE, Tensor, plain
from numgrad.jit.capture.guards import FUNCTIONS, same_function
from numgrad.ops.creation.generator import Generator
from numgrad.runtime.frames import where_user_is

__all__ = ["Static", "array_of", "describe", "fitting", "is_traced", "plain_key"]


_SCALARS = (float, complex)  # Python's own; those of NumPy have a dtype
_PLAIN = (int, bool, str)
_KEYS = frozenset((*_PLAIN, type(None)))
_ndarray = np.ndarray


def is_traced(leaf: Any) -> bool:
    """Whether an argument enters a traced function without its numbers."""
    return isinstance(leaf, (Tensor, np.ndarray, np.generic)) or type(leaf) in _SCALARS


def describe(leaf: Any) -> Any:
    """Return what a trace depends on in one leaf of the arguments.

    Raises
    ------
    TraceError
        For an argument that is neither an array nor a number nor can be compared with another.
    """
    kind = type(leaf)
    if kind is np.ndarray:
        return (leaf.shape, leaf.dtype)
    if isinstance(leaf, Tensor):
        return (leaf._array.shape, leaf._array.dtype, leaf.requires_grad)
    if kind in _SCALARS:
        return kind
    if kind in FUNCTIONS:
        return (kind, Function(leaf))
    if isinstance(leaf, Generator):
        return Generator
    if isinstance(leaf, np.ndarray | np.generic):
        return (leaf.shape, leaf.dtype)
    try:
        hash(leaf)
    except TypeError:
        kind = type(leaf.value) if kind is Static else kind
        raise TraceError(
            f"{where_user_is()}jit: an argument of type {kind.__name__} is neither an array nor a "
            "number, and it cannot be a static argument, because it is not hashable"
        ) from None
    if isinstance(leaf, (int, str, *_SCALARS)) and kind not in _PLAIN:  # it may have attributes
        return (kind, leaf, id(leaf))
    return (kind, leaf)


def plain_key(args: Sequence[Any]) -> Any:
    """Return what a trace depends on in arguments that are all leaves, and plain ones.

    None if they are not: then it is found out leaf by leaf (`describe`), which takes longer.
    """
    key: list[Any] = [modes.grad, defaults.floating]
    for argument in args:
        kind = type(argument)
        if kind is _ndarray:
            key += (argument.dtype, argument.shape)
        elif kind is Tensor:
            array = argument._array
            if argument._base is None:
                key += (argument._edge is not NO_EDGE, array.dtype, array.shape)
            else:
                key += (argument.requires_grad, array.dtype, array.shape)
        elif kind is float:
            key.append(float)
        elif kind in _KEYS:
            key += (kind, argument)
        else:
            return None
    return tuple(key)


def array_of(leaf: Any) -> np.ndarray[Any, Any]:
    """Return the array of an argument that is traced."""
    array: np.ndarray[Any, Any] = (
        leaf._array if isinstance(leaf, Tensor) else np.asarray(plain(leaf))
    )
    return array


def fitting(head: Any, leaves: Sequence[Any]) -> Any:
    """Return that one of some traces which is for arguments that lie as these; None if none is.

    Parameters
    ----------
    head : Compiled
        The first trace for such shapes, which has a list of the `others`. Each of them has the
        ``strides`` that it goes by: most go by none.
    leaves : sequence
        The arguments.
    """
    for each in (head, *head.others):
        for k, strides in each.strides:
            leaf = leaves[k]
            array = leaf if type(leaf) is np.ndarray else array_of(leaf)
            if array.strides != strides:
                break
        else:
            return each
    return None


class Static:
    """A mark on an argument that is static; leaves of it are not looked for."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static) or type(self.value) is not type(other.value):
            return False
        if type(self.value) in FUNCTIONS:
            return same_function(self.value, other.value)
        if isinstance(self.value, (float, complex)):  # of which 0.0 and -0.0 are two
            return repr(self.value) == repr(other.value)
        return bool(self.value == other.value)

    def __hash__(self) -> int:
        if type(self.value) in FUNCTIONS:
            return hash(Function(self.value))
        return hash((Static, type(self.value), self.value))


class Function:
    """A function that is an argument: equal to one that does the same, such as one made anew."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and same_function(self.value, other.value)

    def __hash__(self) -> int:
        function = self.value
        while type(function) is functools.partial:
            function = function.func
        return hash(getattr(function, "__name__", None))

    def __repr__(self) -> str:
        return repr(self.value)
