"""Storages: the memory that tensors share, as bytes; copies and pickles keep the sharing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.recorder import address_of
from numgrad.graph.tensor import Tensor, holder_of, wrap
from numgrad.kernels.move.strides import extent, layout_of, strided_view
from numgrad.runtime.memory import empty

__all__ = ["Span", "array_within", "compact", "offset_of", "span_of", "tensor_within"]

Array = np.ndarray[Any, Any]
_FAR = 1 << 62  # bytes from memory to a view of nothing: further, and there were no address


class Span(NamedTuple):
    """A stretch of memory.

    Attributes
    ----------
    start, stop : int
        The addresses of its first byte and of the one behind its last.
    array : numpy.ndarray
        An array that reaches from one to the other.
    """

    start: int
    stop: int
    array: Array

    def copy(self) -> Array:
        """Return the bytes, in new memory."""
        array = self.array
        low, high = extent(layout_of(array))
        elements = strided_view(array, ((high - low,), (1,), low))
        copy = empty(self.stop - self.start, np.uint8)
        copy.view(array.dtype)[...] = elements
        return copy

    def contains(self, other: Span) -> bool:
        """Return whether another span is part of this one."""
        return self.start <= other.start and other.stop <= self.stop


def span_of(tensor: Tensor) -> Span:
    """Return the memory of a tensor, for a view that of its base.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.zeros(2, 3)
    >>> span = span_of(x[1])
    >>> span.stop - span.start, span.start == x.data_ptr()
    (24, True)
    """
    base = tensor._base
    if base is None:
        array = tensor._array
    else:
        array = holder_of(tensor) if base._parted else base._array
    array = np.asarray(array)
    address: int = array.__array_interface__["data"][0]
    if any(step % array.itemsize for step in array.strides):
        array = np.asarray(array, order="C")  # a field of NumPy's records; nobody shares it
        array = array if array.flags.c_contiguous else array.copy()
        address = array.__array_interface__["data"][0]
    low, high = extent(layout_of(array))
    return Span(address + low * array.itemsize, address + high * array.itemsize, array)


def array_within(
    memory: Array, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> Array:
    """Return an array that lies in some bytes; strides and offset count bytes.

    Raises
    ------
    ValueError, TypeError
        If it does not lie in them.

    Examples
    --------
    >>> array_within(np.arange(4.0).view(np.uint8), np.float64, (2,), (16,), 8)
    array([1., 3.])
    """
    if 0 in shape:  # views without elements may point outside
        whole = _elements(memory, dtype)
        size = whole.itemsize
        steps = tuple([step // size for step in strides])
        return strided_view(whole, (shape, steps, min(max(offset, 0), _FAR) // size))
    if offset < 0:
        raise ValueError("an array can't start before its memory")
    return np.ndarray(shape, dtype, memory, offset, strides)


def tensor_within(array: Array, memory: Array) -> Tensor:
    """Return a tensor of an array that lies in some bytes, which know of each other then.

    Examples
    --------
    >>> memory = np.zeros(32, np.uint8)
    >>> tensor_within(array_within(memory, np.float64, (2,), (8,), 16), memory).storage_offset()
    2
    """
    tensor = wrap(array)
    if array.base is memory or not array.size:
        tensor._owner = _elements(memory, array.dtype)
    return tensor


def _elements(memory: Array, dtype: Any) -> Array:
    """Return some bytes as elements, without what is left over."""
    return memory[: memory.size - memory.size % np.dtype(dtype).itemsize].view(dtype)


def compact(array: Array) -> tuple[Array, tuple[int, ...]]:
    """Return the elements of an array, and strides to see them by, in bytes.

    Dims keep their order in memory, and what is repeated stays repeated, but nothing lies between.

    Examples
    --------
    >>> compact(np.zeros((2, 6), order="F")[:, ::3])
    (array([0., 0., 0., 0.]), (8, 16))
    """
    dims = sorted(range(array.ndim), key=lambda dim: (-abs(array.strides[dim]), dim))
    strides = [0] * array.ndim
    step = array.itemsize
    once: list[Any] = [slice(None)] * array.ndim
    for dim in reversed(dims):
        if array.strides[dim] == 0 and array.shape[dim] > 1:
            once[dim] = slice(0, 1)
        else:
            strides[dim] = step
            step *= max(array.shape[dim], 1)
    flat = array[(*once, ...)].transpose(dims).reshape(-1)
    return (flat.copy() if np.may_share_memory(flat, array) else flat), tuple(strides)


def offset_of(tensor: Tensor) -> int:
    """Return where in its storage a tensor's first element lies, in elements."""
    array, holder = tensor._array, holder_of(tensor)
    low, _ = extent(layout_of(holder))
    return (address_of(array) - address_of(holder) - low * holder.itemsize) // array.itemsize
