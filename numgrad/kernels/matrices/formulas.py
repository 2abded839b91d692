"""Algorithms for small matrices of real numbers, as formulas: what each element is computed of.

A matrix is an array of symbols (`numgrad.codegen.expression`), so that it can be sliced and turned.
Nothing branches on a number: rows are exchanged by choosing elements. Operations come in the order
of the loops over matrices of any size, so the results have their bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from numgrad.codegen.expression import Symbol, literal

__all__ = [
    "cholesky",
    "cholesky_solve",
    "cofactors",
    "determinant",
    "inverse",
    "lu",
    "lu_factor",
    "sign_and_size",
    "solve",
    "solve_factored",
    "solve_triangular",
]

Matrix = np.ndarray[Any, Any]  # of symbols


def _where(condition: Any, yes: Any, no: Any) -> Symbol:
    return Symbol.apply("where", condition, yes, no)


def _scalar(symbol: Symbol) -> Matrix:
    """Return a symbol as an array of no dims."""
    array = np.empty((), object)
    array[()] = symbol
    return array


def _vector(symbols: list[Any]) -> Matrix:
    array = np.empty(len(symbols), object)
    array[:] = [literal(each) for each in symbols]
    return array


# --- Cholesky ------------------------------------------------------------------------------------


def cholesky(A: Matrix, upper: bool) -> tuple[Matrix, ...]:
    """Return the factor, nan if the matrix is not positive definite, and the minor that fails."""
    array = A.T if upper else A
    size = len(array)
    factor = np.full_like(array, literal(0.0))
    failed: Symbol = literal(0)
    for row in range(size):
        for column in range(row + 1):
            rest = array[row, column]
            for k in range(column):
                rest = rest - factor[row, k] * factor[column, k]
            if column < row:
                factor[row, column] = rest / factor[column, column]
            else:
                fails = Symbol.apply("logical_not", rest > 0) & (failed == 0)
                failed = _where(fails, row + 1, failed)
                factor[row, row] = Symbol.apply("sqrt", rest)
    for at in np.ndindex(factor.shape):
        factor[at] = _where(failed == 0, factor[at], np.nan)
    return factor.T if upper else factor, _scalar(failed)


def cholesky_solve(B: Matrix, L: Matrix, upper: bool) -> tuple[Matrix, ...]:
    """Return X of L L^T X = B, or U^T U X = B."""
    lower = L.T if upper else L
    half = _substituted(lower, B, True, False)
    return (_substituted(lower.T, half, False, False),)


# --- triangles -----------------------------------------------------------------------------------


def _substituted(triangle: Matrix, side: Matrix, lower: bool, unit: bool) -> Matrix:
    """Return X of AX = B."""
    result, size = side.copy(), len(side)
    for step in range(size):
        row = step if lower else size - 1 - step
        first = 0 if lower else row + 1
        for other in range(first, first + step):
            result[row] = result[row] - result[other] * triangle[row, other]
        if not unit:
            result[row] = result[row] / triangle[row, row]
    return result


def solve_triangular(
    A: Matrix, B: Matrix, upper: bool, left: bool, unitriangular: bool
) -> tuple[Matrix, ...]:
    """Return X of AX = B, or XA = B."""
    if left:
        return (_substituted(A, B, not upper, unitriangular),)
    return (_substituted(A.T, B.T, upper, unitriangular).T,)


# --- LU ------------------------------------------------------------------------------------------


def _exchanged(one: Symbol, other: Symbol, is_exchanged: Symbol) -> tuple[Symbol, Symbol]:
    return _where(is_exchanged, other, one), _where(is_exchanged, one, other)


def _exchange(matrix: Matrix, pivot: Symbol, row: int) -> None:
    """Exchange a row with that of a pivot, which is numbered from 1 on, in place."""
    for other in range(row + 1, len(matrix)):
        is_it = pivot == other + 1
        for k in range(matrix.shape[1]):
            matrix[row, k], matrix[other, k] = _exchanged(matrix[row, k], matrix[other, k], is_it)


def lu(A: Matrix) -> tuple[Matrix, Matrix, Symbol]:
    """Return L and U in one matrix, the pivots, and the first of them that is zero."""
    table = A.copy()
    rows, columns = table.shape
    pivots = []
    failed: Symbol = literal(0)
    for column in range(min(rows, columns)):
        pivot: Symbol = literal(column + 1)
        largest: Symbol = literal(-1.0)
        for row in range(column, rows):
            size = Symbol.apply("abs", table[row, column])
            is_larger = size > largest
            pivot = _where(is_larger, row + 1, pivot)
            largest = _where(is_larger, size, largest)
        pivots.append(pivot)
        is_zero = largest == 0
        failed = _where(is_zero & (failed == 0), column + 1, failed)
        _exchange(table, pivot, column)
        diagonal = table[column, column]
        for row in range(column + 1, rows):
            factor = table[row, column] / diagonal
            table[row, column] = _where(is_zero, table[row, column], factor)
            for k in range(column + 1, columns):
                eliminated = table[row, k] - factor * table[column, k]
                table[row, k] = _where(is_zero, table[row, k], eliminated)
    return table, _vector(pivots), failed


def lu_factor(A: Matrix, pivot: bool) -> tuple[Matrix, ...]:
    """Return what `lu` does."""
    table, pivots, failed = lu(A)
    return table, pivots, _scalar(failed)


def _solved(table: Matrix, pivots: Matrix, side: Matrix, adjoint: bool) -> Matrix:
    """Return X of AX = B, or A^T X = B, by factors."""
    result = side.copy()
    if not adjoint:
        for row, pivot in enumerate(pivots):
            _exchange(result, pivot, row)
        return _substituted(table, _substituted(table, result, True, True), False, False)
    half = _substituted(table.T, result, True, False)
    result = _substituted(table.T, half, False, True)
    for row in reversed(range(len(pivots))):
        _exchange(result, pivots[row], row)
    return result


def solve(A: Matrix, B: Matrix, left: bool, vector: bool) -> tuple[Matrix, ...]:
    """Return X of AX = B, or XA = B, the factors, and which pivot is zero."""
    if not left:
        A, B = A.T, B.T
    table, pivots, failed = lu(A)
    result = _solved(table, pivots, B[:, None] if vector else B, False)
    result = result[:, 0] if vector else result
    return result if left else result.T, table, pivots, _scalar(failed)


def solve_factored(
    A: Matrix, B: Matrix, LU: Matrix, pivots: Matrix, adjoint: bool
) -> tuple[Matrix, ...]:
    """Return X of AX = B, or A^T X = B, where the factors of A are given."""
    return (_solved(LU, pivots, B, adjoint),)


def inverse(A: Matrix) -> tuple[Matrix, ...]:
    """Return the inverse, and which pivot is zero."""
    table, pivots, failed = lu(A)
    unit = np.full_like(A, literal(0.0))
    np.fill_diagonal(unit, literal(1.0))
    return _solved(table, pivots, unit, False), _scalar(failed)


# --- determinants --------------------------------------------------------------------------------


def _signed(pivots: Matrix, value: Symbol) -> Symbol:
    """Return a value, with the other sign if an odd number of pairs of rows was exchanged."""
    odd: Symbol = literal(False)
    for row, pivot in enumerate(pivots):
        odd = odd ^ (pivot != row + 1)
    return _where(odd, -value, value)


def determinant(A: Matrix) -> tuple[Matrix, ...]:
    """Return the determinant."""
    table, pivots, _ = lu(A)
    product, *rest = np.diagonal(table)
    for each in rest:
        product = product * each
    return (_scalar(_signed(pivots, product)),)


def sign_and_size(A: Matrix) -> tuple[Matrix, ...]:
    """Return the sign of the determinant, the logarithm of its size, and the factors."""
    table, pivots, _ = lu(A)
    sign: Any = None
    total: Any = None
    for each in np.diagonal(table):
        size = Symbol.apply("abs", each)
        own = _where(size > 0, each / _where(size > 0, size, 1.0), 0.0)
        sign = own if sign is None else sign * own
        logarithm = Symbol.apply("log", size)
        total = logarithm if total is None else total + logarithm
    return _scalar(_signed(pivots, sign)), _scalar(total), table, pivots


def _minor(matrix: Matrix) -> Symbol:
    """Return a determinant by the minors of its first row."""
    if not len(matrix):
        return literal(1.0)
    terms: Iterator[Symbol] = (
        matrix[0, k] * _minor(np.delete(matrix[1:], k, 1)) for k in range(len(matrix))
    )
    total = next(terms)
    for k, term in enumerate(terms):
        total = total + term if k % 2 else total - term
    return total


def cofactors(A: Matrix) -> tuple[Matrix, ...]:
    """Return the derivatives of the determinant; nan if an element is not finite."""
    spoilt: Any = None
    for each in A.flat:
        nothing = each * 0.0
        spoilt = nothing if spoilt is None else spoilt + nothing
    result = np.empty_like(A)
    for row, column in np.ndindex(A.shape):
        minor = _minor(np.delete(np.delete(A, row, 0), column, 1))
        result[row, column] = (-minor if (row + column) % 2 else minor) + spoilt
    return (result,)
