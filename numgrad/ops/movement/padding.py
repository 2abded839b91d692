"""Padding with a number: constant_pad_nd."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.layouts import channels_last_of, order_in_memory
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.memory_order import empty_by_order
from numgrad.ops.arguments.scalar_arrays import scalar_array
from numgrad.ops.core.places import like_input
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.samples import sample
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.kinds import check_storage
from numgrad.runtime.memory import empty

__all__ = ["constant_pad_nd"]

Array = np.ndarray[Any, Any]


def _memory(input: Array, widths: tuple[tuple[int, int], ...]) -> Any:
    """Return memory in the order of dims that a result has: None for row by row.

    What is cut and nowhere padded is a copy, which keeps that of the input.
    """
    order: Any
    if all(max(pair) <= 0 for pair in widths):
        steps = like_input(input).strides
        order = sorted(range(input.ndim), key=lambda dim: -steps[dim])
    else:
        order = order_in_memory(channels_last_of(input.shape, input.strides), input.ndim)
    return None if order is None else empty_by_order(_shape(input, widths), input.dtype, order)


def _shape(input: Array, widths: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    sizes = zip(input.shape, widths, strict=True)
    return tuple([size + before + behind for size, (before, behind) in sizes])


def _padded(input: Array, widths: tuple[tuple[int, int], ...], value: Any) -> Array:
    result = _memory(input, widths)
    if result is None:
        result = empty(_shape(input, widths), input.dtype)
    result[...] = value
    source, target = [], []
    for size, (before, behind) in zip(input.shape, widths, strict=True):
        source.append(slice(max(-before, 0), size - max(-behind, 0)))
        target.append(slice(max(before, 0), size + before + behind - max(behind, 0)))
    result[tuple(target)] = input[tuple(source)]
    return result


_PAD: Primitive = Primitive(
    "constant_pad_nd",
    "ConstantPadNdBackward0",
    _padded,
    ["input"],
    [
        lambda g, widths: _PAD.apply(
            g, widths=tuple([(-before, -behind) for before, behind in widths]), value=0
        )
    ],
    lies=_memory,
    samples=[
        sample("constant_pad_nd", (2, 3), pad=(1, 2, -1, 1), value=2.0),
        sample("constant_pad_nd", (4,), pad=(-1, -1)),
        sample("constant_pad_nd", (2, 0), pad=(1, 0)),
        sample("constant_pad_nd", (2,), pad=()),
    ],
)


@declare("constant_pad_nd(Tensor input, int[] pad, number value=0)", method=False, dispatched=True)
def constant_pad_nd(input: Tensor, pad: Any, value: Any) -> Tensor:
    """Return the input with more elements around it, all of them one number.

    The gradient is the part of g where the input is.

    Parameters
    ----------
    pad
        How many to add before and behind the last dim, then the one before it, and so on; negative
        ones take away.
    value
        What they are.

    Raises
    ------
    RuntimeError
        If there are more than two for each dim or an odd number, or too much would be taken away.

    >>> import numgrad as ng
    >>> ng.constant_pad_nd(ng.tensor([[1, 2], [3, 4]]), (1, 0, 0, 1))
    tensor([[0, 1, 2],
            [0, 3, 4],
            [0, 0, 0]])
    """
    shape = input._array.shape
    ndim = len(shape)
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad "
            f"length is {len(pad)}while the input has {ndim}dimensions."
        )
    widths = [(0, 0)] * ndim
    for at in range(len(pad) // 2):
        dim, (before, behind) = ndim - 1 - at, pad[2 * at : 2 * at + 2]
        if shape[dim] + min(before, 0) + min(behind, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        widths[dim] = (before, behind)
    check_storage([length + sum(widths[dim]) for dim, length in enumerate(shape)])
    number = scalar_array(value, input._array.dtype).item()
    result: Tensor = _PAD.apply(input, widths=tuple(widths), value=number)
    return result
