"""Triangular systems: `linalg.solve_triangular`, and the older `triangular_solve`.

The rules are those of M. B. Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008), section 2.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor
from numgrad.kernels.matrices import formulas, triangular
from numgrad.kernels.matrices.batches import by_columns
from numgrad.kernels.matrices.unrolled import Unrolled
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import broadcast_batches, refuse_dtype, require_square
from numgrad.ops.matrices.parts import adjoint_of, matmul, sampled, stand_in
from numgrad.ops.movement.diagonals import tril, triu
from numgrad.ops.signatures.declared import declare

__all__ = ["linalg_solve_triangular", "solve_with_triangle", "triangular_solve"]

Array = np.ndarray[Any, Any]

_triangular_solve_type = return_type("triangular_solve", "solution", "cloned_coefficient")


_UNROLLED = Unrolled(formulas.solve_triangular, (2, 2))


@silent
def _forward(array: Array, side: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    parameters = {"upper": upper, "left": left, "unitriangular": unitriangular}
    found = _UNROLLED((array, side), "F", parameters)
    if found is not None:
        return found[0]
    if left:
        return by_columns(triangular.solve_triangular(array, side, not upper, unitriangular))
    # XA = B is A^T X^T = B^T
    flipped = array.swapaxes(-2, -1), side.swapaxes(-2, -1)
    result = triangular.solve_triangular(*flipped, upper, unitriangular)
    return result.swapaxes(-2, -1)


def _rule_of_matrix(
    g: Tensor, y: Tensor, A: Tensor, upper: bool, left: bool, unitriangular: bool
) -> Tensor:
    """-gB X^H where A stands on the left, X^H being on the right; of the triangle alone."""
    solved = _rule_of_side(g, A, upper, left, unitriangular)
    full = matmul(solved, adjoint_of(y)) if left else matmul(adjoint_of(y), solved)
    if upper:
        return -triu(full, int(unitriangular))
    return -tril(full, -int(unitriangular))


def _rule_of_side(g: Tensor, A: Tensor, upper: bool, left: bool, unitriangular: bool) -> Tensor:
    return solve_with_triangle(adjoint_of(A), g, not upper, left, unitriangular)


_SOLVE = Primitive(
    "linalg_solve_triangular",
    "LinalgSolveTriangularBackward0",
    _forward,
    ["A", "B"],
    [_rule_of_matrix, _rule_of_side],
    stand_in=stand_in,
    native=_UNROLLED,
    samples=[
        sampled(lambda A, B: linalg_solve_triangular(A, B, upper=False), (3, 3), (3, 2)),
        sampled(
            lambda A, B: linalg_solve_triangular(A, B, upper=True, unitriangular=True),
            (3, 3),
            (3, 2),
        ),
        sampled(
            lambda A, B: linalg_solve_triangular(A, B, upper=True, left=False), (2, 2), (2, 1, 2)
        ),
        sampled(lambda A, B: linalg_solve_triangular(A, B, upper=True), (0, 0), (0, 2)),
    ],
)


def solve_with_triangle(
    A: Tensor, B: Tensor, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Return X of AX = B, or XA = B, for one triangle of matrices of one batch."""
    result: Tensor = _SOLVE.apply(A, B, upper=upper, left=left, unitriangular=unitriangular)
    return result


def require_system(function: str, A: Tensor, B: Tensor, left: bool) -> None:
    """Raise unless square matrices and right sides fit each other."""
    require_square(function, A)
    if B._array.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor B must have at least 2 dimensions.")
    rows, sides = A._array.shape[-2:], B._array.shape[-2:]
    if rows[0] != sides[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{function}: Incompatible shapes of A and B for the equation {equation} "
            f"({rows[0]}x{rows[1]} and {sides[0]}x{sides[1]})"
        )


