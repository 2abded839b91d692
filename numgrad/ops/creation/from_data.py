"""Tensors from data: numbers, nested sequences, other tensors, arrays of NumPy and of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.float_errors import silent
from numgrad.base.tuning import RECYCLED_BYTES
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import at_hand, note_copy, note_given
from numgrad.graph.size import Size
from numgrad.graph.tensor import NO_EDGE, Tensor, fresh, wrap
from numgrad.graph.upward import upward
from numgrad.graph.warned import warn
from numgrad.kernels.move.memory_order import copy_like, laid_out_like
from numgrad.ops.arguments.factories import Array, finish, require_grad
from numgrad.ops.arguments.nested import (
    PYTHONS_OWN,
    array_of,
    build_array,
    check_array,
    is_foreign,
    is_sequence,
)
from numgrad.ops.core.registry import public
from numgrad.ops.movement.slicing import alias
from numgrad.ops.mutation.storages import STORAGES, tensor_in
from numgrad.ops.signatures.argument_parser import bind
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.devices import check_device
from numgrad.ops.signatures.kinds import as_size, type_name
from numgrad.ops.signatures.numbers import is_integer
from numgrad.ops.signatures.signature import parse

__all__ = [
    "as_tensor",
    "asarray",
    "from_dlpack",
    "from_numpy",
    "legacy_tensor",
    "new_tensor",
    "tensor",
]


@silent
def _astype(array: Array, dtype: np.dtype[Any]) -> Array:
    return array.astype(dtype, "C")


_INHERITS_REQUIRES_GRAD = (
    "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. "
    "Pass requires_grad=False explicitly to get the old behavior and silence this warning."
)

_COPY_ADVICE = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than {}(sourceTensor)."
)


_OPTIONS = (
    "expected TensorOptions(dtype={}, device=cpu, layout=Strided, requires_grad=false (default), "
    "pinned_memory=false (default), memory_format=(nullopt)) (got TensorOptions(dtype={}, "
    "device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false (default), "
    "memory_format=(nullopt)))"
)


def cast_array(array: Array, dtype: dtypes.dtype) -> Array:
    """Return a copy of an array in another dtype, converted as PyTorch does."""
    if array.dtype.kind == "c" and dtype.category in (dtypes.INTEGER, dtypes.FLOATING):
        warn("Casting complex values to real discards the imaginary part")
        array = array.real
    return laid_out_like(_astype(array, dtype.numpy), array)


def _copy_of(data: Any, dtype: dtypes.dtype | None) -> Array:
    """Return data of any kind as a new array."""
    if type(data) in PYTHONS_OWN:  # as most data is
        return build_array(data, dtype)
    if isinstance(data, Tensor):
        if modes.trace is not None:  # it is copied in every call
            return wrap(at_hand(data._array)).to(dtype or data.dtype, copy=True)._array
        data = data._array
    elif type(data) is not np.ndarray and is_foreign(type(data)):
        data = array_of(data)
    if isinstance(data, np.ndarray):
        array = check_array(data)
        if modes.trace is not None:
            note_copy(array)
        if dtype is None or dtype.numpy == array.dtype:
            in_rows = array.flags.c_contiguous and 1 not in array.shape
            is_small = array.nbytes < RECYCLED_BYTES
            return array.copy() if is_small and in_rows else copy_like(array)
        return cast_array(array, dtype)
    return build_array(data, dtype)


@declare(
    "tensor(object data, *, dtype? dtype=None, device? device=None, pinning pin_memory=False, "
    "bool requires_grad=False)",
    method=False,
    finish=finish,
)
def tensor(data: Any, dtype: Any) -> Array:
    """Return a new leaf tensor with a copy of `data`.

    Parameters
    ----------
    data : number, nested sequence, array or tensor
        Sequences may hold numbers, arrays and one-element tensors side by side. An array is one of
        NumPy, or of any library whose arrays have ``__array__`` or ``__dlpack__``.
    dtype : dtype, optional
        Otherwise that of the data: Python floats become the default floating point dtype, ints
        int64, bools bool, complex numbers the default complex dtype; what has a dtype keeps it,
        and a mixture is promoted.

    Raises
    ------
    ValueError
        For ragged sequences.
    TypeError
        For strings and other data that is no number.
    RuntimeError
        If a number is too large for the dtype, or an integer or bool tensor shall require grad.

    >>> import numgrad as ng
    >>> ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    if isinstance(data, Tensor):
        warn(_COPY_ADVICE.format("torch.tensor"))
    return _copy_of(data, dtype)


@declare(
    "new_tensor(Tensor self, object data, *, dtype? dtype=None, device? device=None, "
    "bool requires_grad=False)",
    function=False,
    finish=finish,
)
def new_tensor(self: Tensor, data: Any, dtype: Any) -> Array:
    """Return a new leaf tensor with a copy of `data`, in the dtype of this one unless told.

    >>> import numgrad as ng
    >>> ng.ones(1, dtype=ng.float64).new_tensor([1, 2])
    tensor([1., 2.], dtype=torch.float64)
    """
    if isinstance(data, Tensor):
        warn(_COPY_ADVICE.format("tensor.new_tensor"))
    return _copy_of(data, dtype or self.dtype)


