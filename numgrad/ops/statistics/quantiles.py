"""Quantiles of elements along a dim: quantile, nanquantile."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.recorder import is_traced_array
from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.creation.creation import full_like
from numgrad.ops.indexing.gathering import gather
from numgrad.ops.linalg.permuting import transpose
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.shape import flatten, view
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.pointwise.arithmetic import lerp
from numgrad.ops.pointwise.comparison import isnan
from numgrad.ops.pointwise.rounding import ceil, floor, round
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction.sorting import sort
from numgrad.ops.signatures.declared import declare
from numgrad.ops.statistics.checks import checked

__all__ = ["nanquantile", "quantile"]

Array = np.ndarray[Any, Any]

_MODES = ("linear", "lower", "higher", "midpoint", "nearest")
# So many have ranks that float32 holds.
_MOST_ELEMENTS = 2**24


def _check_number(q: float) -> None:
    if not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")


def _check_between(q: Array) -> None:
    if not np.logical_and(q >= 0, q <= 1).all():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")


def _check_mode(interpolation: str) -> None:
    if interpolation not in _MODES:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )


def _check(input: Tensor, q: Tensor) -> None:
    if not input._array.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q._array.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if str(input._array.dtype) not in ("float32", "float64"):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if q._array.dtype != input._array.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")


def _sorted(input: Tensor, dim: int | None, at: int, keepdim: bool) -> Tensor:
    """Return the elements in order along the last dim, behind those that the result has."""
    shape = input._array.shape
    if dim is None:
        values = sort(flatten(input)).values
        lengths: tuple[int, ...] = (1,) * len(shape) if keepdim else ()
    elif at == len(shape) - 1:
        values, lengths = sort(input).values, shape[:-1] + (1,) * keepdim
    else:
        values = sort(transpose(unsqueeze(input, -1), at, -1)).values
        lengths = (*shape[:at], *((1,) if keepdim else ()), *shape[at + 1 :])
    result: Tensor = view(values, (*lengths, values._array.shape[-1]))
    return result


def _ranks(ordered: Tensor, q: Tensor, skips_nan: bool) -> Tensor:
    """Return where quantiles are among elements in order, as floating point numbers."""
    last = ordered._array.shape[-1] - 1
    result: Tensor
    if skips_nan:
        counts = (~isnan(ordered)).sum(-1, True) - 1
        ranks = q * counts
        result = where(ranks < 0, 0, ranks)
    else:  # of rows with nan the last element, which is one
        result = where(isnan(ordered).any(-1, True), last, q * last)
    return result


def _between(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """Return what is at ranks, which lie between elements mostly."""
    rounded = {"lower": floor, "higher": ceil, "nearest": round}.get(interpolation)
    if rounded is not None:
        ranks = rounded(ranks)
    whole = np.dtype(np.int64)
    below = cast(ranks.detach(), whole)
    values: Tensor = gather(ordered, -1, below)
    if rounded is None:
        half = interpolation == "midpoint"
        weights = full_like(ranks, 0.5) if half else ranks - below
        above = gather(ordered, -1, cast(ceil(ranks.detach()), whole))
        values = lerp(values, above, weights)
    return values


def _quantile(
    input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, skips_nan: bool
) -> Tensor:
    if not isinstance(q, Tensor):
        _check_number(q)
        q = fresh(np.asarray(q, input._array.dtype if input._array.dtype.kind == "f" else float))
    _check_mode(interpolation)
    _check(input, q)
    at = wrap_dim(-1 if dim is None else dim, input._array.ndim)
    q = checked(q, _check_between)
    if not input._array.ndim:
        dim = None
    ordered = _sorted(input, dim, at, keepdim)
    if ordered._array.shape[-1] > _MOST_ELEMENTS:
        raise RuntimeError("quantile() input tensor is too large")
    result = _between(ordered, _ranks(ordered, q, skips_nan), interpolation)
    several = q._array.ndim == 1
    if is_traced_array(result._array):  # whose shape stays
        return squeeze(transpose(unsqueeze(result, 0), 0, -1) if several else result, -1)
    if several:
        result.unsqueeze_(0).transpose_(0, -1)
    return result.squeeze_(-1)


def _signatures(name: str) -> tuple[str, str]:
    behind = "int? dim=None, bool keepdim=False, *, str interpolation='linear', Tensor? out=None)"
    return f"{name}(Tensor input, Tensor q, {behind}", f"{name}(Tensor input, float q, {behind}"


def _write(function: str, result: Tensor, out: Any) -> Tensor:
    if isinstance(out, Tensor) and out._array.dtype != result._array.dtype:
        raise RuntimeError("quantile() out tensor must be same dtype as the input tensor")
    written: Tensor = write_result(function, result, out, by_rows=True)
    return written


@declare(*_signatures("quantile"), write=_write)
def quantile(input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    """Return quantiles: the number that a part `q` of the elements along a dim does not exceed.

    Between elements that is a number in between: of rank q (n - 1), counted from 0 (R. Hyndman and
    Y. Fan, The American Statistician 50, 1996, definition 7). Where nan is among them, it is nan.
    The gradient is g, shared out between the two elements by how near they are; that of `q` is the
    difference of the two times n - 1.

    Parameters
    ----------
    input : tensor of float32 or float64
    q : float, or tensor of the same dtype and at most one dim
        From 0 to 1. Of several the result has one more dim, in front.
    dim
        None: of all elements.
    keepdim
        Keep the dim, with size 1.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}
        What is taken between two elements.

    Raises
    ------
    RuntimeError
        If there are no elements, the dtypes are others, or `q` is not from 0 to 1.
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.quantile(ng.tensor([4.0, 1.0, 2.0]), ng.tensor([0.5, 0.75]))
    tensor([2., 3.])
    """
    return _quantile(input, q, dim, keepdim, interpolation, False)


@declare(*_signatures("nanquantile"), write=_write)
def nanquantile(
    input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str
) -> Tensor:
    """Return quantiles of the elements that are numbers; nan only where none is. See `quantile`.

    >>> import numgrad as ng
    >>> ng.nanquantile(ng.tensor([4.0, float("nan"), 2.0]), 0.5)
    tensor(3.)
    """
    return _quantile(input, q, dim, keepdim, interpolation, True)
