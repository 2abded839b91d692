"""How the gradients of layers and losses that are compositions lie in memory.

PyTorch has one kernel for the gradient of such a function, which makes it row by row, or as the
input lies, whatever the cotangent's strides. Here it is the work of several rules, which go by
those: what stands in front of them has the gradient laid out in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.image_places import gradient_like
from numgrad.ops.core.places import laid_out, like_original
from numgrad.ops.core.primitive import Primitive

__all__ = ["all_by_rows", "gradient_as_images", "gradient_as_input", "gradient_by_rows"]


def _as_input(g: Tensor, input_lies: Any) -> Tensor:
    return laid_out(g) if input_lies is None else like_original(g, input_lies)


def _as_images(g: Tensor, input_lies: Any) -> Tensor:
    return gradient_like(g, input_lies)


def _make(name: str, rule: Callable[..., Tensor]) -> Primitive:
    made: Primitive = Primitive(
        name,
        "AliasBackward0",
        lambda array: array[...],
        ["input"],
        [rule],
        view=True,
        linear=True,
        listed=False,
    )
    return made


_BY_ROWS = _make("gradient_by_rows", lambda g: laid_out(g))
_AS_INPUT = _make("gradient_as_input", _as_input)
_AS_IMAGES = _make("gradient_as_images", _as_images)


def _applied(primitive: Primitive, input: Tensor, always: bool) -> Tensor:
    if input._array.ndim < 2 or not input.requires_grad:
        return input
    if not always and input.is_contiguous():
        return input
    result: Tensor = primitive.apply(input)
    return result


def gradient_by_rows(input: Tensor, always: bool = False) -> Tensor:
    """Return the input, whose gradient lies row by row.

    What lies so itself is left alone unless `always` is set: as a rule its gradient does, too.
    """
    return _applied(_BY_ROWS, input, always)


def gradient_as_input(input: Tensor, always: bool = False) -> Tensor:
    """Return the input, whose gradient has the dims in the order in which the input has them."""
    return _applied(_AS_INPUT, input, always)


def gradient_as_images(input: Tensor) -> Tensor:
    """Return the input, whose gradient has the channels last where the input has."""
    return _applied(_AS_IMAGES, input, input._array.ndim > 3)


def all_by_rows(first: Tensor, second: Tensor, always: bool) -> tuple[Tensor, Tensor]:
    """Return two tensors whose gradients lie row by row, `always` or if one of them does not."""
    always = always or not (first.is_contiguous() and second.is_contiguous())
    return gradient_by_rows(first, always), gradient_by_rows(second, always)
