"""Systems of linear equations and inverses: `linalg.solve`, `linalg.inv` and their like.

The rules are those of M. B. Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008), sections 2.2.3 and 2.3.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.base.tuning import SMALL_MATRIX
from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.matrices import factors, formulas
from numgrad.kernels.matrices.batches import by_columns
from numgrad.kernels.matrices.failures import refuse_failed
from numgrad.kernels.matrices.triangular import solve_triangular
from numgrad.kernels.matrices.unrolled import Unrolled
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import (
    broadcast_batches,
    require_floating,
    require_square,
)
from numgrad.ops.matrices.parts import adjoint_of, identities, matmul, sampled, stand_in
from numgrad.ops.matrices.systems.triangular import require_system
from numgrad.ops.movement.casts import expand_to
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.slicing import slice_of
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.signatures.declared import declare

__all__ = [
    "inverse",
    "inverted",
    "linalg_inv",
    "linalg_inv_ex",
    "linalg_solve",
    "linalg_solve_ex",
    "solve_factored",
]

Array = np.ndarray[Any, Any]

_solve_ex_type = return_type("linalg_solve_ex", "result", "info")
_inv_ex_type = return_type("linalg_inv_ex", "inverse", "info")


_UNROLLED = Unrolled(formulas.solve, (2, 2), integers=(2, 3), failed=3)
_UNROLLED_FACTORED = Unrolled(formulas.solve_factored, (2, 2, 2, 1))
_UNROLLED_INVERSE = Unrolled(formulas.inverse, (2,), integers=(1,), failed=1)


# --- systems -------------------------------------------------------------------------------------


def factored_solution(table: Array, pivots: Array, side: Array, adjoint: bool) -> Array:
    """Return X of AX = B, or A^H X = B, where A is given by L and U in one table."""
    if not adjoint:
        half = solve_triangular(table, factors.swapped(side, pivots), True, True)
        return solve_triangular(table, half, False, False)
    turned = table.swapaxes(-2, -1)
    half = solve_triangular(turned.conj(), side, True, False)
    return factors.swapped(solve_triangular(turned.conj(), half, False, True), pivots, True)


@silent
def _solved(
    array: Array, side: Array, left: bool, vector: bool, checked: str | None
) -> tuple[Array, ...]:
    """Solve, of vectors or matrices; `checked` is the function that raises for singular ones."""
    parameters = {"left": left, "vector": vector, "checked": checked}
    found = _UNROLLED((array, side), "FCCC" if left and not vector else "CCCC", parameters)
    if found is not None:
        result, *rest = found
        return (by_columns(result) if vector and result.ndim > 1 else result, *rest)
    if not left:  # XA = B is A^T X^T = B^T
        array, side = array.swapaxes(-2, -1), side.swapaxes(-2, -1)
    table, pivots, failed = factors.lu(array)
    if checked is not None:
        refuse_failed(checked, failed)
    if vector:
        result = factored_solution(table, pivots, side[..., None], False)[..., 0]
        result = by_columns(result) if result.ndim > 1 else result  # as PyTorch's lie
    else:
        result = by_columns(factored_solution(table, pivots, side, False))
    return result if left else result.swapaxes(-2, -1), table, pivots, failed


@silent
def _solved_again(array: Array, side: Array, table: Array, pivots: Array, adjoint: bool) -> Array:
    found = _UNROLLED_FACTORED((array, side, table, pivots), "F", {"adjoint": adjoint})
    if found is not None:
        return found[0]
    return by_columns(factored_solution(table, pivots, side, adjoint))


def solve_factored(A: Tensor, B: Tensor, LU: Tensor, pivots: Tensor, adjoint: bool) -> Tensor:
    """Return X of AX = B, or A^H X = B, as a function of A, by factors that are at hand."""
    result: Tensor = _FACTORED.apply(A, B, LU, pivots, adjoint=adjoint)
    return result


def _factored_matrix(
    g: Tensor, y: Tensor, A: Tensor, LU: Tensor, pivots: Tensor, adjoint: bool
) -> Tensor:
    """Return -G X^H, or where A stands conjugate and transposed its adjoint."""
    gradient = solve_factored(A, g, LU, pivots, not adjoint)
    if adjoint:
        return -matmul(y, adjoint_of(gradient))
    return -matmul(gradient, adjoint_of(y))


def _of_factors(A: Tensor, B: Tensor, adjoint: bool) -> Tensor:
    _, table, pivots, _ = _SOLVE.apply(
        A.detach(), B.detach(), left=True, vector=False, checked=None
    )
    return solve_factored(A, B, table, pivots, adjoint)


_FACTORED = Primitive(
    "solve_factored",
    "LinalgSolveExBackward0",
    _solved_again,
    ["A", "B", "LU", "pivots"],
    [
        _factored_matrix,
        lambda g, A, LU, pivots, adjoint: solve_factored(A, g, LU, pivots, not adjoint),
        None,
        None,
    ],
    stand_in=stand_in,
    native=_UNROLLED_FACTORED,
    samples=[
        sampled(_of_factors, (3, 3), (3, 2), adjoint=False),
        sampled(_of_factors, (2, 2, 2), (2, 2, 1), adjoint=True),
    ],
)


def _side_rule(
    g: list[Tensor | None], A: Tensor, LU: Tensor, pivots: Tensor, left: bool, vector: bool
) -> Tensor | None:
    if g[0] is None:
        return None
    if vector:
        return squeeze(solve_factored(A, unsqueeze(g[0], -1), LU, pivots, True), -1)
    if left:
        return solve_factored(A, g[0], LU, pivots, True)
    return solve_factored(A.mT, g[0].mT, LU, pivots, True).mT


def _matrix_rule(
    g: list[Tensor | None],
    result: Tensor,
    A: Tensor,
    LU: Tensor,
    pivots: Tensor,
    left: bool,
    vector: bool,
) -> Tensor | None:
    gradient = _side_rule(g, A, LU, pivots, left, vector)
    if gradient is None:
        return None
    if vector:
        product: Tensor = unsqueeze(gradient, -1) * unsqueeze(conj(result), -2)
        return -product
    turned = adjoint_of(result)
    return -matmul(gradient, turned) if left else -matmul(turned, gradient)


_SOLVE = Primitive(
    "linalg_solve_ex",
    "LinalgSolveExBackward0",
    _solved,
    ["A", "B"],
    [_matrix_rule, _side_rule],
    outputs=("result", "LU", "pivots", "info"),
    constant=("LU",),
    stand_in=stand_in,
    native=_UNROLLED,
    samples=[
        sampled(lambda A, B: linalg_solve(A, B), (3, 3), (3, 2)),
        sampled(lambda A, B: linalg_solve_ex(A, B, left=False).result, (2, 2), (2, 1, 2)),
        sampled(lambda A, B: linalg_solve(A, B), (2, 2, 2), (2, 2)),
        sampled(lambda A, B: linalg_solve(A, B), (0, 0), (0, 2)),
    ],
)


def _solve(A: Tensor, B: Tensor, left: bool, checked: str | None) -> tuple[Tensor, Tensor]:
    """Return the solution and which matrices were singular, after looking at the arguments."""
    name = "linalg.solve"
    require_floating(name, A, wide=False)
    if A._array.dtype != B._array.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{A.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead"
        )
    require_square(name, A)
    require_floating(name, A)
    batch = A._array.shape[:-2]
    is_vector = B._array.ndim == 1 or A._array.shape[:-1] == B._array.shape
    if is_vector:
        require_system(name, A, unsqueeze(B, -1), left)
        if not left:
            raise RuntimeError(
                f"{name}: Vector broadcasting of the left hand side is not supported for "
                "left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
            )
        B = expand_to(B, A._array.shape[:-1])
    else:
        require_system(name, A, B, left)
        B, A = broadcast_batches(B, A)
    result, _, _, info = _SOLVE.apply(A, B, left=left, vector=is_vector, checked=checked)
    return result, info if info._array.shape == batch else _of_each(info, batch)


def _of_each(info: Tensor, batch: tuple[int, ...]) -> Tensor:
    """Return what was found of a broadcast batch for each matrix that it is made of."""
    if not info._array.size:
        return fresh(np.zeros(batch, info._array.dtype))
    missing = info._array.ndim - len(batch)
    for dim, size in enumerate((*(1,) * missing, *batch)):
        if size == 1:
            info = slice_of(info, dim, 0, 1, 1)
    return reshape(info, batch)


@declare(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_solve(A: Tensor, B: Tensor, left: bool) -> Tensor:
    """Return X of AX = B, or XA = B, by LU with partial pivoting.

    Derivative: G = A^-H g for B, and -G X^H for A.
    M. B. Giles, "An extended collection of matrix derivative results" (2008), 2.3.1.

    Parameters
    ----------
    A : tensor of shape (..., n, n)
    B : tensor of shape (..., n, k), (n,), or (..., n) as A has
    left
        Solve AX = B; else XA = B.

    Raises
    ------
    numgrad.linalg.LinAlgError
        If a matrix is singular.

    >>> import numgrad as ng
    >>> ng.linalg.solve(ng.tensor([[2.0, 1.0], [1.0, 3.0]]), ng.tensor([3.0, 4.0]))
    tensor([1., 1.])
    """
    return _solve(A, B, left, "torch.linalg.solve")[0]


@declare(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False, "
    "Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_solve_ex(A: Tensor, B: Tensor, left: bool, check_errors: bool) -> Any:
    """Return what `linalg.solve` does, and for each matrix which pivot is zero, 0 where none is.

    The gradient is that of `linalg.solve`.

    Parameters
    ----------
    A : tensor of shape (..., n, n)
    B : tensor of shape (..., n, k), (n,), or (..., n) as A has
    left
        Solve AX = B; else XA = B.
    check_errors
        Raise where a matrix is singular.

    >>> import numgrad as ng
    >>> ng.linalg.solve_ex(ng.ones(2, 2), ng.tensor([3.0, 4.0])).info
    tensor(2, dtype=torch.int32)
    """
    return _solve_ex_type(*_solve(A, B, left, "torch.linalg.solve_ex" if check_errors else None))


# --- inverses ------------------------------------------------------------------------------------


@silent
def _inverted(array: Array, checked: str | None) -> tuple[Array, Array]:
    found = _UNROLLED_INVERSE((array,), "FC", {"checked": checked})
    if found is not None:
        return found[0], found[1]
    failed = np.zeros(array.shape[:-2], np.int32)
    if array.shape[-1] > SMALL_MATRIX:
        try:
            return np.linalg.inv(array.swapaxes(-2, -1)).swapaxes(-2, -1), failed
        except np.linalg.LinAlgError:  # one of them; which one, and where, is told below
            pass
    table, pivots, failed = factors.lu(array)
    if checked is not None:
        refuse_failed(checked, failed)
    result = by_columns(factored_solution(table, pivots, identities(array), False))
    return result, failed


def _inverse_rule(g0: Tensor, inverse: Tensor) -> Tensor:
    turned = adjoint_of(inverse)
    return -matmul(turned, matmul(g0, turned))


_INVERSE = Primitive(
    "linalg_inv_ex",
    "LinalgInvExBackward0",
    _inverted,
    ["A"],
    [_inverse_rule],
    outputs=("inverse", "info"),
    stand_in=stand_in,
    native=_UNROLLED_INVERSE,
    samples=[
        sampled(lambda A: linalg_inv(A), (3, 3)),
        sampled(lambda A: linalg_inv_ex(A).inverse, (2, 2, 2)),
        sampled(lambda A: inverse(A), (0, 0)),
    ],
)


def inverted(A: Tensor, checked: str | None) -> tuple[Tensor, Tensor]:
    """Return inverses, and which pivots are 0; `checked` is the function that raises for them."""
    require_floating("linalg.inv", A)
    require_square("linalg.inv", A)
    found: tuple[Tensor, Tensor] = _INVERSE.apply(A, checked=checked)
    return found


@declare("linalg_inv(Tensor A, *, Tensor? out=None)", function=False, method=False, dispatched=True)
def linalg_inv(A: Tensor) -> Tensor:
    """Return the inverses of square matrices.

    The gradient is -A^-H g A^-H.

    Parameters
    ----------
    A : tensor of shape (..., n, n)

    Raises
    ------
    numgrad.linalg.LinAlgError
        If a matrix is singular.

    >>> import numgrad as ng
    >>> ng.linalg.inv(ng.tensor([[2.0, 1.0], [0.0, 4.0]]))
    tensor([[ 0.5000, -0.1250],
            [ 0.0000,  0.2500]])
    """
    return inverted(A, "linalg.inv")[0]


@declare(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False, Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_inv_ex(A: Tensor, check_errors: bool) -> Any:
    """Return what `linalg.inv` does, and for each matrix which pivot is zero, 0 where none is.

    The gradient is that of `linalg.inv`.

    Parameters
    ----------
    A : tensor of shape (..., n, n)
    check_errors
        Raise where a matrix is singular.

    >>> import numgrad as ng
    >>> ng.linalg.inv_ex(ng.ones(2, 2)).info
    tensor(2, dtype=torch.int32)
    """
    return _inv_ex_type(*inverted(A, "linalg.inv_ex" if check_errors else None))


@declare("inverse(Tensor input, *, Tensor? out=None)", dispatched=True)
def inverse(input: Tensor) -> Tensor:
    """Return the inverses of square matrices: `linalg.inv`.

    The gradient is -A^-H g A^-H.

    >>> import numgrad as ng
    >>> ng.inverse(ng.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inverted(input, "linalg.inv")[0]
