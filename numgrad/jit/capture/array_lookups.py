"""What a traced function reads of NumPy: arrays, also masked ones, and what computes with some.

NumPy's code is not looked into. So an array that is handed to it is read as a whole, and of its own
objects what they compute with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.jit.capture.guards import fill_of, is_a, own_dict
from numgrad.jit.capture.lookups import Lookups
from numgrad.jit.capture.origins import Libraries
from numgrad.jit.lowering.storage import root_of

__all__ = ["ArrayLookups", "differ", "numbers_of"]

_WITH_ARRAYS = (  # objects of NumPy's in whose methods it computes with their attributes
    np.poly1d,
    np.vectorize,
    *[each for each in vars(np.polynomial).values() if isinstance(each, type)],
)


class ArrayLookups(Lookups):
    """Lookups that know what NumPy has.

    Attributes
    ----------
    arrays : dict
        Arrays that may be read, by id.
    looked_at : list
        Objects of which attributes are read, each with its name.
    """

    def __init__(self, libraries: Libraries) -> None:
        super().__init__(libraries)
        self.arrays: dict[int, Any] = {}
        self.looked_at: list[tuple[Any, str]] = []

    def visit_array(self, array: Any, label: str) -> None:
        """Look at an array: at its numbers, or if these are objects, at each."""
        if is_a(array, np.ma.MaskedArray):
            self._visit_masked(array, label)
        else:
            self.arrays[id(array)] = array
        if not self.libraries.has_class(type(array)):
            self.looked_at.append((array, label))
        if array.dtype.kind == "O":
            self.guards.add(label, "same_items({o}.flat, {v})", array, tuple(array.flat))
            for k, item in enumerate(array.flat):
                self.visit(item, f"{label}[{k}]")

    def _visit_masked(self, array: Any, label: str) -> None:
        """Look at what makes up a masked array, which only NumPy computes with."""
        if array is np.ma.masked:  # which nobody can write to
            return
        mask = array._mask
        self.guards.add(f"the mask of {label}", "{o}._mask is {v}", array, mask)
        self.guards.add(f"the mask of {label}", "{o}._hardmask is {v}", array, array._hardmask)
        name = f"the fill value of {label}"
        self.guards.add(name, "same_value(fill_of({o}), {v})", array, fill_of(array))
        for part in (array.view(np.ndarray), *([mask] if is_a(mask, np.ndarray) else [])):
            self._visit_computed(part, label)

    def _visit_computed(self, value: Any, label: str) -> None:
        """Look at what NumPy computes with, if it is an array."""
        if is_a(value, np.ndarray):
            self.computed[id(root_of(value))] = root_of(value)
        self.visit(value, label)

    def visit_with_arrays(self, value: Any, label: str) -> None:
        """Look at what an object of NumPy's computes with."""
        if is_a(value, _WITH_ARRAYS):
            for name in {**own_dict(value), "domain": None, "window": None}:
                inside = getattr(value, name, None)  # the last two may be their class's
                self.guards.add(label, "getattr({o}, {k}, None) is {v}", value, inside, name)
                self._visit_computed(inside, label)


def numbers_of(array: Any) -> Any:
    """Return an array without what a class of the user's does when it is asked.

    >>> numbers_of(np.ma.masked_array([1.0, 2.0], [False, True]))
    array([1., 2.])
    """
    return np.ndarray.view(array, np.ndarray)


def differ(array: Any, held: Any) -> bool:
    """Whether an array is not what it was, bit by bit: a zero may have got another sign.

    >>> differ(np.array([0.0, np.nan]), np.array([0.0, np.nan]))
    False
    >>> differ(np.array([-0.0]), np.array([0.0]))
    True
    """
    array = numbers_of(array)
    if array.shape != held.shape or array.dtype != held.dtype:
        return True
    return bool(array.tobytes() != held.tobytes())
