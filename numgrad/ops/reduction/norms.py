"""Norms and logsumexp: `norm`, and the logarithm of a sum of exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.kernels import softmax
from numgrad.kernels.move.memory_order import empty_for, in_order_of
from numgrad.kernels.reduce import moments, reductions
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.arguments.reductions import in_dtype, reduced_dims
from numgrad.ops.core.places import laid_out
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.samples import sample
from numgrad.ops.pointwise.arithmetic import mul, neg, sub
from numgrad.ops.pointwise.comparison import eq, isnan
from numgrad.ops.pointwise.complex import absolute, conj, sgn
from numgrad.ops.pointwise.division import div
from numgrad.ops.pointwise.exponential import exp, pow
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction.reductions import restore_dims
from numgrad.ops.reduction.reductions import sum as sum_
from numgrad.ops.signatures.declared import declare

__all__ = ["logsumexp", "norm", "norm_dtype", "norm_rule", "vector_norm"]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _norm(array: Array, dims: Dims, keepdim: bool, p: float, dtype: Any) -> Array:
    return reductions.norm(in_dtype(array, dtype), dims, keepdim, p)


def norm_rule(
    g: Tensor, y: Tensor, input: Tensor, dims: Dims, keepdim: bool, p: float, dtype: Any
) -> Tensor | None:
    """Return g sgn(x) (abs(x) / y) ** (p - 1), and for every p the subgradient that PyTorch takes.

    At 0 it is 0. The infinite norms share g out between the elements of that magnitude.
    """
    if p == 0:
        return None
    if dtype is not None:
        input = upward.cast(input, dtype)
    shape = input._array.shape
    g, y = restore_dims(g, shape, dims, keepdim), restore_dims(y, shape, dims, keepdim)
    if p == 1:
        return mul(sgn(input), g)
    if p == 2:
        return mul(g, _or_0(y, div(input, y)))
    size = absolute(input)
    if math.isinf(p):
        mask = eq(size, y) | isnan(size)
        numbers = sum_(mask, dims, True) if dims else mask
        return mul(sgn(input), mul(div(g, numbers), mask))
    if p < 1:
        scaled = mul(sgn(input), where(eq(input, 0), 0, pow(size, p - 1)))
        return mul(mul(scaled, g), pow(y, 1 - p))
    if p < 2:
        scaled = mul(sgn(input), pow(size, p - 1))
    else:
        scaled = mul(input, pow(size, p - 2))
    return mul(scaled, _or_0(y, div(g, pow(y, p - 1))))


def _or_0(y: Tensor, ratio: Tensor) -> Tensor:
    """Return a ratio to a norm, 0 where that is 0."""
    return laid_out(where(eq(y, 0), 0, ratio), ratio)


def _quick_norm(array: Array, dims: Dims, keepdim: bool, p: float, dtype: Any) -> Any:
    if p != 2 or dtype is not None:
        return None
    return reductions.specialised_norm(array.shape, array.dtype, dims, keepdim)


_NORM: Primitive = Primitive(
    "vector_norm",
    "LinalgVectorNormBackward0",
    _norm,
    ["input"],
    [norm_rule],
    few=_quick_norm,
    samples=[
        sample("norm", (2, 3)),
        sample("norm", (2, 3), p=1, dim=1),
        sample("norm", (2, 3), p=3, dim=0, keepdim=True),
        sample("norm", (4,), low=0.5, p=1.5),
        sample("norm", (4,), low=0.5, p=0.5),
        sample("norm", (4,), low=0.5, p=-2),
        sample("norm", (4,), low=0.1, distinct=True, p=math.inf),
        sample("norm", (2, 3), low=0.1, distinct=True, p=-math.inf, dim=1),
        sample("norm", (), low=1, dim=0),
        sample("norm", (0, 2), dim=1),
    ],
)


def norm_dtype(function: str, input: Tensor, dtype: dtypes.dtype | None) -> np.dtype[Any] | None:
    """Return the dtype to compute in, or None for the input's own."""
    if dtype is None:
        return None
    wanted = "complex for complex" if input._array.dtype.kind == "c" else "real for real"
    if dtype.category < dtypes.FLOATING:
        wanted = "floating point or complex"
    elif dtype.category != input.dtype.category:
        wanted += " inputs"
    else:
        wanted = ""
    if wanted:
        raise RuntimeError(f"{function}: dtype should be {wanted}, but got {dtype.scalar_name}")
    if dtype.numpy.itemsize < input._array.dtype.itemsize:
        raise RuntimeError(
            f"{function}: the dtype of the input ({input.dtype.scalar_name}) should be convertible "
            f"without narrowing to the specified dtype ({dtype.scalar_name})"
        )
    return None if dtype.numpy == input._array.dtype else dtype.numpy


