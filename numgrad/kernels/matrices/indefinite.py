"""LDL factorisation of symmetric and Hermitian matrices that need not be definite, and systems.

The pivots are those of J. R. Bunch and L. Kaufman, "Some stable methods for calculating inertia and
solving symmetric linear systems" (1977), blocks of one or two rows, told as LAPACK's SYTRF does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.codegen.compile.compile import kernel
from numgrad.kernels.matrices.batches import own

__all__ = ["are_paired", "ldl", "ldl_solved"]

Array = np.ndarray[Any, Any]
# At which a pivot is large enough: where one and two rows let elements grow as much.
_LARGE = (1 + math.sqrt(17)) / 8


@kernel
def _size(value):  # type: ignore[no-untyped-def]
    return abs(value.real) + abs(value.imag)


@kernel
def _turned(value, hermitian):  # type: ignore[no-untyped-def]
    return np.conj(value) if hermitian else value


@kernel
def _choose(matrix, k, large):  # type: ignore[no-untyped-def]
    """Return which row to take for the pivot at k, and whether it is a block of two."""
    size = matrix.shape[0]
    own_size, other, highest = _size(matrix[k, k]), k, 0.0
    for row in range(k + 1, size):
        value = _size(matrix[row, k])
        if value > highest:
            other, highest = row, value
    if own_size >= large * highest:
        return k, 1
    in_row = 0.0
    for column in range(k, other):
        in_row = max(in_row, _size(matrix[other, column]))
    for row in range(other + 1, size):
        in_row = max(in_row, _size(matrix[row, other]))
    if own_size >= large * highest * (highest / in_row):
        return k, 1
    if _size(matrix[other, other]) >= large * in_row:
        return other, 1
    return other, 2


@kernel
def _exchange(matrix, one, other, k, hermitian):  # type: ignore[no-untyped-def]
    """Exchange two rows and columns of what is left, of which the lower triangle is there."""
    for row in range(other + 1, matrix.shape[0]):
        kept = matrix[row, one]
        matrix[row, one] = matrix[row, other]
        matrix[row, other] = kept
    for between in range(one + 1, other):
        kept = _turned(matrix[between, one], hermitian)
        matrix[between, one] = _turned(matrix[other, between], hermitian)
        matrix[other, between] = kept
    matrix[other, one] = _turned(matrix[other, one], hermitian)
    kept = matrix[one, one]
    matrix[one, one] = matrix[other, other]
    matrix[other, other] = kept
    for column in range(k, one):  # of a block of two, the first column
        kept = matrix[one, column]
        matrix[one, column] = matrix[other, column]
        matrix[other, column] = kept


@kernel
def _eliminate_one(matrix, k, hermitian):  # type: ignore[no-untyped-def]
    pivot = matrix[k, k]
    for column in range(k + 1, matrix.shape[0]):
        factor = _turned(matrix[column, k], hermitian) / pivot
        for row in range(column, matrix.shape[0]):
            matrix[row, column] -= matrix[row, k] * factor
    for row in range(k + 1, matrix.shape[0]):
        matrix[row, k] /= pivot


@kernel
def _eliminate_two(matrix, k, hermitian):  # type: ignore[no-untyped-def]
    """Solve (l, r) D = (x, y) for each row, D being the block, in quotients that stay small."""
    beside = matrix[k + 1, k]
    turned = _turned(beside, hermitian)
    first, second = matrix[k, k] / beside, matrix[k + 1, k + 1] / turned
    scale = first * second - 1
    for column in range(k + 2, matrix.shape[0]):
        one, two = matrix[column, k], matrix[column, k + 1]
        left = (one * second - two * (beside / turned)) / (beside * scale)
        right = (two * first - one * (turned / beside)) / (turned * scale)
        own_left, own_right = _turned(left, hermitian), _turned(right, hermitian)
        for row in range(column, matrix.shape[0]):
            matrix[row, column] -= matrix[row, k] * own_left + matrix[row, k + 1] * own_right
        matrix[column, k] = left
        matrix[column, k + 1] = right


@kernel
def _factor(matrices, pivots, failed, hermitian, large):  # type: ignore[no-untyped-def]
    """Factor in place, of each matrix the lower triangle; rows are numbered from 1 on."""
    size = matrices.shape[1]
    for one in range(matrices.shape[0]):
        matrix = matrices[one]
        k = 0
        while k < size:
            highest = 0.0
            for row in range(k, size):
                highest = max(highest, _size(matrix[row, k]))
            if highest == 0:
                pivots[one, k] = k + 1
                if failed[one] == 0:
                    failed[one] = k + 1
                k += 1
                continue
            other, step = _choose(matrix, k, large)
            last = k + step - 1
            if other != last:
                _exchange(matrix, last, other, k, hermitian)
            if step == 1:
                _eliminate_one(matrix, k, hermitian)
                pivots[one, k] = other + 1
            else:
                _eliminate_two(matrix, k, hermitian)
                pivots[one, k] = pivots[one, k + 1] = -(other + 1)
            k += step


def ldl(array: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """Return L and D in one lower triangle, which rows were exchanged, and where a pivot is 0.

    Only the lower triangles are read. A negative number of a row says that a block of two is there.
    """
    matrices = own(np.tril(array))
    if hermitian and array.dtype.kind == "c":
        diagonal = np.arange(array.shape[-1])
        matrices[:, diagonal, diagonal] = matrices[:, diagonal, diagonal].real
    pivots = np.zeros(matrices.shape[:2], np.int32)
    failed = np.zeros(len(matrices), np.int32)
    if matrices.size:
        _factor(matrices, pivots, failed, hermitian, _LARGE)
    batch = array.shape[:-2]
    return matrices.reshape(array.shape), pivots.reshape(array.shape[:-1]), failed.reshape(batch)


@kernel
def _are_paired(pivots):  # type: ignore[no-untyped-def]
    for one in range(pivots.shape[0]):
        k = 0
        while k < pivots.shape[1]:
            if pivots[one, k] < 0:
                k += 1
                if k == pivots.shape[1] or pivots[one, k] > 0:
                    return False
            k += 1
    return True


def are_paired(pivots: Array) -> bool:
    """Whether two pivots that follow each other stand for each block of two, in all batches.

    Others would have the solution read beside the matrix.
    """
    numbers = np.ascontiguousarray(pivots, np.int64)
    return bool(_are_paired(numbers.reshape(-1, pivots.shape[-1])))


@kernel
def _swap(side, one, other):  # type: ignore[no-untyped-def]
    if one != other:
        for column in range(side.shape[1]):
            kept = side[one, column]
            side[one, column] = side[other, column]
            side[other, column] = kept


@kernel
def _forwards(matrix, pivots, side, hermitian):  # type: ignore[no-untyped-def]
    """Solve with P L and then D."""
    size, k = side.shape[0], 0
    while k < size:
        if pivots[k] > 0:
            _swap(side, k, pivots[k] - 1)
            for column in range(side.shape[1]):
                value = side[k, column]
                for row in range(k + 1, size):
                    side[row, column] -= matrix[row, k] * value
                side[k, column] = np.divide(value, matrix[k, k])
            k += 1
            continue
        _swap(side, k + 1, -pivots[k] - 1)
        beside = matrix[k + 1, k]
        turned = _turned(beside, hermitian)
        first, second = matrix[k, k] / beside, matrix[k + 1, k + 1] / turned
        scale = first * second - 1
        for column in range(side.shape[1]):
            one, two = side[k, column], side[k + 1, column]
            for row in range(k + 2, size):
                side[row, column] -= matrix[row, k] * one + matrix[row, k + 1] * two
            side[k, column] = (one * (second / beside) - two / beside) / scale
            side[k + 1, column] = (two * (first / turned) - one / turned) / scale
        k += 2


@kernel
def _backwards(matrix, pivots, side, hermitian):  # type: ignore[no-untyped-def]
    """Solve with the transpose or adjoint of P L."""
    size = side.shape[0]
    k = size - 1
    while k >= 0:
        step = 1 if pivots[k] > 0 else 2
        for block in range(step):
            at = k - block
            for column in range(side.shape[1]):
                total = side[at, column]
                for row in range(k + 1, size):
                    total -= _turned(matrix[row, at], hermitian) * side[row, column]
                side[at, column] = total
        _swap(side, k, abs(pivots[k]) - 1)
        k -= step


@kernel
def _solve(matrices, pivots, sides, hermitian):  # type: ignore[no-untyped-def]
    for one in range(matrices.shape[0]):
        _forwards(matrices[one], pivots[one], sides[one], hermitian)
        _backwards(matrices[one], pivots[one], sides[one], hermitian)


def ldl_solved(table: Array, pivots: Array, side: Array, hermitian: bool) -> Array:
    """Return X of AX = B for batches of one shape, of which A is given by `ldl`."""
    result = own(side)
    if result.size:
        numbers = np.ascontiguousarray(pivots).reshape(len(result), pivots.shape[-1])
        _solve(own(table), numbers, result, hermitian)
    return result.reshape(side.shape)
