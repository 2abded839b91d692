"""Layouts and memory formats: strided, contiguous_format, channels_last and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

__all__ = [
    "channels_last",
    "channels_last_3d",
    "channels_last_of",
    "contiguous_format",
    "is_in_order",
    "layout",
    "memory_format",
    "order_in_memory",
    "preserve_format",
    "strided",
]

N = TypeVar("N", bound="_Named")


class _Named:
    """One of few objects that a module has under the name that they print as."""

    __slots__ = ("_name",)

    _name: str

    def __new__(cls) -> _Named:
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class layout(_Named):  # noqa: N801 - PyTorch's name
    """How a tensor keeps its elements. There is one way, `strided`.

    >>> import numgrad as ng
    >>> ng.ones(2).layout
    torch.strided
    """

    __slots__ = ()


class memory_format(_Named):  # noqa: N801 - PyTorch's name
    """In which order a copy lies in memory.

    Row by row, `contiguous_format`; as what it is a copy of, `preserve_format`; or with the second
    dim innermost: `channels_last` for 4 dims, `channels_last_3d` for 5.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).t().clone(memory_format=ng.contiguous_format).stride()
    (2, 1)
    """

    __slots__ = ()


def _named(kind: type[N], name: str) -> N:
    made = object.__new__(kind)
    made._name = name
    return made


strided = _named(layout, "strided")
contiguous_format = _named(memory_format, "contiguous_format")
preserve_format = _named(memory_format, "preserve_format")
channels_last = _named(memory_format, "channels_last")
channels_last_3d = _named(memory_format, "channels_last_3d")
# How many dims a tensor of these formats has, and its dims from the outermost in memory.
_CHANNELS_LAST = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}


def order_in_memory(memory_format: Any, ndim: int) -> tuple[int, ...] | None:
    """Return the dims from the outermost in memory to the innermost; None for row by row.

    Raises
    ------
    RuntimeError
        If a tensor of so many dims can't be in the format.
    """
    order = _CHANNELS_LAST.get(memory_format)
    if order is None:
        return None
    if len(order) != ndim:
        raise RuntimeError(f"required rank {len(order)} tensor to use {memory_format._name} format")
    return order


def is_in_order(shape: Sequence[int], strides: Sequence[int], memory_format: Any) -> bool:
    """Return whether elements lie in such a format, without gaps; strides count elements."""
    order = _CHANNELS_LAST.get(memory_format, ())
    if len(order) != len(shape):
        return False
    step = 1
    for dim in reversed(order):
        if shape[dim] != 1:
            if strides[dim] != step:
                return False
            step *= shape[dim]
    return True


def channels_last_of(shape: Sequence[int], strides: Sequence[int]) -> object:
    """Return the format among the two whose order strides are in, gaps or not; None for neither."""
    for memory_format, order in _CHANNELS_LAST.items():
        if len(order) == len(shape) and _descend(shape, strides, order):
            return memory_format
    return None


def _descend(shape: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    least = 0
    if strides[1] == 0:
        return False
    for dim in reversed(order):
        if shape[dim] == 0 or strides[dim] < least:
            return False
        if dim == 0 and least == strides[1]:  # of one channel and one place: row by row as well
            return False
        least = strides[dim] * max(shape[dim], 1)
    return True
