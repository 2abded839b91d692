"""Normalisation: layer_norm, rms_norm, batch_norm, group_norm, instance_norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base.layouts import (
    channels_last,
    channels_last_3d,
    channels_last_of,
    contiguous_format,
    is_in_order,
)
from numgrad.graph.tensor import Tensor
from numgrad.ops.movement.shape import unsafe_view
from numgrad.ops.nn.gradient_layouts import gradient_as_images, gradient_by_rows
from numgrad.ops.nn.normal_steps import (
    Normalised,
    along_channels,
    as_channels,
    check_channels,
    check_several,
    moments_of,
    narrowed_as,
    scaled,
    update_running,
    widened,
)
from numgrad.ops.pointwise.exponential import rsqrt
from numgrad.ops.reduction.reductions import mean
from numgrad.ops.signatures.declared import declare

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "of_channels",
    "of_groups",
    "of_last_dims",
    "of_own_channels",
    "rms_norm",
]


def _check_last(
    input: Tensor, shape: Sequence[int], parts: dict[str, Tensor | None], mark: str
) -> list[int]:
    """Return the last dims, of a shape; raise unless the input ends with it."""
    sizes, wanted = list(input._array.shape), list(shape)
    if not wanted:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            f"element, but got normalized_shape = {wanted}"
        )
    for name, part in parts.items():
        if part is not None and list(part._array.shape) != wanted:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(part._array.shape)} and normalized_shape = {wanted}"
            )
    if sizes[-len(wanted) :] != wanted:
        ends = ", ".join(map(str, wanted))
        raise RuntimeError(
            f"Given normalized_shape={wanted}, expected input with shape [*{mark}{ends}], but got "
            f"input of size{sizes}"
        )
    return [*range(len(sizes) - len(wanted), len(sizes))]


def of_last_dims(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Normalised:
    """Return what `layer_norm` does, with means and reciprocal deviations."""
    dims = _check_last(input, normalized_shape, {"weight": weight, "bias": bias}, ", ")
    if not input.dtype.is_floating_point:
        raise NotImplementedError(
            f"\"LayerNormKernelImpl\" not implemented for '{input.dtype.scalar_name}'"
        )
    wide = widened(gradient_by_rows(input).contiguous())
    if weight is not None:
        weight = gradient_by_rows(weight)
    if bias is not None:
        bias = gradient_by_rows(bias)
    variance, middle = moments_of(wide, dims)
    factor = rsqrt(variance + eps)
    return narrowed_as(input, scaled((wide - middle) * factor, weight, bias), middle, factor)


@declare(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-5)",
    function=False,
    method=False,
    dispatched=True,
)
def layer_norm(
    input: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """Return the input less its mean over its standard deviation, both of the last dims.

    The gradient is (g - mean(g) - y mean(g y)) over the deviation. Ba, Kiros and Hinton, arXiv
    1607.06450.

    Parameters
    ----------
    normalized_shape
        The lengths of those dims.
    weight, bias
        What the result is multiplied by, and what is added then, of that shape.
    eps
        What is added to the variance.

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> ng.nn.functional.layer_norm(ng.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,), eps=0.0)
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    return of_last_dims(input, normalized_shape, weight, bias, eps)[0]


@declare(
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)",
    function=False,
    method=False,
    dispatched=True,
)
def rms_norm(
    input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None, eps: float | None
) -> Tensor:
    """Return the input over the root of the mean of its squares, of the last dims.

    The gradient is (g - y mean(g y)) over that root. Zhang and Sennrich, arXiv 1910.07467.

    Parameters
    ----------
    normalized_shape, weight
        As of `layer_norm`.
    eps
        What is added to the mean of squares; by default the dtype's.

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> ng.nn.functional.rms_norm(ng.tensor([2.0, 2.0, -2.0]), (3,), eps=0.0)
    tensor([ 1.,  1., -1.])
    """
    dims = _check_last(input, normalized_shape, {"weight": weight}, "")
    if input._array.dtype.kind not in "fc":
        name = input.dtype.scalar_name
        raise NotImplementedError(f"\"rms_norm\" not implemented for '{name}'")
    if eps is None:
        eps = float(np.finfo(input._array.dtype).eps)
    wide = widened(input.contiguous())
    result = scaled(wide * rsqrt(mean(wide * wide, dims, True) + eps), weight, None)
    return result if wide._array.dtype == input._array.dtype else result.to(input.dtype)


