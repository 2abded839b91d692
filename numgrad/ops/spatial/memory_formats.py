"""Results of images that lie as these do: with the channels last in memory.

PyTorch has a format of images and volumes whose channels are neighbours, and most functions of
images give what they were given. Which elements a later write to a flattened result changes goes by
that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base.layouts import channels_last_of, order_in_memory
from numgrad.kernels.move.memory_order import empty_by_order

__all__ = ["as_images_lie", "memory_of_images"]

Array = np.ndarray[Any, Any]


def memory_of_images(shape: Sequence[int], dtype: Any, *images: Array) -> Array | None:
    """Return memory with the channels last, if those of any images are; None for row by row.

    >>> image = np.zeros((1, 5, 4, 3)).transpose(0, 3, 1, 2)
    >>> memory_of_images((1, 3, 2, 2), np.float64, image).strides
    (96, 8, 48, 24)
    >>> memory_of_images((1, 3, 2, 2), np.float64, np.zeros((1, 3, 5, 4)))
    """
    for image in images:
        if image.ndim > 3:
            order = order_in_memory(channels_last_of(image.shape, image.strides), image.ndim)
            if order is not None:
                return empty_by_order(shape, dtype, order)
    return None


def as_images_lie(result: Array, *images: Array) -> Array:
    """Return a result that lies row by row in the memory that `memory_of_images` gives."""
    memory = memory_of_images(result.shape, result.dtype, *images)
    if memory is None:
        return result
    memory[...] = result
    return memory