@declare(
    "linalg_solve_triangular(Tensor input, Tensor B, *, bool upper, bool left=True, "
    "bool unitriangular=False, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_solve_triangular(
    input: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool
) -> Tensor:
    """Return X of AX = B, or XA = B, where A is triangular.

    Derivative: with G = A^-H g for B, that for A is the triangle of -G X^H.
    M. B. Giles, "An extended collection of matrix derivative results" (2008), 2.3.

    Parameters
    ----------
    input : tensor of shape (..., n, n)
        A, of which one triangle is read.
    B : tensor of shape (..., n, k)
        Or (..., k, n) where A stands on the right.
    upper
        Which triangle.
    left
        Solve AX = B; else XA = B.
    unitriangular
        Take the diagonal for ones.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> A = ng.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> ng.linalg.solve_triangular(A, ng.tensor([[3.0], [4.0]]), upper=True)
    tensor([[1.],
            [1.]])
    """
    require_system("linalg.solve_triangular", input, B, left)
    refuse_dtype("triangular_solve_cpu", input)
    if input._array.dtype != B._array.dtype:
        raise RuntimeError(
            "linalg.solve_triangular: Expected A and B to have the same dtype, but found A of "
            f"type {input.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead"
        )
    sides, matrices = broadcast_batches(B, input)
    return solve_with_triangle(matrices, sides, upper, left, unitriangular)


@silent
def _solved_as_before(
    side: Array, array: Array, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Array, Array]:
    turned = array.swapaxes(-2, -1) if transpose else array
    solution = triangular.solve_triangular(turned, side, upper == transpose, unitriangular)
    clone = np.array(array.swapaxes(-2, -1), order="C").swapaxes(-2, -1)
    return by_columns(solution), clone


def _old_rule_of_side(
    g: list[Tensor | None], A: Tensor, upper: bool, transpose: bool, unitriangular: bool
) -> Tensor | None:
    if g[0] is None:
        return None
    turned = adjoint_of(A.mT if transpose else A)
    return solve_with_triangle(turned, g[0], upper == transpose, True, unitriangular)


def _old_rule_of_matrix(
    g: list[Tensor | None],
    solution: Tensor,
    A: Tensor,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
) -> Tensor | None:
    gradient = _old_rule_of_side(g, A, upper, transpose, unitriangular)
    if gradient is None:
        return g[1]
    full = -matmul(gradient, adjoint_of(solution))
    full = full.mT if transpose else full
    part = triu(full, int(unitriangular)) if upper else tril(full, -int(unitriangular))
    return part if g[1] is None else part + g[1]


_OLD_SOLVE = Primitive(
    "triangular_solve",
    "TriangularSolveBackward0",
    _solved_as_before,
    ["B", "A"],
    [_old_rule_of_side, _old_rule_of_matrix],
    outputs=("solution", "cloned_coefficient"),
    stand_in=stand_in,
    samples=[
        sampled(lambda B, A: tuple(triangular_solve(B, A, transpose=True)), (2, 1), (2, 2)),
        sampled(lambda B, A: triangular_solve(B, A, False, unitriangular=True)[0], (2, 2), (2, 2)),
    ],
)


@declare(
    "triangular_solve(Tensor input, Tensor A, bool upper=True, bool transpose=False, "
    "bool unitriangular=False, *, Tensor[]? out=None)",
    dispatched=True,
)
def triangular_solve(
    input: Tensor, A: Tensor, upper: bool, transpose: bool, unitriangular: bool
) -> Any:
    """Return X of AX = b where A is triangular, and A; PyTorch deprecates it.

    See `linalg.solve_triangular`. The gradient is the same.

    Parameters
    ----------
    input : tensor of shape (..., n, k)
        The right side b.
    A : tensor of shape (..., n, n)
    transpose
        Solve with the transpose of A.

    >>> import numgrad as ng
    >>> A = ng.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> ng.triangular_solve(ng.tensor([[3.0], [4.0]]), A).solution
    tensor([[1.],
            [1.]])
    """
    for name, tensor in (("b", input), ("A", A)):
        ndim = tensor._array.ndim
        if ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it "
                f"has {ndim} dimensions instead"
            )
    require_side("triangular_solve", input, A)
    refuse_dtype("triangular_solve_cpu", A)
    sides, matrices = broadcast_batches(input, A)
    solution, clone = _OLD_SOLVE.apply(
        sides, matrices, upper=upper, transpose=transpose, unitriangular=unitriangular
    )
    return _triangular_solve_type(solution, clone)


def require_side(function: str, b: Tensor, A: Tensor) -> None:
    """Raise, in the words of the older functions, unless a system fits."""
    if b._array.dtype != A._array.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {b.dtype.scalar_name} "
            f"and A of type {A.dtype.scalar_name} instead."
        )
    rows, columns = A._array.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {rows} by {columns} matrices"
        )
    if rows != b._array.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {function}: each A matrix is "
            f"{rows} by {rows} but each b matrix is {b._array.shape[-2]} by {b._array.shape[-1]}"
        )
