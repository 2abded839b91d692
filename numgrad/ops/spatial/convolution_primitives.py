"""The primitives of convolutions, closed under differentiation.

A convolution is one sum of products of three arrays, T(input, weight, g), linear in each
(`numgrad.kernels.spatial.convolutions`). Its value and the gradients of the input and the weight
are the derivatives of T, and the gradients of these are the same three functions again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor
from numgrad.kernels.spatial import convolutions
from numgrad.kernels.spatial.convolutions import Steps
from numgrad.ops.core.image_places import (
    as_images_lie,
    gradient_like,
    image_of_lines,
    memory_of_images,
)
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.movement.slicing import slice_of
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.reduction.reductions import sum as sum_of

__all__ = ["convolve", "transposed_sizes"]

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]


def transposed_sizes(
    sizes: Sequence[int], kernel: Sequence[int], steps: Steps, output_padding: Sequence[int]
) -> Ints:
    """Return the spatial sizes of a transposed convolution's result."""
    return tuple(
        [
            (size - 1) * stride - 2 * padding + dilation * (width - 1) + 1 + more
            for size, width, stride, padding, dilation, more in zip(
                sizes, kernel, *steps, output_padding, strict=True
            )
        ]
    )


@silent
def _convolution(
    input: Array,
    weight: Array,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Array:
    steps = Steps(stride, padding, dilation)
    if not transposed:
        result = convolutions.convolution(input, weight, steps, groups)
    else:
        sizes = transposed_sizes(input.shape[2:], weight.shape[2:], steps, output_padding)
        result = convolutions.transposed_convolution(input, weight, sizes, steps, groups)
    if len(stride) == 1:
        return as_images_lie(result[:, :, None], image_of_lines(weight))[:, :, 0]
    return result if len(stride) > 2 else as_images_lie(result, input, weight)


def _lies(input: Array, weight: Array) -> Array | None:
    """Return memory that lies as the result, of whatever shape."""
    images: list[Any] = [image_of_lines(weight)] if input.ndim == 3 else [input, weight]
    return memory_of_images(images[0].shape, input.dtype, *images) if input.ndim < 5 else None


@silent
def _with_bias(input: Array, weight: Array, bias: Array, **parameters: Any) -> Array:
    result = _convolution(input, weight, **parameters)
    result += bias.reshape(-1, *(1,) * (result.ndim - 2))
    return result


def _biased(
    input: Array,
    weight: Array,
    bias: Array,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Array:
    return _with_bias(
        input,
        weight,
        bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        transposed=transposed,
        output_padding=output_padding,
        groups=groups,
    )


def _first(tensor: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return the first elements of the spatial dims: windows that nothing was computed for go."""
    for dim, size in enumerate(sizes, 2):
        if tensor._array.shape[dim] != size:
            tensor = slice_of(tensor, dim, 0, size, 1)
    return tensor


def _laid(value: Tensor, input_lies: Any, weight_lies: Any) -> Tensor:
    """Return a gradient laid out as PyTorch does: as the result, whichever way its rule went."""
    ndim = value._array.ndim
    if ndim == 3:
        return gradient_like(value, weight_lies)
    return gradient_like(value, input_lies, weight_lies) if ndim == 4 else gradient_like(value)


def _of_input(
    g: Tensor,
    weight: Tensor,
    input_shape: Ints,
    input_lies: Any,
    weight_lies: Any,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    groups: int,
) -> Tensor:
    """Return the gradient of the input: the other convolution of g, by the same weight."""
    steps = Steps(stride, padding, dilation)
    sizes = input_shape[2:]
    none = (0,) * len(sizes)
    if transposed:
        found = _apply(g, conj(weight), steps, False, none, groups)
        return _laid(_first(found, sizes), input_lies, weight_lies)
    reached = transposed_sizes(g._array.shape[2:], weight._array.shape[2:], steps, none)
    more = tuple([size - other for size, other in zip(sizes, reached, strict=True)])
    found = _apply(g, conj(weight), steps, True, more, groups)
    return _laid(found, input_lies, weight_lies)


def _of_weight(
    g: Tensor,
    input: Tensor,
    weight_shape: Ints,
    input_lies: Any,
    weight_lies: Any,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    groups: int,
) -> Tensor:
    x, y = (g, conj(input)) if transposed else (conj(input), g)
    result: Tensor = _WEIGHT.apply(
        x,
        y,
        kernel=weight_shape[2:],
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    return _laid(result, input_lies, weight_lies)


def _of_bias(g: Tensor) -> Tensor:
    result: Tensor = sum_of(g, (0, *range(2, g._array.ndim)))
    return result


@silent
def _weight(
    x: Array, g_y: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    return convolutions.weight_gradient(x, g_y, kernel, Steps(stride, padding, dilation), groups)


def _weight_of_x(
    g: Tensor,
    g_y: Tensor,
    x_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    steps, sizes = Steps(stride, padding, dilation), x_shape[2:]
    none = (0,) * len(sizes)
    reached = transposed_sizes(g_y._array.shape[2:], g._array.shape[2:], steps, none)
    more = tuple([size - other for size, other in zip(sizes, reached, strict=True)])
    return _apply(conj(g_y), g, steps, True, more, groups)


def _weight_of_y(
    g: Tensor,
    x: Tensor,
    g_y_shape: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    none = (0,) * len(stride)
    found = _apply(conj(x), g, Steps(stride, padding, dilation), False, none, groups)
    return _first(found, g_y_shape[2:])


def _apply(
    input: Tensor,
    weight: Tensor,
    steps: Steps,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Tensor:
    return convolve(input, weight, None, steps, transposed, output_padding, groups)


def convolve(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    steps: Steps,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Tensor:
    """Return a convolution of arguments that fit each other."""
    parameters: dict[str, Any] = {
        "stride": steps.stride,
        "padding": steps.padding,
        "dilation": steps.dilation,
        "transposed": transposed,
        "output_padding": output_padding,
        "groups": groups,
    }
    result: Tensor
    if bias is None:
        result = _CONVOLUTION.apply(input, weight, **parameters)
    else:
        result = _BIASED.apply(input, weight, bias, **parameters)
    return result


def _sampled(
    input: Ints,
    weight: Ints,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    transposed: bool = False,
    output_padding: int = 0,
    groups: int = 1,
    bias: int = 0,
) -> Any:
    """Return a sample of a convolution in as many dims as its operands have."""
    dims = len(input) - 2
    steps = Steps(*[(each,) * dims for each in (stride, padding, dilation)])

    def called(*operands: Tensor) -> Tensor:
        return convolve(
            operands[0],
            operands[1],
            operands[2] if bias else None,
            steps,
            transposed,
            (output_padding,) * dims,
            groups,
        )

    shapes = [input, weight, (bias,)] if bias else [input, weight]
    return lambda make: (called, [make(*shape) for shape in shapes], {})


_CONVOLUTION: Primitive = Primitive(
    "convolution",
    "ConvolutionBackward0",
    _convolution,
    ["input", "weight"],
    [_of_input, _of_weight],
    lies=_lies,
    samples=[
        _sampled((2, 2, 5), (3, 2, 2), stride=2, padding=1),
        _sampled((1, 2, 3, 4), (2, 1, 2, 2), dilation=2, padding=1, groups=2),
        _sampled((1, 2, 2, 3), (2, 1, 2, 2), stride=2, transposed=True, output_padding=1),
        _sampled((1, 1, 3), (1, 1, 2), dilation=3, transposed=True, output_padding=2),
        _sampled((0, 1, 3), (1, 1, 2)),
        _sampled((1, 0, 3), (2, 0, 2)),
    ],
)
_BIASED: Primitive = Primitive(
    "convolution_with_bias",
    "ConvolutionBackward0",
    _biased,
    ["input", "weight", "bias"],
    [_of_input, _of_weight, _of_bias],
    lies=_lies,
    samples=[
        _sampled((2, 2, 5), (3, 2, 2), padding=1, bias=3),
        _sampled((1, 1, 2, 2, 2), (1, 1, 2, 1, 2), padding=1, bias=1),
        _sampled((1, 2, 3), (2, 2, 2), transposed=True, padding=1, bias=2),
    ],
)


def _weight_sampled(
    x: Ints, y: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Any:
    keywords = {
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
    }
    return lambda make: (_WEIGHT.apply, [make(*x), make(*y)], keywords)


_WEIGHT: Primitive = Primitive(
    "convolution_weight",
    "ConvolutionBackwardBackward0",
    _weight,
    ["x", "g_y"],
    [_weight_of_x, _weight_of_y],
    samples=[
        _weight_sampled((2, 2, 5), (2, 3, 3), (2,), (2,), (1,), (1,), 1),
        _weight_sampled((1, 2, 3, 3), (1, 2, 2, 3), (2, 1), (1, 1), (0, 0), (1, 1), 2),
    ],
)
