"""Index keys: what may stand in brackets, read as PyTorch reads it.

A key's ints, slices, None and Ellipsis make views, one after the other; its tensors, lists, arrays
and bools are collected and become one indexing operation on the last view.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from numgrad.base.dtypes import is_int64
from numgrad.base.float_errors import silent
from numgrad.graph.recorder import (
    Traced,
    at_hand,
    note_given,
    note_numbers,
    refuse_shape_of,
)
from numgrad.graph.tensor import Tensor, plain, wrap
from numgrad.graph.warned import warn
from numgrad.kernels.move.memory_order import copy_like
from numgrad.kernels.move.places import are_inside, unless_inside
from numgrad.ops.calls.steps import read_array
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.movement.slicing import select_view, slice_view
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.signatures.numbers import BEYOND_INT64

__all__ = [
    "Indices",
    "apply_key",
    "check_indices",
    "held_in",
    "leading_mask",
    "only_mask",
    "refuse_byte_mask",
    "select_first",
    "to_indices",
]

Array = np.ndarray[Any, Any]
# For each dim the positions to take, from 0 to its size, or None for all of them.
Indices = tuple[Array | None, ...]

_KINDS = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
    "indices (got {})"
)
_INDEX_DTYPES = "tensors used as indices must be long, int, byte or bool tensors"
_BYTE_MASK = (
    "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
)
_MANY = 32  # a list of that many things is always one index, never a tuple of them


def _type_name(value: Any) -> str:
    kind = type(value)
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _as_tuple(key: Any) -> Sequence[Any]:
    """Return the indices of a key; a list counts as a tuple if it holds more than numbers."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, list) and len(key) < _MANY:
        for item in key:
            if (
                item is None
                or item is Ellipsis
                or isinstance(item, (Tensor, slice, list, tuple, range, np.ndarray))
            ):
                return key
    return (key,)


def _read(item: Any) -> Any:
    """Return an index as an int, a bool, a slice, None, Ellipsis, or an int64 or bool array."""
    kind = type(item)
    if kind is int or kind is slice or item is None or item is Ellipsis or kind is bool:
        return item
    if isinstance(item, Tensor):
        return _read_array(item._array)
    note_given(item)
    if isinstance(item, np.ndarray):
        return _read_array(as_positions(plain(item)))
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, (list, tuple, range)):
        return _read_sequence(item)
    if isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    if hasattr(item, "__index__") and not isinstance(item, np.bool_):
        return item.__index__()
    raise IndexError(_KINDS.format(_type_name(item)))


def _read_array(array: Array) -> Any:
    kind = array.dtype.kind
    if kind == "b" or array.dtype == np.uint8:
        note_numbers(array)
        return array if kind == "b" else _mask_of_bytes(array)
    if kind in "iu":
        array = at_hand(array)
        if array.ndim == 0 and type(array) is np.ndarray:
            return int(array)
        if array.dtype not in (np.int64, np.int32):
            raise IndexError(_INDEX_DTYPES)
        return array
    raise IndexError(_INDEX_DTYPES)


@silent
def as_positions(array: Array) -> Array:
    """Return a NumPy array as PyTorch takes it between brackets: but for masks, as int64.

    What has a fraction or an imaginary part loses it.
    """
    if array.dtype.kind not in "iufc" or array.dtype in (np.int64, np.int32, np.uint8):
        return array
    return (array.real if array.dtype.kind == "c" else array).astype(np.int64)


def _mask_of_bytes(array: Any) -> Any:
    """Return the mask that an array of bytes stands for, with PyTorch's warning."""
    if array.ndim:
        warn(_BYTE_MASK)
    kind: Any = type(array)
    if kind is Traced:  # it is compared as a tensor, or the answer would be about the object
        return (wrap(array) != 0)._array
    return np.asarray(array != 0)


def refuse_byte_mask(items: Sequence[Any]) -> None:
    """Raise if the only tensor of a key is a mask of bytes, at which one value is to be filled in.

    Fillings take masks of bools alone; several values are put at the places of either.
    """
    arrays = [item._array if isinstance(item, Tensor) else item for item in items]
    arrays = [each for each in arrays if isinstance(each, (np.ndarray, Traced))]
    if len(arrays) == 1 and arrays[0].dtype == np.uint8:
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype unsigned char"
        )


def _read_sequence(items: Any) -> Array:
    """Return nested sequences of numbers as an array; numbers with a fraction lose it."""
    array = np.asarray(_plain(items))
    if array.dtype.kind in "US":
        raise TypeError("new(): invalid data type 'str'")
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind in "uO" and not all(map(_is_held, array.flat)):
        raise ValueError(BEYOND_INT64)
    if array.dtype.kind == "c":
        raise TypeError("'complex' object cannot be interpreted as an integer")
    if array.dtype.kind not in "iuf":
        odd = next((each for each in array.flat if not isinstance(each, (int, float))), items)
        raise RuntimeError(f"Could not infer dtype of {_type_name(odd)}")
    return array.astype(np.int64)


