"""Pseudoinverses and ranks, by singular values: `linalg.pinv`, `linalg.matrix_rank`, `pinverse`.

The rule is that of G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and
nonlinear least squares problems whose variables separate" (1973), equation 4.12.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.base.halves import HALF
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.matrices.checks import require_matrix, require_square
from numgrad.ops.matrices.outs import casting
from numgrad.ops.matrices.parts import adjoint_of, matmul, positive, sampled, stand_in
from numgrad.ops.matrices.spectra.eigen_hermitian import hermitian_parts, linalg_eigvalsh
from numgrad.ops.matrices.spectra.singular_values import linalg_svdvals, singular_parts
from numgrad.ops.movement.casts import expand_to
from numgrad.ops.movement.slicing import select
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.pointwise.complex import absolute
from numgrad.ops.pointwise.selection import maximum, where
from numgrad.ops.reduction.extrema import amax
from numgrad.ops.reduction.reductions import sum
from numgrad.ops.signatures.declared import declare

__all__ = ["linalg_matrix_rank", "linalg_pinv", "pinv_gradient", "pinverse"]

Array = np.ndarray[Any, Any]
Tolerance = Tensor | float | None


@silent
def _pseudoinverse(array: Array, atol: Array, rtol: Array, hermitian: bool) -> Array:
    """Return V diag(1 / S) U^H, without the singular values that count as 0."""
    if not array.size:
        return np.zeros(array.swapaxes(-2, -1).shape, array.dtype)
    if hermitian:
        values, right = hermitian_parts(array, False, True)
        turned = right.conj().swapaxes(-2, -1)
    else:
        left, values, turned = singular_parts(array, False, True)
        right, turned = turned.conj().swapaxes(-2, -1), left.conj().swapaxes(-2, -1)
    sizes = np.abs(values)
    least = np.maximum(atol, rtol * sizes.max(-1))[..., None]
    inverse = np.where(sizes > least, 1 / values, 0).astype(values.dtype)
    return np.matmul(right * inverse[..., None, :], turned)


def pinv_gradient(g: Tensor, y: Tensor, input: Tensor) -> Tensor:
    """Return the gradient of matrices for that of their pseudoinverses y.

    The products are those of the smaller size.
    """
    of_turned, turned = adjoint_of(g), adjoint_of(y)
    rows, columns = input._array.shape[-2:]
    if rows <= columns:
        inner = matmul(of_turned, y)
        outer = matmul(inner, turned)
        return (
            -adjoint_of(matmul(y, inner))
            + outer
            - matmul(matmul(input, y), outer)
            + matmul(matmul(turned, y), of_turned - matmul(inner, input))
        )
    inner = matmul(y, of_turned)
    outer = matmul(turned, inner)
    return (
        -adjoint_of(matmul(inner, y))
        + matmul(matmul(of_turned - matmul(input, inner), y), turned)
        + outer
        - matmul(matmul(outer, y), input)
    )


_PINV = Primitive(
    "linalg_pinv",
    "LinalgPinvBackward0",
    _pseudoinverse,
    ["input", "atol", "rtol"],
    [pinv_gradient, None, None],
    stand_in=stand_in,
    samples=[
        sampled(lambda A: linalg_pinv(A), (3, 2)),
        sampled(lambda A: linalg_pinv(A), (2, 2, 3)),
        sampled(lambda A: linalg_pinv(A, hermitian=True), (3, 3), of=positive),
        sampled(lambda A: linalg_pinv(A), (0, 2)),
    ],
)


# --- tolerances ----------------------------------------------------------------------------------


def _require_real(function: str, name: str, tolerance: Tolerance) -> None:
    if isinstance(tolerance, Tensor) and tolerance._array.dtype.kind == "c":
        raise RuntimeError(
            f"{function}: {name} tensor of complex type is not supported. Got "
            f"{tolerance.dtype.scalar_name}"
        )


def _require_precision(input: Tensor) -> None:
    if input._array.dtype.kind not in "fc" or input._array.dtype == HALF:
        raise RuntimeError("This function doesn't handle types other than float and double")


def _tolerances(
    function: str, input: Tensor, atol: Tolerance, rtol: Tolerance
) -> tuple[Tensor, Tensor]:
    """Return both tolerances; if neither is given, the relative one is eps times the longer side.

    It is 0 where the absolute one is given and positive.
    """
    _require_real(function, "atol", atol)
    _require_real(function, "rtol", rtol)
    if rtol is None:
        rows, columns = input._array.shape[-2:]
        usual = max(rows, columns) * float(np.finfo(input._array.dtype).eps)
        if isinstance(atol, Tensor):
            rtol = where(atol > 0, 0.0, usual)
        else:
            rtol = 0.0 if atol is not None and atol > 0 else usual
    return _as_tensor(0.0 if atol is None else atol), _as_tensor(rtol)


def _as_tensor(tolerance: Tensor | float) -> Tensor:
    if isinstance(tolerance, Tensor):
        return tolerance.detach()
    return wrap(np.asarray(tolerance, np.float64))


# --- pseudoinverses ------------------------------------------------------------------------------


def _pinv(input: Tensor, atol: Tolerance, rtol: Tolerance, hermitian: bool) -> Tensor:
    array = input._array
    if rtol is None and atol is not None and not isinstance(atol, Tensor):
        wrap_dim(-2, array.ndim)
        _require_precision(input)
    if array.ndim < 2 or array.dtype.kind not in "fc" or array.dtype == HALF:
        raise RuntimeError(
            f"linalg.pinv({input.dtype.scalar_name}{{{list(array.shape)}}}): expected a tensor "
            "with 2 or more dimensions of float, double, cfloat or cdouble types"
        )
    least, relative = _tolerances("torch.linalg.pinv", input, atol, rtol)
    if hermitian and array.size:
        require_square("linalg.eigh", input)
    batch = array.shape[:-2]
    if array.size:
        shapes = [least._array.shape, relative._array.shape, batch]
        batch = tuple(broadcast_shapes(shapes))
    else:  # of which nothing is below a tolerance
        least = relative = _as_tensor(0.0)
    if batch != array.shape[:-2]:
        input = expand_to(input, (*batch, *array.shape[-2:]))
    result: Tensor = _PINV.apply(
        input, expand_to(least, batch), expand_to(relative, batch), hermitian=hermitian
    )
    return result


@declare(
    "linalg_pinv(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False, "
    "Tensor? out=None)",
    "linalg_pinv(Tensor input, *, float? atol=None, float? rtol=None, bool hermitian=False, "
    "Tensor? out=None)",
    "linalg_pinv(Tensor input, Tensor rcond, bool hermitian=False, *, Tensor? out=None)",
    "linalg_pinv(Tensor input, float rcond, bool hermitian=False, *, Tensor? out=None)",
    function=False,
    method=False,
    write=casting("linalg.pinv"),
)
def linalg_pinv(
    input: Tensor,
    atol: Tolerance,
    rtol: Tolerance,
    hermitian: bool,
    rcond: Tensor | float | None = None,
) -> Tensor:
    """Return the pseudoinverses of matrices, of Moore and Penrose.

    Singular values up to max(atol, rtol * S[0]) count as 0. Where rows and columns are as many as
    the rank, and P is the pseudoinverse, the gradient is -P^H g P^H. G. H. Golub and V. Pereyra,
    "The differentiation of pseudo-inverses" (1973), has the rest; it holds where the rank is the
    same nearby.

    Parameters
    ----------
    input : tensor of shape (..., m, n)
    atol, rtol
        One each, or one for each matrix. `rtol` is by default eps max(m, n), or 0 where `atol` is
        positive.
    hermitian
        Take eigenvalues of the lower triangle, which is less work.
    rcond
        An older name of `rtol`.

    Raises
    ------
    numgrad.linalg.LinAlgError
        If there is nan in a matrix.

    >>> import numgrad as ng
    >>> ng.linalg.pinv(ng.tensor([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    """
    if rcond is not None:
        atol, rtol = 0.0, rcond
    return _pinv(input, atol, rtol, hermitian)


@declare("pinverse(Tensor input, float rcond=1e-15)")
def pinverse(input: Tensor, rcond: float) -> Tensor:
    """Return the pseudoinverses of matrices: `linalg.pinv`.

    The gradient is the same.

    Parameters
    ----------
    input : tensor of shape (..., m, n)
    rcond
        Singular values up to this times the greatest one count as 0.

    >>> import numgrad as ng
    >>> ng.pinverse(ng.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return _pinv(input, 0.0, rcond, False)


# --- ranks ---------------------------------------------------------------------------------------


@declare(
    "linalg_matrix_rank(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, "
    "bool hermitian=False, Tensor? out=None)",
    "linalg_matrix_rank(Tensor input, *, float? atol=None, float? rtol=None, "
    "bool hermitian=False, Tensor? out=None)",
    "linalg_matrix_rank(Tensor input, Tensor tol, bool hermitian=False, *, Tensor? out=None)",
    "linalg_matrix_rank(Tensor input, float tol, bool hermitian=False, *, Tensor? out=None)",
    function=False,
    method=False,
    write=casting("torch.linalg.matrix_rank"),
)
def linalg_matrix_rank(
    input: Tensor,
    atol: Tolerance,
    rtol: Tolerance,
    hermitian: bool,
    tol: Tensor | float | None = None,
) -> Tensor:
    """Return the ranks of matrices: how many singular values are above max(atol, rtol * S[0]).

    No gradient flows to integers.

    Parameters
    ----------
    input : tensor of shape (..., m, n)
    atol, rtol
        One each, or one for each matrix. `rtol` is by default eps max(m, n), or 0 where `atol` is
        positive.
    hermitian
        Take eigenvalues of the lower triangle, which is less work.
    tol
        The absolute tolerance alone.

    Raises
    ------
    numgrad.linalg.LinAlgError
        If there is nan in a matrix.

    >>> import numgrad as ng
    >>> ng.linalg.matrix_rank(ng.ones(3, 3))
    tensor(1)
    """
    name, array = "torch.linalg.matrix_rank", input._array
    if tol is not None:
        atol, rtol = tol, 0.0
    require_matrix(name, input, "input")
    _require_real(name, "atol", atol)
    _require_real(name, "rtol", rtol)
    if rtol is None:
        _require_precision(input)
    least, relative = _tolerances(name, input, atol, rtol)
    if not array.size:
        return wrap(np.zeros(array.shape[:-2], np.int64))
    if hermitian:
        values = absolute(linalg_eigvalsh(input.detach()))
        greatest = amax(values, (-1,))
    else:
        values = linalg_svdvals(input.detach())
        greatest = select(values, -1, 0)
    limit = maximum(least, relative * greatest)
    return sum(values > unsqueeze(limit, -1), (-1,))
