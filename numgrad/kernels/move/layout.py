"""Arrays of any strides as flat, contiguous ones in which the reduced dims lie together.

Kernels that reduce see ``(outer, n, inner)``: a C-contiguous block whose middle axis is reduced.
Where no order of the dims makes the data contiguous, it is gathered a block at a time (`packing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.kernels.move.gather_blocks import Strided, contiguous, is_strided

__all__ = [
    "Arrangement",
    "Array",
    "arrange",
    "arranged",
    "by_stride",
    "flat_of",
    "reduced_shape",
    "restore",
]


Array = np.ndarray[Any, Any]


class Arrangement(NamedTuple):
    """A flat array, and how its elements are laid out for a reduction.

    Attributes
    ----------
    flat : numpy.ndarray or Strided
        The elements, one-dimensional and contiguous, often a view of the caller's array; or a
        `Strided` one, where they are neither contiguous nor few.
    outer, inner : int
        How many elements stand before and behind the last reduced group, as ``outer * n * inner``.
    n : int
        Elements in the last group of adjacent reduced dims.
    rest : tuple of (int, bool)
        Sizes before that group from left to right, and whether they still have to be reduced;
        empty when one reduction does it.
    kept : tuple of int
        The dims that stay, in the order in which the result holds them.
    """

    flat: Array | Strided
    outer: int
    n: int
    inner: int
    rest: tuple[tuple[int, bool], ...]
    kept: tuple[int, ...]


def reduced_shape(shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """Return `shape` without `dims`, or with size 1 there when `keepdim`.

    Examples
    --------
    >>> reduced_shape((2, 3, 4), (0, 2), False)
    (3,)
    >>> reduced_shape((2, 3, 4), (0, 2), True)
    (1, 3, 1)
    """
    if keepdim:
        return tuple([1 if i in dims else size for i, size in enumerate(shape)])
    if len(dims) == len(shape):
        return ()
    return tuple([size for i, size in enumerate(shape) if i not in dims])


def arrange(
    array: Array, dims: tuple[int, ...], *, adjacent: bool = False, ordered: bool = False
) -> Arrangement:
    """Lay out `array` for a reduction over `dims`.

    Parameters
    ----------
    array : numpy.ndarray
        Any strides.
    dims : tuple of int
        The dims to reduce, non-negative and distinct.
    adjacent : bool
        Whether one pass must do, so that the reduced dims have to become adjacent.
    ordered : bool
        Whether positions matter (as for an index): reduced elements then keep their C order.

    Examples
    --------
    >>> a = np.zeros((2, 3, 4, 5))
    >>> arrange(a, (1, 2))[1:4]
    (2, 12, 5)
    >>> arrange(a.transpose(3, 0, 1, 2), (0,)).flat.base is a
    True
    """
    if array.flags.c_contiguous:
        if len(dims) == array.ndim:
            return Arrangement(array.reshape(-1), 1, array.size, 1, (), ())
        if len(dims) == 1:
            shape, dim = array.shape, dims[0]
            kept = tuple([i for i in range(array.ndim) if i != dim])
            outer, inner = prod(shape[:dim]), prod(shape[dim + 1 :])
            return Arrangement(array.reshape(-1), outer, shape[dim], inner, (), kept)
    return _arrange(array, dims, adjacent, ordered)


def _arrange(array: Array, dims: tuple[int, ...], adjacent: bool, ordered: bool) -> Arrangement:
    """Do what `arrange` does, for every case."""
    if array.flags.c_contiguous:
        order = list(range(array.ndim))
    elif ordered:
        order = _as_one_block(array.strides, dims, sorted(dims))
    else:
        # A sum is the same from either end, so a reversed dim is read forwards.
        strides = array.strides
        flips = [slice(None)] * array.ndim
        for dim in dims:
            if strides[dim] < 0:
                flips[dim] = slice(None, None, -1)
        array = array[tuple(flips)]
        order = by_stride(array.strides, range(array.ndim))
    if adjacent and sum(reduced for _, reduced in _groups(array.shape, dims, order)) > 1:
        block = sorted(dims) if ordered else by_stride(array.strides, dims)
        order = _as_one_block(array.strides, dims, block)
    return arranged(flat_of(array.transpose(order)), array.shape, dims, order)


def arranged(
    flat: Any, shape: tuple[int, ...], dims: tuple[int, ...], order: Sequence[int]
) -> Arrangement:
    """Return how flat elements of a shape, their dims in an order, are laid out for a reduction.

    Examples
    --------
    >>> arranged(None, (2, 3, 4), (1,), (1, 0, 2))[1:4]
    (1, 3, 8)
    """
    groups = _groups(shape, dims, order)
    inner = groups.pop()[0] if groups and not groups[-1][1] else 1
    n = groups.pop()[0] if groups else 1
    return Arrangement(
        flat,
        prod([size for size, _ in groups]),
        n,
        inner,
        tuple(groups) if any(is_reduced for _, is_reduced in groups) else (),
        tuple([i for i in order if i not in dims]),
    )


def flat_of(array: Array) -> Array | Strided:
    """Return the elements in C order, as `Arrangement` has them."""
    if array.flags.c_contiguous or not is_strided(array):
        return contiguous(array)
    strided = Strided(array)
    return strided.all() if strided.is_adverse else strided


def by_stride(strides: tuple[int, ...], dims: Iterable[int]) -> list[int]:
    """Return dims in the order in which memory has them."""
    return sorted(dims, key=lambda i: -abs(strides[i]))


def _as_one_block(strides: tuple[int, ...], dims: tuple[int, ...], reduced: list[int]) -> list[int]:
    """Return an order of all dims in which the reduced ones stand together, in their order."""
    kept = by_stride(strides, [i for i in range(len(strides)) if i not in dims])
    width = min([abs(strides[i]) for i in dims], default=0)
    before = len([i for i in kept if abs(strides[i]) > width])
    return kept[:before] + reduced + kept[before:]


def _groups(
    shape: tuple[int, ...], dims: tuple[int, ...], order: Sequence[int]
) -> list[tuple[int, bool]]:
    """Merge neighbours of the same kind; dims of size 1 part nobody."""
    groups: list[tuple[int, bool]] = []
    for i in order:
        if shape[i] == 1:
            continue
        is_reduced = i in dims
        if groups and groups[-1][1] == is_reduced:
            groups[-1] = (groups[-1][0] * shape[i], is_reduced)
        else:
            groups.append((shape[i], is_reduced))
    return groups


def restore(
    result: Array, layout: Arrangement, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool
) -> Array:
    """Give the flat `result` of a reduction its shape, C-contiguous, its dims in order again.

    Dims of length 1 may stand anywhere, and are put in last: to NumPy an array is contiguous
    whatever their strides are.
    """
    kept = [i for i in layout.kept if shape[i] != 1]
    if any(a > b for a, b in pairwise(kept)):
        permuted = result.reshape([shape[i] for i in kept])
        result = np.ascontiguousarray(permuted.transpose(np.argsort(kept)))
    return result.reshape(reduced_shape(shape, dims, keepdim))
