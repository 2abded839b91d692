"""Tensors of a given shape: zeros, ones, full, empty, their ``_like`` and ``new_`` forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.layouts import contiguous_format, order_in_memory, preserve_format
from numgrad.graph.recorder import follow_strides, place_of
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move import memory_order
from numgrad.kernels.move.strides import extent, strided_view
from numgrad.ops.arguments.factories import (
    Array,
    check_device,
    check_layout,
    check_memory_format,
    checked_number,
    default_dtype_of,
    empty_in_order,
    finish,
    read_dtype,
    read_number,
    read_shape,
)
from numgrad.ops.core.primitive import require_tensor
from numgrad.ops.core.registry import public
from numgrad.ops.creation.from_data import (
    as_tensor,
    asarray,
    from_dlpack,
    from_numpy,
    legacy_tensor,
    new_tensor,
    tensor,
)

__all__ = [
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "empty_strided",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "legacy_tensor",
    "new_empty",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
    "ones",
    "ones_like",
    "strides_like",
    "tensor",
    "zeros",
    "zeros_like",
]


def _filled(
    function: str,
    shape: tuple[int, ...],
    value: Any,
    dtype: Any,
    out: Tensor | None,
    layout: Any,
    device: Any,
    requires_grad: bool | None,
) -> Tensor:
    """Return a tensor with `value` in all places, in the default dtype unless told."""
    check_device(function, device)
    check_layout(function, layout)
    default = default_dtype_of(out, dtypes.default_dtype())
    wanted = read_dtype(function, dtype, default).numpy
    is_zero = type(value) is int and value == 0  # -0.0 is not
    array = np.zeros(shape, wanted) if is_zero else np.full(shape, value, wanted)
    return finish(function, array, requires_grad=requires_grad, out=out, dtype=dtype)


@public(method=False)
def zeros(
    *sizes: Any,
    size: Any = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Return a tensor of zeros.

    Parameters
    ----------
    *sizes : int, or one sequence of ints
        The shape; also accepted as the keyword ``size``.
    size : sequence of int, optional
        The shape.
    out : tensor, optional
        Fill this tensor instead of a new one; it takes the shape.
    dtype : dtype, optional
        The default floating point dtype unless given.
    layout, device, pin_memory : optional
        Accepted where they ask for what there is: strided memory of the CPU.
    requires_grad : bool
        Whether gradients are to be accumulated for it.

    Raises
    ------
    TypeError
        If the lengths are no integers.
    RuntimeError
        If a length is negative, or an integer or bool tensor shall require grad.

    >>> import numgrad as ng
    >>> ng.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    shape = read_shape("zeros", sizes, size, "zeros: Dimension size must be non-negative.")
    return _filled("zeros", shape, 0, dtype, out, layout, device, requires_grad)


@public(method=False)
def ones(
    *sizes: Any,
    size: Any = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Return a tensor of ones; parameters and errors are those of `zeros`.

    >>> import numgrad as ng
    >>> ng.ones((2, 3), dtype=ng.int64)
    tensor([[1, 1, 1],
            [1, 1, 1]])
    """
    shape = read_shape("ones", sizes, size)
    return _filled("ones", shape, 1, dtype, out, layout, device, requires_grad)


