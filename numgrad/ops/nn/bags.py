"""Rows of a table, summed in bags: embedding_bag."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.dtypes import int64
from numgrad.codegen.compile.compile import kernel
from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.tensor import Tensor, wrap
from numgrad.graph.warned import warn
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.creation.creation import zeros
from numgrad.ops.creation.ranges import arange
from numgrad.ops.indexing.gathering import gather
from numgrad.ops.indexing.index_along import index_add, index_select
from numgrad.ops.nn.layers import check_numbers_of_rows, rows_by_number, shorten_rows
from numgrad.ops.pointwise.selection import clamp_min, where
from numgrad.ops.signatures.declared import declare

__all__ = ["embedding_bag"]

_SUM, _MEAN, _MAX = range(3)
_MODES = {"sum": _SUM, "mean": _MEAN, "max": _MAX}


# --- where bags begin and what is in them ---------------------------------------------------------


@at_run_time
def _bags_of(offsets: Any, count: int) -> Any:
    """Return where bags begin; raise unless the first does at 0, and each behind the other."""
    if offsets.size and offsets[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {offsets[0]}"
        )
    if offsets.size and offsets[-1] > count:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of "
            f"{offsets[-1]}"
        )
    if (np.diff(offsets) < 0).any():
        raise RuntimeError("embedding_bag: offsets have to be in ascending order")
    return offsets


@at_run_time
def _rows_below(indices: Any, count: int, brief: bool) -> Any:
    """Return numbers of rows; raise if there is no such row, as PyTorch's quicker kernel or not."""
    outside = (indices < 0) | (indices >= count)
    if outside.any():
        at = int(outside.argmax())
        if not brief:
            raise RuntimeError(
                "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
                f"{indices[at]}"
            )
        raise RuntimeError(
            f"Index {at} of input takes value {indices[at]} which is not in the valid range "
            f"[0, {count})"
        )
    return indices


def _bag_numbers(offsets: Any, elements: Any) -> Any:
    return np.searchsorted(offsets, np.arange(elements.size), side="right") - 1


_BAG_NUMBERS = Primitive(
    "bag_numbers",
    "NotImplemented",
    _bag_numbers,
    ["offsets", "elements"],
    [None, None],
    listed=False,
)


@kernel
def _find_greatest(rows, bags, counted, found):  # type: ignore[no-untyped-def]
    for k in range(rows.shape[0]):
        if counted[k]:
            for column in range(rows.shape[1]):
                best = found[bags[k], column]
                if best < 0 or rows[k, column] > rows[best, column]:
                    found[bags[k], column] = k


def _greatest(rows: Any, bags: Any, counted: Any, count: int) -> Any:
    found = np.full((count, rows.shape[1]), -1)
    _find_greatest(*map(np.ascontiguousarray, (rows, bags, counted)), found)
    return found


_GREATEST = Primitive(
    "greatest_of_bags",
    "NotImplemented",
    _greatest,
    ["rows", "bags", "counted"],
    [None, None, None],
    listed=False,
)


def _check_dtypes(weight: Tensor, indices: Tensor, offsets: Tensor, per_sample: Any) -> None:
    for name, each in (("indices", indices), ("offsets", offsets)):
        check_numbers_of_rows(each, 1, name, "embedding_bag")
    if not weight.dtype.is_floating_point:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: "
            f"Half, BFloat16, Float, Double; but got torch.{weight.dtype.scalar_name}Tensor "
            "instead (while checking arguments for embedding_bag)"
        )
    if per_sample is not None and per_sample._array.dtype != weight._array.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
            f"#1 'per_sample_weights'; but type torch.{weight.dtype.scalar_name}Tensor does not "
            f"equal torch.{per_sample.dtype.scalar_name}Tensor (while checking arguments for "
            "embedding_bag)"
        )