@declare("as_tensor(object data, *, dtype? dtype=None, device? device=None)", method=False)
def as_tensor(data: Any, dtype: Any) -> Tensor:
    """Return `data` as a tensor, sharing memory with an array or a tensor where possible.

    A tensor of the dtype wanted is returned as it is, with its history.

    Parameters
    ----------
    data : number, nested sequence, array or tensor
        An array is one of NumPy, or of any library whose arrays have ``__array__`` or
        ``__dlpack__``; memory that may not be written to is copied for those.
    dtype : dtype, optional
        A copy is made if the data has another one.

    >>> import numpy as np
    >>> import numgrad as ng
    >>> array = np.zeros(2)
    >>> shared = ng.as_tensor(array)
    >>> array[0] = 5
    >>> shared
    tensor([5., 0.], dtype=torch.float64)
    """
    if isinstance(data, Tensor):
        if dtype is None or dtype is data.dtype:
            return data
        return _recorded_cast(data, dtype)
    if type(data) is not np.ndarray and is_foreign(type(data)):
        data = _writable(array_of(data))
    if isinstance(data, np.ndarray):
        array = check_array(data)
        note_given(array)
        if dtype is None or dtype.numpy == array.dtype:
            return wrap(array[...])
        note_copy(array)
        return fresh(cast_array(array, dtype))
    return fresh(build_array(data, dtype))


upward.as_tensor = as_tensor


def _writable(array: Array) -> Array:
    """Return an array of another library, or a copy where that forbids to write to it."""
    return array if array.flags.writeable else array.copy(order="K")


def _recorded_cast(tensor: Tensor, dtype: dtypes.dtype) -> Tensor:
    if tensor._edge is NO_EDGE and tensor._base is None and modes.trace is None:
        return fresh(cast_array(tensor._array, dtype))
    converted: Tensor = tensor.to(dtype)
    return converted


@declare(
    "asarray(object obj, *, dtype? dtype=None, device? device=None, bool? copy=None, "
    "bool? requires_grad=None)",
    method=False,
)
def asarray(obj: Any, dtype: Any, copy: bool | None, requires_grad: bool | None) -> Tensor:
    """Return `obj` as a tensor, sharing its memory unless told to copy.

    Parameters
    ----------
    obj : number, nested sequence, array or tensor
        Arrays as of `as_tensor`.
    dtype : dtype, optional
        A copy is made if `obj` has another one.
    copy
        Copy always, or never (which raises where that is impossible).
    requires_grad
        Whether the result requires grad; as `obj` does unless given.

    Raises
    ------
    ValueError
        If `copy` is False and the memory can't be shared.

    >>> import numgrad as ng
    >>> ng.asarray([1, 2], dtype=ng.float64)
    tensor([1., 2.], dtype=torch.float64)
    """
    result: Tensor
    if is_foreign(type(obj)):
        obj = array_of(obj, copy)
        if copy is False and not obj.flags.writeable:
            raise ValueError("can't alias memory that may not be written to into a tensor.")
        obj = _writable(obj)
    if isinstance(obj, (Tensor, np.ndarray)):
        note_given(obj)
        source = obj if isinstance(obj, Tensor) else wrap(check_array(obj)[...])
        if requires_grad is None and source.requires_grad:
            warn(_INHERITS_REQUIRES_GRAD)
        same = dtype is None or dtype is source.dtype
        if copy is False and not same:
            raise ValueError(
                f"can't alias tensor with dtype '{source.dtype.scalar_name}' into dtype "
                f"'{dtype.scalar_name if dtype else ''}'."
            )
        if not same and dtype is not None:
            result = _recorded_cast(source, dtype)
        elif copy:
            is_plain = not isinstance(obj, Tensor) and modes.trace is None
            result = wrap(copy_like(source._array)) if is_plain else source.clone()
        else:
            result = source
        if requires_grad is False and result.requires_grad:
            result = wrap(result._array)
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        result = fresh(build_array(obj, dtype))
    if requires_grad and not result.requires_grad:
        require_grad(result)
    return result


