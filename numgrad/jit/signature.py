"""What a trace of a function depends on: its arguments, the modes, and what it refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from numgrad.graph.core import Tensor
from numgrad.graph.tracing import TraceError
from numgrad.jit.trace import where_user_is

__all__ = ["Static", "Watch", "describe", "is_traced"]

_FLOAT, _COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)
_SCALARS = {float: _FLOAT, complex: _COMPLEX}


def is_traced(leaf: Any) -> bool:
    """Whether an argument enters a traced function without its numbers."""
    return isinstance(leaf, (Tensor, np.ndarray, float, complex))


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
        raise TraceError(
            f"{where_user_is()}jit: an argument of type {kind.__name__} is neither an array nor a "
            "number, and it cannot be a static argument, because it is not hashable"
        ) from None
    return (kind, leaf)


class Static:
    """A mark on an argument that is static; leaves of it are not looked for."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((Static, self.value))


class Watch:
    """The names that a function, and those it is made of, take from outside.

    A trace has their values in it. So before it is used again, they are compared: a number that
    changed means another trace. (The numbers *in* an array or a tensor are read in every call.)
    """

    __slots__ = ("cells", "names")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.cells: list[tuple[CellType, Any]] = []
        self.names: list[tuple[dict[str, Any], str, Any]] = []
        seen: set[int] = set()
        stack: list[Any] = [function]
        while stack:
            each = stack.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            stack += self._look_at(each)

    def _look_at(self, function: Any) -> Iterator[Any]:
        """Note what a function refers to, and return the functions among that."""
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            yield wrapped
        function = getattr(function, "__func__", function)
        if not isinstance(function, FunctionType):
            return
        if function.__globals__.get("__name__", "").startswith("numgrad."):
            for cell in function.__closure__ or ():  # one of our own transforms: what is in it?
                yield from _functions((cell.cell_contents,))
            return
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # a name that is not bound yet
                continue
            self.cells.append((cell, value))
            yield from _functions((value,))
        for name in _global_names(function.__code__):
            if name in function.__globals__:
                value = function.__globals__[name]
                if isinstance(value, ModuleType):
                    continue
                self.names.append((function.__globals__, name, value))
                yield from _functions((value,))

    def changed(self) -> str | None:
        """Return the name of something that is not what it was, None if all is."""
        for cell, value in self.cells:
            if cell.cell_contents is not value:
                return "a variable of an enclosing function"
        for names, name, value in self.names:
            if names.get(name, self) is not value:
                return name
        return None


def _functions(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, FunctionType) or hasattr(value, "__wrapped__"):
            yield value


def _global_names(code: Any) -> set[str]:
    """Return the global names in a function's code and in that of functions inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            names |= _global_names(constant)
    return names
