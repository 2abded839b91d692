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
from numgrad.graph.recorder import Traced, place_of
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.memory_order import empty_by_order
from numgrad.ops.core.places import Strides, relaid
from numgrad.runtime.memory import empty

__all__ = ["as_images_lie", "gradient_like", "image_of_lines", "memory_of_images"]

Array = np.ndarray[Any, Any]


def memory_of_images(shape: Sequence[int], dtype: Any, *images: Any) -> Array | None:
    """Return memory with the channels last, if those of any images are; None for row by row.

    Images are arrays, or what has their shape, strides and number of dims.

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


def as_images_lie(result: Array, *images: Any) -> Array:
    """Return a result that lies row by row in the memory that `memory_of_images` gives."""
    memory = memory_of_images(result.shape, result.dtype, *images)
    if memory is None:
        return result
    memory[...] = result
    return memory


def image_of_lines(lines: Any) -> Strides:
    """Return how images of a single line each lie, whose stride is that of PyTorch's.

    >>> image_of_lines(np.zeros((2, 3, 4))).strides
    (96, 32, 32, 8)
    """
    first, channel, step = lines.strides
    count, channels, length = lines.shape
    return Strides(
        (count, channels, 1, length), (first, channel, step * length, step), 4, lines.itemsize
    )


def gradient_like(value: Tensor, *images: Any) -> Tensor:
    """Return a gradient laid out as `as_images_lie` would do, which a rule made.

    Parameters
    ----------
    value : Tensor
    *images : Traced, Strides or None
        How images lie, as rules know it: None row by row. Without any it is row by row, too.
    """
    known = [each for each in images if each is not None]
    array: Any = value._array
    if type(array) is not Traced and not known and array.flags.c_contiguous:
        return value
    places = [place_of(each) for each in known]
    shape, dtype = array.shape, array.dtype
    if len(shape) == 3 and places:
        lines = memory_of_images(
            (*shape[:2], 1, shape[2]), dtype, *[image_of_lines(each) for each in places]
        )
        memory = None if lines is None else lines[:, :, 0]
    else:
        memory = memory_of_images(shape, dtype, *places)
    return relaid(value, empty(shape, dtype) if memory is None else memory, known)
