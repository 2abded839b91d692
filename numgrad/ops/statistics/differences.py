"""Differences along a dim and derivatives of functions known at points: diff, gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.dims import read_dims, wrap_dim
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.movement.joining import cat
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.slicing import select, slice_of
from numgrad.ops.signatures.declared import declare

__all__ = ["diff", "gradient"]


def _check_joined(input: Tensor, other: Tensor | None, dim: int) -> None:
    """Raise unless a tensor can be put before or behind the input."""
    if other is None:
        return
    shape, given = input._array.shape, other._array.shape
    if len(shape) != len(given):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for at, (size, found) in enumerate(zip(shape, given, strict=True)):
        if at != dim and size != found:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input "
                f"except along the differencing dimension; input.size({at}) = {size}, but got "
                f"tensor.size({at}) = {found}"
            )


@declare(
    "diff(Tensor input, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None, *, "
    "Tensor? out=None)",
    dispatched=True,
)
def diff(
    input: Tensor,
    n: int,
    dim: int,
    prepend: Tensor | None,
    append: Tensor | None,
    out: Tensor | None,
) -> Tensor:
    """Return differences between neighbours along a dim: x[k + 1] - x[k], `n` times over.

    The gradient is that of the subtractions: the negative differences of g, with zeros around it.

    Parameters
    ----------
    input : tensor of one dim or more
        Of bools: which neighbours differ.
    n
        How often. The dim gets shorter by 1 each time, until nothing is left.
    prepend, append
        Put before and behind the input first; of its shape but for `dim`.

    Raises
    ------
    RuntimeError
        If the input has no dims, `n` is negative, or something does not fit before or behind.
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.diff(ng.tensor([1.0, 4.0, 9.0]), append=ng.tensor([16.0]))
    tensor([3., 5., 7.])
    """
    if not input._array.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    at = wrap_dim(dim, input._array.ndim)
    _check_joined(input, prepend, at)
    _check_joined(input, append, at)
    if not n:
        copied: Tensor = FUNCTIONS["zeros_like"](input).copy_(input)
        return write_result("diff", copied, out)
    parts = [part for part in (prepend, input, append) if part is not None]
    result: Tensor = cat(parts, at) if len(parts) > 1 else input
    subtract = FUNCTIONS["logical_xor" if result._array.dtype.kind == "b" else "sub"]
    times = min(n, result._array.shape[at])
    for number in range(times):
        size = result._array.shape[at]
        before = slice_of(result, at, 0, max(size - 1, 0), 1)
        behind = slice_of(result, at, min(1, size), size, 1)
        result = subtract(behind, before, out=out if number == times - 1 else None)
    return result if times else write_result("diff", result, out)


# --- gradient ------------------------------------------------------------------------------------


def _check(
    input: Tensor, count: int | None, dims: Sequence[int] | None, edge_order: int
) -> tuple[int, ...]:
    """Return the dims to differentiate along, or raise in PyTorch's order of what can be wrong."""
    shape = input._array.shape
    if str(input._array.dtype) == "uint8":
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if count is not None and dims is None and count != len(shape):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"equal to 'self.dim() = {len(shape)}', since dim argument was not given, but got a "
            f"list of length {count}"
        )
    if count is not None and dims is not None and count != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
            f"arguments to have the same length, but got a spacing argument of length {count} and "
            f"a dim argument of length {len(dims)}."
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    chosen = tuple(range(len(shape))) if dims is None else read_dims(tuple(dims), len(shape))
    if any((shape or (1,))[dim] <= edge_order for dim in chosen):
        raise RuntimeError(
            "torch.gradient expected each dimension size to be at least edge_order+1"
        )
    return chosen


def _neighbours(input: Tensor, dim: int, *starts: int) -> list[Tensor]:
    """Return the slices of length 1 that begin at positions, negative ones from the end."""
    size = input._array.shape[dim]
    places = [start % size for start in starts]
    return [slice_of(input, dim, place, place + 1, 1) for place in places]


def _evenly(input: Tensor, dim: int, step: Any, edge_order: int) -> Tensor:
    """Differentiate along a dim whose points are one step apart."""
    size = input._array.shape[dim]
    before, behind = slice_of(input, dim, 0, size - 2, 1), slice_of(input, dim, 2, size, 1)
    inner = (behind - before) / step
    if edge_order == 1:
        first, second = _neighbours(input, dim, 0, 1)
        front = (second - first) / step
        first, second = _neighbours(input, dim, -2, -1)
        back = (second - first) / step
    else:
        x2, x1, x0 = _neighbours(input, dim, 2, 1, 0)
        front = (-1.5 * x0 + 2 * x1 - 0.5 * x2) / step
        x2, x1, x0 = _neighbours(input, dim, -1, -2, -3)
        back = (0.5 * x0 - 2 * x1 + 1.5 * x2) / step
    return cat([front, inner / 2, back], dim)


