"""Slices of one dim: select, slice, narrow, and their scatter forms."""

from __future__ import annotations

from functools import partial
from operator import index as to_int
from operator import itemgetter
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.move.memory_order import copy_with_gaps
from numgrad.kernels.move.strides import slice_of_nothing, sliced, strided_view
from numgrad.ops.arguments.dims import refuse_complex_gradient, wrap_dim
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.places import with_gaps_of_input
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.signatures.declared import declare

__all__ = ["alias", "narrow", "select", "select_scatter", "slice_of", "slice_scatter", "slice_view"]

Array = np.ndarray[Any, Any]


def _at(dim: int, position: int) -> tuple[Any, ...]:
    """Return NumPy's key for one position in a dim; the Ellipsis keeps a 0-d result an array."""
    return (*(slice(None),) * dim, position, ...)


def _between(dim: int, start: int, stop: int, step: int) -> tuple[Any, ...]:
    return (*(slice(None),) * dim, slice(start, stop, step))


def _slice_quickly(array: Array, dim: int, start: int, stop: int, step: int) -> Any:
    if start < stop:
        return itemgetter(_between(dim, start, stop, step))
    return partial(strided_view, layout=slice_of_nothing(array, dim, start, step))


def _embed(array: Array, shape: tuple[int, ...], key: tuple[Any, ...]) -> Array:
    whole = np.zeros(shape, array.dtype)
    whole[key] = array
    return whole


def _replace(array: Array, part: Array, key: tuple[Any, ...]) -> Array:
    whole = copy_with_gaps(array)
    whole[key] = part
    return whole


