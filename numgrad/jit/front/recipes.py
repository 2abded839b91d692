"""Pickle functions that transformations return: how each was made, to make it again.

Python pickles no function but by its name, and the name of such a one is that of the function that
it was made of. But its code is that which the transformation has for all that it returns, and the
arguments of the transformation are the variables that this code takes from outside.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

__all__ = ["made_of", "portable", "remembered"]

Transform = TypeVar("Transform", bound=Callable[..., Any])

# The transformations, by the code of the functions that they return.
_TRANSFORMS: dict[CodeType, Callable[..., Any]] = {}


def remembered(transform: Transform) -> Transform:
    """Let it be known how the functions were made that a transformation returns; a decorator.

    What it returns has to be a function that it defines. Of its arguments, those get lost which
    that function does not look at.
    """
    constants = transform.__code__.co_consts
    _TRANSFORMS.update((code, transform) for code in constants if isinstance(code, CodeType))
    return transform


def portable(function: Any) -> Any:
    """Return what is pickled in the place of a function: how it was made, if that is known."""
    transform = _TRANSFORMS.get(getattr(function, "__code__", None))  # type: ignore[arg-type]
    return function if transform is None else _Recipe(transform, function)


class _Recipe:
    """A function as it is pickled: to be made anew."""

    def __init__(self, transform: Callable[..., Any], function: Any) -> None:
        names, cells = function.__code__.co_freevars, function.__closure__
        found = {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}
        known = inspect.signature(transform).parameters
        keywords = {name: value for name, value in found.items() if name in known}
        self._made_of = transform, portable(keywords.pop("func")), keywords

    def make(self) -> Any:
        transform, function, keywords = self._made_of
        return transform(made_of(function), **keywords)


def made_of(function: Any) -> Any:
    """Return the function in whose place this was pickled, or copied."""
    return function.make() if type(function) is _Recipe else function
