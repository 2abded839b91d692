"""Eigenvalues and eigenvectors of matrices of any kind: `linalg.eig`, `linalg.eigvals`.

The rule is that of C. Boeddeker et al., "On the computation of complex-valued gradients with
application to statistically optimum beamforming" (2017), equation 4.77.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.matrices.batches import by_columns
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import LinAlgError, element, refuse_dtype, require_square
from numgrad.ops.matrices.parts import (
    adjoint_of,
    differences,
    matmul,
    may_need_gradient,
    sampled,
    stand_in,
)
from numgrad.ops.matrices.spectra.gauge import require_same_for_all_phases
from numgrad.ops.matrices.systems.solving import linalg_solve_ex
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.diagonals import diag_embed, diagonal
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.pointwise.complex_parts import real
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare

__all__ = ["linalg_eig", "linalg_eigvals"]

Array = np.ndarray[Any, Any]

_eig_type = return_type("linalg_eig", "eigenvalues", "eigenvectors")
_PHASES = (
    "linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication "
    "by e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined."
)


@silent
def _decomposed(array: Array, vectors: bool, named: str) -> tuple[Array, Array]:
    """Return eigenvalues and, if they are asked for, eigenvectors, all of them complex."""
    dtype = np.result_type(array.dtype, np.complex64)
    if not np.isfinite(array).all():
        raise RuntimeError(f"torch.{named}: input tensor should not contain infs or NaNs.")
    try:
        if not vectors:
            return np.linalg.eigvals(array).astype(dtype), np.empty(0, dtype)
        found = np.linalg.eig(array)
    except np.linalg.LinAlgError as error:
        order = array.shape[-1]
        where_, _ = element(np.zeros(array.shape[:-2], np.int32) + order)
        raise LinAlgError(
            f"{named}: {where_}The algorithm failed to converge because the input matrix is "
            f"ill-conditioned or has too many repeated eigenvalues (error code: {order})."
        ) from error
    return found.eigenvalues.astype(dtype), by_columns(found.eigenvectors.astype(dtype))


def _rule(
    g: list[Tensor | None], eigenvalues: Tensor, eigenvectors: Tensor, is_real: bool
) -> Tensor | None:
    """Return V^-H (diag gL + (V^H gV - V^H V diag Re(V^H gV)) / E*) V^H, E_ij = L_j - L_i."""
    of_values, of_vectors = g
    turned = adjoint_of(eigenvectors)
    if of_vectors is None:
        if of_values is None:
            return None
        inner = unsqueeze(of_values, -1) * turned
    else:
        along = require_same_for_all_phases(_PHASES, matmul(turned, of_vectors))
        # Vectors keep the length 1, so that what would change it counts for nothing.
        lengths = cast(real(diagonal(along, 0, -2, -1)), along._array.dtype)
        along = along - matmul(turned, eigenvectors * unsqueeze(lengths, -2))
        along = along / conj(differences(eigenvalues))
        on_values = 0.0 if of_values is None else diag_embed(of_values)
        on_diagonal = fresh(np.eye(along._array.shape[-1], dtype=bool))
        inner = matmul(where(on_diagonal, on_values, along), turned)
    gradient = linalg_solve_ex(turned, inner)[0]
    result: Tensor = real(gradient) if is_real else gradient
    return result


_EIG = Primitive(
    "linalg_eig",
    "LinalgEigBackward0",
    lambda array, vectors, named, is_real: _decomposed(array, vectors, named),
    ["A"],
    [_rule],
    outputs=("eigenvalues", "eigenvectors"),
    stand_in=stand_in,
    samples=[
        sampled(lambda A: _without_phases(*linalg_eig(A)), (3, 3)),
        sampled(lambda A: _without_phases(*linalg_eig(A)), (2, 2, 2)),
        sampled(lambda A: linalg_eigvals(A), (3, 3)),
        sampled(lambda A: linalg_eigvals(A), (0, 0)),
    ],
)


def _without_phases(values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    return values, vectors * conj(vectors)


def _parts(named: str, input: Tensor, vectors: bool) -> tuple[Tensor, Tensor]:
    require_square(named, input)
    kind = input._array.dtype.kind
    if kind not in "fc":
        raise RuntimeError(f"Unknown Complex ScalarType for {input.dtype.scalar_name}")
    refuse_dtype("linalg_eig_out_cpu", input)
    found: tuple[Tensor, Tensor] = _EIG.apply(
        input, vectors=vectors, named=named, is_real=kind == "f"
    )
    return found


def _written(function: str, result: Any, out: Any) -> Any:
    """Write results to an `out` of any dtype that they are cast to unasked."""
    pairs = zip(result, out, strict=False) if isinstance(result, tuple) else [(result, out)]
    names = ("eigenvalues", "eigenvectors")
    cast_results = []
    for (one, target), name in zip(pairs, names, strict=False):
        if isinstance(target, Tensor) and target._array.dtype != one._array.dtype:
            if not dtypes.can_cast(one.dtype, target.dtype):
                raise RuntimeError(
                    f"torch.linalg.{function.removeprefix('linalg_')}: Expected {name} to be "
                    f"safely castable from {one.dtype.scalar_name} dtype, but got {name} with "
                    f"dtype {target.dtype.scalar_name}"
                )
            one = cast(one, target._array.dtype)
        cast_results.append(one)
    whole = type(result)(*cast_results) if isinstance(result, tuple) else cast_results[0]
    return write_result(function, whole, out)


@declare(
    "linalg_eig(Tensor input, *, Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
    write=_written,
)
def linalg_eig(input: Tensor) -> Any:
    """Return the eigenvalues and eigenvectors of square matrices, in complex numbers.

    They are in any order, and vectors have the length 1. The gradient is
    V^-H (diag gL + (V^H gV - V^H V diag Re(V^H gV)) / E*) V^H, where E_ij = L_j - L_i with 1 on the
    diagonal: nan where eigenvalues are equal and the loss depends on the vectors. C. Boeddeker et
    al., "On the computation of complex-valued gradients" (2017), equation 4.77.

    Parameters
    ----------
    input : tensor of shape (..., n, n)

    Raises
    ------
    RuntimeError
        If they are not square or hold infinity or nan; in a backward pass, if a loss depends on the
        phases of vectors.

    >>> import numgrad as ng
    >>> ng.linalg.eig(ng.tensor([[0.0, -2.0], [2.0, 0.0]])).eigenvalues.abs()
    tensor([2., 2.])
    """
    return _eig_type(*_parts("linalg.eig", input, True))


@declare(
    "linalg_eigvals(Tensor input, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    write=_written,
)
def linalg_eigvals(input: Tensor) -> Tensor:
    """Return the eigenvalues of square matrices, in complex numbers and in any order.

    The gradient is V^-H diag(g) V^H, for equal eigenvalues, too, where there are n vectors.

    Parameters
    ----------
    input : tensor of shape (..., n, n)

    Raises
    ------
    RuntimeError
        If they are not square or hold infinity or nan.

    >>> import numgrad as ng
    >>> ng.linalg.eigvals(ng.tensor([[0.0, -2.0], [2.0, 0.0]])).abs()
    tensor([2., 2.])
    """
    return _parts("linalg.eigvals", input, may_need_gradient(input))[0]
