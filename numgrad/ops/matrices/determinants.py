"""Determinants, and the logarithms of their sizes.

The rules are those of M. B. Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008), section 2.2.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.base.tuning import SMALL_MATRIX
from numgrad.graph.tensor import Tensor
from numgrad.kernels.matrices import factors, formulas
from numgrad.kernels.matrices.batches import by_columns
from numgrad.kernels.matrices.unrolled import Unrolled
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import refuse_dtype, require_floating, require_square
from numgrad.ops.matrices.parts import identity, matmul, sampled, scaled, stand_in
from numgrad.ops.matrices.systems.solving import linalg_inv, solve_factored
from numgrad.ops.movement.casts import expand_to
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.pointwise.complex_parts import complex_
from numgrad.ops.pointwise.exponential import log
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction.reductions import sum
from numgrad.ops.signatures.declared import declare

__all__ = ["det", "linalg_det", "linalg_slogdet", "logdet", "slogdet"]

Array = np.ndarray[Any, Any]

_slogdet_type = return_type("slogdet", "sign", "logabsdet")
_linalg_slogdet_type = return_type("linalg_slogdet", "sign", "logabsdet")


# --- det -----------------------------------------------------------------------------------------


def _is_odd(pivots: Array) -> Array:
    """Return whether an odd number of pairs of rows was exchanged."""
    moved = pivots != np.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype)
    odd: Array = np.count_nonzero(moved, axis=-1) % 2 == 1
    return odd


_UNROLLED = Unrolled(formulas.determinant, (2,))
_UNROLLED_SIZES = Unrolled(formulas.sign_and_size, (2,), integers=(3,))
_UNROLLED_COFACTORS = Unrolled(formulas.cofactors, (2,), fewest=1)


@silent
def _determinant(array: Array) -> Array:
    found = _UNROLLED((array,), "C", {})
    if found is not None:
        return found[0]
    if array.shape[-1] > SMALL_MATRIX:
        return np.asarray(np.linalg.det(array))
    table, pivots, _ = factors.lu(array)
    product = np.diagonal(table, axis1=-2, axis2=-1).prod(-1, dtype=array.dtype)
    return np.asarray(np.where(_is_odd(pivots), -product, product))


def _cofactors_by_values(matrix: Array) -> Array:
    """Return the cofactors of one matrix by its singular values, of which any may be 0."""
    if not np.isfinite(matrix).all():
        return np.full_like(matrix, np.nan)
    left, values, right = np.linalg.svd(matrix)
    others = np.array([np.delete(values, k).prod() for k in range(len(values))])
    turned = np.linalg.det(left) * np.linalg.det(right)
    return np.asarray(turned * ((left * others) @ right).conj())


@silent
def _cofactors(array: Array) -> Array:
    """Return the derivatives of determinants for every element.

    They are det A^-T. Where that would lose half the digits, singular values tell them; those of
    small matrices are minors.
    """
    found = _UNROLLED_COFACTORS((array,), "F", {})
    if found is not None:
        return found[0]
    try:
        inverse = np.linalg.inv(array)
    except np.linalg.LinAlgError:  # one of them is singular
        inverse = np.full_like(array, np.nan)
    result = by_columns(np.empty(array.shape, array.dtype))
    np.multiply(inverse.swapaxes(-2, -1), _determinant(array)[..., None, None], out=result)
    if not array.size:
        return result
    condition = np.abs(array).max((-2, -1)) * np.abs(inverse).max((-2, -1))
    loses = ~(condition < 1 / np.sqrt(np.finfo(array.dtype).eps))
    for at in map(tuple, np.argwhere(loses)):
        result[at] = _cofactors_by_values(array[at])
    return result


def cofactors_of(A: Tensor) -> Tensor:
    """Return the matrices of cofactors."""
    result: Tensor = _COFACTORS.apply(A)
    return result


def _rule_of_cofactors(g: Tensor, A: Tensor) -> Tensor:
    """Return det (<g, B> B - B g^T B) of B = A^-T, everything but g conjugated."""
    A = conj(A)
    turned = linalg_inv(A).mT
    inner = sum(g * turned, (-2, -1))
    gradient = scaled(turned, inner) - matmul(turned, matmul(g.mT, turned))
    return scaled(gradient, linalg_det(A))


_COFACTORS = Primitive(
    "cofactors",
    "LinalgDetBackward0",
    _cofactors,
    ["A"],
    [_rule_of_cofactors],
    stand_in=stand_in,
    native=_UNROLLED_COFACTORS,
    samples=[sampled(lambda A: cofactors_of(A), size) for size in ((3, 3), (2, 2, 2))],
)
_DET = Primitive(
    "linalg_det",
    "LinalgDetBackward0",
    _determinant,
    ["A"],
    [lambda g, A: scaled(conj(cofactors_of(A)), g)],
    stand_in=stand_in,
    native=_UNROLLED,
    samples=[
        sampled(lambda A: linalg_det(A), (3, 3)),
        sampled(lambda A: det(A), (2, 2, 2)),
        sampled(lambda A: det(A), (0, 0)),
    ],
)


@declare("linalg_det(Tensor A, *, Tensor? out=None)", function=False, method=False, dispatched=True)
def linalg_det(A: Tensor) -> Tensor:
    """Return the determinants of square matrices.

    The gradient is g times the conjugate of the cofactors, det(A) A^-T, which singular matrices
    have, too. M. B. Giles, "An extended collection of matrix derivative results" (2008), 2.2.4.

    Parameters
    ----------
    A : tensor of shape (..., n, n)

    Raises
    ------
    RuntimeError
        If they are not square.

    >>> import numgrad as ng
    >>> ng.linalg.det(ng.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor(5.)
    """
    require_floating("linalg.det", A, wide=False)
    require_square("linalg.det", A)
    refuse_dtype("lu_cpu", A)
    result: Tensor = _DET.apply(A)
    return result


@declare("det(Tensor input)", dispatched=True)
def det(input: Tensor) -> Tensor:
    """Return the determinants of square matrices: `linalg.det`.

    The gradient is g times the conjugate of the cofactors.

    >>> import numgrad as ng
    >>> ng.det(ng.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor(5.)
    """
    return linalg_det(input)


# --- its size as a logarithm ---------------------------------------------------------------------


@silent
def _sign_and_size(array: Array) -> tuple[Array, ...]:
    found = _UNROLLED_SIZES((array,), "CCCC", {})
    if found is not None:
        return tuple(found)
    table, pivots, _ = factors.lu(array)
    diagonal = np.diagonal(table, axis1=-2, axis2=-1)
    if array.dtype.kind == "f":
        return (*factors.sign_and_size(diagonal, pivots), table, pivots)
    size = np.abs(diagonal)
    sign = np.where(size > 0, diagonal / np.where(size > 0, size, 1), 0)
    sign = sign.prod(-1, dtype=array.dtype)
    sign = np.where(_is_odd(pivots), -sign, sign).astype(array.dtype)
    return sign, np.asarray(np.log(size).sum(-1, dtype=size.dtype)), table, pivots


def _rule_of_size(
    g: list[Tensor | None], sign: Tensor, A: Tensor, LU: Tensor, pivots: Tensor
) -> Tensor | None:
    """Return G A^-H, where G is g of the logarithm, and of the sign its turn about 0."""
    turn, size = g[0], g[1]
    is_complex = A._array.dtype.kind == "c"
    if turn is not None and is_complex:
        imaginary = (conj(turn) * sign).imag
        factor = complex_(imaginary * 0 if size is None else size, -imaginary)
    elif size is None:
        return None
    else:
        factor = complex_(size, size * 0) if is_complex else size
    side = scaled(expand_to(identity(A), A._array.shape), factor)
    return solve_factored(A, side, LU, pivots, True)


_SLOGDET = Primitive(
    "linalg_slogdet",
    "LinalgSlogdetBackward0",
    _sign_and_size,
    ["A"],
    [_rule_of_size],
    outputs=("sign", "logabsdet", "LU", "pivots"),
    constant=("LU",),
    stand_in=stand_in,
    native=_UNROLLED_SIZES,
    samples=[
        sampled(lambda A: tuple(linalg_slogdet(A)), (3, 3)),
        sampled(lambda A: tuple(slogdet(A)), (2, 2, 2)),
        sampled(lambda A: logdet(A), (2, 2)),
        sampled(lambda A: logdet(A), (0, 0)),
    ],
)


def _sizes(function: str, A: Tensor) -> Any:
    require_floating(function, A)
    require_square(function, A)
    return _SLOGDET.apply(A)[:2]


@declare(
    "linalg_slogdet(Tensor A, *, Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_slogdet(A: Tensor) -> Any:
    """Return the sign of each determinant, and the logarithm of its absolute value.

    The gradient is A^-H times that of the logarithm; complex signs have one, too.

    Parameters
    ----------
    A : tensor of shape (..., n, n)

    Raises
    ------
    RuntimeError
        If they are not square.

    >>> import numgrad as ng
    >>> ng.linalg.slogdet(ng.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """
    return _linalg_slogdet_type(*_sizes("linalg.slogdet", A))


@declare("slogdet(Tensor input, *, Tensor[]? out=None)", dispatched=True)
def slogdet(input: Tensor) -> Any:
    """Return signs and logarithms of determinants: `linalg.slogdet`.

    The gradient is the same.

    >>> import numgrad as ng
    >>> ng.slogdet(ng.eye(3)).logabsdet
    tensor(0.)
    """
    return _slogdet_type(*_sizes("linalg.slogdet", input))


@declare("logdet(Tensor input)", dispatched=True)
def logdet(input: Tensor) -> Tensor:
    """Return the logarithms of determinants; nan where one is negative.

    The gradient is g A^-H.

    >>> import numgrad as ng
    >>> ng.logdet(ng.eye(3))
    tensor(0.)
    """
    sign, size = _sizes("logdet", input)
    if input._array.dtype.kind == "c":
        return log(sign) + size
    result: Tensor = where(sign == -1, np.nan, size)
    return result
