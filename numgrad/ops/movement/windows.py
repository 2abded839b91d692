"""unfold: windows that slide along a dim, as a view."""

from __future__ import annotations

from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.strides import Layout, layout_of, strided_view
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.movement.strided import move
from numgrad.ops.signatures.declared import declare

__all__ = ["overlapped", "unfold"]

_LONGEST_STRIDE = 2**58  # elements of 16 bytes that a stride can hold


def _packed(shape: tuple[int, ...]) -> Layout:
    """Return the layout of a shape in C order."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return shape, tuple(reversed(strides)), 0


def _windows(layout: Layout, dim: int, size: int, step: int) -> Layout:
    """Return the layout of the windows of an array, a new dim at the end."""
    shape, stride, offset = layout
    if not shape:
        return (size,), (1,), offset
    count = (shape[dim] - size) // step + 1
    if count == 1:  # then no element lies that far away, and no stride can hold steps of any size
        step = min(step, _LONGEST_STRIDE // max(abs(stride[dim]), 1))
    return (
        (*shape[:dim], count, *shape[dim + 1 :], size),
        (*stride[:dim], stride[dim] * step, *stride[dim + 1 :], stride[dim]),
        offset,
    )


def overlapped(g: Tensor, input_shape: tuple[int, ...], dim: int, size: int, step: int) -> Tensor:
    """Return the sum of windows at their places in a tensor of zeros: the adjoint of `unfold`."""
    whole = _packed(input_shape)
    return move(g, _windows(whole, dim, size, step), whole, whole)


_UNFOLD: Primitive = Primitive(
    "unfold",
    "UnfoldBackward0",
    lambda array, dim, size, step: strided_view(array, _windows(layout_of(array), dim, size, step)),
    ["input"],
    [overlapped],
    view=True,
    linear=True,
    samples=[
        lambda make: (unfold, [make(2, 5)], {"dimension": 1, "size": 3, "step": 1}),
        lambda make: (unfold, [make(5, 2)], {"dimension": 0, "size": 2, "step": 3}),
        lambda make: (unfold, [make(3)], {"dimension": 0, "size": 0, "step": 1}),
    ],
)


@declare("unfold(Tensor input, int dimension, int size, int step)", function=False, dispatched=True)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of the windows of a dim; what a window holds is a new dim at the end.

    The gradient is g, summed over the windows an element is in.

    Parameters
    ----------
    size
        How long a window is.
    step
        How far the windows are apart.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a window is longer than the dim or shorter than 0, or the step is not positive.

    >>> import numgrad as ng
    >>> ng.arange(4.0).unfold(0, 2, 1)
    tensor([[0., 1.],
            [1., 2.],
            [2., 3.]])
    """
    shape = input._array.shape
    dim = wrap_dim(dimension, len(shape))
    longest = shape[dim] if shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > longest:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {longest} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    result: Tensor = _UNFOLD.apply(input, dim=dim, size=size, step=step)
    return result
