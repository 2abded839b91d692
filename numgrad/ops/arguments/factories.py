"""Read the arguments of factories: shape, dtype, device, layout, out, in PyTorch's words."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.layouts import memory_format as MemoryFormat
from numgrad.base.layouts import order_in_memory, strided
from numgrad.graph.inplace import bump_version, write_elements
from numgrad.graph.modes import modes
from numgrad.graph.recorder import note_given
from numgrad.graph.tensor import NO_EDGE, Tensor, fresh
from numgrad.kernels.move.memory_order import laid_out_like

__all__ = [
    "Array",
    "check_device",
    "check_layout",
    "check_memory_format",
    "check_out",
    "checked_number",
    "default_dtype_of",
    "empty_in_order",
    "finish",
    "is_integer",
    "is_number",
    "read_dtype",
    "read_integer",
    "read_number",
    "read_shape",
    "require_grad",
    "type_name",
    "write_result",
]

Array = np.ndarray[Any, Any]

_DEVICE_TYPES = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
    "mps, meta, hpu, mtia, privateuseone"
)


def type_name(value: Any) -> str:
    """Return the name of a value's type as PyTorch's messages give it."""
    kind = type(value)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def is_integer(value: Any) -> bool:
    """Whether `value` can be a length: an int, a NumPy integer or a 0-d integer tensor."""
    if isinstance(value, Tensor):
        return not value._array.ndim and value._array.dtype.kind in "iu"
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether `value` is a number: Python's, NumPy's, or a 0-d tensor that needs no gradient."""
    if isinstance(value, Tensor):
        return not value._array.ndim and value._edge is NO_EDGE
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))


def _as_int(value: Any) -> int:
    return int(value._array.item()) if isinstance(value, Tensor) else int(value)


def _is_length(value: Any) -> bool:
    """Whether `value` can be a later length, where any one-element tensor will do."""
    if isinstance(value, Tensor):
        return value._array.size == 1 and value._array.dtype.kind in "iu"
    return is_integer(value)


_BEYOND_SIZES = 2**62


def read_shape(
    function: str, values: tuple[Any, ...], size: Any = None, complaint: str | None = None
) -> tuple[int, ...]:
    """Return the shape given as numbers, as one sequence, or by the keyword ``size``.

    Parameters
    ----------
    function : str
        The function's name, for messages.
    values : tuple
        The positional arguments.
    size : sequence of int, optional
        The value of the keyword.
    complaint : str, optional
        What to say about a negative length, instead of what most functions say.

    Raises
    ------
    TypeError
        If the lengths are no integers.
    RuntimeError
        If a length is negative, or there would be more elements than can be addressed.
    """
    given: Any = values[0] if len(values) == 1 and type(values[0]) is tuple else values
    if size is None and given and all(type(v) is int and 0 <= v < _BEYOND_SIZES for v in given):
        shape = tuple(given)
        if math.prod(shape) < _BEYOND_SIZES:
            return shape
    given = values
    if size is not None:
        if values:
            raise TypeError(f"{function}() got multiple values for argument 'size'")
        given = size
    elif not values:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    elif not is_integer(values[0]):
        if len(values) > 1 and isinstance(values[0], (tuple, list)):
            raise TypeError(
                f"{function}() takes 1 positional argument but {len(values)} were given"
            )
        given = values[0]
    shape = _read_lengths(f"{function}(): argument 'size'", given)
    negative = next((length for length in shape if length < 0), None)
    if negative is not None:
        raise RuntimeError(
            complaint
            or f"Trying to create tensor with negative dimension {negative}: {list(shape)}"
        )
    if math.prod(shape) >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    return shape


def _read_lengths(where: str, given: Any) -> tuple[int, ...]:
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"{where} (position 1) must be tuple of ints, not {type_name(given)}")
    if given and not is_integer(given[0]):
        raise TypeError(
            f"{where} (position 1) must be tuple of ints, but found element of type "
            f"{type_name(given[0])} at pos 0"
        )
    for position, value in enumerate(given):
        if not _is_length(value):
            raise TypeError(
                f'{where} failed to unpack the object at pos {position + 1} with error "type must '
                f'be tuple of ints,but got {type_name(value)}"'
            )
    return tuple([_as_int(value) for value in given])


def read_integer(function: str, name: str, position: int, value: Any) -> int:
    """Return an integer argument, or raise PyTorch's TypeError."""
    if not is_integer(value):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be int, not "
            f"{type_name(value)}"
        )
    return _as_int(value)


