"""Binary search in sorted rows: searchsorted, many values side by side, in threads.

A block of values goes down a row together, one halving of it after the other. No value decides
about a branch, so that the processor waits for the memory of many at once, and loops vectorise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.tuning import THREAD_VALUES_SEARCH
from numgrad.codegen.compile.compile import kernel
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["comparable", "is_member", "search_rows"]

Array = np.ndarray[Any, Any]

# Values that go down together. Of 8, 64 and one after the other, 64 took a third of the time.
_SIDE_BY_SIDE = 64


def comparable(array: Array) -> Array:
    """Return numbers in C order, in one of few types in which they compare as they do in theirs.

    Examples
    --------
    >>> comparable(np.array([True, False])).dtype
    dtype('int64')
    """
    small = array.dtype.kind in "biu" and array.dtype.itemsize < 8
    return np.ascontiguousarray(array, np.int64 if small else None)


@kernel
def _are_sorted(rows: Array) -> bool:
    """Whether no element is less than the one before it, or has no order, as nan has none."""
    for row in range(rows.shape[0]):
        unordered = 0
        for k in range(1, rows.shape[1]):
            unordered += not rows[row, k - 1] <= rows[row, k]
        if unordered:
            return False
    return True


@kernel
def _halve(bounds, values, found, first, last, right):  # type: ignore[no-untyped-def]
    """Count the elements of a sorted row before values, for those from `first` to `last`.

    A row that is not as long as a power of two is two rows of such a length, which overlap. Then
    what a comparison says is shifted to where its bit of the count is: of a choice between numbers
    LLVM makes a branch, which processors guess wrong half of the time.
    """
    places = np.zeros(_SIDE_BY_SIDE, np.int64)
    bits = 0
    while bounds.size >> (bits + 1):
        bits += 1
    whole = 1 << bits
    for start in range(first, last, _SIDE_BY_SIDE):
        width = min(_SIDE_BY_SIDE, last - start)
        for i in range(width):
            here, value = bounds[whole - 1], values[start + i]
            before = not here > value if right else here < value
            places[i] = bounds.size - whole if before else 0
        for step in range(bits):
            bit = bits - 1 - step
            half = 1 << bit
            if right:
                for i in range(width):
                    before = not bounds[places[i] + half - 1] > values[start + i]
                    places[i] += np.int64(before) << bit
            else:
                for i in range(width):
                    before = bounds[places[i] + half - 1] < values[start + i]
                    places[i] += np.int64(before) << bit
        for i in range(width):
            here, value = bounds[places[i]], values[start + i]
            before = not here > value if right else here < value
            found[start + i] = places[i] + np.int64(before)


@kernel
def _bisect(bounds, values, found, first, last, right):  # type: ignore[no-untyped-def]
    """Do the same in any row, sorted or not, with PyTorch's choice of what to look at."""
    for k in range(first, last):
        value = values[k]
        low, high = 0, bounds.size
        while low < high:
            middle = low + ((high - low) >> 1)
            here = bounds[middle]
            if (here > value) if right else (here >= value):
                high = middle
            else:
                low = middle + 1
        found[k] = low


@kernel
def _have_nan(values: Array) -> bool:
    without = 0
    for k in range(values.size):
        without += values[k] != values[k]
    return without > 0


@kernel
def _search(rows, values, found, first, last, right, in_order):  # type: ignore[no-untyped-def]
    """Search for those values that stand from `first` to `last` if all stand in a row."""
    width = values.shape[1]
    while first < last:
        row = first // width
        start = first - row * width
        stop = min(width, start + last - first)
        which = row if rows.shape[0] > 1 else 0
        if in_order:
            _halve(rows[which], values[row], found[row], start, stop, right)
        else:
            _bisect(rows[which], values[row], found[row], start, stop, right)
        first += stop - start


def search_rows(rows: Array, values: Array, right: bool) -> Array:
    """Return where values would be put in sorted rows so that these stay sorted, as int64.

    Parameters
    ----------
    rows : array of shape (r, n)
        Either a row for each row of values, or one for all.
    values : array of shape (r, m)
        Of the same dtype.
    right : bool
        Behind elements that equal a value, in place of before them.

    Examples
    --------
    >>> search_rows(np.array([[1.0, 3.0, 3.0]]), np.array([[0.5, 3.0]]), False)
    array([[0, 1]])
    """
    found: Array = empty(values.shape, np.int64)
    rows, values = comparable(rows), comparable(values)
    if not values.size or not rows.shape[-1]:
        found[...] = 0
        return found
    # To look at the rows takes a moment: too long for few values.
    in_order = values.size >= rows.shape[1] and bool(_are_sorted(rows))
    if in_order and values.dtype.kind == "f":
        in_order = not _have_nan(values.reshape(-1))

    def run(first: int, last: int) -> None:
        _search(rows, values, found, first, last, right, in_order)

    parallel_for(run, values.size, THREAD_VALUES_SEARCH, block=_SIDE_BY_SIDE)
    return found


@kernel
def _mark(tests, values, found, places, invert):  # type: ignore[no-untyped-def]
    for k in range(values.size):
        at = places[k]
        found[k] = (at < tests.size and tests[at] == values[k]) != invert


def is_member(values: Array, tests: Array, invert: bool) -> Array:
    """Return which values are among others, or which are not; nan is not among any.

    Examples
    --------
    >>> is_member(np.array([1, 2, 3]), np.array([3, 1, 7]), False)
    array([ True, False,  True])
    """
    found: Array = empty(values.shape, np.bool_)
    flat = comparable(values).reshape(-1)
    ordered = np.sort(comparable(tests), axis=None)
    if ordered.dtype.kind == "f":  # what is no number stands last
        ordered = ordered[: ordered.size - int(np.count_nonzero(ordered != ordered))]
    places = search_rows(ordered[None], flat[None], False)[0]
    _mark(ordered, flat, found.reshape(-1), places, invert)
    return found
