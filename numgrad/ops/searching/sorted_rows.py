"""Binary search in sorted tensors: searchsorted, bucketize."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.recorder import at_hand, note_given
from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.search.bisection import search_rows
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.movement.casts import cast
from numgrad.ops.signatures.declared import declare

__all__ = ["bucketize", "number_in", "searchsorted"]

Array = np.ndarray[Any, Any]

# What PyTorch's kernels put in an order.
_REFUSED = frozenset(
    map(np.dtype, ("bool", "uint16", "uint32", "uint64", "complex64", "complex128"))
)


def _search(rows: Array, values: Array, right: bool, int32: bool) -> Array:
    """Search rows of shape (..., n) for values of shape (..., m, ...)."""
    length, batch = rows.shape[-1], math.prod(rows.shape[:-1])
    if batch > 1 and not any(rows.strides[:-1]):  # one row, seen many times
        rows, batch = rows[(0,) * (rows.ndim - 1)], 1
    width = values.size // max(batch, 1)
    found = search_rows(rows.reshape(batch, length), values.reshape(batch, width), right)
    return found.reshape(values.shape).astype(np.int32 if int32 else np.int64, copy=False)


_SEARCH = Primitive(
    "searchsorted",
    "NotImplemented",
    _search,
    ["sorted_sequence", "input"],
    [None, None],
    listed=False,
)


_as_array = silent(np.asarray)


def number_in(value: Any, dtype: np.dtype[Any]) -> Array:
    """Return a number as an array; a dtype that has no room for it takes it round the corner."""
    note_given(value)
    if dtype.kind in "iu":
        return np.array(int(value) & 2**64 - 1, np.uint64).astype(dtype)
    return _as_array(value, dtype)


def _check_side(side: str | None, right: bool) -> None:
    if side not in (None, "left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if right and side == "left":
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )


def _in_order(rows: Tensor, sorter: Tensor) -> Tensor:
    """Return rows with their elements in the order that `sorter` has found."""
    shape, given = rows._array.shape, sorter._array.shape
    if shape != given:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
            f"tensor {list(shape)}and got sorter tensor {list(given)}"
        )
    if sorter._array.dtype != np.int64:
        raise RuntimeError(
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
            f"{sorter.dtype.scalar_name}"
        )
    if not shape or not sorter._array.size:
        return rows
    positions = _check_sorter(at_hand(sorter._array))
    last = len(shape) - 1
    result: Tensor = CATALOGUE["gather"].apply(rows, dim=last, index=positions, held=(sorter,))
    return result


@at_run_time
def _check_sorter(positions: Array) -> Array:
    if positions.min() < 0 or positions.max() >= positions.shape[-1]:
        raise RuntimeError("torch.searchsorted(): sorter index out of range")
    return positions.copy()


def _check_shapes(rows: Tensor, given: tuple[int, ...]) -> None:
    """Raise unless there can be values of a shape beside rows."""
    shape = rows._array.shape
    if not given and len(shape) != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor "
            f"dimension is 1, but we got boundaries tensor dim({len(shape)}) and input value's "
            "dim(0) numel(1)"
        )
    if not shape:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
            "dimension"
        )
    if len(shape) > 1 and (len(shape) != len(given) or shape[:-1] != given[:-1]):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(shape)} and input value tensor {list(given)}"
        )


def _check_out(out: Tensor, int32: bool) -> None:
    if out._array.dtype != (np.int32 if int32 else np.int64):
        raise RuntimeError(
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or "
            "Long(int64) depending on whether out_int32 flag is True, but we got output tensor's "
            f"dtype {out.dtype.scalar_name} and out_int32 flag is {int32}"
        )


def _positions(
    rows: Tensor, values: Any, int32: bool, right: bool, sorter: Tensor | None, out: Tensor | None
) -> Tensor:
    """Return where values belong, which are a tensor or a number."""
    if sorter is not None:
        rows = _in_order(rows, sorter)
    given = values._array.shape if isinstance(values, Tensor) else ()
    _check_shapes(rows, given)
    if out is not None:
        _check_out(out, int32)
    if 0 in given:
        return write_result(
            "searchsorted", fresh(np.empty(given, np.int32 if int32 else np.int64)), out
        )
    dtype = result_dtype([rows, values])
    if dtype.numpy in _REFUSED:
        raise NotImplementedError(
            f"\"searchsorted_out_cpu\" not implemented for '{dtype.scalar_name}'"
        )
    if not isinstance(values, Tensor):
        values = fresh(number_in(values, dtype.numpy))
    rows, values = cast(rows.detach(), dtype.numpy), cast(values.detach(), dtype.numpy)
    result: Tensor = _SEARCH.apply(rows, values, right=right, int32=int32)
    return write_result("searchsorted", result, out)


@declare(
    "searchsorted(Tensor sorted_sequence, Tensor input, *, bool out_int32=False, "
    "bool right=False, str? side=None, Tensor? sorter=None, Tensor? out=None)",
    "searchsorted(Tensor sorted_sequence, number input, *, bool out_int32=False, "
    "bool right=False, str? side=None, Tensor? sorter=None, Tensor? out=None)",
    method=False,
    dispatched=True,
)
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    out_int32: bool,
    right: bool,
    side: str | None,
    sorter: Tensor | None,
    out: Tensor | None,
) -> Tensor:
    """Return where values belong in a sorted sequence, so that it stays sorted; no gradient flows.

    Parameters
    ----------
    sorted_sequence : tensor of shape (n,) or (..., n)
        In ascending order along the last dim.
    input : tensor or number
        The values; of shape (..., m) where there are several sequences, a row for each.
    out_int32
        Return int32 in place of int64.
    right
        A value belongs behind the elements that equal it, not before the first of them.
    side : {"left", "right"}
        The same in NumPy's words.
    sorter
        Positions that put the sequence in order, as `argsort` gives them.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or `side` contradicts `right`.
    NotImplementedError
        If the numbers have no order.

    >>> import numgrad as ng
    >>> ng.searchsorted(ng.tensor([1.0, 3.0, 5.0]), ng.tensor([3.0, 6.0]))
    tensor([1, 3])
    """
    _check_side(side, right)
    right = right or side == "right"
    return _positions(sorted_sequence, input, out_int32, right, sorter, out)


@declare(
    "bucketize(Tensor input, Tensor boundaries, *, bool out_int32=False, bool right=False, "
    "Tensor? out=None)",
    "bucketize(number input, Tensor boundaries, *, bool out_int32=False, bool right=False)",
    method=False,
    dispatched=True,
)
def bucketize(
    input: Any, boundaries: Tensor, out_int32: bool, right: bool, out: Tensor | None
) -> Tensor:
    """Return between which boundaries values lie: how many are less; see `searchsorted`.

    Parameters
    ----------
    input : tensor or number
    boundaries : tensor of shape (n,)
        In ascending order.
    out_int32
        Return int32 in place of int64.
    right
        Count those that equal the value, too.

    >>> import numgrad as ng
    >>> ng.bucketize(ng.tensor([3.0, 6.0]), ng.tensor([1.0, 3.0, 5.0]))
    tensor([1, 3])
    """
    if boundaries._array.ndim != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})"
        )
    return _positions(boundaries, input, out_int32, right, None, out)