@public(method=False)
def empty(
    *sizes: Any,
    size: Any = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor whose elements are yet to be set; parameters are those of `zeros`.

    >>> import numgrad as ng
    >>> ng.empty(2, 0)
    tensor([], size=(2, 0))
    """
    check_device("empty", device)
    check_layout("empty", layout)
    check_memory_format("empty", memory_format)
    shape = read_shape("empty", sizes, size)
    default = default_dtype_of(out, dtypes.default_dtype())
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    array = empty_in_order(shape, read_dtype("empty", dtype, default), memory_format)
    return finish("empty", array, requires_grad=requires_grad, out=out, dtype=dtype)


def _strided(function: str, size: Any, stride: Any, dtype: dtypes.dtype) -> Array:
    """Return an array yet to be set with these strides, in as much memory as it spans."""
    shape = _sequence_size(function, size)
    steps = read_shape(function, (), stride, f"{function}(): strides may not be negative")
    if len(shape) != len(steps):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
            f"({len(steps)})"
        )
    _, count = extent((shape, steps, 0))
    return strided_view(np.empty(count, dtype.numpy), (shape, steps, 0))


@public(method=False)
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor yet to be set, of a size and with strides, in elements.

    >>> import numgrad as ng
    >>> ng.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    check_device("empty_strided", device)
    check_layout("empty_strided", layout)
    wanted = read_dtype("empty_strided", dtype, dtypes.default_dtype())
    array = _strided("empty_strided", size, stride, wanted)
    return finish("empty_strided", array, requires_grad=requires_grad)


@public(function=False)
def new_empty_strided(
    self: Tensor,
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return what `empty_strided` does, in the dtype of this tensor unless told.

    >>> import numgrad as ng
    >>> ng.tensor([1, 2]).new_empty_strided((2,), (3,)).dtype
    torch.int64
    """
    check_device("new_empty_strided", device)
    check_layout("new_empty_strided", layout)
    wanted = read_dtype("new_empty_strided", dtype, self.dtype)
    array = _strided("new_empty_strided", size, stride, wanted)
    return finish("new_empty_strided", array, requires_grad=requires_grad)


@public(method=False)
def full(
    size: Any,
    fill_value: Any,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Return a tensor with the same number everywhere.

    Parameters
    ----------
    size : sequence of int
        The shape.
    fill_value : number, or tensor without dimensions
        It decides the dtype unless that is given: bools give bool, ints int64, floats and complex
        numbers the default dtypes.

    Raises
    ------
    RuntimeError
        If the number is out of the range of the dtype.

    >>> import numgrad as ng
    >>> ng.full((2,), 7), ng.full((2,), 7.0)
    (tensor([7, 7]), tensor([7., 7.]))
    """
    shape = _sequence_size("full", size)
    value = read_number("full", "fill_value", 2, fill_value)
    wanted = read_dtype("full", dtype, default_dtype_of(out, dtypes.scalar_dtype(value)))
    value = checked_number(value, wanted)
    return _filled("full", shape, value, wanted, out, layout, device, requires_grad)


def _sequence_size(function: str, size: Any) -> tuple[int, ...]:
    """Return a shape that has to be given as a sequence."""
    if isinstance(size, int):
        raise TypeError(
            f"{function}(): argument 'size' (position 1) must be tuple of ints, not "
            f"{type(size).__name__}"
        )
    return read_shape(function, (), size)


def strides_like(array: Array, dtype: dtypes.dtype, memory_format: Any = None) -> Array:
    """Return an array yet to be set, laid out in memory as `array` is unless told otherwise."""
    if order_in_memory(memory_format, array.ndim) is not None:
        return empty_in_order(array.shape, dtype, memory_format)
    if memory_format is contiguous_format:
        return np.empty(array.shape, dtype.numpy)
    return memory_order.empty_like(place_of(array), dtype.numpy)


def _like(
    function: str,
    input: Any,
    value: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: bool | None,
    memory_format: Any,
) -> Tensor:
    """Return a tensor shaped like `input` with `value` in all places, or yet to be set if None."""
    source = require_tensor(input, function, "input", 1)
    check_device(function, device)
    check_layout(function, layout)
    check_memory_format(function, memory_format)
    wanted = read_dtype(function, dtype, source.dtype)
    array = strides_like(source._array, wanted, memory_format)
    if value is not None:
        array[...] = checked_number(value, wanted)
    made = finish(function, array, requires_grad=requires_grad)
    if memory_format is not contiguous_format:
        follow_strides(source._array, made._array)
    return made


@public(method=False)
def zeros_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
    memory_format: Any = None,
) -> Tensor:
    """Return zeros in the shape, dtype and memory order of a tensor.

    Parameters
    ----------
    input : tensor
    dtype : dtype, optional
        Another dtype.
    layout, device, pin_memory, memory_format : optional
        Accepted where they ask for what there is: strided memory of the CPU, in the order of the
        tensor or contiguous.
    requires_grad : bool
        Whether gradients are to be accumulated for the result.

    >>> import numgrad as ng
    >>> ng.zeros_like(ng.tensor([1, 2, 3]))
    tensor([0, 0, 0])
    """
    return _like("zeros_like", input, 0, dtype, layout, device, requires_grad, memory_format)


@public(method=False)
def ones_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
    memory_format: Any = None,
) -> Tensor:
    """Return ones in the shape, dtype and memory order of a tensor; see `zeros_like`.

    >>> import numgrad as ng
    >>> ng.ones_like(ng.tensor([1, 2, 3]), dtype=ng.float32)
    tensor([1., 1., 1.])
    """
    return _like("ones_like", input, 1, dtype, layout, device, requires_grad, memory_format)


@public(method=False)
def empty_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor to be filled, in the shape, dtype and memory order of another.

    Parameters are those of `zeros_like`.

    >>> import numgrad as ng
    >>> ng.empty_like(ng.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    return _like("empty_like", input, None, dtype, layout, device, requires_grad, memory_format)


@public(method=False)
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a number everywhere in the shape, dtype and memory order of a tensor.

    Parameters are those of `zeros_like`, and `fill_value`, which becomes the dtype of `input`.

    Raises
    ------
    RuntimeError
        If the number is out of the range of the dtype.

    >>> import numgrad as ng
    >>> ng.full_like(ng.ones(2), 7)
    tensor([7., 7.])
    """
    require_tensor(input, "full_like", "input", 1)
    value = read_number("full_like", "fill_value", 2, fill_value)
    return _like("full_like", input, value, dtype, layout, device, requires_grad, memory_format)


def _new(
    function: str,
    source: Tensor,
    shape: tuple[int, ...],
    value: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: bool | None,
) -> Tensor:
    wanted = read_dtype(function, dtype, source.dtype)
    number = checked_number(value, wanted)
    return _filled(function, shape, number, wanted, None, layout, device, requires_grad)


@public(function=False)
def new_zeros(
    self: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Return zeros of another shape in the dtype of this tensor; parameters as of `zeros`.

    >>> import numgrad as ng
    >>> ng.tensor([1, 2]).new_zeros(3)
    tensor([0, 0, 0])
    """
    shape = read_shape("new_zeros", sizes, size)
    return _new("new_zeros", self, shape, 0, dtype, layout, device, requires_grad)


@public(function=False)
def new_ones(
    self: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Return ones of another shape in the dtype of this tensor; parameters as of `zeros`.

    >>> import numgrad as ng
    >>> ng.tensor([1, 2]).new_ones(3)
    tensor([1, 1, 1])
    """
    shape = read_shape("new_ones", sizes, size)
    return _new("new_ones", self, shape, 1, dtype, layout, device, requires_grad)


@public(function=False)
def new_empty(
    self: Tensor,
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Return a tensor to be filled in the dtype of this one; parameters as of `zeros`.

    >>> import numgrad as ng
    >>> ng.tensor([1, 2]).new_empty(0)
    tensor([], dtype=torch.int64)
    """
    check_device("new_empty", device)
    check_layout("new_empty", layout)
    shape = read_shape("new_empty", sizes, size)
    array = np.empty(shape, read_dtype("new_empty", dtype, self.dtype).numpy)
    return finish("new_empty", array, requires_grad=requires_grad)


@public(function=False)
def new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """Return a number everywhere, in the dtype of this tensor; parameters as of `full`.

    >>> import numgrad as ng
    >>> ng.tensor([1, 2]).new_full((3,), 7)
    tensor([7, 7, 7])
    """
    shape = _sequence_size("new_full", size)
    value = read_number("new_full", "fill_value", 2, fill_value)
    return _new("new_full", self, shape, value, dtype, layout, device, requires_grad)
