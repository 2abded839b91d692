"""Medians and modes along a dim of arrays, and where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.kernels.move.along import along, dim_last

__all__ = ["median", "median_of_all", "mode"]

Array = np.ndarray[Any, Any]


def median_of_all(array: Array, skips_nan: bool) -> Array:
    """Return the median of all elements, the lower one of two; nan, or the least int, of none.

    Examples
    --------
    >>> median_of_all(np.array([4, 1, 3, 2]), False)
    array(2)
    """
    values = array.reshape(-1)
    is_float = array.dtype.kind == "f"
    if is_float:
        numbers = values[~np.isnan(values)]
        if numbers.size < values.size and not skips_nan:
            return np.asarray(np.nan, array.dtype)
        values = numbers
    if not values.size:
        nothing: Any = np.nan
        if array.dtype.kind not in "fc":  # what that becomes
            nothing = True if array.dtype.kind == "b" else 0
            if array.dtype.itemsize > 2:
                nothing = np.iinfo(array.dtype).min
        return np.asarray(nothing, array.dtype)
    middle = (values.size - 1) // 2
    return np.asarray(np.partition(values, middle)[middle], array.dtype)


def _occurrence(same: Array, number: Array, dim: int) -> Array:
    """Return where along a dim something is true for the time that a number says, from 0 on."""
    return np.asarray((same.cumsum(dim) > number).argmax(dim))


def median(array: Array, dim: int, skips_nan: bool) -> tuple[Array, Array]:
    """Return medians along a dim, the lower one of two, and where they are.

    Of equal elements it is the one that would stand there were the others in order. Where nan is
    among the elements, it is the first of them, if that is not skipped.

    Examples
    --------
    >>> median(np.array([3.0, 1.0, 3.0, 1.0, 2.0, 2.0]), 0, False)
    (array(2.), array(4))
    """
    size = array.shape[dim]
    is_nan = np.isnan(array) if array.dtype.kind == "f" else None
    if is_nan is None or not is_nan.any():
        middle: Any = (size - 1) // 2
        values = np.partition(array, middle, dim)[
            (*(slice(None),) * dim, slice(middle, middle + 1))
        ]
    else:
        count = size - is_nan.sum(dim, keepdims=True)
        middle = np.maximum(count - 1, 0) // 2
        values = along(np.sort(array, dim), middle, dim)
    before = (array < values).sum(dim, keepdims=True)
    places = _occurrence(array == values, middle - before, dim)
    values = values.squeeze(dim)
    if is_nan is not None:
        has_nan = np.isnan(values) if skips_nan else is_nan.any(dim)
        values = np.where(has_nan, array.dtype.type(np.nan), values)
        places = np.where(has_nan, is_nan.argmax(dim), places)
    return np.asarray(values, order="C"), np.asarray(places, order="C")


def mode(array: Array, dim: int) -> tuple[Array, Array]:
    """Return the elements that occur most often along a dim, and where they do so last.

    The least of several; nan is not equal to nan.

    Examples
    --------
    >>> mode(np.array([3, 1, 3, 1, 2, 2]), 0)
    (array(1), array(3))
    """
    size = array.shape[dim]
    rows = dim_last(array, dim)
    order = rows.argsort(-1, kind="stable")
    ordered = along(rows, order, -1)
    differs = ordered[..., 1:] != ordered[..., :-1]
    edge = np.ones((*differs.shape[:-1], 1), np.bool_)
    first = np.concatenate([edge, differs], -1)  # where something else begins
    last = np.concatenate([differs, edge], -1)
    numbers = np.arange(size)
    begins = np.maximum.accumulate(np.where(first, numbers, 0), -1)
    lengths = np.where(last, numbers + 1 - begins, 0)
    chosen = lengths.argmax(-1)[..., None]
    values = along(ordered, chosen, -1)[..., 0]
    places = along(order, chosen, -1)[..., 0]
    return np.asarray(values, order="C"), np.asarray(places, order="C")
