"""Batches of matrices as the kernels of this folder take them: three dims, in C order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["by_columns", "flat", "own"]

Array = np.ndarray[Any, Any]


def flat(array: Array) -> Array:
    """Return matrices as one batch in C order, which may be the same memory."""
    rows, columns = array.shape[-2:]
    return np.ascontiguousarray(array).reshape(math.prod(array.shape[:-2]), rows, columns)


def own(array: Array) -> Array:
    """Return matrices as one batch in C order, in new memory."""
    rows, columns = array.shape[-2:]
    return np.array(array, order="C").reshape(math.prod(array.shape[:-2]), rows, columns)


def by_columns(array: Array) -> Array:
    """Return matrices whose columns lie one behind the other, as LAPACK gives them."""
    return np.ascontiguousarray(array.swapaxes(-2, -1)).swapaxes(-2, -1)
