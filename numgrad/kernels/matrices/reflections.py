"""Products of Householder's reflections, for batches: what LAPACK's ORGQR and ORMQR compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.kernels.matrices.batches import flat, own

__all__ = ["reflected"]

Array = np.ndarray[Any, Any]


@kernel
def _reflect(vectors, factors, targets, adjoint):  # type: ignore[no-untyped-def]
    """Apply H_1 H_2 ... in place, H = 1 - f v v^H, or its adjoint.

    Vector k has zeros above row k, 1 there, and below what column k of the matrix has.
    """
    rows, columns = targets.shape[1], targets.shape[2]
    count = factors.shape[1]
    along = np.empty(columns, targets.dtype)
    for one in range(targets.shape[0]):
        for step in range(count):
            k = step if adjoint else count - 1 - step
            factor = np.conj(factors[one, k]) if adjoint else factors[one, k]
            for column in range(columns):
                along[column] = targets[one, k, column]
            for row in range(k + 1, rows):
                weight = np.conj(vectors[one, row, k])
                for column in range(columns):
                    along[column] += weight * targets[one, row, column]
            for column in range(columns):
                along[column] *= factor
                targets[one, k, column] -= along[column]
            for row in range(k + 1, rows):
                weight = vectors[one, row, k]
                for column in range(columns):
                    targets[one, row, column] -= weight * along[column]


def reflected(vectors: Array, factors: Array, target: Array, adjoint: bool) -> Array:
    """Return Q times matrices of the same batch, or Q^H times them, in new memory.

    Parameters
    ----------
    vectors : array of shape (..., m, n)
        Of which what is below the diagonal is read.
    factors : array of shape (..., k)
    target : array of shape (..., m, c)
    adjoint : bool
    """
    result = own(target)
    if result.size and factors.size:
        numbers = np.ascontiguousarray(factors).reshape(len(result), factors.shape[-1])
        _reflect(flat(vectors), numbers, result, adjoint)
    return result.reshape(target.shape)