def _at_points(input: Tensor, dim: int, points: Tensor, edge_order: int) -> Tensor:
    """Differentiate along a dim by the parabola through three neighbours, wherever they are."""
    if points._array.ndim != 1:
        raise RuntimeError(
            "torch.gradient expected each element of spacing to have one dimension, but got an "
            f"element with {points._array.ndim} dimensions!"
        )
    steps = diff(points, 1, 0)
    count, size = steps._array.shape[0], input._array.shape[dim]
    left = slice_of(steps, 0, 0, max(count - 1, 0), 1)
    right = slice_of(steps, 0, min(1, count), count, 1)
    shape = tuple([-1 if each == dim else 1 for each in range(input._array.ndim)])
    a = reshape(-right / (left * (left + right)), shape)
    b = reshape((right - left) / (left * right), shape)
    c = reshape(left / (right * (left + right)), shape)
    inner = (
        a * slice_of(input, dim, 0, size - 2, 1)
        + b * slice_of(input, dim, 1, size - 1, 1)
        + c * slice_of(input, dim, 2, size, 1)
    )
    if edge_order == 1:
        x0, x1, x2, x3 = _neighbours(input, dim, 0, 1, -2, -1)
        front, back = (x1 - x0) / select(steps, 0, 0), (x3 - x2) / select(steps, 0, -1)
        return cat([front, inner, back], dim)
    h0, h1 = select(steps, 0, 0), select(steps, 0, 1)
    x0, x1, x2 = _neighbours(input, dim, 0, 1, 2)
    a, b, c = (
        -(2 * h0 + h1) / (h0 * (h0 + h1)),
        (h0 + h1) / (h0 * h1),
        -h0 / (h1 * (h0 + h1)),
    )
    front = a * x0 + b * x1 + c * x2
    h0, h1 = select(steps, 0, -2), select(steps, 0, -1)
    x0, x1, x2 = _neighbours(input, dim, -3, -2, -1)
    a, b, c = (
        h1 / (h0 * (h1 + h0)),
        -(h1 + h0) / (h1 * h0),
        (2 * h1 + h0) / (h1 * (h1 + h0)),
    )
    return cat([front, inner, a * x0 + b * x1 + c * x2], dim)


@declare(
    "gradient(Tensor input, *, int[] dim, int edge_order=1)",
    "gradient(Tensor input, *, number spacing, int[] dim, int edge_order=1)",
    "gradient(Tensor input, *, number? spacing=None, int? dim=None, int edge_order=1)",
    "gradient(Tensor input, *, number[] spacing, int? dim=None, int edge_order=1)",
    "gradient(Tensor input, *, number[] spacing, int[] dim, int edge_order=1)",
    "gradient(Tensor input, *, Tensor[] spacing, int? dim=None, int edge_order=1)",
    "gradient(Tensor input, *, Tensor[] spacing, int[] dim, int edge_order=1)",
    method=False,
)
def gradient(input: Tensor, spacing: Any, dim: Any, edge_order: int) -> tuple[Tensor, ...]:
    """Return derivatives of a function that is known at points, along each dim, by differences.

    Inside it is that of the parabola through a point and its two neighbours, which is
    (x[k + 1] - x[k - 1]) / (2 h) where they are h apart (B. Fornberg, Mathematics of Computation
    51, 1988). Both the values and the points have gradients.

    Parameters
    ----------
    input
        The values of the function.
    spacing : number, numbers or tensors of one dim
        How far points are apart, in all dims or in each of them; or where they are.
    dim : int or ints
        Along which dims; None: along all.
    edge_order : {1, 2}
        At both ends, use the two points there, or the parabola through three.

    Returns
    -------
    tuple of tensors
        For each dim one of the input's shape.

    Raises
    ------
    RuntimeError
        If a dim has no more than `edge_order` points, or `spacing` is not for as many dims.
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.gradient(ng.tensor([1.0, 4.0, 9.0, 16.0]), edge_order=2)
    (tensor([2., 4., 6., 8.]),)
    """
    dims = (dim,) if isinstance(dim, int) else dim
    several = isinstance(spacing, tuple)
    chosen = _check(input, len(spacing) if several else None, dims, edge_order)
    if not several:
        spacing = (1 if spacing is None else spacing,) * len(chosen)
    return tuple(
        [
            (_at_points if isinstance(each, Tensor) else _evenly)(input, at, each, edge_order)
            for at, each in zip(chosen, spacing, strict=True)
        ]
    )
