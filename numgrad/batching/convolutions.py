"""Batching rules of convolutions: examples are samples, or groups where the weight differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.batching.memory import Part
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.movement.shape import reshape

__all__ = ["CONVOLUTIONS"]


def _apply(name: str, *operands: Tensor, **parameters: Any) -> Tensor:
    result: Tensor = CATALOGUE[name].apply(*operands, **parameters)
    return result


def _as_samples(tensor: Tensor) -> Tensor:
    """Return examples of samples as so many more samples."""
    count, each, *rest = tensor._array.shape
    return reshape(tensor, (count * each, *rest))


def _as_channels(tensor: Tensor) -> Tensor:
    """Return examples of samples as samples of so many more channels."""
    size, count, channels, *rest = tensor._array.shape
    turned = _apply("transpose", tensor, dim0=0, dim1=1)
    return reshape(turned, (count, size * channels, *rest))


def _from_channels(tensor: Tensor, size: int) -> Tensor:
    count, channels, *rest = tensor._array.shape
    return _apply(
        "transpose", reshape(tensor, (count, size, channels // size, *rest)), dim0=0, dim1=1
    )


def _convolution(size: int, input: Part, weight: Part, groups: int, **parameters: Any) -> Tensor:
    if not weight.batched:
        found = _apply(
            "convolution", _as_samples(input.tensor), weight.tensor, groups=groups, **parameters
        )
        return reshape(found, (size, input.shape[0], *found._array.shape[1:]))
    found = _apply(
        "convolution",
        _as_channels(input.every(size)),
        _as_samples(weight.tensor),
        groups=size * groups,
        **parameters,
    )
    return _from_channels(found, size)


def _with_bias(size: int, input: Part, weight: Part, bias: Part, **parameters: Any) -> Tensor:
    """Return convolutions, with the bias added: to each example its own, or the same to all."""
    if input.batched or weight.batched:
        found = _convolution(size, input, weight, **parameters)
    else:
        found = _apply("convolution", input.tensor, weight.tensor, **parameters)
    ones = (1,) * (input.ndim - 2)
    if bias.batched:
        added = reshape(bias.tensor, (size, 1, bias.shape[0], *ones))
    else:
        added = reshape(bias.tensor, (bias.shape[0], *ones))
    result: Tensor = found + added
    return result


def _weight(
    size: int, x: Part, g_y: Part, groups: int, kernel: tuple[int, ...], **parameters: Any
) -> Tensor:
    found = _apply(
        "convolution_weight",
        _as_channels(x.every(size)),
        _as_channels(g_y.every(size)),
        groups=size * groups,
        kernel=kernel,
        **parameters,
    )
    many, *rest = found._array.shape
    return reshape(found, (size, many // size, *rest))


CONVOLUTIONS: dict[str, Callable[..., Any]] = {
    "convolution": _convolution,
    "convolution_with_bias": _with_bias,
    "convolution_weight": _weight,
}
