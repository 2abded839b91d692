"""Products added to a tensor: addmm, addmv, addr, baddbmm, addbmm."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.float_errors import restore, silence, silent
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.kernels.move.memory_order import empty_for, in_order_of
from numgrad.ops.arguments.factories import Array
from numgrad.ops.arguments.scalar_arrays import check_fits, number_for
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.places import by_columns
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.linalg.products import (
    adjoint_of,
    bmm,
    check_batches,
    check_matrices,
    check_matrix_vector,
    check_multiplies,
    matrix_product,
    mm,
    mv,
    outer_product,
)
from numgrad.ops.movement.unit_dims import expand, expanded_size
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.signatures.declared import declare

__all__ = ["addbmm", "addmm", "addmv", "addr", "baddbmm"]


def _times(g: Any, number: Any) -> Any:
    """Return a cotangent times the conjugate of a number."""
    return g if number == 1 else g * conj(number)


def _sum(input: Array, product: Array, beta: Any, alpha: Any) -> Array:
    """Return ``beta * input + alpha * product``, where a factor 0 stands for leaving that out."""
    if alpha != 1:
        product = product * product.dtype.type(alpha) if alpha != 0 else np.zeros_like(product)
    if beta == 0:
        return np.asarray(product)
    if beta != 1:
        input = input * product.dtype.type(beta)
    return np.asarray(product + input)


def _add_dot(input: Array, left: Array, right: Array, beta: Any, alpha: Any) -> Array:
    before = silence()  # written out: for few numbers, calls count
    try:
        return _sum(input, np.asarray(left.dot(right)), beta, alpha)
    finally:
        restore(before)


@silent
def _add_products(input: Array, left: Array, right: Array, beta: Any, alpha: Any) -> Array:
    return _sum(input, matrix_product(left, right), beta, alpha)


def _add_outer(input: Array, left: Array, right: Array, beta: Any, alpha: Any) -> Array:
    before = silence()
    try:
        found = _sum(input, np.multiply.outer(left, right), beta, alpha)
    finally:
        restore(before)
    if not found.flags.c_contiguous:
        found = np.asarray(found, order="C")
    return in_order_of(found, _walked(input, left, right))


def _walked(input: Array, left: Array, right: Array) -> list[Array]:
    """Return what the loop of an outer product that is added to something walks."""
    return [input, left[:, None], right[None, :]]


def _memory_of_outer(input: Array, vec1: Array, vec2: Array) -> Array:
    return empty_for((vec1.size, vec2.size), input.dtype, _walked(input, vec1, vec2))


@silent
def _add_batches(input: Array, left: Array, right: Array, beta: Any, alpha: Any) -> Array:
    return _sum(input, _sum_of_products(left, right), beta, alpha)


def _sum_of_products(left: Array, right: Array) -> Array:
    """Return the sum of the products of pairs of matrices, as one product of wide matrices."""
    count, rows, inner = left.shape
    wide = left.transpose(1, 0, 2).reshape(rows, count * inner)
    return matrix_product(wide, right.reshape(count * inner, right.shape[2]))


def _samples(function: Any, *cases: tuple[tuple[int, ...], ...]) -> list[Any]:
    """Return the samples of an operation for the shapes of its operands."""
    return [
        lambda make, case=case: (
            function(),
            [make(*shape) for shape in case],
            {"beta": 0.5, "alpha": 2.0},
        )
        for case in cases
    ]


_ADDMM = Primitive(
    "addmm",
    "AddmmBackward0",
    _add_dot,
    ["input", "mat1", "mat2"],
    [
        lambda g, beta: _times(g, beta),
        lambda g, mat2, alpha, mat1_lies: by_columns(
            _times(mm(g, adjoint_of(mat2)), alpha), mat1_lies
        ),
        lambda g, mat1, alpha, mat2_lies: by_columns(
            _times(mm(adjoint_of(mat1), g), alpha), mat2_lies
        ),
    ],
    samples=_samples(
        lambda: addmm, ((2, 2), (2, 3), (3, 2)), ((2,), (1, 3), (3, 2)), ((), (2, 0), (0, 1))
    ),
)
_ADDMV = Primitive(
    "addmv",
    "AddmvBackward0",
    _add_dot,
    ["input", "mat", "vec"],
    [
        lambda g, beta: _times(g, beta),
        lambda g, vec, alpha: _times(outer_product(g, conj(vec)), alpha),
        lambda g, mat, alpha: _times(mv(adjoint_of(mat), g), alpha),
    ],
    samples=_samples(lambda: addmv, ((2,), (2, 3), (3,)), ((), (2, 3), (3,)), ((2,), (2, 0), (0,))),
)
_ADDR = Primitive(
    "addr",
    "AddrBackward0",
    _add_outer,
    ["input", "vec1", "vec2"],
    [
        lambda g, beta: _times(g, beta),
        lambda g, vec2, alpha: _times(mv(g, conj(vec2)), alpha),
        lambda g, vec1, alpha: _times(mv(g.t(), conj(vec1)), alpha),
    ],
    lies=_memory_of_outer,
    samples=_samples(lambda: addr, ((2, 3), (2,), (3,)), ((3,), (2,), (3,)), ((0, 2), (0,), (2,))),
)
_BADDBMM = Primitive(
    "baddbmm",
    "BaddbmmBackward0",
    _add_products,
    ["input", "batch1", "batch2"],
    [
        lambda g, beta: _times(g, beta),
        lambda g, batch2, alpha: _times(bmm(g, adjoint_of(batch2)), alpha),
        lambda g, batch1, alpha: _times(bmm(adjoint_of(batch1), g), alpha),
    ],
    samples=_samples(
        lambda: baddbmm,
        ((2, 2, 2), (2, 2, 3), (2, 3, 2)),
        ((2,), (2, 1, 3), (2, 3, 2)),
        ((0, 2, 2), (0, 2, 3), (0, 3, 2)),
    ),
)
_ADDBMM = Primitive(
    "addbmm",
    "AddbmmBackward0",
    _add_batches,
    ["input", "batch1", "batch2"],
    [
        lambda g, beta: _times(g, beta),
        lambda g, batch2, batch2_shape, alpha: _times(
            bmm(expand(g, (batch2_shape[0], *g.shape)), adjoint_of(batch2)), alpha
        ),
        lambda g, batch1, batch1_shape, alpha: _times(
            bmm(adjoint_of(batch1), expand(g, (batch1_shape[0], *g.shape))), alpha
        ),
    ],
    samples=_samples(
        lambda: addbmm,
        ((2, 2), (2, 2, 3), (2, 3, 2)),
        ((2,), (2, 1, 3), (2, 3, 2)),
        ((2, 2), (0, 2, 3), (0, 3, 2)),
    ),
)


def _factors(function: str, beta: Any, alpha: Any, dtype: dtypes.dtype) -> dict[str, Any]:
    """Return the two factors; integers take only what is left of them without the fraction."""
    factors = {"beta": beta, "alpha": alpha}
    if dtype.is_complex:
        return factors
    if function in ("addmv", "addr"):  # the others take factors of float16 as float32
        for factor in factors.values():
            check_fits(factor, dtype.numpy)
    return {name: number_for(factor, dtype) for name, factor in factors.items()}


_FACTORS = "*, number beta=1, number alpha=1, Tensor? out=None"


def _deprecated(name: str, factors: str) -> tuple[str, str]:
    """Return the signatures that have `beta` and `alpha` where their factors stand."""
    return (
        f"{name}(number beta, Tensor input, number alpha, {factors}, *, Tensor? out=None)",
        f"{name}(number beta, Tensor input, {factors}, *, Tensor? out=None)",
    )


@declare(
    f"addmm(Tensor input, Tensor mat1, Tensor mat2, {_FACTORS})",
    inplace=True,
    dispatched=True,
    deprecated=_deprecated("addmm", "Tensor mat1, Tensor mat2"),
    in_step=("input",),
)
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any, out: Tensor | None
) -> Tensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)``.

    Derivative: beta g, alpha times g times the adjoint of `mat2`, and alpha times the adjoint of
    `mat1` times g.

    Parameters
    ----------
    input : tensor that expands to shape (n, p)
    mat1 : tensor of shape (n, m)
    mat2 : tensor of shape (m, p)
    beta, alpha
        With 0, what it belongs to is left out, nan included.
    out
        Where to put the result, of shape (n, p).

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.addmm(ng.ones(2, 2), ng.eye(2), ng.eye(2), alpha=10)
    tensor([[11.,  1.],
            [ 1., 11.]])
    """
    for name, tensor in (("mat1", mat1), ("mat2", mat2)):
        if tensor._array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {tensor._array.ndim}-D tensor")
    if input._array.dtype != mat2._array.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {input.dtype.scalar_name} and "
            f"{mat2.dtype.scalar_name}"
        )
    check_matrices(mat1, mat2)
    expanded_size(input, (mat1._array.shape[0], mat2._array.shape[1]))
    factors = _factors("addmm", beta, alpha, mat1.dtype)
    return write_result("addmm", _ADDMM.apply(input, mat1, mat2, **factors), out)


