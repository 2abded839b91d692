"""Dtype casts, and bringing a gradient back to the shape and dtype of its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.float_errors import silent
from numgrad.base.layouts import (
    channels_last_of,
    contiguous_format,
    order_in_memory,
    preserve_format,
)
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.graph.warned import warn
from numgrad.kernels.move.memory_order import empty_like, laid_out_like
from numgrad.kernels.move.strides import layout_of, strided_view
from numgrad.kernels.reduce import reductions
from numgrad.ops.arguments.factories import check_memory_format
from numgrad.ops.core.places import laid_out
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.registry import public
from numgrad.ops.movement.copies import clone, contiguous
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.kinds import type_name

__all__ = ["cast", "expand_to", "sum_to_size", "to"]

Array = np.ndarray[Any, Any]


@silent
def _convert(array: Array, dtype: np.dtype[Any]) -> Array:
    order = array
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    # Out-of-range values are cast as the processor does it, without a word, as in PyTorch.
    return laid_out_like(array.astype(dtype, "C"), order)


def _convert_quickly(array: Array, dtype: np.dtype[Any]) -> Any:
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        return None
    if empty_like(array, dtype).strides != np.empty(array.shape, dtype).strides:
        return None
    return silent(lambda array: array.astype(dtype, "C"))


# A gradient returns to its input's dtype by itself, so the rule passes it on.
_TO_COPY: Primitive = Primitive(
    "to_copy",
    "ToCopyBackward0",
    _convert,
    ["input"],
    [lambda g: g],
    linear=True,
    lies=lambda input, dtype: empty_like(input, dtype),
    quick=_convert_quickly,
    takes_half=True,
    samples=[
        lambda make: (to, [make(2, 3)], {"dtype": dtypes.complex128}),
        lambda make: (to, [make()], {"dtype": dtypes.float64, "copy": True}),
        lambda make: (to, [make(0, 2)], {"dtype": dtypes.complex128}),
    ],
)


def _sum_to(array: Array, shape: tuple[int, ...]) -> Array:
    return reductions.sum(array, _broadcast_dims(array, shape), True).reshape(shape)


def _broadcast_dims(array: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    leading = array.ndim - len(shape)
    return tuple(range(leading)) + tuple(
        leading + dim
        for dim, length in enumerate(shape)
        if length == 1 and array.shape[leading + dim] != 1
    )


def _quick_sum_to(array: Array, shape: tuple[int, ...]) -> Any:
    dims = _broadcast_dims(array, shape)
    keepdim = len(dims) + len(shape) > array.ndim  # then those that are left have size 1
    run = reductions.specialised_as_it_lies("sum", array, dims, keepdim)
    if run is None or run(array).shape == shape:
        return run
    return lambda array: run(array).reshape(shape)


# Expanding it again is left to the rule of `expand` below, which stands here for that reason.
_SUM_TO_SIZE: Primitive = Primitive(
    "sum_to_size",
    "SumBackward1",
    _sum_to,
    ["input"],
    [lambda g, input_shape: expand_to(g, input_shape)],
    quick=_quick_sum_to,
    linear=True,
    samples=[
        lambda make: (sum_to_size, [make(2, 3)], {"size": (1, 3)}),
        lambda make: (sum_to_size, [make(2, 3)], {"size": ()}),
        lambda make: (sum_to_size, [make(2, 0, 3)], {"size": (1, 3)}),
    ],
)


def _broadcast(array: Array, shape: tuple[int, ...]) -> Array:
    leading = len(shape) - array.ndim
    steps = [0] * leading + [
        step if length == new else 0
        for length, new, step in zip(array.shape, shape[leading:], array.strides, strict=True)
    ]
    if array.flags.c_contiguous and array.size:
        return np.ndarray(shape, array.dtype, array, 0, steps)
    itemsize = array.itemsize
    return strided_view(array, (shape, tuple([step // itemsize for step in steps]), 0))


def _broadcast_quickly(array: Array, shape: tuple[int, ...]) -> Any:
    view = _broadcast(array, shape)
    if not (array.flags.c_contiguous and array.size):
        return None
    dtype, strides = array.dtype, view.strides
    return lambda array: np.ndarray(shape, dtype, array, 0, strides)


_EXPAND: Primitive = Primitive(
    "expand",
    "ExpandBackward0",
    _broadcast,
    ["input"],
    [lambda g: g],  # summed to the input's size by the node
    quick=_broadcast_quickly,
    view=True,
    linear=True,
    samples=[
        lambda make: (expand_to, [make(3, 1)], {"shape": (2, 3, 4)}),
        lambda make: (expand_to, [make()], {"shape": (2,)}),
        lambda make: (expand_to, [make(1)], {"shape": (0,)}),
    ],
)


def expand_to(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a view of `input` broadcast to a shape that is known to fit."""
    result: Tensor = _EXPAND.apply(input, shape=shape)
    return result


