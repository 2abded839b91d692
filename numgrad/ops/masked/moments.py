"""Masked means, variances and standard deviations."""

from __future__ import annotations

import math
from typing import Any

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.ops.masked.masks import dims_of, mask_of
from numgrad.ops.masked.reductions import OVER_DIMS, Dims, sum
from numgrad.ops.movement.shape import reshape
from numgrad.ops.pointwise.arithmetic import mul, sub
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.pointwise.division import div
from numgrad.ops.pointwise.exponential import sqrt
from numgrad.ops.pointwise.selection import clamp_min
from numgrad.ops.reduction import reductions as plain
from numgrad.ops.signatures.declared import declare

__all__ = ["mean", "std", "var"]


def _counts(
    input: Tensor, mask: Tensor | None, dim: Dims | None, keepdim: bool
) -> tuple[Any, Tensor | None]:
    """Return how many elements each result is of, and the mask in the input's shape."""
    if mask is None:
        shape = input._array.shape
        dims = dims_of(dim, len(shape))
        return math.prod([shape[each] for each in dims if shape]), None
    chosen = mask_of(input, mask)
    return plain.sum(chosen, dim, keepdim), chosen


@declare(f"mean(Tensor input, {OVER_DIMS}", function=False, method=False)
def mean(
    input: Tensor,
    dim: Dims | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return the means of the elements that the mask names; nan where it names none.

    The gradient is g over their number where the mask is True, else 0.

    Parameters
    ----------
    dim, keepdim, mask
        As of `sum`.
    dtype
        Floating point or complex; the input's unless given.

    Raises
    ------
    ValueError
        If the dtype is one of integers or bools.
    IndexError, RuntimeError
        As `sum` does.

    >>> import numgrad as ng
    >>> ng.masked.mean(ng.tensor([3.0, 9.0, 4.0]), mask=ng.tensor([True, False, True]))
    tensor(3.5000)
    """
    chosen = dtype or input.dtype
    if chosen.category < dtypes.FLOATING:
        source = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating "
            f"point or complex dtype. Got: {chosen}"
        )
    count, mask = _counts(input, mask, dim, bool(keepdim))
    return div(sum(input, dim, keepdim=keepdim, dtype=chosen, mask=mask), count)


_SPREAD = (
    "int[1]? dim=None, bool? unbiased=None, *, number? correction=None, bool? keepdim=False, "
    "dtype? dtype=None, Tensor? mask=None)"
)


def _spread(
    input: Tensor,
    dim: Dims | None,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return variances."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    single = dtypes.float32
    if dtype is None:
        dtype = input.dtype if input.dtype.category >= dtypes.FLOATING else single
    within = dtype if dtype.category >= dtypes.FLOATING else single
    count, mask = _counts(input, mask, dim, True)
    total = sum(input, dim, keepdim=True, dtype=dtype, mask=mask)
    apart = sub(input, div(total, count))
    squares = mul(apart, conj(apart))
    result = sum(squares, dim, keepdim=keepdim, dtype=within, mask=mask)
    if mask is not None:
        if not keepdim:
            count = reshape(count, result._array.shape)
        if correction:
            count = clamp_min(sub(count.to(within.to_real()), float(correction)), 0)
    elif correction:
        count = max(count - float(correction), 0.0)
    return div(result, count).to(dtype)


@declare(f"var(Tensor input, {_SPREAD}", function=False, method=False)
def var(
    input: Tensor,
    dim: Dims | None,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return the variances of the elements that the mask names.

    The sum of squares of x - mean is divided by the number of elements less `correction`, but by
    no less than 0: of too few elements it is nan. The gradient is 2 g (x - mean) over the same.

    Parameters
    ----------
    dim, keepdim, mask
        As of `sum`.
    unbiased
        Whether `correction` is 1, which it is unless given, or 0.
    correction
        What the number of elements is less by.
    dtype
        Of the result: the input's unless given, of integers float32. Of complex numbers the
        result is complex.

    Raises
    ------
    AssertionError
        If both `unbiased` and `correction` are given.
    IndexError, RuntimeError
        As `sum` does.

    >>> import numgrad as ng
    >>> ng.masked.var(ng.tensor([3.0, 9.0, 5.0]), mask=ng.tensor([True, False, True]))
    tensor(2.)
    """
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask)


@declare(f"std(Tensor input, {_SPREAD}", function=False, method=False)
def std(
    input: Tensor,
    dim: Dims | None,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool | None,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return the standard deviations of the elements that the mask names: roots of `var`.

    The gradient is that of `var` over twice the result. Arguments and errors are those of `var`.

    >>> import numgrad as ng
    >>> x, mask = ng.tensor([3.0, 9.0, 5.0]), ng.tensor([True, False, True])
    >>> ng.masked.std(x, unbiased=False, mask=mask)
    tensor(1.)
    """
    return sqrt(_spread(input, dim, unbiased, correction, keepdim, dtype, mask))
