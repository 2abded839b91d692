"""Joining tensors: cat, stack and their relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.layouts import channels_last_of
from numgrad.base.tuning import NESTED_PARTS, RECYCLED_BYTES
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import NO_EDGE, Tensor
from numgrad.ops.arguments.dims import require_tensors, wrap_dim
from numgrad.ops.arguments.factories import empty_in_order
from numgrad.ops.core.out_argument import refuse_gradients, write
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.core.registry import public
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.slicing import select_view, slice_of
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.signatures.argument_parser import bind
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.signature import parse
from numgrad.runtime.memory import empty

__all__ = ["cat", "stack"]

Array = np.ndarray[Any, Any]


def common_format(arrays: Sequence[Array]) -> Any:
    """Return the format with channels last that all arrays are in, None if there is none."""
    if arrays[0].ndim < 4:
        return None
    formats = {channels_last_of(array.shape, array.strides) for array in arrays}
    return formats.pop() if len(formats) == 1 else None


def _cat(*arrays: Array, dim: int, dtype: np.dtype[Any]) -> Array:
    """Join arrays; those of shape (0,) count for nothing, whatever the others' shape."""
    parts = [array for array in arrays if array.shape != (0,)] or list(arrays[:1])
    result = _memory_of_joined(arrays, dim, dtype)
    if result is None:
        result = empty(_joined_shape(parts, dim), dtype)
    np.concatenate(parts, axis=dim, out=result, casting="unsafe")
    return result


def _join_quickly(arrays: Sequence[Array], dim: int, dtype: np.dtype[Any], *, new: bool) -> Any:
    """Return what joins arrays of that dtype, of few dims, along one of them or a `new` one."""
    own = arrays[0].shape
    if len(own) > 2 or any(array.dtype != dtype or array.shape == (0,) for array in arrays):
        return None
    size = sum([array.nbytes for array in arrays])
    make = np.empty if size < RECYCLED_BYTES else empty
    if not new:
        shape = _joined_shape(arrays, dim)
        if len(own) == 1 and make is not empty:
            return lambda *arrays: np.concatenate(arrays)
        return lambda *arrays: np.concatenate(arrays, dim, make(shape, dtype))
    if not own and make is not empty:
        return lambda *arrays: np.array([array.item() for array in arrays], dtype)
    if len(arrays) <= NESTED_PARTS and make is not empty:
        if not dim:
            return lambda *arrays: np.array(arrays, dtype)
        if len(own) == 1:
            return lambda *arrays: np.array(arrays, dtype).transpose().copy()
    whole = (*own[:dim], len(arrays), *own[dim:])
    if dim == len(own):
        return lambda *arrays: np.concatenate(
            [array[..., None] for array in arrays], dim, make(whole, dtype)
        )
    shape = _joined_shape(arrays, dim)
    return lambda *arrays: np.concatenate(arrays, dim, make(shape, dtype)).reshape(whole)


def _joined_shape(parts: Sequence[Array], dim: int) -> tuple[int, ...]:
    shape = list(parts[0].shape)
    shape[dim] = sum([part.shape[dim] for part in parts])
    return tuple(shape)


def _memory_of_joined(inputs: Sequence[Array], dim: int, dtype: np.dtype[Any]) -> Any:
    """Return memory for what is joined, if that may have channels last."""
    if inputs[0].ndim < 4:
        return None
    shape = _joined_shape([array for array in inputs if array.shape != (0,)], dim)
    memory_format = common_format(inputs)
    if memory_format is None:
        return empty(shape, dtype)
    return empty_in_order(shape, dtypes.of_numpy(dtype), memory_format)


def _cat_rule(g: Tensor, position: int, shapes: Sequence[tuple[int, ...]], dim: int) -> Tensor:
    shape = shapes[position]
    if shape == (0,):
        return reshape(slice_of(g, dim, 0, 0, 1), (-1,)) if g._array.ndim == 1 else _nothing(g)
    start = sum([each[dim] for each in shapes[:position] if each != (0,)])
    return slice_of(g, dim, start, start + shape[dim], 1)


def _nothing(g: Tensor) -> Tensor:
    """Return the gradient of a part of shape (0,), cut out of g so that it stays in the graph."""
    return slice_of(reshape(g, (g._array.size,)), 0, 0, 0, 1)


_CAT: Primitive = Primitive(
    "cat",
    "CatBackward0",
    _cat,
    ["*tensors"],
    [_cat_rule],
    quick=lambda *arrays, dim, dtype: _join_quickly(arrays, dim, dtype, new=False),
    linear=True,
    lies=_memory_of_joined,
    samples=[
        lambda make: (lambda *x: cat(x, 1), [make(2, 3), make(2, 1)], {}),
        lambda make: (lambda *x: cat(x), [make(2), make(0), make(1)], {}),
        lambda make: (lambda *x: cat(x), [make(2, 3), make(0, 3)], {}),
        lambda make: (lambda *x: cat(x, 1), [make(2, 3), make(0), make(2, 1)], {}),
    ],
)