_ALIAS: Primitive = Primitive(
    "alias",
    "AliasBackward0",
    lambda array: array[...],
    ["input"],
    [lambda g: g],
    view=True,
    linear=True,
    samples=[
        lambda make: (alias, [make(2, 3)], {}),
        lambda make: (alias, [make()], {}),
        lambda make: (alias, [make(0)], {}),
    ],
)
_SELECT: Primitive = Primitive(
    "select",
    "SelectBackward0",
    lambda array, dim, index: array[_at(dim, index)],
    ["input"],
    [
        lambda g, input_shape, dim, index: _SELECT_BACKWARD.apply(
            g, shape=input_shape, dim=dim, index=index
        )
    ],
    quick=lambda array, dim, index: itemgetter(_at(dim, index)),
    view=True,
    linear=True,
    samples=[
        lambda make: (select, [make(2, 3)], {"dim": 1, "index": -1}),
        lambda make: (select, [make(2)], {"dim": 0, "index": 0}),
        lambda make: (select, [make(0, 2)], {"dim": 1, "index": 1}),
    ],
)
_SELECT_BACKWARD: Primitive = Primitive(
    "select_backward",
    "SelectBackwardBackward0",
    lambda array, shape, dim, index: _embed(array, shape, _at(dim, index)),
    ["input"],
    [lambda g, dim, index: _SELECT.apply(g, dim=dim, index=index)],
    quick=lambda array, shape, dim, index: partial(_embed, shape=shape, key=_at(dim, index)),
    linear=True,
    samples=[
        lambda make: (
            lambda g: _SELECT_BACKWARD.apply(g, shape=(2, 3), dim=1, index=2),
            [make(2)],
            {},
        ),
        lambda make: (
            lambda g: _SELECT_BACKWARD.apply(g, shape=(2,), dim=0, index=1),
            [make()],
            {},
        ),
    ],
)
_SLICE: Primitive = Primitive(
    "slice",
    "SliceBackward0",
    sliced,
    ["input"],
    [
        lambda g, input_shape, dim, start, stop, step: _SLICE_BACKWARD.apply(
            g, shape=input_shape, dim=dim, start=start, stop=stop, step=step
        )
    ],
    quick=_slice_quickly,
    view=True,
    linear=True,
    samples=[
        lambda make: (slice_of, [make(2, 5)], {"dim": 1, "start": 1, "stop": 5, "step": 2}),
        lambda make: (narrow, [make(3)], {"dim": 0, "start": 1, "length": 0}),
        lambda make: (narrow, [make(0, 3)], {"dim": 1, "start": 1, "length": 2}),
    ],
)
_SLICE_BACKWARD: Primitive = Primitive(
    "slice_backward",
    "SliceBackwardBackward0",
    lambda array, shape, dim, start, stop, step: _embed(
        array, shape, _between(dim, start, stop, step)
    ),
    ["input"],
    [lambda g, dim, start, stop, step: slice_of(g, dim, start, stop, step)],
    quick=lambda array, shape, dim, start, stop, step: partial(
        _embed, shape=shape, key=_between(dim, start, stop, step)
    ),
    linear=True,
    samples=[
        lambda make: (
            lambda g: _SLICE_BACKWARD.apply(g, shape=(2, 5), dim=1, start=1, stop=5, step=2),
            [make(2, 2)],
            {},
        ),
    ],
)
_SELECT_SCATTER: Primitive = Primitive(
    "select_scatter",
    "SelectScatterBackward0",
    lambda array, part, dim, index: _replace(array, part, _at(dim, index)),
    ["input", "src"],
    [
        lambda g, src_shape, dim, index: _SELECT_SCATTER.apply(
            g, _zeros(g, src_shape), dim=dim, index=index
        ),
        lambda g, dim, index: _SELECT.apply(g, dim=dim, index=index),
    ],
    linear=True,
    lies=with_gaps_of_input,
    gaps=True,
    samples=[
        lambda make: (select_scatter, [make(2, 3), make(2)], {"dim": 1, "index": 2}),
        lambda make: (select_scatter, [make(2), make()], {"dim": 0, "index": 0}),
        lambda make: (select_scatter, [make(0, 2), make(0)], {"dim": 1, "index": 0}),
    ],
)
_SLICE_SCATTER: Primitive = Primitive(
    "slice_scatter",
    "SliceScatterBackward0",
    lambda array, part, dim, start, stop, step: _replace(
        array, part, _between(dim, start, stop, step)
    ),
    ["input", "src"],
    [
        lambda g, src_shape, dim, start, stop, step: _SLICE_SCATTER.apply(
            g, _zeros(g, src_shape), dim=dim, start=start, stop=stop, step=step
        ),
        lambda g, dim, start, stop, step: slice_of(g, dim, start, stop, step),
    ],
    linear=True,
    lies=with_gaps_of_input,
    gaps=True,
    samples=[
        lambda make: (slice_scatter, [make(2, 5), make(2, 2)], {"dim": 1, "start": 1, "step": 2}),
        lambda make: (slice_scatter, [make(3), make(0)], {"start": 2, "end": 2}),
    ],
)


