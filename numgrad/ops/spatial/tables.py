"""Which elements resampled ones are made of, with which weights: padding and interpolation.

A recipe is what a table follows from: the name of a method in `TABLES`, the sizes before and
behind, and what else it takes. So calls can be remembered by recipes, and tables are made once.

Positions are those of PyTorch's ``area_pixel_compute_source_index``: places of elements are their
middles, unless the corners are aligned. The cubic kernel is that of R. Keys, "Cubic convolution
interpolation for digital image processing" (1981), with a of -3/4, or -1/2 where it also smooths.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.kernels.spatial.resampling import Table

__all__ = ["Recipe", "table_of"]

Array = np.ndarray[Any, Any]
Recipe = tuple[Any, ...]


@functools.lru_cache(1024)
def table_of(recipe: Recipe, dtype: Any) -> Table:
    """Return the table of a recipe, positions and weights computed in a real dtype.

    Examples
    --------
    >>> table_of(("replicate", 3, 2, 1), np.float64).places[:, 0].tolist()
    [0, 0, 0, 1, 2, 2]
    """
    method, size, *rest = recipe
    return TABLES[method](size, *rest, dtype)


def _by_place(size: int, places: Array) -> Table:
    return Table(size, np.ascontiguousarray(places, np.int64).reshape(-1, 1), None)


# --- padding --------------------------------------------------------------------------------------


def _reflect(size: int, before: int, behind: int, dtype: Any) -> Table:
    at = np.arange(size + before + behind) - before
    at = np.where(at < 0, -at, at)
    return _by_place(size, np.where(at >= size, 2 * (size - 1) - at, at))


def _replicate(size: int, before: int, behind: int, dtype: Any) -> Table:
    at = np.arange(size + before + behind) - before
    return _by_place(size, np.clip(at, 0, size - 1))


def _circular(size: int, before: int, behind: int, dtype: Any) -> Table:
    """Return a table of what goes round; negative widths are taken away first."""
    kept = size + min(before, 0) + min(behind, 0)
    at = np.arange(size + before + behind) - max(before, 0)
    return _by_place(size, max(-before, 0) + at % max(kept, 1))


# --- interpolation --------------------------------------------------------------------------------


def _step(size: int, count: int, aligned: bool, scale: float | None, dtype: Any) -> Any:
    """Return how far results are apart, in elements."""
    if aligned:
        return dtype(size - 1) / dtype(count - 1) if count > 1 else dtype(0)
    if scale is not None and scale > 0:
        return dtype(1.0 / scale)
    return dtype(size) / dtype(count)


def _positions(size: int, count: int, aligned: bool, scale: float | None, dtype: Any) -> Array:
    step = _step(size, count, aligned, scale, dtype)
    at = np.arange(count).astype(dtype)
    positions: Array = step * at if aligned else step * (at + dtype(0.5)) - dtype(0.5)
    return positions


def _nearest(size: int, count: int, scale: float | None, dtype: Any) -> Table:
    at = np.arange(count).astype(dtype) * _step(size, count, False, scale, dtype)
    return _by_place(size, np.minimum(np.floor(at.astype(np.float32)), size - 1))


def _nearest_exact(size: int, count: int, scale: float | None, dtype: Any) -> Table:
    at = _positions(size, count, False, scale, dtype) + dtype(0.5)
    return _by_place(size, np.minimum(np.floor(at.astype(np.float32)), size - 1))


def _linear(size: int, count: int, scale: float | None, aligned: bool, dtype: Any) -> Table:
    if size == count:
        return _by_place(size, np.arange(size))
    at = np.maximum(_positions(size, count, aligned, scale, dtype), 0)
    low = np.minimum(at.astype(np.int64), size - 1)
    high = low + (low < size - 1)
    share = np.clip(at - low.astype(dtype), 0, 1).astype(dtype)
    return Table(size, np.stack([low, high], 1), np.stack([1 - share, share], 1))


def _cubic(size: int, count: int, scale: float | None, aligned: bool, dtype: Any) -> Table:
    at = _positions(size, count, aligned, scale, dtype)
    low = np.floor(at)
    t = np.clip(at - low, 0, 1).astype(dtype)
    distances = [t + 1, t, 1 - t, 2 - t]
    weights = [_keys(each, -0.75) for each in distances]
    places = low.astype(np.int64)[:, None] + np.arange(-1, 3)
    return Table(
        size, np.clip(places, 0, size - 1), np.ascontiguousarray(np.stack(weights, 1), dtype)
    )


def _keys(x: Array, a: float) -> Array:
    """Return the cubic kernel at distances that are not negative."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _smooth(kernel: Callable[[Array], Array], reach: int) -> Callable[..., Table]:
    """Return what makes tables whose kernel is as wide as results are apart, if that is more."""

    def make(size: int, count: int, scale: float | None, aligned: bool, dtype: Any) -> Table:
        step = float(_step(size, count, aligned, scale, dtype))
        width = max(step, 1.0)
        support = reach * width
        centres = step * (np.arange(count) + 0.5)
        first = np.maximum((centres - support + 0.5).astype(np.int64), 0)
        last = np.minimum((centres + support + 0.5).astype(np.int64), size)
        taps = max(int((last - first).max()), 1)
        places = first[:, None] + np.arange(taps)
        weights = kernel(np.abs(places - centres[:, None] + 0.5) / width)
        weights = np.where(places < last[:, None], weights, 0)
        weights = weights / weights.sum(1, keepdims=True)
        # What has no weight is beside what has some, not beyond the end.
        places = np.minimum(places, last[:, None] - 1)
        return Table(size, places, weights.astype(dtype))

    return make


TABLES: dict[str, Callable[..., Table]] = {
    "reflect": _reflect,
    "replicate": _replicate,
    "circular": _circular,
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
    "linear": _linear,
    "cubic": _cubic,
    "smooth linear": _smooth(lambda x: np.maximum(1 - x, 0), 1),
    "smooth cubic": _smooth(lambda x: _keys(x, -0.5), 2),
}