def _stack(*arrays: Array, dim: int, dtype: np.dtype[Any]) -> Array:
    if dim == arrays[0].ndim:
        return _cat(*[array[..., None] for array in arrays], dim=dim, dtype=dtype)
    return _in_two(_cat(*arrays, dim=dim, dtype=dtype), arrays, dim)


def _in_two(joined: Array, arrays: Sequence[Array], dim: int) -> Array:
    """Return what was joined with the dim in two: a view."""
    shape = arrays[0].shape
    return joined.reshape(*shape[:dim], len(arrays), *shape[dim:])


def _memory_of_stacked(inputs: Sequence[Array], dim: int, dtype: np.dtype[Any]) -> Any:
    if dim == inputs[0].ndim:
        return _memory_of_joined([array[..., None] for array in inputs], dim, dtype)
    joined = _memory_of_joined(inputs, dim, dtype)
    return None if joined is None else _in_two(joined, inputs, dim)


_STACK: Primitive = Primitive(
    "stack",
    "StackBackward0",
    _stack,
    ["*tensors"],
    [lambda g, position, dim: select_view(g, dim, position)],
    quick=lambda *arrays, dim, dtype: _join_quickly(arrays, dim, dtype, new=True),
    linear=True,
    lies=_memory_of_stacked,
    samples=[
        lambda make: (lambda *x: stack(x, 1), [make(2, 3), make(2, 3)], {}),
        lambda make: (lambda *x: stack(x), [make(), make()], {}),
        lambda make: (lambda *x: stack(x), [make(0)], {}),
    ],
)


def _common_dtype(tensors: Sequence[Tensor]) -> np.dtype[Any]:
    first = tensors[0]._array.dtype
    if all(tensor._array.dtype is first for tensor in tensors):
        return first
    return result_dtype(tensors).numpy


def _write_out(result: Tensor, out: Tensor | None) -> Tensor:
    """Return a result, or copy it into `out`."""
    if out is None:
        return result
    flow = modes.grad and (result._edge is not NO_EDGE or out._edge is not NO_EDGE)
    refuse_gradients("cat", flow)
    if not dtypes.can_cast(result.dtype, out.dtype):
        raise TypeError(
            "torch.cat(): input types can't be cast to the desired output type "
            f"{out.dtype.scalar_name}"
        )
    return write(result._array, out)


@declare(
    "cat(Tensor[] tensors, int dim=0, *, Tensor? out=None)",
    method=False,
    aliases=("concat", "concatenate"),
    dispatched=True,
    apart=("tensors",),
)
def cat(tensors: tuple[Tensor, ...], dim: int, out: Tensor | None) -> Tensor:
    """Return tensors joined along a dim that they have.

    The gradient of each is its part of g.

    Parameters
    ----------
    tensors
        Of the same shape but for `dim`; they promote to one dtype. Those of shape ``(0,)`` are
        passed over.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If the shapes differ elsewhere, or a tensor has no dims.
    ValueError
        If there are no tensors.

    >>> import numgrad as ng
    >>> ng.cat([ng.ones(2), ng.zeros(1)])
    tensor([1., 1., 0.])
    """
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for position, tensor in enumerate(tensors):
        if not tensor._array.ndim:
            raise RuntimeError(
                f"zero-dimensional tensor (at position {position}) cannot be concatenated"
            )
    parts = [
        (position, tensor._array.shape)
        for position, tensor in enumerate(tensors)
        if tensor._array.shape != (0,)
    ]
    first = parts[0][1] if parts else (0,)
    at = wrap_dim(dim, len(first))
    for position, shape in parts[1:]:
        if len(shape) != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}"
            )
        for axis, (expected, length) in enumerate(zip(first, shape, strict=True)):
            if axis != at and length != expected:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {at}. Expected size "
                    f"{expected} but got size {length} for tensor number {position} in the list."
                )
    result: Tensor = _CAT.apply(*tensors, dim=at, dtype=_common_dtype(tensors))
    return _write_out(result, out)


@declare(
    "stack(Tensor[] tensors, int dim=0, *, Tensor? out=None)",
    method=False,
    dispatched=True,
    apart=("tensors",),
)
def stack(tensors: tuple[Tensor, ...], dim: int, out: Tensor | None) -> Tensor:
    """Return tensors of one shape joined along a new dim.

    The gradient of each is its part of g.

    Parameters
    ----------
    tensors
        They promote to one dtype.
    dim
        Where the new dim goes.

    Raises
    ------
    IndexError
        If there is no such place.
    RuntimeError
        If the shapes differ, or there are no tensors.

    >>> import numgrad as ng
    >>> ng.stack([ng.ones(2), ng.zeros(2)], 1)
    tensor([[1., 0.],
            [1., 0.]])
    """
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0]._array.shape
    at = wrap_dim(dim, len(first) + 1)
    for position, tensor in enumerate(tensors):
        if tensor._array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(tensor.shape)} at entry {position}"
            )
    result: Tensor = _STACK.apply(*tensors, dim=at, dtype=_common_dtype(tensors))
    return _write_out(result, out)


