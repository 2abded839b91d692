"""Copies of tensors, in the order of memory that is asked for; and tensors without history."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.layouts import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    is_in_order,
    order_in_memory,
    preserve_format,
)
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.recorder import Traced, note_alternative
from numgrad.graph.tensor import Tensor, holder_of, uncounted
from numgrad.kernels.move.accumulate import private_copy
from numgrad.kernels.move.memory_order import empty_like
from numgrad.kernels.move.strides import layout_of
from numgrad.ops.core.places import copier
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.registry import public
from numgrad.ops.signatures.declared import declare
from numgrad.runtime.memory import empty

__all__ = ["clone", "clone_contiguous", "contiguous", "detach", "is_contiguous"]

Array = np.ndarray[Any, Any]


def _copy(array: Array, contiguous: bool | tuple[int, ...]) -> Array:
    if contiguous is True or (
        contiguous is False and array.flags.c_contiguous and 1 not in array.shape
    ):
        return private_copy(array)
    copy = _memory_of_copy(array, contiguous)
    copy[...] = array
    return copy


def _memory_of_copy(input: Array, contiguous: bool | tuple[int, ...]) -> Any:
    """Return memory for a copy; None for one in C order."""
    if contiguous is True:
        return None
    if contiguous is False:
        return empty_like(input)
    order = contiguous  # the dims, from the outermost in memory
    back = sorted(range(input.ndim), key=order.__getitem__)
    return empty(tuple([input.shape[dim] for dim in order]), input.dtype).transpose(back)


def _copy_quickly(array: Array, contiguous: bool | tuple[int, ...]) -> Any:
    if contiguous is True:
        return private_copy
    memory = _memory_of_copy(array, contiguous)
    if memory.flags.c_contiguous and memory.strides == np.empty(memory.shape, memory.dtype).strides:
        return private_copy
    return copier(memory)


_CLONE: Primitive = Primitive(
    "clone",
    "CloneBackward0",
    _copy,
    ["input"],
    [lambda g: g],
    linear=True,
    lies=_memory_of_copy,
    takes_half=True,
    quick=_copy_quickly,
    samples=[
        lambda make: (clone, [make(2, 3)], {}),
        lambda make: (clone, [make()], {}),
        lambda make: (clone, [make(0)], {}),
    ],
)


@declare("clone(Tensor input, *, memory_format? memory_format=None)", dispatched=True)
def clone(input: Tensor, memory_format: Any) -> Tensor:
    """Return a copy in new memory, laid out as the input is where its elements fill memory.

    The gradient is g.

    Parameters
    ----------
    input : tensor
    memory_format : memory_format, optional
        `contiguous_format` has the copy in C order instead, `channels_last` in that one.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0])
    >>> x.clone() is x
    False
    """
    in_order: bool | tuple[int, ...] = False
    if memory_format is not None:
        order = order_in_memory(memory_format, input._array.ndim)
        in_order = memory_format is contiguous_format if order is None else order
    result: Tensor = _CLONE.apply(input, contiguous=in_order)
    return result


def clone_contiguous(input: Tensor) -> Tensor:
    """Return a copy in C order."""
    result: Tensor = _CLONE.apply(input, contiguous=True)
    return result


@declare(
    "contiguous(Tensor input, *, memory_format? memory_format=None)",
    function=False,
    dispatched=True,
    itself="memory_format is None and {0}._array.flags.c_contiguous",
)
def contiguous(input: Tensor, memory_format: Any) -> Tensor:
    """Return the tensor itself if it lies in C order in memory, else a copy that does.

    The gradient is g.

    Parameters
    ----------
    input : tensor
    memory_format : memory_format, optional
        `channels_last` asks for that order.

    Raises
    ------
    RuntimeError
        For `preserve_format`.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).t().contiguous().stride()
    (2, 1)
    """
    in_order = memory_format is not None and order_in_memory(memory_format, input._array.ndim)
    if in_order:
        there = is_contiguous(input, memory_format=memory_format)
        return input if there else clone(input, memory_format=memory_format)
    array: Any = input._array
    if type(array) is Traced and memory_format is not preserve_format:
        result = input if array.place.flags.c_contiguous else clone_contiguous(input)
        note_alternative(array, result._array)
        return result
    if array.flags.c_contiguous:
        return input
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return clone_contiguous(input)


@declare("is_contiguous(Tensor input, *, memory_format? memory_format=None)", function=False)
def is_contiguous(input: Tensor, memory_format: Any) -> bool:
    """Return whether the elements lie in C order in memory, without gaps.

    Parameters
    ----------
    input : tensor
    memory_format : memory_format, optional
        `channels_last` asks for that order instead.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).t().is_contiguous()
    False
    """
    if memory_format is not None and memory_format in (channels_last, channels_last_3d):
        shape, strides, _ = layout_of(input._array)
        return is_in_order(shape, strides, memory_format)
    return input._array.flags.c_contiguous


@declare("detach(Tensor input)", method=False)
@public(function=False)  # which takes nothing that would have to be looked at
def detach(input: Tensor) -> Tensor:
    """Return the same memory without history; writes to either show in both, and count as such.

    No gradient flows.

    >>> import numgrad as ng
    >>> ng.tensor([1.0], requires_grad=True).detach()
    tensor([1.])
    """
    array = input._array
    if interceptors:
        if modes.inference and modes.level is not None:
            modes.level.check_in_inference(input)
        if modes.dual is not None:  # tangents belong to arrays, and no tangent goes with this
            array = array[...]
        if modes.trace is not None:
            array = modes.trace.detached(array)
    tensor = uncounted(array)
    tensor._counter = input._counter
    if input._base is not None:
        tensor._owner = holder_of(input)
    elif input._owner is not None:
        tensor._owner = input._owner
    return tensor
