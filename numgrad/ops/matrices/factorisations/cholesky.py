"""Cholesky's factorisation, and systems and inverses by it.

The rule of the factorisation is that of I. Murray, "Differentiation of the Cholesky decomposition"
(2016), in matrix form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor
from numgrad.kernels.matrices import factors, formulas
from numgrad.kernels.matrices.batches import by_columns
from numgrad.kernels.matrices.failures import refuse_failed
from numgrad.kernels.matrices.triangular import solve_triangular
from numgrad.kernels.matrices.unrolled import Unrolled
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.matrices.checks import (
    broadcast_batches,
    refuse_dtype,
    require_floating,
    require_square,
)
from numgrad.ops.matrices.parts import (
    adjoint_of,
    hermitian_half,
    identities,
    matmul,
    positive,
    sampled,
    stand_in,
)
from numgrad.ops.matrices.systems.triangular import require_side, solve_with_triangle
from numgrad.ops.movement.diagonals import tril, triu
from numgrad.ops.signatures.declared import declare

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "linalg_cholesky",
    "linalg_cholesky_ex",
]

Array = np.ndarray[Any, Any]

_cholesky_ex_type = return_type("linalg_cholesky_ex", "L", "info")


_UNROLLED = Unrolled(formulas.cholesky, (2,), integers=(1,), failed=1)
_UNROLLED_SOLVE = Unrolled(formulas.cholesky_solve, (2, 2))


def _adjoint(array: Array) -> Array:
    turned = array.swapaxes(-2, -1)
    return turned.conj() if array.dtype.kind == "c" else turned


@silent
def _factored(array: Array, upper: bool, checked: str | None) -> tuple[Array, Array]:
    """Factor; `checked` is the function that raises where a matrix is not positive definite."""
    found = _UNROLLED((array,), "FC", {"upper": upper, "checked": checked})
    if found is not None:
        return found[0], found[1]
    factor, failed = factors.cholesky(array.swapaxes(-2, -1) if upper else array)
    if checked is not None:
        refuse_failed(checked, failed)
    return factor.swapaxes(-2, -1) if upper else by_columns(factor), failed


def _rule(g0: Tensor, L: Tensor, upper: bool) -> Tensor:
    """Return L^-H S L^-1, S being the Hermitian half of L^H g."""
    if upper:
        L, g0 = adjoint_of(L), adjoint_of(g0)
    inner = hermitian_half(matmul(adjoint_of(L), g0))
    half = solve_with_triangle(adjoint_of(L), inner, upper=True)
    return solve_with_triangle(L, half, upper=False, left=False)


_CHOLESKY = Primitive(
    "linalg_cholesky_ex",
    "LinalgCholeskyExBackward0",
    _factored,
    ["A"],
    [_rule],
    outputs=("L", "info"),
    stand_in=stand_in,
    native=_UNROLLED,
    samples=[
        sampled(lambda A: linalg_cholesky(A), (3, 3), of=positive),
        sampled(lambda A: linalg_cholesky_ex(A, upper=True).L, (2, 2, 2), of=positive),
        sampled(lambda A: linalg_cholesky(A), (0, 0), of=positive),
    ],
)


def _require(function: str, input: Tensor) -> None:
    require_square(function, input)
    refuse_dtype("cholesky_cpu", input)


@declare(
    "linalg_cholesky(Tensor input, *, bool upper=False, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_cholesky(input: Tensor, upper: bool) -> Tensor:
    """Return L of A = L L^H, lower triangular, for a positive definite Hermitian A.

    The gradient is L^-H S L^-1, where S is the Hermitian half of the lower triangle of L^H g:
    I. Murray, "Differentiation of the Cholesky decomposition" (2016).

    Parameters
    ----------
    input : tensor of shape (..., n, n)
        A, of which one triangle is read.
    upper
        Return U of A = U^H U, and read the upper triangle.

    Raises
    ------
    numgrad.linalg.LinAlgError
        If a matrix is not positive definite.

    >>> import numgrad as ng
    >>> ng.linalg.cholesky(ng.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    require_floating("linalg.cholesky", input, wide=False)
    _require("linalg.cholesky", input)
    result: Tensor = _CHOLESKY.apply(input, upper=upper, checked="linalg.cholesky")[0]
    return result


@declare(
    "linalg_cholesky_ex(Tensor input, *, bool upper=False, bool check_errors=False, "
    "Tensor[]? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_cholesky_ex(input: Tensor, upper: bool, check_errors: bool) -> Any:
    """Return what `linalg.cholesky` does, and for each matrix the order of the minor that failed.

    The factor of one that failed is nan. The gradient is that of `linalg.cholesky`.

    Parameters
    ----------
    input : tensor of shape (..., n, n)
    upper
        Return U of A = U^H U.
    check_errors
        Raise where one failed.

    >>> import numgrad as ng
    >>> ng.linalg.cholesky_ex(ng.tensor([[1.0, 2.0], [2.0, 1.0]])).info
    tensor(2, dtype=torch.int32)
    """
    require_floating("linalg.cholesky", input, wide=False)
    _require("linalg.cholesky", input)
    checked = "linalg.cholesky_ex" if check_errors else None
    return _cholesky_ex_type(*_CHOLESKY.apply(input, upper=upper, checked=checked))


def _factored_as_before(array: Array, upper: bool) -> Array:
    if not array.size:
        return np.empty_like(array, order="C")
    return _factored(array, upper, "cholesky")[0]


_OLD_CHOLESKY = Primitive(
    "cholesky",
    "CholeskyBackward0",
    _factored_as_before,
    ["input"],
    [lambda g, y, upper: _rule(g, y, upper) if y._array.size else g],
    stand_in=stand_in,
    samples=[
        sampled(lambda A: cholesky(A, True), (3, 3), of=positive),
        sampled(lambda A: cholesky(A), (0, 0), of=positive),
    ],
)


@declare("cholesky(Tensor input, bool upper=False, *, Tensor? out=None)", dispatched=True)
def cholesky(input: Tensor, upper: bool, out: Tensor | None) -> Tensor:
    """Return what `linalg.cholesky` does; PyTorch deprecates this name.

    The gradient is the same.

    >>> import numgrad as ng
    >>> ng.cholesky(ng.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    if input._array.size:  # before PyTorch looks at anything else
        _require("cholesky", input)
    result: Tensor = write_result(
        "cholesky", _OLD_CHOLESKY.apply(input, upper=upper), out, by_rows=True
    )
    return result


# --- with the factor at hand ---------------------------------------------------------------------


def _product_rule(gradient: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """Return the gradient of a factor, of that of L L^H (or U^H U): of its triangle alone."""
    both = gradient + adjoint_of(gradient)
    if upper:
        return triu(matmul(triu(factor, 0), both), 0)
    return tril(matmul(both, tril(factor, 0)), 0)


@silent
def _solved(side: Array, factor: Array, upper: bool) -> Array:
    found = _UNROLLED_SOLVE((side, factor), "F", {"upper": upper})
    if found is not None:
        return found[0]
    lower = _adjoint(factor) if upper else factor
    half = solve_triangular(lower, side, True, False)
    return by_columns(solve_triangular(_adjoint(lower), half, False, False))


def _solve(B: Tensor, L: Tensor, upper: bool) -> Tensor:
    result: Tensor = _CHOLESKY_SOLVE.apply(B, L, upper=upper)
    return result


def _rule_of_factor(g: Tensor, y: Tensor, L: Tensor, upper: bool) -> Tensor:
    solved = -_solve(g, L, upper)
    rows, columns = y._array.shape[-2:]
    if 2 * columns > rows:
        return _product_rule(matmul(solved, adjoint_of(y)), L, upper)
    # Of few columns: the factor meets these first, not the n x n matrices that they make.
    if upper:
        U = triu(L, 0)
        left, right = matmul(U, solved), matmul(U, y)
        return triu(matmul(left, adjoint_of(y)) + matmul(right, adjoint_of(solved)), 0)
    L = tril(L, 0)
    left, right = matmul(adjoint_of(y), L), matmul(adjoint_of(solved), L)
    return tril(matmul(solved, left) + matmul(y, right), 0)


_CHOLESKY_SOLVE = Primitive(
    "cholesky_solve",
    "CholeskySolveBackward0",
    _solved,
    ["input", "L"],
    [lambda g, L, upper: _solve(g, L, upper), _rule_of_factor],
    stand_in=stand_in,
    native=_UNROLLED_SOLVE,
    samples=[
        sampled("cholesky_solve", (3, 2), (3, 3), upper=False),
        sampled("cholesky_solve", (2, 2, 1), (2, 2, 2), upper=True),
        sampled("cholesky_solve", (3, 1), (3, 3), upper=False),
        sampled("cholesky_solve", (0, 2), (0, 0), upper=False),
    ],
)


@declare(
    "cholesky_solve(Tensor input, Tensor input2, bool upper=False, *, Tensor? out=None)",
    dispatched=True,
)
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool, out: Tensor | None) -> Tensor:
    """Return X of AX = B, where A is given by its Cholesky factor.

    Derivative: G = A^-1 g for B; for L the triangle of -(G X^H + X G^H) L.

    Parameters
    ----------
    input : tensor of shape (..., n, k)
        The right side B.
    input2 : tensor of shape (..., n, n)
        The factor L, of which one triangle is read.
    upper
        Whether it is U of A = U^H U.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> L = ng.tensor([[2.0, 0.0], [1.0, 2.0]])
    >>> ng.cholesky_solve(ng.tensor([[6.0], [7.0]]), L)
    tensor([[1.],
            [1.]])
    """
    for name, tensor in (("b", input), ("u", input2)):
        ndim = tensor._array.ndim
        if ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {ndim} dimensions instead"
            )
    require_side("cholesky_solve", input, input2)
    refuse_dtype("cholesky_solve_cpu", input2)
    side, factor = broadcast_batches(input, input2)
    result: Tensor = write_result("cholesky_solve", _solve(side, factor, upper), out, by_rows=True)
    return result


@silent
def _inverted(factor: Array, upper: bool) -> Array:
    lower = _adjoint(factor) if upper else factor
    diagonal = np.diagonal(lower, axis1=-2, axis2=-1) == 0
    if diagonal.any():
        at = np.where(diagonal.any(-1), diagonal.argmax(-1) + 1, 0)
        refuse_failed("cholesky_inverse", at)
    half = solve_triangular(lower, identities(lower), True, False)
    return by_columns(np.matmul(_adjoint(half), half))


def _rule_of_inverse(g: Tensor, y: Tensor, input: Tensor, upper: bool) -> Tensor:
    return _product_rule(-matmul(y, matmul(g, y)), input, upper)


_CHOLESKY_INVERSE = Primitive(
    "cholesky_inverse",
    "CholeskyInverseBackward0",
    _inverted,
    ["input"],
    [_rule_of_inverse],
    stand_in=stand_in,
    samples=[
        sampled("cholesky_inverse", (3, 3), upper=False),
        sampled("cholesky_inverse", (2, 2, 2), upper=True),
        sampled("cholesky_inverse", (0, 0)),
    ],
)


@declare("cholesky_inverse(Tensor input, bool upper=False, *, Tensor? out=None)", dispatched=True)
def cholesky_inverse(input: Tensor, upper: bool) -> Tensor:
    """Return the inverse of A = L L^H, given by its factor L.

    The gradient is that of L L^H, -A^-1 g A^-1, times the factor.

    Parameters
    ----------
    input : tensor of shape (..., n, n)
        The factor, of which one triangle is read.
    upper
        Whether it is U of A = U^H U.

    Raises
    ------
    numgrad.linalg.LinAlgError
        If there is a zero on the diagonal.

    >>> import numgrad as ng
    >>> ng.cholesky_inverse(ng.tensor([[1.0, 0.0], [0.0, 2.0]]))
    tensor([[1.0000, 0.0000],
            [0.0000, 0.2500]])
    """
    require_square("cholesky_inverse", input)
    refuse_dtype("cholesky_inverse_out_cpu", input)
    result: Tensor = _CHOLESKY_INVERSE.apply(input, upper=upper)
    return result
