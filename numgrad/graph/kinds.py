"""Kinds of arrays: one object for all that are alike in shape, strides and dtype.

Keys of calls are made of them. Three attributes of NumPy's would have to be asked for, hashed and
compared in every call; a kind is told by what it is, and a tensor notes its own.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

__all__ = ["Kind", "kind_for"]


class Kind:
    """What arrays that are alike have in common.

    Attributes
    ----------
    shape, strides : tuple of int
    dtype : numpy.dtype
    """

    __slots__ = ("__weakref__", "dtype", "shape", "strides")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.strides, self.dtype = shape, strides, dtype

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides in elements."""
        return tuple([stride // self.dtype.itemsize for stride in self.strides])

    @property
    def lies_in_rows(self) -> bool:
        """Whether elements lie one behind the other in the order of their positions."""
        step = self.dtype.itemsize
        for length, own in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if length != 1 and own != step:
                return 0 in self.shape
            step *= length
        return True

    def __reduce__(self) -> Any:
        return _kind_of, (self.shape, self.strides, self.dtype)


class _Noted(ref[Kind]):
    """A kind that is there as long as there is a tensor of it, or a call of one is remembered."""

    __slots__ = ("facts",)

    facts: Any


_KINDS: dict[Any, _Noted] = {}


def kind_for(array: Any) -> Kind:
    """Return the kind of an array.

    Two threads that ask for a new one at once may get two; calls are then remembered for each.

    Examples
    --------
    >>> import numpy as np
    >>> kind_for(np.zeros((2, 3))) is kind_for(np.ones((2, 3)))
    True
    >>> kind_for(np.zeros((2, 3))) is kind_for(np.zeros((3, 2)).T)
    False
    """
    facts = array.shape, array.strides, array.dtype
    noted = _KINDS.get(facts)
    found = None if noted is None else noted()
    return _kind_of(*facts) if found is None else found


def _kind_of(*facts: Any) -> Kind:
    noted = _KINDS.get(facts)
    found = None if noted is None else noted()
    if found is None:
        found = Kind(*facts)
        made = _Noted(found, _forget)
        made.facts = facts
        _KINDS[facts] = made
    return found


def _forget(noted: Any) -> None:
    facts = noted.facts
    if _KINDS.get(facts) is noted:
        del _KINDS[facts]
