"""Reshape: view, reshape, flatten and relatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from operator import methodcaller
from typing import Any

import numpy as np

from numgrad.graph.recorder import Traced, note_alternative, place_of, reshaped
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.strides import layout_of, strided_view, view_strides
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.movement.copies import clone_contiguous, contiguous
from numgrad.ops.movement.dtype_views import view_dtype
from numgrad.ops.signatures.declared import declare

__all__ = ["flatten", "reshape", "reshaping", "unsafe_view", "view"]

Array = np.ndarray[Any, Any]


def _reshape(array: Array, shape: tuple[int, ...]) -> Array:
    view = array.reshape(shape)
    strides = _strides_beside(view, array)
    return view if strides is None else strided_view(array, (shape, strides, 0))


def _reshape_quickly(array: Array, shape: tuple[int, ...]) -> Any:
    strides = _strides_beside(array.reshape(shape), array)
    if strides is None:
        return methodcaller("reshape", shape)
    return partial(strided_view, layout=(shape, strides, 0))


def _strides_beside(view: Array, array: Array) -> tuple[int, ...] | None:
    """Return the strides that a view of an array has in PyTorch, if NumPy gave it others.

    That is possible for dims of length 1, and without elements.
    """
    if type(view) is not np.ndarray or not (1 in view.shape or 0 in view.shape):
        return None
    strides = view_strides(array, view.shape)
    return None if strides == layout_of(view)[1] else strides


def _memory_of_reshaped(input: Array, shape: tuple[int, ...]) -> Array:
    view = reshaped(input, shape)
    return np.empty(shape, input.dtype) if view is None else view


def reshaping(
    name: str, node: str, samples: Sequence[Callable[..., Any]], **options: Any
) -> Primitive:
    """Declare a primitive that gives the elements in another shape; a view if not said otherwise.

    There are several because PyTorch has nodes of different names for the same.
    """
    return Primitive(
        name,
        node,
        _reshape,
        ["input"],
        [lambda g, input_shape: reshape(g, input_shape)],
        quick=_reshape_quickly,
        linear=True,
        samples=samples,
        **{"view": True, **options},
    )


_VIEW = reshaping(
    "view",
    "ViewBackward0",
    [
        lambda make: (reshape, [make(2, 3)], {"shape": (3, 2)}),
        lambda make: (reshape, [make()], {"shape": (1, 1)}),
        lambda make: (reshape, [make(0, 2)], {"shape": (3, 0)}),
    ],
)
# A view that `reshape` made of what does not lie row by row.
_RESHAPE_ALIAS = reshaping(
    "alias_in_shape",
    "ReshapeAliasBackward0",
    [
        lambda make: (lambda x: reshape(x.t(), (4, 1, 3)), [make(3, 4)], {}),
        lambda make: (lambda x: reshape(x[:, :1], (3,)), [make(3, 4)], {}),
    ],
)
# What `reshape` puts behind a copy: not a view, because nobody else can see the copy.
_UNSAFE_VIEW = reshaping(
    "unsafe_view",
    "UnsafeViewBackward0",
    [
        lambda make: (lambda x: reshape(x.t(), (6,)), [make(2, 3)], {}),
        lambda make: (lambda x: reshape(x.t(), (2, 2, 3)), [make(3, 4)], {}),
    ],
    view=False,
    lies=_memory_of_reshaped,
    gaps=True,
)


def unsafe_view(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor that nobody else sees in another shape, not as a view."""
    result: Tensor = _UNSAFE_VIEW.apply(input, shape=shape)
    return result


