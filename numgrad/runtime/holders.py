"""Who holds an array's memory: whether a list is all that does."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from numgrad.runtime.memory import Lease

__all__ = ["nobody_else_holds"]


def _count_of(holder: list[Any], index: int) -> int:
    return sys.getrefcount(holder[index])


def _count_below(array: Any) -> int:
    return sys.getrefcount(array.base)


# What these count where nobody else has the array. It is measured, because that is the
# interpreter's affair: some do not count what is on their own stack.
_ONE = _count_of([np.empty(2)], 0)
_ONE_BELOW = _count_below(np.empty(2)[:1])


def nobody_else_holds(holder: list[Any], index: int) -> bool:
    """Return whether an entry of a list is all that keeps an array's memory.

    Whoever asks may not have the array in a variable. False also where that can't be known, and
    where the array may not be written to, or elements of it lie in the same place.

    Parameters
    ----------
    holder : list
        What has the array.
    index : int
        Where.

    Examples
    --------
    >>> arrays = [np.ones(3), np.ones((3, 2)).T, np.ones(3)]
    >>> view = arrays[2][1:]
    >>> [nobody_else_holds(arrays, i) for i in range(3)]
    [True, True, False]
    >>> nobody_else_holds([np.lib.stride_tricks.as_strided(np.ones(1), (3,), (0,))], 0)
    False
    """
    if _count_of(holder, index) > _ONE:
        return False
    array = holder[index]
    if not array.flags.writeable or not (array.flags.owndata or _is_spread(array)):
        return False
    while not array.flags.owndata:
        if _count_below(array) > _ONE_BELOW:
            return False
        array = array.base
        if type(array) is Lease:
            break
        if type(array) is not np.ndarray:
            return False
    return True


def _is_spread(array: Any) -> bool:
    """Whether no two elements lie in the same place: each dim steps over the shorter ones."""
    extent = array.itemsize
    for step, length in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if length > 1:
            if step < extent:
                return False
            extent += step * (length - 1)
    return True
