"""Writes to some elements of an array whose elements may share memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.base.halves import widened
from numgrad.kernels.move.places import put_along
from numgrad.kernels.move.scatter import identity_of
from numgrad.kernels.move.strides import extent, layout_of, positions, strided_view

__all__ = ["write_named"]

Array = np.ndarray[Any, Any]


@silent
def write_named(
    array: Array, elements: Array, values: Array, reduce: str = "put", include_self: bool = True
) -> None:
    """Write values to elements of an array, one after the other, and to no others.

    Parameters
    ----------
    array : numpy.ndarray
    elements : numpy.ndarray
        The numbers of elements, counted row by row.
    values : numpy.ndarray
        They broadcast to the elements.
    reduce : {"put", "sum", "prod", "mean", "amax", "amin"}
        What combines a value with what is there; means are sums which then all elements are divided
        by, each by how many are in its own.
    include_self : bool
        Whether what is there counts, too.

    Examples
    --------
    >>> array = np.lib.stride_tricks.sliding_window_view(np.zeros(4), 3, writeable=True)
    >>> write_named(array, np.array([1, 3]), np.array([1.0, 2.0]), "sum")
    >>> array
    array([[0., 3., 0.],
           [3., 0., 0.]])
    """
    if not array.size:
        return
    shape, strides, _ = layout_of(array)
    low, high = extent(layout_of(array))
    memory = strided_view(array, ((high - low,), (1,), low))
    at = positions((shape, strides, -low)).ravel()
    named = elements.ravel()
    given = np.broadcast_to(values, elements.shape).ravel()
    if reduce == "put":
        memory[at[named]] = given
        return
    each = "sum" if reduce == "mean" else reduce
    wide = np.ascontiguousarray(widened(memory))
    if not include_self:
        wide[at[named]] = identity_of(each, wide.dtype)
    put_along(wide, widened(given), at[named], 0, each)
    if reduce == "mean":
        counts = np.bincount(named, minlength=array.size) + int(include_self)
        divide = np.divide if wide.dtype.kind in "fc" else np.floor_divide
        divide.at(wide, at, np.maximum(counts, 1).astype(wide.real.dtype))
    memory[at] = wide[at]
