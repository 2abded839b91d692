"""Write at positions: ``x[key] = value``, and index_put with its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from numgrad.base.dtypes import is_int64
from numgrad.graph.backward.accumulate import OVERLAPS_ITSELF
from numgrad.graph.inplace import check_captured, check_inplace, write_elements
from numgrad.graph.modes.state import call_interceptors, interceptors, modes
from numgrad.graph.node import node_type
from numgrad.graph.overlap import check_overlap, warn_of_repeats
from numgrad.graph.recorder import is_traced_array, place_of
from numgrad.graph.tensor import NO_EDGE, Tensor, fresh, refresh_view
from numgrad.graph.upward import upward
from numgrad.kernels.move.indexing import (
    add_indexed,
    indexed_shape,
    put_indexed,
    take_indexed,
)
from numgrad.kernels.move.memory_order import laid_out_like
from numgrad.kernels.move.strides import repeats_elements
from numgrad.ops.arguments.scalar_arrays import scalar_array
from numgrad.ops.calls.dispatch import Calls
from numgrad.ops.calls.index_facts import key_of, written_key
from numgrad.ops.calls.keys import watches_writes, written_facts
from numgrad.ops.core.places import like_input
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.indexing.index_keys import (
    Indices,
    apply_key,
    held_in,
    leading_mask,
    only_mask,
    refuse_byte_mask,
    to_indices,
)
from numgrad.ops.indexing.indexing import INDEX, getitem, getitem_of_any, sampled, view_at
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.complex_views import real
from numgrad.ops.movement.shape import view
from numgrad.ops.movement.unit_dims import expand, unsqueeze
from numgrad.ops.mutation.filling import check_number, masked_fill
from numgrad.ops.mutation.windows import is_window
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.numbers import BEYOND_INT64

__all__ = ["index_put", "setitem"]

Array = np.ndarray[Any, Any]


def _write_indexed(array: Array, values: Array, indices: Indices) -> None:
    """Write values into places of an array, in whose memory they may lie."""
    if np.may_share_memory(array, values):
        values = values.copy()
    array[_brackets(indices)] = values


def _brackets(indices: Indices) -> Any:
    """Return what NumPy takes in brackets for indices."""
    return tuple([slice(None) if positions is None else positions for positions in indices])


_INDEX_PUT: Primitive = Primitive(
    "index_put",
    "IndexPutBackward0",
    lambda array, values, indices: laid_out_like(put_indexed(array, indices, values), array),
    ["input", "values"],
    [
        lambda g, indices: _INDEX_PUT.apply(
            g, fresh(np.zeros((), g._array.dtype)), indices=indices
        ),
        lambda g, indices: INDEX.apply(g, indices=indices),
    ],
    linear=True,
    lies=like_input,
    writes=_write_indexed,
    named=lambda own, values, indices: (take_indexed(own, indices), values),
    samples=[
        lambda make: (
            lambda x, v: index_put(x, sampled([0, 2]), v),
            [make(3, 2), make(2, 2)],
            {},
        ),
        lambda make: (
            lambda x, v: index_put(x, sampled([0, 1], None, [1, 1]), v),
            [make(2, 3, 2), make(3)],
            {},
        ),
        lambda make: (lambda x, v: index_put(x, sampled([]), v), [make(3), make()], {}),
    ],
)


_INDEX_PUT_ADD: Primitive = Primitive(
    "index_put_accumulate",
    "IndexPutBackward0",
    lambda array, values, indices: laid_out_like(add_indexed(array, indices, values), array),
    ["input", "values"],
    [lambda g, indices: g, lambda g, indices: INDEX.apply(g, indices=indices)],
    linear=True,
    lies=like_input,
    named=lambda own, values, indices: (take_indexed(own, indices), values, "sum"),
    samples=[
        lambda make: (
            lambda x, v: index_put(x, sampled([0, 0]), v, accumulate=True),
            [make(3, 2), make(2)],
            {},
        ),
        lambda make: (
            lambda x, v: index_put(x, sampled(None, [1, 1, 0]), v, accumulate=True),
            [make(3, 2), make()],
            {},
        ),
        lambda make: (
            lambda x, v: index_put(x, sampled([]), v, accumulate=True),
            [make(3), make(0)],
            {},
        ),
    ],
)


@declare(
    "index_put(Tensor input, index[] indices, Tensor values, bool accumulate=False)",
    inplace=True,
    dispatched=True,
)
def index_put(
    input: Tensor, indices: tuple[Tensor | None, ...], values: Tensor, accumulate: bool
) -> Tensor:
    """Return a copy of the input with `values` in the places ``input[indices]``.

    The gradient of the input is g, with zeros in those places unless values are accumulated; that
    of `values` is ``g[indices]``. Where a place is named twice without accumulating, the last value
    stays, and each value gets the gradient of the place.

    Parameters
    ----------
    indices
        Positions in the first dims, or masks; None stands for a whole dim.
    values
        Broadcasts to the shape of ``input[indices]``.
    accumulate
        Add to what is there, for every time a place is named.

    Raises
    ------
    IndexError
        If an index leads outside, or is not int64, int32 or bool.
    RuntimeError
        If `values` has another dtype, or does not broadcast.

    >>> import numgrad as ng
    >>> ng.zeros(3).index_put((ng.tensor([0, 0]),), ng.tensor(1.0), accumulate=True)
    tensor([2., 0., 0.])
    """
    fills = not accumulate and values._array.size == 1
    if fills:
        refuse_byte_mask(indices)
    found = to_indices(indices, input._array.shape)
    if fills and _is_one_mask(indices):
        values = _filling(values, input)
    return _put_at(input, values, found, held_in(indices), accumulate)


def _is_one_mask(indices: Sequence[Any]) -> bool:
    """Return whether positions are those of a mask: then one value is filled in, whatever it is."""
    given = [each for each in indices if each is not None]
    return len(given) == 1 and isinstance(given[0], Tensor) and given[0]._array.dtype.kind == "b"


def _filling(value: Tensor, input: Tensor) -> Tensor:
    """Return one value in the dtype of the input, as `masked_fill` takes it."""
    dtype = input._array.dtype
    if value._array.dtype == dtype:
        return value
    check_number(value, dtype)
    return cast(real(value) if value.dtype.is_complex and dtype.kind != "c" else value, dtype)


def _put_at(
    input: Tensor,
    values: Tensor,
    indices: Indices,
    held: Sequence[Tensor],
    accumulate: bool = False,
) -> Tensor:
    """Return a copy of the input with values at positions that were checked."""
    _check_values(input, indices, values)
    primitive = _INDEX_PUT_ADD if accumulate else _INDEX_PUT
    result: Tensor = primitive.apply(input, values, indices=indices, held=held)
    return result


def _check_values(input: Tensor, indices: Indices, values: Tensor) -> None:
    """Raise unless values fit the places they go to."""
    shape, given = indexed_shape(input._array.shape, indices), values._array.shape
    excess = len(given) - len(shape)
    if excess > 0 or any(
        a not in (1, b) for a, b in zip(given, shape[len(shape) - len(given) :], strict=True)
    ):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(given)} cannot be broadcast to indexing "
            f"result of shape {list(shape)}"
        )
    _check_dtype(input, values)


def _check_dtype(input: Tensor, values: Tensor) -> None:
    """Raise unless values have the dtype of what they are put into."""
    if values._array.dtype != input._array.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{input.dtype.scalar_name} for the destination and {values.dtype.scalar_name} for the "
            "source."
        )


def setitem(input: Tensor, key: Any, value: Any) -> None:
    """Do ``input[key] = value``: write into the memory of the input, and into its history.

    Parameters
    ----------
    input : tensor
    key
        As of `getitem`.
    value : tensor or number
        Broadcasts to ``input[key]``; is cast where the key makes a view.

    Raises
    ------
    IndexError
        If the key leads outside, or is not what may stand in brackets.
    RuntimeError
        If `value` does not fit, or the input may not be written to in place.
    TypeError
        If `value` is neither a tensor nor a number.

    >>> import numgrad as ng
    >>> x = ng.zeros(3)
    >>> x[1:] = 2
    >>> x
    tensor([0., 2., 2.])
    """
    number = None if isinstance(value, Tensor) else _number_array(input, value)
    source: Any = value if number is None else None
    if key is False:
        return
    written = written_key(key)
    if interceptors and modes.level is not None:
        parts = key if isinstance(key, tuple) else (key,)
        is_view = all(part is None or part is ... or type(part) in (int, slice) for part in parts)
        check_captured(input, "copy" if is_view else "index_put")
    part: Any
    if key is None or key is True:
        part = unsqueeze(input, 0)
    elif key is Ellipsis:
        part = input
    elif written is not None:
        plain = type(input) is Tensor and not call_interceptors
        part = view_at(input, key, written) if plain else getitem_of_any(input, key)
        if part._array.shape == input._array.shape and _are_slices(key):
            part = input  # all of it
        if number is not None and plain and _is_unrecorded(part):
            if repeats_elements(part._array):
                raise RuntimeError(OVERLAPS_ITSELF)
            write_elements(part, ..., number)
            return
    else:
        source = fresh(number) if number is not None else source
        part = _put_remembered(input, key, source)
        if part is None:
            return
    if number is not None and source is None:
        source = fresh(number)
    array, target = source._array, part._array
    if array.dtype.kind == "c" and target.dtype.kind not in "bc":
        source = cast(source, target.dtype)  # which warns
    if array.shape != target.shape and array.ndim:
        source = _without_leading_ones(source)
        if source._array.shape != target.shape:
            source = expand(source, target.shape)
    if target.ndim and repeats_elements(target) and source._counter is not part._counter:
        raise RuntimeError(OVERLAPS_ITSELF)
    if target.ndim and not array.ndim:
        part.fill_(source)  # which may be an element of it
    else:
        part.copy_(source)


def _put_remembered(input: Tensor, key: Any, source: Tensor) -> Tensor | None:
    """Do what `_put` does, by the program of the call if it has one."""
    if (
        (interceptors and watches_writes())
        or type(input) is not Tensor
        or type(source) is not Tensor
    ):
        return _put(input, key, source)
    operands = [input, source]
    found = key_of(key, operands)
    if found is None:
        return _put(input, key, source)
    written, key = found
    for part in key:
        if type(part) is not Tensor and part not in (_ALL, ...):
            views, key = _views_apart(key)
            return _put_remembered(getitem(input, views), key, source)
    if source._array.shape[:1] == (1,):
        operands[1] = source = _without_leading_ones(source)
    counter = input._counter
    for index in operands[2:]:
        if index._counter is counter:  # they may overlap
            return _put(input, key, source)
    facts = _facts_of_put(input, source)
    if facts is None:
        return _put(input, key, source)
    program = _find_put((facts, written))
    if program is None:
        left: Tensor | None = _PUTS.meet((facts, written), operands, (), (input, key, source))
        return left
    return _put(input, key, source) if program(*operands) is None else None


def _put(input: Tensor, key: Any, source: Tensor) -> Tensor | None:
    """Do ``input[key] = source``, or return the view that the key is, if it is just that."""
    mask, casts = None, source._array.dtype != input._array.dtype
    if source._array.size == 1:
        arrays = [each for each in _parts(key) if isinstance(each, (Tensor, np.ndarray))]
        refuse_byte_mask([each for each in arrays if each.ndim])
        filled = only_mask(key) if casts else None
        if filled is not None and np.ndim(getattr(filled, "_array", filled)):
            source = _filling(source, input)
        if interceptors:
            mask = leading_mask(key, input._array.ndim)
    if isinstance(mask, Tensor) and is_traced_array(mask._array):
        _fill_where(input, mask, source)  # the same, whatever the mask holds
        return None
    part, indices, held = apply_key(input, key)
    if indices is None:
        return part
    if source._array.shape[:1] == (1,):
        source = _without_leading_ones(source)
    notes = interceptors and modes.steps is not None
    is_plain = type(part._array) is np.ndarray and not is_window(part._array)
    if not notes and is_plain and _is_plain(part, source):
        _check_overlap(part, held, source)
        _check_values(part, indices, source)
        _write(part, _brackets(indices), source)
    else:
        upward.perform(_put_at, "index_put", part, source, indices, held)
        if source._array.size == 1 and len(held) == 1 and held[0]._array.dtype.kind == "b":
            warn_of_repeats(part, "masked_fill")
    return None


def _check_overlap(part: Tensor, held: Sequence[Tensor], source: Tensor) -> None:
    """Raise, in PyTorch's words, if a write could change what says where to write, or is repeated.

    Where masks are True is found first, unless one number is filled in where they are.
    """
    for index in held:
        if index._counter is part._counter:
            is_mask = index._array.dtype.kind != "i"
            if not is_mask or source._array.size == 1:
                check_overlap(part, (index,), apart=not is_mask)


_ALL = slice(None)


def _views_apart(key: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the part of a key that makes a view, and the indices that remain of it.

    >>> from numgrad.graph.tensor import wrap
    >>> _views_apart((0, wrap(np.arange(2)), None))[0]
    (0, slice(None, None, None), None)
    """
    views: list[Any] = []
    indices: list[Any] = []
    for part in key:
        if type(part) is Tensor:
            array = part._array
            views += [_ALL] * (array.ndim if array.dtype.kind == "b" else 1)
            indices.append(part)
        else:
            views.append(part)
            if part is Ellipsis:
                indices.append(part)
            elif type(part) is not int:
                indices.append(_ALL)
    return tuple(views), tuple(indices)


