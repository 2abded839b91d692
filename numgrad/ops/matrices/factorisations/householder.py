"""Householder's reflections: `linalg.householder_product`, `orgqr`, `geqrf`, `ormqr`.

A product of reflections H = 1 - f v v^H is differentiated step by step: of Z' = H Z with the
cotangent g, and w = v^H Z, they are -(v^H g) w^H for f, -f* g w^H - f Z (v^H g)^H for v, and H^H g
for Z. These are the rules of products in M. B. Giles, "An extended collection of matrix derivative
results for forward and reverse mode algorithmic differentiation" (2008), section 2.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.matrices.batches import by_columns
from numgrad.kernels.matrices.reflections import reflected
from numgrad.ops.core.declare import RefusedPrimitive
from numgrad.ops.core.places import laid_out
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import refuse_dtype
from numgrad.ops.matrices.outs import casting
from numgrad.ops.matrices.parts import adjoint_of, matmul, sampled, stand_in
from numgrad.ops.movement.diagonals import tril
from numgrad.ops.movement.joining import cat
from numgrad.ops.movement.slicing import narrow
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.signatures.declared import declare

__all__ = ["geqrf", "linalg_householder_product", "orgqr", "ormqr"]

Array = np.ndarray[Any, Any]

_geqrf_type = return_type("geqrf", "a", "tau")


# --- the rule ------------------------------------------------------------------------------------


def _vector(vectors: Tensor, k: int) -> Tensor:
    """Return v of the reflection number k: a matrix of one column."""
    rows = vectors._array.shape[-2]
    below = fresh((np.arange(rows) > k).astype(vectors._array.dtype)[:, None])
    one = fresh((np.arange(rows) == k).astype(vectors._array.dtype)[:, None])
    result: Tensor = narrow(vectors, -1, k, 1) * below + one
    return result


def _factor(factors: Tensor, k: int, adjoint: bool) -> Tensor:
    factor = unsqueeze(narrow(factors, -1, k, 1), -1)
    return conj(factor) if adjoint else factor


def _gradients(
    g: Tensor, vectors: Tensor, factors: Tensor, target: Tensor, adjoint: bool
) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients of the vectors and of the factors, of what was applied to a target.

    Where there are no reflections, there is none. They lie as what they are the gradients of.
    """
    count = factors._array.shape[-1]
    if not vectors._array.size or not factors._array.size:
        return None, None
    order = list(range(count)) if adjoint else list(range(count))[::-1]
    steps = {k: (_vector(vectors, k), _factor(factors, k, adjoint)) for k in order}
    before = {}
    for k in order:
        vector, factor = steps[k]
        along = matmul(adjoint_of(vector), target)
        before[k] = target, along
        target = target - factor * matmul(vector, along)
    of_vectors, of_factors = {}, {}
    for k in reversed(order):
        (vector, factor), (state, along) = steps[k], before[k]
        inner = matmul(adjoint_of(vector), g)
        of_factor = -squeeze(matmul(inner, adjoint_of(along)), -1)
        of_factors[k] = conj(of_factor) if adjoint else of_factor
        of_vectors[k] = -conj(factor) * matmul(g, adjoint_of(along)) - factor * matmul(
            state, adjoint_of(inner)
        )
        g = g - conj(factor) * matmul(vector, inner)
    columns = [of_vectors[k] for k in range(count)]
    rest = vectors._array.shape[-1] - count
    if rest:
        columns.append(narrow(vectors, -1, count, rest) * 0)
    of_all = tril(cat(columns, -1), -1), cat([of_factors[k] for k in range(count)], -1)
    return laid_out(of_all[0], vectors), laid_out(of_all[1], factors)


def _identity(vectors: Tensor) -> Tensor:
    shape = vectors._array.shape
    ones = np.eye(*shape[-2:], dtype=vectors._array.dtype)
    return fresh(np.broadcast_to(ones, shape))


# --- the product ---------------------------------------------------------------------------------


@silent
def _product(array: Array, factors: Array) -> Array:
    ones = np.broadcast_to(np.eye(*array.shape[-2:], dtype=array.dtype), array.shape)
    return by_columns(reflected(array, factors, ones, False))