def _is_held(item: Any) -> bool:
    """Return whether what is no int, or one that int64 holds."""
    return not isinstance(item, (int, np.integer)) or is_int64(int(item))


def held_in(items: Sequence[Any]) -> list[Tensor]:
    """Return the tensors among indices whose numbers a graph keeps: not those of a view."""
    return [item for item in items if isinstance(item, Tensor) and item._array.ndim]


def _plain(items: Any) -> Any:
    """Return nested sequences with arrays and numbers in the place of tensors."""
    if isinstance(items, Tensor):
        if items._array.dtype.kind in "fc":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        note_numbers(items._array)
        return items._array
    if isinstance(items, (list, tuple)):
        return [_plain(item) for item in items]
    return plain(items) if isinstance(items, np.ndarray) else items


def select_first(input: Tensor, position: int, dim: int = 0, place: int = 0) -> Tensor:
    """Return the view that an int in brackets makes of a dim; `place` is where it stands there.

    Raises
    ------
    IndexError
        If there is no such position, or the tensor has no dims.
    ValueError
        If int64 does not hold the position.
    """
    shape = input._array.shape
    if not is_int64(position):
        raise ValueError(BEYOND_INT64)
    if not shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
            "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
        )
    size = shape[dim]
    if not -size <= position < size:
        raise IndexError(
            f"index {position} is out of bounds for dimension {place} with size {size}"
        )
    return select_view(input, dim, position % size)


def apply_key(input: Tensor, key: Any) -> tuple[Tensor, Indices | None, Sequence[Tensor]]:
    """Return the view that a key's views make, and what to index it with; None for nothing.

    Behind these come the tensors that was read from.

    Raises
    ------
    IndexError, TypeError, ValueError
        In PyTorch's words, for what is no index or leads outside.
    """
    written = _as_tuple(key)
    items = [_read(item) for item in written]
    ndim = input._array.ndim
    specified = sum(map(_dims_of, items))
    if specified > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    view, dim = input, 0
    indices: dict[int, Array] = {}
    for place, item in enumerate(items):
        if type(item) is int:
            view = select_first(view, item, dim, place)
        elif type(item) is slice:
            if not _is_full(item, view._array.shape[dim]):
                view = slice_view(view, dim, item)
            dim += 1
        elif item is Ellipsis:
            dim += ndim - specified
        elif item is None:
            view = unsqueeze(view, dim)
            dim += 1
        elif type(item) is bool or (not item.ndim and item.dtype.kind == "b"):
            view = unsqueeze(view, dim)
            indices[dim] = np.zeros(1 if item else 0, np.int64)
            dim += 1
        elif item.dtype.kind == "b":
            for positions in _positions(item, view._array.shape, dim):
                indices[dim] = positions
                dim += 1
        else:
            indices[dim] = item
            dim += 1
    if not indices:
        return view, None, ()
    found = [indices.get(position) for position in range(max(indices) + 1)]
    return view, check_indices(found, view._array.shape), held_in(written)


def only_mask(key: Any) -> Any:
    """Return the mask of a key that has no other positions, whatever views it makes; else None.

    Where it is True one number is filled in, and takes the dtype of what it comes to.

    >>> only_mask((0, slice(1), [True, False])), only_mask(([0], [True]))
    ([True, False], None)
    """
    found = None
    for item in _as_tuple(key):
        if isinstance(item, (Tensor, np.ndarray, list)):
            try:
                array = item._array if isinstance(item, Tensor) else np.asarray(item)
            except ValueError:  # a list of lists of several lengths
                return None
            if not array.ndim and array.dtype in (np.int64, np.int32):
                continue
            if array.dtype not in (np.bool_, np.uint8) or found is not None:
                return None
            found = item
        elif isinstance(item, (bool, np.bool_)):
            return None
    return found


def leading_mask(key: Any, ndim: int) -> Any:
    """Return the mask of the first dims that a key is, alone or with an ellipsis; else None.

    `ndim` is that of the tensor in front of the brackets.
    """
    mask = only_mask(key)
    items = _as_tuple(key)
    if mask is None or any(item is not mask and item is not Ellipsis for item in items):
        return None
    dims = (mask._array if isinstance(mask, Tensor) else np.asarray(mask)).ndim
    return mask if items[0] is not Ellipsis or dims == ndim else None


def _dims_of(item: Any) -> int:
    """Return how many dims of the input an index stands for."""
    if isinstance(item, (np.ndarray, Traced)):
        return item.ndim if item.dtype.kind == "b" else 1
    return 1 if type(item) in (int, slice) else 0


def _is_full(key: slice, size: int) -> bool:
    """Return whether a slice takes the whole dim."""
    start, stop, step = key.start, key.stop, key.step
    return (
        (start is None or (type(start) is int and start == 0))
        and (stop is None or (type(stop) is int and stop >= size))
        and (step is None or (type(step) is int and step == 1))
    )