def _bagged(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    shared: bool,
    mode: int,
    per_sample: Tensor | None,
    include_last: bool,
    padding_idx: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the bags, in which one each row is, how many count, and which rows are greatest."""
    _check_dtypes(weight, indices, offsets, per_sample)
    rows, count = weight._array.shape[0], indices._array.size
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, "
                f"but got {padding_idx}"
            )
        padding_idx %= rows
    if mode not in _MODES.values():
        raise RuntimeError("`mode` must be sum, mean, or max.")
    bags = max(offsets._array.size - include_last, 0)
    given = wrap(_bags_of(offsets._array, count=count)).long()
    starts = given[:bags]
    brief = mode != _MAX and weight._array.dtype.itemsize < 8
    numbers = wrap(_rows_below(indices._array, count=rows, brief=brief)).long()
    dtype, shape = weight.dtype, (bags, weight._array.shape[1])
    if not bags or not count:
        none = zeros(bags, dtype=int64)
        return (weight * 0).sum(0) * zeros((bags, 1), dtype=dtype), none[:0], none, none
    of_bags = _BAG_NUMBERS.apply(starts, numbers)
    counted = numbers != (-1 if padding_idx is None else padding_idx)
    if include_last:  # what is behind the end of the last bag is in none
        counted = counted & (arange(count) < given[-1])
    sizes = index_add(zeros(bags, dtype=int64), 0, of_bags, counted.long())
    found = rows_by_number(weight, numbers, shared)
    if mode == _MAX:
        places = _GREATEST.apply(found.detach(), of_bags, counted, count=bags)
        whole = clamp_min(places, 0)
        values = where(places < 0, 0.0, gather(found, 0, whole))
        chosen = where(places < 0, 0, index_select(numbers, 0, whole.reshape(-1)).reshape(shape))
        return values, of_bags, sizes, chosen
    if per_sample is not None:
        found = found * per_sample.reshape(-1, 1)
    if padding_idx is not None or include_last:
        found = where(counted.reshape(-1, 1), found, 0.0)
    total = index_add(zeros(shape, dtype=dtype), 0, of_bags, found)
    if mode == _MEAN:
        total = total / clamp_min(sizes, 1).reshape(-1, 1).to(dtype)
        return total, of_bags, sizes, sizes
    nothing = zeros(bags, dtype=int64)
    return total, of_bags if padding_idx is not None else of_bags[:0], nothing, nothing


# --- the functions --------------------------------------------------------------------------------


@declare(
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
    "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
    "bool include_last_offset=False)",
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, "
    "int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, "
    "int? padding_idx)",
    method=False,
)
def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return rows of a table summed in bags, and what there is to tell of the bags.

    That of `nn.functional` says more. The gradient is g, added up in the rows that it came from.

    Parameters
    ----------
    mode
        0 for sums, 1 for means, 2 for the greatest elements.

    Returns
    -------
    tuple
        The results; the bag of each row, the lengths of bags, and which rows are the greatest, as
        far as the mode asks for them.

    >>> import numgrad as ng
    >>> table = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> ng.embedding_bag(table, ng.tensor([0, 1, 1]), ng.tensor([0, 2]))[0]
    tensor([[4., 6.],
            [3., 4.]])
    """
    if sparse:
        raise NotImplementedError("numgrad has no sparse gradients: leave sparse=False")
    return _bagged(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )


@declare(
    "embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, "
    "float norm_type=2, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, "
    "Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None)",
    function=False,
    method=False,
)
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None,
    max_norm: float | None,
    norm_type: float,
    scale_grad_by_freq: bool,
    mode: str,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Tensor:
    """Return the means, sums or greatest elements of rows of a table, in bags of rows.

    The gradient is g (over the length of the bag, for means), added up in the rows that it came
    from; that of a row's weight is the product of g and the row.

    Parameters
    ----------
    input : tensor of ints, of shape (n,) or (bags, length)
        Numbers of rows.
    weight : tensor of shape (rows, length)
    offsets : tensor of ints, of shape (bags,)
        Where bags begin, if the input has one dim.
    max_norm, norm_type
        Rows that are read and whose norm of that order is greater are first made shorter, in the
        table itself.
    scale_grad_by_freq
        Whether to divide the gradient of a row by how often it is read (PyTorch 2.13 takes for some
        rows how often the one before them is).
    mode : {"mean", "sum", "max"}
    sparse
        Gradients are dense here: True is refused.
    per_sample_weights : tensor, optional
        What each row counts in a sum.
    include_last_offset
        Whether the last offset is the end of the last bag.
    padding_idx
        A row that counts as if it was not there.

    Raises
    ------
    RuntimeError, ValueError
        If there is no such row, or shapes, offsets and dtypes do not fit.

    >>> import numgrad as ng
    >>> table = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> ng.nn.functional.embedding_bag(ng.tensor([0, 1, 1]), table, ng.tensor([0, 2]))
    tensor([[2., 3.],
            [3., 4.]])
    """
    if weight.dtype == int64 and input.dtype.is_floating_point:
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`."
        )
        input, weight = weight, input
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then "
            f"it must have the same shape as the input ({input.shape})"
        )
    ndim = input._array.ndim
    if weight._array.ndim != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight._array.ndim}"
        )
    if ndim not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {ndim}")
    if ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                "of fixed length sequences. However, found offsets of type <class 'torch.Tensor'>"
            )
        bags, length = input._array.shape
        offsets = arange(0, bags * length, length, dtype=input.dtype)
        input, include_last_offset = input.reshape(-1), False
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets._array.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if sparse:
        raise NotImplementedError("numgrad has no sparse gradients: leave sparse=False")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    if max_norm is not None:
        with no_grad():
            shorten_rows(weight, input.long(), max_norm, norm_type)
    return _bagged(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _MODES[mode],
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]
