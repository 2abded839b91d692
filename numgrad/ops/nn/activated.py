"""Applying an activation: the checks that all share, and writing to the input."""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.ops.arguments.scalar_arrays import scalar_array
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive

__all__ = ["activated"]


def activated(
    primitive: ElementwisePrimitive,
    input: Tensor,
    *numbers: Any,
    inplace: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return an activation of a tensor, in its own memory if that is wanted.

    The numbers do not decide on the dtype: with integers, they are integers, too.

    Raises
    ------
    NotImplementedError
        If there is none for the dtype.
    RuntimeError
        If the dtype has no room for a number.
    """
    primitive.check_dtype(input.dtype)
    dtype, wide = input._array.dtype, primitive.kernel.wide
    exact = dtype.kind == "f" and complex not in map(type, numbers)
    numbers = tuple(
        [
            each if exact and at in wide else scalar_array(each, dtype).item()
            for at, each in enumerate(numbers, 1)
        ]
    )
    result: Tensor
    if inplace:
        result = upward.perform(primitive, primitive.function_name, input, *numbers)
    else:
        result = primitive(input, *numbers, out=out)
    return result