@declare(
    f"addmv(Tensor input, Tensor mat, Tensor vec, {_FACTORS})",
    inplace=True,
    dispatched=True,
    deprecated=_deprecated("addmv", "Tensor mat, Tensor vec"),
    in_step=("input",),
)
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any, out: Tensor | None
) -> Tensor:
    """Return ``beta * input + alpha * (mat @ vec)``.

    Derivative: beta g, alpha times the outer product of g and conj(vec), and alpha times the
    adjoint of `mat` times g.

    Parameters
    ----------
    input : tensor that expands to shape (n,)
    mat : tensor of shape (n, m)
    vec : tensor of shape (m,)
    beta, alpha
        With 0, what it belongs to is left out, nan included.
    out
        Where to put the result, of shape (n,).

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.addmv(ng.ones(2), ng.eye(2), ng.tensor([1.0, 2.0]), alpha=10)
    tensor([11., 21.])
    """
    check_matrix_vector(mat, vec, input)
    factors = _factors("addmv", beta, alpha, mat.dtype)
    return write_result("addmv", _ADDMV.apply(input, mat, vec, **factors), out)


@declare(
    f"addr(Tensor input, Tensor vec1, Tensor vec2, {_FACTORS})",
    inplace=True,
    dispatched=True,
    deprecated=_deprecated("addr", "Tensor vec1, Tensor vec2"),
    apart=("vec1",),
    in_step=("input", "vec2"),
)
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, beta: Any, alpha: Any, out: Tensor | None
) -> Tensor:
    """Return ``beta * input + alpha * outer(vec1, vec2)``.

    Derivative: beta g, alpha g @ conj(vec2), and alpha g.T @ conj(vec1).

    Parameters
    ----------
    input : tensor that expands to shape (n, m)
    vec1 : tensor of shape (n,)
    vec2 : tensor of shape (m,)
    beta, alpha
        With 0, what it belongs to is left out, nan included.
    out
        Where to put the result, of shape (n, m).

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> ng.addr(ng.zeros(2, 2), ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    for name, tensor in (("vec1", vec1), ("vec2", vec2)):
        if tensor._array.ndim != 1:
            raise RuntimeError(
                f"addr: Expected 1-D argument {name}, but got {tensor._array.ndim}-D"
            )
    expanded_size(input, (vec1._array.size, vec2._array.size))
    common = result_dtype([input, vec1, vec2])
    input, vec1, vec2 = (upward.cast(x, common.numpy) for x in (input, vec1, vec2))
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, bool) and common is not dtypes.bool_:
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    factors = _factors("addr", beta, alpha, common)
    return write_result("addr", _ADDR.apply(input, vec1, vec2, **factors), out)


@declare(
    f"baddbmm(Tensor input, Tensor batch1, Tensor batch2, {_FACTORS})",
    inplace=True,
    dispatched=True,
    deprecated=_deprecated("baddbmm", "Tensor batch1, Tensor batch2"),
    in_step=("input",),
)
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any, out: Tensor | None
) -> Tensor:
    """Return ``beta * input + alpha * bmm(batch1, batch2)``.

    Derivative: beta g, and alpha times that of `bmm`.

    Parameters
    ----------
    input : tensor that expands to shape (b, n, p)
    batch1 : tensor of shape (b, n, m)
    batch2 : tensor of shape (b, m, p)
    beta, alpha
        With 0, what it belongs to is left out, nan included.
    out
        Where to put the result, of shape (b, n, p).

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.baddbmm(ng.ones(1), ng.ones(2, 1, 3), ng.ones(2, 3, 1)).flatten()
    tensor([4., 4.])
    """
    named = (("input", input), ("batch1", batch1), ("batch2", batch2))
    check_batches(batch1, batch2)
    if input._array.dtype != batch1._array.dtype:
        kinds = [tensor.dtype.cpp_name for _, tensor in named]
        raise RuntimeError(
            "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}".format(*kinds)
        )
    rows, columns = batch1._array.shape[1], batch2._array.shape[2]
    expanded_size(input, (batch1._array.shape[0], rows, columns))
    check_multiplies("bmm", batch1)
    factors = _factors("baddbmm", beta, alpha, batch1.dtype)
    return write_result("baddbmm", _BADDBMM.apply(input, batch1, batch2, **factors), out)


@declare(
    f"addbmm(Tensor input, Tensor batch1, Tensor batch2, {_FACTORS})",
    inplace=True,
    dispatched=True,
    deprecated=_deprecated("addbmm", "Tensor batch1, Tensor batch2"),
    in_step=("input",),
)
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any, out: Tensor | None
) -> Tensor:
    """Return ``beta * input + alpha * bmm(batch1, batch2).sum(0)``.

    Derivative: beta g, and alpha times that of `bmm` with g for every pair.

    Parameters
    ----------
    input : tensor that expands to shape (n, p)
    batch1 : tensor of shape (b, n, m)
    batch2 : tensor of shape (b, m, p)
    beta, alpha
        With 0, what it belongs to is left out, nan included.
    out
        Where to put the result, of shape (n, p).

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.addbmm(ng.ones(1, 1), ng.ones(2, 1, 3), ng.ones(2, 3, 1))
    tensor([[7.]])
    """
    named = (("input", input), ("batch1", batch1), ("batch2", batch2))
    for name, tensor in named[1:]:
        if tensor._array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    left, right = batch1._array.shape, batch2._array.shape
    if left[0] != right[0]:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {left[0]} and {right[0]}"
        )
    if left[2] != right[1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({left[1]}x{left[2]} and {right[1]}x{right[2]})"
        )
    expanded_size(input, (left[1], right[2]))
    for name, tensor in (("self", input), ("mat1", batch1)):
        if tensor._array.dtype != batch2._array.dtype:
            raise RuntimeError(
                f"{name} and mat2 must have the same dtype, but got {tensor.dtype.scalar_name} and "
                f"{batch2.dtype.scalar_name}"
            )
    check_multiplies("bmm", batch1)
    factors = _factors("addbmm", beta, alpha, batch1.dtype)
    return write_result("addbmm", _ADDBMM.apply(input, batch1, batch2, **factors), out)