@declare(
    "norm(Tensor input, str? p='fro', int[1]? dim=None, bool keepdim=False, Tensor? out=None, "
    "dtype? dtype=None)",
    "norm(Tensor input, number p, int[1]? dim=None, bool keepdim=False, Tensor? out=None, "
    "dtype? dtype=None)",
    dispatched=True,
)
def norm(
    input: Tensor,
    p: str | float | None,
    dim: tuple[int, ...] | None,
    keepdim: bool,
    dtype: dtypes.dtype | None,
) -> Tensor:
    """Return the p-norm of all elements, or over some dims: ``sum(abs(x) ** p) ** (1 / p)``.

    The gradient is g sgn(x) (abs(x) / y) ** (p - 1), 0 where the norm is 0. Infinite norms share g
    out evenly between the elements of that magnitude. The nuclear norm is that of
    `linalg.matrix_norm`. Mirrors ``torch.norm``.

    Parameters
    ----------
    input
        Floating point or complex; the result is real.
    p
        The order; ``"fro"`` and None are 2, ``"nuc"`` is the sum of singular values. 0 counts what
        is not zero, inf and -inf give the greatest and the least magnitude.
    dim
        What to reduce; None or no dims at all: everything.
    dtype
        Cast to this dtype first.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If the elements are integers or bools; if a dim is named twice; if the order is another
        word; if there are no elements and the order is negative or inf.

    >>> import numgrad as ng
    >>> ng.norm(ng.tensor([3.0, -4.0]))
    tensor(5.)
    """
    if p == "nuc" or (p == "fro" and dim is not None and len(dim) > 2):
        dims = tuple(range(input._array.ndim)) if dim is None else dim
        result: Tensor = upward.matrix_norm(input, p, dims, keepdim, dtype)
        return result
    if p is None or p == "fro":
        p = 2.0
    if isinstance(p, str):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    return vector_norm(input, p, dim, keepdim, dtype)


def vector_norm(
    input: Tensor,
    p: float,
    dim: tuple[int, ...] | None,
    keepdim: bool,
    dtype: dtypes.dtype | None,
) -> Tensor:
    """Return the p-norm of all elements, or over some dims, of arguments of any kind."""
    if isinstance(p, complex):
        raise RuntimeError(
            "linalg.vector_norm: Expected a non-complex scalar as the order of norm."
        )
    array = input._array
    if array.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{input.dtype.scalar_name}"
        )
    for item in dim or ():
        wrap_dim(item, array.ndim)
        reductions.require_norm_elements(array, p, (item,))
    reductions.require_norm_elements(array, p, (), all_dims=not dim)
    dims, chosen = reduced_dims(input, dim), norm_dtype("linalg.vector_norm", input, dtype)
    result: Tensor = _NORM.apply(input, dims=dims, keepdim=keepdim, p=float(p), dtype=chosen)
    return result


def _logsumexp_gradient(
    cotangent: Array, input: Array, output: Array, dims: Dims, keepdim: bool
) -> Array:
    found = softmax.logsumexp_gradient(cotangent, input, output, dims)
    if _are_in_rows(cotangent, input, output):
        return found
    return in_order_of(found, _walked(cotangent, input, output, dims, keepdim))


def _are_in_rows(cotangent: Array, input: Array, output: Array) -> bool:
    by_rows = cotangent.flags.c_contiguous or not any(cotangent.strides)
    return by_rows and input.flags.c_contiguous and output.flags.c_contiguous


