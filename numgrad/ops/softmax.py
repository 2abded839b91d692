"""Softmax and its logarithm along one dim."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad import dtypes
from numgrad.graph.core import Tensor
from numgrad.kernels import reductions
from numgrad.kernels.elementwise import Elementwise
from numgrad.kernels.expression import Symbol
from numgrad.ops.arguments import accept_axis
from numgrad.ops.arithmetic import mul, sub
from numgrad.ops.exponential import exp
from numgrad.ops.functions import public
from numgrad.ops.primitive import Primitive
from numgrad.ops.reduction_arguments import NO_DIM, in_dtype, scanned_dim
from numgrad.ops.reductions import sum as sum_
from numgrad.ops.samples import sample

__all__ = ["log_softmax", "softmax"]

Array = np.ndarray[Any, Any]

_shifted_exp = Elementwise(
    "exponential relative to the greatest element",
    ["input", "top"],
    lambda symbols: [Symbol.apply("exp", symbols["input"] - symbols["top"])],
)
_quotient = Elementwise(
    "share of the total",
    ["input", "total"],
    lambda symbols: [symbols["input"] / symbols["total"]],
)
_log_share = Elementwise(
    "logarithm of the share of the total",
    ["input", "top", "total"],
    lambda symbols: [symbols["input"] - symbols["top"] - Symbol.apply("log", symbols["total"])],
)


def _exponentials(array: Array, dim: int) -> tuple[Array, Array, Array]:
    """Return exponentials relative to the greatest element along a dim, it, and their total."""
    dims = (dim,) if array.ndim else ()
    top = reductions.amax(array, dims, True)
    (powers,) = _shifted_exp(array.shape, (array, top), (array.dtype,))
    return powers, top, reductions.sum(powers, dims, True)


def _softmax(array: Array, dim: int, dtype: Any) -> Array:
    array = in_dtype(array, dtype)
    if not array.size:
        return np.empty(array.shape, array.dtype)
    powers, _, total = _exponentials(array, dim)
    result: Array = _quotient(array.shape, (powers, total), (array.dtype,))[0]
    return result


def _log_softmax(array: Array, dim: int, dtype: Any) -> Array:
    array = in_dtype(array, dtype)
    if not array.size:
        return np.empty(array.shape, array.dtype)
    _, top, total = _exponentials(array, dim)
    result: Array = _log_share(array.shape, (array, top, total), (array.dtype,))[0]
    return result


def _softmax_rule(g: Tensor, y: Tensor, dim: int) -> Tensor:
    weighted = mul(g, y)
    return sub(weighted, mul(y, sum_(weighted, dim, True)))


def _log_softmax_rule(g: Tensor, y: Tensor, dim: int) -> Tensor:
    return sub(g, mul(exp(y), sum_(g, dim, True)))


_SOFTMAX: Primitive = Primitive(
    "softmax",
    "SoftmaxBackward0",
    _softmax,
    ["input"],
    [_softmax_rule],
    samples=[
        sample("softmax", (4,), dim=0),
        sample("softmax", (2, 3), dim=0),
        sample("softmax", (), dim=-1),
        sample("softmax", (2, 0), dim=1),
    ],
)
_LOG_SOFTMAX: Primitive = Primitive(
    "log_softmax",
    "LogSoftmaxBackward0",
    _log_softmax,
    ["input"],
    [_log_softmax_rule],
    samples=[
        sample("log_softmax", (4,), dim=0),
        sample("log_softmax", (2, 3), dim=0),
        sample("log_softmax", (), dim=-1),
        sample("log_softmax", (2, 0), dim=1),
    ],
)


def _call(primitive: Primitive, input: Any, dim: Any, dtype: Any) -> Tensor:
    position = scanned_dim(primitive.name, input, dim)
    computed = input.dtype if dtype is None else dtypes.to_dtype(dtype)
    if not computed.is_floating_point:
        last = "_lastdim" if position >= input._array.ndim - 1 else ""
        raise NotImplementedError(
            f"\"{primitive.name}{last}_kernel_impl\" not implemented for '{computed.scalar_name}'"
        )
    result: Tensor = primitive.apply(
        input, dim=position, dtype=None if dtype is None else computed.numpy
    )
    return result


@public()
@accept_axis
def softmax(input: Tensor, dim: Any = NO_DIM, dtype: Any = None) -> Tensor:
    """Return the exponentials divided by their sum along `dim`, without overflow.

    The gradient is y (g - sum(g y)). Mirrors ``torch.softmax``.

    Parameters
    ----------
    input : tensor
        Floating point, unless `dtype` is.
    dim : int
    dtype : dtype, optional
        Cast to this dtype first.

    Raises
    ------
    IndexError
        If there is no such dim.
    NotImplementedError
        If the elements are not real floating point numbers.

    >>> import numgrad as ng
    >>> ng.softmax(ng.tensor([1000.0, 1000.0]), 0)
    tensor([0.5000, 0.5000])
    """
    return _call(_SOFTMAX, input, dim, dtype)


@public()
@accept_axis
def log_softmax(input: Tensor, dim: Any = NO_DIM, dtype: Any = None) -> Tensor:
    """Return the logarithm of `softmax`, exact also where that underflows.

    The gradient is g - exp(y) sum(g). Mirrors ``torch.log_softmax``.

    Parameters
    ----------
    input : tensor
        Floating point, unless `dtype` is.
    dim : int
    dtype : dtype, optional
        Cast to this dtype first.

    Raises
    ------
    IndexError
        If there is no such dim.
    NotImplementedError
        If the elements are not real floating point numbers.

    >>> import numgrad as ng
    >>> ng.log_softmax(ng.tensor([0.0, 1000.0]), 0)
    tensor([-1000.,     0.])
    """
    return _call(_LOG_SOFTMAX, input, dim, dtype)