# --- channels ------------------------------------------------------------------------------------


def _format_of(input: Tensor) -> Any:
    """Return the format that channels are normalised in: whatever the strides of dims of 1."""
    shape, strides = input._array.shape, input.stride()
    if not input.is_contiguous():
        for own in (channels_last, channels_last_3d):
            if is_in_order(shape, strides, own):
                return own
    return channels_last_of(shape, strides) or contiguous_format


def of_channels(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Normalised:
    """Return what `batch_norm` does, with means and reciprocal deviations."""
    parts = {"running_mean": running_mean, "running_var": running_var}
    if not training:
        for name, part in parts.items():
            if part is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    shape = input._array.shape
    count = shape[1] if len(shape) > 1 else 0
    check_channels(count, {**parts, "weight": weight, "bias": bias})
    if not training:
        assert running_mean is not None and running_var is not None
        ndim = len(shape)
        middle, variance = (along_channels(each, ndim) for each in (running_mean, running_var))
        factor = rsqrt(widened(variance) + eps)
        scale, shift = as_channels(input, weight, bias)
        result = scaled((_images(input) - middle) * factor, scale, shift)
        return narrowed_as(input, result, middle, factor)
    result, middle, factor, variance = _by_own_channels(input, weight, bias, eps)
    rows = input._array.size // max(count, 1)
    update_running(running_mean, middle.reshape(-1), momentum)
    update_running(running_var, variance.reshape(-1) * (rows / max(rows - 1, 1)), momentum)
    return narrowed_as(input, result, middle, factor)


def _images(input: Tensor) -> Tensor:
    """Return images as channels of theirs are normalised."""
    return widened(gradient_as_images(input).contiguous(memory_format=_format_of(input)))


@declare(
    "_by_own_channels(Tensor input, Tensor? weight, Tensor? bias, float eps)",
    function=False,
    method=False,
    dispatched=True,
)
def _by_own_channels(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, ...]:
    """Return what `batch_norm` does in training, wide, with what it found of the channels."""
    wide = _images(input)
    variance, middle = moments_of(wide, [0, *range(2, input._array.ndim)])
    factor = rsqrt(variance + eps)
    scale, shift = as_channels(input, weight, bias)
    return scaled((wide - middle) * factor, scale, shift), middle, factor, variance


@declare(
    "batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
    "Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-5)",
    function=False,
    method=False,
    dispatched=True,
)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    """Return the input less the mean over the standard deviation of its channel.

    The gradient is that of `layer_norm` in training, else g over the deviation. Ioffe and Szegedy,
    arXiv 1502.03167.

    Parameters
    ----------
    input : tensor of shape (N, C, ...)
    running_mean, running_var : tensors of shape (C,), optional
        In training they are moved towards mean and variance of this batch; else they are what is
        subtracted and divided by.
    weight, bias : tensors of shape (C,), optional
        What the result is multiplied by, and what is added then.
    momentum
        How far.
    eps
        What is added to the variance.

    Raises
    ------
    RuntimeError, ValueError
        If the lengths do not fit, or in training there is one number in a channel.

    >>> import numgrad as ng
    >>> x = ng.tensor([[1.0, 0.0], [3.0, 8.0]])
    >>> ng.nn.functional.batch_norm(x, None, None, training=True, eps=1e-12)
    tensor([[-1., -1.],
            [ 1.,  1.]])
    """
    shape = input._array.shape
    if training:
        check_several(shape, input.shape)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return of_channels(input, running_mean, running_var, weight, bias, training, momentum, eps)[0]


def _check_groups(count: int) -> None:
    if count <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {count}")


def of_groups(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Normalised:
    """Return what `group_norm` does, with means and reciprocal deviations."""
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {len(shape)}"
        )
    _check_groups(num_groups)
    if shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(shape)} and num_groups={num_groups}"
        )
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and (part._array.ndim != 1 or part._array.size != shape[1]):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(part._array.shape)} and input of shape "
                f"{list(shape)}"
            )
    groups = widened(gradient_as_images(input)).reshape(
        shape[0], num_groups, math.prod(shape[1:]) // num_groups
    )
    variance, middle = moments_of(groups, [2])
    factor = rsqrt(variance + eps)
    result = unsafe_view((groups - middle) * factor, shape)
    scale, shift = as_channels(input, weight, bias)
    return narrowed_as(input, scaled(result, scale, shift), middle, factor)


