"""Convert tensors to NumPy and Python: ``numpy()``, ``item()``, ``tolist()``, ``float(t)``."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from numgrad.graph.modes.grad_modes import is_grad_enabled
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.recorder import is_traced_array, note_numbers
from numgrad.graph.tensor import NO_EDGE, Tensor, refresh_view
from numgrad.graph.warned import warn

__all__ = [
    "dlpack_device",
    "item",
    "length",
    "to_array",
    "to_bool",
    "to_complex",
    "to_dlpack",
    "to_float",
    "to_index",
    "to_int",
    "to_numpy",
    "tolist",
]

_NEEDS_DETACH = (
    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
)
_ONE_ELEMENT = "only one element tensors can be converted to Python scalars"
_NO_INDEX = "only integer tensors of a single element can be converted to an index"
_SCALAR_REQUIRES_GRAD = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)


def _is_tracked(tensor: Tensor) -> bool:
    """Return whether leaving the graph would go unnoticed: not where nothing is recorded anyway."""
    if tensor._base is not None:
        refresh_view(tensor)
    return tensor._edge is not NO_EDGE and is_grad_enabled()


def to_numpy(tensor: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """Return the NumPy array whose memory the tensor uses.

    Parameters
    ----------
    force : bool
        Return it for a tensor that requires grad, too, as ``detach().numpy()`` does.

    Raises
    ------
    RuntimeError
        If the tensor requires grad, unless forced, or in `no_grad`.
    TypeError
        If `force` is no bool.
    """
    if not isinstance(force, bool):
        raise TypeError(f"numpy(): argument 'force' must be bool, not {type(force).__name__}")
    if not force and _is_tracked(tensor):
        raise RuntimeError(_NEEDS_DETACH)
    array = tensor._array
    if interceptors:
        _note_numbers(array)
    # Another object: to change its shape is nothing to the tensor.
    return array[...] if type(array) is np.ndarray else np.asarray(array)


def to_array(tensor: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """Return the tensor as an array, as NumPy's ``__array__`` protocol asks for it.

    Raises
    ------
    RuntimeError
        If the tensor requires grad.
    ValueError
        If `copy` is False and the dtype has to change.
    """
    array = to_numpy(tensor)
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return array.astype(dtype)
    return array.copy() if copy else array


def to_dlpack(
    tensor: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return the tensor's memory as a DLPack capsule, for libraries that take one.

    Raises
    ------
    BufferError
        If the tensor requires grad.
    """
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    options = {"max_version": max_version, "dl_device": dl_device, "copy": copy, "stream": stream}
    given = {name: value for name, value in options.items() if value is not None}
    return to_numpy(tensor).__dlpack__(**given)


def dlpack_device(tensor: Tensor) -> tuple[int, int]:
    """Return where the memory lies, as DLPack numbers devices: on the CPU."""
    return (1, 0)


def item(tensor: Tensor) -> Any:
    """Return the only element as a Python number.

    Raises
    ------
    RuntimeError
        Unless there is exactly one element.
    """
    array: Any = tensor._array
    if array.size != 1:
        if is_traced_array(array):
            array.storage.recorder.numbers("a Python number", array)  # raises if it has none
        raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
    if interceptors:
        _note_numbers(array)
    return array.item()


def tolist(tensor: Tensor) -> Any:
    """Return nested lists of Python numbers; one number for a tensor without dimensions."""
    if interceptors:
        _note_numbers(tensor._array)
    return tensor._array.tolist()


def _note_numbers(array: Any) -> None:
    """Say that what runs goes by numbers: a trace, and a call that might be remembered."""
    note_numbers(array)
    if modes.steps is not None:
        modes.steps.failed = True


def _scalar(tensor: Tensor, warns: bool = True) -> Any:
    """Return the only element for a conversion to a Python number."""
    if tensor._array.size != 1:
        raise ValueError(_ONE_ELEMENT)
    if interceptors:
        _note_numbers(tensor._array)
    number = tensor._array.item()
    if warns and _is_tracked(tensor):
        warn(_SCALAR_REQUIRES_GRAD)
    return number


def _real(value: Any, kind: str) -> Any:
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        return value.real
    return value


def to_float(tensor: Tensor) -> float:
    """Return the only element as a float, what ``float(tensor)`` gives.

    Raises
    ------
    ValueError
        Unless there is exactly one element.
    RuntimeError
        If it has an imaginary part.
    """
    return float(_real(_scalar(tensor), "double"))


def to_int(tensor: Tensor) -> int:
    """Return the only element without its fraction, what ``int(tensor)`` gives.

    Raises
    ------
    ValueError
        Unless there is exactly one element, or if it is nan.
    OverflowError
        If it is infinite.
    RuntimeError
        If it has an imaginary part.
    """
    return int(_real(_scalar(tensor, warns=False), "int64_t"))


def to_complex(tensor: Tensor) -> complex:
    """Return the only element as a complex number, what ``complex(tensor)`` gives.

    Raises
    ------
    ValueError
        Unless there is exactly one element.
    """
    return complex(_scalar(tensor))


def to_bool(tensor: Tensor) -> bool:
    """Return whether the only element is not 0, what ``bool(tensor)`` gives.

    Raises
    ------
    RuntimeError
        Unless there is exactly one element.
    """
    array = tensor._array
    if array.size != 1:
        what = "more than one value" if array.size else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    if interceptors:
        _note_numbers(array)
    return bool(array.item() if type(array) is np.ndarray else array)


def to_index(tensor: Tensor) -> int:
    """Return the only element of an integer or bool tensor, what makes tensors indices of lists.

    Raises
    ------
    TypeError
        Unless there is exactly one element and it is an integer or a bool.
    """
    array = tensor._array
    if array.size != 1 or array.dtype.kind not in "iub":
        raise TypeError(_NO_INDEX)
    if interceptors:
        _note_numbers(array)
    return operator.index(array.item())


def length(tensor: Tensor) -> int:
    """Return the length of the first dimension, what ``len(tensor)`` gives.

    Raises
    ------
    TypeError
        If the tensor has no dimensions.
    """
    if not tensor._array.ndim:
        raise TypeError("len() of a 0-d tensor")
    return tensor._array.shape[0]
