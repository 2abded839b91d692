"""LDL factorisation of matrices that need not be definite: `linalg.ldl_factor`, `ldl_solve`.

PyTorch has no derivative of it; `linalg.solve` has one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor
from numgrad.kernels.matrices import indefinite
from numgrad.kernels.matrices.batches import by_columns
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.declare import NotDifferentiablePrimitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import (
    broadcast_batches,
    element,
    refuse_dtype,
    require_floating,
    require_square,
)
from numgrad.ops.matrices.parts import stand_in
from numgrad.ops.movement.casts import expand_to
from numgrad.ops.signatures.declared import declare

__all__ = ["linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_ldl_solve"]

Array = np.ndarray[Any, Any]

_factor_type = return_type("linalg_ldl_factor", "LD", "pivots")
_factor_ex_type = return_type("linalg_ldl_factor_ex", "LD", "pivots", "info")


@silent
def _factored(array: Array, hermitian: bool, checked: str | None) -> tuple[Array, Array, Array]:
    """Factor; `checked` is the function that raises where a pivot is 0."""
    table, pivots, failed = indefinite.ldl(array, hermitian)
    if checked is not None and failed.any():
        where, order = element(failed)
        raise RuntimeError(
            f"{checked}: {where}D[{order},{order}] is zero, and using it on ldl_solve would result "
            "in a division by zero"
        )
    return by_columns(table), pivots, failed


@silent
def _solved(table: Array, pivots: Array, side: Array, hermitian: bool) -> Array:
    if pivots.size:
        sizes = np.abs(pivots)
        for fails, bound in (
            (sizes.min() < 1, "satisfy |pivot| >= 1"),
            (sizes.max() > table.shape[-2], "satisfy |pivot| <= LD.size(-2)"),
            (not indefinite.are_paired(pivots), "stand in pairs where they are negative"),
        ):
            if fails:
                raise RuntimeError(
                    f"Pivots given to ldl_solve must all {bound}. Did you properly pass the result "
                    "of ldl_factor?"
                )
    return by_columns(indefinite.ldl_solved(table, pivots.astype(np.int32), side, hermitian))


_FACTOR = NotDifferentiablePrimitive(
    "linalg_ldl_factor_ex",
    "linalg_ldl_factor_ex",
    _factored,
    ["A"],
    [None],
    outputs=("LD", "pivots", "info"),
    stand_in=stand_in,
)
_SOLVE = NotDifferentiablePrimitive(
    "linalg_ldl_solve",
    "linalg_ldl_solve",
    _solved,
    ["LD", "pivots", "B"],
    [None, None, None],
    stand_in=stand_in,
)


def _factors(input: Tensor, hermitian: bool, checked: str | None) -> Any:
    name = "torch.linalg.ldl_factor_ex"
    require_square(name, input)
    require_floating(name, input, wide=False)
    refuse_dtype("ldl_factor_kernel_cpu", input)
    return _FACTOR.apply(input, hermitian=hermitian, checked=checked)


@declare(
    "linalg_ldl_factor(Tensor input, *, bool hermitian=False, Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_ldl_factor(input: Tensor, hermitian: bool) -> Any:
    """Return L and D of A = P L D L^T P^T in one triangle, and the rows that were exchanged.

    D has blocks of one row or two. Gradients are refused, as by PyTorch.

    Parameters
    ----------
    input : tensor of shape (..., n, n)
        Of which the lower triangle is read.
    hermitian
        Take A for Hermitian, and L^H for L^T.

    Raises
    ------
    RuntimeError
        If the matrices are not square, or D is singular.

    >>> import numgrad as ng
    >>> ng.linalg.ldl_factor(ng.tensor([[2.0, 0.0], [1.0, 3.0]])).LD
    tensor([[2.0000, 0.0000],
            [0.5000, 2.5000]])
    """
    return _factor_type(*_factors(input, hermitian, "torch.linalg.ldl_factor")[:2])


@declare(
    "linalg_ldl_factor_ex(Tensor input, *, bool hermitian=False, bool check_errors=False, "
    "Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_ldl_factor_ex(input: Tensor, hermitian: bool, check_errors: bool) -> Any:
    """Return what `linalg.ldl_factor` does, and for each matrix the first pivot that is 0, or 0.

    Gradients are refused, as by PyTorch.

    Parameters
    ----------
    input : tensor of shape (..., n, n)
        Of which the lower triangle is read.
    hermitian
        Take A for Hermitian, and L^H for L^T.
    check_errors
        Raise where D is singular.

    >>> import numgrad as ng
    >>> ng.linalg.ldl_factor_ex(ng.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    checked = "torch.linalg.ldl_factor_ex" if check_errors else None
    return _factor_ex_type(*_factors(input, hermitian, checked))


@declare(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False, "
    "Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Tensor:
    """Return X of AX = B, where A is given by `linalg.ldl_factor`.

    Gradients are refused, as by PyTorch.

    Parameters
    ----------
    LD : tensor of shape (..., n, n)
    pivots : tensor of shape (..., n)
    B : tensor of shape (..., n, k)
    hermitian
        What the factorisation was told.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, the dtypes differ, or the pivots are no integers that
        `linalg.ldl_factor` may give.

    >>> import numgrad as ng
    >>> LD, pivots = ng.linalg.ldl_factor(ng.tensor([[0.0, 2.0], [2.0, 0.0]]))
    >>> ng.linalg.ldl_solve(LD, pivots, ng.tensor([[2.0], [4.0]]))
    tensor([[2.],
            [1.]])
    """
    name = "torch.linalg.ldl_solve"
    require_square(name, LD)
    require_floating(name, LD, wide=False)
    wrap_dim(-2, B._array.ndim)
    if LD._array.dtype != B._array.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {B.dtype.scalar_name} "
            f"and A of type {LD.dtype.scalar_name} instead."
        )
    order, (rows, columns) = LD._array.shape[-1], B._array.shape[-2:]
    if order != rows:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {order} by {order} but each b "
            f"matrix is {rows} by {columns}"
        )
    if pivots._array.dtype.kind not in "iu":
        raise RuntimeError(
            f"{name}: Expected pivots to be integers. Got {pivots.dtype.scalar_name}"
        )
    if LD._array.shape[:-1] != pivots._array.shape:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(pivots._array.shape)} instead"
        )
    refuse_dtype("ldl_solve_kernel_cpu", LD)
    tables, sides = broadcast_batches(LD, B)
    pivots = expand_to(pivots, tables._array.shape[:-1])
    result: Tensor = _SOLVE.apply(tables, pivots, sides, hermitian=hermitian)
    return result
