"""Least squares: `linalg.lstsq`.

The solution is pinv(A) B, whose rule is that of G. H. Golub and V. Pereyra, "The differentiation of
pseudo-inverses and nonlinear least squares problems whose variables separate" (1973); residuals are
orthogonal to what A reaches, so that the solution counts as constant in theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.base.halves import HALF
from numgrad.graph.tensor import Tensor
from numgrad.kernels.matrices.triangular import solve_triangular
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import broadcast_batches
from numgrad.ops.matrices.parts import adjoint_of, matmul, sampled, stand_in
from numgrad.ops.matrices.spectra.singular_values import singular_parts
from numgrad.ops.matrices.systems.pseudoinverses import linalg_pinv, pinv_gradient
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.signatures.declared import declare

__all__ = ["linalg_lstsq"]

Array = np.ndarray[Any, Any]

_lstsq_type = return_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _adjoint(array: Array) -> Array:
    return np.asarray(array.swapaxes(-2, -1).conj())


def _by_orthogonal_factors(array: Array, side: Array) -> Array:
    """Solve where the rank is full: A = QR, or for wide matrices the least X by A^H = QR."""
    rows, columns = array.shape[-2:]
    if rows >= columns:
        found = np.linalg.qr(array)
        return solve_triangular(found.R, np.matmul(_adjoint(found.Q), side), False, False)
    found = np.linalg.qr(_adjoint(array))
    return np.matmul(found.Q, solve_triangular(_adjoint(found.R), side, True, False))


def _by_values(array: Array, side: Array, rcond: float) -> tuple[Array, Array, Array]:
    """Return the least solution, the rank and the singular values."""
    left, values, right = singular_parts(array, False, True)
    counts = values > rcond * values.max(-1, keepdims=True, initial=0)
    inverse = np.where(counts, 1 / np.where(counts, values, 1), 0).astype(values.dtype)
    inner = np.matmul(_adjoint(left), side) * inverse[..., None]
    return np.matmul(_adjoint(right), inner), counts.sum(-1), values


@silent
def _solved(
    array: Array, side: Array, rcond: float, driver: str, vector: bool
) -> tuple[Array, Array, Array, Array]:
    side = side[..., None] if vector else side
    *batch, rows, columns = array.shape
    width = side.shape[-1]
    kind = np.zeros((), array.dtype).real.dtype
    rank, values = np.zeros(0, np.int64), np.zeros(0, kind)
    if driver != "gels":
        rank = np.zeros(batch, np.int64)
    # LAPACK gives the solution where the right sides were, which may be longer.
    memory = np.zeros((*batch, width, max(rows, columns)), array.dtype).swapaxes(-2, -1)
    solution = memory[..., :columns, :]
    if array.size and driver == "gels":
        solution[...] = _by_orthogonal_factors(array, side)
    elif array.size:
        found, rank, values = _by_values(array, side, rcond)
        solution[...] = found
    elif driver in ("gelsd", "gelss"):
        values = np.zeros((*batch, min(rows, columns)), kind)
    has_residuals = rows > columns and (
        driver == "gels" or (driver != "gelsy" and bool((rank == columns).all()))
    )
    residuals = np.zeros(0, kind)
    if has_residuals:
        rest = side - np.matmul(array, solution)
        residuals = np.ascontiguousarray((rest.real**2 + rest.imag**2).sum(-2))
    if driver == "gelsy":
        values = np.zeros(0, kind)
    return (solution[..., 0] if vector else solution), residuals, np.asarray(rank), values


def _times_twice(weights: Tensor, rest: Tensor) -> Tensor:
    result: Tensor = rest * unsqueeze(weights, -2) * 2
    return result


def _apart(A: Tensor, B: Tensor, solution: Tensor) -> Tensor:
    result: Tensor = matmul(A, solution) - B
    return result


def _matrix_rule(
    g: list[Tensor | None], A: Tensor, B: Tensor, solution: Tensor, vector: bool
) -> Tensor | None:
    of_solution, of_residuals = g[:2]
    if vector:
        B, solution = unsqueeze(B, -1), unsqueeze(solution, -1)
        of_solution = None if of_solution is None else unsqueeze(of_solution, -1)
    found: Any = None
    if of_solution is not None:
        inverse = linalg_pinv(A)
        found = pinv_gradient(matmul(of_solution, adjoint_of(B)), inverse, A)
    if of_residuals is not None and of_residuals._array.size:
        weighted = _times_twice(of_residuals, _apart(A, B, solution))
        part = matmul(weighted, adjoint_of(solution))
        found = part if found is None else found + part
    result: Tensor | None = found
    return result


def _side_rule(
    g: list[Tensor | None], A: Tensor, B: Tensor, solution: Tensor, vector: bool
) -> Tensor | None:
    of_solution, of_residuals = g[:2]
    if vector:
        B, solution = unsqueeze(B, -1), unsqueeze(solution, -1)
        of_solution = None if of_solution is None else unsqueeze(of_solution, -1)
    found: Any = None
    if of_solution is not None:
        found = matmul(adjoint_of(linalg_pinv(A)), of_solution)
    if of_residuals is not None and of_residuals._array.size:
        part = -_times_twice(of_residuals, _apart(A, B, solution))
        found = part if found is None else found + part
    if found is None:
        return None
    result: Tensor = squeeze(found, -1) if vector else found
    return result


_LSTSQ = Primitive(
    "linalg_lstsq",
    "LinalgLstsqBackward0",
    _solved,
    ["A", "B"],
    [_matrix_rule, _side_rule],
    outputs=("solution", "residuals", "rank", "singular_values"),
    constant=("singular_values",),
    stand_in=stand_in,
    samples=[
        sampled(lambda A, B: linalg_lstsq(A, B)[0], (4, 2), (4, 2)),
        sampled(lambda A, B: tuple(linalg_lstsq(A, B, driver="gels"))[:2], (4, 2), (4, 3)),
        sampled(lambda A, B: linalg_lstsq(A, B, driver="gelsd")[0], (2, 2, 3), (2, 2)),
        sampled(lambda A, B: linalg_lstsq(A, B)[0], (3, 3), (3,)),
    ],
)


def _require(input: Tensor, b: Tensor, driver: str) -> bool:
    """Raise unless a system is one, and return whether its right side is a vector."""
    name = "torch.linalg.lstsq"
    matrix, side = input._array, b._array
    if matrix.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if not side.ndim:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if matrix.dtype != side.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{input.dtype.scalar_name} and other's dtype {b.dtype.scalar_name}"
        )
    if not 0 <= matrix.ndim - side.ndim <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - "
            "other.dim()) <= 1"
        )
    vector = side.ndim == 1 or matrix.shape[:-1] == side.shape
    last = -1 if vector else -2
    if matrix.shape[-2] != side.shape[last]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({last})")
    if driver not in _DRIVERS:
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    if not vector and matrix.ndim != side.ndim:
        broadcast_shapes([matrix.shape[:-2], side.shape[:-1]])
    if matrix.dtype.kind not in "fc" or matrix.dtype == HALF:
        raise RuntimeError("This function doesn't handle types other than float and double")
    return vector


@declare(
    "linalg_lstsq(Tensor input, Tensor b, float? rcond=None, *, str? driver=None, "
    "Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_lstsq(input: Tensor, b: Tensor, rcond: float | None, driver: str | None) -> Any:
    """Return the X of least ||AX - B||, and of least ||X|| where there are several.

    With X = P B, where P is the pseudoinverse of A, the gradient of B is P^H g, and that of A is
    that of the pseudoinverse for g B^H: G. H. Golub and V. Pereyra, "The differentiation of
    pseudo-inverses" (1973), equation 4.12. It holds where the rank is the same nearby. Residuals
    add 2 g (AX - B) X^H, and -2 g (AX - B) for B.

    Parameters
    ----------
    input : tensor of shape (..., m, n)
        A.
    b : tensor of shape (..., m, k) or (..., m)
        The right side B.
    rcond
        Singular values up to this times the greatest one count as 0: by default eps max(m, n).
    driver
        ``"gelsy"``, the default, gives solution and rank; ``"gelsd"`` and ``"gelss"`` give singular
        values, too; ``"gels"`` gives none of them, takes the rank for full, and is the fastest.

    Returns
    -------
    solution : tensor of shape (..., n, k) or (..., n)
    residuals : tensor of shape (..., k)
        The squared lengths of AX - B, where m > n, the rank is n, and the driver is not
        ``"gelsy"``; else empty.
    rank, singular_values
        Empty where the driver does not tell them.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, the dtypes differ, or the driver is another.

    >>> import numgrad as ng
    >>> A = ng.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> ng.linalg.lstsq(A, ng.tensor([1.0, 3.0, 5.0])).rank
    tensor(2)
    """
    driver = "gelsy" if driver is None else driver
    vector = _require(input, b, driver)
    array = input._array
    if rcond is None:
        rcond = float(np.finfo(array.dtype).eps) * max(array.shape[-2:])
    matrices, sides = input, b
    if vector:
        matrices, side = broadcast_batches(input, unsqueeze(b, -1))
        sides = squeeze(side, -1)
    else:
        matrices, sides = broadcast_batches(input, b)
    found = _LSTSQ.apply(matrices, sides, rcond=rcond, driver=driver, vector=vector)
    return _lstsq_type(*found)
