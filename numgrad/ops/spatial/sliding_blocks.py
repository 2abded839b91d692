"""Sliding blocks of images as columns, and their sum: `unfold` and `fold`, each other's adjoint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from numgrad.base.dtypes import is_int64
from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor
from numgrad.kernels.spatial.convolutions import Steps, columns_of, from_columns, output_sizes
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.numbers import BEYOND_INT64
from numgrad.ops.spatial.arguments import numbers

__all__ = ["fold", "unfold"]

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]


@silent
def _columns(input: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Array:
    """Return the blocks of images, the last two dims behind their channels, as columns."""
    steps = Steps(stride, padding, dilation)
    *lead, channels, height, width = input.shape
    places = output_sizes((height, width), kernel, steps)
    images = input.reshape(math.prod(lead), channels, height, width)
    columns = columns_of(images, kernel, places, steps)
    columns = columns.reshape(*lead, channels * math.prod(kernel), math.prod(places))
    # Where a kernel has one element the windows are the input.
    return columns.copy() if np.may_share_memory(columns, input) else columns


@silent
def _images(
    input: Array, sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Array:
    """Return the images that sum blocks."""
    steps = Steps(stride, padding, dilation)
    *lead, rows, places = input.shape
    channels = rows // math.prod(kernel)
    columns = np.ascontiguousarray(input).reshape(math.prod(lead), rows, places)
    counts = output_sizes(sizes, kernel, steps)
    images = from_columns(columns, channels, sizes, kernel, counts, steps)
    return np.ascontiguousarray(images).reshape(*lead, channels, *sizes)


def _sample(primitive: str, shape: Ints, kernel: Ints, *steps: Ints, **more: Any) -> Any:
    keywords = dict(zip(("kernel", "stride", "padding", "dilation"), (kernel, *steps), strict=True))
    apply = {"im2col": lambda: _UNFOLD.apply, "col2im": lambda: _FOLD.apply}[primitive]
    return lambda make: (apply(), [make(*shape)], keywords | more)


_UNFOLD: Primitive = Primitive(
    "im2col",
    "Im2ColBackward0",
    _columns,
    ["input"],
    [
        lambda g, input_shape, kernel, stride, padding, dilation: _FOLD.apply(
            g,
            sizes=input_shape[-2:],
            kernel=kernel,
            stride=stride,
            padding=padding,
            dilation=dilation,
        )
    ],
    linear=True,
    samples=[
        _sample("im2col", (2, 2, 3, 4), (2, 2), (1, 2), (0, 1), (1, 1)),
        _sample("im2col", (1, 1, 3, 5), (2, 2), (1, 1), (0, 0), (1, 3)),
    ],
)
_FOLD: Primitive = Primitive(
    "col2im",
    "Col2ImBackward0",
    _images,
    ["input"],
    [
        lambda g, kernel, stride, padding, dilation: _UNFOLD.apply(
            g, kernel=kernel, stride=stride, padding=padding, dilation=dilation
        )
    ],
    linear=True,
    samples=[
        _sample("col2im", (2, 4, 6), (2, 2), (1, 1), (0, 0), (1, 1), sizes=(3, 4)),
        _sample("col2im", (1, 4, 4), (2, 2), (2, 1), (1, 0), (1, 2), sizes=(2, 4)),
    ],
)


def _pair(function: str, name: str, values: int | Sequence[int]) -> Ints:
    """Return two numbers; one alone stands for both."""
    for place, each in enumerate([values] if isinstance(values, int) else values):
        if not is_int64(each):
            raise TypeError(
                f"{function}(): argument '{name}' failed to unpack the object at pos {place + 1} "
                f'with error "{BEYOND_INT64}"'
            )
    if isinstance(values, int):
        return (values, values)
    if len(values) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    return tuple(values)


def _check_steps(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> None:
    rows = (
        ("kernel size", "kernel", kernel, 1),
        ("dilation", "dilation", dilation, 1),
        ("padding", "pad", padding, 0),
        ("stride", "stride", stride, 1),
    )
    for what, prefix, values, least in rows:
        if min(values) < least:
            wanted = "greater than zero" if least else "non-negative"
            raise RuntimeError(
                f"{what} should be {wanted}, but got {prefix}_height: {values[0]} "
                f"{prefix}_width: {values[1]}"
            )


def _tuple(values: Sequence[int]) -> str:
    return f"({', '.join(map(str, values))})"


@declare(
    "unfold(Tensor input, object kernel_size, object dilation=1, object padding=0, "
    "object stride=1)",
    function=False,
    method=False,
)
def unfold(input: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    """Return the blocks that a window on images meets, each as a column: ``im2col``.

    The gradient is `fold` of g, the sum over the blocks that an element is in.

    Parameters
    ----------
    input : tensor of shape (n, channels, height, width) or (channels, height, width)
    kernel_size : int or two ints
        How large a block is.
    dilation : int or two ints
        How far the elements of a block are apart.
    padding : int or two ints
        How many zeros there are on both sides.
    stride : int or two ints
        How far blocks are apart.

    Returns
    -------
    tensor of shape (n, channels * kernel height * kernel width, blocks)

    Raises
    ------
    RuntimeError
        If blocks are larger than the padded images, or arguments make no sense.

    >>> import numgrad as ng
    >>> ng.nn.functional.unfold(ng.arange(6.0).reshape(1, 2, 3), 2)
    tensor([[0., 1.],
            [1., 2.],
            [3., 4.],
            [4., 5.]])
    """
    pair = partial(_pair, "im2col")
    kernel, spacing = pair("kernel_size", kernel_size), pair("dilation", dilation)
    pad, step = pair("padding", padding), pair("stride", stride)
    _check_steps(kernel, spacing, pad, step)
    shape = input._array.shape
    if len(shape) < 3:
        wrap_dim(2, len(shape))
    if len(shape) > 4 or 0 in shape[len(shape) - 3 :]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {numbers(shape)}"
        )
    sizes = shape[-2:]
    counts = output_sizes(sizes, kernel, Steps(step, pad, spacing))
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_tuple(sizes)}, kernel_size={_tuple(kernel)}, "
            f"dilation={_tuple(spacing)}, padding={_tuple(pad)}, calculated shape of the array of "
            f"sliding blocks as {_tuple(counts)}, but its components must be at least one."
        )
    if input._array.dtype.kind in "iu":
        raise NotImplementedError(
            f"\"im2col_out_cpu\" not implemented for '{input.dtype.scalar_name}'"
        )
    found: Tensor = _UNFOLD.apply(input, kernel=kernel, stride=step, padding=pad, dilation=spacing)
    return found


@declare(
    "fold(Tensor input, object output_size, object kernel_size, object dilation=1, "
    "object padding=0, object stride=1)",
    function=False,
    method=False,
)
def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any,
    padding: Any,
    stride: Any,
) -> Tensor:
    """Return images that sum blocks, each given as a column: the adjoint of `unfold`, ``col2im``.

    The gradient is `unfold` of g.

    Parameters
    ----------
    input : tensor of shape (n, channels * kernel height * kernel width, blocks) or without n
    output_size : int or two ints
        How large the images are.
    kernel_size, dilation, padding, stride : int or two ints
        As of `unfold`.

    Returns
    -------
    tensor of shape (n, channels, height, width)

    Raises
    ------
    RuntimeError
        If there are not as many blocks as images of that size have, or arguments make no sense.

    >>> import numgrad as ng
    >>> ng.nn.functional.fold(ng.ones(1, 4, 2), (2, 3), 2)
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
    pair = partial(_pair, "col2im")
    sizes, kernel = pair("output_size", output_size), pair("kernel_size", kernel_size)
    spacing, pad = pair("dilation", dilation), pair("padding", padding)
    step = pair("stride", stride)
    _check_steps(kernel, spacing, pad, step)
    shape = input._array.shape
    if len(shape) not in (2, 3) or 0 in shape[len(shape) - 2 :]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {numbers(shape)}"
        )
    rows, columns = shape[-2:]
    if rows % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={rows} and kernel_size={_tuple(kernel)}."
        )
    counts = output_sizes(sizes, kernel, Steps(step, pad, spacing))
    given = (
        f"Given output_size={_tuple(sizes)}, kernel_size={_tuple(kernel)}, "
        f"dilation={_tuple(spacing)}, padding={_tuple(pad)}, stride={_tuple(step)}, "
    )
    if columns != math.prod(counts):
        raise RuntimeError(
            f"{given}expected size of input's dimension 2 to match the calculated number of "
            f"sliding blocks {counts[0]} * {counts[1]} = {math.prod(counts)}, but got "
            f"input.size(2)={columns}."
        )
    if min(counts) < 1:
        raise RuntimeError(
            f"{given}calculated shape of the array of sliding blocks as {_tuple(counts)}, but its "
            "components must be at least one."
        )
    if input._array.dtype.kind in "iu":
        raise NotImplementedError(
            f"\"col2im_out_cpu\" not implemented for '{input.dtype.scalar_name}'"
        )
    found: Tensor = _FOLD.apply(
        input, sizes=sizes, kernel=kernel, stride=step, padding=pad, dilation=spacing
    )
    return found