def _infer(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return `shape` with its -1 replaced, or raise if it does not hold `size` elements."""
    known, inferred = 1, -1
    for position, length in enumerate(shape):
        if length == -1:
            if inferred >= 0:
                raise RuntimeError("only one dimension can be inferred")
            inferred = position
        elif length < 0:
            raise RuntimeError(
                f"invalid shape dimension {length} at index {position} of shape {list(shape)}"
            )
        else:
            known *= length
    if inferred < 0:
        if known != size:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
        return shape
    if known == 0 and size == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
            "dimension size -1 can be any value and is ambiguous"
        )
    if known == 0 or size % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return (*shape[:inferred], size // known, *shape[inferred + 1 :])


def _can_view(array: Any, shape: tuple[int, ...]) -> bool:
    """Return whether an array has that shape without a copy."""
    if type(array) is Traced:
        array = array.place
    if array.flags.c_contiguous:
        return True
    # A copy lies in new memory, so its bounds cannot overlap the array's.
    return bool(np.may_share_memory(array, array.reshape(shape)))


def _can_always_view(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether an array has that shape without a copy however it lies in memory."""
    if 0 in own:
        return True
    # With these strides no two dims are as good as one.
    place = np.ndarray(own, np.uint8, np.empty(sum(own) + 1, np.uint8), 0, [1] * len(own))
    return reshaped(place, shape) is not None


@declare(
    "view(Tensor input, dtype dtype)",
    "view(Tensor input, int[] size)",
    function=False,
    dispatched=True,
)
def view(input: Tensor, size: tuple[int, ...] | None, dtype: Any) -> Tensor:
    """Return the elements in another shape, or the memory as another dtype, as a view of it.

    The gradient is g in the input's shape. None flows through a view of another dtype.

    Parameters
    ----------
    input : tensor
    size : ints
        One of them may be -1: what is left.
    dtype : dtype, optional
        Alone, in place of sizes: what to read the bits as. Elements of another size change the
        length of the last dim, which has to lie in one stretch.

    Raises
    ------
    RuntimeError
        If the number of elements differs, or the shape needs a copy; or if the bits can't be read
        as elements of that dtype.

    >>> import numgrad as ng
    >>> ng.arange(4.0).view(2, -1)
    tensor([[0., 1.],
            [2., 3.]])
    >>> ng.tensor([1.0, -0.0]).view(ng.int32)
    tensor([ 1065353216, -2147483648], dtype=torch.int32)
    """
    array: Any = input._array
    if size is None:
        return view_dtype(input, dtype)
    shape = _infer(size, array.size)
    if type(array) is Traced and not _can_always_view(array.shape, shape):
        array.note_strides()  # whether it is an error follows from them
    if not _can_view(array, shape):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    result: Tensor = _VIEW.apply(input, shape=shape)
    return result


@declare("view_as(Tensor input, Tensor other)", function=False, dispatched=True)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input.view(other.size())``; see `view`.

    >>> import numgrad as ng
    >>> ng.ones(4).view_as(ng.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return view(input, other._array.shape)


@declare("reshape(Tensor input, int[] shape)", dispatched=True)
def reshape(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the elements in another shape: a view where that is possible, else a copy.

    The gradient is g in the input's shape.

    Parameters
    ----------
    shape
        One of them may be -1: what is left.

    Raises
    ------
    RuntimeError
        If the number of elements differs.

    >>> import numgrad as ng
    >>> ng.reshape(ng.arange(4.0), (2, 2))
    tensor([[0., 1.],
            [2., 3.]])
    """
    array: Any = input._array
    target = _infer(shape, array.size)
    result: Tensor
    if _can_view(array, target):
        alike = _VIEW if place_of(array).flags.c_contiguous else _RESHAPE_ALIAS
        result = alike.apply(input, shape=target)
    else:
        result = _UNSAFE_VIEW.apply(clone_contiguous(input), shape=target)
    if type(array) is Traced and not _can_always_view(array.shape, target):
        note_alternative(array, result._array)
    return result


@declare("reshape_as(Tensor input, Tensor other)", function=False, dispatched=True)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input.reshape(other.size())``; see `reshape`.

    >>> import numgrad as ng
    >>> ng.ones(4).reshape_as(ng.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return reshape(input, other._array.shape)


@declare("flatten(Tensor input, int start_dim=0, int end_dim=-1)", dispatched=True)
def flatten(input: Tensor, start_dim: int, end_dim: int) -> Tensor:
    """Return the tensor with the dims from `start_dim` to `end_dim` made one.

    The tensor itself if that changes nothing, a view where possible, else a copy.
    The gradient is g in the input's shape.

    Parameters
    ----------
    start_dim, end_dim
        The first and the last of the dims that become one.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If `start_dim` comes after `end_dim`.

    >>> import numgrad as ng
    >>> ng.ones(2, 3, 4).flatten(1).shape
    torch.Size([2, 12])
    """
    shape = input._array.shape
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape(input, (1,))
    if start == end:
        return input
    return reshape(input, (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


@declare("unflatten(Tensor input, int dim, int[] sizes)", dispatched=True)
def unflatten(input: Tensor, dim: int, sizes: tuple[int, ...]) -> Tensor:
    """Return the tensor with one dim split into several, as a view.

    The gradient is g in the input's shape.

    Parameters
    ----------
    input : tensor
    dim : int
        The dim to split.
    sizes : ints
        What its size is the product of; one of them may be -1.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If the product differs.

    >>> import numgrad as ng
    >>> ng.ones(2, 12).unflatten(1, (3, -1)).shape
    torch.Size([2, 3, 4])
    """
    shape = input._array.shape
    position = wrap_dim(dim, len(shape))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    whole = shape[position] if shape else 1
    if sizes.count(-1) > 1:
        raise RuntimeError("unflatten got an unexpected error:\nonly one dimension can be inferred")
    known = prod(length for length in sizes if length != -1)
    if -1 in sizes:
        fits = known != 0 and whole % known == 0
    else:
        fits = known == whole
    if not fits:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim "
            f"{position} ({whole}) in the input tensor"
        )
    inferred = tuple(whole // known if length == -1 else length for length in sizes)
    return view(input, (*shape[:position], *inferred, *shape[position + 1 :]))


@declare("ravel(Tensor input)", dispatched=True)
def ravel(input: Tensor) -> Tensor:
    """Return the elements in one dimension: a view where that is possible, else a copy.

    The gradient is g in the input's shape.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).ravel().shape
    torch.Size([6])
    """
    result: Tensor = _VIEW.apply(contiguous(input), shape=(input._array.size,))
    return result