_PRODUCT = Primitive(
    "linalg_householder_product",
    "LinalgHouseholderProductBackward0",
    _product,
    ["input", "tau"],
    [
        lambda g, input, tau: _gradients(g, input, tau, _identity(input), False)[0],
        lambda g, input, tau: _gradients(g, input, tau, _identity(input), False)[1],
    ],
    stand_in=stand_in,
    samples=[
        sampled(lambda A, tau: linalg_householder_product(A, tau), (3, 2), (2,)),
        sampled(lambda A, tau: orgqr(A, tau), (2, 3, 3), (2, 2)),
        sampled(lambda A, tau: orgqr(A, tau), (2, 2), (0,)),
    ],
)


def _require_product(input: Tensor, tau: Tensor) -> None:
    name, array, factors = "torch.linalg.householder_product", input._array, tau._array
    if array.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if array.shape[-2] < array.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if not factors.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if array.shape[-1] < factors.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    _require_factors(name, input, tau)
    if array.dtype != factors.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype.scalar_name} does not match input dtype "
            f"{input.dtype.scalar_name}"
        )


def _require_factors(name: str, input: Tensor, tau: Tensor) -> None:
    array, factors = input._array, tau._array
    if array.ndim - factors.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal "
            f"to {factors.ndim} and input.ndim is equal to {array.ndim}"
        )
    if array.shape[:-2] != factors.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(factors.shape[:-1])}"
        )


@declare(
    "linalg_householder_product(Tensor input, Tensor tau, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    write=casting("torch.linalg.householder_product", cast_by_rows=True),
)
def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """Return the first columns of the product of reflections 1 - f v v^H, as `geqrf` gives them.

    Derivative: with w = v^H Z of each step Z' = Z - f v w, -(v^H g) w^H for f, and
    -f* g w^H - f Z (v^H g)^H for v. M. B. Giles, "An extended collection of matrix derivative
    results" (2008), 2.2.

    Parameters
    ----------
    input : tensor of shape (..., m, n)
        The vectors v, below the diagonal, on which they have 1.
    tau : tensor of shape (..., k)
        The factors f.

    Raises
    ------
    RuntimeError
        If m < n or n < k, the batches do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.linalg.householder_product(ng.zeros(2, 2), ng.tensor([2.0, 0.0]))
    tensor([[-1.,  0.],
            [ 0.,  1.]])
    """
    _require_product(input, tau)
    refuse_dtype("orgqr_cpu", input)
    result: Tensor = _PRODUCT.apply(input, tau)
    return result


@declare(
    "orgqr(Tensor input, Tensor input2, *, Tensor? out=None)",
    dispatched=True,
    write=casting("torch.linalg.householder_product", cast_by_rows=True),
)
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """Return the first columns of a product of reflections: `linalg.householder_product`.

    The gradient is the same.

    Parameters
    ----------
    input : tensor of shape (..., m, n)
        The vectors.
    input2 : tensor of shape (..., k)
        The factors.

    >>> import numgrad as ng
    >>> ng.orgqr(ng.zeros(2, 2), ng.tensor([2.0, 0.0]))
    tensor([[-1.,  0.],
            [ 0.,  1.]])
    """
    result: Tensor = linalg_householder_product(input, input2)
    return result


# --- times a matrix ------------------------------------------------------------------------------


@silent
def _multiplied(array: Array, factors: Array, other: Array, left: bool, transpose: bool) -> Array:
    if left:
        return by_columns(reflected(array, factors, other, transpose))
    turned = reflected(array, factors, other.swapaxes(-2, -1).conj(), not transpose)
    return by_columns(turned.conj().swapaxes(-2, -1))


def _times(input: Tensor, tau: Tensor, other: Tensor, left: bool, transpose: bool) -> Tensor:
    result: Tensor = _MULTIPLY.apply(input, tau, other, left=left, transpose=transpose)
    return result


def _of_both(
    g: Tensor, input: Tensor, tau: Tensor, other: Tensor, left: bool, transpose: bool
) -> tuple[Tensor | None, Tensor | None]:
    if left:
        return _gradients(g, input, tau, other, transpose)
    return _gradients(adjoint_of(g), input, tau, adjoint_of(other), not transpose)


