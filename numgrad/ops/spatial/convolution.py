"""Convolutions and transposed convolutions, in one, two and three dims.

A convolution here is what signal processing calls a cross-correlation: the kernel is not turned
around. V. Dumoulin and F. Visin, "A guide to convolution arithmetic for deep learning" (2016),
draws what stride, padding and dilation do; a transposed convolution is the adjoint map.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.kernels.spatial.convolutions import Steps
from numgrad.ops.movement.padding import constant_pad_nd
from numgrad.ops.movement.unit_dims import squeeze
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.arguments import batched, each_dim, numbers, spread
from numgrad.ops.spatial.convolution_primitives import convolve, transposed_sizes

__all__ = ["CONVOLUTIONS", "convolution"]

CONVOLUTIONS: dict[str, Callable[..., Any]] = {}
_NAMES_OF_DIMS = {2: ("height", "width"), 3: ("depth", "height", "width")}


def _by(values: Sequence[int]) -> str:
    return f"({' x '.join(map(str, values))})"


def _check_dtypes(input: Tensor, weight: Tensor, transposed: bool, dilation: Sequence[int]) -> None:
    dims = len(dilation)
    if input._array.dtype.kind == "b":
        kernel = "slow_conv_transpose" if transposed else "slow_conv"
        kernel += f"{max(dims, 2)}d{'_out' if transposed else ''}_cpu"
        if not transposed and max(dilation) > 1:
            kernel = "slow_conv_dilated<>"
        elif not transposed and dims == 3:
            kernel = "compute_columns3d"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")
    if input._array.dtype != weight._array.dtype:
        if input._array.dtype.kind == "c":
            raise RuntimeError(
                f"Input type (CPU{input.dtype.scalar_name}Type) and weight type "
                f"(torch.{weight.dtype.scalar_name}Tensor) should be the same"
            )
        raise RuntimeError(
            f"expected scalar type {input.dtype.scalar_name} but found {weight.dtype.scalar_name}"
        )


def _check_shapes(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    steps: Steps,
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> None:
    """Raise, in PyTorch's words and order, unless a convolution has a meaning."""
    for is_wrong, complaint in (
        (min(steps.padding) < 0, "negative padding is not supported"),
        (min(output_padding) < 0, "negative output_padding is not supported"),
        (min(steps.stride) <= 0, "non-positive stride is not supported"),
        (min(steps.dilation) < 0, "dilation should be greater than zero"),
    ):
        if is_wrong:
            raise RuntimeError(complaint)
    _check_dims(input, weight, " ")
    shape, kernels = input._array.shape, weight._array.shape
    given = f"Given groups={groups}, "
    if kernels[0] < groups:
        raise RuntimeError(
            f"{given}expected weight to be at least {groups} at dimension 0, but got weight of "
            f"size {numbers(kernels)} instead"
        )
    if kernels[0] % groups:
        raise RuntimeError(
            f"{given}expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{numbers(kernels)}] instead"
        )
    channels = kernels[0] if transposed else kernels[1] * groups
    many = kernels[1] * groups if transposed else kernels[0]
    of_weight = f"weight of size {numbers(kernels)}, expected"
    if transposed:
        given = "Given transposed=1, "
    if shape[1] != channels:
        raise RuntimeError(
            f"{given}{of_weight} input{numbers(shape)} to have {channels} channels, but got "
            f"{shape[1]} channels instead"
        )
    if bias is not None and bias._array.shape != (many,):
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else ''}{of_weight} bias to be 1-dimensional "
            f"with {many} elements, but got bias of size {numbers(bias._array.shape)} instead"
        )
    _check_sizes(shape, kernels[2:], steps, transposed, output_padding)


def _check_dims(input: Tensor, weight: Tensor, gap: str = "") -> None:
    shape, kernels = input._array.shape, weight._array.shape
    ndim = len(kernels)
    if len(shape) != ndim:
        raise RuntimeError(
            f"Expected {ndim}-dimensional input for {ndim}-dimensional weight{gap}"
            f"{numbers(kernels)}, but got {len(shape)}-dimensional input of size {numbers(shape)} "
            "instead"
        )


