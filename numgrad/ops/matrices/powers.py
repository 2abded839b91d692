"""Powers and exponentials of square matrices: `linalg.matrix_power`, `linalg.matrix_exp`.

The exponential is by scaling, Pade approximants and squaring: N. J. Higham, "The scaling and
squaring method for the matrix exponential revisited" (2005). Its derivative is a block of the
exponential of a matrix of twice the order: R. Mathias, "A chain rule for matrix functions" (1996).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.matrices.checks import require_floating, require_square
from numgrad.ops.matrices.outs import by_rows
from numgrad.ops.matrices.parts import adjoint_of, identities, matmul, sampled, stand_in
from numgrad.ops.matrices.systems.solving import linalg_inv
from numgrad.ops.movement.copies import clone_contiguous
from numgrad.ops.movement.joining import cat
from numgrad.ops.movement.slicing import narrow
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare

__all__ = ["linalg_matrix_exp", "linalg_matrix_power", "matrix_exp", "matrix_power"]

Array = np.ndarray[Any, Any]


# --- exponentials --------------------------------------------------------------------------------

# By the size of a real number: the degree, and up to which 1-norm its error is below a rounding
# (Higham, table 2.3; for float32 the table 10.2 of his "Functions of Matrices").
_DEGREES = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def _coefficients(degree: int) -> list[float]:
    """Return the coefficients of Pade's numerator of exp, scaled to make the first one 1."""
    factorial = math.factorial
    return [
        factorial(2 * degree - k)
        * factorial(degree)
        / (factorial(2 * degree) * factorial(k) * factorial(degree - k))
        for k in range(degree + 1)
    ]


def _approximated(matrices: Array, degree: int) -> Array:
    """Return Pade's approximant of exp of matrices of small norms."""
    order, dtype = matrices.shape[-1], matrices.dtype
    square = matrices @ matrices
    even, odd = np.zeros_like(matrices), np.zeros_like(matrices)
    power = np.broadcast_to(np.eye(order, dtype=dtype), matrices.shape)
    factors = _coefficients(degree)
    for k in range(0, degree + 1, 2):
        even += dtype.type(factors[k]) * power
        odd += dtype.type(factors[k + 1]) * power
        if k + 2 <= degree:
            power = power @ square
    odd = matrices @ odd
    return np.linalg.solve(even - odd, even + odd)


@silent
def _exponential(array: Array) -> Array:
    order, dtype = array.shape[-1], array.dtype
    if order == 1 or not array.size:
        return np.exp(array)
    matrices = np.array(array, order="C").reshape(-1, order, order)
    norms = np.abs(matrices).sum(-2).max(-1)
    finite = np.isfinite(norms)
    matrices[~finite] = 0
    degree, bound = _DEGREES[norms.dtype.itemsize]
    times = np.ceil(np.log2(np.maximum(np.where(finite, norms, 0) / bound, 1))).astype(int)
    matrices *= np.ldexp(norms.dtype.type(1), -times)[:, None, None].astype(dtype)
    result = _approximated(matrices, degree)
    for turn in range(times.max()):
        more = times > turn
        result[more] = result[more] @ result[more]
    result[~finite] = np.nan
    return result.reshape(array.shape)


def _exponential_rule(g: Tensor, input: Tensor) -> Tensor:
    """Return the block above the diagonal of exp of ((A^H, g), (0, A^H))."""
    turned, order = adjoint_of(input), input._array.shape[-1]
    above = cat([turned, g], -1)
    below = cat([turned * 0, turned], -1)
    whole = _EXP.apply(cat([above, below], -2))
    return narrow(narrow(whole, -2, 0, order), -1, order, order)


_EXP: Primitive = Primitive(
    "linalg_matrix_exp",
    "LinalgMatrixExpBackward0",
    _exponential,
    ["input"],
    [_exponential_rule],
    stand_in=stand_in,
    samples=[
        sampled(lambda A: linalg_matrix_exp(A * 0.3), (3, 3)),
        sampled(lambda A: linalg_matrix_exp(A * 0.3), (2, 2, 2)),
        sampled(lambda A: linalg_matrix_exp(A * 0.1), (1, 1)),
        sampled(lambda A: linalg_matrix_exp(A), (0, 0)),
    ],
)


def _exp(A: Tensor) -> Tensor:
    require_floating("linalg.matrix_exp", A, wide=False)
    require_square("linalg.matrix_exp", A)
    result: Tensor = _EXP.apply(A)
    return result


@declare("linalg_matrix_exp(Tensor input)", function=False, method=False, dispatched=True)
def linalg_matrix_exp(input: Tensor) -> Tensor:
    """Return the exponentials of square matrices: the sum of A^k / k!.

    The gradient is the block above the diagonal of the exponential of ((A^H, g), (0, A^H)).
    N. J. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).

    Parameters
    ----------
    input : tensor of shape (..., n, n)

    Raises
    ------
    RuntimeError
        If they are not square.

    >>> import numgrad as ng
    >>> ng.linalg.matrix_exp(ng.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _exp(input)


@declare("matrix_exp(Tensor input)", dispatched=True)
def matrix_exp(input: Tensor) -> Tensor:
    """Return the exponentials of square matrices: `linalg.matrix_exp`.

    The gradient is the same.

    >>> import numgrad as ng
    >>> ng.matrix_exp(ng.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _exp(input)


# --- powers --------------------------------------------------------------------------------------


def _power(A: Tensor, n: int) -> Tensor:
    """Return products of matrices with themselves, as few as the binary digits of `n` ask for."""
    require_square("linalg.matrix_power", A)
    if n == 0:
        one = fresh(np.ascontiguousarray(identities(A._array)))
        result: Tensor = where(fresh(np.ones((), bool)), one, A)  # which has a gradient, of zeros
        return result
    if n == 1:
        return clone_contiguous(A)
    if n < 0:
        A, n = linalg_inv(A), -n
    if n == 3:
        return matmul(matmul(A, A), A)
    square, product = A, None
    while n:
        if n & 1:
            product = square if product is None else matmul(product, square)
        n >>= 1
        if n:
            square = matmul(square, square)
    assert product is not None
    return product


@declare(
    "linalg_matrix_power(Tensor input, int n, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    write=by_rows,
)
def linalg_matrix_power(input: Tensor, n: int) -> Tensor:
    """Return the n-th powers of square matrices; those of the inverses where `n` is negative.

    The gradient is that of the products, and of `linalg.inv`; for ``n = 0`` it is 0.

    Parameters
    ----------
    input : tensor of shape (..., n, n)
    n

    Raises
    ------
    RuntimeError
        If they are not square.
    numgrad.linalg.LinAlgError
        If `n` is negative and a matrix is singular.

    >>> import numgrad as ng
    >>> ng.linalg.matrix_power(ng.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    return _power(input, n)


@declare("matrix_power(Tensor input, int n, *, Tensor? out=None)", dispatched=True, write=by_rows)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Return the n-th powers of square matrices: `linalg.matrix_power`.

    The gradient is the same.

    >>> import numgrad as ng
    >>> ng.matrix_power(ng.tensor([[2.0, 0.0], [0.0, 4.0]]), -1)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return _power(input, n)