def cast(input: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """Return `input` in a NumPy dtype; of complex numbers that become real, the real part."""
    if input._array.dtype == dtype:
        return input
    result: Tensor = _TO_COPY.apply(input, dtype=np.dtype(dtype))
    return result


@declare("sum_to_size(Tensor input, int[] size)", function=False, dispatched=True)
def sum_to_size(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return the sum over the dims in which `size` is 1 or missing: broadcasting, undone.

    The gradient is g, expanded.

    Parameters
    ----------
    size
        A shape that expands to the input's.

    Raises
    ------
    RuntimeError
        If `size` does not expand to the input's shape.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    shape = size
    own = input._array.shape
    if shape == own and shape:  # a number is a sum in PyTorch, in memory of its own
        return input
    leading = len(own) - len(shape)
    if leading < 0 or any(a not in (1, b) for a, b in zip(shape, own[leading:], strict=True)):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(own)}}}.")
    return _sum_to_size(input, shape)


def _sum_to_size(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    result: Tensor = _SUM_TO_SIZE.apply(input, shape=tuple(shape))
    return result


upward.cast = cast
upward.sum_to_size = _sum_to_size


@public(function=False)
def to(
    input: Tensor,
    *arguments: Any,
    dtype: Any = None,
    device: Any = None,
    other: Tensor | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return the tensor in another dtype; the tensor itself if nothing changes.

    The gradient is g in the input's dtype; none flows through integers and bools.

    Parameters
    ----------
    input : tensor
    *arguments
        A dtype; ``"cpu"``; ``"cpu"`` and a dtype; or a tensor whose dtype to take.
    dtype : dtype, optional
    device : optional
        Only ``"cpu"``.
    other : tensor, optional
        Take the dtype of this one.
    non_blocking : bool
        Changes nothing.
    copy : bool
        Copy also if nothing changes.
    memory_format : memory_format, optional
        `contiguous_format` has the result, if it is a copy, in C order, `channels_last` in that.

    Raises
    ------
    RuntimeError
        For another device than the CPU.
    TypeError
        If an argument is none of these.

    >>> import numgrad as ng
    >>> ng.tensor([1.5, 2.5]).to(ng.int64)
    tensor([1, 2])
    """
    rest = list(arguments)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    else:
        if rest and not _is_dtype(rest[0]):
            device = rest.pop(0)
        if rest and not isinstance(rest[0], bool):
            dtype = rest.pop(0)
    if len(arguments) > 4:
        raise TypeError(
            f"to() takes from 0 to 4 positional arguments but {len(arguments)} were given"
        )
    both = other is not None and dtype is not None
    odd = isinstance(dtype, str) or not all(
        isinstance(each, bool) for each in (*rest, non_blocking, copy)
    )
    if both or len(rest) > 2 or odd:
        got = _given(arguments, dtype=dtype, non_blocking=non_blocking, copy=copy)
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({got}): of a tensor, a "
            "dtype, or a device and a dtype, only non_blocking and copy can follow, two bools"
        )
    if len(rest) > 1:  # behind non_blocking
        copy = rest[1]
    if device is not None:
        _check_device(device)
    if other is not None:
        dtype = other.dtype
    if memory_format is not None:
        check_memory_format("to", memory_format)
    if dtype is None:
        found = clone(input) if copy else input
    else:
        kind = dtypes.to_dtype(dtype)
        cast_to = None if copy else _CASTS.get(kind)  # which remembers its calls
        found = _to_dtype(input, kind, copy) if cast_to is None else cast_to(input)
    if memory_format is None or memory_format is preserve_format:
        return found
    order_in_memory(memory_format, input._array.ndim)  # refuses what can't be in the format
    shape, strides, _ = layout_of(found._array)
    if found is not input:
        if memory_format is contiguous_format:
            return laid_out(found)
        return contiguous(found, memory_format=memory_format)
    if (channels_last_of(shape, strides) or contiguous_format) is memory_format:
        return found
    return clone(found, memory_format=memory_format)


def _given(arguments: tuple[Any, ...], **named: Any) -> str:
    """Return the types of arguments, those by name that are none of the others."""
    told = [
        f"{name}={type_name(value)}"
        for name, value in named.items()
        if value is not None and value is not False and all(value is not a for a in arguments)
    ]
    return ", ".join([*map(type_name, arguments), *told])


def _is_dtype(value: Any) -> bool:
    if isinstance(value, str):
        return False
    try:
        dtypes.to_dtype(value)
    except TypeError:
        return False
    return True


def _check_device(device: Any) -> None:
    """Raise unless `device` is the CPU."""
    name = str(device)
    if name not in ("cpu", "cpu:0"):
        raise RuntimeError(f"numgrad computes on the CPU: device must be 'cpu', not {name!r}")


def _to_dtype(input: Tensor, dtype: dtypes.dtype, copy: bool = False) -> Tensor:
    target = dtype.numpy
    if input._array.dtype == target and not copy:
        return input
    if input._array.dtype.kind == "c" and target.kind not in "cb":
        warn("Casting complex values to real discards the imaginary part")
    result: Tensor = _TO_COPY.apply(input, dtype=target)
    return result


@declare(
    "type_as(Tensor input, Tensor other)",
    function=False,
    dispatched=True,
    itself="{0}._array.dtype is other._array.dtype",
)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the tensor in the dtype of `other`; see `to`.

    >>> import numgrad as ng
    >>> ng.ones(2).type_as(ng.tensor([1]))
    tensor([1, 1])
    """
    return _to_dtype(input, other.dtype)


# The methods that cast to a dtype.
_CASTS: dict[dtypes.dtype, Callable[..., Tensor]] = {}


def _enter_cast(name: str, dtype: dtypes.dtype) -> None:
    """Make the method that casts to one dtype."""

    def cast_to(input: Tensor, memory_format: Any) -> Tensor:
        if memory_format is not None:
            return to(input, dtype=dtype, memory_format=memory_format)
        return _to_dtype(input, dtype)

    cast_to.__doc__ = f"Return the tensor in {dtype!r}; see `to`."
    text = f"{name}(Tensor input, *, memory_format? memory_format=None)"
    itself = f"memory_format is None and {{0}}._array.dtype.num == {dtype.numpy.num}"
    _CASTS[dtype] = declare(text, function=False, dispatched=True, itself=itself)(cast_to)


for _name, _dtype in {
    "bool": dtypes.bool_,
    "byte": dtypes.uint8,
    "char": dtypes.int8,
    "short": dtypes.int16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "half": dtypes.float16,
    "float": dtypes.float32,
    "double": dtypes.float64,
    "cfloat": dtypes.complex64,
    "cdouble": dtypes.complex128,
}.items():
    _enter_cast(_name, _dtype)
