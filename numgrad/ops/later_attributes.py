"""Attributes of tensors that are made when they are first asked for.

So importing numgrad loads no operation: it puts something in each one's place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.graph.tensor import Tensor

__all__ = ["Later", "bind_later"]


class Later:
    """An attribute of tensors that is made, and loaded with its operation, when first asked for."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self.name, self.make = name, make

    def __get__(self, instance: Tensor | None, owner: Any = None) -> Any:
        made = self.make()
        setattr(Tensor, self.name, made)
        return made.__get__(instance, owner)  # what a subclass has under the name asks for this


class LaterProperty(Later):
    """A property of those; it keeps tensors from having an attribute of their own instead."""

    __slots__ = ()

    def __set__(self, instance: Tensor, value: Any) -> None:
        setattr(Tensor, self.name, self.make())
        setattr(instance, self.name, value)


# Properties that files of operations declare, and two that have what is written to them, too.
_PROPERTIES = ("T", "mT", "H", "mH", "real", "imag")


def bind_later(name: str, make: Callable[[], Any]) -> None:
    """Put an attribute on `Tensor` that `make` returns when it is first asked for."""
    kind = LaterProperty if name in _PROPERTIES else Later
    setattr(Tensor, name, kind(name, make))
