"""Eigenvalues and eigenvectors of symmetric and Hermitian matrices: `linalg.eigh`, `eigvalsh`.

The rule is that of C. Boeddeker et al., "On the computation of complex-valued gradients with
application to statistically optimum beamforming" (2017), equation 4.77.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.matrices.batches import by_columns
from numgrad.kernels.move.triangles import triangle
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import LinAlgError, element, refuse_dtype, require_square
from numgrad.ops.matrices.parts import (
    adjoint_of,
    conjugated_by,
    differences,
    half_skew,
    matmul,
    may_need_gradient,
    positive,
    sampled,
    stand_in,
)
from numgrad.ops.matrices.spectra.gauge import require_same_for_all_phases
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.diagonals import diag_embed
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare

__all__ = ["hermitian_parts", "linalg_eigh", "linalg_eigvalsh"]

Array = np.ndarray[Any, Any]

_eigh_type = return_type("linalg_eigh", "eigenvalues", "eigenvectors")
_PHASES = (
    "linalg_eigh_backward: The eigenvectors in the complex case are specified up to multiplication "
    "by e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined."
)


def _of_numbers(array: Array, upper: bool) -> tuple[Array, Array]:
    """Let LAPACK decompose matrices without nan and infinity in the triangle that is read."""
    try:
        found = np.linalg.eigh(array, "U" if upper else "L")
    except np.linalg.LinAlgError as error:
        order = array.shape[-1]
        where_, _ = element(np.zeros(array.shape[:-2], np.int32) + order)
        raise LinAlgError(
            f"linalg.eigh: {where_}The algorithm failed to converge because the input matrix is "
            f"ill-conditioned or has too many repeated eigenvalues (error code: {order})."
        ) from error
    return found.eigenvalues, found.eigenvectors


@silent
def hermitian_parts(array: Array, upper: bool, vectors: bool) -> tuple[Array, Array]:
    """Return eigenvalues and, if they are asked for, eigenvectors; or raise where LAPACK fails."""
    if not vectors:
        return _values(array, upper), np.empty(0, array.dtype)
    return _values_and_vectors(array, upper)


def _values_and_vectors(array: Array, upper: bool) -> tuple[Array, Array]:
    finite = np.asarray(np.isfinite(triangle(array, 0, lower=not upper)).all((-2, -1)))
    if finite.all():
        values, vectors = _of_numbers(array, upper)
        return values, by_columns(vectors)
    values, vectors = _of_numbers(np.where(finite[..., None, None], array, 0), upper)
    values[~finite] = np.nan
    vectors[~finite] = np.nan if array.shape[-1] > 1 else 1
    return values, by_columns(vectors)


def _values(array: Array, upper: bool) -> Array:
    finite = np.asarray(np.isfinite(triangle(array, 0, lower=not upper)).all((-2, -1)))
    if finite.all():
        return np.linalg.eigvalsh(array, "U" if upper else "L")
    values = np.linalg.eigvalsh(np.where(finite[..., None, None], array, 0), "U" if upper else "L")
    values[~finite] = np.nan
    return values


def _rule(g: list[Tensor | None], eigenvalues: Tensor, eigenvectors: Tensor) -> Tensor | None:
    """Return V (diag gL + skew(V^H gV) / E) V^H, where E_ij = L_j - L_i: a Hermitian matrix."""
    of_values, of_vectors = g
    if of_vectors is None:
        if of_values is None:
            return None
        scaled = eigenvectors * unsqueeze(of_values, -2)
        return matmul(scaled, adjoint_of(eigenvectors))
    turned = matmul(adjoint_of(eigenvectors), of_vectors)
    inner = half_skew(require_same_for_all_phases(_PHASES, turned)) / differences(eigenvalues)
    diagonal = 0.0 if of_values is None else cast(diag_embed(of_values), inner._array.dtype)
    full = where(fresh(np.eye(inner._array.shape[-1], dtype=bool)), diagonal, inner)
    return conjugated_by(eigenvectors, full)


_EIGH = Primitive(
    "linalg_eigh",
    "LinalgEighBackward0",
    hermitian_parts,
    ["A"],
    [_rule],
    outputs=("eigenvalues", "eigenvectors"),
    stand_in=stand_in,
    samples=[
        sampled(lambda A: _without_phases(*linalg_eigh(A)), (3, 3), of=positive),
        sampled(lambda A: _without_phases(*linalg_eigh(A, "U")), (2, 2, 2), of=positive),
        sampled(lambda A: linalg_eigvalsh(A), (3, 3), of=positive),
        sampled(lambda A: linalg_eigvalsh(A), (0, 0), of=positive),
    ],
)


def _without_phases(values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    return values, vectors * conj(vectors)


def _reads_upper(input: Tensor, UPLO: str) -> bool:
    require_square("linalg.eigh", input)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    refuse_dtype("linalg_eigh_cpu", input, empty=False)
    return UPLO.upper() == "U"


@declare(
    "linalg_eigh(Tensor input, str UPLO='L', *, Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_eigh(input: Tensor, UPLO: str) -> Any:
    """Return the eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.

    The gradient is V (diag gL + skew(V^H gV) / E) V^H, where skew(X) = (X - X^H) / 2, and
    E_ij = L_j - L_i with 1 on the diagonal: nan where eigenvalues are equal and the loss depends on
    the vectors. C. Boeddeker et al., "On the computation of complex-valued gradients" (2017),
    equation 4.77, of which the Hermitian part is taken.

    Parameters
    ----------
    input : tensor of shape (..., n, n)
        Of which one triangle is read.
    UPLO
        ``"L"`` for the lower triangle, ``"U"`` for the upper one.

    Raises
    ------
    RuntimeError
        If they are not square; in a backward pass, if a loss depends on the phases of vectors.

    >>> import numgrad as ng
    >>> ng.linalg.eigh(ng.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return _eigh_type(*_EIGH.apply(input, upper=_reads_upper(input, UPLO), vectors=True))


@declare(
    "linalg_eigvalsh(Tensor input, str UPLO='L', *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_eigvalsh(input: Tensor, UPLO: str) -> Tensor:
    """Return the eigenvalues of Hermitian matrices, in ascending order.

    The gradient is V diag(g) V^H, for equal eigenvalues, too.

    Parameters
    ----------
    input : tensor of shape (..., n, n)
        Of which one triangle is read.
    UPLO
        ``"L"`` for the lower triangle, ``"U"`` for the upper one.

    Raises
    ------
    RuntimeError
        If they are not square.

    >>> import numgrad as ng
    >>> ng.linalg.eigvalsh(ng.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor([1.3820, 3.6180])
    """
    upper = _reads_upper(input, UPLO)
    result: Tensor = _EIGH.apply(input, upper=upper, vectors=may_need_gradient(input))[0]
    return result
