"""Losses that depend on the phase of vectors, which no factorisation determines: they are refused.

Eigenvectors and singular vectors of complex matrices are determined up to a factor e^(i phi) each.
A gradient exists where the loss is the same for each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.primitive import Primitive

__all__ = ["require_same_for_all_phases"]

Array = np.ndarray[Any, Any]


def _checked(inner: Array, other: Array, words: str) -> Array:
    turns = np.diagonal(inner, axis1=-2, axis2=-1).imag
    others = np.diagonal(other, axis1=-2, axis2=-1).imag
    if inner is not other:
        if not np.all(np.abs(turns + others) <= 1e-2 + 1e-2 * np.abs(others)):
            raise RuntimeError(words)
    elif not np.all(np.abs(turns) <= 1e-2):
        raise RuntimeError(words)
    return inner.copy()


_CHECK = Primitive(
    "require_same_for_all_phases",
    "NotImplemented",
    _checked,
    ["inner", "other"],
    [lambda g: g, None],
    listed=False,
)


def require_same_for_all_phases(words: str, inner: Tensor, other: Tensor | None = None) -> Tensor:
    """Return V^H gV, or raise where vectors' phases count: where its diagonal has imaginary parts.

    Where there are two sets of vectors that turn together, those parts have to cancel.
    """
    if inner._array.dtype.kind != "c":
        return inner
    second = inner if other is None else other
    result: Tensor = _CHECK.apply(inner, second, words=words)
    return result
