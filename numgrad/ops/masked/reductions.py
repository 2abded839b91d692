"""Masked sums, products, extremes, medians and norms, and the positions of extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.masked.masks import dims_of, left, sum_dtype
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction import argreduce, extrema, norms
from numgrad.ops.reduction import prod as products
from numgrad.ops.reduction import reductions as plain
from numgrad.ops.signatures.declared import declare
from numgrad.ops.statistics.middles import nanmedian

__all__ = ["amax", "amin", "argmax", "argmin", "logsumexp", "median", "norm", "prod", "sum"]

Dims = tuple[int, ...]
OVER_DIMS = "int[1]? dim=None, *, bool? keepdim=False, dtype? dtype=None, Tensor? mask=None)"


@declare(f"sum(Tensor input, {OVER_DIMS}", function=False, method=False)
def sum(
    input: Tensor,
    dim: Dims | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return the sums of the elements that the mask names, over all dims or some.

    The gradient is g where the mask is True, else 0. Mirrors ``torch.masked.sum``, as the others
    of ``numgrad.masked`` do theirs.

    Parameters
    ----------
    dim
        What to reduce; None or no dims at all: everything.
    keepdim
        Whether the result has those dims, of size 1.
    dtype
        Of the result, and of the sums; of small integers int64 unless given.
    mask : tensor of bools, optional
        True where an element counts; of a shape that expands to the input's. Others are taken
        for bools. Where nothing counts, the result is 0, as other reductions have their identity.

    Raises
    ------
    IndexError
        If there is no such dim, or the mask has more dims than the input.
    RuntimeError
        If a dim is named twice, or the mask does not expand to the input's shape.

    >>> import numgrad as ng
    >>> x = ng.tensor([[-3.0, -2.0, -1.0], [0.0, 1.0, 2.0]])
    >>> mask = ng.tensor([[True, False, True], [False, False, False]])
    >>> ng.masked.sum(x, 1, mask=mask)
    tensor([-4.,  0.])
    """
    dims = dims_of(dim, input._array.ndim)
    return plain.sum(left("sum", input, mask), dims, bool(keepdim), dtype=sum_dtype(input, dtype))