def _zeros(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    return fresh(np.zeros(shape, like._array.dtype))


def alias(input: Tensor) -> Tensor:
    """Return a view of the whole tensor."""
    result: Tensor = _ALIAS.apply(input)
    return result


def select_view(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view at a position in a dim, both of them known to exist."""
    result: Tensor = _SELECT.apply(input, dim=dim, index=index)
    return result


def slice_of(input: Tensor, dim: int, start: int, stop: int, step: int) -> Tensor:
    """Return a view of positions in a dim; start and stop from 0 to its size."""
    result: Tensor = _SLICE.apply(input, dim=dim, start=start, stop=stop, step=step)
    return result


def slice_view(input: Tensor, dim: int, key: slice) -> Tensor:
    """Return the view that a slice makes of a dim.

    Raises
    ------
    IndexError
        If the tensor has no dims.
    TypeError, ValueError
        If the slice holds something else than ints, or its step is not positive.
    """
    shape = input._array.shape
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    start, stop, step = key.indices(shape[dim])
    if step < 0:
        raise ValueError("step must be greater than zero")
    return slice_of(input, dim, start, stop, step)


@declare("select(Tensor input, int dim, int index)", dispatched=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view at one position of a dim; the dim goes.

    The gradient is 0 but for that position, where it is g.

    Parameters
    ----------
    input : tensor
    dim : int
    index : int
        Negative ones count from the end.

    Raises
    ------
    IndexError
        If there is no such dim or position.

    >>> import numgrad as ng
    >>> ng.tensor([[1.0, 2.0], [3.0, 4.0]]).select(1, 0)
    tensor([1., 3.])
    """
    shape = input._array.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    position = wrap_dim(dim, len(shape))
    return select_view(input, position, _place(index, shape, position))


def _place(place: int, shape: tuple[int, ...], dim: int) -> int:
    if not -shape[dim] <= place < shape[dim]:
        raise IndexError(
            f"select(): index {place} out of range for tensor of size {list(shape)} at dimension "
            f"{dim}"
        )
    return place % shape[dim]


@declare(
    "narrow(Tensor input, int dim, Tensor start, int length)",
    "narrow(Tensor input, int dim, int start, int length)",
    dispatched=True,
)
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """Return a view of `length` positions of a dim, from `start` on.

    The gradient is 0 but for those positions, where it is g.

    Parameters
    ----------
    start
        Negative ones count from the end.

    Raises
    ------
    IndexError
        If there is no such dim or start.
    RuntimeError
        If the dim ends before.

    >>> import numgrad as ng
    >>> ng.arange(5.0).narrow(0, 1, 3)
    tensor([1., 2., 3.])
    """
    shape = input._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start._array.ndim or start._array.dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    position = wrap_dim(dim, len(shape))
    size, first = shape[position], to_int(start)
    if not -size <= first <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {first})"
        )
    if first < 0:
        first += size
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return slice_of(input, position, first, first + length, 1)


def _check_part(part: tuple[int, ...], place: tuple[int, ...]) -> None:
    """Raise unless the part has the shape of the place it goes to."""
    if part != place:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(part)}, slice size = {list(place)}"
        )


@declare("select_scatter(Tensor input, Tensor src, int dim, int index)", dispatched=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of the input in which ``select(dim, index)`` is `src`.

    The gradient of the input is g with zeros there, that of `src` what g has there.

    Raises
    ------
    IndexError
        If there is no such dim or position.
    RuntimeError
        If `src` has another shape; as in PyTorch, if one requires grad and the input is complex.

    >>> import numgrad as ng
    >>> ng.select_scatter(ng.zeros(2, 2), ng.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    shape = input._array.shape
    position = wrap_dim(dim, len(shape))
    place = _place(index, shape, position)
    _check_part(src._array.shape, shape[:position] + shape[position + 1 :])
    refuse_complex_gradient("select_scatter", input, src)
    result: Tensor = _SELECT_SCATTER.apply(input, src, dim=position, index=place)
    return result


@declare(
    "slice_scatter(Tensor input, Tensor src, int dim=0, int? start=None, int? end=None, "
    "int step=1, *, Tensor? out=None)",
    dispatched=True,
    write=partial(write_result, by_rows=True),
)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int, start: int | None, end: int | None, step: int
) -> Tensor:
    """Return a copy of the input in which a slice of a dim is `src`.

    The gradient of the input is g with zeros there, that of `src` what g has there.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If `src` has another shape, or the step is not positive; as in PyTorch, if one requires
        grad and the input is complex.

    >>> import numgrad as ng
    >>> ng.slice_scatter(ng.zeros(4), ng.ones(2), 0, 1, 3)
    tensor([0., 1., 1., 0.])
    """
    shape = input._array.shape
    position = wrap_dim(dim, len(shape))
    if step < 1:
        raise RuntimeError("slice step must be positive")
    first, last, _ = slice(start, end, step).indices(shape[position])
    length = len(range(first, last, step))
    _check_part(src._array.shape, (*shape[:position], length, *shape[position + 1 :]))
    refuse_complex_gradient("slice_scatter", input, src)
    result: Tensor = _SLICE_SCATTER.apply(
        input, src, dim=position, start=first, stop=last, step=step
    )
    return result
