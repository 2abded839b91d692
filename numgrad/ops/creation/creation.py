"""Tensors of a given shape: zeros, ones, full, empty, their ``_like`` and ``new_`` forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.layouts import contiguous_format, order_in_memory, preserve_format
from numgrad.graph.recorder import follow_strides, place_of
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.kernels.move import memory_order
from numgrad.kernels.move.strides import extent, strided_view
from numgrad.ops.arguments.factories import (
    LIKE_OPTIONS,
    OPTIONS,
    Array,
    checked_number,
    empty_in_order,
    filled,
    finish,
    numpy_dtype,
)
from numgrad.ops.creation.from_data import (
    as_tensor,
    asarray,
    from_dlpack,
    from_numpy,
    legacy_tensor,
    new_tensor,
    tensor,
)
from numgrad.ops.signatures.declared import declare

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

Size = tuple[int, ...]
_STRIDES = "{}(): strides may not be negative"


# Calls are not remembered: to look for zeros and copy them takes a tenth longer than to make them.
# Of `ones` it takes 0.87 of the time, of `eye` 0.5 and of `linspace` 0.2. Of `full` it takes 0.6,
# but twice the time where each call has another number.
@declare(
    f"zeros(size size, *, Tensor? out=None, {OPTIONS})",
    method=False,
    finish=finish,
    size="zeros: Dimension size must be non-negative.",
)
def zeros(size: Size, dtype: Any) -> Array:
    """Return a tensor of zeros.

    Raises
    ------
    RuntimeError
        If a length is negative, or an integer or bool tensor shall require grad.

    >>> import numgrad as ng
    >>> ng.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return np.zeros(size, numpy_dtype(dtype))


@declare(
    f"ones(size size, *, Tensor? out=None, {OPTIONS})", method=False, finish=finish, dispatched=True
)
def ones(size: Size, dtype: Any) -> Array:
    """Return a tensor of ones.

    Raises
    ------
    RuntimeError
        If a length is negative, or an integer or bool tensor shall require grad.

    >>> import numgrad as ng
    >>> ng.ones((2, 3), dtype=ng.int64)
    tensor([[1, 1, 1],
            [1, 1, 1]])
    """
    return filled(size, 1, numpy_dtype(dtype))


@declare(
    f"empty(size size, *, Tensor? out=None, {OPTIONS}, memory_format? memory_format=None)",
    method=False,
    finish=finish,
)
def empty(size: Size, dtype: Any, memory_format: Any) -> Array:
    """Return a tensor whose elements are yet to be set.

    >>> import numgrad as ng
    >>> ng.empty(2, 0)
    tensor([], size=(2, 0))
    """
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    return empty_in_order(size, dtype or dtypes.default_dtype(), memory_format)


def _strided(size: Size, stride: Size, dtype: dtypes.dtype) -> Array:
    """Return an array yet to be set with these strides, in as much memory as it spans."""
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
            f"({len(stride)})"
        )
    _, count = extent((size, stride, 0))
    return strided_view(np.empty(count, dtype.numpy), (size, stride, 0))


@declare(
    f"empty_strided(size size, size stride, *, {OPTIONS})",
    method=False,
    finish=finish,
    stride=_STRIDES.format("empty_strided"),
)
def empty_strided(size: Size, stride: Size, dtype: Any) -> Array:
    """Return a tensor yet to be set, of a size and with strides, in elements.

    >>> import numgrad as ng
    >>> ng.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return _strided(size, stride, dtype or dtypes.default_dtype())


@declare(
    f"new_empty_strided(Tensor self, size size, size stride, *, {OPTIONS})",
    function=False,
    finish=finish,
    stride=_STRIDES.format("new_empty_strided"),
)
def new_empty_strided(self: Tensor, size: Size, stride: Size, dtype: Any) -> Array:
    """Return what `empty_strided` does, in the dtype of this tensor unless told.

    >>> import numgrad as ng
    >>> ng.tensor([1, 2]).new_empty_strided((2,), (3,)).dtype
    torch.int64
    """
    return _strided(size, stride, dtype or self.dtype)


@declare(
    f"full(size size, number fill_value, *, Tensor? out=None, {OPTIONS})",
    method=False,
    finish=finish,
)
def full(size: Size, fill_value: Any, dtype: Any) -> Array:
    """Return a tensor with the same number everywhere.

    Parameters
    ----------
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
    wanted = dtype or dtypes.scalar_dtype(fill_value)
    return filled(size, checked_number(fill_value, wanted), wanted.numpy)


def strides_like(array: Array, dtype: dtypes.dtype, memory_format: Any = None) -> Array:
    """Return an array yet to be set, laid out in memory as `array` is unless told otherwise."""
    if order_in_memory(memory_format, array.ndim) is not None:
        return empty_in_order(array.shape, dtype, memory_format)
    if memory_format is contiguous_format:
        return np.empty(array.shape, dtype.numpy)
    return memory_order.empty_like(place_of(array), dtype.numpy)


