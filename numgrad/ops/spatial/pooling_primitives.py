"""The primitives of pooling: means of windows with their adjoint, and greatest elements.

They act on the last two or three dims. Means are linear, so a gradient is the adjoint of the means:
each window gives its share to its elements. A greatest element is one of the input's, so a
gradient goes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.kernels.spatial import pooling
from numgrad.kernels.spatial.pooling import Ranges, adaptive_windows, fixed_windows
from numgrad.ops.core.image_places import as_images_lie, gradient_like, memory_of_images
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.spatial.places import put_at, values_of

__all__ = ["ADAPTIVE_GREATEST", "ADAPTIVE_MEANS", "GREATEST", "MEANS"]

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]


def _last(shape: Sequence[int], dims: int) -> Ints:
    return tuple(shape[len(shape) - dims :])


def _lies(input: Array, counts: Ints) -> Array | None:
    shape = (*input.shape[: input.ndim - len(counts)], *counts)
    return memory_of_images(shape, input.dtype, input)


def _fixed(sizes: Ints, counts: Ints, windows: tuple[Ints, ...], padded: bool) -> list[Ranges]:
    rows = zip(sizes, counts, *windows, strict=True)
    return [fixed_windows(*row, padded) for row in rows]


def _adaptive(sizes: Ints, counts: Ints) -> list[Ranges]:
    return [adaptive_windows(*row) for row in zip(sizes, counts, strict=True)]


# --- means ----------------------------------------------------------------------------------------


def _means(input: Array, counts: Ints, windows: tuple[Ints, ...], padded: bool, by: int) -> Array:
    sizes = _last(input.shape, len(counts))
    result = pooling.means(input, _fixed(sizes, counts, windows, padded), by)
    return result if len(counts) > 2 else as_images_lie(result, input)


def _quick_means(
    input: Array, counts: Ints, windows: tuple[Ints, ...], padded: bool, by: int
) -> Any:
    ranges = _fixed(_last(input.shape, len(counts)), counts, windows, padded)
    return pooling.prepared_means(input, ranges, by) if _in_rows(input, counts) else None


def _in_rows(input: Array, counts: Ints) -> bool:
    """Whether pools lie row by row."""
    return len(counts) > 2 or _lies(input, counts) is None


def _shares(g_y: Array, sizes: Ints, windows: tuple[Ints, ...], padded: bool, by: int) -> Array:
    counts = _last(g_y.shape, len(sizes))
    return pooling.means_adjoint(g_y, sizes, _fixed(sizes, counts, windows, padded), by)


def _adaptive_means(input: Array, counts: Ints) -> Array:
    result = pooling.means(input, _adaptive(_last(input.shape, len(counts)), counts), 0)
    return result if len(counts) > 2 else as_images_lie(result, input)


def _quick_adaptive_means(input: Array, counts: Ints) -> Any:
    ranges = _adaptive(_last(input.shape, len(counts)), counts)
    return pooling.prepared_means(input, ranges, 0) if _in_rows(input, counts) else None


def _adaptive_shares(g_y: Array, sizes: Ints) -> Array:
    return pooling.means_adjoint(g_y, sizes, _adaptive(sizes, _last(g_y.shape, len(sizes))), 0)


def _quick_shares(g_y: Array, sizes: Ints, windows: tuple[Ints, ...], padded: bool, by: int) -> Any:
    ranges = _fixed(sizes, _last(g_y.shape, len(sizes)), windows, padded)
    return pooling.prepared_means_adjoint(g_y, sizes, ranges, by)


def _quick_adaptive_shares(g_y: Array, sizes: Ints) -> Any:
    ranges = _adaptive(sizes, _last(g_y.shape, len(sizes)))
    return pooling.prepared_means_adjoint(g_y, sizes, ranges, 0)


def _windows(dims: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> Any:
    """Return the windows of a sample."""
    return tuple([(each,) * dims for each in (kernel, stride, padding, dilation)])


def _make_means(dims: int) -> Primitive:
    def rule(
        g: Tensor, input_shape: Ints, input_lies: Any, windows: Any, padded: bool, by: int
    ) -> Any:
        sizes = _last(input_shape, dims)
        found = adjoint.apply(g, sizes=sizes, windows=windows, padded=padded, by=by)
        return gradient_like(found, input_lies) if dims == 2 else found

    def rule_of_adjoint(g: Tensor, g_y_shape: Ints, windows: Any, padded: bool, by: int) -> Any:
        counts = _last(g_y_shape, dims)
        return means.apply(g, counts=counts, windows=windows, padded=padded, by=by)

    two, three = (2,) * dims, (3,) * dims

    def sample(primitive: str, shape: Ints, windows: Any, padded: bool, by: int) -> Any:
        keywords: dict[str, Any] = {"windows": windows, "padded": padded, "by": by}
        if primitive == "means":
            return lambda make: (means.apply, [make(*shape)], {"counts": two, **keywords})
        return lambda make: (adjoint.apply, [make(*shape)], {"sizes": three, **keywords})

    node = f"AvgPool{dims}DBackward"
    means: Primitive = Primitive(
        f"avg_pool{dims}d",
        f"{node}0",
        _means,
        ["input"],
        [rule],
        linear=True,
        lies=_lies if dims == 2 else None,
        quick=_quick_means,
        samples=[
            sample("means", (2, *three), _windows(dims, 2, 1, 0), True, 0),
            sample("means", three, _windows(dims, 2, 2, 1), False, 0),
            sample("means", (1, *two), _windows(dims, 2, 2, 1), True, 3),
        ],
    )
    adjoint: Primitive = Primitive(
        f"avg_pool{dims}d_backward",
        f"{node}Backward0",
        _shares,
        ["g_y"],
        [rule_of_adjoint],
        linear=True,
        quick=_quick_shares,
        samples=[sample("adjoint", (1, *two), _windows(dims, 2, 1, 0), True, 0)],
    )
    return means


def _make_adaptive_means(dims: int) -> Primitive:
    def rule(g: Tensor, input_shape: Ints, input_lies: Any) -> Any:
        found = adjoint.apply(g, sizes=_last(input_shape, dims))
        return gradient_like(found, input_lies) if dims == 2 else found

    node = f"AdaptiveAvgPool{dims}DBackward"
    two, three = (2,) * dims, (3,) * dims
    means: Primitive = Primitive(
        f"adaptive_avg_pool{dims}d",
        f"{node}0",
        _adaptive_means,
        ["input"],
        [rule],
        linear=True,
        lies=_lies if dims == 2 else None,
        quick=_quick_adaptive_means,
        samples=[lambda make: (means.apply, [make(2, *three)], {"counts": two})],
    )
    adjoint: Primitive = Primitive(
        f"adaptive_avg_pool{dims}d_backward",
        f"{node}Backward0",
        _adaptive_shares,
        ["g_y"],
        [lambda g, g_y_shape: means.apply(g, counts=_last(g_y_shape, dims))],
        linear=True,
        quick=_quick_adaptive_shares,
        samples=[lambda make: (adjoint.apply, [make(1, *two)], {"sizes": three})],
    )
    return means


# --- greatest elements ----------------------------------------------------------------------------


def _greatest(input: Array, counts: Ints, windows: tuple[Ints, ...]) -> tuple[Array, Array]:
    sizes = _last(input.shape, len(counts))
    values, places = pooling.greatest(input, _fixed(sizes, counts, windows, True))
    return as_images_lie(values, input), as_images_lie(places, input)


def _quick_greatest(input: Array, counts: Ints, windows: tuple[Ints, ...]) -> Any:
    ranges = _fixed(_last(input.shape, len(counts)), counts, windows, True)
    return pooling.prepared_greatest(input, ranges) if _lies(input, counts) is None else None


def _quick_adaptive_greatest(input: Array, counts: Ints) -> Any:
    ranges = _adaptive(_last(input.shape, len(counts)), counts)
    return pooling.prepared_greatest(input, ranges) if _in_rows(input, counts) else None


def _adaptive_greatest(input: Array, counts: Ints) -> tuple[Array, Array]:
    values, places = pooling.greatest(input, _adaptive(_last(input.shape, len(counts)), counts))
    if len(counts) > 2:
        return values, places
    return as_images_lie(values, input), as_images_lie(places, input)


def _make_greatest(dims: int, adaptive: bool) -> Primitive:
    def rule(
        g0: Tensor | None, result1: Tensor, input_shape: Ints, input_lies: Any
    ) -> Tensor | None:
        if g0 is None:
            return None
        found = put_at(g0, result1, _last(input_shape, dims))
        return gradient_like(found) if adaptive and dims == 3 else gradient_like(found, input_lies)

    def sample(width: int, count: int, windows: Any) -> Any:
        keywords: dict[str, Any] = {"counts": (count,) * dims}
        if not adaptive:
            keywords["windows"] = windows
        shape = (2, *(width,) * dims)
        return lambda make: (values_of(greatest.apply), [make(*shape, distinct=True)], keywords)

    prefix = "adaptive_" if adaptive else ""
    node = f"AdaptiveMaxPool{dims}DBackward0" if adaptive else f"MaxPool{dims}DWithIndicesBackward0"
    samples = [sample(3, 2, _windows(dims, 2, 1, 0))]
    if not adaptive:
        samples += [
            sample(3, 2, _windows(dims, 2, 2, 1)),
            sample(3, 1, _windows(dims, 2, 1, 0, 2)),
        ]
    greatest: Primitive = Primitive(
        f"{prefix}max_pool{dims}d_with_indices",
        node,
        _adaptive_greatest if adaptive else _greatest,
        ["input"],
        [rule],
        outputs=("result0", "result1"),
        lies=None if adaptive and dims == 3 else _lies,
        quick=_quick_adaptive_greatest if adaptive else _quick_greatest,
        samples=samples,
    )
    return greatest


MEANS = {dims: _make_means(dims) for dims in (2, 3)}
ADAPTIVE_MEANS = {dims: _make_adaptive_means(dims) for dims in (2, 3)}
GREATEST = {dims: _make_greatest(dims, False) for dims in (2, 3)}
ADAPTIVE_GREATEST = {dims: _make_greatest(dims, True) for dims in (2, 3)}
