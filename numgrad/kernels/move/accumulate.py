"""Adding gradients up: into an array that is ours, or into a new one."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.halves import HALF, add_halves
from numgrad.base.tuning import THREAD_ELEMENTS_ACCUMULATE
from numgrad.codegen.compile.compile import kernel
from numgrad.codegen.compile.entries import entry_of
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["add_arrays", "add_into", "private_copy"]

Array = np.ndarray[Any, Any]


@kernel
def _add_into(target: Array, source: Array) -> None:
    for i in range(target.size):
        target[i] += source[i]


# For each dtype what adds few elements: in a pass each leaf and each sum asks for it.
_entries: dict[Any, Any] = {}


def add_into(target: Array, source: Array) -> None:
    """Add `source` to `target` in place; both have the same shape and dtype."""
    dtype = target.dtype
    entry = _entries.get(dtype) if source.dtype is dtype else None
    if entry is None or not target.flags.c_contiguous or target.size >= THREAD_ELEMENTS_ACCUMULATE:
        _add_any_into(target, source)
    elif target.ndim == 1:
        entry(target, source.ravel())
    else:
        entry(target.ravel(), source.ravel())


def _add_any_into(target: Array, source: Array) -> None:
    if target.dtype == HALF:
        add_halves(target, source)
        return
    if not target.flags.c_contiguous:
        target[...] = add_arrays(target, source)
        return
    flat_target, flat_source = target.ravel(), source.ravel()
    if flat_target.size < THREAD_ELEMENTS_ACCUMULATE:
        entry = entry_of(_add_into, target.dtype, source.dtype)
        entry(flat_target, flat_source)
        if source.dtype is target.dtype:
            _entries[target.dtype] = entry
    else:
        parallel_for(
            lambda start, stop: _add_into(flat_target[start:stop], flat_source[start:stop]),
            flat_target.size,
            THREAD_ELEMENTS_ACCUMULATE,
        )


def private_copy(array: Array) -> Array:
    """Return a C-contiguous copy that nobody else holds."""
    copy = empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def add_arrays(left: Array, right: Array) -> Array:
    """Return the sum of two arrays of the same shape and dtype, as a new array."""
    total = private_copy(left)
    add_into(total, right)
    return total
