"""The methods by their names: where pickles find those that are not the function of that name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.ops.core.registry import INPLACE, METHODS

__all__: list[str] = []


def __getattr__(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] | None = METHODS.find(name) or INPLACE.find(name)
    if found is None:
        raise AttributeError(name)
    return found
