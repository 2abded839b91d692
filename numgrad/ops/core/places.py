"""How a result lies in memory by how an input does: what ``lies`` of a declaration may be.

See `numgrad.ops.core.primitive.Primitive`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.kernels.move.memory_order import copy_with_gaps, empty_like

__all__ = ["like_input", "with_gaps_of_input"]

Array = np.ndarray[Any, Any]


def like_input(input: Array) -> Array:
    """Return memory without gaps, with the dims in the order in which the input has them.

    >>> like_input(np.zeros((3, 2)).T[:, ::2]).strides
    (8, 16)
    """
    return empty_like(input)


def with_gaps_of_input(input: Array) -> Array:
    """Return memory in which the elements lie as far apart as those of the input.

    >>> with_gaps_of_input(np.zeros((3, 4)).T[:, ::2]).strides
    (8, 64)
    """
    return empty_like(input) if input.flags.c_contiguous else copy_with_gaps(input)
