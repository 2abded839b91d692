"""Integrals of functions known at points: trapezoid, trapz, cumulative_trapezoid."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.movement.shape import view
from numgrad.ops.movement.slicing import select, slice_view
from numgrad.ops.reduction.reductions import sum
from numgrad.ops.reduction.scans import cumsum
from numgrad.ops.signatures.declared import declare

__all__ = ["cumulative_trapezoid", "trapezoid", "trapz"]


def _halves(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return all but the last and all but the first along a dim."""
    return slice_view(input, dim, slice(0, -1)), slice_view(input, dim, slice(1, None))


def _steps(name: str, y: Tensor, x: Tensor, dim: int) -> Tensor:
    """Return how far points are apart, in a shape that fits to that of the values."""
    if "b" in (y._array.dtype.kind, x._array.dtype.kind):
        raise RuntimeError(
            f"{name}: received a bool input for `x` or `y`, but bool is not supported"
        )
    shape, ndim = x._array.shape, y._array.ndim
    if len(shape) == 1:
        if shape[0] != y._array.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = view(x, tuple([shape[0] if each == dim else 1 for each in range(ndim)]))
    elif len(shape) < ndim:
        x = view(x, (1,) * (ndim - len(shape)) + shape)
    left, right = _halves(x, dim)
    return right - left


def _check_step(name: str, y: Tensor, dx: Any) -> None:
    if y._array.dtype.kind == "b":
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


def _dim_of(y: Tensor, dim: int) -> int:
    if not y._array.ndim:
        wrap_dim(dim, 0)
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, y._array.ndim)


def _trapezoid(y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor:
    at = _dim_of(y, dim)
    shape = y._array.shape
    if not shape[at]:
        return fresh(np.zeros(shape[:at] + shape[at + 1 :], y._array.dtype))
    result: Tensor
    if x is None:
        _check_step("trapezoid", y, dx)
        last, first = select(y, at, -1), select(y, at, 0)  # gradients add up in this order, too
        ends = (first + last) * 0.5
        result = (sum(y, (at,)) - ends) * float(dx)
        return result
    steps = _steps("trapezoid", y, x, at)
    left, right = _halves(y, at)
    result = sum((left + right) * steps, (at,)) / 2.0
    return result


@declare(
    "trapezoid(Tensor y, Tensor x, *, int dim=-1)",
    "trapezoid(Tensor y, *, number dx=1, int dim=-1)",
    method=False,
    dispatched=True,
)
def trapezoid(y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor:
    """Return the integral of a function along a dim, of which values are known, by trapezoids.

    That is the sum of (y[k] + y[k + 1]) (x[k + 1] - x[k]) / 2. Values and points have gradients.

    Parameters
    ----------
    y
        Values; integers are taken as floating point numbers.
    x
        Where they are: as long as the dim, or of a shape that broadcasts to that of `y`.
    dx
        How far the points are apart, where `x` is not given.

    Raises
    ------
    RuntimeError
        If the points do not fit to the values, or these are bools.
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.trapezoid(ng.tensor([1.0, 2.0, 3.0]), ng.tensor([0.0, 1.0, 3.0]))
    tensor(6.5000)
    """
    return _trapezoid(y, x, dx, dim)


@declare(
    "trapz(Tensor y, *, float dx=1, int dim=-1)",
    "trapz(Tensor y, Tensor x, *, int dim=-1)",
    method=False,
    dispatched=True,
)
def trapz(y: Tensor, x: Tensor | None, dx: float, dim: int) -> Tensor:
    """Return the integral of a function along a dim by trapezoids; see `trapezoid`.

    >>> import numgrad as ng
    >>> ng.trapz(ng.tensor([1.0, 2.0, 3.0]), dx=2)
    tensor(8.)
    """
    return _trapezoid(y, x, dx, dim)


@declare(
    "cumulative_trapezoid(Tensor y, Tensor x, *, int dim=-1)",
    "cumulative_trapezoid(Tensor y, *, number dx=1, int dim=-1)",
    method=False,
    dispatched=True,
)
def cumulative_trapezoid(y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor:
    """Return the integral of a function from the first point to each other one; see `trapezoid`.

    The dim is one shorter than that of the values, whose gradient is a sum of g from the end.

    >>> import numgrad as ng
    >>> ng.cumulative_trapezoid(ng.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    at = wrap_dim(dim, y._array.ndim)
    result: Tensor
    if x is None:
        _check_step("cumulative_trapezoid", y, dx)
        left, right = _halves(y, at)
        result = cumsum(float(dx) / 2.0 * (left + right), at)
        return result
    steps = _steps("cumulative_trapezoid", y, x, at)
    left, right = _halves(y, at)
    result = cumsum((left + right) * steps, at) / 2.0
    return result
