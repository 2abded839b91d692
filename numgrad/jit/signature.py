"""What a trace of a function depends on: its arguments, the modes, and what it refers to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from numgrad.graph.core import Tensor
from numgrad.graph.frames import where_user_is
from numgrad.graph.tracing import TracedTensor, TraceError

__all__ = [
    "LAYOUTS",
    "Static",
    "Watch",
    "array_of",
    "contents_of",
    "describe",
    "fitting",
    "is_traced",
]

LAYOUTS = 16  # traces that are kept for arguments that differ in their strides only

_SCALARS = (float, complex)  # Python's own; those of NumPy have a dtype


def is_traced(leaf: Any) -> bool:
    """Whether an argument enters a traced function without its numbers."""
    return isinstance(leaf, (Tensor, np.ndarray, np.generic, float, complex))


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
    if isinstance(leaf, np.ndarray | np.generic):
        return (np.shape(leaf), leaf.dtype)
    try:
        hash(leaf)
    except TypeError:
        kind = type(leaf.value) if kind is Static else kind
        raise TraceError(
            f"{where_user_is()}jit: an argument of type {kind.__name__} is neither an array nor a "
            "number, and it cannot be a static argument, because it is not hashable"
        ) from None
    return (kind, leaf)


def array_of(leaf: Any) -> np.ndarray[Any, Any]:
    """Return the array of an argument that is traced."""
    array: np.ndarray[Any, Any] = leaf._array if isinstance(leaf, Tensor) else np.asarray(leaf)
    return array


def fitting(head: Any, leaves: Sequence[Any]) -> Any:
    """Return that one of some traces which is for arguments that lie as these; None if none is.

    Parameters
    ----------
    head : Compiled or Short
        The first trace for such shapes, which has a list of the `others`. Each of them has the
        ``strides`` that it goes by: most go by none.
    leaves : sequence
        The arguments.
    """
    for each in (head, *head.others):
        if all(array_of(leaves[k]).strides == strides for k, strides in each.strides):
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
        if isinstance(self.value, (float, complex)):  # of which 0.0 and -0.0 are two
            return repr(self.value) == repr(other.value)
        return bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((Static, type(self.value), self.value))


class Watch:
    """The names that a function, and those it is made of, take from outside.

    A trace has their values in it. So before it is used again, they are compared: a number that
    changed means another trace. (The numbers *in* an array or a tensor are read in every call.)
    """

    __slots__ = ("_seen", "baked", "cells", "names", "tensors")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.cells: list[tuple[CellType, Any]] = []
        self.names: list[tuple[dict[str, Any], str, Any]] = []
        # Of tensors: the array that they stood on, and how they hung in the graph.
        self.tensors: list[tuple[Tensor, Any, Any]] = []
        # Arrays whose numbers traces go by (masks, numbers asked for), and what they held; by id.
        self.baked: dict[int, tuple[Any, Any]] = {}
        self._seen: dict[int, Any] = {}
        self.add([function])

    def add(self, found: Iterable[Any]) -> None:
        """Watch what functions among these refer to, and tensors."""
        stack = list(found)
        while stack:
            each = stack.pop()
            if id(each) in self._seen:
                continue
            self._seen[id(each)] = each
            if isinstance(each, TracedTensor):  # it has left a function, and is of no use
                continue
            if isinstance(each, Tensor):
                self.tensors.append((each, each._array, each._edge))
            elif isinstance(each, (tuple, list)):
                stack += each
            elif isinstance(each, functools.partial):
                stack += [each.func, *each.args, *each.keywords.values()]
            elif callable(each):
                stack += self._look_at(each)

    def _look_at(self, function: Any) -> Iterator[Any]:
        """Note what a function refers to, and return that."""
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            yield wrapped
        function = getattr(function, "__func__", function)
        if not isinstance(function, FunctionType):
            return
        if function.__globals__.get("__name__", "").startswith("numgrad."):
            for cell in function.__closure__ or ():  # one of our own transforms: what is in it?
                yield contents_of(cell)
            return
        for cell in function.__closure__ or ():
            value = contents_of(cell)
            self.cells.append((cell, value))
            yield value
        for name in _global_names(function.__code__):
            if name in function.__globals__:
                value = function.__globals__[name]
                if isinstance(value, ModuleType):
                    continue
                self.names.append((function.__globals__, name, value))
                yield value

    def changed(self) -> str | None:
        """Return the name of something that is not what it was, None if all is."""
        for cell, value in self.cells:
            if contents_of(cell) is not value:
                return "a variable of an enclosing function"
        for names, name, value in self.names:
            if names.get(name, self) is not value:
                return name
        for tensor, array, edge in self.tensors:
            if tensor._array is not array or tensor._edge is not edge:
                return "a captured tensor"
        return "the numbers in a captured tensor" if self.changed_numbers() else None

    def changed_numbers(self) -> bool:
        """Whether one of the arrays that traces go by holds other numbers now."""
        return any(
            not np.array_equal(array, held, equal_nan=held.dtype.kind in "fc")
            for array, held in self.baked.values()
        )


_EMPTY = object()


def contents_of(cell: CellType) -> Any:
    """Return what a variable of an enclosing function holds now; a mark if it is not bound."""
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def _global_names(code: Any) -> set[str]:
    """Return the global names in a function's code and in that of functions inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            names |= _global_names(constant)
    return names