def _like(
    function: str, input: Tensor, value: Any, dtype: Any, requires_grad: Any, memory_format: Any
) -> Tensor:
    """Return a tensor shaped like `input` with `value` in all places, or yet to be set if None.

    The value is one that the dtype has.
    """
    lies = input._array
    is_plain = type(lies) is np.ndarray and lies.flags.c_contiguous and 1 not in lies.shape
    if memory_format is None and is_plain:
        array = np.empty(lies.shape, lies.dtype if dtype is None else dtype.numpy)
    else:
        array = strides_like(lies, dtype or input.dtype, memory_format)
    if value is not None:
        array.fill(value)
    made = finish(function, array, requires_grad=requires_grad)
    if memory_format is not contiguous_format:
        follow_strides(lies, made._array)
    return made


@declare(f"zeros_like(Tensor input, *, {LIKE_OPTIONS})", method=False, dispatched=True)
def zeros_like(input: Tensor, dtype: Any, requires_grad: Any, memory_format: Any) -> Tensor:
    """Return zeros in the shape, dtype and memory order of a tensor.

    >>> import numgrad as ng
    >>> ng.zeros_like(ng.tensor([1, 2, 3]))
    tensor([0, 0, 0])
    """
    return _like("zeros_like", input, 0, dtype, requires_grad, memory_format)


upward.zeros_like = zeros_like


@declare(f"ones_like(Tensor input, *, {LIKE_OPTIONS})", method=False, dispatched=True)
def ones_like(input: Tensor, dtype: Any, requires_grad: Any, memory_format: Any) -> Tensor:
    """Return ones in the shape, dtype and memory order of a tensor.

    >>> import numgrad as ng
    >>> ng.ones_like(ng.tensor([1, 2, 3]), dtype=ng.float32)
    tensor([1., 1., 1.])
    """
    return _like("ones_like", input, 1, dtype, requires_grad, memory_format)


@declare(f"empty_like(Tensor input, *, {LIKE_OPTIONS})", method=False, dispatched=True)
def empty_like(input: Tensor, dtype: Any, requires_grad: Any, memory_format: Any) -> Tensor:
    """Return a tensor to be filled, in the shape, dtype and memory order of another.

    >>> import numgrad as ng
    >>> ng.empty_like(ng.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    return _like("empty_like", input, None, dtype, requires_grad, memory_format)


@declare(
    f"full_like(Tensor input, number fill_value, *, {LIKE_OPTIONS})", method=False, dispatched=True
)
def full_like(
    input: Tensor, fill_value: Any, dtype: Any, requires_grad: Any, memory_format: Any
) -> Tensor:
    """Return a number everywhere in the shape, dtype and memory order of a tensor.

    Parameters
    ----------
    fill_value
        It becomes the dtype of `input`, unless another one is given.

    Raises
    ------
    RuntimeError
        If the number is out of the range of the dtype.

    >>> import numgrad as ng
    >>> ng.full_like(ng.ones(2), 7)
    tensor([7., 7.])
    """
    value = checked_number(fill_value, dtype or input.dtype)
    return _like("full_like", input, value, dtype, requires_grad, memory_format)


@declare(
    f"new_zeros(Tensor self, size size, *, {OPTIONS})",
    function=False,
    finish=finish,
    dispatched=True,
)
def new_zeros(self: Tensor, size: Size, dtype: Any) -> Array:
    """Return zeros of another shape, in the dtype of this tensor unless told.

    >>> import numgrad as ng
    >>> ng.tensor([1, 2]).new_zeros(3)
    tensor([0, 0, 0])
    """
    return np.zeros(size, (dtype or self.dtype).numpy)


@declare(
    f"new_ones(Tensor self, size size, *, {OPTIONS})",
    function=False,
    finish=finish,
    dispatched=True,
)
def new_ones(self: Tensor, size: Size, dtype: Any) -> Array:
    """Return ones of another shape, in the dtype of this tensor unless told.

    >>> import numgrad as ng
    >>> ng.tensor([1, 2]).new_ones(3)
    tensor([1, 1, 1])
    """
    return filled(size, 1, (dtype or self.dtype).numpy)


@declare(
    f"new_empty(Tensor self, size size, *, {OPTIONS})",
    function=False,
    finish=finish,
    dispatched=True,
)
def new_empty(self: Tensor, size: Size, dtype: Any) -> Array:
    """Return a tensor to be filled, in the dtype of this one unless told.

    >>> import numgrad as ng
    >>> ng.tensor([1, 2]).new_empty(0)
    tensor([], dtype=torch.int64)
    """
    return np.empty(size, (dtype or self.dtype).numpy)


@declare(
    f"new_full(Tensor self, size size, number fill_value, *, {OPTIONS})",
    function=False,
    finish=finish,
    dispatched=True,
)
def new_full(self: Tensor, size: Size, fill_value: Any, dtype: Any) -> Array:
    """Return a number everywhere, in the dtype of this tensor unless told.

    >>> import numgrad as ng
    >>> ng.tensor([1, 2]).new_full((3,), 7)
    tensor([7, 7, 7])
    """
    wanted = dtype or self.dtype
    return filled(size, checked_number(fill_value, wanted), wanted.numpy)
