"""Reductions and scans of few elements: what a call needs, prepared once for a shape.

With a few numbers a kernel takes a tenth of what Python takes to get there. Where an array is
contiguous and makes one part, no more is needed than the kernel's entry point, its steps and the
shape of the result; each family's ``specialised`` functions put these into a function of the array.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.kernels.move.layout import arranged, by_stride, reduced_shape
from numgrad.kernels.reduce.order import TILE, steps_of

__all__ = ["FewElements", "SpecialisedCall", "as_it_lies", "few_elements"]

Array = np.ndarray[Any, Any]

# A function of a C-contiguous array, of the shape and the dtype that it was made for.
SpecialisedCall = Callable[[Array], Any]


class FewElements(NamedTuple):
    """Few elements as ``(outer, n, inner)``, the middle axis to be reduced, and the result's shape.

    Attributes
    ----------
    outer, n, inner : int
    shape : tuple of int
    """

    outer: int
    n: int
    inner: int
    shape: tuple[int, ...]

    @property
    def steps(self) -> Array:
        """What a fold follows to reduce a block."""
        return steps_of(self.n, self.inner, self.inner)


def few_elements(
    shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool = False
) -> FewElements | None:
    """Return how to reduce elements of a shape over dims that are neighbours; None if not so.

    Examples
    --------
    >>> few_elements((2, 3, 4), (1,))
    FewElements(outer=2, n=3, inner=4, shape=(2, 4))
    >>> few_elements((2, 3), (0, 1), True)
    FewElements(outer=1, n=6, inner=1, shape=(1, 1))
    >>> few_elements((2, 3, 4), (1, 2))
    FewElements(outer=2, n=12, inner=1, shape=(2,))
    >>> few_elements((2, 3, 4), (0, 2))
    """
    size = prod(shape)
    if not 0 < size <= FEW_ELEMENTS:
        return None
    if len(dims) == len(shape):
        return FewElements(1, size, 1, (1,) * len(shape) if keepdim else ())
    if len(dims) != 1:
        laid = arranged(None, shape, dims, range(len(shape)))
        if laid.rest or laid.inner > TILE:
            return None
        return FewElements(laid.outer, laid.n, laid.inner, reduced_shape(shape, dims, keepdim))
    (dim,) = dims
    before, behind = shape[:dim], shape[dim + 1 :]
    inner = prod(behind)
    if inner > TILE:
        return None
    middle = (1,) if keepdim else ()
    return FewElements(prod(before), shape[dim], inner, before + middle + behind)


def as_it_lies(
    array: Array,
    dims: tuple[int, ...],
    keepdim: bool,
    make: Callable[[FewElements], SpecialisedCall | None],
) -> SpecialisedCall | None:
    """Return what reduces few elements that lie as those of an array, in one pass; None if not so.

    Parameters
    ----------
    array : numpy.ndarray
    dims, keepdim
        Which dims to reduce.
    make : callable
        Returns what reduces blocks.
    """
    shape, strides = array.shape, array.strides
    if not 0 < array.size <= FEW_ELEMENTS or min(strides, default=0) < 0:
        return None
    order = [*range(array.ndim)]
    if not array.flags.c_contiguous:
        order = by_stride(strides, order)
    laid = arranged(None, shape, dims, order)
    if laid.rest or laid.inner > TILE:
        return None
    kept = [*laid.kept]
    if kept != sorted(kept):  # dims of length 1 are put in last, as `restore` does it
        kept = [dim for dim in kept if shape[dim] != 1]
    in_order = tuple([shape[dim] for dim in kept])
    run = make(FewElements(laid.outer, laid.n, laid.inner, in_order))
    if run is None:
        return None
    target, back = reduced_shape(shape, dims, keepdim), np.argsort(kept).tolist()
    if order == sorted(order) and target == in_order:
        return run
    if back == sorted(back):
        return lambda array: run(array.transpose(order)).reshape(target)
    return lambda array: np.ascontiguousarray(run(array.transpose(order)).transpose(back)).reshape(
        target
    )
