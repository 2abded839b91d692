"""What all normalisations do: moments, running statistics, scales for channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.base import dtypes
from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.tensor import Tensor
from numgrad.ops.reduction.moments import var_mean
from numgrad.ops.reduction.reductions import mean

__all__ = [
    "Normalised",
    "along_channels",
    "as_channels",
    "check_channels",
    "check_several",
    "moments_of",
    "narrowed_as",
    "scaled",
    "update_running",
    "widened",
]

# The result, the means, and the reciprocals of deviations.
Normalised = tuple[Tensor, Tensor, Tensor]


def scaled(result: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Return what is normalised times a weight plus a bias, where there are such."""
    if weight is not None:
        result = result * weight
    return result if bias is None else result + bias


def widened(input: Tensor) -> Tensor:
    """Return float16 in float32, which holds the squares; others as they are."""
    return input.to(dtypes.float32) if input._array.dtype.itemsize == 2 else input


def narrowed_as(input: Tensor, *found: Tensor) -> Normalised:
    """Return what was computed of a `widened` input in the dtype of the input."""
    if input._array.dtype.itemsize == 2:
        found = tuple([each.to(input.dtype) for each in found])
    result, middle, factor = found
    return result, middle, factor


def moments_of(input: Tensor, dims: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return variances and means: of nothing, too, without the warning of `var_mean`."""
    if input._array.size:
        moments: tuple[Tensor, Tensor] = var_mean(input, dims, correction=0, keepdim=True)
        return moments
    middle = mean(input, dims, True)
    return mean((input - middle) ** 2, dims, True), middle


def along_channels(part: Tensor, ndim: int) -> Tensor:
    """Return a vector with an element for each channel as it broadcasts to an input."""
    return part.reshape((*[1] * min(ndim - 1, 1), part._array.size, *[1] * (ndim - 2)))


def check_channels(count: int, parts: dict[str, Tensor | None]) -> None:
    """Raise unless each part that there is has an element for each channel."""
    for name, part in parts.items():
        if part is not None and part._array.size != count:
            raise RuntimeError(f"{name} should contain {count} elements not {part._array.size}")


def update_running(running: Tensor | None, found: Tensor, momentum: float) -> None:
    """Move a running mean towards what was found."""
    if running is not None:
        with no_grad():
            running.mul_(1 - momentum).add_(found.detach() * momentum)


def check_several(sizes: Sequence[int], shown: Any) -> None:
    """Raise if a channel has one element only, whose variance is 0."""
    count = sizes[0]
    for length in sizes[2:]:
        count *= length
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {shown}"
        )


def as_channels(input: Tensor, *parts: Tensor | None) -> list[Tensor | None]:
    """Return what there is of vectors as it broadcasts to an input."""
    ndim = input._array.ndim
    return [None if each is None else along_channels(each, ndim) for each in parts]
