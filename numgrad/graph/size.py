"""The shape of a tensor: a tuple of ints with PyTorch's name and words."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any, SupportsIndex

import numpy as np

__all__ = ["Size"]

_new_tuple: Any = tuple.__new__


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints that prints as ``torch.Size([2, 3])``."""

    __slots__ = ()

    def __new__(cls, lengths: Iterable[SupportsIndex] = (), /) -> Size:
        found = list(lengths)
        for position, length in enumerate(found):
            if type(length) is not int:
                try:
                    found[position] = index(length)
                except TypeError:
                    raise TypeError(
                        "torch.Size() takes an iterable of 'int' "
                        f"(item {position} is '{type(length).__name__}')"
                    ) from None
        return _new_tuple(cls, found)

    def numel(self) -> int:
        """Return the number of elements of a tensor of this shape."""
        count = 1
        for length in self:
            count *= length
        return count

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, key: Any) -> Any:
        item = tuple.__getitem__(self, key)
        return _new_tuple(Size, item) if isinstance(key, slice) else item

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            kind = type(other).__name__
            raise TypeError(f"can only concatenate tuple (not {kind}) to torch.Size")
        return Size((*self, *other))

    def __radd__(self, other: Any) -> Size:
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Size:
        if isinstance(count, np.ndarray) or not hasattr(count, "__index__"):
            return NotImplemented  # an array multiplies each length
        return _new_tuple(Size, tuple.__mul__(self, count))

    __rmul__ = __mul__
