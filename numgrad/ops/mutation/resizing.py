"""Resize tensors: resize_, resize_as_ and set_."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.layouts import channels_last_of, order_in_memory, preserve_format
from numgrad.graph.counters import level_counter
from numgrad.graph.inplace import (
    before_write,
    bump_version,
    check_captured,
    check_counted,
    check_inplace,
)
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.recorder import address_of
from numgrad.graph.storage import offset_of
from numgrad.graph.tensor import NO_EDGE, Tensor, holder_of, set_array
from numgrad.kernels.move.strides import extent, layout_of, strided_view
from numgrad.ops.arguments.dims import read_sizes
from numgrad.ops.arguments.factories import check_memory_format
from numgrad.ops.movement.strided import place
from numgrad.ops.mutation.storages import STORAGES, tensor_in
from numgrad.runtime.memory import empty

__all__ = ["memory_of", "resize_", "resize_as_", "set_"]

Array = np.ndarray[Any, Any]


def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Give the tensor another shape in place: its memory's elements in order, row by row.

    Mirrors ``torch.Tensor.resize_``. Where there are more elements than memory, it gets more, and
    what is new is not set; views of the tensor keep the memory that was.

    Parameters
    ----------
    *size : ints
        The shape, as numbers or as one sequence.
    memory_format : optional
        `channels_last` has the elements in that order instead.

    Raises
    ------
    RuntimeError
        If the tensor requires grad, in any mode; if a length is negative.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.arange(6.0)
    >>> x.resize_(2, 2)
    tensor([[0., 1.],
            [2., 3.]])
    >>> x.resize_(6)
    tensor([0., 1., 2., 3., 4., 5.])
    """
    check_memory_format("resize_", memory_format)
    return _resize(self, read_sizes("resize_", size), memory_format)


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give the tensor the shape of another one in place; see `resize_`.

    Raises
    ------
    RuntimeError
        If the tensor requires grad.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.arange(4.0).resize_as_(ng.ones(2, 2))
    tensor([[0., 1.],
            [2., 3.]])
    """
    if not isinstance(the_template, Tensor):
        raise TypeError(
            "resize_as_(): argument 'the_template' (position 1) must be Tensor, not "
            f"{type(the_template).__name__}"
        )
    check_memory_format("resize_as_", memory_format)
    if memory_format is preserve_format:
        shape, strides, _ = layout_of(the_template._array)
        memory_format = channels_last_of(shape, strides)
    return _resize(self, the_template._array.shape, memory_format)


def _resize(tensor: Tensor, shape: tuple[int, ...], memory_format: Any = None) -> Tensor:
    if interceptors and modes.level is not None:
        check_captured(tensor, "resize")
    if tensor.requires_grad and not modes.inference:
        raise RuntimeError("cannot resize variables that require grad")
    if any(length < 0 for length in shape):
        raise RuntimeError("numel: integer multiplication overflow")
    order = order_in_memory(memory_format, len(shape))
    if shape == tensor._array.shape and order is None:
        return tensor
    check_counted(tensor)
    _prepare(tensor)
    memory, first = memory_of(tensor)
    count = int(np.prod(shape, dtype=np.int64))
    if first + count > memory.size:
        grown = empty((first + count,), memory.dtype)
        grown[: memory.size] = memory
        memory = grown
        _stand_alone(tensor)
    elements = memory[first : first + count]
    if order is None:
        set_array(tensor, elements.reshape(shape))
    else:
        back = sorted(range(len(order)), key=order.__getitem__)
        set_array(tensor, elements.reshape([shape[dim] for dim in order]).transpose(back))
    if tensor._base is None:
        tensor._memory, tensor._offset = memory, first
    bump_version(tensor)
    return tensor


def _prepare(tensor: Tensor) -> None:
    """Let who watches know of the change; in a function that is traced, refuse it."""
    if interceptors:
        if modes.trace is not None:
            np.asarray(tensor._array)  # raises what there is to say of one without numbers
            modes.trace.writable(tensor)
            modes.trace.check_reshaping("resize", tensor)
        before_write(tensor)


def memory_of(tensor: Tensor) -> tuple[Array, int]:
    """Return the memory that a tensor may take elements of, flat, and where in it it starts."""
    array = tensor._array
    if tensor._memory is not None:
        return tensor._memory, tensor._offset
    holder = holder_of(tensor)
    if holder.dtype == array.dtype:
        low, high = extent(layout_of(holder))
        first = (address_of(array) - address_of(holder)) // array.itemsize - low
        if 0 <= first <= high - low:
            return strided_view(holder, ((high - low,), (1,), low)), first
    low, high = extent(layout_of(array))
    return strided_view(array, ((high - low,), (1,), low)), -low


def _stand_alone(view: Tensor) -> None:
    """Make a view a tensor of its own: it gets memory that its base has no part in."""
    if view._base is not None:
        shared = view._counter
        if len(shared) > 3:  # of a function that `numgrad.func` runs, it stays that
            view._counter = level_counter(shared[3])
            view._counter[0] = shared[0]
        else:
            view._counter = type(shared)((shared[0],))
        view._base = None
        view._edge = NO_EDGE
        view._view_origin = ""


_SIGNATURES = (
    "set_() received an invalid combination of arguments - got ({}), but expected one of:\n * ()\n"
    " * (Tensor source)\n"
    " * (Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None)\n"
)


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int | None = None,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Let the tensor lie in another tensor's memory, with its shape and strides or given ones.

    Mirrors ``torch.Tensor.set_``. They are no views of each other: a write to one shows in the
    other, but is not counted there.

    Parameters
    ----------
    source : Tensor or storage, optional
        Of the same dtype. Without it, the tensor becomes empty.
    storage_offset : int, optional
        Where to start, in elements from the first of `source`; then `size` has to be given.
    size, stride : tuple of ints, optional
        The shape, and the steps in elements; without them, row by row.

    Raises
    ------
    RuntimeError
        If the tensor is a leaf that requires grad, or it would be differentiated; if the dtypes
        differ; if the elements lie outside of the memory of `source`.

    Examples
    --------
    >>> import numgrad as ng
    >>> x, y = ng.zeros(2), ng.arange(6.0)
    >>> x.set_(y, 1, (2, 2))
    tensor([[1., 2.],
            [3., 4.]])
    """
    if isinstance(source, STORAGES):
        source = tensor_in(source, self.dtype)
    given = [each for each in (source, storage_offset, size, stride) if each is not None]
    if (source is not None and not isinstance(source, Tensor)) or (
        (storage_offset is None) != (size is None) or (size is None and stride is not None)
    ):
        raise TypeError(_SIGNATURES.format(", ".join(type(each).__name__ for each in given)))
    check_inplace(self, operation="set")
    if modes.grad and (self.requires_grad or (source is not None and source.requires_grad)):
        raise RuntimeError("derivative for aten::set_ is not implemented")
    check_counted(self)
    if source is None:
        array: Array = np.empty(0, self._array.dtype)
    elif source._array.dtype != self._array.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source.dtype.cpp_name} to a tensor of type "
            f"{self.dtype.cpp_name}"
        )
    elif size is None:
        array = source._array
    else:
        shape = read_sizes("set_", (size,), position=3)
        if stride is None:
            steps, step = [], 1
            for length in reversed(shape):
                steps.append(step)
                step *= max(length, 1)
            stride = tuple(reversed(steps))
        stride = read_sizes("set_", (stride,), "stride", 4)
        start = int(storage_offset or 0)
        start += offset_of(source) if start >= 0 else 0
        array = strided_view(source._array, place(source, shape, stride, start))
    _prepare(self)
    self._owner = None if source is None else holder_of(source)  # before the array, if its own view
    set_array(self, array)
    self._memory, self._offset = None, 0
    (self if self._base is None else self._base)._parted = True
    bump_version(self)
    return self
