"""Norms of matrices and vectors, and condition numbers, as ``torch.linalg`` has them.

Those of matrices are made of singular values, or of sums of absolute values over rows and columns.
"""

from __future__ import annotations

import math

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor, fresh
from numgrad.graph.upward import upward
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.linalg.permuting import permute
from numgrad.ops.matrices.checks import require_floating, require_matrix, require_square
from numgrad.ops.matrices.outs import casting, of_one_dtype
from numgrad.ops.matrices.spectra.singular_values import linalg_svdvals
from numgrad.ops.matrices.systems.solving import linalg_inv_ex
from numgrad.ops.movement.slicing import select
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.pointwise.arithmetic import reciprocal
from numgrad.ops.pointwise.rounding import nan_to_num
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction.extrema import amax, amin
from numgrad.ops.reduction.norms import norm_dtype, vector_norm
from numgrad.ops.reduction.reductions import sum
from numgrad.ops.signatures.declared import declare

__all__ = [
    "linalg_cond",
    "linalg_matrix_norm",
    "linalg_norm",
    "linalg_vector_norm",
]

Dims = tuple[int, ...]
_NAME = "linalg.matrix_norm"


@declare(
    "linalg_vector_norm(Tensor input, number ord=2, int[1]? dim=None, bool keepdim=False, *, "
    "dtype? dtype=None, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_vector_norm(
    input: Tensor, ord: float, dim: Dims | None, keepdim: bool, dtype: dtypes.dtype | None
) -> Tensor:
    """Return the norm of all elements, or over some dims: ``sum(abs(x) ** ord) ** (1 / ord)``.

    The gradient is g sgn(x) (abs(x) / y) ** (ord - 1), 0 where the norm is 0. Infinite norms share
    g out evenly between the elements of that magnitude.

    Parameters
    ----------
    input
        Floating point or complex; the result is real.
    ord
        The order. 0 counts what is not zero, inf and -inf give the greatest and least magnitude.
    dim
        What to reduce; None or no dims at all: everything.
    dtype
        Cast to this dtype first.

    Raises
    ------
    RuntimeError
        If the elements are integers or bools; if there are none and the order is negative or inf.

    >>> import numgrad as ng
    >>> ng.linalg.vector_norm(ng.tensor([[3.0, -4.0], [0.0, 1.0]]), 1, dim=1)
    tensor([7., 1.])
    """
    return vector_norm(input, ord, dim, keepdim, dtype)


# --- of matrices ---------------------------------------------------------------------------------


def _written(dims: Dims) -> str:
    return " ".join(map(str, dims))


def _checked_dims(A: Tensor, dim: Dims, dtype: dtypes.dtype | None, wide: bool) -> Dims:
    """Return two dims, counted from the front, or raise in PyTorch's order of what can be wrong."""
    require_matrix(_NAME, A)
    require_floating(_NAME, A, wide)
    if len(dim) != 2:
        raise RuntimeError(f"{_NAME}: dim must be a 2-tuple. Got {_written(dim)}")
    dims = tuple([wrap_dim(each, A._array.ndim) for each in dim])
    if dims[0] == dims[1]:
        raise RuntimeError(f"{_NAME}: dims must be different. Got ({dims[0]}, {dims[1]})")
    norm_dtype(_NAME, A, dtype)
    return dims


def _singular_values(A: Tensor, dims: Dims, dtype: dtypes.dtype | None) -> Tensor:
    """Return the singular values of the matrices in two dims, behind all other dims."""
    if dtype is not None:
        A = upward.cast(A, dtype.numpy)
    others = [dim for dim in range(A._array.ndim) if dim not in dims]
    return linalg_svdvals(permute(A, (*others, *dims)))


def _with_dims(result: Tensor, dims: Dims) -> Tensor:
    """Return a result with one dim of length 1 behind as one with two, where the reduced were."""
    result = unsqueeze(result, -1)
    order = [dim for dim in range(result._array.ndim) if dim not in dims] + list(dims)
    back: Tensor = permute(result, tuple(np.argsort(order).tolist()))
    return back


def _greatest(input: Tensor, ord: float, dim: int, keepdim: bool) -> Tensor:
    """Return the greatest or the least along a dim: 0 if nothing is there to be the greatest."""
    if ord > 0 and not input._array.shape[dim]:
        return sum(input, (dim,), keepdim)
    result: Tensor = (amax if ord > 0 else amin)(input, (dim,), keepdim)
    return result


def _number(value: float) -> str:
    return f"{value:g}"


def _by_number(
    A: Tensor, ord: float, dim: Dims, keepdim: bool, dtype: dtypes.dtype | None
) -> Tensor:
    if isinstance(ord, complex):
        raise RuntimeError(f"{_NAME}: Expected a non-complex scalar as the order of norm.")
    if abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"{_NAME}: Order {_number(ord)} not supported.")
    dims = _checked_dims(A, dim, dtype, wide=abs(ord) == 2)
    if abs(ord) == 2:
        result = _greatest(_singular_values(A, dims, dtype), ord, -1, keepdim)
        return _with_dims(result, dims) if keepdim else result
    # The infinite norm is the 1-norm of the transpose.
    first, second = dims if abs(ord) == 1 else dims[::-1]
    if not keepdim and first < second:
        second -= 1
    return _greatest(vector_norm(A, 1.0, (first,), keepdim, dtype), ord, second, keepdim)


def matrix_norm_by_name(
    A: Tensor, ord: str, dim: Dims, keepdim: bool, dtype: dtypes.dtype | None
) -> Tensor:
    """Return Frobenius' norm of the matrices in two dims, or the nuclear one."""
    if ord not in ("fro", "nuc"):
        raise RuntimeError(f"{_NAME}: Order {ord} not supported.")
    dims = _checked_dims(A, dim, dtype, wide=ord == "nuc")
    if ord == "fro":
        return vector_norm(A, 2.0, dims, keepdim, dtype)
    result = sum(_singular_values(A, dims, dtype), (-1,), keepdim)
    return _with_dims(result, dims) if keepdim else result


upward.matrix_norm = matrix_norm_by_name


def _matrix_norm(
    A: Tensor, ord: str | float, dim: Dims, keepdim: bool, dtype: dtypes.dtype | None
) -> Tensor:
    if isinstance(ord, str):
        return matrix_norm_by_name(A, ord, dim, keepdim, dtype)
    return _by_number(A, ord, dim, keepdim, dtype)


@declare(
    "linalg_matrix_norm(Tensor input, number ord, int[] dim=(-2, -1), bool keepdim=False, *, "
    "dtype? dtype=None, Tensor? out=None)",
    "linalg_matrix_norm(Tensor input, str ord='fro', int[] dim=(-2, -1), bool keepdim=False, *, "
    "dtype? dtype=None, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    write=of_one_dtype("linalg.matrix_norm"),
)
def linalg_matrix_norm(
    input: Tensor, ord: str | float, dim: Dims, keepdim: bool, dtype: dtypes.dtype | None
) -> Tensor:
    """Return a norm of the matrices in two dims.

    The gradient is that of what the norm is made of: of singular values U diag(g) V^H; the greatest
    and the least of equal ones share g out evenly.

    Parameters
    ----------
    input : tensor of two or more dims
        Floating point or complex; the result is real.
    ord
        ``"fro"``: Frobenius' norm. ``"nuc"``: the sum of the singular values; 2, -2: the greatest
        and the least of them. 1, -1: the greatest and the least sum of absolute values over a
        column; inf, -inf: over a row.
    dim
        The dims of rows and of columns.
    dtype
        Cast to this dtype first.

    Raises
    ------
    RuntimeError
        If the order is another, or the dims are not two.

    >>> import numgrad as ng
    >>> ng.linalg.matrix_norm(ng.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    return _matrix_norm(input, ord, dim, keepdim, dtype)


@declare(
    "linalg_norm(Tensor input, number? ord=None, int[1]? dim=None, bool keepdim=False, *, "
    "dtype? dtype=None, Tensor? out=None)",
    "linalg_norm(Tensor input, str ord, int[1]? dim=None, bool keepdim=False, *, "
    "dtype? dtype=None, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    write=of_one_dtype("linalg.norm"),
)
def linalg_norm(
    input: Tensor,
    ord: str | float | None,
    dim: Dims | None,
    keepdim: bool,
    dtype: dtypes.dtype | None,
) -> Tensor:
    """Return a norm of vectors, where one dim is reduced, or of matrices, where two are.

    The gradient is that of `linalg.vector_norm` and `linalg.matrix_norm`, of which this is either.

    Parameters
    ----------
    input
        Floating point or complex; the result is real.
    ord
        As those two have it; None: 2, of all elements.
    dim
        One dim or two. None: all elements if there is no order, else the one or the two there are.
    dtype
        Cast to this dtype first.

    Raises
    ------
    RuntimeError
        If there are other dims than one or two.

    >>> import numgrad as ng
    >>> ng.linalg.norm(ng.tensor([[3.0, 0.0], [0.0, 4.0]]), "nuc")
    tensor(7.)
    """
    ndim = input._array.ndim
    if dim is not None:
        if len(dim) not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}"
            )
    elif ord is not None and ndim not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{ndim}D."
        )
    if isinstance(ord, str):
        return matrix_norm_by_name(input, ord, (0, 1) if dim is None else dim, keepdim, dtype)
    if ord is not None and (ndim == 2 if dim is None else len(dim) == 2):
        return _by_number(input, ord, (0, 1) if dim is None else dim, keepdim, dtype)
    return vector_norm(input, 2.0 if ord is None else ord, dim, keepdim, dtype)


# --- condition numbers ---------------------------------------------------------------------------


def _name_of(p: str | float) -> str:
    return p if isinstance(p, str) else _number(p)


def _by_inverse(input: Tensor, p: str | float) -> Tensor:
    """Return the product of the norms of matrices and their inverses, inf for singular ones."""
    inverse, info = linalg_inv_ex(input)
    singular = unsqueeze(unsqueeze(info > 0, -1), -1)
    inverse = where(singular, math.inf, inverse)
    product = _matrix_norm(input, p, (-2, -1), False, None) * _matrix_norm(
        inverse, p, (-2, -1), False, None
    )
    result: Tensor = nan_to_num(product, math.inf, math.inf, -math.inf)
    return result


@declare(
    "linalg_cond(Tensor input, number? p=None, *, Tensor? out=None)",
    "linalg_cond(Tensor input, str p, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    write=casting("linalg.cond"),
)
def linalg_cond(input: Tensor, p: str | float | None) -> Tensor:
    """Return the condition numbers of matrices: how much a relative error may grow in a system.

    That is the product of a norm of the matrix and of its inverse, inf for singular matrices. The
    gradient is that of these.

    Parameters
    ----------
    input : tensor of shape (..., n, n), or (..., m, n) for the orders None, 2 and -2
    p
        The order of `linalg.matrix_norm`. None is 2: the greatest singular value by the least.

    Raises
    ------
    RuntimeError
        If the order is another, or a matrix is not square.

    >>> import numgrad as ng
    >>> ng.linalg.cond(ng.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    order = 2.0 if p is None else p
    by_name = isinstance(order, str)
    if not by_name and input._array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    known = ("fro", "nuc") if by_name else (1, -1, 2, -2, math.inf, -math.inf)
    by_values = order in (2, -2)
    if by_name:
        require_square(f"linalg.cond(ord={order})", input)
    if order not in known:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {_name_of(order)}")
    if not input._array.size:
        return fresh(np.zeros(input._array.shape[:-2], input._array.real.dtype))
    if not by_values and not by_name:
        require_square(f"linalg.cond(ord={_name_of(order)})", input)
    if by_values:
        values = linalg_svdvals(input)
        greatest, least = select(values, -1, 0), select(values, -1, -1)
        result: Tensor = least / greatest if order == -2 else greatest / least
        return result
    if order == "nuc":
        values = linalg_svdvals(input)
        return sum(values, (-1,)) * sum(reciprocal(values), (-1,))
    return _by_inverse(input, order)
