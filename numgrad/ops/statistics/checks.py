"""Checks of numbers that gradients flow through, in traced functions and elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.primitive import Primitive

__all__ = ["checked"]

Array = np.ndarray[Any, Any]
Check = Callable[[Array], None]


def _look(array: Array, check: Check) -> Array:
    check(array)
    return array.copy()


_CHECKED = Primitive(
    "checked",
    "AliasBackward0",
    _look,
    ["input"],
    [lambda g: g],
    takes_half=True,
    stand_in=lambda place: np.ones(place.shape, place.dtype),
    listed=False,
)


def checked(tensor: Tensor, check: Check) -> Tensor:
    """Return a tensor whose numbers pass a check, which raises or warns if they don't.

    In a traced function, where there are none yet, that is done in every call; the result has to
    be used for that.
    """
    if modes.trace is not None:
        result: Tensor = _CHECKED.apply(tensor, check=check)
        return result
    check(tensor._array)
    return tensor
