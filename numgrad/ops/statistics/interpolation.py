"""Interpolation of tables: piecewise linear as NumPy's, and piecewise polynomials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.indexing.index_along import index_select
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.slicing import select_view
from numgrad.ops.pointwise.selection import clamp, where
from numgrad.ops.searching.sorted_rows import searchsorted
from numgrad.ops.signatures.declared import declare

__all__ = ["interp", "of_one_real_dtype", "piecewise_polynomial"]


def of_one_real_dtype(name: str, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Return tensors in the floating point dtype they promote to; raise if that is complex."""
    dtype = result_dtype(tensors)
    if dtype.is_complex:
        raise RuntimeError(f"{name}(): expected real tensors, but got {dtype.scalar_name}")
    wanted = dtype.numpy if dtype.is_floating_point else np.dtype(np.float32)
    return tuple([cast(tensor, wanted) for tensor in tensors])


def _check_points(name: str, points: Tensor, values: Tensor, more: int) -> None:
    shape, given = points._array.shape, values._array.shape
    if len(shape) != 1 or not shape[0]:
        raise RuntimeError(
            f"{name}(): expected one dim of points and at least one, but got shape {list(shape)}"
        )
    if not given or given[0] != shape[0] - more:
        raise RuntimeError(
            f"{name}(): expected values for {shape[0] - more} "
            f"{'pieces' if more else 'points'} but got shape {list(given)}"
        )


def _pieces(input: Tensor, points: Tensor) -> Tensor:
    """Return in which interval between points each number is, the first and the last go on."""
    last = max(points._array.shape[0] - 2, 0)
    found = searchsorted(points.detach(), input.detach(), right=True)
    result: Tensor = clamp(found - 1, 0, last)
    return result


def _picked(values: Tensor, places: Tensor) -> Tensor:
    """Return what stands at places of the first dim."""
    flat = index_select(values, 0, reshape(places, (places._array.size,)))
    result: Tensor = reshape(flat, (*places._array.shape, *values._array.shape[1:]))
    return result


@declare(
    "interp(Tensor input, Tensor xp, Tensor fp, *, number? left=None, number? right=None)",
    method=False,
)
def interp(
    input: Tensor, xp: Tensor, fp: Tensor, left: float | None, right: float | None
) -> Tensor:
    """Return values of the function that goes in straight lines from one point to the next.

    The gradient of `input` is the slope (at a point that of the line behind it, outside 0), that
    of `fp` shares g out between two neighbours, and that of `xp` is minus the slope, shared out so.
    Mirrors ``numpy.interp``.

    Parameters
    ----------
    input
        Where, of any shape.
    xp : tensor of shape (n,)
        Points, which increase.
    fp : tensor of shape (n,)
        The values there.
    left, right
        The values before the first point and behind the last; None: those of these points.

    Raises
    ------
    RuntimeError
        If the points have not one dim, there is not one value for each, or they are complex.

    >>> import numgrad as ng
    >>> x = ng.tensor([0.0, 1.0, 3.0])
    >>> ng.interp(ng.tensor([0.5, 2.0, 9.0]), x, ng.tensor([0.0, 2.0, 4.0]))
    tensor([1., 3., 4.])
    """
    _check_points("interp", xp, fp, 0)
    if fp._array.ndim != 1:
        raise RuntimeError(f"interp(): expected one value a point, not {list(fp._array.shape)}")
    input, xp, fp = of_one_real_dtype("interp", input, xp, fp)
    count = xp._array.shape[0]
    first, last = select_view(fp, 0, 0), select_view(fp, 0, count - 1)
    result: Tensor
    if count == 1:
        result = first
    else:
        places = _pieces(input, xp)
        x0, x1 = _picked(xp, places), _picked(xp, places + 1)
        f0, f1 = _picked(fp, places), _picked(fp, places + 1)
        result = f0 + (input - x0) * ((f1 - f0) / (x1 - x0))
    before, behind = input < select_view(xp, 0, 0), input > select_view(xp, 0, count - 1)
    result = where(before, first if left is None else left, result)
    return where(behind, last if right is None else right, result)


@declare(
    "piecewise_polynomial(Tensor input, Tensor x, Tensor c, *, int nu=0)",
    method=False,
)
def piecewise_polynomial(input: Tensor, x: Tensor, c: Tensor, nu: int) -> Tensor:
    """Return values of polynomials, one for each piece between points, or of their derivatives.

    On the piece from x[i] to x[i + 1] it is the sum of c[k, i] (t - x[i]) ** (m - 1 - k). The first
    and the last one go on outside. Derivatives flow to all three. Mirrors ``scipy.interpolate``'s
    ``PPoly``.

    Parameters
    ----------
    input
        Where, of any shape.
    x : tensor of shape (n + 1,)
        Points, which increase.
    c : tensor of shape (m, n, ...)
        Coefficients, those of the highest power first, as `cubic_spline` gives them.
    nu
        Which derivative.

    Returns
    -------
    Tensor
        Of the shape of `input`, and that of what a coefficient is.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, `nu` is negative, or the numbers are complex.

    >>> import numgrad as ng
    >>> x, c = ng.tensor([0.0, 1.0, 2.0]), ng.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> ng.piecewise_polynomial(ng.tensor([0.5, 1.5]), x, c)
    tensor([0.5000, 1.0000])
    """
    if c._array.ndim < 2:
        raise RuntimeError(
            f"piecewise_polynomial(): expected two dims of c, but got {c._array.ndim}"
        )
    _check_points("piecewise_polynomial", x, select_view(c, 0, 0), 1)
    if nu < 0:
        raise RuntimeError(f"piecewise_polynomial(): expected nu >= 0 but got {nu}")
    input, x, c = of_one_real_dtype("piecewise_polynomial", input, x, c)
    places = _pieces(input, x)
    more = c._array.ndim - 2
    distance = reshape(input - _picked(x, places), (*input._array.shape, *(1,) * more))
    order = c._array.shape[0]
    result: Any = None
    for k in range(max(order - nu, 0)):
        power = order - 1 - k
        part = _picked(select_view(c, 0, k), places)
        if nu:
            part = part * float(math.perm(power, nu))
        result = part if result is None else result * distance + part
    if result is None:
        result = 0 * _picked(select_view(c, 0, 0), places)
    found: Tensor = result
    return found
