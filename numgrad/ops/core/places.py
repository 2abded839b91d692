"""How results and gradients lie in memory: what ``lies`` of a declaration and rules call.

See `numgrad.ops.core.primitive.Primitive`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import Traced, place_of
from numgrad.graph.tensor import Tensor, set_array
from numgrad.kernels.move.memory_order import (
    copy_with_gaps,
    empty_for,
    empty_in_order,
    empty_like,
    is_by_rows,
)
from numgrad.ops.calls.steps import READING, Step, forget_steps
from numgrad.runtime.memory import empty

__all__ = [
    "Strides",
    "by_columns",
    "copier",
    "laid_out",
    "lies_by_columns",
    "like_input",
    "like_original",
    "relaid",
    "strides_of",
    "with_gaps_of_input",
]

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


# --- gradients -----------------------------------------------------------------------------------


class Strides(NamedTuple):
    """How an operand lay that its node does not save; rules name it ``<input>_lies``.

    None stands for one that lay row by row.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    ndim: int
    itemsize: int


def strides_of(array: Any) -> Any:
    """Return what a node keeps of how an operand lies; a traced one has it, and follows others."""
    if type(array) is Traced:
        return array
    if array.flags.c_contiguous:
        return None
    return Strides(array.shape, array.strides, array.ndim, array.itemsize)


def relaid(value: Tensor, memory: Array, sources: Sequence[Any]) -> Tensor:
    """Return a gradient that a rule made, and nobody else holds, in other memory.

    Parameters
    ----------
    value : Tensor
    memory : numpy.ndarray
        New, of its shape and dtype.
    sources : sequence
        Arrays by which it was decided how the memory lies; those that are not traced don't count.
    """
    array: Any = value._array
    if type(array) is Traced:
        if value._base is not None:
            value = value.clone()
        set_array(value, modes.trace.laid_out(value._array, memory, *sources))
    elif memory.strides != array.strides:
        memory[...] = array
        if value._base is not None:
            value = value.clone()
        if modes.steps is not None:
            _note_copy(value, memory)
        set_array(value, memory)
    return value


def _note_copy(value: Tensor, memory: Array) -> None:
    """Tell who notes the steps of a rule that a gradient goes to other memory."""
    copied = copier(memory)
    if copied is None or id(value._array) in modes.steps.counted:
        forget_steps()
    else:
        arrays = (value._array,), (memory,)
        modes.steps.read(Step(READING, (), {}, (), copied, False, *arrays), False)


def copier(memory: Array) -> Callable[[Array], Array] | None:
    """Return what copies an array to new memory that lies as this does; None if it has gaps."""
    shape, strides, dtype = memory.shape, memory.strides, memory.dtype
    order = sorted(range(memory.ndim), key=lambda dim: (-strides[dim], -shape[dim]))
    back = np.argsort(order).tolist()
    outer = tuple([shape[dim] for dim in order])

    def copied(array: Array) -> Array:
        result = empty(outer, dtype).transpose(back)
        result[...] = array
        return result

    def copied_by_rows(array: Array) -> Array:
        result = empty(shape, dtype)
        result[...] = array
        return result

    if memory.flags.c_contiguous and empty(shape, dtype).strides == strides:
        return copied_by_rows
    return copied if empty(outer, dtype).transpose(back).strides == strides else None


def laid_out(value: Tensor, *deciding: Tensor) -> Tensor:
    """Return a gradient laid out as an operation on some tensors would do; row by row without any.

    It is for gradients that PyTorch computes in another order than the rule does.
    """
    array: Any = value._array
    shape = array.shape
    if len(shape) < 2:
        return value
    if not deciding:
        return relaid(value, empty(shape, array.dtype), ())
    places = [place_of(tensor._array) for tensor in deciding]
    if type(array) is not Traced and array.flags.c_contiguous and is_by_rows(shape, places):
        return value
    operands = [tensor._array for tensor in deciding]
    return relaid(value, empty_for(shape, array.dtype, places), operands)


def like_original(value: Tensor, lies: Any) -> Tensor:
    """Return a gradient that has its dims in the order in which the input had them."""
    array = value._array
    if lies is None or array.ndim < 2 or array.shape != lies.shape:
        return value
    return relaid(value, empty_in_order(array.shape, array.dtype, [place_of(lies)]), [lies])


def by_columns(value: Tensor, lies: Any) -> Tensor:
    """Return the gradient of a matrix by columns, without gaps, where the matrix lies so."""
    if lies is None:
        return value
    array = value._array
    columns = lies_by_columns(place_of(lies), array.dtype.itemsize)
    return relaid(value, np.empty(array.shape, array.dtype, "F" if columns else "C"), [lies])


def lies_by_columns(lies: Any, itemsize: int) -> bool:
    """Whether the columns of a matrix lie one behind the other, without gaps."""
    rows = lies.shape[0]
    return bool(rows > 1 < lies.shape[1] and lies.strides == (itemsize, itemsize * rows))