@public(method=False)
def from_numpy(array: Array) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array.

    Unlike PyTorch's, it takes arrays with negative strides, and what gives NumPy an array over its
    memory (``__array__``, ``__dlpack__``), such as a column of a table.

    Parameters
    ----------
    array : numpy.ndarray
        Of one of the dtypes that tensors have.

    Raises
    ------
    TypeError
        If it is no array, or its dtype is one that tensors don't have.
    ValueError
        If its elements are in the other byte order, or no whole elements apart, as in a field of
        records.

    >>> import numpy as np
    >>> import numgrad as ng
    >>> ng.from_numpy(np.array([1, 2, 3])[::-1])
    tensor([3, 2, 1])
    """
    if type(array) is not np.ndarray:
        if is_foreign(type(array)):
            array = array_of(array)
        if not isinstance(array, np.ndarray):
            raise TypeError(f"expected np.ndarray (got {type_name(array)})")
    array = check_array(array)
    if array.size and any(step % array.itemsize for step in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy "
            "array to reallocate the memory."
        )
    if not array.flags.writeable:
        warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. This means writing to this tensor will result in undefined behavior. You may "
            "want to copy the array to protect its data or make it writable before converting it "
            "to a tensor."
        )
    note_given(array)
    return wrap(array[...])


@declare("from_dlpack(object ext_tensor, *, device? device=None, bool? copy=None)", method=False)
def from_dlpack(ext_tensor: Any, copy: bool | None) -> Tensor:
    """Return a tensor over the memory of another library's array, by the DLPack protocol.

    Parameters
    ----------
    ext_tensor : object with ``__dlpack__`` and ``__dlpack_device__``, or a DLPack capsule
        An array on the CPU. A tensor gives its memory away by the same protocol.
    copy
        Copy always, or never, which raises where the memory may not be written to; by default only
        then. (Of the protocol's first version, which did not say, NumPy takes it that it may not.)

    Raises
    ------
    AttributeError
        If it does not have the protocol.
    BufferError
        If it is on another device, or its dtype is one that NumPy does not have.
    ValueError
        If `copy` is False and the memory may not be written to.

    >>> import numpy as np
    >>> import numgrad as ng
    >>> array = np.arange(3.0)
    >>> shared = ng.from_dlpack(array)
    >>> shared[0] = 5
    >>> array
    array([5., 1., 2.])
    """
    source = _Capsule(ext_tensor) if type(ext_tensor).__name__ == "PyCapsule" else ext_tensor
    array = check_array(np.from_dlpack(source))
    if copy is False and not array.flags.writeable:
        raise ValueError("from_dlpack: memory that may not be written to can't be shared")
    return wrap(array.copy(order="K") if copy else _writable(array))


class _Capsule:
    """What gives NumPy a DLPack capsule that somebody else asked for."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # NumPy looks at the device in the capsule


_NEW = (parse("new(size size)"),)


def _lengths(*arguments: Any, **keywords: Any) -> tuple[int, ...]:
    _, values = bind(_NEW, arguments, keywords)
    return as_size(("new", "size"), values["size"])


def legacy_tensor(
    kind: dtypes.dtype | None, /, *arguments: Any, device: Any = None, **keywords: Any
) -> Tensor:
    """Return what ``Tensor(...)`` makes, in the default dtype, or ``FloatTensor(...)``, in `kind`.

    Lengths (``Tensor(2, 3)``) give a tensor of that shape, filled with zeros; a sequence or an
    array gives a copy of it; a tensor gives another one over the same memory.

    Raises
    ------
    TypeError
        For anything else.
    """
    if device is not None and str(getattr(device, "type", device)) != "cpu":
        check_device(str(getattr(device, "type", device)))
    unknown = [name for name in keywords if name not in ("size", "data")]
    if unknown or len(keywords) + bool(arguments) > 1:
        names = ", ".join(f"{name}={type_name(value)}" for name, value in keywords.items())
        given = ", ".join(filter(None, [*map(type_name, arguments), names]))
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({given}); it takes "
            "lengths, one sequence of data, or one tensor"
        )
    dtype = dtypes.default_dtype() if kind is None else kind
    if "size" in keywords:
        return fresh(np.zeros(_lengths(size=keywords["size"]), dtype.numpy))
    if "data" in keywords:
        arguments = (keywords["data"],)
    if not arguments:
        return fresh(np.zeros(0, dtype.numpy))
    first = arguments[0]
    if is_integer(first) and not isinstance(first, Tensor):
        return fresh(np.zeros(_lengths(*arguments), dtype.numpy))
    if len(arguments) > 1:
        given = ", ".join(map(type_name, arguments))
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({given}); it takes "
            "lengths, one sequence of data, or one tensor"
        )
    if isinstance(first, STORAGES):
        return tensor_in(first, dtype)
    if isinstance(first, Tensor):
        if kind is not None and first.dtype is not kind:
            raise TypeError(_OPTIONS.format(kind.cpp_name, first.dtype.cpp_name))
        return alias(first)
    if isinstance(first, Size):
        return fresh(np.zeros(first, dtype.numpy))
    if isinstance(first, np.ndarray) or is_foreign(type(first)):
        return wrap(_copy_of(first, dtype))
    if isinstance(first, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type_name(first)}'")
    if not is_sequence(first):
        raise TypeError(f"new(): data must be a sequence (got {type_name(first)})")
    return fresh(build_array(first, dtype))