def _positions(mask: Any, shape: tuple[int, ...], dim: int) -> tuple[Array, ...]:
    """Return where a mask is True, one array for each of its dims."""
    for position, length in enumerate(mask.shape):
        if shape[dim + position] != length:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {position} does not match the "
                f"shape of the indexed tensor {[each for each in shape if each >= 0]} at index "
                f"{dim + position}"
            )
    if type(mask) is Traced:
        known = mask.storage.recorder.known(mask)
        if known is None:
            refuse_shape_of("indexing with a mask", mask)
        mask = known
    found: tuple[Array, ...] = read_array(np.ndarray.nonzero, mask, counts=True)
    return found


def _all_or_none(mask: Array, length: int) -> Array:
    """Return the positions of a mask without dims in a dim, for all of which it holds."""
    return np.arange(length if mask else 0)


def check_indices(found: Sequence[Array | None], shape: tuple[int, ...]) -> Indices:
    """Return positions counted from the front, as arrays that belong to nobody else.

    Raises
    ------
    IndexError
        If the arrays do not broadcast, or one leads outside; not where there is nothing to take.
    """
    own = [None if each is None else read_array(_own_positions, each) for each in found]
    shapes = [positions.shape for positions in own if positions is not None]
    try:
        common = broadcast_shapes(shapes)
    except RuntimeError:
        words = ", ".join(str(list(each)) for each in shapes)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {words}"
        ) from None
    whole = [size for size, each in zip_longest(shape, own) if each is None]
    indexed = [size for size, each in zip(shape, own, strict=False) if each is not None]
    if 0 in indexed and 0 not in common:
        raise IndexError("index is out of bounds for dimension with size 0")
    if 0 in common or 0 in whole:  # nothing is there, wherever it would be
        return tuple([None if each is None else np.zeros(each.shape, np.int64) for each in own])
    indices: list[Array | None] = []
    ordinal = 0
    for size, positions in zip(shape, own, strict=False):
        if positions is not None:
            positions = _from_front(positions, size=size, ordinal=ordinal)
            ordinal += 1
        indices.append(positions)
    return tuple(indices)


def _own_positions(positions: Any) -> Any:
    """Return positions as int64 in other memory, in the order of theirs."""
    if type(positions) is np.ndarray and 0 in positions.strides:
        positions = copy_like(positions)  # which keeps the order of the other dims
    return positions.astype(np.int64)


@at_run_time(quick=unless_inside)
def _from_front(positions: Array, size: int, ordinal: int) -> Array:
    """Return positions counted from the front, as an array that belongs to nobody else."""
    if are_inside(positions, size):
        return positions
    low, high = positions.min(), positions.max()
    if low < -size or high >= size:
        if size == 0:
            raise IndexError("index is out of bounds for dimension with size 0")
        outside = positions[(positions < -size) | (positions >= size)].flat[0]
        raise IndexError(
            f"index {outside} is out of bounds for dimension {ordinal} with size {size}"
        )
    return np.where(positions < 0, positions + size, positions) if low < 0 else positions


def to_indices(items: Sequence[Any], shape: tuple[int, ...]) -> Indices:
    """Return the indices of a sequence of tensors (or arrays, or None for a whole dim).

    Raises
    ------
    IndexError
        If there are more than dims, they have the wrong dtype, or lead outside.
    """
    found: list[Array | None] = []
    if not items:
        raise RuntimeError("index_put(): at least one of the indices has to be a tensor")
    if all(item is None for item in items):
        raise TypeError("expected Tensor as element 0 in argument 0, but got NoneType")
    if len(items) > len(shape):
        raise _too_many(len(shape), len(items))
    whole = None
    for place, item in enumerate(items):
        if item is None:
            found.append(None)
            continue
        if not isinstance(item, (Tensor, np.ndarray, Traced)):
            raise TypeError(
                f"expected Tensor as element {place} in argument 0, but got {type(item).__name__}"
            )
        array = item._array if isinstance(item, Tensor) else item
        if array.dtype.kind == "b" or array.dtype == np.uint8:
            note_numbers(array)
            mask = array if array.dtype.kind == "b" else _mask_of_bytes(array)
            if not mask.ndim:
                whole = mask  # which stands for no dim beside other positions
                continue
            found += _positions(mask, (*shape, *(-1,) * array.ndim), len(found))
        elif array.dtype in (np.int64, np.int32):
            found.append(at_hand(array))
        else:
            raise IndexError(_INDEX_DTYPES)
    if len(found) > len(shape):
        raise _too_many(len(shape), len(found))
    if whole is not None and all(each is None for each in found):
        found = [read_array(_all_or_none, at_hand(whole), counts=True, length=shape[0])]
    return check_indices(found, shape)


def _too_many(dims: int, given: int) -> IndexError:
    return IndexError(f"too many indices for tensor of dimension {dims} (got {given})")
