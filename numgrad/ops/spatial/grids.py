"""Sampling of images and volumes at positions that may move: affine_grid, grid_sample.

M. Jaderberg et al., "Spatial transformer networks" (2015). What is sampled is a sum of elements
around a position, each times a weight; positions have derivatives where the weights have.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base.halves import HALF
from numgrad.graph.tensor import Tensor, fresh
from numgrad.graph.warned import warn
from numgrad.ops.indexing.gathering import gather
from numgrad.ops.linalg.linalg import matmul
from numgrad.ops.movement.casts import cast, expand_to
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.slicing import select
from numgrad.ops.pointwise.arithmetic import mul
from numgrad.ops.pointwise.rounding import floor
from numgrad.ops.pointwise.rounding import round as rounded
from numgrad.ops.pointwise.selection import clamp, where
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.arguments import numbers, refuse

__all__ = ["MODES", "PADDINGS", "affine_grid", "grid_sample"]

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
_KEYS = -0.75  # of the cubic kernel, as in `tables`


# --- grids ----------------------------------------------------------------------------------------


def _steps(count: int, align_corners: bool, dtype: Any) -> np.ndarray:
    """Return the middles of elements from -1 to 1; aligned, the first and last are these."""
    if count == 1:
        return np.zeros(1, dtype)
    steps = np.linspace(-1, 1, count, dtype=dtype)
    return steps if align_corners else (steps * ((count - 1) / count)).astype(dtype)


@declare(
    "affine_grid(Tensor theta, int[] size, bool? align_corners=None)",
    function=False,
    method=False,
)
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None) -> Tensor:
    """Return the positions that affine maps send those of the elements of a result to.

    For `grid_sample`: positions are from -1 to 1 along each dim, x first. The gradient of a map is
    the sum of the products of g and the positions that it was applied to.

    Parameters
    ----------
    theta : tensor of shape (n, 2, 3) or (n, 3, 4)
        The maps, of images or of volumes.
    size
        That of the result of `grid_sample`: (n, channels, height, width), or with depth before.
    align_corners
        Whether -1 and 1 are the middles of the first and last elements; else their outer edges.

    Returns
    -------
    tensor of shape (n, height, width, 2) or (n, depth, height, width, 3)

    Raises
    ------
    ValueError
        If the maps are of other shape or not floating point, or the result would have no elements.

    >>> import numgrad as ng
    >>> identity = ng.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> ng.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    shape = theta._array.shape
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {tuple(size)}."
        )
    if len(shape) != 3 or shape[1:] != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size "
            f"{tuple(size)}. Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    if align_corners is None:
        _warn_of_corners("affine_grid")
    if size[0] != shape[0]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{size[0]}, {dims + 1}] but got: [{shape[0]}, {dims + 1}]."
        )
    dtype = theta._array.dtype
    wide = np.float32 if dtype == HALF else dtype
    lines = [_steps(count, bool(align_corners), wide) for count in size[2:]]
    meshes = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*reversed(meshes), np.ones_like(meshes[0])], -1).astype(dtype)
    flat = fresh(base.reshape(-1, dims + 1))
    turned = theta.transpose(1, 2)
    found = matmul(expand_to(flat, (size[0], *flat._array.shape)), turned)
    return reshape(found, (size[0], *size[2:], dims))


def _warn_of_corners(name: str) -> None:
    warn(
        f"Default {name} behavior has changed to align_corners=False since 1.3.0. Please specify "
        f"align_corners=True if the old behavior is desired. See the documentation of {name} for "
        "details."
    )


# --- samples --------------------------------------------------------------------------------------


def _unnormalised(position: Tensor, size: int, aligned: bool) -> Tensor:
    """Return positions from -1 to 1 in elements."""
    result: Tensor
    if aligned:
        result = (position + 1) / 2 * (size - 1)
    else:
        result = ((position + 1) * size - 1) / 2
    return result


def _reflected(position: Tensor, low: int, high: int) -> Tensor:
    """Return positions mirrored into a range, given by twice its ends."""
    if low == high:
        return mul(position, 0.0)
    first, span = low / 2, (high - low) / 2
    distance = abs(position - first)
    turns = floor(distance / span).detach()
    rest = distance - turns * span
    is_even = (turns % 2) == 0
    result: Tensor = where(is_even, rest + first, span - rest + first)
    return result


