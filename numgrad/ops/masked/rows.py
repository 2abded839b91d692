"""Masked scans, softmax, normalize and logaddexp: results of the input's shape."""

from __future__ import annotations

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.masked.masks import left
from numgrad.ops.masked.reductions import norm
from numgrad.ops.pointwise import logarithms
from numgrad.ops.pointwise.arithmetic import neg
from numgrad.ops.pointwise.division import div
from numgrad.ops.pointwise.selection import maximum
from numgrad.ops.reduction import scans
from numgrad.ops.reduction import softmax as plain
from numgrad.ops.signatures.declared import declare

__all__ = ["cumprod", "cumsum", "log_softmax", "logaddexp", "normalize", "softmax", "softmin"]

_ALONG = "int dim, *, dtype? dtype=None, Tensor? mask=None)"


@declare(f"cumsum(Tensor input, {_ALONG}", function=False, method=False)
def cumsum(input: Tensor, dim: int, dtype: dtypes.dtype | None, mask: Tensor | None) -> Tensor:
    """Return the cumulative sums along a dim of the elements that the mask names.

    The gradient is the cumulative sum of g from the end, 0 where the mask is False.

    Parameters
    ----------
    dtype
        Of the result: the input's unless given.
    mask
        As of `sum`.

    Raises
    ------
    IndexError, RuntimeError
        As `sum` does.

    >>> import numgrad as ng
    >>> ng.masked.cumsum(ng.tensor([3.0, 9.0, 4.0]), 0, mask=ng.tensor([True, False, True]))
    tensor([3., 3., 7.])
    """
    at, chosen = wrap_dim(dim, input._array.ndim), dtype or input.dtype
    return scans.cumsum(left("sum", input, mask), at, dtype=chosen)


@declare(f"cumprod(Tensor input, {_ALONG}", function=False, method=False)
def cumprod(input: Tensor, dim: int, dtype: dtypes.dtype | None, mask: Tensor | None) -> Tensor:
    """Return the cumulative products along a dim of the elements that the mask names.

    The gradient is that of ``numgrad.cumprod``, 0 where the mask is False. Arguments and errors
    are those of `cumsum`.

    >>> import numgrad as ng
    >>> ng.masked.cumprod(ng.tensor([3.0, 9.0, 4.0]), 0, mask=ng.tensor([True, False, True]))
    tensor([ 3.,  3., 12.])
    """
    at, chosen = wrap_dim(dim, input._array.ndim), dtype or input.dtype
    return scans.cumprod(left("prod", input, mask), at, dtype=chosen)


@declare(f"softmax(Tensor input, {_ALONG}", function=False, method=False)
def softmax(input: Tensor, dim: int, dtype: dtypes.dtype | None, mask: Tensor | None) -> Tensor:
    """Return the exponentials divided by their sum, over the elements that the mask names.

    The others are 0; nan in a row of which it names none. The gradient is y (g - sum(g y)).

    Parameters
    ----------
    dtype
        Cast to this dtype first.
    mask
        As of `sum`.

    Raises
    ------
    NotImplementedError
        If the elements are no floating point numbers and no dtype is given.
    IndexError, RuntimeError
        As `sum` does.

    >>> import numgrad as ng
    >>> ng.masked.softmax(ng.tensor([3.0, 9.0, 3.0]), 0, mask=ng.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    at, chosen = wrap_dim(dim, input._array.ndim), dtype or input.dtype
    return plain.softmax(left("amax", input, mask), at, dtype=chosen)


@declare(f"log_softmax(Tensor input, {_ALONG}", function=False, method=False)
def log_softmax(input: Tensor, dim: int, dtype: dtypes.dtype | None, mask: Tensor | None) -> Tensor:
    """Return the logarithms of the masked `softmax`, exact also where that underflows.

    They are -inf where the mask is False. The gradient is g - softmax(x) sum(g). Arguments and
    errors are those of `softmax`.

    >>> import numgrad as ng
    >>> ng.masked.log_softmax(ng.tensor([3.0, 9.0, 3.0]), 0, mask=ng.tensor([True, False, True]))
    tensor([-0.6931,    -inf, -0.6931])
    """
    at, chosen = wrap_dim(dim, input._array.ndim), dtype or input.dtype
    return plain.log_softmax(left("amax", input, mask), at, dtype=chosen)


@declare(f"softmin(Tensor input, {_ALONG}", function=False, method=False)
def softmin(input: Tensor, dim: int, dtype: dtypes.dtype | None, mask: Tensor | None) -> Tensor:
    """Return the masked `softmax` of the negative input.

    The gradient is y (sum(g y) - g). Arguments and errors are those of `softmax`.

    >>> import numgrad as ng
    >>> ng.masked.softmin(ng.tensor([3.0, 1.0, 3.0]), 0, mask=ng.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    at, chosen = wrap_dim(dim, input._array.ndim), dtype or input.dtype
    return plain.softmax(neg(left("amin", input, mask)), at, dtype=chosen)


@declare(
    "normalize(Tensor input, number ord, int dim, *, float eps=1e-12, dtype? dtype=None, "
    "Tensor? mask=None)",
    function=False,
    method=False,
)
def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    eps: float,
    dtype: dtypes.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    """Return the elements that the mask names, divided by their norms along a dim.

    The others are 0. The gradient is (g - y sum(g y)) over the norm, for norms of order 2.

    Parameters
    ----------
    ord
        The order of the norm, as of ``linalg.vector_norm``.
    eps
        What no norm counts as less than.
    dtype
        Of the norms: the input's unless given.
    mask
        As of `sum`.

    Raises
    ------
    IndexError, RuntimeError, AssertionError
        As `norm` does.

    >>> import numgrad as ng
    >>> x, mask = ng.tensor([3.0, 9.0, 4.0]), ng.tensor([True, False, True])
    >>> ng.masked.normalize(x, 2.0, 0, mask=mask)
    tensor([0.6000, 0.0000, 0.8000])
    """
    chosen = left("sum", input, mask)
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    least = fresh(length._array.dtype.type(eps).reshape(()))
    return div(chosen, maximum(length, least))


@declare(
    "logaddexp(Tensor input, Tensor other, *, dtype? dtype=None, Tensor? input_mask=None, "
    "Tensor? other_mask=None)",
    function=False,
    method=False,
)
def logaddexp(
    input: Tensor,
    other: Tensor,
    dtype: dtypes.dtype | None,
    input_mask: Tensor | None,
    other_mask: Tensor | None,
) -> Tensor:
    """Return ln(exp(input) + exp(other)) of the elements that masks name.

    An element that its mask does not name adds nothing. The gradients are g times the part that
    each has in the sum.

    Parameters
    ----------
    dtype
        What the result is converted to: the input's unless given.
    input_mask, other_mask
        As of `sum`, each for one of the two.

    Raises
    ------
    NotImplementedError
        If there is a mask for complex numbers, bools, or unsigned integers of more than 8 bits.
    IndexError, RuntimeError
        If a mask does not fit, or the two have different shapes that do not broadcast.

    >>> import numgrad as ng
    >>> x, mask = ng.zeros(2), ng.tensor([True, False])
    >>> ng.masked.logaddexp(x, x, other_mask=mask)
    tensor([0.6931, 0.0000])
    """
    chosen = left("logaddexp", input, input_mask)
    result = logarithms.logaddexp(chosen, left("logaddexp", other, other_mask))
    return result.to(dtype or input.dtype)
