"""Repeat elements: repeat, tile, repeat_interleave."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.recorder import note_numbers, refuse_shape_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.indexing.index_along import index_select
from numgrad.ops.movement.casts import expand_to, sum_to_size
from numgrad.ops.movement.copies import clone_contiguous
from numgrad.ops.movement.shape import flatten, reshape
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.kinds import check_storage, type_name

__all__ = ["repeat", "repeat_interleave", "tile"]

Array = np.ndarray[Any, Any]


def _repeat_rule(g: Tensor, input_shape: tuple[int, ...], repeats: tuple[int, ...]) -> Tensor:
    """Sum over the repetitions: split every dim into (repeat, length) and sum the former."""
    leading = len(repeats) - len(input_shape)
    whole = (1,) * leading + input_shape
    pairs = [length for pair in zip(repeats, whole, strict=True) for length in pair]
    if not pairs:
        return g
    kept = [length for pair in zip((1,) * len(whole), whole, strict=True) for length in pair]
    return reshape(sum_to_size(reshape(g, tuple(pairs)), tuple(kept)), input_shape)


def _repeated(array: Array, repeats: tuple[int, ...]) -> Array:
    if 0 in repeats:  # NumPy would do the other dims first, of any length
        shape = (1,) * (len(repeats) - array.ndim) + array.shape
        lengths = [length * times for length, times in zip(shape, repeats, strict=True)]
        return np.empty(lengths, array.dtype)
    return np.tile(np.asarray(array, order="C"), repeats)


_REPEAT: Primitive = Primitive(
    "repeat",
    "RepeatBackward0",
    _repeated,
    ["input"],
    [_repeat_rule],
    linear=True,
    samples=[
        lambda make: (repeat, [make(2, 3)], {"repeats": (2, 1, 3)}),
        lambda make: (repeat, [make()], {"repeats": (2,)}),
        lambda make: (repeat, [make(2)], {"repeats": (0,)}),
        lambda make: (repeat, [make(0)], {"repeats": (2, 2)}),
    ],
)


@declare("repeat(Tensor input, int[] repeats)", function=False, dispatched=True)
def repeat(input: Tensor, repeats: tuple[int, ...]) -> Tensor:
    """Return copies of the tensor side by side, as many along each dim as told.

    The gradient is g, summed over the copies.

    Parameters
    ----------
    repeats
        At least one for each dim; further ones come in front.

    Raises
    ------
    RuntimeError
        If there are fewer than dims, or one is negative.

    >>> import numgrad as ng
    >>> ng.tensor([1.0, 2.0]).repeat(2)
    tensor([1., 2., 1., 2.])
    """
    numbers = repeats
    shape = input._array.shape
    if len(numbers) < len(shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    whole = (1,) * (len(numbers) - len(shape)) + shape
    target = [count * length for count, length in zip(numbers, whole, strict=True)]
    for count, length in zip(numbers, target, strict=True):
        if count < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {length}: {target}"
            )
    check_storage(target)
    result: Tensor = _REPEAT.apply(input, repeats=numbers)
    return result


@declare("tile(Tensor input, int[] dims)", dispatched=True)
def tile(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return copies of the tensor side by side; dims that are not named are not repeated.

    The gradient is g, summed over the copies.

    Parameters
    ----------
    dims
        How often, for the last dims.

    >>> import numgrad as ng
    >>> ng.tile(ng.tensor([[1.0, 2.0]]), (2,))
    tensor([[1., 2., 1., 2.]])
    """
    return repeat(input, (1,) * (input._array.ndim - len(dims)) + dims)


@declare(
    "repeat_interleave(Tensor input, Tensor repeats, int? dim=None, *, int? output_size=None)",
    "repeat_interleave(Tensor input, int repeats, int? dim=None, *, int? output_size=None)",
    "repeat_interleave(Tensor repeats, *, int? output_size=None)",
)
def repeat_interleave(
    input: Tensor | None, repeats: Tensor | int, dim: int | None, output_size: int | None
) -> Tensor:
    """Return a copy with every position of a dim repeated on the spot.

    Of `repeats` alone: each position in it as often as it says.

    The gradient is g, summed over the repetitions.

    Parameters
    ----------
    repeats
        How often; an int64 tensor gives a number for each position.
    dim
        Without it, elements of the flattened tensor are repeated.
    output_size
        The length of the result along the dim, if it is known.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a number is negative, or there are not as many as positions.

    >>> import numgrad as ng
    >>> ng.tensor([1.0, 2.0]).repeat_interleave(2)
    tensor([1., 1., 2., 2.])
    """
    if input is None:
        if not isinstance(repeats, Tensor):
            raise TypeError(
                "repeat_interleave(): argument 'repeats' (position 1) must be Tensor, not "
                f"{type_name(repeats)}"
            )
        _counting(repeats)
        if repeats._array.ndim != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        input = wrap(np.arange(repeats._array.size, dtype=_counting(repeats)))
    source = reshape(input, (-1,)) if dim is None else input
    if not source._array.ndim and isinstance(repeats, Tensor):
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if isinstance(repeats, Tensor) and repeats._array.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    at = 0 if dim is None else wrap_dim(dim, source._array.ndim)
    if not isinstance(repeats, Tensor):
        return _repeat_each(source, repeats, at, output_size)
    _counting(repeats)
    refuse_shape_of("repeat_interleave", repeats._array)
    note_numbers(repeats._array)
    counts = repeats._array.reshape(-1)
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    length = source._array.shape[at]
    if counts.size == 1:
        counts = np.broadcast_to(counts, (length,))
    elif counts.size != length:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.size} and input.size({at}) = {length}"
        )
    if output_size is not None and output_size != counts.sum():
        raise RuntimeError("allocated size does not match required size")
    return index_select(source, at, wrap(np.repeat(np.arange(length), counts)))


def _counting(repeats: Tensor) -> np.dtype[Any]:
    """Return the dtype of numbers that say how often; raise unless it is one of integers."""
    if repeats._array.dtype not in (np.int64, np.int32):
        name = repeats.dtype.scalar_name
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{name}'")
    return repeats._array.dtype


def _repeat_each(source: Tensor, count: int, at: int, length: int | None = None) -> Tensor:
    """Return a copy with every position of a dim repeated `count` times."""
    if count < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = source._array.shape
    if not shape:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if length not in (None, shape[at] * count):
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {shape[at] * count} but got {length}"
        )
    wide = (*shape[: at + 1], count, *shape[at + 1 :])
    check_storage(wide)
    copied = clone_contiguous(expand_to(unsqueeze(source, at + 1), wide))
    return flatten(copied, at, at + 1)