@declare(f"prod(Tensor input, {OVER_DIMS}", function=False, method=False)
def prod(
    input: Tensor,
    dim: Dims | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return the products of the elements that the mask names; 1 where it names none.

    The gradient is g times the product of the others, 0 where the mask is False. Arguments and
    errors are those of `sum`.

    >>> import numgrad as ng
    >>> ng.masked.prod(ng.tensor([3.0, 0.0, 5.0]), mask=ng.tensor([True, False, True]))
    tensor(15.)
    """
    dims = dims_of(dim, input._array.ndim)
    result = left("prod", input, mask).to(sum_dtype(input, dtype))
    for each in reversed(dims):
        result = products.prod(result, each, bool(keepdim))
    return result


@declare(f"amax(Tensor input, {OVER_DIMS}", function=False, method=False)
def amax(
    input: Tensor,
    dim: Dims | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return the greatest of the elements that the mask names.

    Where it names none that is -inf, or the least integer of the dtype. The gradient is shared
    out evenly between the elements that are equal to the greatest.

    Parameters
    ----------
    dim, keepdim, mask
        As of `sum`.
    dtype
        What the result is converted to.

    Raises
    ------
    NotImplementedError
        If there is a mask for complex numbers, bools, or unsigned integers of more than 8 bits.
    IndexError, RuntimeError
        As `sum` and ``numgrad.amax`` do.

    >>> import numgrad as ng
    >>> ng.masked.amax(ng.tensor([3.0, 7.0, 5.0]), mask=ng.tensor([True, False, True]))
    tensor(5.)
    """
    chosen = left("amax", input, mask)
    result = extrema.amax(chosen, dims_of(dim, input._array.ndim), bool(keepdim))
    return result if dtype is None else result.to(dtype)


@declare(f"amin(Tensor input, {OVER_DIMS}", function=False, method=False)
def amin(
    input: Tensor,
    dim: Dims | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return the least of the elements that the mask names.

    Where it names none that is inf, or the greatest integer of the dtype. The gradient is shared
    out evenly between the elements that are equal to the least. Arguments and errors are those of
    `amax`.

    >>> import numgrad as ng
    >>> ng.masked.amin(ng.tensor([5.0, 1.0, 3.0]), mask=ng.tensor([True, False, True]))
    tensor(3.)
    """
    chosen = left("amin", input, mask)
    result = extrema.amin(chosen, dims_of(dim, input._array.ndim), bool(keepdim))
    return result if dtype is None else result.to(dtype)


_POSITION = "int? dim=None, *, bool? keepdim=False, dtype? dtype=None, Tensor? mask=None)"


@declare(f"argmax(Tensor input, {_POSITION}", function=False, method=False)
def argmax(
    input: Tensor,
    dim: int | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return where the greatest of the elements is that the mask names; 0 where it names none.

    There is no gradient.

    Parameters
    ----------
    dim
        What to reduce; None: everything, and positions are those of the flattened tensor.
    keepdim, mask
        As of `sum`.
    dtype
        Of the result: the input's unless given, floating point numbers too, as in PyTorch.

    Raises
    ------
    NotImplementedError
        If there is a mask for complex numbers, bools, or unsigned integers of more than 8 bits.
    IndexError, RuntimeError
        As `sum` and ``numgrad.argmax`` do.

    >>> import numgrad as ng
    >>> ng.masked.argmax(ng.tensor([3, 7, 5]), mask=ng.tensor([True, False, True]))
    tensor(2)
    """
    found = argreduce.argmax(left("argmax", input, mask), dim, bool(keepdim))
    return found.to(dtype or input.dtype)


@declare(f"argmin(Tensor input, {_POSITION}", function=False, method=False)
def argmin(
    input: Tensor,
    dim: int | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return where the least of the elements is that the mask names; 0 where it names none.

    There is no gradient. Arguments and errors are those of `argmax`.

    >>> import numgrad as ng
    >>> ng.masked.argmin(ng.tensor([5, 1, 3]), mask=ng.tensor([True, False, True]))
    tensor(2)
    """
    found = argreduce.argmin(left("argmin", input, mask), dim, bool(keepdim))
    return found.to(dtype or input.dtype)


@at_run_time
def _all_numbers(values: Any) -> Any:
    """Return medians; raise if there is none of some row."""
    if np.isnan(values).any():
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return values


@declare(
    "median(Tensor input, int dim=-1, *, bool keepdim=False, dtype? dtype=None, Tensor? mask=None)",
    function=False,
    method=False,
)
def median(
    input: Tensor, dim: int, keepdim: bool, dtype: dtypes.dtype | None, mask: Tensor | None
) -> Tensor:
    """Return the medians along a dim of the elements that the mask names and that are not nan.

    Of an even number of elements it is the lower of the two in the middle; where there are none,
    it is nan. The gradient goes to the element itself.

    Parameters
    ----------
    keepdim, mask
        As of `sum`.
    dtype
        What medians of integers are converted to; they are computed in float32.

    Raises
    ------
    ValueError
        If the mask names no element of a row of integers.
    IndexError, RuntimeError
        As `sum` does.

    >>> import numgrad as ng
    >>> x = ng.tensor([4.0, 9.0, 1.0, 3.0])
    >>> ng.masked.median(x, mask=ng.tensor([True, False, True, True]))
    tensor(3.)
    """
    at = wrap_dim(dim, input._array.ndim)
    floating = input.dtype.is_floating_point
    numbers = input if floating else input.to(dtypes.float32)
    found: Tensor = nanmedian(left("median", numbers, mask), at, keepdim).values
    if floating:
        return found
    # Who traces has the check run for what it returns; the gradient goes by the other way.
    checked = where(found == found, found, wrap(_all_numbers(found._array)))
    return checked.to(dtype or input.dtype)


@declare(f"logsumexp(Tensor input, {OVER_DIMS}", function=False, method=False)
def logsumexp(
    input: Tensor,
    dim: Dims | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return the logarithms of the sums of exponentials of the elements that the mask names.

    Where it names none, that is -inf. The gradient is g times the masked `softmax`.

    Parameters
    ----------
    dim, keepdim, mask
        As of `sum`.
    dtype
        What the result is converted to: the input's unless given, integers too, as in PyTorch.

    Raises
    ------
    IndexError, RuntimeError
        As `sum` does.

    >>> import numgrad as ng
    >>> ng.masked.logsumexp(ng.tensor([1.0, 99.0, 1.0]), mask=ng.tensor([True, False, True]))
    tensor(1.6931)
    """
    dims = dims_of(dim, input._array.ndim)
    result = norms.logsumexp(left("logsumexp", input, mask), dims, bool(keepdim))
    return result.to(dtype or input.dtype)


@declare(
    "norm(Tensor input, number ord=2.0, int[1]? dim=None, *, bool? keepdim=False, "
    "dtype? dtype=None, Tensor? mask=None)",
    function=False,
    method=False,
)
def norm(
    input: Tensor,
    ord: float,
    dim: Dims | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return the norms of the elements that the mask names: ``sum(abs(x) ** ord) ** (1 / ord)``.

    Where it names none, that is 0, of order -inf inf. The gradient is that of
    ``linalg.vector_norm``.

    Parameters
    ----------
    ord
        The order, as of ``linalg.vector_norm``.
    dim, keepdim, mask
        As of `sum`.
    dtype
        Cast to this dtype first.

    Raises
    ------
    AssertionError
        If there is a mask for what is not floating point, and the order is -inf.
    IndexError, RuntimeError
        As `sum` and ``linalg.vector_norm`` do.

    >>> import numgrad as ng
    >>> ng.masked.norm(ng.tensor([3.0, 9.0, 4.0]), mask=ng.tensor([True, False, True]))
    tensor(5.)
    """
    identity = 0.0
    if mask is not None and ord == -np.inf:
        if not input.dtype.is_floating_point:
            raise AssertionError(f"input must be floating point, got {input.dtype}")
        identity = np.inf
    chosen = left("norm", input, mask, identity)
    dims = dims_of(dim, input._array.ndim)
    return norms.vector_norm(chosen, ord, dims, bool(keepdim), dtype or input.dtype)