def read_number(function: str, name: str, position: int, value: Any) -> Any:
    """Return a number argument as a Python number, or raise PyTorch's TypeError."""
    if not is_number(value):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be Number, not "
            f"{type_name(value)}"
        )
    if isinstance(value, Tensor):
        return value._array.item()
    note_given(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise OverflowError(
            "int too big to convert" if value > 0 else "can't convert negative int to unsigned"
        )
    if isinstance(value, np.bool_):  # to PyTorch, NumPy's bool is a floating point number here
        return float(value)
    return value.item() if isinstance(value, np.generic) else value


def read_dtype(function: str, value: Any, default: dtypes.dtype) -> dtypes.dtype:
    """Return the dtype asked for by a keyword, or `default` where it is None."""
    if value is None:
        return default
    if isinstance(value, dtypes.dtype):
        return value
    if any(value is kind for kind in (bool, int, float, complex)):
        return dtypes.to_dtype(value)
    raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type_name(value)}")


def default_dtype_of(out: Any, default: dtypes.dtype) -> dtypes.dtype:
    """Return the dtype of `out` where that is a tensor, else `default`."""
    return out.dtype if isinstance(out, Tensor) else default


def check_device(function: str, device: Any) -> None:
    """Raise unless `device` is the CPU or None."""
    if device is None:
        return
    if isinstance(device, int) and not isinstance(device, bool):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    text = device if isinstance(device, str) else getattr(device, "type", None)
    if not isinstance(text, str):
        raise TypeError(
            f"{function}(): argument 'device' must be torch.device, not {type_name(device)}"
        )
    if not text:
        raise RuntimeError("Device string must not be empty")
    kind, separator, index = text.partition(":")
    if kind not in _DEVICE_TYPES.split(", "):
        raise RuntimeError(
            f"Expected one of {_DEVICE_TYPES} device type at start of device string: {kind}"
        )
    if separator and not index.isdecimal():
        raise RuntimeError(f"Invalid device string: '{text}'")
    if kind == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled")
    if kind != "cpu":
        raise RuntimeError(f"PyTorch is not linked with support for {kind} devices")


def check_layout(function: str, layout: Any) -> None:
    """Raise unless `layout` is strided (the only one there is) or None."""
    if layout is not None and layout is not strided:
        raise TypeError(
            f"{function}(): argument 'layout' must be torch.layout, not {type_name(layout)}"
        )


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


def check_out(function: str, out: Any) -> None:
    """Raise unless `out` can be written to: a tensor that gradients do not flow to."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {type_name(out)}")
    if modes.grad and out.requires_grad:
        raise RuntimeError(
            f"{function}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )


def write_result(function: str, result: Tensor, out: Tensor | None) -> Tensor:
    """Return a computed tensor, or write it to `out`, which takes its shape.

    Raises
    ------
    RuntimeError
        If gradients flow to either, or the dtypes differ.
    """
    if out is None:
        return result
    if modes.grad and result.requires_grad:
        check_out(function, result)
    check_out(function, out)
    if out._array.dtype != result._array.dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {result.dtype.cpp_name}, but got "
            f"{out.dtype.cpp_name} instead"
        )
    return _write(function, result._array, out, None)


def finish(
    function: str,
    array: Array,
    *,
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
    if requires_grad is not None and not isinstance(requires_grad, bool):
        raise TypeError(
            f"{function}(): argument 'requires_grad' must be bool, not {type_name(requires_grad)}"
        )
    if out is not None:
        check_out(function, out)
    tensor = fresh(array) if out is None else _write(function, array, out, dtype)
    if requires_grad:
        require_grad(tensor)
    return tensor


def _write(function: str, array: Array, out: Tensor, dtype: Any) -> Tensor:
    if dtype is not None and array.dtype != out._array.dtype:
        raise RuntimeError(
            f"dtype {dtypes.of_numpy(array.dtype).scalar_name} does not match dtype of out "
            f"parameter ({out.dtype.scalar_name})"
        )
    if out._array.shape == array.shape:
        write_elements(out, ..., array)
    else:
        out._array = array.astype(out._array.dtype)
        if type(array) is np.ndarray:
            out._array = laid_out_like(out._array, array)
        bump_version(out)
    return out


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
    note_given(value)
    if name is None:
        name = dtype.c_name
    if _overflows(value, dtype):
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    if isinstance(value, complex) and not dtype.is_complex:
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
