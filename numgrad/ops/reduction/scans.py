"""Cumulative operations: cumsum, cumprod, logcumsumexp."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.kernels.reduce import recurrences, scans
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.arguments.reductions import in_dtype, read_dtype
from numgrad.ops.core.places import laid_out
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.samples import sample
from numgrad.ops.pointwise.arithmetic import mul, sub
from numgrad.ops.pointwise.comparison import eq
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.pointwise.exponential import exp
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare

__all__ = ["cumprod", "cumsum", "exclusive_product", "logcumsumexp"]

Array = np.ndarray[Any, Any]


def _scanned(scan: Any, array: Array, dim: int, reverse: bool, dtype: Any) -> Array:
    return in_dtype(scan(in_dtype(array, dtype), dim, reverse=reverse), dtype)


def _quick_scan(name: str, array: Array, dim: int, reverse: bool, dtype: Any) -> Any:
    return (
        None
        if dtype is not None
        else scans.specialised(name, array.shape, array.dtype, dim, reverse)
    )


def _is_one(tensor: Tensor, dim: int) -> bool:
    """Whether there is at most one element along a dim; a tensor without dims has one."""
    return tensor._array.size <= 1 or bool(tensor._array.shape[dim] == 1)


_CUMSUM: Primitive = Primitive(
    "cumsum",
    "CumsumBackward0",
    lambda input, dim, reverse, dtype: _scanned(scans.cumsum, input, dim, reverse, dtype),
    ["input"],
    [
        lambda g, dim, reverse: (
            g if _is_one(g, dim) else _CUMSUM.apply(g, dim=dim, reverse=not reverse, dtype=None)
        )
    ],
    linear=True,
    few=lambda input, dim, reverse, dtype: _quick_scan("cumsum", input, dim, reverse, dtype),
    samples=[
        sample("cumsum", (4,), dim=0),
        sample("cumsum", (2, 3), dim=-2),
        sample("cumsum", (), dim=0),
        sample("cumsum", (2, 0), dim=1),
    ],
)


def _scan(primitive: Primitive, input: Tensor, dim: int, dtype: dtypes.dtype | None) -> Tensor:
    at = wrap_dim(dim, input._array.ndim)
    if dtype is dtypes.bool_ and input._array.ndim and input._array.size:
        raise NotImplementedError(f"\"{primitive.name}_out_cpu\" not implemented for 'Bool'")
    chosen = read_dtype(input, dtype)
    result: Tensor = primitive.apply(input, dim=at, reverse=False, dtype=chosen)
    return result


@declare(
    "cumsum(Tensor input, int dim, *, dtype? dtype=None, Tensor? out=None)",
    inplace=True,
    casts=True,
    dispatched=True,
    in_step=("input",),
)
def cumsum(input: Tensor, dim: int, dtype: dtypes.dtype | None) -> Tensor:
    """Return the sums of all elements up to each along `dim`.

    The gradient is the cumulative sum of g from the end. Mirrors ``torch.cumsum``.

    Parameters
    ----------
    input
        Any dtype; bools and integers give int64.
    dtype
        Cast to this dtype first.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If `dtype` is an integer type and the input requires grad.
    NotImplementedError
        If `dtype` is bool.

    >>> import numgrad as ng
    >>> ng.cumsum(ng.tensor([1.0, 2.0, 4.0]), 0)
    tensor([1., 3., 7.])
    """
    return _scan(_CUMSUM, input, dim, dtype)


def _shifted(array: Array, dim: int, by: int, fill: float) -> Array:
    """Return the array moved by one along a dim, with `fill` in the place that gets free."""
    if array.ndim == 0 or array.shape[dim] == 0:
        return np.full_like(array, fill)
    result = np.empty(array.shape, array.dtype)
    head, tail = (slice(None),) * dim + (slice(1, None),), (slice(None),) * dim + (slice(None, -1),)
    if by > 0:
        result[head] = array[tail]
        result[(slice(None),) * dim + (slice(0, 1),)] = fill
    else:
        result[tail] = array[head]
        result[(slice(None),) * dim + (slice(-1, None),)] = fill
    return result


# Moving by one, what neighbours say to each other in the rules below.
_SHIFT: Primitive = Primitive(
    "shift",
    "ShiftBackward0",
    _shifted,
    ["input"],
    [lambda g, dim, by: _SHIFT.apply(g, dim=dim, by=-by, fill=0.0)],
    samples=[
        sample("shift", (2, 3), dim=1, by=1, fill=1.0),
        sample("shift", (3,), dim=0, by=-1, fill=0.0),
        sample("shift", (), dim=0, by=1, fill=1.0),
    ],
)


def _factor_rule(g: Tensor, y: Tensor, factors: Tensor, dim: int, reverse: bool) -> Tensor:
    """Return the product of the cotangent that runs one way and the result that runs the other.

    Factor i connects the elements i - 1 and i, whichever way the recurrence runs.
    """
    other = _RECURRENCE.apply(conj(factors), g, dim=dim, reverse=not reverse)
    ahead, behind = (other, conj(y)) if reverse else (conj(y), other)
    product: Tensor = mul(_SHIFT.apply(ahead, dim=dim, by=1, fill=0.0), behind)
    return product


# y[i] = terms[i] + factors[i] y[i - 1]; in reverse y[i] = terms[i] + factors[i + 1] y[i + 1].
_RECURRENCE: Primitive = Primitive(
    "linear_recurrence",
    "LinearRecurrenceBackward0",
    recurrences.linear_recurrence,
    ["factors", "terms"],
    [
        _factor_rule,
        lambda g, factors, dim, reverse: _RECURRENCE.apply(
            conj(factors), g, dim=dim, reverse=not reverse
        ),
    ],
    samples=[
        lambda make: (_RECURRENCE.apply, [make(4), make(4)], {"dim": 0, "reverse": False}),
        lambda make: (_RECURRENCE.apply, [make(3, 2), make(3, 2)], {"dim": 0, "reverse": True}),
        lambda make: (_RECURRENCE.apply, [make(), make()], {"dim": 0, "reverse": False}),
        lambda make: (_RECURRENCE.apply, [make(0, 2), make(0, 2)], {"dim": 0, "reverse": True}),
    ],
)


def _cumprod_rule(
    g: Tensor, y: Tensor, input: Tensor, dim: int, reverse: bool, dtype: Any
) -> Tensor:
    """Return the gradient of a cumulative product, without dividing, so that zeros are no case.

    The derivative of y[k] by x[i] is the product of what stands before i, times that of what stands
    between i and k. Summed over k, the latter is a recurrence from the other end.
    """
    if _is_one(g, dim):
        return g
    if dtype is not None:
        input = upward.cast(input, dtype)
    before = _SHIFT.apply(y, dim=dim, by=-1 if reverse else 1, fill=1.0)
    # Factor i of a recurrence connects i - 1 and i: in reverse that is what element i - 1 does.
    factors = _SHIFT.apply(input, dim=dim, by=1, fill=1.0) if reverse else input
    between = _RECURRENCE.apply(conj(factors), g, dim=dim, reverse=not reverse)
    product: Tensor = mul(conj(before), between)
    return product


_CUMPROD: Primitive = Primitive(
    "cumprod",
    "CumprodBackward0",
    lambda input, dim, reverse, dtype: _scanned(scans.cumprod, input, dim, reverse, dtype),
    ["input"],
    [_cumprod_rule],
    few=lambda input, dim, reverse, dtype: _quick_scan("cumprod", input, dim, reverse, dtype),
    samples=[
        sample("cumprod", (4,), dim=0),
        sample("cumprod", (3, 2), dim=0),
        sample("cumprod", (2, 3), dim=-1, dtype=dtypes.complex128),
        sample("cumprod", (5,), zeros=[1, 3], dim=0),
        sample(lambda input, dim: exclusive_product(input, dim), (2, 4), dim=1),
        sample(lambda input, dim: exclusive_product(input, dim), (5,), zeros=[1, 3], dim=0),
        sample("cumprod", (), dim=0),
        sample("cumprod", (0,), dim=0),
    ],
)


@declare(
    "cumprod(Tensor input, int dim, *, dtype? dtype=None, Tensor? out=None)",
    inplace=True,
    casts=True,
    dispatched=True,
    in_step=("input",),
)
def cumprod(input: Tensor, dim: int, dtype: dtypes.dtype | None) -> Tensor:
    """Return the products of all elements up to each along `dim`.

    The gradient at i is the product of all elements before i, times the sum over all k from i on of
    g[k] and the elements between i and k. Mirrors ``torch.cumprod``, but infinite and overflowing
    elements do not make the gradients of others nan.

    Parameters
    ----------
    input
        Any dtype; bools and integers give int64.
    dtype
        Cast to this dtype first.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If `dtype` is an integer type and the input requires grad.
    NotImplementedError
        If `dtype` is bool.

    >>> import numgrad as ng
    >>> ng.cumprod(ng.tensor([1.0, 2.0, 4.0]), 0)
    tensor([1., 2., 8.])
    """
    return _scan(_CUMPROD, input, dim, dtype)


def exclusive_product(input: Tensor, dim: int) -> Tensor:
    """Return, for each element, the product of all the others along `dim`."""
    forward = _CUMPROD.apply(input, dim=dim, reverse=False, dtype=None)
    backward = _CUMPROD.apply(input, dim=dim, reverse=True, dtype=None)
    product: Tensor = mul(
        _SHIFT.apply(forward, dim=dim, by=1, fill=1.0),
        _SHIFT.apply(backward, dim=dim, by=-1, fill=1.0),
    )
    return product


def _logcumsumexp(array: Array, dim: int) -> Array:
    if array.dtype.kind not in "fc":
        name = dtypes.of_numpy(array.dtype).scalar_name
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{name}'")
    return recurrences.logcumsumexp(array, dim)


def _logcumsumexp_rule(g: Tensor, y: Tensor, input: Tensor, dim: int) -> Tensor:
    """Return the sum over k from i on of g[k] exp(x[i] - y[k]), a recurrence from the end.

    Its factors exp(y[i - 1] - y[i]) are at most 1 for real numbers, so that nothing overflows.
    Equal infinities are no distance apart: only infinite elements themselves get nan.
    """
    before = _SHIFT.apply(y, dim=dim, by=1, fill=0.0)
    factors = conj(exp(where(eq(before, y), 0, sub(before, y))))
    total = _RECURRENCE.apply(factors, g, dim=dim, reverse=True)
    return laid_out(mul(conj(exp(sub(input, y))), total))


_LOGCUMSUMEXP: Primitive = Primitive(
    "logcumsumexp",
    "LogcumsumexpBackward0",
    _logcumsumexp,
    ["input"],
    [_logcumsumexp_rule],
    samples=[
        sample("logcumsumexp", (4,), dim=0),
        sample("logcumsumexp", (2, 3), dim=0),
        sample("logcumsumexp", (), dim=-1),
        sample("logcumsumexp", (2, 0), dim=1),
    ],
)


@declare(
    "logcumsumexp(Tensor input, int dim, *, Tensor? out=None)", dispatched=True, in_step=("input",)
)
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Return the logarithms of the cumulative sums of exponentials along `dim`, without overflow.

    The gradient at i is the sum over all k from i on of g[k] exp(x[i] - y[k]). Mirrors
    ``torch.logcumsumexp``.

    Parameters
    ----------
    input
        Floating point or complex.

    Raises
    ------
    NotImplementedError
        If the elements are integers or bools.
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.logcumsumexp(ng.tensor([1000.0, 1003.0]), 0)
    tensor([1000.0000, 1003.0486])
    """
    result: Tensor = _LOGCUMSUMEXP.apply(input, dim=wrap_dim(dim, input._array.ndim))
    return result