_PUTS = Calls(_put, writes=True)


_find_put = _PUTS.programs.get


_facts_of_put = written_facts(("input", "source"))


def _without_leading_ones(source: Tensor) -> Tensor:
    """Return a tensor without the dims of length 1 that stand first, if there are some."""
    shape = source._array.shape
    leading = next((at for at, length in enumerate(shape) if length != 1), len(shape))
    return view(source, shape[leading:])


def _are_slices(key: Any) -> bool:
    return all(type(part) is slice or part is Ellipsis for part in _parts(key))


def _parts(key: Any) -> tuple[Any, ...]:
    return key if type(key) is tuple else (key,)


def _fill_where(input: Tensor, mask: Tensor, source: Tensor) -> None:
    """Do ``input[mask] = source``, which has one element."""
    shape, lead = mask._array.shape, input._array.shape[: mask._array.ndim]
    for position, (length, own) in enumerate(zip_longest(shape, lead)):
        if length != own:
            raise IndexError(
                f"The shape of the mask {list(shape)} at index {position} does not match the shape "
                f"of the indexed tensor {list(input._array.shape)} at index {position}"
            )
    part = input if shape else unsqueeze(input, 0)
    _check_dtype(part, source)
    if source._array.ndim:
        source = _without_leading_ones(source)
    whole = view(mask != 0, (*shape, *(1,) * (part._array.ndim - len(shape))))
    upward.perform(_filled_where, "index_put", part, whole, source)