_MULTIPLY = Primitive(
    "ormqr",
    "OrmqrBackward0",
    _multiplied,
    ["input", "tau", "other"],
    [
        lambda g, input, tau, other, left, transpose: _of_both(
            g, input, tau, other, left, transpose
        )[0],
        lambda g, input, tau, other, left, transpose: _of_both(
            g, input, tau, other, left, transpose
        )[1],
        lambda g, input, tau, left, transpose: _times(input, tau, g, left, not transpose),
    ],
    stand_in=stand_in,
    samples=[
        sampled(lambda A, tau, B: ormqr(A, tau, B), (3, 2), (2,), (3, 2)),
        sampled(lambda A, tau, B: ormqr(A, tau, B, False), (2, 2, 2), (2, 2), (2, 1, 2)),
        sampled(lambda A, tau, B: ormqr(A, tau, B, True, True), (2, 3), (2,), (2, 2)),
        sampled(lambda A, tau, B: ormqr(A, tau, B, False, True), (3, 2), (2,), (1, 3)),
    ],
)


@declare(
    "ormqr(Tensor input, Tensor input2, Tensor input3, bool left=True, bool transpose=False, *, "
    "Tensor? out=None)",
    dispatched=True,
    write=casting("torch.ormqr", cast_by_rows=True),
)
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> Tensor:
    """Return a matrix times the product Q of reflections, which is not made for it.

    Derivative: Q^H g for the matrix; that of `linalg.householder_product` for the reflections.

    Parameters
    ----------
    input : tensor of shape (..., m, n)
        The vectors, as `geqrf` gives them.
    input2 : tensor of shape (..., k)
        The factors.
    input3 : tensor of shape (..., m, c)
        Or (..., c, m) where Q stands on the right.
    left
        Return Q X; else X Q.
    transpose
        Take Q^H for Q.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.ormqr(ng.zeros(2, 2), ng.tensor([2.0, 0.0]), ng.ones(2, 1))
    tensor([[-1.],
            [ 1.]])
    """
    name, shape = "torch.ormqr", input._array.shape
    for what, tensor in (("input", input), ("other", input3)):
        if tensor._array.ndim < 2:
            raise RuntimeError(f"{name}: {what} must have at least 2 dimensions.")
    dim = -2 if left else -1
    length = input3._array.shape[dim]
    factors = input2._array.shape[-1] if input2._array.ndim else 1
    if length != shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{dim}] must be equal to input.shape[-2]")
    if factors != min(length, shape[-1]):
        raise RuntimeError(
            f"{name}: tau.shape[-1] must be equal to min(other.shape[{dim}], input.shape[-1])"
        )
    _require_factors(name, input, input2)
    if len(shape) != input3._array.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got "
            f"other.ndim equal to {input3._array.ndim} and input.ndim is equal to {len(shape)}"
        )
    if shape[:-2] != input3._array.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
            f"{list(input3._array.shape[:-2])}"
        )
    for what, tensor in (("tau", input2), ("other", input3)):
        if tensor._array.dtype != input._array.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {what} to have the same dtype, but input has dtype"
                f"{input.dtype.scalar_name} and {what} has dtype {tensor.dtype.scalar_name}"
            )
    refuse_dtype("ormqr_cpu", input)
    return _times(input, input2, input3, left, transpose)


# --- the factorisation ---------------------------------------------------------------------------


@silent
def _raw(array: Array) -> tuple[Array, Array]:
    *batch, rows, columns = array.shape
    if not array.size:
        factors = np.zeros((*batch, min(rows, columns)), array.dtype)
        return by_columns(np.array(array)), factors
    turned, factors = np.linalg.qr(array, "raw")
    return np.ascontiguousarray(turned).swapaxes(-2, -1), np.ascontiguousarray(factors)


_GEQRF = RefusedPrimitive(
    "geqrf", "GeqrfBackward0", _raw, "geqrf", outputs=("a", "tau"), stand_in=stand_in
)


@declare("geqrf(Tensor input, *, Tensor[]? out=None)", dispatched=True)
def geqrf(input: Tensor) -> Any:
    """Return QR decompositions as LAPACK leaves them: R, the vectors of reflections, and factors.

    Gradients are refused, as by PyTorch: `linalg.qr` has them.

    Parameters
    ----------
    input : tensor of shape (..., m, n)

    Returns
    -------
    a : tensor of shape (..., m, n)
        R, and below the diagonal the vectors.
    tau : tensor of shape (..., min(m, n))
        The factors.

    Raises
    ------
    RuntimeError
        If there are no two dims.

    >>> import numgrad as ng
    >>> ng.geqrf(ng.tensor([[3.0], [4.0]])).tau
    tensor([1.6000])
    """
    if input._array.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    refuse_dtype("geqrf_cpu", input)
    return _geqrf_type(*_GEQRF.apply(input))