def _quick_gradient(
    cotangent: Array, input: Array, output: Array, dims: Dims, keepdim: bool
) -> Any:
    if not _are_in_rows(cotangent, input, output) or cotangent.dtype != input.dtype:
        return None
    return softmax.specialised_logsumexp_gradient(input.shape, input.dtype, dims)


def _walked(cotangent: Array, input: Array, output: Array, dims: Dims, keepdim: bool) -> list[Any]:
    """Return what the loop of ``cotangent * exp(input - output)`` walks."""
    if not keepdim:
        cotangent, output = np.expand_dims(cotangent, dims), np.expand_dims(output, dims)
    return [cotangent, empty_for(input.shape, bool, [input, output])]


_LOGSUMEXP_BACKWARD: Primitive = Primitive(
    "logsumexp_backward",
    "MulBackward0",  # the last of the nodes that PyTorch makes of it
    _logsumexp_gradient,
    ["cotangent", "input", "output"],
    [
        lambda g, input, output, dims, keepdim: sum_(
            mul(g, exp(sub(input, restore_dims(output, input.shape, dims, keepdim)))), dims, keepdim
        ),
        lambda g, y: mul(g, y),
        lambda g, y, dims, keepdim: neg(sum_(mul(g, y), dims, keepdim)),
    ],
    quick=_quick_gradient,
    lies=lambda cotangent, input, output, dims, keepdim: empty_for(
        input.shape, input.dtype, _walked(cotangent, input, output, dims, keepdim)
    ),
    samples=[
        lambda make: (
            _LOGSUMEXP_BACKWARD.apply,
            [make(2), make(2, 3), make(2)],
            {"dims": (1,), "keepdim": False},
        ),
        lambda make: (
            _LOGSUMEXP_BACKWARD.apply,
            [make(1, 3, 1), make(2, 3, 2), make(1, 3, 1)],
            {"dims": (0, 2), "keepdim": True},
        ),
        lambda make: (
            _LOGSUMEXP_BACKWARD.apply,
            [make(), make(), make()],
            {"dims": (), "keepdim": False},
        ),
    ],
)


def _logsumexp_rule(g: Tensor, y: Tensor, input: Tensor, dims: Dims, keepdim: bool) -> Tensor:
    if input._array.dtype.kind == "f":
        result: Tensor = _LOGSUMEXP_BACKWARD.apply(g, input, y, dims=dims, keepdim=keepdim)
        return result
    shape = input._array.shape
    g, y = restore_dims(g, shape, dims, keepdim), restore_dims(y, shape, dims, keepdim)
    return mul(g, conj(exp(sub(input, y))))


_LOGSUMEXP: Primitive = Primitive(
    "logsumexp",
    "LogsumexpBackward0",
    moments.logsumexp,
    ["input"],
    [_logsumexp_rule],
    few=lambda array, dims, keepdim: moments.specialised_logsumexp(
        array.shape, array.dtype, dims, keepdim
    ),
    quick=lambda array, dims, keepdim: moments.prepared_logsumexp(array, dims, keepdim),
    samples=[
        sample("logsumexp", (4,), dim=0),
        sample("logsumexp", (2, 3), dim=(0, 1)),
        sample("logsumexp", (2, 3), dim=-1, keepdim=True),
        sample("logsumexp", (), dim=0),
        sample("logsumexp", (0, 2), dim=1),
    ],
)


@declare(
    "logsumexp(Tensor input, int[1] dim, bool keepdim=False, *, Tensor? out=None)", dispatched=True
)
def logsumexp(input: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """Return ``log(sum(exp(x)))`` over some dims, without overflow; -inf over no elements.

    The gradient is g exp(x - y), the softmax of the elements. Mirrors ``torch.logsumexp``.

    Parameters
    ----------
    input
        Any dtype; bools and integers become the default floating point dtype.
    dim
        What to reduce; no dims at all: everything.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice.

    >>> import numgrad as ng
    >>> ng.logsumexp(ng.tensor([1000.0, 1003.0]), 0)
    tensor(1003.0486)
    """
    dims = reduced_dims(input, dim)
    if input._array.dtype.kind not in "fc":
        input = upward.cast(input, dtypes.default_dtype().numpy)
    result: Tensor = _LOGSUMEXP.apply(input, dims=dims, keepdim=keepdim)
    return result
