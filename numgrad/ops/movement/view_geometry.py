"""Where a view lies in the memory of its base, and how it finds its history again.

A `Geometry` says where a view lies in the memory of its base. After a write to the memory, a view
takes its edge from the base through an ``as_strided`` of that geometry, and the write itself is
recorded on the base with it (see `numgrad.ops.mutation.inplace`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from numgrad.base.tuning import REMEMBERED_CALLS
from numgrad.graph.kinds import Kind, kind_for
from numgrad.graph.recorder import distance, place_of
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, kind_of, wrap
from numgrad.graph.upward import upward
from numgrad.kernels.move import scatter
from numgrad.kernels.move.strides import (
    Layout,
    extent,
    layout_of,
    may_overlap,
    strided_view,
)
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.movement.complex_views import (
    VIEW_AS_COMPLEX,
    VIEW_AS_REAL,
    view_as_complex,
    view_as_real,
)
from numgrad.ops.movement.copies import contiguous
from numgrad.ops.movement.strided import AS_STRIDED, read, scatter_arrays, scatter_into

__all__ = [
    "Geometry",
    "geometry_between",
    "geometry_of",
    "inside_of",
    "scattered",
    "strided",
    "strided_scatter",
]

Array = np.ndarray[Any, Any]
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
    between = distance(outer, inner)
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
    start, stop = extent(own)
    if low < start or high > stop:  # what read and wrote there would leave the memory
        if high > low:
            raise RuntimeError(_APART)
        layout = *layout[:2], 0  # of nothing, it may lie anywhere
    return Geometry(own, layout, parts)


def strided(tensor: Tensor, geometry: Geometry) -> Tensor:
    """Return the view of that geometry of a tensor in the place of the base."""
    if geometry.parts == "base":
        tensor = view_as_real(tensor)
    result = read(tensor, geometry.outer, geometry.inner)
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
        return scatter_arrays(array, source, outer, inner)
    result = array.copy()
    strided_view(result, (inner[0], inner[1], inner[2] - outer[2]))[...] = source
    return result


def strided_scatter(tensor: Tensor, source: Tensor, geometry: Geometry) -> Tensor:
    """Return a copy of a tensor in the place of the base, with `source` in that of the view."""
    if geometry.parts == "base":
        tensor = view_as_real(tensor)
    elif geometry.parts == "view":
        source = view_as_real(source)
    result = scatter_into(tensor, source, geometry.outer, geometry.inner)
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
    result = _recorded(AS_STRIDED, source, array, **layouts)
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
