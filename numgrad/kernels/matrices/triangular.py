"""Triangular systems: substitution in blocks, between which there are products of matrices.

The method is that of level-3 BLAS: of a system larger than a block the half that needs nothing of
the other is solved first, and its share in the other half is one product.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.tuning import TRIANGULAR_BLOCK, TRIANGULAR_STRIPE
from numgrad.codegen.compile.compile import kernel
from numgrad.kernels.matrices.batches import own

__all__ = ["solve_triangular"]

Array = np.ndarray[Any, Any]


@kernel
def _substitute(matrices, sides, lower, unit):  # type: ignore[no-untyped-def]
    """Solve in the memory of the right sides, row by row, some columns at a time."""
    size, columns = sides.shape[1], sides.shape[2]
    for one in range(sides.shape[0]):
        for begin in range(0, columns, TRIANGULAR_STRIPE):
            end = min(begin + TRIANGULAR_STRIPE, columns)
            for step in range(size):
                row = step if lower else size - 1 - step
                first = 0 if lower else row + 1
                for other in range(first, first + step):
                    factor = matrices[one, row, other]
                    for column in range(begin, end):
                        sides[one, row, column] -= factor * sides[one, other, column]
                if not unit:
                    pivot = matrices[one, row, row]
                    for column in range(begin, end):  # Numba's own quotient by complex 0 raises
                        sides[one, row, column] = np.divide(sides[one, row, column], pivot)


def _solve(matrices: Array, sides: Array, lower: bool, unit: bool) -> None:
    """Solve in the memory of the right sides."""
    size = sides.shape[1]
    if size <= TRIANGULAR_BLOCK:
        block = np.ascontiguousarray(sides)
        _substitute(np.ascontiguousarray(matrices), block, lower, unit)
        if block is not sides:
            sides[...] = block
        return
    half = size // 2
    upper_half, lower_half = slice(half), slice(half, None)
    first, last = (upper_half, lower_half) if lower else (lower_half, upper_half)
    _solve(matrices[:, first, first], sides[:, first], lower, unit)
    sides[:, last] -= np.matmul(matrices[:, last, first], sides[:, first])
    _solve(matrices[:, last, last], sides[:, last], lower, unit)


def solve_triangular(matrix: Array, side: Array, lower: bool, unit: bool) -> Array:
    """Return X of AX = B for batches of one shape, in C order.

    Parameters
    ----------
    matrix : array of shape (..., n, n)
        Of which one triangle is read.
    side : array of shape (..., n, k)
    lower : bool
        Which triangle.
    unit : bool
        Whether its diagonal counts as ones, and is not read.
    """
    result = own(side)
    if result.size:
        _solve(matrix.reshape(len(result), *matrix.shape[-2:]), result, lower, unit)
    return result.reshape(side.shape)
