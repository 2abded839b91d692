"""Index: ``x[key]``, with the gradient of what takes elements at positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.base.tuning import FLATTENED_POSITIONS
from numgrad.graph.modes.state import call_interceptors, modes
from numgrad.graph.tensor import NO_EDGE, Tensor, kind_of, refresh_view, wrap
from numgrad.kernels.move.indexing import (
    spread_indexed,
    take_indexed,
)
from numgrad.kernels.move.memory_order import empty_for, in_order_of
from numgrad.kernels.move.strides import layout_of, strided_view
from numgrad.ops.calls.dispatch import Calls
from numgrad.ops.calls.index_facts import key_of, written_key
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.indexing.index_keys import (
    Indices,
    apply_key,
    select_first,
)
from numgrad.ops.movement.slicing import alias, slice_view
from numgrad.ops.movement.unit_dims import unsqueeze

__all__ = ["INDEX", "getitem", "getitem_of_any", "sampled", "view_at"]

Array = np.ndarray[Any, Any]


def sampled(*positions: Any) -> Indices:
    """Return indices for a sample."""
    return tuple(None if each is None else np.array(each, np.int64) for each in positions)


def _take(array: Array, indices: Indices) -> Array:
    """Return ``array[indices]``, laid out as PyTorch's loop over input and indices does."""
    result = take_indexed(array, indices)
    if result.ndim < 2:  # there is only one order
        return result
    if _is_in_order(array):
        for positions in indices:
            if positions is not None and not _is_in_order(positions):
                break
        else:
            return result
    return in_order_of(result, _walked(array, indices))


def _take_quickly(array: Array, indices: Indices) -> Callable[..., Array] | None:
    """Return what takes from arrays like this one, where the result has only one order."""
    dims = [dim for dim, positions in enumerate(indices) if positions is not None]
    given = [positions for positions in indices if positions is not None]
    if any(positions.ndim != 1 for positions in given):
        return None
    if array.ndim == len(given):
        is_quick = len(given) == 1 or given[0].size < FLATTENED_POSITIONS
        return (lambda array, indices: array[indices]) if is_quick else None
    if len(given) > 1 or not array.size or not all(map(_is_in_order, (array, *given))):
        return None
    (dim,) = dims
    return lambda array, indices: array.take(indices[dim], dim)


def _is_in_order(array: Array) -> bool:
    """Whether strides descend, also those along dims of length 1, which decide in that loop."""
    if not array.flags.c_contiguous:
        return False
    return 1 not in array.shape or array.strides == np.empty(array.shape, array.dtype).strides


def _memory_of_taken(input: Array, indices: Indices) -> Array:
    walked = _walked(input, indices)
    return empty_for(walked[0].shape, input.dtype, walked)


def _walked(array: Array, indices: Indices) -> list[Array]:
    """Return what a loop over an input and indices walks, broadcast to the shape of the result."""
    given = [positions for positions in indices if positions is not None]
    # In that loop the dims that come from positions have no step in the input, and the others none
    # in the positions.
    dims = [dim for dim, positions in enumerate(indices) if positions is not None]
    common = np.broadcast_shapes(*[positions.shape for positions in given])
    at = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    steps = [step for dim, step in enumerate(layout_of(array)[1]) if dim not in dims]
    shape = [length for dim, length in enumerate(array.shape) if dim not in dims]
    steps[at:at] = [0] * len(common)
    shape[at:at] = common
    walked = [strided_view(array, (tuple(shape), tuple(steps), 0))]
    for positions in given:
        wide = np.broadcast_to(positions, common)
        walked.append(_with_ones(wide, at, len(shape) - at - len(common)))
    return walked


def _with_ones(positions: Array, before: int, behind: int) -> Array:
    """Return positions with dims of length 1 around theirs, whose strides are those of a `view`."""
    shape, strides, _ = layout_of(positions)
    first = shape[0] * strides[0] if shape else 1
    last = strides[-1] if shape else 1
    shape = (1,) * before + shape + (1,) * behind
    return strided_view(positions, (shape, (first,) * before + strides + (last,) * behind, 0))