def _inside(position: Tensor, size: int, padding: str, aligned: bool) -> Tensor:
    """Return positions that are among the elements, as the mode of padding brings them there.

    What is not a number or beyond all numbers is out of the way.
    """
    if padding == "reflection":
        low, high = (0, 2 * (size - 1)) if aligned else (-1, 2 * size - 1)
        position = _reflected(position, low, high)
    if padding != "zeros":
        position = _clipped(position, size)
    return position


def _clipped(position: Tensor, size: int) -> Tensor:
    """Return positions among the elements; where they had to be clipped, or just not, 0 is g."""
    free = (position > 0) & (position < size - 1)
    result: Tensor = where(free, position, clamp(position.detach(), 0, size - 1))
    return result


def _safe(position: Tensor) -> Tensor:
    """Return positions as numbers that an int holds: those that can't be are outside."""
    far = 2.0**24
    result: Tensor = where(abs(position) < far, position, -100.0)
    return result


class _Planes:
    """The elements of an input by their places, zeros outside."""

    def __init__(self, input: Tensor, places: Sequence[int]) -> None:
        count, channels, *sizes = input._array.shape
        self.sizes, self.channels, self.places = sizes, channels, tuple(places)
        self.flat = reshape(input, (count, channels, int(np.prod(sizes))))
        self.count, self.dtype = count, input._array.dtype

    def at(self, indices: Sequence[Tensor], clip: Callable[[Tensor, int], Tensor] | None) -> Tensor:
        """Return elements, with indices given as floating point numbers for each dim."""
        place: Any = 0
        valid: Any = None
        for index, size in zip(indices, self.sizes, strict=True):
            if clip is not None:
                index = clip(index, size)
            inside = (index >= 0) & (index <= size - 1)
            valid = inside if valid is None else valid & inside
            place = place * size + cast(clamp(index, 0, size - 1), np.dtype(np.int64))
        number = int(np.prod(self.places))
        spread = (self.count, self.channels, number)
        where_to = expand_to(reshape(place, (self.count, 1, number)), spread)
        found = gather(self.flat, 2, where_to)
        kept = expand_to(reshape(valid, (self.count, 1, number)), spread)
        zero = fresh(np.zeros((), self.dtype))
        chosen: Tensor = where(kept, found, zero)
        return reshape(chosen, (self.count, self.channels, *self.places))


def _weighted(weight: Tensor, elements: Tensor) -> Tensor:
    count, *places = weight._array.shape
    return mul(elements, reshape(weight, (count, 1, *places)))


def _ones(position: Tensor) -> Tensor:
    """Return weights of 1 that hang on positions, whose gradient is 0 and not missing."""
    nowhere = fresh(np.zeros(position._array.shape, bool))
    result: Tensor = where(nowhere, position, 1.0)
    return result


def _linear_samples(planes: _Planes, positions: Sequence[Tensor]) -> Tensor:
    lows = [floor(each).detach() for each in positions]
    parts = [(1 - (p - low), p - low) for p, low in zip(positions, lows, strict=True)]
    total: Any = None
    for corner in itertools.product((0, 1), repeat=len(lows)):
        indices = [low + step for low, step in zip(lows, corner, strict=True)]
        weight: Any = None
        for part, step in zip(parts, corner, strict=True):
            weight = part[step] if weight is None else weight * part[step]
        term = _weighted(weight, planes.at(indices, None))
        total = term if total is None else total + term
    result: Tensor = total
    return result


