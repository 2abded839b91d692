"""as_strided: views anywhere in a storage, and how a view finds its history again.

A `Geometry` says where a view lies in the memory of its base. After a write to the memory, a view
takes its edge from the base through an ``as_strided`` of that geometry, and the write itself is
recorded on the base with it (see `numgrad.ops.mutation.inplace`).
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.base.tuning import REMEMBERED_CALLS
from numgrad.graph.kinds import Kind, kind_for
from numgrad.graph.recorder import distance, place_of
from numgrad.graph.storage import offset_of
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, fresh, holder_of, kind_of, wrap
from numgrad.graph.upward import upward
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
from numgrad.ops.movement.casts import contiguous
from numgrad.ops.movement.complex_views import (
    VIEW_AS_COMPLEX,
    VIEW_AS_REAL,
    view_as_complex,
    view_as_real,
)
from numgrad.ops.signatures.declared import declare

__all__ = [
    "Geometry",
    "as_strided",
    "as_strided_scatter",
    "geometry_between",
    "geometry_of",
    "move",
    "place",
    "strided",
    "strided_scatter",
]

Array = np.ndarray[Any, Any]
_BEYOND_BYTES = 2**63  # that no address reaches


def _as_strided(array: Array, layout: Layout, own: Layout) -> Array:
    return strided_view(array, layout)


# The layouts count from the input's first element; `own` is the input's. Not declared linear,
# because it is its own tangent map only for tangents of that very layout.
_AS_STRIDED: Primitive = Primitive(
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


def _scatter_arrays(array: Array, source: Array, outer: Layout, inner: Layout) -> Array:
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
    _scatter_arrays,
    ["input", "src"],
    [
        lambda g, src_shape, outer, inner: _scatter(g, _zeros_like(g, src_shape), outer, inner),
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


def _scatter(input: Tensor, source: Tensor, outer: Layout, inner: Layout) -> Tensor:
    result: Tensor = _SCATTER.apply(input, source, outer=outer, inner=inner)
    return result


def _zeros_like(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return fresh(np.zeros(shape, tensor._array.dtype))


def _read(input: Tensor, outer: Layout, inner: Layout) -> Tensor:
    """Return what lies at `inner` in an input taken as laid out like `outer`, which begins at 0."""
    if scatter.same_layout(input._array, outer):
        result: Tensor = _AS_STRIDED.apply(input, layout=inner, own=outer)
        return result
    return move(input, outer, inner, outer)


def _read_anywhere(input: Tensor, outer: Layout, inner: Layout) -> Tensor:
    """Return what lies at `inner` in an input taken as laid out like `outer`; outside, zeros."""
    (start, stop), (low, high) = extent(outer), extent(inner)
    if low < high and not start <= low <= high <= stop:
        return move(input, outer, inner, outer)
    (shape, stride, begin), (size, steps, first) = outer, inner
    return _read(input, (shape, stride, 0), (size, steps, first - begin))


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
    if any(length < 0 for length in shape) or max(high * itemsize, prod(shape)) >= _BEYOND_BYTES:
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
    result: Tensor = _AS_STRIDED.apply(input, layout=layout, own=layout_of(input._array))
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
    return _scatter(input, src, layout_of(input._array), inner)


_APART = (
    "a view does not lie in the memory of its base any more, because one of them was given other "
    "memory (by `data =`, `set_` or `resize_`). Make the view anew."
)


class Geometry:
    """Where a view lies in the memory of its base, in elements of the one of smaller dtype.

    Attributes
    ----------
    outer, inner : Layout
        The layout of the base, at offset 0, and of the view.
    parts : str
        ``"base"`` if the base is complex and the view real, so that the base counts as real
        numbers; ``"view"`` the other way round; else empty.
    is_apart : bool
        Whether base and view have one dtype, and no place of the view is there twice.
    in_rows : bool
        Whether the base lies row by row beside.
    key : tuple of int, slice and Ellipsis, or None
        What gives the view in brackets behind a base that lies row by row, if anything does.
    """

    __slots__ = ("in_rows", "inner", "is_apart", "key", "outer", "parts")

    def __init__(self, outer: Layout, inner: Layout, parts: str) -> None:
        self.outer, self.inner, self.parts = outer, inner, parts
        self.is_apart = not parts and not may_overlap(inner)
        rows = layout_of(np.empty(outer[0], np.bool_))
        self.in_rows = (
            self.is_apart and outer[1:] == rows[1:] and inner[2] >= 0 and 0 not in inner[0]
        )
        self.key = _key_between(outer, inner) if self.in_rows else None


def _key_between(outer: Layout, inner: Layout) -> tuple[Any, ...] | None:
    """Return the ints and slices that take a view out of an array, if there are such.

    >>> _key_between(((3, 4), (4, 1), 0), ((2,), (2,), 5))
    (1, slice(1, 4, 2), Ellipsis)
    """
    key: list[Any] = []
    (shape, steps, _), (size, strides, rest) = outer, inner
    found = 0
    for length, step in zip(shape, steps, strict=True):
        start, rest = divmod(rest, step)
        if found < len(size):
            stride, beyond = divmod(strides[found], step)
            stop = start + (size[found] - 1) * stride + 1
            if stride > 0 and not beyond and stop <= length:
                key.append(slice(start, stop, stride))
                found += 1
                continue
        key.append(start)
    return (*key, ...) if found == len(size) else None


def geometry_of(view: Tensor, base: Tensor) -> Geometry:
    """Return where `view` lies in the memory of `base`.

    Raises
    ------
    RuntimeError
        If it lies elsewhere by now.
    """
    outer, inner = place_of(base._array), place_of(view._array)
    between = distance(outer, inner) if inner.size else 0
    if inner is view._array and outer is base._array:
        return _between_kinds(base._kind or kind_of(base), view._kind or kind_of(view), between)
    return _between_kinds(kind_for(outer), kind_for(inner), between)


@lru_cache(REMEMBERED_CALLS)
def _between_kinds(outer: Kind, inner: Kind, between: int) -> Geometry:
    facts = outer.shape, outer.strides, outer.dtype, inner.shape, inner.strides, inner.dtype
    return geometry_between(*facts, between)


def geometry_between(
    outer_shape: tuple[int, ...],
    outer_strides: tuple[int, ...],
    outer: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    inner: np.dtype[Any],
    between: int,
) -> Geometry:
    """Return the geometry for how a base and a view lie, with so many bytes in between."""
    parts = ""
    if outer != inner:
        if {outer.kind, inner.kind} != {"c", "f"}:
            raise RuntimeError(_APART)
        parts = "base" if outer.kind == "c" else "view"
    itemsize = min(outer.itemsize, inner.itemsize)
    if parts == "base":  # complex numbers count as pairs
        outer_shape, outer_strides = (*outer_shape, 2), (*outer_strides, itemsize)
    elif parts == "view":
        shape, strides = (*shape, 2), (*strides, itemsize)
    own = outer_shape, tuple([step // itemsize for step in outer_strides]), 0
    layout = shape, tuple([step // itemsize for step in strides]), between // itemsize
    low, high = extent(layout)
    if high > low:
        start, stop = extent(own)
        if low < start or high > stop:  # what read and wrote there would leave the memory
            raise RuntimeError(_APART)
    return Geometry(own, layout, parts)


def strided(tensor: Tensor, geometry: Geometry) -> Tensor:
    """Return the view of that geometry of a tensor in the place of the base."""
    if geometry.parts == "base":
        tensor = view_as_real(tensor)
    result = _read(tensor, geometry.outer, geometry.inner)
    return view_as_complex(_in_pairs(result)) if geometry.parts == "view" else result


def _in_pairs(tensor: Tensor) -> Tensor:
    """Return a tensor of which `view_as_complex` can be taken: itself, if possible."""
    itemsize = tensor._array.itemsize
    *others, last = tensor._array.strides
    return (
        contiguous(tensor)
        if last != itemsize or any(s % (2 * itemsize) for s in others)
        else tensor
    )


def inside_of(array: Array, geometry: Geometry) -> Any:
    """Return the part of an array in the place of the base that `strided` gives, as an array.

    None if it does not lie as the base did, or if what is read there is more than once in it.
    """
    outer, (size, steps, first) = geometry.outer, geometry.inner
    if geometry.in_rows and array.flags.c_contiguous and array.shape == outer[0]:
        return _within(array, geometry)
    if not geometry.is_apart or not scatter.same_layout(array, outer):
        return None
    return strided_view(array, (size, steps, first - outer[2]))


def _within(array: Array, geometry: Geometry) -> Array:
    """Return the part of an array that lies row by row, as the base did."""
    if geometry.key is not None:
        return array[geometry.key]
    (size, steps, first), itemsize = geometry.inner, array.itemsize
    strides = [step * itemsize for step in steps]
    return np.ndarray(size, array.dtype, array, first * itemsize, strides)


def scattered(array: Array, source: Any, geometry: Geometry) -> Array:
    """Return the array of `strided_scatter`, for an array that `inside_of` can be asked about.

    The source may be one number.
    """
    outer, inner = geometry.outer, geometry.inner
    if geometry.in_rows and array.flags.c_contiguous:
        result = array.copy()
        if geometry.key is None:
            _within(result, geometry)[...] = source
        else:
            result[geometry.key] = source
        return result
    if not array.flags.c_contiguous or layout_of(array)[1] != outer[1]:
        return _scatter_arrays(array, source, outer, inner)
    result = array.copy()
    strided_view(result, (inner[0], inner[1], inner[2] - outer[2]))[...] = source
    return result


def strided_scatter(tensor: Tensor, source: Tensor, geometry: Geometry) -> Tensor:
    """Return a copy of a tensor in the place of the base, with `source` in that of the view."""
    if geometry.parts == "base":
        tensor = view_as_real(tensor)
    elif geometry.parts == "view":
        source = view_as_real(source)
    result = _scatter(tensor, source, geometry.outer, geometry.inner)
    return view_as_complex(result) if geometry.parts == "base" else result


def _view_history(view: Tensor, base: Tensor) -> Edge:
    """Return the edge of a view after a write: an as_strided of its base.

    The base need not require grad: then the view is one of a leaf that is a view itself.
    """
    geometry = geometry_of(view, base)
    source = base
    if geometry.parts == "base":
        source = _recorded(VIEW_AS_REAL, base, base._array[..., None].view(view._array.dtype))
    layouts = {"layout": geometry.inner, "own": geometry.outer}
    array = view._array
    if geometry.parts == "view":
        array = array[..., None].view(base._array.dtype)
    result = _recorded(_AS_STRIDED, source, array, **layouts)
    if geometry.parts == "view":
        result = _recorded(VIEW_AS_COMPLEX, result, view._array)
    return NO_EDGE if result._edge is None else result._edge


def _recorded(primitive: Primitive, source: Tensor, array: Array, **parameters: Any) -> Tensor:
    """Return a tensor over `array` as if the primitive had computed it from `source`.

    It has a node even if the source does not require grad.
    """
    result = wrap(array)
    primitive.record((source,), (result,), parameters, moving=1)
    return result


upward.view_history = _view_history