def _filled_where(input: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """Return the input with one value where a mask is True, recorded as if it was put there."""
    result = masked_fill(input, mask, value)
    node = result._edge[0] if result._edge else None
    if node is not None:
        node.__class__ = node_type("IndexPutBackward0", type(node))
    return result


def _is_unrecorded(part: Tensor) -> bool:
    """Return whether to write a number is only that: nobody watches, and no graph holds it."""
    if interceptors:
        return False
    base = part._base
    if base is not None and base._edge is not NO_EDGE and modes.grad:
        return False
    return part._edge is NO_EDGE or not modes.grad


def _number_array(input: Tensor, value: Any) -> Any:
    """Return a number that is to be written, in the dtype of what is written to."""
    if type(value) is int and not is_int64(value):
        raise ValueError(BEYOND_INT64)
    if isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        return scalar_array(value, input._array.dtype, checks_half=False)
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    raise TypeError(f"can't assign a {name} to a torch.{input.dtype.scalar_name}Tensor")


def _is_plain(part: Tensor, source: Tensor) -> bool:
    """Return whether a write is only a write, because no graph will hold it."""
    if interceptors and (modes.inference or modes.dual is not None):
        return False  # the in-place methods know what to say, and about tangents
    if not modes.grad:
        return True
    base = part._base
    if base is not None:
        refresh_view(part)
        if base._edge is not NO_EDGE:
            return False
    if source._base is not None:
        refresh_view(source)
    return part._edge is NO_EDGE and source._edge is NO_EDGE


def _write(part: Tensor, key: Any, source: Tensor) -> None:
    """Write into places of the memory of a tensor."""
    check_inplace(part)
    if source._counter is part._counter:
        check_overlap(part, (source,), apart=True)
    values = source._array
    if np.may_share_memory(place_of(part._array), place_of(values)):
        values = values.copy()
    write_elements(part, key, values)
