"""What an LU factorisation is for: `linalg.lu_solve`, `lu_unpack`, and the older `lu_solve`.

The rule of systems is that of M. B. Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008), section 2.3.1, for A = P L U.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor
from numgrad.kernels.matrices.batches import by_columns
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import broadcast_batches, refuse_dtype, require_square
from numgrad.ops.matrices.factorisations.lu import (
    exchange_rows,
    linalg_lu_factor_ex,
    permutation,
    split_table,
    triangles,
)
from numgrad.ops.matrices.parts import adjoint_of, matmul, sampled, stand_in
from numgrad.ops.matrices.systems.solving import factored_solution
from numgrad.ops.matrices.systems.triangular import require_system
from numgrad.ops.movement.casts import expand_to
from numgrad.ops.movement.diagonals import tril, triu
from numgrad.ops.movement.padding import constant_pad_nd
from numgrad.ops.signatures.declared import declare

__all__ = ["linalg_lu_solve", "lu_solve", "lu_unpack"]

Array = np.ndarray[Any, Any]

_unpack_type = return_type("lu_unpack", "P", "L", "U")


# --- systems -------------------------------------------------------------------------------------


@silent
def _solved(table: Array, pivots: Array, side: Array, left: bool, adjoint: bool) -> Array:
    if pivots.size and side.size:
        for fails, bound in (
            (pivots.min() < 1, "greater or equal to 1"),
            (pivots.max() > table.shape[-2], "smaller or equal to LU.size(-2)"),
        ):
            if fails:
                raise RuntimeError(
                    f"Pivots given to lu_solve must all be {bound}. Did you properly pass the "
                    "result of lu_factor?"
                )
    if left:
        return by_columns(factored_solution(table, pivots, side, adjoint))
    # XA = B is A^H X^H = B^H
    turned = side.swapaxes(-2, -1).conj()
    solved = factored_solution(table, pivots, turned, not adjoint).conj()
    return np.ascontiguousarray(solved.swapaxes(-2, -1))


def _solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    result: Tensor = _SOLVE.apply(LU, pivots, B, left=left, adjoint=adjoint)
    return result


def _rule_of_factors(
    g: Tensor, y: Tensor, LU: Tensor, pivots: Tensor, left: bool, adjoint: bool
) -> Tensor:
    """Return the gradient of both triangles of that of P^T A, times U^H and L^H."""
    of_side = _solve(LU, pivots, g, left, not adjoint)
    solution, turned = (y, of_side) if adjoint else (of_side, y)
    if left:  # gA is -G X^H, or -X G^H where A stands conjugate and transposed
        first, second = solution, adjoint_of(turned)
    else:
        first, second = adjoint_of(turned), solution
    product = -matmul(exchange_rows(first, pivots, False), second)
    lower, upper = split_table(LU)
    strict = tril(matmul(product, adjoint_of(upper)), -1)
    result: Tensor = strict + triu(matmul(adjoint_of(lower), product), 0)
    return result


def _factored(A: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    """Solve by factors that depend on A, for tests."""
    table, pivots, _ = linalg_lu_factor_ex(A)
    return linalg_lu_solve(table, pivots, B, left=left, adjoint=adjoint)


_SOLVE = Primitive(
    "linalg_lu_solve",
    "LinalgLuSolveBackward0",
    _solved,
    ["LU", "pivots", "B"],
    [
        _rule_of_factors,
        None,
        lambda g, LU, pivots, left, adjoint: _solve(LU, pivots, g, left, not adjoint),
    ],
    stand_in=stand_in,
    samples=[
        sampled(_factored, (3, 3), (3, 2), left=True, adjoint=False),
        sampled(_factored, (2, 2, 2), (1, 2), left=False, adjoint=False),
        sampled(_factored, (2, 2, 2), (2, 1), left=True, adjoint=True),
        sampled(_factored, (2, 2), (2, 2), left=False, adjoint=True),
        sampled(_factored, (0, 0), (0, 2), left=True, adjoint=False),
    ],
)


@declare(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False, "
    "Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    """Return X of AX = B, or XA = B, where A = P L U is given by `linalg.lu_factor`.

    Derivative: with G = A^-H g for B, and R = -P^T G X^H, that for the factors is
    tril(R U^H, -1) + triu(L^H R). M. B. Giles, "An extended collection of matrix derivative
    results" (2008), 2.3.1.

    Parameters
    ----------
    LU : tensor of shape (..., n, n)
    pivots : tensor of shape (..., n)
    B : tensor of shape (..., n, k)
        Or (..., k, n) where A stands on the right.
    left
        Solve AX = B; else XA = B.
    adjoint
        Take A^H for A.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, the dtypes differ, or the pivots are no such numbers.

    >>> import numgrad as ng
    >>> LU, pivots = ng.linalg.lu_factor(ng.tensor([[1.0, 3.0], [2.0, 4.0]]))
    >>> ng.linalg.lu_solve(LU, pivots, ng.tensor([[4.0], [6.0]]))
    tensor([[1.],
            [1.]])
    """
    name = "linalg.lu_solve"
    if LU._array.dtype.kind not in "fc":
        raise RuntimeError(
            f"torch.{name}: Expected a floating point or complex tensor as input. Got "
            f"{LU.dtype.scalar_name}"
        )
    require_square(f"torch.{name}", LU)
    if LU._array.dtype != B._array.dtype:
        raise RuntimeError(
            f"{name}: Expected LU and B to have the same dtype, but found LU of type "
            f"{LU.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead"
        )
    if pivots._array.dtype != np.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    require_system(name, LU, B, left)
    if not pivots._array.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if LU._array.shape[-1] != pivots._array.shape[-1]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix"
        )
    if LU._array.shape[:-1] != pivots._array.shape:
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(pivots._array.shape)} instead"
        )
    refuse_dtype("linalg.lu_solve_cpu", LU)
    matrices, sides = broadcast_batches(LU, B)
    if matrices is not LU:
        pivots = expand_to(pivots, matrices._array.shape[:-1])
    return _solve(matrices, pivots, sides, left, adjoint)


@declare(
    "lu_solve(Tensor input, Tensor LU_data, Tensor LU_pivots, *, Tensor? out=None)",
    dispatched=True,
)
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Return what `linalg.lu_solve` does, which takes the right side last; PyTorch deprecates this.

    The gradient is the same.

    Parameters
    ----------
    input : tensor of shape (..., n, k)
        The right side.
    LU_data : tensor of shape (..., n, n)
    LU_pivots : tensor of shape (..., n)

    >>> import numgrad as ng
    >>> LU, pivots = ng.linalg.lu_factor(ng.tensor([[1.0, 3.0], [2.0, 4.0]]))
    >>> ng.lu_solve(ng.tensor([[4.0], [6.0]]), LU, pivots)
    tensor([[1.],
            [1.]])
    """
    result: Tensor = linalg_lu_solve(LU_data, LU_pivots, input)
    return result


