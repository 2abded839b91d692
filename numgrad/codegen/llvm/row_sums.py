"""The sum of a few hundred numbers, pairwise, in a way that LLVM vectorises."""

from __future__ import annotations

from functools import partial
from typing import Any

from numgrad.codegen.compile.numba_pipeline import KernelDispatcher

__all__ = ["row_sum"]


@partial(KernelDispatcher, targetoptions={"nopython": True, "nogil": True, "error_model": "numpy"})
def row_sum(values: Any, count: int) -> Any:
    """Return the sum of the first `count` values, of which only garbage is left.

    The upper half is added to the lower one until one number is left: a tree, whose error grows
    with the logarithm of the count, and whose steps do not wait for each other.
    """
    if count == 0:
        return values[0] * 0
    while count > 1:
        half = (count + 1) >> 1
        for i in range(count - half):
            values[i] += values[i + half]
        count = half
    return values[0]