def _check_sizes(
    shape: Sequence[int],
    kernel: Sequence[int],
    steps: Steps,
    transposed: bool,
    output_padding: Sequence[int],
) -> None:
    sizes, dims = shape[2:], len(kernel)
    names = _NAMES_OF_DIMS[max(dims, 2)]
    if not transposed:
        wide = [size + 2 * each for size, each in zip(sizes, steps.padding, strict=True)]
        reach = [each * (k - 1) + 1 for each, k in zip(steps.dilation, kernel, strict=True)]
        if any(size < each for size, each in zip(wide, reach, strict=True)):
            raise RuntimeError(
                f"Calculated padded input size per channel: {_by(wide)}. Kernel size: "
                f"{_by(reach)}. Kernel size can't be greater than actual input size"
            )
    found = transposed_sizes(sizes, kernel, steps, output_padding)
    is_small = transposed and min(found) < (0 if 0 in shape[:2] else 1)
    if 0 in shape[:2] and not is_small:
        return
    if min(steps.dilation) == 0:
        each = (1,) * (len(names) - dims) + tuple(steps.dilation)
        said = ", ".join(_named("dilation", names, each)) if transposed else numbers(each)
        raise RuntimeError(f"dilation should be greater than zero, but got {said}")
    if math.prod(sizes) == 0:
        raise RuntimeError(
            "Only zero batch or zero channel inputs are supported, but got input shape: "
            f"{numbers(shape)}"
        )
    if min(kernel) <= 0:
        said = " ".join(_named("kernel", names, (1,) * (len(names) - dims) + tuple(kernel)))
        raise RuntimeError(f"kernel size should be greater than zero, but got {said}")
    if not transposed:
        return
    rows = zip(output_padding, steps.stride, steps.dilation, strict=True)
    if any(more >= stride and more >= dilation for more, stride, dilation in rows):
        missing = len(names) - dims
        said = " ".join(
            [
                *_named("output_padding", names, (0,) * missing + tuple(output_padding)),
                *_named("stride", names, (1,) * missing + tuple(steps.stride)),
                *_named("dilation", names, (1,) * missing + tuple(steps.dilation)),
            ]
        )
        raise RuntimeError(
            f"output padding must be smaller than either stride or dilation, but got {said}"
        )
    if is_small:
        missing = len(names) - dims
        raise RuntimeError(
            f"Given input size per channel: {_by((1,) * missing + tuple(sizes))}. Calculated "
            f"output size per channel: {_by((1,) * missing + found)}. Output size is too small"
        )


def _named(what: str, names: Sequence[str], values: Sequence[int]) -> list[str]:
    return [f"{what}_{name}: {value}" for name, value in zip(names, values, strict=True)]