@declare(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-5)",
    function=False,
    method=False,
    dispatched=True,
)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Return the input less the mean over the standard deviation of its group of channels.

    The gradient is that of `layer_norm`. Wu and He, arXiv 1803.08494.

    Parameters
    ----------
    input : tensor of shape (N, C, ...)
    num_groups
        How many groups the channels are in.
    weight, bias : tensors of shape (C,), optional
    eps
        What is added to the variance.

    Raises
    ------
    RuntimeError, ValueError
        If the lengths do not fit.

    >>> import numgrad as ng
    >>> ng.nn.functional.group_norm(ng.tensor([[1.0, 3.0, 0.0, 8.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {len(shape)}"
        )
    _check_groups(num_groups)
    sizes = [shape[0] * shape[1] // num_groups, num_groups, *shape[2:]]
    check_several(sizes, sizes)
    return of_groups(input, num_groups, weight, bias, eps)[0]


def of_own_channels(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    """Return what `instance_norm` does."""
    shape = input._array.shape
    ndim, count = len(shape), math.prod(shape[2:])
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    parts = {"running_mean": running_mean, "running_var": running_var}
    check_channels(shape[1], {**parts, "weight": weight, "bias": bias})
    wide = widened(gradient_by_rows(input, True).contiguous())
    scale, shift = as_channels(input, weight, bias)
    if not use_input_stats:
        assert running_mean is not None and running_var is not None
        middle, variance = (along_channels(each, ndim) for each in (running_mean, running_var))
    else:
        variance, middle = moments_of(wide, [*range(2, ndim)])
        found = variance * (count / max(count - 1, 1))
        update_running(running_mean, middle.reshape(shape[:2]).mean(0), momentum)
        update_running(running_var, found.reshape(shape[:2]).mean(0), momentum)
    factor = rsqrt(widened(variance) + eps)
    result = scaled((wide - middle) * factor, scale, shift)
    return narrowed_as(input, result, middle, factor)[0].view(shape)


@declare(
    "instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, "
    "Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, "
    "float eps=1e-5)",
    function=False,
    method=False,
    dispatched=True,
)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    """Return the input less the mean over the standard deviation of its own channel.

    The gradient is that of `layer_norm`. Ulyanov, Vedaldi and Lempitsky, arXiv 1607.08022.

    Parameters
    ----------
    input : tensor of shape (N, C, ...)
    running_mean, running_var, weight, bias, momentum, eps
        As of `batch_norm`; the former take the mean over the N.
    use_input_stats
        Whether means and deviations are those of the input.

    Raises
    ------
    RuntimeError, ValueError
        If the lengths do not fit, or there is one number in a channel.

    >>> import numgrad as ng
    >>> ng.nn.functional.instance_norm(ng.tensor([[[1.0, 3.0], [0.0, 8.0]]]), eps=0.0)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    shape = input._array.shape
    if use_input_stats and math.prod(shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    return of_own_channels(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )
