"""Singular values and vectors: `linalg.svd`, `linalg.svdvals`, and the older `svd`.

The rule is that of J. Townsend, "Differentiating the singular value decomposition" (2016), and for
complex matrices of Z.-Q. Wan and S.-X. Zhang, "Automatic differentiation for complex valued SVD"
(2019), `arXiv:1909.02659 <https://arxiv.org/abs/1909.02659>`_.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.matrices.batches import by_columns
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import (
    LinAlgError,
    element,
    refuse_dtype,
    require_floating,
    require_matrix,
)
from numgrad.ops.matrices.parts import (
    adjoint_of,
    differences,
    matmul,
    may_need_gradient,
    sampled,
    stand_in,
)
from numgrad.ops.matrices.spectra.gauge import require_same_for_all_phases
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.diagonals import diag_embed, diagonal
from numgrad.ops.movement.slicing import narrow
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.signatures.declared import declare

__all__ = ["linalg_svd", "linalg_svdvals", "singular_parts", "svd"]

Array = np.ndarray[Any, Any]

_linalg_svd_type = return_type("linalg_svd", "U", "S", "Vh")
_svd_type = return_type("svd", "U", "S", "V")
_PHASES = (
    "svd_backward: The singular vectors in the complex case are specified up to multiplication by "
    "e^{i phi}. The specified loss function depends on this phase term, making it ill-defined."
)


def _require_numbers(array: Array) -> Array:
    """Return where matrices are finite, or raise for nan, which LAPACK refuses."""
    nans = np.isnan(array).any((-2, -1))
    if nans.any():
        where, _ = element(np.asarray(nans, np.int32))
        raise LinAlgError(
            f"linalg.svd: {where}The algorithm failed to converge because the input matrix "
            "contained non-finite values."
        )
    return np.asarray(np.isfinite(array).all((-2, -1)))


def _of_numbers(array: Array, full_matrices: bool, vectors: bool) -> tuple[Array, ...]:
    try:
        if not vectors:
            return (np.linalg.svd(array, compute_uv=False),)
        return tuple(np.linalg.svd(array, full_matrices))
    except np.linalg.LinAlgError as error:
        where, order = element(np.full(array.shape[:-2], min(array.shape[-2:]), np.int32))
        raise LinAlgError(
            f"linalg.svd: {where}The algorithm failed to converge because the input matrix is "
            f"ill-conditioned or has too many repeated singular values (error code: {order})."
        ) from error


@silent
def singular_parts(array: Array, full_matrices: bool, vectors: bool) -> tuple[Array, ...]:
    """Return U, S and V^H, the vectors if they are asked for; or raise where LAPACK fails."""
    finite = _require_numbers(array)
    if not finite.all():
        array = np.where(finite[..., None, None], array, 0)
    found = _of_numbers(array, full_matrices, vectors)
    if not finite.all():
        for part in found:
            part[~finite] = np.nan
    if not vectors:
        nothing = np.empty(0, array.dtype)
        return nothing, found[0], nothing
    left, values, right = found
    return by_columns(left), values, by_columns(right)


def _skew(matrices: Tensor) -> Tensor:
    result: Tensor = matrices - adjoint_of(matrices)
    return result


def _inner_gradient(
    of_values: Tensor | None, left: Tensor | None, right: Tensor | None, S: Tensor, is_complex: bool
) -> Tensor:
    """Return the gradient in the basis of the vectors, of the skew parts of U^H gU and V^H gV."""
    rows, columns = unsqueeze(S, -1), unsqueeze(S, -2)
    apart = differences(S * S)
    if left is not None and right is not None:
        inner = (left * columns + rows * right) / apart
    elif left is not None:
        inner = (left / apart) * columns
    else:
        assert right is not None
        inner = rows * (right / apart)
    if of_values is not None:
        inner = inner + cast(diag_embed(of_values), inner._array.dtype)
    if is_complex and left is not None and right is not None:
        inner = inner + diag_embed(diagonal(left, 0, -2, -1) / (2 * S))
    result: Tensor = inner
    return result


def _rule_of_vectors(
    of_left: Tensor | None,
    of_values: Tensor | None,
    of_right: Tensor | None,
    U: Tensor,
    S: Tensor,
    Vh: Tensor,
) -> Tensor:
    """Return U (..) V^H, and of a rectangle what its longer side's vectors leave out."""
    rows, columns = U._array.shape[-2], Vh._array.shape[-1]
    is_complex = U._array.dtype.kind == "c"
    left = None if of_left is None else matmul(adjoint_of(U), of_left)
    right = None if of_right is None else matmul(Vh, adjoint_of(of_right))
    if left is not None:
        left = require_same_for_all_phases(_PHASES, left, right)
    elif right is not None:
        right = require_same_for_all_phases(_PHASES, right)
    left = None if left is None else _skew(left)
    right = None if right is None else _skew(right)
    inner = _inner_gradient(of_values, left, right, S, is_complex)
    if rows > columns and of_left is not None:
        scaled = of_left / unsqueeze(S, -2)
        outside = scaled - matmul(U, matmul(adjoint_of(U), scaled))
        return matmul(matmul(U, inner) + outside, Vh)
    if rows < columns and of_right is not None:
        scaled = of_right / unsqueeze(S, -1)
        outside = scaled - matmul(matmul(scaled, adjoint_of(Vh)), Vh)
        return matmul(U, matmul(inner, Vh) + outside)
    if rows >= columns:
        return matmul(U, matmul(inner, Vh))
    return matmul(matmul(U, inner), Vh)