def _cubic_weights(t: Tensor) -> list[Tensor]:
    def near(x: Tensor) -> Any:
        return ((_KEYS + 2) * x - (_KEYS + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((_KEYS * x - 5 * _KEYS) * x + 8 * _KEYS) * x - 4 * _KEYS

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _cubic_samples(
    planes: _Planes,
    positions: Sequence[Tensor],
    clip: Callable[[Tensor, int], Tensor] | None,
) -> Tensor:
    lows = [floor(each).detach() for each in positions]
    weights = [_cubic_weights(p - low) for p, low in zip(positions, lows, strict=True)]
    rows: Any = None
    for down in range(4):
        row: Any = None
        for right in range(4):
            indices = [lows[0] + (down - 1), lows[1] + (right - 1)]
            term = _weighted(weights[1][right], planes.at(indices, clip))
            row = term if row is None else row + term
        term = _weighted(weights[0][down], row)
        rows = term if rows is None else rows + term
    result: Tensor = rows
    return result


def _check(mode: str, padding_mode: str) -> None:
    prefix = "nn.functional.grid_sample(): expected"
    if mode not in MODES:
        raise ValueError(
            f"{prefix} mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise ValueError(
            f"{prefix} padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )


def _check_shapes(input: Tensor, grid: Tensor, mode: str) -> None:
    shape, places = input._array.shape, grid._array.shape
    sizes = f"input with sizes {numbers(shape)} and grid with sizes {numbers(places)}"
    if shape[:1] != places[:1]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got {sizes}"
        )
    if places[-1] != len(shape) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but "
            f"got grid with sizes {numbers(places)}"
        )
    for at in range(2, len(shape)):
        if not shape[at]:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                f"has sizes {numbers(shape)} with dimension {at} being empty"
            )
    if len(shape) not in (4, 5) or len(shape) != len(places):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got {sizes}"
        )
    if mode == "bicubic" and len(shape) == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    kernel = "grid_sampler_2d_cpu_kernel_impl" if len(shape) == 4 else "grid_sampler3d_cpu"
    refuse(kernel, input, "f")
    if input._array.dtype != grid._array.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.scalar_name} but found {grid.dtype.scalar_name}"
        )


@declare(
    "grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', "
    "bool? align_corners=None)",
    function=False,
    method=False,
)
def grid_sample(
    input: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool | None
) -> Tensor:
    """Return what images or volumes are at positions, between their elements.

    The gradient of the input is g with the weights that its elements had; that of a position
    follows from the weights, and is 0 where it was clipped, and for the nearest elements.

    Parameters
    ----------
    input : tensor of shape (n, channels, height, width) or (n, channels, depth, height, width)
    grid : tensor of shape (n, rows, columns, 2) or (n, planes, rows, columns, 3)
        Positions from -1 to 1, x first, of the same dtype.
    mode : {"bilinear", "nearest", "bicubic"}
        How elements around a position are weighted; the first is of 8 elements in volumes, the last
        for images alone.
    padding_mode : {"zeros", "border", "reflection"}
        What there is outside: zeros, the elements at the border, or everything mirrored there.
    align_corners
        Whether -1 and 1 are the middles of the first and last elements; else their outer edges.

    Raises
    ------
    ValueError
        If there is no such mode.
    RuntimeError
        If shapes or dtypes do not fit.

    >>> import numgrad as ng
    >>> image = ng.tensor([[[[1.0, 3.0]]]])
    >>> middle = ng.zeros(1, 1, 1, 2)
    >>> ng.nn.functional.grid_sample(image, middle, align_corners=False)
    tensor([[[[2.]]]])
    """
    _check(mode, padding_mode)
    if align_corners is None:
        _warn_of_corners("grid_sample")
    aligned = bool(align_corners)
    _check_shapes(input, grid, mode)
    sizes = input._array.shape[2:]
    dims = len(sizes)
    positions = [
        _unnormalised(select(grid, -1, dims - 1 - at), size, aligned)
        for at, size in enumerate(sizes)
    ]
    planes = _Planes(input, grid._array.shape[1:-1])
    if mode == "bicubic":
        clip = None
        if padding_mode != "zeros":

            def clip(index: Tensor, size: int) -> Tensor:
                return _inside(index, size, padding_mode, aligned)

        return _cubic_samples(planes, positions, clip)
    positions = [
        _safe(_inside(each, size, padding_mode, aligned))
        for each, size in zip(positions, sizes, strict=True)
    ]
    if mode == "nearest":
        found = planes.at([rounded(each).detach() for each in positions], None)
        return _weighted(_ones(positions[0]), found)
    return _linear_samples(planes, positions)
