"""Cubic splines through points: their coefficients, by SciPy's conditions at the ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.kernels.tridiagonal import solve_tridiagonal
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.movement.joining import cat, stack
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.slicing import slice_of
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.reduction.reductions import sum
from numgrad.ops.signatures.declared import declare
from numgrad.ops.statistics.interpolation import of_one_real_dtype

__all__ = ["cubic_spline"]

_NAMED = {"natural": (2, 0.0), "clamped": (1, 0.0)}
_NOT_A_KNOT = "not-a-knot"


# --- systems with three diagonals ----------------------------------------------------------------


def _moved(band: Tensor, by: int) -> Tensor:
    """Return a diagonal moved by one row; what comes in is not used."""
    size = band._array.shape[-1]
    dim = band._array.ndim - 1
    if by > 0:
        parts = [slice_of(band, dim, size - 1, size, 1), slice_of(band, dim, 0, size - 1, 1)]
    else:
        parts = [slice_of(band, dim, 1, size, 1), slice_of(band, dim, 0, 1, 1)]
    result: Tensor = cat(parts, dim)
    return result


def _adjoint(g: Tensor, lower: Tensor, middle: Tensor, upper: Tensor) -> Tensor:
    """Solve the system with the transposed matrix."""
    result: Tensor = _SOLVE.apply(_moved(upper, 1), middle, _moved(lower, -1), g)
    return result


def _band_rule(shift: int) -> Any:
    """Return the rule of a diagonal: minus the products of the adjoint with what it multiplies."""

    def rule(g: Tensor, y: Tensor, lower: Tensor, middle: Tensor, upper: Tensor) -> Tensor:
        adjoint, dim = _adjoint(g, lower, middle, upper), y._array.ndim - 2
        size = y._array.shape[dim]
        if not shift:
            return -sum(adjoint * y, (-1,))
        rows = (1, size) if shift < 0 else (0, size - 1)
        beside = (0, size - 1) if shift < 0 else (1, size)
        product = -sum(slice_of(adjoint, dim, *rows, 1) * slice_of(y, dim, *beside, 1), (-1,))
        nothing = 0 * slice_of(sum(y, (-1,)), dim, 0, 1, 1).detach()
        result: Tensor = cat([nothing, product] if shift < 0 else [product, nothing], dim)
        return result

    return rule


_SOLVE: Primitive = Primitive(
    "solve_tridiagonal",
    "SolveTridiagonalBackward0",
    lambda lower, middle, upper, rows: solve_tridiagonal(lower, middle, upper, rows),
    ["lower", "middle", "upper", "rows"],
    [_band_rule(-1), _band_rule(0), _band_rule(1), _adjoint],
    stand_in=lambda place: np.ones(place.shape, place.dtype),
    samples=[
        lambda make: (
            lambda a, b, c, rows: _SOLVE.apply(a, b + 8, c, rows),
            [make(4), make(4), make(4), make(4, 2)],
            {},
        ),
        lambda make: (
            lambda a, b, c, rows: _SOLVE.apply(a, b + 8, c, rows),
            [make(1), make(1), make(1), make(1, 1)],
            {},
        ),
    ],
)


# --- the slopes at the points --------------------------------------------------------------------


def _conditions(bc_type: Any) -> list[Any]:
    """Return the condition at each end: the name of one, or which derivative has which value."""
    both = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    if not isinstance(both, (tuple, list)) or len(both) != 2:
        raise ValueError("cubic_spline(): bc_type must be a word, or a condition for each end")
    found = []
    for each in both:
        if isinstance(each, str):
            if each != _NOT_A_KNOT and each not in _NAMED:
                raise ValueError(
                    "cubic_spline(): bc_type must be 'not-a-knot', 'natural' or 'clamped', or the "
                    f"order and the value of a derivative at an end, but got {each!r}"
                )
            found.append(_NAMED.get(each, each))
        elif isinstance(each, (tuple, list)) and len(each) == 2 and each[0] in (1, 2):
            found.append(tuple(each))
        else:
            raise ValueError(
                "cubic_spline(): a condition is a pair of an order, 1 or 2, and a value, but got "
                f"{each!r}"
            )
    return found


def _end(condition: Any, h: Any, slope: Any, beyond: Any, sign: float) -> tuple[Any, Any, Any]:
    """Return the equation at an end: what multiplies its slope and its neighbour's, and the right.

    `h` and `slope` are of the piece at the end and, `beyond`, of the one after it; `sign` is -1 at
    the first point. After C. de Boor, A Practical Guide to Splines, chapter IV.
    """
    if condition == _NOT_A_KNOT:
        next_h, next_slope = beyond
        both = h + next_h
        right = ((h + 2 * both) * next_h * slope + h * h * next_slope) / both
        return next_h, both, right
    order, value = condition
    if order == 1:
        return 1 + 0 * h, 0 * h, value + 0 * slope
    return 2 * h, h, 3 * h * slope + sign * 0.5 * value * h * h


def _slopes(h: Tensor, secants: Tensor, conditions: list[Any]) -> Tensor:
    """Return the slopes at the points, of steps (n - 1,) and of secants (n - 1, k)."""
    pieces = h._array.shape[0]

    def piece(at: int) -> tuple[Tensor, Tensor]:
        at %= pieces
        return slice_of(h, 0, at, at + 1, 1), slice_of(secants, 0, at, at + 1, 1)

    def column(step: Any) -> Any:
        return unsqueeze(step, 1)

    if pieces == 1:
        conditions = [(1, piece(0)[1]) if each == _NOT_A_KNOT else each for each in conditions]
    if pieces == 2 and conditions == [_NOT_A_KNOT] * 2:  # one parabola
        one = 1 + 0 * piece(0)[0]
        ends = [(one, one, 2 * piece(at)[1]) for at in (0, -1)]
    else:
        ends = []
        for condition, at, sign in zip(conditions, (0, -1), (-1.0, 1.0), strict=True):
            (step, slope), beyond = piece(at), None
            if condition == _NOT_A_KNOT:
                next_step, next_slope = piece(1 if at == 0 else -2)
                beyond = (column(next_step), next_slope)
            own, other, right = _end(condition, column(step), slope, beyond, sign)
            ends.append((reshape(own, (1,)), reshape(other, (1,)), right))
    left, right = slice_of(h, 0, 0, pieces - 1, 1), slice_of(h, 0, 1, pieces, 1)
    before, behind = slice_of(secants, 0, 0, pieces - 1, 1), slice_of(secants, 0, 1, pieces, 1)
    inner = 3 * (column(right) * before + column(left) * behind)
    (first, above, top), (last, below, bottom) = ends
    nothing = 0 * first
    lower = cat([nothing, right, below])
    middle = cat([first, 2 * (left + right), last])
    upper = cat([above, left, nothing])
    result: Tensor = _SOLVE.apply(lower, middle, upper, cat([top, inner, bottom]))
    return result


@declare(
    "cubic_spline(Tensor x, Tensor y, object bc_type='not-a-knot')",
    method=False,
)
def cubic_spline(x: Tensor, y: Tensor, bc_type: Any) -> Tensor:
    """Return the coefficients of the cubic spline through points: twice differentiable everywhere.

    `piecewise_polynomial` evaluates it. Derivatives flow to points and values, through the system
    of equations for the slopes at the points, and of any order. Mirrors ``scipy.interpolate``'s
    ``CubicSpline``, whose conditions at the ends these are.

    Parameters
    ----------
    x : tensor of shape (n,)
        Points, which increase; two at least.
    y : tensor of shape (n, ...)
        The values there.
    bc_type : {"not-a-knot", "natural", "clamped"}, or two conditions
        The first two pieces and the last two are one polynomial each; the second derivative is 0
        at the ends; the first one is. Or for each end one of these, or the order of a derivative, 1
        or 2, and its value, a number or a tensor of the shape of a value.

    Returns
    -------
    tensor of shape (4, n - 1, ...)
        Those of the third power first.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the numbers are complex.
    ValueError
        If there is no such condition.

    >>> import numgrad as ng
    >>> x = ng.tensor([0.0, 1.0, 2.0, 3.0])
    >>> c = ng.cubic_spline(x, x**3)
    >>> ng.piecewise_polynomial(ng.tensor([0.5, 2.5]), x, c)
    tensor([ 0.1250, 15.6250])
    """
    conditions = _conditions(bc_type)
    shape, given = x._array.shape, y._array.shape
    if len(shape) != 1 or shape[0] < 2:
        raise RuntimeError(
            f"cubic_spline(): expected one dim of at least two points, but got {list(shape)}"
        )
    if not given or given[0] != shape[0]:
        raise RuntimeError(
            f"cubic_spline(): expected values for {shape[0]} points but got shape {list(given)}"
        )
    x, y = of_one_real_dtype("cubic_spline", x, y)
    count = shape[0]
    width = y._array.size // count
    values = reshape(y, (count, width))
    for at, each in enumerate(conditions):
        if isinstance(each, tuple) and isinstance(each[1], Tensor):
            (value,) = of_one_real_dtype("cubic_spline", each[1])
            conditions[at] = (each[0], reshape(value, (1, width)))
    h = slice_of(x, 0, 1, count, 1) - slice_of(x, 0, 0, count - 1, 1)
    low, high = slice_of(values, 0, 0, count - 1, 1), slice_of(values, 0, 1, count, 1)
    step = unsqueeze(h, 1)
    secants = (high - low) / step
    slopes = _slopes(h, secants, conditions)
    first, second = slice_of(slopes, 0, 0, count - 1, 1), slice_of(slopes, 0, 1, count, 1)
    bend = (first + second - 2 * secants) / step
    found = stack([bend / step, (secants - first) / step - bend, first, low])
    result: Tensor = reshape(found, (4, count - 1, *given[1:]))
    return result