# --- unpacking -----------------------------------------------------------------------------------


def _unpacked(
    table: Array, pivots: Array, unpack_data: bool, unpack_pivots: bool
) -> tuple[Array, Array, Array]:
    order = lower = upper = np.empty(0, table.dtype)
    rows = table.shape[-2]
    if unpack_pivots:
        if pivots.size and (pivots.min() < 1 or pivots.max() > rows):
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you "
                "properly pass the result of lu_factor?"
            )
        order = permutation(pivots, rows, table.dtype)
    if unpack_data:
        lower, upper = triangles(table)
    lower, upper, order = map(np.ascontiguousarray, (lower, upper, order))
    return lower, upper, order


def _rule_of_unpacking(
    g: list[Tensor | None], LU_data_shape: tuple[int, ...], unpack_data: bool
) -> Tensor | None:
    of_lower, of_upper, _ = g
    if not unpack_data or (of_lower is None and of_upper is None):
        return None
    found: Any = 0
    if of_lower is not None:
        found = _filled(tril(of_lower, -1), LU_data_shape)
    if of_upper is not None:
        found = found + _filled(triu(of_upper, 0), LU_data_shape)
    result: Tensor = found
    return result


def _filled(part: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a triangle with zeros where a longer matrix goes on."""
    rows, columns = (
        length - own for length, own in zip(shape[-2:], part._array.shape[-2:], strict=True)
    )
    result: Tensor = constant_pad_nd(part, (0, columns, 0, rows)) if rows or columns else part
    return result


_UNPACK = Primitive(
    "lu_unpack",
    "LuUnpackBackward0",
    _unpacked,
    ["LU_data", "LU_pivots"],
    [_rule_of_unpacking, None],
    outputs=("L", "U", "P"),  # last what has no gradient, for which no node is asked
    constant=("P",),
    stand_in=stand_in,
    takes_half=True,
    samples=[
        sampled(lambda A: tuple(lu_unpack(*linalg_lu_factor_ex(A)[:2]))[1:], (3, 3)),
        sampled(lambda A: lu_unpack(*linalg_lu_factor_ex(A)[:2]).U, (2, 3, 2)),
        sampled(lambda A: lu_unpack(*linalg_lu_factor_ex(A)[:2]).L, (2, 4)),
    ],
)


@declare(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True, "
    "*, Tensor[]? out=None)",
    method=False,
    dispatched=True,
)
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> Any:
    """Return P, L and U of A = P L U from what `linalg.lu_factor` gives.

    The gradient is tril(gL, -1) + triu(gU).

    Parameters
    ----------
    LU_data : tensor of shape (..., m, n)
    LU_pivots : tensor of shape (..., min(m, n))
    unpack_data
        Else L and U are empty.
    unpack_pivots
        Else P is empty.

    Raises
    ------
    RuntimeError
        If the pivots are not int32, or no such numbers.

    >>> import numgrad as ng
    >>> LU, pivots = ng.linalg.lu_factor(ng.tensor([[1.0, 3.0], [2.0, 4.0]]))
    >>> ng.lu_unpack(LU, pivots).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    if LU_data._array.ndim < 2:
        raise RuntimeError(
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(LU_data._array.shape)} instead"
        )
    if unpack_pivots:
        if LU_pivots._array.dtype != np.int32:
            raise RuntimeError(
                "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
                "dtype."
            )
        batch = LU_data._array.shape[:-2]
        if LU_pivots._array.shape[:-1] != batch:
            count = LU_pivots._array.shape[-1:]
            shape = (*broadcast_shapes([LU_pivots._array.shape[:-1], batch]), *count)
            LU_pivots = expand_to(LU_pivots, shape)
    lower, upper, order = _UNPACK.apply(
        LU_data, LU_pivots, unpack_data=unpack_data, unpack_pivots=unpack_pivots
    )
    return _unpack_type(order, lower, upper)
