"""QR decomposition: `linalg.qr`, and the older `qr`.

The rule is that of M. Seeger et al., "Auto-differentiating linear algebra" (2017),
`arXiv:1710.08717 <https://arxiv.org/abs/1710.08717>`_, and for wide matrices of D. Roberts and L.
Roberts, "QR and LQ decomposition matrix backpropagation algorithms for square, wide, and deep
matrices" (2020), `arXiv:2009.10071 <https://arxiv.org/abs/2009.10071>`_.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.matrices.batches import by_columns
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import refuse_dtype, require_floating, require_matrix
from numgrad.ops.matrices.parts import adjoint_of, matmul, sampled, stand_in
from numgrad.ops.matrices.systems.triangular import solve_with_triangle
from numgrad.ops.movement.diagonals import triu
from numgrad.ops.movement.joining import cat
from numgrad.ops.movement.slicing import narrow
from numgrad.ops.pointwise.complex_parts import complex_, real
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare

__all__ = ["linalg_qr", "qr"]

Array = np.ndarray[Any, Any]

_linalg_qr_type = return_type("linalg_qr", "Q", "R")
_qr_type = return_type("qr", "Q", "R")
_MODES: dict[str, Literal["reduced", "complete", "r"]] = {
    "reduced": "reduced",
    "complete": "complete",
    "r": "r",
}


@silent
def _decomposed(array: Array, mode: str) -> tuple[Array, Array]:
    *batch, rows, columns = array.shape
    if not array.size:
        order = rows if mode == "complete" else min(rows, columns)
        basis = np.broadcast_to(np.eye(rows, order, dtype=array.dtype), (*batch, rows, order))
        upper = np.zeros((*batch, order, columns), array.dtype)
        return (np.empty(0, array.dtype) if mode == "r" else by_columns(basis)), by_columns(upper)
    if mode == "r":
        return np.empty(0, array.dtype), by_columns(np.asarray(np.linalg.qr(array, "r")))
    found = np.linalg.qr(array, _MODES[mode])
    return by_columns(found.Q), by_columns(found.R)


def _symmetric(matrices: Tensor) -> Tensor:
    """Return X + X^H of upper triangles X, with the real part of their diagonal counted once."""
    upper = triu(matrices, 0)
    on_diagonal = fresh(np.eye(matrices._array.shape[-1], dtype=bool))
    diagonal = matrices
    if matrices._array.dtype.kind == "c":
        part = real(matrices)
        diagonal = complex_(part, part * 0)
    result: Tensor = where(on_diagonal, diagonal, upper + adjoint_of(upper))
    return result


def _square_rule(of_basis: Tensor | None, of_upper: Tensor | None, Q: Tensor, R: Tensor) -> Tensor:
    """Return (gQ + Q sym(triu(gR R^H - Q^H gQ))) R^-H, for matrices that are not wide."""
    inner: Any = 0 if of_upper is None else matmul(of_upper, adjoint_of(R))
    if of_basis is not None:
        inner = inner - matmul(adjoint_of(Q), of_basis)
    gradient = matmul(Q, _symmetric(inner))
    if of_basis is not None:
        gradient = gradient + of_basis
    return solve_with_triangle(adjoint_of(R), gradient, upper=False, left=False)


def _rule(g: list[Tensor | None], Q: Tensor, R: Tensor, mode: str) -> Tensor | None:
    of_basis, of_upper = g
    if of_basis is None and of_upper is None:
        return None
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
            "use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    rows, columns = Q._array.shape[-2], R._array.shape[-1]
    if mode == "complete" and rows > columns:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    if rows >= columns:
        return _square_rule(of_basis, of_upper, Q, R)
    # Of a wide matrix (A1 A2) the right part is Q R2: the rest is the rule of A1.
    square, rest = narrow(R, -1, 0, rows), columns - rows
    if of_upper is None:
        right = narrow(R, -1, rows, rest) * 0
    else:
        of_right = narrow(of_upper, -1, rows, rest)
        extra = matmul(matmul(Q, narrow(R, -1, rows, rest)), adjoint_of(of_right))
        of_basis = extra if of_basis is None else of_basis + extra
        of_upper = narrow(of_upper, -1, 0, rows)
        right = matmul(Q, of_right)
    return cat([_square_rule(of_basis, of_upper, Q, square), right], -1)


_QR = Primitive(
    "linalg_qr",
    "LinalgQrBackward0",
    _decomposed,
    ["A"],
    [_rule],
    outputs=("Q", "R"),
    stand_in=stand_in,
    samples=[
        sampled(lambda A: tuple(linalg_qr(A)), (3, 3)),
        sampled(lambda A: tuple(linalg_qr(A)), (3, 2)),
        sampled(lambda A: tuple(linalg_qr(A, "complete")), (2, 2, 3)),
        sampled(lambda A: tuple(linalg_qr(A)), (0, 0)),
    ],
)


def _factors(A: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    require_floating("linalg.qr", A, wide=False)
    require_matrix("linalg.qr", A)
    if mode not in _MODES:
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
            "'r', or 'complete'"
        )
    refuse_dtype("geqrf_cpu", A)
    found: tuple[Tensor, Tensor] = _QR.apply(A, mode=mode)
    return found


@declare(
    "linalg_qr(Tensor A, str mode='reduced', *, Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_qr(A: Tensor, mode: str) -> Any:
    """Return Q, with orthonormal columns, and an upper triangular R of A = QR.

    The gradient is (gQ + Q sym(triu(gR R^H - Q^H gQ))) R^-H. M. Seeger et al.,
    `arXiv:1710.08717 <https://arxiv.org/abs/1710.08717>`_; of wide matrices
    `arXiv:2009.10071 <https://arxiv.org/abs/2009.10071>`_.

    Parameters
    ----------
    A : tensor of shape (..., m, n)
    mode
        ``"reduced"``: Q is m x min(m, n). ``"complete"``: Q is square. ``"r"``: Q is empty.

    Raises
    ------
    RuntimeError
        If the mode is another; in a backward pass of mode ``"r"``, or of ``"complete"`` where the
        matrix is tall.

    >>> import numgrad as ng
    >>> ng.linalg.qr(ng.tensor([[0.0, 2.0], [-1.0, 3.0]])).R.abs()
    tensor([[1., 3.],
            [0., 2.]])
    """
    return _linalg_qr_type(*_factors(A, mode))


@declare("qr(Tensor input, bool some=True, *, Tensor[]? out=None)", dispatched=True)
def qr(input: Tensor, some: bool) -> Any:
    """Return Q and R of A = QR: `linalg.qr`, which PyTorch prefers.

    The gradient is the same.

    Parameters
    ----------
    input : tensor of shape (..., m, n)
    some
        Return the reduced Q; else a square one.

    >>> import numgrad as ng
    >>> ng.qr(ng.tensor([[0.0, 2.0], [-1.0, 3.0]])).R.abs()
    tensor([[1., 3.],
            [0., 2.]])
    """
    return _qr_type(*_factors(input, "reduced" if some else "complete"))