def _convolved(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: tuple[int, ...],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Return a convolution of an input with samples, once its arguments are looked at."""
    dims = weight._array.ndim - 2
    if dims < 1:
        raise RuntimeError("weight should have at least three dimensions")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if input._array.ndim != dims + 2 and len(stride) == 1:  # a function of other dims
        stride = stride * (input._array.ndim - 2)
    steps = Steps(
        spread(stride, dims, "stride"),
        spread(padding, dims, "padding"),
        spread(dilation, dims, "dilation"),
    )
    more = spread(output_padding, dims, "output_padding")
    _check_shapes(input, weight, bias, steps, transposed, more, groups)
    if 0 not in input._array.shape[:2]:  # where there is nothing, PyTorch asks no kernel
        _check_dtypes(input, weight, transposed, steps.dilation)
    return convolve(input, weight, bias, steps, transposed, more, groups)


def _check_bias(input: Tensor, bias: Tensor | None) -> None:
    if bias is not None and bias._array.dtype != input._array.dtype:
        names = [_TYPES.get(each.dtype.name, each.dtype.cpp_name) for each in (input, bias)]
        raise RuntimeError(f"Input type ({names[0]}) and bias type ({names[1]}) should be the same")


_TYPES = {
    "int64": "long int",
    "int16": "short int",
    "uint8": "unsigned char",
    "int8": "signed char",
}


@declare(
    "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, "
    "int[] dilation, bool transposed, int[] output_padding, int groups)",
    method=False,
    dispatched=True,
)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    output_padding: tuple[int, ...],
    groups: int,
) -> Tensor:
    """Return a convolution, or a transposed one, in as many dims as the weight has behind two.

    Derivative: the transposed convolution of g, or the convolution, by the same weight for the
    input; for the weight, the sums over samples and places of what each of its elements met.

    Parameters
    ----------
    input : tensor of shape (n, channels, *sizes)
    weight : tensor of shape (out_channels, channels / groups, *kernel)
        If transposed, of shape (channels, out_channels / groups, *kernel).
    bias : tensor of shape (out_channels,), optional

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit each other.

    >>> import numgrad as ng
    >>> x = ng.arange(4.0).reshape(1, 1, 4)
    >>> kernel = ng.tensor([[[1.0, 10.0]]])
    >>> ng.convolution(x, kernel, None, (1,), (0,), (1,), False, (0,), 1)
    tensor([[[10., 21., 32.]]])
    """
    return _convolved(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


def _same(
    input: Tensor, weight: Tensor, stride: Sequence[int], dilation: Sequence[int]
) -> tuple[Tensor, tuple[int, ...]]:
    """Return the input, and the padding with which a convolution keeps its spatial sizes.

    Where both sides of a dim need different ones, the input has one more element behind.
    """
    kernel = weight._array.shape[2:]
    dims = len(kernel)
    steps = each_dim(stride, dims, f"stride cannot broadcast to {dims} dimensions")
    spacing = each_dim(dilation, dims, f"dilation cannot broadcast to {dims} dimensions")
    if any(step != 1 for step in steps):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    if min(spacing) < 0:
        raise RuntimeError("dilation should be greater than zero")
    totals = [each * (k - 1) for each, k in zip(spacing, kernel, strict=True)]
    if any(total % 2 for total in totals):
        pad = [each for total in reversed(totals) for each in (0, total % 2)]
        input = constant_pad_nd(input, pad, 0)
    return input, tuple([total // 2 for total in totals])


def _make_convolution(dims: int) -> None:
    name = f"conv{dims}d"
    kinds = "Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "

    def rule(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        groups: int,
    ) -> Tensor:
        _check_bias(input, bias)
        input, has_samples = batched(name, input, dims)
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise RuntimeError(f"Invalid padding string: '{padding}'")
            if padding == "same":
                _check_dims(input, weight)
                input, padding = _same(input, weight, stride, dilation)
            else:
                padding = (0,)
        result = _convolved(
            input, weight, bias, stride, padding, dilation, False, (0,) * dims, groups
        )
        return result if has_samples else squeeze(result, 0)

    sizes = ", ".join(["length", "height, width", "depth, height, width"][dims - 1 : dims])
    _enter(
        name,
        rule,
        (
            f"{name}({kinds}int[1] padding=0, int[1] dilation=1, int groups=1)",
            f"{name}({kinds}str padding='valid', int[1] dilation=1, int groups=1)",
        ),
        f"""Return the convolution of an input of {_COUNTS[dims]}, the kernel not turned around.

    Derivative: the transposed convolution of g by the same weight for the input; for the weight,
    the sums over samples and places of what each of its elements met.

    Parameters
    ----------
    input : tensor of shape (n, channels, {sizes}) or (channels, {sizes})
    weight : tensor of shape (out_channels, channels / groups, *kernel)
        Of the same dtype.
    bias : tensor of shape (out_channels,), optional
    stride
        How far the places are apart to which the kernel goes.
    padding
        How many zeros there are on both sides of the input; ``"same"`` for as many as give the
        result the sizes of the input, ``"valid"`` for none.
    dilation
        How far the elements are apart which the kernel meets.
    groups
        The first of so many groups of channels is met by the first group of kernels, and so on.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit each other, or the kernel is larger than the padded input.

    >>> import numgrad as ng
    >>> x = ng.ones({", ".join(["1"] * 2 + ["3"] * dims)})
    >>> ng.nn.functional.{name}(x, ng.ones({", ".join(["1"] * 2 + ["2"] * dims)})).flatten()
    tensor([{", ".join([f"{2**dims}."] * 2**dims)}])
    """,
    )


def _make_transposed(dims: int) -> None:
    name = f"conv_transpose{dims}d"

    def rule(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        output_padding: tuple[int, ...],
        groups: int,
        dilation: tuple[int, ...],
    ) -> Tensor:
        input, has_samples = batched(name, input, dims)
        result = _convolved(
            input, weight, bias, stride, padding, dilation, True, output_padding, groups
        )
        return result if has_samples else squeeze(result, 0)

    sizes = ", ".join(["length", "height, width", "depth, height, width"][dims - 1 : dims])
    _enter(
        name,
        rule,
        (
            f"{name}(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
            f"int[1] padding=0, int[1] output_padding=0, int groups=1, "
            f"int[1] dilation=1)",
        ),
        f"""Return the transposed convolution of an input of {_COUNTS[dims]}: the adjoint map.

    Each element adds the kernel, times itself, to the place that it has in the result.
    Derivative: the convolution of g by the same weight for the input; for the weight, the sums over
    samples and places of the products of input and g that it stands between.

    Parameters
    ----------
    input : tensor of shape (n, channels, {sizes}) or (channels, {sizes})
    weight : tensor of shape (channels, out_channels / groups, *kernel)
        Of the same dtype.
    bias : tensor of shape (out_channels,), optional
    stride
        How far the elements of the input are apart in the result.
    padding
        How many elements are taken away from both sides of the result.
    output_padding
        How many are added behind it; fewer than the stride or the dilation.
    groups
        The first of so many groups of channels gives the first group of results, and so on.
    dilation
        How far the elements of the kernel are apart.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit each other.

    >>> import numgrad as ng
    >>> x = ng.ones({", ".join(["1"] * 2 + ["1"] * dims)})
    >>> weight = ng.ones({", ".join(["1"] * 2 + ["2"] * dims)})
    >>> ng.nn.functional.{name}(x, weight, stride=2).sum()
    tensor({2**dims}.)
    """,
    )


_COUNTS = {1: "one dim", 2: "two dims", 3: "three dims"}


def _enter(name: str, rule: Callable[..., Any], texts: Sequence[str], doc: str) -> None:
    rule.__name__ = rule.__qualname__ = name
    rule.__doc__ = doc
    CONVOLUTIONS[name] = declare(*texts, method=False, dispatched=True)(rule)


for _dims in (1, 2, 3):
    _make_convolution(_dims)
    _make_transposed(_dims)
# Pickles find the functions here.
globals().update(CONVOLUTIONS)
