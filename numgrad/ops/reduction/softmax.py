"""Softmax and its logarithm along one dim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.kernels import softmax as kernels
from numgrad.kernels.move.layout import Array
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.arguments.reductions import in_dtype
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.samples import sample
from numgrad.ops.pointwise.arithmetic import mul, neg, sub
from numgrad.ops.pointwise.exponential import exp
from numgrad.ops.reduction.reductions import sum as sum_
from numgrad.ops.signatures.declared import declare

__all__ = ["log_softmax", "softmax"]


def _refuse(name: str, ndim: int, dim: int, computed: dtypes.dtype) -> None:
    """Raise PyTorch's error unless a dtype is of floating point."""
    if not computed.is_floating_point:
        last = "_lastdim" if dim >= ndim - 1 else ""
        raise NotImplementedError(
            f"\"{name}{last}_kernel_impl\" not implemented for '{computed.scalar_name}'"
        )


def _gradient_of_floats(name: str, kernel: Callable[..., Array]) -> Callable[..., Array]:
    def forward(cotangent: Array, output: Array, dim: int) -> Array:
        if output.size:
            _refuse(name, output.ndim, dim, dtypes.of_numpy(output.dtype))
        return kernel(cotangent, output, dim)

    return forward


def _quick_gradient(name: str) -> Any:
    return lambda cotangent, output, dim: kernels.specialised_gradient(
        name, output.shape, output.dtype, dim
    )


def _quick(name: str) -> Any:
    return lambda input, dim, dtype: (
        None if dtype is not None else kernels.specialised(name, input.shape, input.dtype, dim)
    )


_SOFTMAX_BACKWARD: Primitive = Primitive(
    "softmax_backward",
    "SoftmaxBackwardDataBackward0",
    _gradient_of_floats("softmax_backward", kernels.softmax_gradient),
    ["cotangent", "output"],
    [
        # It is a symmetric map of the cotangent.
        lambda g, output, dim: _SOFTMAX_BACKWARD.apply(g, output, dim=dim),
        lambda g, cotangent, output, dim: sub(
            mul(g, sub(cotangent, sum_(mul(cotangent, output), dim, True))),
            mul(cotangent, sum_(mul(g, output), dim, True)),
        ),
    ],
    few=_quick_gradient("softmax"),
    samples=[
        lambda make: (_SOFTMAX_BACKWARD.apply, [make(2, 3), make(2, 3)], {"dim": 1}),
        lambda make: (_SOFTMAX_BACKWARD.apply, [make(2, 3), make(2, 3)], {"dim": 0}),
        lambda make: (_SOFTMAX_BACKWARD.apply, [make(), make()], {"dim": 0}),
        lambda make: (_SOFTMAX_BACKWARD.apply, [make(2, 0), make(2, 0)], {"dim": 1}),
    ],
)
_LOG_SOFTMAX_BACKWARD: Primitive = Primitive(
    "log_softmax_backward",
    "LogSoftmaxBackwardDataBackward0",
    _gradient_of_floats("log_softmax_backward", kernels.log_softmax_gradient),
    ["cotangent", "output"],
    [
        lambda g, output, dim: sub(g, sum_(mul(g, exp(output)), dim, True)),
        lambda g, cotangent, output, dim: neg(mul(mul(g, exp(output)), sum_(cotangent, dim, True))),
    ],
    few=_quick_gradient("log_softmax"),
    samples=[
        lambda make: (_LOG_SOFTMAX_BACKWARD.apply, [make(2, 3), make(2, 3)], {"dim": 1}),
        lambda make: (_LOG_SOFTMAX_BACKWARD.apply, [make(2, 3), make(2, 3)], {"dim": 0}),
        lambda make: (_LOG_SOFTMAX_BACKWARD.apply, [make(), make()], {"dim": 0}),
        lambda make: (_LOG_SOFTMAX_BACKWARD.apply, [make(2, 0), make(2, 0)], {"dim": 1}),
    ],
)
_SOFTMAX: Primitive = Primitive(
    "softmax",
    "SoftmaxBackward0",
    lambda input, dim, dtype: kernels.softmax(in_dtype(input, dtype), dim),
    ["input"],
    [lambda g, y, dim: _SOFTMAX_BACKWARD.apply(g, y, dim=dim)],
    few=_quick("softmax"),
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
    lambda input, dim, dtype: kernels.log_softmax(in_dtype(input, dtype), dim),
    ["input"],
    [lambda g, y, dim: _LOG_SOFTMAX_BACKWARD.apply(g, y, dim=dim)],
    few=_quick("log_softmax"),
    samples=[
        sample("log_softmax", (4,), dim=0),
        sample("log_softmax", (2, 3), dim=0),
        sample("log_softmax", (), dim=-1),
        sample("log_softmax", (2, 0), dim=1),
    ],
)


def _call(primitive: Primitive, input: Tensor, dim: int, dtype: dtypes.dtype | None) -> Tensor:
    position = wrap_dim(dim, input._array.ndim)
    if input._array.size:  # of none there is nothing to compute
        _refuse(primitive.name, input._array.ndim, position, dtype or input.dtype)
    chosen = None if dtype is None else dtype.numpy
    result: Tensor = primitive.apply(input, dim=position, dtype=chosen)
    return result


@declare("softmax(Tensor input, int dim, dtype? dtype=None, *, Tensor? out=None)", dispatched=True)
def softmax(input: Tensor, dim: int, dtype: dtypes.dtype | None) -> Tensor:
    """Return the exponentials divided by their sum along `dim`, without overflow.

    The gradient is y (g - sum(g y)). Mirrors ``torch.softmax``.

    Parameters
    ----------
    input
        Floating point, unless `dtype` is.
    dtype
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


@declare(
    "log_softmax(Tensor input, int dim, dtype? dtype=None, *, Tensor? out=None)", dispatched=True
)
def log_softmax(input: Tensor, dim: int, dtype: dtypes.dtype | None) -> Tensor:
    """Return the logarithm of `softmax`, exact also where that underflows.

    The gradient is g - exp(y) sum(g). Mirrors ``torch.log_softmax``.

    Parameters
    ----------
    input
        Floating point, unless `dtype` is.
    dtype
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
