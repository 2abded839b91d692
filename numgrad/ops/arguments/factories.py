"""What functions that make tensors have in common: options, numbers of a dtype."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.layouts import memory_format as MemoryFormat
from numgrad.base.layouts import order_in_memory
from numgrad.graph.recorder import note_given
from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.calls.keys import IN_EVERY_FLOAT
from numgrad.ops.core.out_argument import check_out, write
from numgrad.ops.signatures.kinds import type_name

__all__ = [
    "LIKE_OPTIONS",
    "OPTIONS",
    "Array",
    "check_memory_format",
    "checked_number",
    "empty_in_order",
    "filled",
    "finish",
    "numpy_dtype",
    "require_grad",
]

Array = np.ndarray[Any, Any]

# The options that functions which make tensors have in common, as signatures have them.
OPTIONS = (
    "dtype? dtype=None, layout? layout=None, device? device=None, pinning? pin_memory=False, "
    "bool? requires_grad=False"
)
LIKE_OPTIONS = f"{OPTIONS}, memory_format? memory_format=None"


def numpy_dtype(dtype: dtypes.dtype | None) -> np.dtype[Any]:
    """Return NumPy's dtype for a dtype; that of the default one for None."""
    return (dtypes.default_dtype() if dtype is None else dtype).numpy


def filled(shape: tuple[int, ...], value: Any, dtype: np.dtype[Any]) -> Array:
    """Return an array with one number everywhere, in a third of the time of `numpy.full`."""
    array = np.empty(shape, dtype)
    array.fill(value)
    return array


def check_memory_format(function: str, memory_format: Any) -> None:
    """Raise unless `memory_format` is None or one of those there are."""
    if memory_format is not None and type(memory_format) is not MemoryFormat:
        raise TypeError(
            f"{function}(): argument 'memory_format' must be torch.memory_format, not "
            f"{type_name(memory_format)}"
        )


def empty_in_order(shape: tuple[int, ...], dtype: dtypes.dtype, memory_format: Any) -> Array:
    """Return an array yet to be set, row by row unless the format is another one."""
    order = order_in_memory(memory_format, len(shape))
    if order is None:
        return np.empty(shape, dtype.numpy)
    array = np.empty([shape[dim] for dim in order], dtype.numpy)
    return array.transpose(sorted(range(len(order)), key=order.__getitem__))


def finish(
    function: str,
    array: Array,
    requires_grad: bool | None = False,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """Return a new array as a tensor, or write it to `out`, which takes its shape.

    Parameters
    ----------
    dtype : dtype, optional
        What the caller asked for, which then has to be the dtype of `out`.
    """
    if out is not None:
        check_out(function, out)
        if dtype is not None and array.dtype != out._array.dtype:
            raise RuntimeError(
                f"dtype {dtypes.of_numpy(array.dtype).scalar_name} does not match dtype of out "
                f"parameter ({out.dtype.scalar_name})"
            )
    tensor = fresh(array) if out is None else write(array, out, warns=False)
    if requires_grad:
        require_grad(tensor)
    return tensor


def require_grad(tensor: Tensor) -> None:
    """Make a new tensor require grad, or raise if its dtype can't."""
    if tensor._array.dtype.kind not in "fc":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    tensor._edge = None


def checked_number(value: Any, dtype: dtypes.dtype, name: str | None = None) -> Any:
    """Return a Python number as a NumPy scalar of `dtype`.

    Integers lose their fraction, and unsigned ones take negative numbers round the corner, as in
    PyTorch.

    Parameters
    ----------
    name : str, optional
        What the message calls the dtype; the name of the C++ type unless given.

    Raises
    ------
    RuntimeError
        If the number is out of the range of `dtype`, or complex where `dtype` is real.
    """
    if (
        type(value) in (float, int)
        and dtype.category >= dtypes.FLOATING
        and abs(value) < IN_EVERY_FLOAT
    ):
        return dtype.numpy.type(value)
    note_given(value)
    if name is None:
        name = dtype.c_name
    if _overflows(value, dtype):
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    if isinstance(value, complex) and not dtype.is_complex and dtype.category != dtypes.BOOL:
        value = value.real
    if dtype.category == dtypes.INTEGER:
        bits = 8 * dtype.itemsize
        value = int(value) % (1 << bits)
        if dtype.is_signed and value >= 1 << (bits - 1):
            value -= 1 << bits
    return dtype.numpy.type(value)


def _overflows(value: Any, dtype: dtypes.dtype) -> bool:
    if dtype.category == dtypes.BOOL:
        return False
    if isinstance(value, complex):
        if dtype.is_complex:
            real = dtype.to_real()
            return _overflows(value.real, real) or _overflows(value.imag, real)
        return value.imag != 0 or _overflows(value.real, dtype)
    if dtype.category >= dtypes.FLOATING:
        limit = float(np.finfo(dtype.to_real().numpy).max)
        return math.isfinite(value) and abs(value) > limit
    limits = np.iinfo(dtype.numpy)
    if isinstance(value, float):
        return not (limits.min <= value <= limits.max)
    low = limits.min if dtype.is_signed else -int(limits.max)
    return not (low <= operator.index(value) <= limits.max)
