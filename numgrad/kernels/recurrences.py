"""Scans that carry more than a sum: linear recurrences, and logarithms of cumulative sums.

A linear recurrence is what the derivatives of other scans are. The transpose of one that runs
forward is one that runs backward with the same factors, so it is its own derivative, too.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.kernels import scalar
from numgrad.kernels.compile import kernel
from numgrad.kernels.layout import Array
from numgrad.kernels.memory import empty
from numgrad.kernels.packing import contiguous

__all__ = ["linear_recurrence", "logcumsumexp"]


@kernel
def _recur_forward(factors, terms, out, outer, n, inner):  # type: ignore[no-untyped-def]
    for block in range(outer):
        start = block * n * inner
        for j in range(inner):
            out[start + j] = terms[start + j]
        for p in range(start + inner, start + n * inner):
            out[p] = terms[p] + factors[p] * out[p - inner]


@kernel
def _recur_backward(factors, terms, out, outer, n, inner):  # type: ignore[no-untyped-def]
    for block in range(outer):
        start = block * n * inner
        last = start + (n - 1) * inner
        for j in range(inner):
            out[last + j] = terms[last + j]
        for p in range(last - 1, start - 1, -1):
            out[p] = terms[p] + factors[p + inner] * out[p + inner]


@kernel
def _logcumsumexp(a, out, tops, totals, outer, n, inner):  # type: ignore[no-untyped-def]
    """Carry the greatest element and the sum of exponentials relative to it."""
    one = out.dtype.type(1)
    for block in range(outer):
        start = block * n * inner
        for j in range(inner):
            tops[j] = out[start + j] = a[start + j]
            totals[j] = one
        for i in range(1, n):
            p = start + i * inner
            for j in range(inner):
                x, top = a[p + j], tops[j]
                if x <= top:
                    if x > -np.inf and top < np.inf:
                        totals[j] += scalar.exp(x - top)
                elif x > top:
                    if x < np.inf and top > -np.inf:
                        totals[j] = one + totals[j] * scalar.exp(top - x)
                    else:
                        totals[j] = one
                    tops[j] = x
                else:  # one of them is nan, and stays
                    tops[j] = x + top
                out[p + j] = tops[j] + scalar.log(totals[j])


def _around(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """Return the sizes before, at and behind a dim; a 0-d array counts as one of size 1."""
    shape = shape or (1,)
    return prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])


def linear_recurrence(factors: Array, terms: Array, dim: int, *, reverse: bool = False) -> Array:
    """Return ``y[i] = terms[i] + factors[i] * y[i - 1]`` along a dim.

    Parameters
    ----------
    factors, terms : numpy.ndarray
        Floating point or complex, of the same shape and dtype; any strides. The first factor is not
        used.
    dim : int
        The dim, non-negative; 0 for 0-d arrays.
    reverse : bool
        Run from the end: ``y[i] = terms[i] + factors[i + 1] * y[i + 1]``, the transpose.

    Examples
    --------
    >>> linear_recurrence(np.array([9.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]), 0)
    array([ 1.,  3., 10.])
    >>> linear_recurrence(np.array([9.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]), 0, reverse=True)
    array([9., 4., 1.])
    """
    shape = terms.shape
    out = empty((terms.size,), terms.dtype)
    if terms.size:
        run: Any = _recur_backward if reverse else _recur_forward
        run(
            contiguous(factors),
            contiguous(terms),
            out,
            *_around(shape, dim),
        )
    return out.reshape(shape)


def logcumsumexp(array: Array, dim: int) -> Array:
    """Return the logarithms of cumulative sums of exponentials, without overflow.

    Mirrors ``torch.logcumsumexp`` for floating point elements; any strides.

    Examples
    --------
    >>> logcumsumexp(np.array([1000.0, 1000.0]), 0)
    array([1000.        , 1000.69314718])
    """
    shape = array.shape
    out = empty((array.size,), array.dtype)
    if array.size:
        outer, n, inner = _around(shape, dim)
        carry = np.empty((2, inner), array.dtype)
        _logcumsumexp(contiguous(array), out, carry[0], carry[1], outer, n, inner)
    return out.reshape(shape)