def _rule(
    g: list[Tensor | None], U: Tensor, S: Tensor, Vh: Tensor, full_matrices: bool
) -> Tensor | None:
    of_left, of_values, of_right = g
    count = S._array.shape[-1]
    if full_matrices:  # what completes the vectors of a rectangle to a basis is anyhow
        U, Vh = narrow(U, -1, 0, count), narrow(Vh, -2, 0, count)
        of_left = None if of_left is None else narrow(of_left, -1, 0, count)
        of_right = None if of_right is None else narrow(of_right, -2, 0, count)
    if of_left is not None or of_right is not None:
        return _rule_of_vectors(of_left, of_values, of_right, U, S, Vh)
    if of_values is None:
        return None
    if U._array.shape[-2] >= Vh._array.shape[-1]:
        return matmul(U, unsqueeze(of_values, -1) * Vh)
    return matmul(U * unsqueeze(of_values, -2), Vh)


def _without_phases(U: Tensor, S: Tensor, Vh: Tensor) -> tuple[Tensor, ...]:
    count = S._array.shape[-1]
    U, Vh = narrow(U, -1, 0, count), narrow(Vh, -2, 0, count)
    return U * conj(U), S, Vh * conj(Vh), matmul(U, Vh)


_SVD = Primitive(
    "linalg_svd",
    "LinalgSvdBackward0",
    singular_parts,
    ["A"],
    [_rule],
    outputs=("U", "S", "Vh"),
    stand_in=stand_in,
    samples=[
        sampled(lambda A: _without_phases(*linalg_svd(A)), (3, 3)),
        sampled(lambda A: _without_phases(*linalg_svd(A, False)), (2, 2, 2)),
        sampled(lambda A: _without_phases(*linalg_svd(A, False)), (3, 2)),
        sampled(lambda A: _without_phases(*linalg_svd(A)), (2, 3)),
        sampled(lambda A: linalg_svdvals(A), (2, 3)),
        sampled(lambda A: linalg_svdvals(A), (0, 2)),
    ],
)


def _require(A: Tensor) -> None:
    require_floating("linalg.svd", A, wide=False)
    require_matrix("linalg.svd", A)


def _refuse_driver(A: Tensor, driver: str | None) -> None:
    if driver is not None and A._array.size:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
            "cuSOLVER backend."
        )


@declare(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None, Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_svd(A: Tensor, full_matrices: bool, driver: str | None) -> Any:
    """Return U, S and V^H of A = U diag(S) V^H, with singular values in descending order.

    The gradient is U (sym(U^H gU, V^H gV) / E + diag gS) V^H, where E_ij = S_j^2 - S_i^2 and 1 on
    the diagonal: nan where values are equal and the loss depends on vectors. J. Townsend,
    "Differentiating the singular value decomposition" (2016); for complex matrices
    `arXiv:1909.02659 <https://arxiv.org/abs/1909.02659>`_.

    Parameters
    ----------
    A : tensor of shape (..., m, n)
    full_matrices
        Complete U and V to bases; no gradient reaches what completes them.
    driver
        A method of CUDA's; none is taken.

    Raises
    ------
    numgrad.linalg.LinAlgError
        If there is nan in a matrix.
    RuntimeError
        In a backward pass, if a loss depends on the phases of vectors.

    >>> import numgrad as ng
    >>> ng.linalg.svd(ng.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    _require(A)
    _refuse_driver(A, driver)
    refuse_dtype("linalg_svd_cpu", A, empty=False)
    return _linalg_svd_type(*_SVD.apply(A, full_matrices=full_matrices, vectors=True))


def _values_of(A: Tensor) -> Tensor:
    found = _SVD.apply(A, full_matrices=False, vectors=may_need_gradient(A))
    result: Tensor = found[1]
    return result


@declare(
    "linalg_svdvals(Tensor A, *, str? driver=None, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_svdvals(A: Tensor, driver: str | None) -> Tensor:
    """Return the singular values of matrices in descending order.

    The gradient is U diag(g) V^H, for equal values, too.

    Parameters
    ----------
    A : tensor of shape (..., m, n)
    driver
        A method of CUDA's; none is taken.

    Raises
    ------
    numgrad.linalg.LinAlgError
        If there is nan in a matrix.

    >>> import numgrad as ng
    >>> ng.linalg.svdvals(ng.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    _require(A)
    _refuse_driver(A, driver)
    refuse_dtype("linalg_svd_cpu", A, empty=False)
    return _values_of(A)


@declare(
    "svd(Tensor input, bool some=True, bool compute_uv=True, *, Tensor[]? out=None)",
    dispatched=True,
)
def svd(input: Tensor, some: bool, compute_uv: bool) -> Any:
    """Return U, S and V of A = U diag(S) V^H: see `linalg.svd`, which gives V^H.

    The gradient is the same.

    Parameters
    ----------
    input : tensor of shape (..., m, n)
    some
        Leave out what completes U and V to bases.
    compute_uv
        Else U and V are zeros.

    >>> import numgrad as ng
    >>> ng.svd(ng.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    if input._array.ndim < 2:
        raise RuntimeError(
            "linalg.svd: input should have at least 2 dimensions, but has "
            f"{input._array.ndim} dimensions instead"
        )
    _require(input)
    refuse_dtype("linalg_svd_cpu", input, empty=False)
    if compute_uv:
        U, S, Vh = _SVD.apply(input, full_matrices=not some, vectors=True)
        return _svd_type(U, S, adjoint_of(Vh))
    *batch, rows, columns = input._array.shape
    dtype = input._array.dtype
    left, right = (fresh(np.zeros((*batch, size, size), dtype)) for size in (rows, columns))
    return _svd_type(left, _values_of(input), right.mT)
