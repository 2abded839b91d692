"""Interpolation of images, signals and volumes to other sizes: interpolate, upsample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.numbers import as_number, is_number
from numgrad.ops.spatial.adaptive_pooling import ADAPTIVE_POOLS, adaptive_mean
from numgrad.ops.spatial.arguments import numbers, refuse
from numgrad.ops.spatial.resampling import RESAMPLING

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

# For modes that there are for some numbers of spatial dims only, that number.
_DIMS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_ANY = ("nearest", "nearest-exact", "area")
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
_SMOOTH = ("bilinear", "bicubic")


def _check_mode(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    ndim = input._array.ndim
    if mode in _ANY and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: "
            "linear | bilinear | bicubic | trilinear"
        )
    if antialias and not (mode in _SMOOTH and ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )


def _check_dims(input: Tensor, mode: str) -> None:
    ndim = input._array.ndim
    if ndim not in (3, 4, 5) or mode not in (*_ANY, *_DIMS):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: "
            f"{_MODES} (got {mode})"
        )
    if mode in _DIMS and ndim != _DIMS[mode] + 2:
        raise NotImplementedError(
            f"Got {ndim}D input, but {mode} mode needs {_DIMS[mode] + 2}D input"
        )


def _one_each(value: Any, sizes: Sequence[int], what: str) -> list[Any]:
    """Return a size or a scale for each dim, as numbers."""
    if not isinstance(value, (tuple, list)):
        return [as_number(value) if is_number(value) else value] * len(sizes)
    if len(value) != len(sizes):
        given = "output size of" if what == "size" else "scale_factor of shape"
        named = "output" if what == "size" else "scale_factor"
        size = "output size in (o1, o2, ...,oK)"
        if what != "size":
            size = "scale_factor in (s1, s2, ...,sK)"
        raise ValueError(
            f"Input and {named} must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {numbers(sizes)} and {given} {value}. Please provide "
            f"input tensor in (N, C, d1, d2, ...,dK) format and {size} format."
        )
    return [as_number(each) if is_number(each) else each for each in value]


def _sizes(
    sizes: Sequence[int], size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[list[int], list[float | None]]:
    """Return the sizes of the result, and the scales that positions follow from, if any do."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        wanted = _one_each(size, sizes, "size")
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return wanted, [None] * len(sizes)
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    scales = [float(each) for each in _one_each(scale_factor, sizes, "scale_factor")]
    wanted = [math.floor(size * scale) for size, scale in zip(sizes, scales, strict=True)]
    return wanted, [None] * len(sizes) if recompute else list(scales)


def _named(sizes: Sequence[int]) -> str:
    letters = "DHW"[-len(sizes) :]
    return f"({', '.join([f'{a}: {b}' for a, b in zip(letters, sizes, strict=True)])})"


def _check_sizes(input: Tensor, wanted: Sequence[int]) -> None:
    shape = input._array.shape
    if min(*shape[2:], *wanted) <= 0:
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"{_named(shape[2:])} {'and ' * (len(wanted) == 1)}output {_named(wanted)}"
        )
    if 0 in shape[1:]:
        raise RuntimeError(
            f"Non-empty {len(shape)}D data tensor expected but got a tensor with sizes "
            f"{numbers(shape)}"
        )


def _refuse_dtype(input: Tensor, mode: str, antialias: bool) -> None:
    """Raise for what there are no means of; PyTorch takes bytes where elements stay as they are."""
    if mode in _ANY and input._array.dtype.name == "uint8":
        return
    form = "nearest" if mode in _ANY else mode
    kernel = f"upsample_{form}2d_channels_last"
    if antialias:
        kernel = "compute_index_ranges_weights"
    elif input._array.ndim != 4 or form == "bicubic":
        kind = {"nearest": "nearest", "bicubic": "cubic"}.get(form, "linear")
        kernel = f"compute_indices_weights_{kind}"
    refuse(kernel, input, "f")