def _all(tensors: tuple[Tensor, ...], function: str, change: Any) -> list[Tensor]:
    """Return tensors after `change`, or raise if there are none."""
    if not tensors:
        raise RuntimeError(f"{function} expects a non-empty TensorList")
    return [change(tensor) for tensor in tensors]


def _at_least(tensors: tuple[Any, ...], function: Any) -> Any:
    """Return what a function of one tensor gives for a tensor, or for each of several."""
    if len(tensors) == 1:
        if isinstance(tensors[0], Tensor):
            return function(tensors[0])
        name = function.__name__[1:]
        ways = (parse(f"{name}(Tensor input)"), parse(f"{name}(Tensor[] tensors)"))
        (tensors,) = bind(ways, tensors, {})[1].values()
    return tuple(function(each) for each in require_tensors(tensors, function.__name__[1:]))


def _atleast_1d(input: Tensor) -> Tensor:
    return input if input._array.ndim else reshape(input, (1,))


def _atleast_2d(input: Tensor) -> Tensor:
    if input._array.ndim == 0:
        return reshape(input, (1, 1))
    return input if input._array.ndim > 1 else unsqueeze(input, 0)


def _atleast_3d(input: Tensor) -> Tensor:
    if input._array.ndim == 0:
        return reshape(input, (1, 1, 1))
    if input._array.ndim == 1:
        return unsqueeze(unsqueeze(input, 0), -1)
    return input if input._array.ndim > 2 else unsqueeze(input, -1)


@public(method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Return each tensor, one without dims as a view of shape (1,).

    >>> import numgrad as ng
    >>> ng.atleast_1d(ng.tensor(1.0))
    tensor([1.])
    """
    return _at_least(tensors, _atleast_1d)


@public(method=False)
def atleast_2d(*tensors: Any) -> Any:
    """Return each tensor, as a view with two dims if it has fewer; the new ones come first.

    >>> import numgrad as ng
    >>> ng.atleast_2d(ng.ones(3)).shape
    torch.Size([1, 3])
    """
    return _at_least(tensors, _atleast_2d)


@public(method=False)
def atleast_3d(*tensors: Any) -> Any:
    """Return each tensor, as a view with three dims if it has fewer.

    One dim becomes the middle one, two become the first two.

    >>> import numgrad as ng
    >>> ng.atleast_3d(ng.ones(3)).shape
    torch.Size([1, 3, 1])
    """
    return _at_least(tensors, _atleast_3d)


@declare(
    "hstack(Tensor[] tensors, *, Tensor? out=None)",
    method=False,
    dispatched=True,
    apart=("tensors",),
)
def hstack(tensors: tuple[Tensor, ...], out: Tensor | None) -> Tensor:
    """Return tensors joined side by side: along the second dim, or the only one.

    >>> import numgrad as ng
    >>> ng.hstack([ng.ones(2), ng.zeros(1)])
    tensor([1., 1., 0.])
    """
    parts = _all(tensors, "hstack", _atleast_1d)
    return _write_out(cat(parts, 0 if parts[0]._array.ndim == 1 else 1), out)


@declare(
    "vstack(Tensor[] tensors, *, Tensor? out=None)",
    method=False,
    aliases=("row_stack",),
    dispatched=True,
    apart=("tensors",),
)
def vstack(tensors: tuple[Tensor, ...], out: Tensor | None) -> Tensor:
    """Return tensors joined on top of each other: along the first dim, vectors as rows.

    >>> import numgrad as ng
    >>> ng.vstack([ng.ones(2), ng.zeros(2)])
    tensor([[1., 1.],
            [0., 0.]])
    """
    return _write_out(cat(_all(tensors, "vstack", _atleast_2d), 0), out)


@declare(
    "dstack(Tensor[] tensors, *, Tensor? out=None)",
    method=False,
    dispatched=True,
    apart=("tensors",),
)
def dstack(tensors: tuple[Tensor, ...], out: Tensor | None) -> Tensor:
    """Return tensors joined along the third dim, with at least three dims.

    >>> import numgrad as ng
    >>> ng.dstack([ng.ones(2), ng.zeros(2)]).shape
    torch.Size([1, 2, 2])
    """
    return _write_out(cat(_all(tensors, "dstack", _atleast_3d), 2), out)


def _as_column(input: Tensor) -> Tensor:
    return input if input._array.ndim > 1 else reshape(input, (input._array.size, 1))


@declare(
    "column_stack(Tensor[] tensors, *, Tensor? out=None)",
    method=False,
    dispatched=True,
    apart=("tensors",),
)
def column_stack(tensors: tuple[Tensor, ...], out: Tensor | None) -> Tensor:
    """Return tensors joined side by side, vectors as columns.

    >>> import numgrad as ng
    >>> ng.column_stack([ng.ones(2), ng.zeros(2)])
    tensor([[1., 0.],
            [1., 0.]])
    """
    return _write_out(cat(_all(tensors, "column_stack", _as_column), 1), out)
