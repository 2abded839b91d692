"""Pickle functions that transformations return: how each was made, to make it again.

Python pickles no function but by its name, and the name of such a one is that of the function that
it was made of.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["portable", "remembered"]

Transform = TypeVar("Transform", bound=Callable[..., Any])


def remembered(transform: Transform) -> Transform:
    """Let it be known how the functions were made that a transformation returns."""

    @functools.wraps(transform)
    def remembering(func: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        made = transform(func, *args, **keywords)
        # Whose it is: functools.wraps copies attributes to functions that do something else.
        made.__recipe__ = (made.__code__, remembering, func, args, keywords)
        return made

    return remembering  # type: ignore[return-value]


def portable(function: Any) -> Any:
    """Return what is pickled in the place of a function: how it was made, if that is known."""
    code, *recipe = getattr(function, "__recipe__", (None,))
    if code is None or code is not getattr(function, "__code__", None):
        return function
    return _Recipe(*recipe)


class _Recipe:
    """A function as it is pickled: to be made anew."""

    def __init__(self, transform: Any, function: Any, args: Any, keywords: Any) -> None:
        self._made_of = transform, portable(function), args, keywords

    def __reduce__(self) -> Any:
        return _make_again, self._made_of


def _make_again(transform: Any, function: Any, args: Any, keywords: Any) -> Any:
    return transform(function, *args, **keywords)
