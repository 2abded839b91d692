"""Queries of tensors: numel, is_tensor, is_floating_point, result_type and relatives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import eq
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.layouts import channels_last, memory_format, order_in_memory
from numgrad.graph.size import Size
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.loop_order import loop_order
from numgrad.ops.arguments.conversion import to_bool
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.core.registry import public
from numgrad.ops.movement.copies import is_contiguous
from numgrad.ops.signatures.declared import declare

__all__ = [
    "broadcast_shapes",
    "dim_order",
    "is_complex_tensor",
    "is_floating_point",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "numel",
    "result_type",
]


@public(method=False)
def is_tensor(obj: Any) -> bool:
    """Return whether an object is a tensor.

    Mirrors ``torch.is_tensor``.

    >>> import numgrad as ng
    >>> ng.is_tensor(ng.ones(2)), ng.is_tensor([1.0, 1.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


@declare("numel(Tensor input)", method=False)
def numel(input: Tensor) -> int:
    """Return how many elements a tensor has.

    Mirrors ``torch.numel``.

    >>> import numgrad as ng
    >>> ng.numel(ng.ones(2, 3))
    6
    """
    return int(input._array.size)


@declare("is_floating_point(Tensor input)", method=False)
def is_floating_point(input: Tensor) -> bool:
    """Return whether the elements of a tensor are real floating point numbers.

    Mirrors ``torch.is_floating_point``.

    >>> import numgrad as ng
    >>> ng.is_floating_point(ng.ones(2)), ng.is_floating_point(ng.tensor([1, 2]))
    (True, False)
    """
    return bool(input._array.dtype.kind == "f")


@declare("is_complex(Tensor input)", method=False)
def is_complex_tensor(input: Tensor) -> bool:
    """Return whether the elements of a tensor are complex.

    Mirrors ``torch.is_complex``.

    >>> import numgrad as ng
    >>> ng.is_complex(ng.tensor([1j])), ng.is_complex(ng.ones(2))
    (True, False)
    """
    return bool(input._array.dtype.kind == "c")


@declare("is_signed(Tensor input)", method=False)
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype of a tensor has negative numbers.

    Mirrors ``torch.is_signed``.

    >>> import numgrad as ng
    >>> ng.is_signed(ng.tensor([1, 2])), ng.is_signed(ng.tensor([1, 2]).byte())
    (True, False)
    """
    return bool(input.dtype.is_signed)


@declare("is_nonzero(Tensor input)")
def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element of a tensor is other than zero.

    Mirrors ``torch.is_nonzero``.

    Raises
    ------
    RuntimeError
        Unless there is exactly one element.

    >>> import numgrad as ng
    >>> ng.is_nonzero(ng.tensor([0.5])), ng.is_nonzero(ng.tensor(0))
    (True, False)
    """
    return bool(to_bool(input))


@declare("is_same_size(Tensor input, Tensor other)")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape.

    Mirrors ``torch.is_same_size``.

    >>> import numgrad as ng
    >>> ng.is_same_size(ng.ones(2, 3), ng.zeros(2, 3)), ng.is_same_size(ng.ones(2), ng.ones(1))
    (True, False)
    """
    return bool(input._array.shape == other._array.shape)


@declare(
    "result_type(Tensor tensor, Tensor other)",
    "result_type(number scalar, Tensor tensor)",
    "result_type(Tensor tensor, number other)",
    "result_type(number scalar1, number scalar2)",
    method=False,
)
def result_type(
    tensor: Tensor | None, other: Any, scalar: Any, scalar1: Any, scalar2: Any
) -> dtypes.dtype:
    """Return the dtype that arithmetic of two tensors, or of a tensor and a number, would have.

    Mirrors ``torch.result_type``.

    Raises
    ------
    TypeError
        If one is neither a tensor nor a number.

    >>> import numgrad as ng
    >>> ng.result_type(ng.tensor([1, 2]), 0.5), ng.result_type(ng.ones(2), ng.tensor(1).double())
    (torch.float32, torch.float32)
    """
    given = [tensor, other, scalar, scalar1, scalar2]
    return result_dtype([each for each in given if each is not None])


@public(method=False)
def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """Return the shape that shapes broadcast to.

    Mirrors ``torch.broadcast_shapes``.

    Parameters
    ----------
    *shapes : int or sequence of int
        An int stands for a shape of one dim.

    Raises
    ------
    RuntimeError
        If they don't broadcast.
    ValueError
        If a length is negative.

    >>> import numgrad as ng
    >>> ng.broadcast_shapes((2, 1), (3,), 1)
    torch.Size([2, 3])
    """
    found: list[int] = []
    for number, given in enumerate(shapes):
        if not isinstance(given, (int, str, Sequence, Tensor, np.ndarray)):
            raise RuntimeError(
                "Input shapes should be of type ints, a tuple of ints, or a list of ints, got "
                f"{given}"
            )
        shape = (given,) if isinstance(given, int) else tuple(given)
        if any(length < 0 for length in shape):
            raise ValueError("Attempting to broadcast a dimension with negative length!")
        found = [1] * (len(shape) - len(found)) + found
        for dim in range(-1, -len(shape) - 1, -1):
            if shape[dim] in (1, found[dim]):
                continue
            if found[dim] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[dim]} at {dim}! "
                    f"Mismatching argument at index {number} had {shape}; but expected shape "
                    f"should be broadcastable to {found}"
                )
            found[dim] = shape[dim]
    return Size(found)


_AMBIGUOUS = (
    "The tensor does not have unique dim order, or cannot map to exact one of the given memory "
    "formats."
)


@public(function=False)
def dim_order(input: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Return the dims in the order in which memory has them, the outermost first.

    Parameters
    ----------
    input : tensor
    ambiguity_check : bool or list of memory formats
        Whether it is an error if there are several such orders, as with dims of length 1. With a
        list it is none if the tensor is in exactly one of these formats.

    Raises
    ------
    RuntimeError
        If there are several such orders, and that is an error.

    >>> import numgrad as ng
    >>> ng.ones(2, 3, 4).transpose(1, 2).dim_order()
    (0, 2, 1)
    """
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not (formats or ambiguity_check == [] or isinstance(ambiguity_check, bool)) or not all(
        isinstance(each, memory_format) for each in formats
    ):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    array = input._array
    shape, strides, ndim = array.shape, array.strides, array.ndim
    if ambiguity_check is not False and (1 in shape or any(map(eq, strides, strides[1:]))):
        fits = [each for each in formats if is_contiguous(input, memory_format=each)]
        if len(fits) != 1:
            raise RuntimeError(_AMBIGUOUS)
    in_order = is_contiguous(input)
    if in_order == (ndim == 4 and is_contiguous(input, memory_format=channels_last)):
        order = loop_order(shape, [array])  # in neither, or in both
        steps = [strides[dim] for dim in order]
        if ambiguity_check and not all(0 < inner < outer for outer, inner in pairwise(steps)):
            raise RuntimeError("The tensor does not have unique dim order.")
        return order
    return tuple(range(ndim)) if in_order else order_in_memory(channels_last, ndim) or ()
