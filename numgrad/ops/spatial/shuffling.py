"""Elements moved between channels and places: pixel_shuffle, its inverse, and channel_shuffle."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.image_places import as_images_lie, memory_of_images
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.samples import sample
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.arguments import numbers

__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]

Array = np.ndarray[Any, Any]


def _to_places(array: Array, factor: int) -> Array:
    *lead, channels, height, width = array.shape
    parts = array.reshape(*lead, channels // factor**2, factor, factor, height, width)
    first = len(lead)
    order = (*range(first), *(first + at for at in (0, 3, 1, 4, 2)))
    shape = (*lead, channels // factor**2, height * factor, width * factor)
    return as_images_lie(parts.transpose(order).copy().reshape(shape), array)


def _to_channels(array: Array, factor: int) -> Array:
    *lead, channels, height, width = array.shape
    low, narrow = height // factor, width // factor
    parts = array.reshape(*lead, channels, low, factor, narrow, factor)
    first = len(lead)
    order = (*range(first), *(first + at for at in (0, 2, 4, 1, 3)))
    shape = (*lead, channels * factor**2, low, narrow)
    return as_images_lie(parts.transpose(order).copy().reshape(shape), array)


def _mixed_lies(input: Array) -> Array | None:
    return memory_of_images(input.shape, input.dtype, input)


def _shuffled_lies(input: Array, factor: int) -> Array | None:
    *lead, channels, height, width = input.shape
    shape = (*lead, channels // factor**2, height * factor, width * factor)
    return memory_of_images(shape, input.dtype, input)


def _unshuffled_lies(input: Array, factor: int) -> Array | None:
    *lead, channels, height, width = input.shape
    shape = (*lead, channels * factor**2, height // factor, width // factor)
    return memory_of_images(shape, input.dtype, input)


_SHUFFLE: Primitive = Primitive(
    "pixel_shuffle",
    "PixelShuffleBackward0",
    _to_places,
    ["input"],
    [lambda g, factor: _UNSHUFFLE.apply(g, factor=factor)],
    linear=True,
    lies=_shuffled_lies,
    samples=[
        sample("pixel_shuffle", (4, 2, 3), upscale_factor=2),
        sample("pixel_shuffle", (2, 9, 1, 2), upscale_factor=3),
    ],
)
_UNSHUFFLE: Primitive = Primitive(
    "pixel_unshuffle",
    "PixelUnshuffleBackward0",
    _to_channels,
    ["input"],
    [lambda g, factor: _SHUFFLE.apply(g, factor=factor)],
    linear=True,
    lies=_unshuffled_lies,
    samples=[
        sample("pixel_unshuffle", (1, 2, 4), downscale_factor=2),
        sample("pixel_unshuffle", (2, 1, 3, 3), downscale_factor=3),
    ],
)


def _mixed(array: Array, dim: int, factor: int) -> Array:
    """Return channels, a dim of them, in another order: as a matrix of groups, turned."""
    channels = array.shape[dim]
    parts = array.reshape(*array.shape[:dim], factor, channels // factor, *array.shape[dim + 1 :])
    return as_images_lie(parts.swapaxes(dim, dim + 1).copy().reshape(array.shape), array)


_MIX: Primitive = Primitive(
    "channel_shuffle",
    "ChannelShuffleBackward0",
    _mixed,
    ["input"],
    [lambda g, input_shape, dim, factor: _MIX.apply(g, dim=dim, factor=input_shape[dim] // factor)],
    linear=True,
    lies=_mixed_lies,
    samples=[
        sample("channel_shuffle", (1, 6, 2), groups=2),
        sample("channel_shuffle", (2, 4, 1, 2), groups=4),
    ],
)


def _require_three(name: str, input: Tensor) -> None:
    if input._array.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with "
            f"{input._array.ndim} dimension(s)"
        )


@declare("pixel_shuffle(Tensor input, int upscale_factor)", method=False, dispatched=True)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Return images larger by a factor r, their pixels from r * r channels each.

    W. Shi et al., "Real-time single image and video super-resolution using an efficient sub-pixel
    convolutional neural network" (2016). The gradient is `pixel_unshuffle` of g.

    Parameters
    ----------
    input : tensor of shape (..., channels * r * r, height, width)
    upscale_factor
        The r.

    Returns
    -------
    tensor of shape (..., channels, height * r, width * r)

    Raises
    ------
    RuntimeError
        If there are not so many channels.

    >>> import numgrad as ng
    >>> ng.pixel_shuffle(ng.arange(8).reshape(4, 1, 2), 2)
    tensor([[[0, 2, 1, 3],
             [4, 6, 5, 7]]])
    """
    _require_three("pixel_shuffle", input)
    if upscale_factor <= 0:
        raise RuntimeError(
            f"pixel_shuffle expects a positive upscale_factor, but got {upscale_factor}"
        )
    channels = input._array.shape[-3]
    if channels % upscale_factor**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by "
            f"{upscale_factor**2}"
        )
    result: Tensor = _SHUFFLE.apply(input, factor=upscale_factor)
    return result


@declare("pixel_unshuffle(Tensor input, int downscale_factor)", method=False, dispatched=True)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Return images smaller by a factor r, their pixels in r * r times as many channels.

    The inverse of `pixel_shuffle`, which gives the gradient, too.

    Parameters
    ----------
    input : tensor of shape (..., channels, height * r, width * r)
    downscale_factor
        The r.

    Returns
    -------
    tensor of shape (..., channels * r * r, height, width)

    Raises
    ------
    RuntimeError
        If the images can't be divided so.

    >>> import numgrad as ng
    >>> ng.pixel_unshuffle(ng.arange(4).reshape(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    _require_three("pixel_unshuffle", input)
    if downscale_factor <= 0:
        raise RuntimeError(
            f"pixel_unshuffle expects a positive downscale_factor, but got {downscale_factor}"
        )
    for what, at in (("height", -2), ("width", -1)):
        size = input._array.shape[at]
        if size % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but "
                f"input.size({at})={size} is not divisible by {downscale_factor}"
            )
    result: Tensor = _UNSHUFFLE.apply(input, factor=downscale_factor)
    return result


@declare("channel_shuffle(Tensor input, int groups)", method=False, dispatched=True)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Return the channels in another order: one of each group after the other.

    X. Zhang et al., "ShuffleNet: an extremely efficient convolutional neural network for mobile
    devices" (2018). The gradient is g with the channels put back.

    Parameters
    ----------
    input : tensor of shape (n, channels, ...)
    groups
        So many groups of channels that follow each other.

    Raises
    ------
    RuntimeError
        If there are no such groups.

    >>> import numgrad as ng
    >>> ng.channel_shuffle(ng.arange(6).reshape(1, 6, 1), 2).flatten()
    tensor([0, 3, 1, 4, 2, 5])
    """
    shape = input._array.shape
    if len(shape) < 3:
        raise RuntimeError(
            "channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{numbers(shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    channels = shape[1]
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and "
            f"{groups} groups."
        )
    result: Tensor = _MIX.apply(input, dim=1, factor=groups)
    return result
