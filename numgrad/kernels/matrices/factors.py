"""Factorisations: Cholesky's, and LU with partial pivoting.

Small matrices are factored in one loop over the batch; LAPACK, through NumPy, takes the larger ones
of Cholesky's. LU of larger ones goes in blocks of columns, with products of matrices in between:
NumPy has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.tuning import PANEL, SMALL_MATRIX
from numgrad.codegen.compile.compile import kernel
from numgrad.kernels.matrices.batches import flat, own
from numgrad.kernels.matrices.triangular import solve_triangular
from numgrad.math import scalar

__all__ = ["cholesky", "lu", "sign_and_size", "swapped"]

Array = np.ndarray[Any, Any]


# --- Cholesky ------------------------------------------------------------------------------------


@kernel
def _cholesky_rows(matrices, failed):  # type: ignore[no-untyped-def]
    """Factor in place, row by row, and write where a minor is not positive; 0 where none is.

    Above the diagonal, zeros are written one by one: a call to fill a few takes longer than a row.
    """
    size = matrices.shape[1]
    for one in range(matrices.shape[0]):
        failed[one] = 0
        for row in range(size):
            for column in range(row):
                rest = matrices[one, row, column]
                for k in range(column):
                    rest -= matrices[one, row, k] * np.conj(matrices[one, column, k])
                matrices[one, row, column] = rest / matrices[one, column, column]
                matrices[one, column, row] = 0
            rest = matrices[one, row, row]
            for k in range(row):
                rest -= matrices[one, row, k] * np.conj(matrices[one, row, k])
            if rest.real > 0:
                matrices[one, row, row] = np.sqrt(rest.real)
            else:
                failed[one] = row + 1
            if failed[one]:
                break


def _order_that_fails(matrix: Array) -> int:
    """Return the order of the first leading minor that is not positive."""
    low, high = 0, len(matrix)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            np.linalg.cholesky(matrix[:middle, :middle])
        except np.linalg.LinAlgError:
            high = middle
        else:
            low = middle
    return high


def _cholesky_of_large(matrices: Array, failed: Array) -> Array:
    try:
        return np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        result = np.full_like(matrices, np.nan)
    for one, matrix in enumerate(matrices):
        try:
            result[one] = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            failed[one] = _order_that_fails(matrix)
    return result


def cholesky(array: Array) -> tuple[Array, Array]:
    """Return lower factors of Hermitian matrices, and the order of the minor where each failed.

    Only the lower triangles are read. Where one failed its factor is nan.
    """
    matrices = own(array) if array.shape[-1] <= SMALL_MATRIX else flat(array)
    failed = np.zeros(len(matrices), np.int32)
    if matrices.shape[1] > SMALL_MATRIX:
        matrices = _cholesky_of_large(matrices, failed)
    elif matrices.size:
        _cholesky_rows(matrices, failed)
        if failed.any():
            matrices[failed > 0] = np.nan
    return matrices.reshape(array.shape), failed.reshape(array.shape[:-2])


# --- LU ------------------------------------------------------------------------------------------


@kernel
def _lu_columns(matrices, pivots, failed, first):  # type: ignore[no-untyped-def]
    """Factor a panel of columns in place; rows are numbered from 1 on, as LAPACK does."""
    rows, columns = matrices.shape[1], matrices.shape[2]
    for one in range(matrices.shape[0]):
        for column in range(min(rows, columns)):
            pivot, largest = column, -1.0
            for row in range(column, rows):
                value = matrices[one, row, column]
                size = abs(value.real) + abs(value.imag)
                if size > largest:
                    pivot, largest = row, size
            pivots[one, column] = first + pivot + 1
            if largest == 0:
                if failed[one] == 0:
                    failed[one] = first + column + 1
                continue
            if pivot != column:
                for k in range(columns):
                    kept = matrices[one, column, k]
                    matrices[one, column, k] = matrices[one, pivot, k]
                    matrices[one, pivot, k] = kept
            diagonal = matrices[one, column, column]
            for row in range(column + 1, rows):
                factor = matrices[one, row, column] / diagonal
                matrices[one, row, column] = factor
                for k in range(column + 1, columns):
                    matrices[one, row, k] -= factor * matrices[one, column, k]


@kernel
def _swap(matrices, pivots, first, backwards, start, stop):  # type: ignore[no-untyped-def]
    """Exchange rows of some columns in place as a factorisation did, or the other way round."""
    count = pivots.shape[1]
    for one in range(matrices.shape[0]):
        for step in range(count):
            row = count - 1 - step if backwards else step
            other = pivots[one, row] - 1
            row += first
            if other != row:
                for k in range(start, stop):
                    kept = matrices[one, row, k]
                    matrices[one, row, k] = matrices[one, other, k]
                    matrices[one, other, k] = kept


def _lu(matrices: Array, pivots: Array, failed: Array) -> None:
    """Factor in place, panel by panel."""
    rows, columns = matrices.shape[1:]
    for first in range(0, min(rows, columns), PANEL):
        last = min(first + PANEL, rows, columns)
        panel = np.ascontiguousarray(matrices[:, first:, first:last])
        swaps = np.empty((len(matrices), last - first), np.int32)
        _lu_columns(panel, swaps, failed, first)
        matrices[:, first:, first:last] = panel
        pivots[:, first:last] = swaps
        _swap(matrices, swaps, first, False, 0, first)
        _swap(matrices, swaps, first, False, last, columns)
        if last < columns:
            right = solve_triangular(
                matrices[:, first:last, first:last], matrices[:, first:last, last:], True, True
            )
            matrices[:, first:last, last:] = right
            matrices[:, last:, last:] -= np.matmul(matrices[:, last:, first:last], right)


def lu(array: Array) -> tuple[Array, Array, Array]:
    """Return L and U in one matrix, which rows were exchanged, and the first pivot that is zero.

    Rows and pivots are numbered from 1 on; where no pivot is zero, that is 0.
    """
    matrices = own(array)
    batch, rank = array.shape[:-2], min(array.shape[-2:])
    pivots = np.empty((len(matrices), rank), np.int32)
    failed = np.zeros(len(matrices), np.int32)
    if matrices.size:
        if rank <= PANEL:
            _lu_columns(matrices, pivots, failed, 0)
        else:
            _lu(matrices, pivots, failed)
    return (
        matrices.reshape(array.shape),
        pivots.reshape(*batch, rank),
        failed.reshape(batch),
    )


@kernel
def _signs_and_sizes(diagonals, pivots, signs, sizes):  # type: ignore[no-untyped-def]
    """Multiply signs and add up logarithms, one after the other."""
    for one in range(diagonals.shape[0]):
        sign, total, odd = diagonals.dtype.type(1), diagonals.dtype.type(0), False
        for k in range(diagonals.shape[1]):
            value = diagonals[one, k]
            size = abs(value)
            sign *= value / size if size > 0 else diagonals.dtype.type(0)
            odd ^= pivots[one, k] != k + 1
            total += scalar.log(size)
        signs[one], sizes[one] = -sign if odd else sign, total


def sign_and_size(diagonal: Array, pivots: Array) -> tuple[Array, Array]:
    """Return signs of determinants of real numbers, and logarithms of their sizes."""
    batch, rank = diagonal.shape[:-1], diagonal.shape[-1]
    sign, size = np.empty(batch, diagonal.dtype), np.empty(batch, diagonal.dtype)
    rows = np.ascontiguousarray(diagonal).reshape(sign.size, rank)
    exchanged = np.ascontiguousarray(pivots).reshape(sign.size, rank)
    _signs_and_sizes(rows, exchanged, sign.reshape(-1), size.reshape(-1))
    return sign, size


def swapped(array: Array, pivots: Array, backwards: bool = False) -> Array:
    """Return matrices whose rows are exchanged as those that were factored, or back."""
    result = own(array)
    if result.size:
        swaps = np.ascontiguousarray(pivots).reshape(len(result), pivots.shape[-1])
        _swap(result, swaps, 0, backwards, 0, result.shape[2])
    return result.reshape(array.shape)
