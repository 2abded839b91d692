"""Reduce the segments that a dim is divided into: segment_reduce."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, fresh, wrap
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.arguments.scalar_arrays import scalar_array
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.creation.ranges import arange
from numgrad.ops.indexing.scattering import scatter_add
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.slicing import narrow
from numgrad.ops.movement.unit_dims import expand
from numgrad.ops.pointwise.selection import clamp, clamp_min, where
from numgrad.ops.reduction.scans import cumsum
from numgrad.ops.scattering.scatter_reduce import scatter_reduce
from numgrad.ops.signatures.declared import declare

__all__ = ["segment_reduce"]

Array = np.ndarray[Any, Any]
_UNWRITTEN = (
    "(Could this error message be improved?  If so, please report an enhancement request to "
    "PyTorch.)"
)
_NAMES = {name: name for name in ("sum", "prod", "mean", "amax", "amin")}
_NAMES.update(max="amax", min="amin")
# What is in segments without elements, unless that is said.
_STARTS = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -np.inf, "amin": np.inf}


@at_run_time
def _checked_lengths(lengths: Array, count: int, unsafe: bool) -> Array:
    """Return the lengths of segments; raise for negative ones, and if they are not `count`."""
    if not unsafe:
        if not lengths.size:
            raise RuntimeError(
                "min(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                "the reduction dim with the 'dim' argument."
            )
        if lengths.min() < 0:
            raise RuntimeError("lengths contains negative value!")
        if (lengths.sum(-1) != count).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to "
                "data.size(lengths.dim()-1) when !unsafe."
            )
    return lengths


@at_run_time
def _rising(lengths: Array) -> Array:
    """Return the lengths of segments; raise for negative ones."""
    if (lengths < 0).any():
        raise RuntimeError(f"Expected segment_length >= 0 to be true, but got false.  {_UNWRITTEN}")
    return lengths


def _check(name: str, data: Tensor, places: Tensor, axis: int) -> None:
    """Raise unless there are segments for each row."""
    shape, given = data._array.shape, places._array.shape
    if len(given) > len(shape):
        raise RuntimeError(
            f"Expected data.dim() >= {name}_value.dim() to be true, but got false.  {_UNWRITTEN}"
        )
    if axis != len(given) - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}."
        )
    if given[:-1] != shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): Expected {name} of the shape {[*shape[:axis], '*']}, but got "
            f"{list(given)}"
        )


def _check_dtypes(name: str, data: Tensor, places: Tensor) -> None:
    """Raise unless floating point numbers are reduced, and places are ints."""
    for each, kinds, kernel in (
        (places, ("int64", "int32"), f"_segment_reduce_{name}_cpu_kernel1"),
        (data, ("float64", "float32", "float16"), "_segment_reduce_cpu"),
    ):
        if each._array.dtype.name not in kinds:
            words = f"\"{kernel}\" not implemented for '{each.dtype.scalar_name}'"
            raise NotImplementedError(words)


def _numbers(ends: Tensor, count: int) -> Tensor:
    """Return for each place of a dim how many segments end before it."""
    *rows, last = ends._array.shape
    ones = fresh(np.ones((*rows, last), np.int64))
    marks = scatter_add(
        fresh(np.zeros((*rows, count + 1), np.int64)), -1, clamp(ends, 0, count), ones
    )
    return narrow(cumsum(marks, -1), -1, 0, count)


@declare(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
    "Tensor? offsets=None, int axis=0, bool unsafe=False, number? initial=None)",
    method=False,
)
def segment_reduce(
    data: Tensor,
    reduce: str,
    lengths: Tensor | None,
    indices: Tensor | None,
    offsets: Tensor | None,
    axis: int,
    unsafe: bool,
    initial: float | None,
) -> Tensor:
    """Return the sums, products, means or extremes of segments, one behind the other in a dim.

    The gradient is that of `scatter_reduce`, to which the number of the segment is a position; the
    initial value has no part in ties, and counts nothing in means. Mirrors
    ``torch.segment_reduce``; other than that it has derivatives of any order.

    Parameters
    ----------
    data : tensor of shape (d1, ..., n, ...)
        Floating point.
    reduce : {"sum", "prod", "mean", "max", "min", "amax", "amin"}
    lengths : tensor of ints, of shape (d1, ..., S)
        The lengths of segments in the last of these dims, which is `axis`.
    offsets : tensor of ints, of shape (d1, ..., S + 1)
        Where segments begin, and the last of them ends, instead. What lies before and behind is
        left out.
    indices
        None: PyTorch has no such reduction.
    unsafe
        Whether lengths need not add up to n: what lies behind is left out.
    initial
        What each reduction begins with. Without it segments of no elements have a sum of 0, a
        product of 1, a mean of nan, and infinite extremes.

    Raises
    ------
    RuntimeError
        If neither lengths nor offsets are given, or they do not fit or are negative; if there is
        no such reduction.
    IndexError
        If there is no such dim.
    NotImplementedError
        If `data` is not floating point, or lengths are not int64 or int32.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0, 4.0, 8.0])
    >>> ng.segment_reduce(x, "sum", lengths=ng.tensor([1, 0, 3]))
    tensor([ 1.,  0., 14.])
    """
    shape = data._array.shape
    axis = wrap_dim(axis, len(shape))
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if reduce not in _NAMES:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    name = "offsets" if offsets is not None else "lengths"
    places = lengths if offsets is None else offsets
    if places is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    _check(name, data, places, axis)
    count, last = shape[axis], places._array.shape[-1]
    if offsets is None:
        places = wrap(_checked_lengths(places._array, count=count, unsafe=unsafe))
        _check_dtypes(name, data, places)
        lengths = places.long()
        index = _numbers(cumsum(lengths, -1), count)
        return _reduced(data, _NAMES[reduce], index, lengths, initial, 0 if unsafe else None)
    if not last:
        raise RuntimeError("Trying to create tensor with negative dimension -1: [-1]")
    _check_dtypes(name, data, places)
    ends = narrow(places, -1, 1, last - 1).long()
    lengths = wrap(_rising((ends - narrow(places, -1, 0, last - 1))._array))
    first = narrow(places, -1, 0, 1)
    return _reduced(data, _NAMES[reduce], _numbers(ends, count), lengths, initial, first)


def _reduced(
    data: Tensor,
    reduce: str,
    index: Tensor,
    lengths: Tensor,
    initial: float | None,
    first: Any,
) -> Tensor:
    """Return the reductions of segments, whose numbers are given for each place of a dim.

    `first` is the first place that is in one; None if all are.
    """
    shape, axis = data._array.shape, lengths._array.ndim - 1
    segments, dtype = lengths._array.shape[-1], data._array.dtype
    neutral = np.array(_STARTS[reduce], dtype)
    start = neutral if initial is None else scalar_array(initial, dtype)
    is_extreme = reduce in ("amax", "amin")
    size = (*shape[:axis], segments, *shape[axis + 1 :])
    base = fresh(np.full(size, neutral if is_extreme else start, dtype))
    if not segments:
        return base
    behind = (1,) * (len(shape) - axis - 1)
    if first is not None:
        inside = (index < segments) & (arange(shape[axis]) >= first)
        data = where(reshape(inside, (*inside._array.shape, *behind)), data, fresh(neutral))
        index = clamp(index, 0, segments - 1)
    index = expand(reshape(index, (*index._array.shape, *behind)), shape)
    if reduce in ("sum", "mean"):
        found = scatter_add(base, axis, index, data)
        if reduce == "sum":
            return found
        counts = reshape(lengths, (*lengths._array.shape, *behind))
        return found / (counts if initial is None else clamp_min(counts, 1))
    if reduce == "prod":
        return scatter_reduce(base, axis, index, data, reduce)
    # Ties are those between elements; with the initial value there are none.
    found = scatter_reduce(base, axis, index, data, reduce, include_self=False)
    if initial is None:
        return found
    first_value = fresh(start)
    is_less = found < first_value if reduce == "amax" else found > first_value
    return where(is_less, first_value, found)
