"""The same memory read as elements of another dtype: ``view(dtype)``.

No gradient flows through it, as in PyTorch: it is what `detach` is, a tensor without a history over
the same memory and with the same version, so that a write to either counts as one to both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.recorder import Traced, TraceError
from numgrad.graph.storage import offset_of
from numgrad.graph.tensor import Tensor, set_array
from numgrad.ops.movement.complex_views import REAL_DTYPES
from numgrad.ops.movement.copies import detach
from numgrad.runtime.frames import where_user_is

__all__ = ["view_dtype"]


def view_dtype(input: Tensor, dtype: dtypes.dtype) -> Tensor:
    """Return the memory of a tensor as elements of another dtype.

    Where these are smaller, the last dim has more of them; where they are larger, fewer.

    Raises
    ------
    RuntimeError
        In PyTorch's words, if the sizes of elements differ and the last dim does not lie in one
        stretch, or does not hold a whole number of them.
    TraceError
        In a traced function, which has no bits to read, but for the real and imaginary parts of
        complex numbers.
    """
    seen = detach(input)
    array: Any = input._array
    wanted = dtype.numpy
    if array.dtype == wanted:
        return seen
    if array.itemsize != wanted.itemsize:
        _check_fits(input, dtype)
    if type(array) is Traced and not _are_parts(array.dtype, wanted):
        raise TraceError(
            f"{where_user_is()}view({dtype!r}) reads the bits of a tensor of {input.dtype!r}, and "
            "while a function is traced there are none: pass the viewed tensor in as an argument, "
            "or use to(dtype) if it is the numbers that you want"
        )
    set_array(seen, array.view(wanted))
    return seen


def _are_parts(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether one of two dtypes has the real and imaginary parts of the other."""
    return other is REAL_DTYPES.get(one) or one is REAL_DTYPES.get(other)


def _check_fits(input: Tensor, dtype: dtypes.dtype) -> None:
    """Raise unless the last dim can be read as elements of another size."""
    array: Any = input._array
    ending = f"to view {input.dtype.scalar_name} as {dtype.scalar_name} (different element sizes)"
    if not array.ndim:
        raise RuntimeError(f"self.dim() cannot be 0 {ending}")
    ratio = dtype.itemsize // array.itemsize
    for name, value in (("size(-1)", array.shape[-1]), ("storage_offset()", _offset(input))):
        if ratio and value % ratio:
            raise RuntimeError(
                f"self.{name} must be divisible by {ratio} {ending}, but got {value}"
            )
    strides = input.stride()
    if strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {ending}, but got {strides[-1]}")
    for dim, step in enumerate(strides[:-1]):
        if ratio and step % ratio:
            raise RuntimeError(
                f"self.stride({dim}) must be divisible by {ratio} {ending}, but got {step}"
            )


def _offset(input: Tensor) -> int:
    array: Any = input._array
    if type(array) is Traced:
        array.note_strides()  # where it starts is part of how it lies
    return offset_of(input)