INDEX: Primitive = Primitive(
    "index",
    "IndexBackward0",
    _take,
    ["input"],
    [lambda g, input_shape, indices: _INDEX_ADD.apply(g, shape=input_shape, indices=indices)],
    linear=True,
    counts=True,
    lies=_memory_of_taken,
    quick=_take_quickly,
    samples=[
        lambda make: (getitem, [make(3, 2)], {"key": [0, 2, 0]}),
        lambda make: (getitem, [make(2, 3, 2)], {"key": ([[0, 1]], slice(None), [1, 1])}),
        lambda make: (getitem, [make(2, 3)], {"key": (slice(None), [0, 0, 2])}),
        lambda make: (getitem, [make(2, 3)], {"key": wrap(np.eye(2, 3) > 0)}),
        lambda make: (getitem, [make(3)], {"key": []}),
        lambda make: (getitem, [make()], {"key": True}),
    ],
)
_INDEX_ADD: Primitive = Primitive(
    "index_backward",
    "IndexPutImplBackward0",
    lambda array, shape, indices: spread_indexed(shape, indices, array),
    ["input"],
    [lambda g, indices: INDEX.apply(g, indices=indices)],
    linear=True,
    samples=[
        lambda make: (
            lambda g: _INDEX_ADD.apply(g, shape=(3, 2), indices=sampled([0, 2, 0])),
            [make(3, 2)],
            {},
        ),
        lambda make: (
            lambda g: _INDEX_ADD.apply(g, shape=(2, 3, 2), indices=sampled([0, 1], None, [1, 1])),
            [make(2, 3)],
            {},
        ),
        lambda make: (
            lambda g: _INDEX_ADD.apply(g, shape=(3,), indices=sampled([])),
            [make(0)],
            {},
        ),
    ],
)


def getitem(input: Tensor, key: Any) -> Tensor:
    """Return ``input[key]``.

    Ints, slices, None and Ellipsis make views. Tensors, lists, arrays and bools take elements in
    any order and any number, as a copy; the gradient adds up what an element got in every place.

    Parameters
    ----------
    input : tensor
    key : int, slice, None, Ellipsis, bool, tensor, array, list, range, or a tuple of these

    Raises
    ------
    IndexError
        If the key leads outside, or is not what may stand in brackets.
    ValueError
        If a slice has a step that is not positive.

    >>> import numgrad as ng
    >>> ng.tensor([[1.0, 2.0], [3.0, 4.0]])[:, 1]
    tensor([2., 4.])
    """
    if type(input) is not Tensor or call_interceptors:
        return getitem_of_any(input, key)
    written = written_key(key)
    if written is not None:
        return view_at(input, key, written)
    operands = [input]
    found = key_of(key, operands)
    if found is None:
        return getitem_of_any(input, key)
    written, key = found
    if input._base is not None:
        refresh_view(input)
    needs = input._edge is not NO_EDGE
    facts = input._kind or kind_of(input), written, needs, needs and modes.grad
    program = _find(facts)
    if program is None:
        return _CALLS.meet(facts, operands, (), (input, key))
    result: Tensor = program(*operands)
    return getitem_of_any(input, key) if result is None else result


def view_at(input: Tensor, key: Any, written: Any) -> Tensor:
    """Return the view ``input[key]``, where nothing has to see every call."""
    if input._base is not None:
        refresh_view(input)
    needs = input._edge is not NO_EDGE
    facts = input._kind or kind_of(input), written, needs, needs and modes.grad
    program = _find(facts)
    if program is None:
        made: Tensor = _CALLS.meet(facts, (input,), (), (input, key))
        return made
    result: Tensor = program(input)
    return getitem_of_any(input, key) if result is None else result


def getitem_of_any(input: Tensor, key: Any) -> Tensor:
    """Return ``input[key]`` of any key."""
    kind = type(key)
    if kind is int:
        return select_first(input, key)
    if kind is slice:
        return slice_view(input, 0, key)
    if key is None:
        return unsqueeze(input, 0)
    if key is Ellipsis:
        return alias(input)
    part, indices, held = apply_key(input, key)
    if indices is None:
        return alias(part) if part is input else part
    result: Tensor = INDEX.apply(part, indices=indices, held=held)
    return result


_CALLS = Calls(getitem_of_any)
_find = _CALLS.programs.get