@declare(
    "interpolate(Tensor input, object size=None, object scale_factor=None, str mode='nearest', "
    "bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False)",
    function=False,
    method=False,
)
def interpolate(
    input: Tensor,
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None,
    recompute_scale_factor: bool | None,
    antialias: bool,
) -> Tensor:
    """Return signals, images or volumes of another size, elements between those of the input.

    It is linear, so the gradient is the adjoint: each element of the input adds up g with the
    weights that it had.

    Parameters
    ----------
    input : tensor of shape (n, channels, *sizes), with one, two or three of these
        Floating point; of bytes there are the nearest.
    size : int or sequence of int, optional
        The sizes of the result.
    scale_factor : float or sequence of float, optional
        Instead, by what to multiply those of the input; they are rounded down, but positions follow
        from the factor.
    mode : {"nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"}
        The nearest element, as older software or as Pillow finds it; a mean of the 2, 4 or 8 around
        a position, by distance; a cubic convolution of 16; the mean of an area.
    align_corners
        Whether the middles of the first and last elements stay where they are, rather than their
        outer edges.
    recompute_scale_factor
        Whether positions follow from the sizes, although a factor is given.
    antialias
        Whether results that are further apart than elements are means of all that are between: of
        images, bilinear or bicubic.

    Raises
    ------
    ValueError
        If arguments contradict each other.
    NotImplementedError
        If the mode is not for so many dims.
    RuntimeError
        If there would be no elements.

    >>> import numgrad as ng
    >>> x = ng.tensor([[[1.0, 3.0]]])
    >>> ng.nn.functional.interpolate(x, scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    _check_mode(input, mode, align_corners, antialias)
    shape = input._array.shape
    wanted, scales = _sizes(shape[2:], size, scale_factor, recompute_scale_factor)
    _check_dims(input, mode)
    if mode == "area":
        return adaptive_mean_of(input, tuple(wanted))
    _check_sizes(input, wanted)
    _refuse_dtype(input, mode, antialias)
    dims = len(wanted)
    rows = zip(shape[2:], wanted, scales, strict=True)
    tables: Any
    if mode in _ANY:
        name = f"upsample_{mode.replace('-', '_')}{dims}d"
        tables = tuple([(mode, *row) for row in rows])
    else:
        kind = "cubic" if mode == "bicubic" else "linear"
        name = f"upsample_{mode}{dims}d{'_aa' if antialias else ''}"
        kind = f"smooth {kind}" if antialias else kind
        tables = tuple([(kind, *row, bool(align_corners)) for row in rows])
    result: Tensor = RESAMPLING[name].apply(input, tables=tables)
    return result


def adaptive_mean_of(input: Tensor, counts: tuple[int, ...]) -> Tensor:
    """Return means of areas, of one, two or three dims."""
    if len(counts) > 1:
        return adaptive_mean(input, counts)
    from_line: Tensor = ADAPTIVE_POOLS["adaptive_avg_pool1d"](input, counts)
    return from_line


@declare(
    "upsample(Tensor input, object size=None, object scale_factor=None, str mode='nearest', "
    "bool? align_corners=None)",
    function=False,
    method=False,
)
def upsample(
    input: Tensor, size: Any, scale_factor: Any, mode: str, align_corners: bool | None
) -> Tensor:
    """Return what `interpolate` does; deprecated.

    The gradient is that of `interpolate`.

    >>> import warnings
    >>> import numgrad as ng
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     ng.nn.functional.upsample(ng.ones(1, 1, 2), 3)
    tensor([[[1., 1., 1.]]])
    """
    _warn("upsample", "interpolate")
    result: Tensor = interpolate(input, size, scale_factor, mode, align_corners)
    return result


@declare(
    "upsample_nearest(Tensor input, object size=None, object scale_factor=None)",
    function=False,
    method=False,
)
def upsample_nearest(input: Tensor, size: Any, scale_factor: Any) -> Tensor:
    """Return what `interpolate` does in mode ``"nearest"``; deprecated.

    The gradient is that of `interpolate`.

    >>> import warnings
    >>> import numgrad as ng
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     ng.nn.functional.upsample_nearest(ng.ones(1, 1, 2), 3)
    tensor([[[1., 1., 1.]]])
    """
    _warn("upsample_nearest", "interpolate")
    result: Tensor = interpolate(input, size, scale_factor, "nearest")
    return result


@declare(
    "upsample_bilinear(Tensor input, object size=None, object scale_factor=None)",
    function=False,
    method=False,
)
def upsample_bilinear(input: Tensor, size: Any, scale_factor: Any) -> Tensor:
    """Return what `interpolate` does in mode ``"bilinear"``, corners aligned; deprecated.

    The gradient is that of `interpolate`.

    >>> import warnings
    >>> import numgrad as ng
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     ng.nn.functional.upsample_bilinear(ng.ones(1, 1, 2, 2), (1, 3))
    tensor([[[[1., 1., 1.]]]])
    """
    _warn("upsample_bilinear", "interpolate")
    result: Tensor = interpolate(input, size, scale_factor, "bilinear", True)
    return result


def _warn(name: str, other: str) -> None:
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.{other}` instead.")
