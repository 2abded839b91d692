"""as_strided and as_strided_scatter: views anywhere in a storage."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.storage import offset_of
from numgrad.graph.tensor import Tensor, fresh, holder_of
from numgrad.kernels.move import scatter
from numgrad.kernels.move.memory_order import copy_like, empty_like
from numgrad.kernels.move.strides import (
    Layout,
    extent,
    layout_of,
    may_overlap,
    repeats_elements,
    strided_view,
)
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.signatures.declared import declare

__all__ = [
    "AS_STRIDED",
    "as_strided",
    "as_strided_scatter",
    "move",
    "place",
    "read",
    "scatter_arrays",
    "scatter_into",
]

Array = np.ndarray[Any, Any]
_BEYOND_BYTES = 2**63  # that no address reaches


def _as_strided(
    array: Array, layout: Layout, own: Layout, storage_offset: int | None = None
) -> Array:
    return strided_view(array, layout)


# The layouts count from the input's first element; `own` is the input's, and `storage_offset` what
# the user said. Not declared linear, because it is its own tangent map only for tangents of that
# very layout.
AS_STRIDED: Primitive = Primitive(
    "as_strided",
    "AsStridedBackward0",
    _as_strided,
    ["input"],
    [lambda g, layout, own: move(g, layout, own, own)],
    view=True,
    samples=[
        lambda make: (as_strided, [make(6)], {"size": (2, 3), "stride": (1, 1)}),
        lambda make: (as_strided, [make(2, 3)], {"size": (), "stride": (), "storage_offset": 4}),
        lambda make: (as_strided, [make(4)], {"size": (0, 2), "stride": (2, 1)}),
        lambda make: (lambda x: as_strided(x.expand(3, 2), (2, 2), (0, 1)), [make(2)], {}),
    ],
)


@silent
def _move_arrays(array: Array, source: Layout, target: Layout, shared: Layout) -> Array:
    found = scatter.move_strided(array, source, target, shared)
    itemsize = found.itemsize
    if found.strides == tuple([step * itemsize for step in target[1]]):  # so it lies already
        return found
    memory = _lies_as_moved(target, array.dtype)
    if memory.strides == found.strides:
        return found
    memory[...] = found
    return memory


def _lies_as_moved(target: Layout, dtype: Any) -> Array:
    """Return memory that lies as `target`, without gaps where that shows an element repeatedly."""
    low, high = extent(target)
    shape, stride, first = target
    memory = strided_view(np.zeros(high - low, dtype), (shape, stride, first - low))
    return empty_like(memory) if may_overlap(layout_of(memory)) else memory


# With S and T the maps that read a storage at the places of `source` and `target`, and D the
# division by how often `shared` reaches each place, this is T D S^t, and its transpose S D T^t.
_MOVE: Primitive = Primitive(
    "as_strided_backward",
    "AsStridedBackward0",
    _move_arrays,
    ["input"],
    [lambda g, source, target, shared: move(g, target, source, shared)],
    linear=True,
    lies=lambda input, target: _lies_as_moved(target, input.dtype),
    gaps=True,
    samples=[
        lambda make: (
            move,
            [make(2, 3)],
            {
                "source": ((2, 3), (1, 1), 0),
                "target": ((6,), (1,), 0),
                "shared": ((6,), (1,), 0),
            },
        ),
        lambda make: (
            move,
            [make(3)],
            {
                "source": ((3,), (1,), 0),
                "target": ((2, 3), (0, 1), 0),
                "shared": ((2, 3), (0, 1), 0),
            },
        ),
        lambda make: (
            move,
            [make(0)],
            {"source": ((0,), (1,), 0), "target": ((2,), (1,), 0), "shared": ((2,), (1,), 0)},
        ),
    ],
)


def move(input: Tensor, source: Layout, target: Layout, shared: Layout) -> Tensor:
    """Return what lies at `target` when `input` is added into zeros at `source`."""
    result: Tensor = _MOVE.apply(input, source=source, target=target, shared=shared)
    return result


def scatter_arrays(
    array: Array, source: Array, outer: Layout, inner: Layout, storage_offset: int | None = None
) -> Array:
    """Return `array`, laid out as `outer`, with `source` in the places of the layout `inner`."""
    result = _memory_of_scattered(outer, inner, array.dtype)
    result[...] = array
    size, steps, first = inner
    strided_view(result, (size, steps, first - outer[2]))[...] = source
    return copy_like(result) if repeats_elements(result) else result


def _memory_of_scattered(outer: Layout, inner: Layout, dtype: Any) -> Array:
    """Return zeros laid out as `outer`, with room for all that is at `inner`."""
    low, high = extent(outer)
    inside_low, inside_high = extent(inner)
    start = min(low, inside_low)
    memory = np.zeros(max(high, inside_high) - start, dtype)
    shape, stride, offset = outer
    return strided_view(memory, (shape, stride, offset - start))


def _lies_as_scattered(input: Array, outer: Layout, inner: Layout) -> Array:
    memory = _memory_of_scattered(outer, inner, input.dtype)
    return empty_like(memory) if repeats_elements(memory) else memory


_SCATTER: Primitive = Primitive(
    "as_strided_scatter",
    "AsStridedScatterBackward0",
    scatter_arrays,
    ["input", "src"],
    [
        lambda g, src_shape, outer, inner: scatter_into(g, _zeros_like(g, src_shape), outer, inner),
        lambda g, outer, inner: _read_anywhere(g, outer, inner),
    ],
    linear=True,
    lies=_lies_as_scattered,
    gaps=True,
    samples=[
        lambda make: (as_strided_scatter, [make(2, 3), make(2)], {"size": (2,), "stride": (4,)}),
        lambda make: (as_strided_scatter, [make(2), make()], {"size": (), "stride": ()}),
        lambda make: (as_strided_scatter, [make(2), make(0)], {"size": (0,), "stride": (1,)}),
    ],
)


def scatter_into(input: Tensor, source: Tensor, outer: Layout, inner: Layout) -> Tensor:
    """Return a copy of an input that is laid out like `outer`, with `source` at `inner`."""
    result: Tensor = _SCATTER.apply(input, source, outer=outer, inner=inner)
    return result


def _zeros_like(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return fresh(np.zeros(shape, tensor._array.dtype))


def read(input: Tensor, outer: Layout, inner: Layout) -> Tensor:
    """Return what lies at `inner` in an input taken as laid out like `outer`, which begins at 0."""
    if scatter.same_layout(input._array, outer):
        result: Tensor = AS_STRIDED.apply(input, layout=inner, own=outer)
        return result
    return move(input, outer, inner, outer)


def _read_anywhere(input: Tensor, outer: Layout, inner: Layout) -> Tensor:
    """Return what lies at `inner` in an input taken as laid out like `outer`; outside, zeros."""
    (start, stop), (low, high) = extent(outer), extent(inner)
    if low < high and not start <= low <= high <= stop:
        return move(input, outer, inner, outer)
    (shape, stride, begin), (size, steps, first) = outer, inner
    return read(input, (shape, stride, 0), (size, steps, first - begin))


def place(
    input: Tensor, shape: tuple[int, ...], steps: tuple[int, ...], storage_offset: int | None
) -> Layout:
    """Return a layout in the input's storage, counted from the input's first element.

    Raises
    ------
    RuntimeError
        In PyTorch's words, if it does not lie inside the storage.
    """
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(step < 0 for step in steps):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(steps)}"
        )
    array = input._array
    storage = holder_of(input)
    own_offset, itemsize = offset_of(input), array.itemsize
    offset = own_offset if storage_offset is None else int(storage_offset)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    start, stop = extent(layout_of(storage))
    held = (stop - start) * storage.itemsize
    low, high = extent((shape, steps, offset))
    longest = max([high, *steps]) * itemsize  # a stride counts though it may lead nowhere
    if any(length < 0 for length in shape) or max(longest, prod(shape)) >= _BEYOND_BYTES:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and "
            f"strides={list(steps)}"
        )
    if high > low and high * itemsize > held:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset}, "
            f"and itemsize {itemsize} requiring a storage size of {high * itemsize} are out of "
            f"bounds for storage of size {held}"
        )
    return shape, steps, offset - own_offset


@declare("as_strided(Tensor input, int[] size, int[] stride, int? storage_offset=None)")
def as_strided(
    input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int | None
) -> Tensor:
    """Return a view of the input's storage with any size and stride.

    The gradient of an element of the storage is the sum of g over the places that show it; of an
    element that the input shows several times, each place gets an equal share.

    Parameters
    ----------
    size, stride
        In elements.
    storage_offset
        Where in the storage the view starts; by default where the input does.

    Raises
    ------
    RuntimeError
        If the view does not lie inside the storage.

    >>> import numgrad as ng
    >>> ng.arange(4.0).as_strided((3, 2), (1, 1))
    tensor([[0., 1.],
            [1., 2.],
            [2., 3.]])
    """
    layout = place(input, size, stride, storage_offset)
    own = layout_of(input._array)
    result: Tensor = AS_STRIDED.apply(input, layout=layout, own=own, storage_offset=storage_offset)
    return result


@declare(
    "as_strided_scatter(Tensor input, Tensor src, int[] size, int[] stride, "
    "int? storage_offset=None)"
)
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    storage_offset: int | None,
) -> Tensor:
    """Return a copy of the input in which ``as_strided(size, stride, storage_offset)`` is `src`.

    The gradient of the input is g with zeros in those places, that of `src` what g has there.

    Parameters
    ----------
    src
        Of shape `size`.
    size, stride, storage_offset
        As of `as_strided`.

    Raises
    ------
    RuntimeError
        If `src` has another shape, or the places do not lie inside the storage.

    Notes
    -----
    PyTorch 2.13 gives the input the opposite gradient: g inside those places and 0 outside.

    >>> import numgrad as ng
    >>> ng.as_strided_scatter(ng.zeros(2, 2), ng.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
    inner = place(input, size, stride, storage_offset)
    if src._array.shape != inner[0]:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(inner[0])}"
        )
    outer = layout_of(input._array)
    result: Tensor = _SCATTER.apply(
        input, src, outer=outer, inner=inner, storage_offset=storage_offset
    )
    return result
