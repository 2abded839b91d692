"""Normalisation: layer_norm, rms_norm, batch_norm, group_norm, instance_norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.layouts import (
    channels_last,
    channels_last_3d,
    channels_last_of,
    contiguous_format,
    is_in_order,
)
from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.tensor import Tensor
from numgrad.ops.movement.shape import unsafe_view
from numgrad.ops.nn.gradient_layouts import gradient_as_images, gradient_by_rows
from numgrad.ops.pointwise.exponential import rsqrt
from numgrad.ops.reduction.moments import var_mean
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


# The result, the means, and the reciprocals of deviations.
Normalised = tuple[Tensor, Tensor, Tensor]


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


def _scaled(result: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is not None:
        result = result * weight
    return result if bias is None else result + bias


def _wide(input: Tensor) -> Tensor:
    """Return float16 in float32, which holds the squares; others as they are."""
    return input.to(dtypes.float32) if input._array.dtype.itemsize == 2 else input


def _given(input: Tensor, *found: Tensor) -> Normalised:
    """Return what was computed of a `_wide` input in the dtype of the input."""
    if input._array.dtype.itemsize == 2:
        found = tuple([each.to(input.dtype) for each in found])
    result, middle, factor = found
    return result, middle, factor


def _moments(input: Tensor, dims: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return variances and means: of nothing, too, without the warning of `var_mean`."""
    if input._array.size:
        moments: tuple[Tensor, Tensor] = var_mean(input, dims, correction=0, keepdim=True)
        return moments
    middle = mean(input, dims, True)
    return mean((input - middle) ** 2, dims, True), middle


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
    wide = _wide(gradient_by_rows(input).contiguous())
    if weight is not None:
        weight = gradient_by_rows(weight)
    if bias is not None:
        bias = gradient_by_rows(bias)
    variance, middle = _moments(wide, dims)
    factor = rsqrt(variance + eps)
    return _given(input, _scaled((wide - middle) * factor, weight, bias), middle, factor)


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
    wide = _wide(input.contiguous())
    result = _scaled(wide * rsqrt(mean(wide * wide, dims, True) + eps), weight, None)
    return result if wide._array.dtype == input._array.dtype else result.to(input.dtype)


# --- channels ------------------------------------------------------------------------------------


def _of_channels(part: Tensor, ndim: int) -> Tensor:
    """Return a vector with an element for each channel as it broadcasts to an input."""
    return part.reshape((*[1] * min(ndim - 1, 1), part._array.size, *[1] * (ndim - 2)))


def _check_channels(count: int, parts: dict[str, Tensor | None]) -> None:
    for name, part in parts.items():
        if part is not None and part._array.size != count:
            raise RuntimeError(f"{name} should contain {count} elements not {part._array.size}")


def _update(running: Tensor | None, found: Tensor, momentum: float) -> None:
    """Move a running mean towards what was found."""
    if running is not None:
        with no_grad():
            running.mul_(1 - momentum).add_(found.detach() * momentum)


def _check_several(sizes: Sequence[int], shown: Any) -> None:
    count = sizes[0]
    for length in sizes[2:]:
        count *= length
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {shown}"
        )


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
    _check_channels(count, {**parts, "weight": weight, "bias": bias})
    if not training:
        assert running_mean is not None and running_var is not None
        middle, variance = (_of_channels(each, len(shape)) for each in (running_mean, running_var))
        factor = rsqrt(_wide(variance) + eps)
        scale, shift = _as_channels(input, weight, bias)
        result = _scaled((_images(input) - middle) * factor, scale, shift)
        return _given(input, result, middle, factor)
    result, middle, factor, variance = _by_own_channels(input, weight, bias, eps)
    rows = input._array.size // max(count, 1)
    _update(running_mean, middle.reshape(-1), momentum)
    _update(running_var, variance.reshape(-1) * (rows / max(rows - 1, 1)), momentum)
    return _given(input, result, middle, factor)


def _images(input: Tensor) -> Tensor:
    """Return images as channels of theirs are normalised."""
    return _wide(gradient_as_images(input).contiguous(memory_format=_format_of(input)))


def _as_channels(input: Tensor, *parts: Tensor | None) -> list[Tensor | None]:
    """Return what there is of vectors as it broadcasts to an input."""
    ndim = input._array.ndim
    return [None if each is None else _of_channels(each, ndim) for each in parts]


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
    variance, middle = _moments(wide, [0, *range(2, input._array.ndim)])
    factor = rsqrt(variance + eps)
    scale, shift = _as_channels(input, weight, bias)
    return _scaled((wide - middle) * factor, scale, shift), middle, factor, variance


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
        _check_several(shape, input.shape)
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
    groups = _wide(gradient_as_images(input)).reshape(
        shape[0], num_groups, math.prod(shape[1:]) // num_groups
    )
    variance, middle = _moments(groups, [2])
    factor = rsqrt(variance + eps)
    result = unsafe_view((groups - middle) * factor, shape)
    scale, shift = _as_channels(input, weight, bias)
    return _given(input, _scaled(result, scale, shift), middle, factor)


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
    _check_several(sizes, sizes)
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
    _check_channels(shape[1], {**parts, "weight": weight, "bias": bias})
    wide = _wide(gradient_by_rows(input, True).contiguous())
    scale, shift = _as_channels(input, weight, bias)
    if not use_input_stats:
        assert running_mean is not None and running_var is not None
        middle, variance = (_of_channels(each, ndim) for each in (running_mean, running_var))
    else:
        variance, middle = _moments(wide, [*range(2, ndim)])
        found = variance * (count / max(count - 1, 1))
        _update(running_mean, middle.reshape(shape[:2]).mean(0), momentum)
        _update(running_var, found.reshape(shape[:2]).mean(0), momentum)
    factor = rsqrt(_wide(variance) + eps)
    return _given(input, _scaled((wide - middle) * factor, scale, shift), middle, factor)[0].view(
        shape
    )


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
