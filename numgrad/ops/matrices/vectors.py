"""Products of vectors along a dim, and matrices of powers: `cross`, `linalg.vecdot`, `vander`."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.move.along import dim_first
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.indexing.rearranging import flip
from numgrad.ops.linalg.products import vdot
from numgrad.ops.movement.casts import cast, expand_to
from numgrad.ops.movement.joining import cat
from numgrad.ops.movement.slicing import narrow
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.reduction.reductions import sum
from numgrad.ops.reduction.scans import cumprod
from numgrad.ops.signatures.declared import declare

__all__ = ["cross", "linalg_cross", "linalg_vander", "linalg_vecdot", "vander"]

Array = np.ndarray[Any, Any]


# --- cross products ------------------------------------------------------------------------------


@silent
def _crossed(array: Array, other: Array, dim: int) -> Array:
    result = np.empty(array.shape, array.dtype)
    left, right, target = (dim_first(each, dim) for each in (array, other, result))
    for k, (one, two) in enumerate(((1, 2), (2, 0), (0, 1))):
        target[k] = left[one] * right[two] - left[two] * right[one]
    return result


def _crossed_by(left: Tensor, right: Tensor, dim: int) -> Tensor:
    result: Tensor = _CROSS.apply(left, right, dim=dim)
    return result


_CROSS = Primitive(
    "linalg_cross",
    "LinalgCrossBackward0",
    _crossed,
    ["input", "other"],
    [
        lambda g, other, dim: _crossed_by(conj(other), g, dim),
        lambda g, input, dim: _crossed_by(g, conj(input), dim),
    ],
    samples=[
        lambda make: (linalg_cross, [make(3), make(3)], {}),
        lambda make: (linalg_cross, [make(2, 3, 2), make(1, 3, 2)], {"dim": 1}),
        lambda make: (cross, [make(2, 3), make(2, 3)], {}),
        lambda make: (cross, [make(0, 3), make(0, 3)], {}),
    ],
)


def _cross(input: Tensor, other: Tensor, dim: int) -> Tensor:
    left, right = input._array, other._array
    if left.ndim != right.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if not left.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = wrap_dim(dim, left.ndim)
    if left.shape[at] != 3 or right.shape[at] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {left.shape[at]} and "
            f"{right.shape[at]}"
        )
    if left.shape != right.shape:
        shape = tuple(broadcast_shapes([left.shape, right.shape]))
        input, other = expand_to(input, shape), expand_to(other, shape)
    if left.dtype != right.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.scalar_name} but found {other.dtype.scalar_name}"
        )
    if left.dtype.kind == "b":
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    return _crossed_by(input, other, at)


@declare(
    "linalg_cross(Tensor input, Tensor other, *, int dim=-1, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    apart=("input", "other"),
)
def linalg_cross(input: Tensor, other: Tensor, dim: int) -> Tensor:
    """Return the cross products of vectors of three elements.

    Derivative: b* x g for the first vector, g x a* for the second.

    Parameters
    ----------
    input, other : tensors of one dtype, and shapes that broadcast
        The vectors a and b.
    dim
        Along which they lie.

    Raises
    ------
    RuntimeError
        If they have not three elements, or the numbers of dims or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.linalg.cross(ng.tensor([1.0, 0.0, 0.0]), ng.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return _cross(input, other, dim)


@declare(
    "cross(Tensor input, Tensor other, int? dim=None, *, Tensor? out=None)",
    dispatched=True,
    apart=("input", "other"),
)
def cross(input: Tensor, other: Tensor, dim: int | None) -> Tensor:
    """Return what `linalg.cross` does, by default along the first dim that has three elements.

    The gradient is the same.

    Parameters
    ----------
    input, other : tensors of one dtype, and shapes that broadcast
    dim
        Along which the vectors lie.

    Raises
    ------
    RuntimeError
        If no dim has three elements, or the numbers of dims or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.cross(ng.tensor([1.0, 0.0, 0.0]), ng.tensor([0.0, 0.0, 1.0]))
    tensor([ 0., -1.,  0.])
    """
    if dim is None:
        if 3 not in input._array.shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = input._array.shape.index(3)
    return _cross(input, other, dim)


# --- dot products --------------------------------------------------------------------------------


def _to_one_dtype(function: str, result: Tensor, out: Any) -> Tensor:
    if isinstance(out, Tensor) and out._array.dtype != result._array.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected out of dtype{result.dtype.scalar_name} but found "
            f"{out.dtype.scalar_name}"
        )
    written: Tensor = write_result(function, result, out)
    return written


@declare(
    "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    write=_to_one_dtype,
)
def linalg_vecdot(x: Tensor, y: Tensor, dim: int) -> Tensor:
    """Return the dot products of vectors along a dim, of the conjugates of the first ones.

    Derivative: g* y for the first vector, g x for the second.

    Parameters
    ----------
    x, y : tensors of one dtype, floating point or complex, and shapes that broadcast
    dim
        Along which they lie.

    Raises
    ------
    RuntimeError
        If the dtypes differ, or the shapes do not broadcast.

    >>> import numgrad as ng
    >>> ng.linalg.vecdot(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), ng.ones(2))
    tensor([3., 7.])
    """
    if x._array.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.vecdot: Expected a floating point or complex tensor as input. Got "
            f"{x.dtype.scalar_name}"
        )
    if x._array.dtype != y._array.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{x.dtype.scalar_name} and y of type {y.dtype.scalar_name} instead"
        )
    if x._array.ndim == y._array.ndim == 1:
        wrap_dim(dim, 1)
        result: Tensor = vdot(x, y)
        return result
    product = conj(x) * y
    result = sum(product, (dim,))
    return result


# --- powers --------------------------------------------------------------------------------------


def _powers(x: Tensor, count: int) -> Tensor:
    """Return 1, x, x^2 and so on, of so many exponents, along a last dim."""
    shape = x._array.shape
    ones = fresh(np.ones((*shape, 1), x._array.dtype))
    if count < 2:
        return narrow(ones, -1, 0, count)
    repeated = expand_to(unsqueeze(x, -1), (*shape, count - 1))
    result: Tensor = cat([ones, cumprod(repeated, -1)], -1)
    return result


def _wide(x: Tensor) -> Tensor:
    return cast(x, np.dtype(np.int64)) if x._array.dtype.kind in "biu" else x


@declare("linalg_vander(Tensor x, *, int? N=None)", function=False, method=False)
def linalg_vander(x: Tensor, N: int | None) -> Tensor:
    """Return the matrices of Vandermonde: the powers of numbers, exponents going up.

    The gradient is the sum of k g_k x^(k - 1).

    Parameters
    ----------
    x : tensor of shape (..., n)
        Not of bools, nor of float16.
    N
        How many exponents; by default as many as numbers.

    Raises
    ------
    RuntimeError
        If there are less than two, or the dtype is another one.

    >>> import numgrad as ng
    >>> ng.linalg.vander(ng.tensor([2.0, 3.0]), N=3)
    tensor([[1., 2., 4.],
            [1., 3., 9.]])
    """
    array = x._array
    if array.dtype.kind == "b" or array.dtype == np.float16:
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            f"{x.dtype.scalar_name}"
        )
    if not array.ndim:
        x = unsqueeze(x, 0)
    count = x._array.shape[-1] if N is None else N
    if count < 2:
        raise RuntimeError("N must be greater than 1.")
    return _powers(_wide(x), count)


@declare("vander(Tensor x, int? N=None, bool increasing=False)", method=False)
def vander(x: Tensor, N: int | None, increasing: bool) -> Tensor:
    """Return the matrix of Vandermonde: the powers of numbers, exponents going down.

    The gradient is the sum of k g_k x^(k - 1).

    Parameters
    ----------
    x : tensor of shape (n,)
    N
        How many exponents; by default as many as numbers.
    increasing
        Let exponents go up.

    Raises
    ------
    RuntimeError
        If `x` has not one dim, or `N` is negative.

    >>> import numgrad as ng
    >>> ng.vander(ng.tensor([2.0, 3.0]), N=3)
    tensor([[4., 2., 1.],
            [9., 3., 1.]])
    """
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x._array.size if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    result = _powers(_wide(x), count)
    return result if increasing else flip(result, (1,))
