"""Bring an array of any strides to a flat, contiguous one in which the reduced dims lie together.

Kernels that reduce see ``(outer, n, inner)``: a C-contiguous block whose middle axis is reduced.
The data is copied only where no order of the dims makes it contiguous.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Arrangement", "Array", "arrange", "reduced_shape", "restore"]


Array = np.ndarray[Any, Any]


class Arrangement(NamedTuple):
    """A flat array, and how its elements are laid out for a reduction.

    Attributes
    ----------
    flat : numpy.ndarray
        The elements, one-dimensional and contiguous; often a view of the caller's array.
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

    flat: Array
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
    contiguous = array.flags.c_contiguous
    if contiguous:
        order = list(range(array.ndim))
    elif ordered:
        order = _ordered(array.strides, dims)
    else:
        # A sum is the same from either end, so a reversed dim is read forwards.
        strides = array.strides
        flips = [slice(None)] * array.ndim
        for dim in dims:
            if strides[dim] < 0:
                flips[dim] = slice(None, None, -1)
        array = array[tuple(flips)]
        order = sorted(range(array.ndim), key=lambda i: -abs(strides[i]))
    groups = _groups(array.shape, dims, order)
    if adjacent and sum(is_reduced for _, is_reduced in groups) > 1:
        contiguous = False
        order = [i for i in range(array.ndim) if i not in dims] + sorted(dims)
        groups = _groups(array.shape, dims, order)
    if not contiguous:
        array = np.ascontiguousarray(array.transpose(order))
    inner = groups.pop()[0] if groups and not groups[-1][1] else 1
    n = groups.pop()[0] if groups else 1
    return Arrangement(
        array.reshape(-1),
        prod([size for size, _ in groups]),
        n,
        inner,
        tuple(groups) if any(is_reduced for _, is_reduced in groups) else (),
        tuple([i for i in order if i not in dims]),
    )


def _ordered(strides: tuple[int, ...], dims: tuple[int, ...]) -> list[int]:
    """Return an order in which the reduced dims move as one block, and are as they were in it."""
    kept = [i for i in range(len(strides)) if i not in dims]
    kept.sort(key=lambda i: -abs(strides[i]))
    width = min([abs(strides[i]) for i in dims], default=0)
    before = len([i for i in kept if abs(strides[i]) > width])
    return kept[:before] + sorted(dims) + kept[before:]


def _groups(
    shape: tuple[int, ...], dims: tuple[int, ...], order: list[int]
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
    """Give the flat `result` of a reduction its shape, C-contiguous, its dims in order again."""
    kept = layout.kept
    if any(a > b for a, b in pairwise(kept)):
        permuted = result.reshape([shape[i] for i in kept])
        result = np.ascontiguousarray(permuted.transpose(np.argsort(kept)))
    return result.reshape(reduced_shape(shape, dims, keepdim))
