"""Softmax and its logarithm along one dim."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.kernels import softmax as kernels
from numgrad.ops.arguments.dims import accept_axis
from numgrad.ops.arguments.reductions import NO_DIM, in_dtype, scanned_dim
from numgrad.ops.core.primitive import Primitive, make_node_class
from numgrad.ops.core.registry import public
from numgrad.ops.core.samples import sample
from numgrad.ops.core.short_reductions import ShortCalls, ShortNode
from numgrad.ops.pointwise.arithmetic import mul, neg, sub
from numgrad.ops.pointwise.exponential import exp
from numgrad.ops.reduction.reductions import sum as sum_

__all__ = ["log_softmax", "softmax"]

_SOFTMAX_BACKWARD: Primitive = Primitive(
    "softmax_backward",
    "SoftmaxBackwardDataBackward0",
    kernels.softmax_gradient,
    ["cotangent", "output"],
    [
        # It is a symmetric map of the cotangent.
        lambda g, output, dim: _SOFTMAX_BACKWARD.apply(g, output, dim=dim),
        lambda g, cotangent, output, dim: sub(
            mul(g, sub(cotangent, sum_(mul(cotangent, output), dim, True))),
            mul(cotangent, sum_(mul(g, output), dim, True)),
        ),
    ],
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
    kernels.log_softmax_gradient,
    ["cotangent", "output"],
    [
        lambda g, output, dim: sub(g, sum_(mul(g, exp(output)), dim, True)),
        lambda g, cotangent, output, dim: neg(mul(mul(g, exp(output)), sum_(cotangent, dim, True))),
    ],
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
    samples=[
        sample("log_softmax", (4,), dim=0),
        sample("log_softmax", (2, 3), dim=0),
        sample("log_softmax", (), dim=-1),
        sample("log_softmax", (2, 0), dim=1),
    ],
)


class _SoftmaxNode(ShortNode):
    """The node of either, which saved its output."""

    __slots__ = ()

    def short_gradient(self, gradient: Any, saved: Any, shape: tuple[int, ...]) -> Any:
        """Run the kernel of the gradient on the spot."""
        dim, name = self.parameters["dim"], self.primitive.name
        run = _short_gradient(name, shape, saved.dtype, dim)
        return None if run is None else run(gradient, saved)


_short_gradient = lru_cache(1 << 10)(kernels.short_gradient)
for _primitive in (_SOFTMAX, _LOG_SOFTMAX):
    _primitive.node_class = make_node_class(
        _primitive.node_class.__name__, _SoftmaxNode, ["y"], primitive=_primitive
    )
_SHORT_SOFTMAX, _SHORT_LOG_SOFTMAX = (
    ShortCalls(
        primitive,
        lambda shape, own, dim, dtype, name=primitive.name: kernels.short(name, shape, own, dim),
    )
    for primitive in (_SOFTMAX, _LOG_SOFTMAX)
)


def _call(short: ShortCalls, input: Any, dim: Any, dtype: Any) -> Tensor:
    primitive = short.primitive
    position = scanned_dim(primitive.name, input, dim)
    computed = input.dtype if dtype is None else dtypes.to_dtype(dtype)
    if not computed.is_floating_point:
        last = "_lastdim" if position >= input._array.ndim - 1 else ""
        raise NotImplementedError(
            f"\"{primitive.name}{last}_kernel_impl\" not implemented for '{computed.scalar_name}'"
        )
    parameters = {"dim": position, "dtype": None if dtype is None else computed.numpy}
    if dtype is None:
        short.remember(input, dim, False, parameters)
    result: Tensor = primitive.apply(input, **parameters)
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
    result: Tensor | None = None if dtype is not None else _SHORT_SOFTMAX.find(input, dim)
    return _call(_SHORT_SOFTMAX, input, dim, dtype) if result is None else result


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
    result: Tensor | None = None if dtype is not None else _SHORT_LOG_SOFTMAX.find(input, dim)
    return _call(_SHORT_LOG_SOFTMAX, input, dim, dtype) if result is None else result
