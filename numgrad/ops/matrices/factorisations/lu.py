"""LU factorisation with partial pivoting: `linalg.lu`, `linalg.lu_factor`, and the older `lu`.

The rule follows from L^-1 dL + dU U^-1 = L^-1 P^T dA U^-1, of which the first term is strictly
lower and the second upper triangular: S. F. Walter and L. Lehmann, "Algorithmic differentiation of
linear algebra functions with application in optimum experimental design" (2010),
`arXiv:1001.1654 <https://arxiv.org/abs/1001.1654>`_. Of a rectangle, what is beside the square is
U2 = L^-1 P^T A2, or L2 = (P^T A)_2 U^-1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.matrices import factors, formulas
from numgrad.kernels.matrices.batches import by_columns
from numgrad.kernels.matrices.failures import refuse_failed
from numgrad.kernels.matrices.unrolled import Unrolled
from numgrad.kernels.move.triangles import triangle
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import refuse_dtype
from numgrad.ops.matrices.parts import adjoint_of, matmul, sampled, stand_in
from numgrad.ops.matrices.systems.triangular import solve_with_triangle
from numgrad.ops.movement.diagonals import tril, triu
from numgrad.ops.movement.joining import cat
from numgrad.ops.movement.slicing import narrow
from numgrad.ops.signatures.declared import declare

__all__ = [
    "exchange_rows",
    "linalg_lu",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "lu",
    "permutation",
    "split_table",
    "triangles",
]

Array = np.ndarray[Any, Any]

_lu_type = return_type("linalg_lu", "P", "L", "U")
_factor_type = return_type("linalg_lu_factor", "LU", "pivots")
_factor_ex_type = return_type("linalg_lu_factor_ex", "LU", "pivots", "info")
_old_type = return_type("_lu_with_info", "LU", "pivots", "info")


# --- the order of rows ---------------------------------------------------------------------------


def exchange_rows(input: Tensor, pivots: Tensor, backwards: bool) -> Tensor:
    """Return matrices whose rows are exchanged as pivots say, P^T A; or P A, which undoes it."""
    result: Tensor = _EXCHANGE.apply(input, pivots, backwards=backwards)
    return result


_EXCHANGE = Primitive(
    "exchange_rows",
    "ExchangeRowsBackward0",
    lambda array, pivots, backwards: factors.swapped(array, pivots, backwards),
    ["input", "pivots"],
    [lambda g, pivots, backwards: exchange_rows(g, pivots, not backwards), None],
    stand_in=stand_in,
    samples=[
        sampled(
            lambda A, B, backwards: exchange_rows(
                B, linalg_lu_factor_ex(A.detach().mT)[1], backwards
            ),
            (3, 3),
            (3, 2),
            backwards=backwards,
        )
        for backwards in (False, True)
    ],
)


# --- the rule ------------------------------------------------------------------------------------


def _below_right(right: bool, gradient: Tensor, table: Tensor) -> Tensor:
    """Return the gradient times U^-H from the right, or L^-H times it."""
    if right:
        return solve_with_triangle(adjoint_of(table), gradient, upper=False, left=False)
    return solve_with_triangle(adjoint_of(table), gradient, upper=True, unitriangular=True)


def _unordered_gradient(
    of_lower: Tensor | None, of_upper: Tensor | None, lower: Tensor, upper: Tensor, table: Tensor
) -> Tensor:
    """Return the gradient of P^T A for those of L and U; `table` holds the triangles of both."""
    rows, columns = lower._array.shape[-2], upper._array.shape[-1]
    rank = min(rows, columns)
    square = narrow(narrow(table, -2, 0, rank), -1, 0, rank)
    strict: Any = None
    full: Any = None
    beside = None
    if of_lower is not None:
        strict = matmul(adjoint_of(narrow(lower, -2, 0, rank)), narrow(of_lower, -2, 0, rank))
    if of_upper is not None:
        of_square = narrow(of_upper, -1, 0, rank)
        full = matmul(of_square, adjoint_of(narrow(upper, -1, 0, rank)))
    if columns > rank and of_upper is not None:
        of_right = narrow(of_upper, -1, rank, columns - rank)
        product = matmul(of_right, adjoint_of(narrow(upper, -1, rank, columns - rank)))
        strict = -product if strict is None else strict - product
        beside = _below_right(False, of_right, square)
    if rows > rank and of_lower is not None:
        of_rest = narrow(of_lower, -2, rank, rows - rank)
        product = matmul(adjoint_of(narrow(lower, -2, rank, rows - rank)), of_rest)
        full = -product if full is None else full - product
        beside = _below_right(True, of_rest, square)
    inner: Any = 0 if strict is None else tril(strict, -1)
    inner = inner if full is None else inner + triu(full, 0)
    gradient = _below_right(True, _below_right(False, inner, square), square)
    if rows == columns:
        return gradient
    if beside is None:
        beside = narrow(table, -2 if rows > rank else -1, rank, abs(rows - columns)) * 0
    return cat([gradient, beside], -2 if rows > rank else -1)


def split_table(table: Tensor) -> tuple[Tensor, Tensor]:
    """Return L, with ones on its diagonal, and U, of which a table holds the triangles."""
    rows, columns = table._array.shape[-2:]
    rank = min(rows, columns)
    ones = fresh(np.eye(rows, rank, dtype=table._array.dtype))
    return tril(narrow(table, -1, 0, rank), -1) + ones, triu(narrow(table, -2, 0, rank), 0)


# --- the table of both ---------------------------------------------------------------------------


_UNROLLED = Unrolled(formulas.lu_factor, (2,), integers=(1, 2), failed=2)


@silent
def _factored(array: Array, pivot: bool, checked: str | None) -> tuple[Array, Array, Array]:
    """Factor; `checked` is the function that raises where a pivot is 0."""
    found = _UNROLLED((array,), "FCC", {"pivot": pivot, "checked": checked})
    if found is not None:
        return found[0], found[1], found[2]
    table, pivots, failed = factors.lu(array)
    if checked is not None:
        refuse_failed(checked, failed)
    return by_columns(table), pivots, failed


def _rule_of_table(g0: Tensor, LU: Tensor, pivots: Tensor, pivot: bool) -> Tensor:
    rows, columns = LU._array.shape[-2:]
    rank = min(rows, columns)
    lower, upper = split_table(LU)
    of_lower, of_upper = narrow(g0, -1, 0, rank), narrow(g0, -2, 0, rank)
    if rows > rank:  # what is above the diagonal is none of L's
        of_lower = tril(of_lower, -1)
    if columns > rank:
        of_upper = triu(of_upper, 0)
    return exchange_rows(_unordered_gradient(of_lower, of_upper, lower, upper, LU), pivots, True)


_FACTOR = Primitive(
    "linalg_lu_factor_ex",
    "LinalgLuFactorExBackward0",
    _factored,
    ["A"],
    [_rule_of_table],
    outputs=("LU", "pivots", "info"),
    stand_in=stand_in,
    native=_UNROLLED,
    samples=[
        sampled(lambda A: linalg_lu_factor(A).LU, (3, 3)),
        sampled(lambda A: linalg_lu_factor_ex(A).LU, (2, 3, 2)),
        sampled(lambda A: lu(A)[0], (2, 4)),
        sampled(lambda A: linalg_lu_factor(A).LU, (0, 0)),
    ],
)


def _factors(function: str, A: Tensor, pivot: bool, checked: str | None) -> Any:
    if A._array.ndim < 2:
        raise RuntimeError(
            f"{function}: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(A._array.shape)} instead"
        )
    refuse_dtype("lu_cpu", A)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    if function == "linalg.lu":
        lower, upper, order = _LU.apply(A, pivot=pivot)
        return order, lower, upper
    return _FACTOR.apply(A, pivot=pivot, checked=checked)


@declare(
    "linalg_lu_factor(Tensor A, *, bool pivot=True, Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_lu_factor(A: Tensor, pivot: bool) -> Any:
    """Return L and U of A = P L U in one matrix, and the rows that were exchanged, from 1 on.

    The gradient of A is P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H: S. F. Walter and L. Lehmann,
    `arXiv:1001.1654 <https://arxiv.org/abs/1001.1654>`_.

    Parameters
    ----------
    A : tensor of shape (..., m, n)
    pivot
        Exchange rows; PyTorch has no other way on CPUs.

    Raises
    ------
    RuntimeError
        If U is singular.

    >>> import numgrad as ng
    >>> ng.linalg.lu_factor(ng.tensor([[1.0, 3.0], [2.0, 4.0]]))
    torch.return_types.linalg_lu_factor(
    LU=tensor([[2.0000, 4.0000],
            [0.5000, 1.0000]]),
    pivots=tensor([2, 2], dtype=torch.int32))
    """
    found = _factors("torch.lu_factor", A, pivot, "torch.linalg.lu_factor")
    return _factor_type(*found[:2])


@declare(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False, "
    "Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_lu_factor_ex(A: Tensor, pivot: bool, check_errors: bool) -> Any:
    """Return what `linalg.lu_factor` does, and for each matrix the first pivot that is 0, or 0.

    The gradient is that of `linalg.lu_factor`.

    Parameters
    ----------
    A : tensor of shape (..., m, n)
    pivot
        Exchange rows; PyTorch has no other way on CPUs.
    check_errors
        Raise where U is singular.

    >>> import numgrad as ng
    >>> ng.linalg.lu_factor_ex(ng.ones(2, 2)).info
    tensor(2, dtype=torch.int32)
    """
    checked = "torch.linalg.lu_factor_ex" if check_errors else None
    return _factor_ex_type(*_factors("torch.lu_factor", A, pivot, checked))


@declare(
    "lu(Tensor A, bool pivot=True, bool? get_infos=False, *, Tensor[]? out=None)", dispatched=True
)
def lu(A: Tensor, pivot: bool, get_infos: bool | None) -> Any:
    """Return what `linalg.lu_factor_ex` does; PyTorch deprecates this name.

    The gradient is the same.

    Parameters
    ----------
    A : tensor of shape (..., m, n)
    pivot
        Exchange rows; PyTorch has no other way on CPUs.
    get_infos
        Return the first pivots that are 0, too.

    >>> import numgrad as ng
    >>> ng.lu(ng.tensor([[1.0, 3.0], [2.0, 4.0]]))[1]
    tensor([2, 2], dtype=torch.int32)
    """
    found = _factors("torch.lu_factor", A, pivot, None)
    return _old_type(*found) if get_infos else tuple(found[:2])


# --- three matrices ------------------------------------------------------------------------------


def triangles(table: Array) -> tuple[Array, Array]:
    """Return L and U of a table, each in new memory."""
    rank = min(table.shape[-2:])
    lower = triangle(table[..., :rank], -1, lower=True)
    diagonal = np.arange(rank)
    lower[..., diagonal, diagonal] = 1
    return lower, triangle(table[..., :rank, :], 0, lower=False)


def permutation(pivots: Array, rows: int, dtype: Any) -> Array:
    """Return P of A = P L U."""
    numbers = np.arange(rows, dtype=np.int32)
    columns = np.broadcast_to(numbers[:, None], (*pivots.shape[:-1], rows, 1))
    return np.asarray((factors.swapped(columns, pivots, True) == numbers).astype(dtype))


@silent
def _three(array: Array, pivot: bool) -> tuple[Array, Array, Array]:
    table, pivots, _ = factors.lu(array)
    return *triangles(table), permutation(pivots, array.shape[-2], array.dtype)


def _rule(g: list[Tensor | None], P: Tensor, L: Tensor, U: Tensor, pivot: bool) -> Tensor | None:
    of_lower, of_upper, _ = g
    if of_lower is None and of_upper is None:
        return None
    rank = min(L._array.shape[-2], U._array.shape[-1])
    square = tril(narrow(L, -2, 0, rank), -1) + narrow(U, -1, 0, rank)
    if L._array.shape[-2] > rank:
        table = cat([square, narrow(L, -2, rank, L._array.shape[-2] - rank)], -2)
    elif U._array.shape[-1] > rank:
        table = cat([square, narrow(U, -1, rank, U._array.shape[-1] - rank)], -1)
    else:
        table = square
    return matmul(P, _unordered_gradient(of_lower, of_upper, L, U, table))


_LU = Primitive(
    "linalg_lu",
    "LinalgLuBackward0",
    _three,
    ["A"],
    [_rule],
    outputs=("L", "U", "P"),  # last what has no gradient, for which no node is asked
    constant=("P",),
    stand_in=stand_in,
    samples=[
        sampled(lambda A: tuple(linalg_lu(A))[1:], (3, 3)),
        sampled(lambda A: linalg_lu(A).L, (2, 3, 2)),
        sampled(lambda A: linalg_lu(A).U, (2, 4)),
        sampled(lambda A: tuple(linalg_lu(A))[1:], (0, 2)),
    ],
)


@declare(
    "linalg_lu(Tensor A, *, bool pivot=True, Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_lu(A: Tensor, pivot: bool) -> Any:
    """Return P, L and U of A = P L U: a permutation, a lower and an upper triangular matrix.

    L has ones on its diagonal. The gradient of A is P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H:
    S. F. Walter and L. Lehmann, `arXiv:1001.1654 <https://arxiv.org/abs/1001.1654>`_.

    Parameters
    ----------
    A : tensor of shape (..., m, n)
    pivot
        Exchange rows; PyTorch has no other way on CPUs.

    Raises
    ------
    RuntimeError
        If there are no two dims.

    >>> import numgrad as ng
    >>> P, L, U = ng.linalg.lu(ng.tensor([[1.0, 3.0], [2.0, 4.0]]))
    >>> L
    tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]])
    >>> P @ L @ U
    tensor([[1., 3.],
            [2., 4.]])
    """
    return _lu_type(*_factors("linalg.lu", A, pivot, None))
