"""Dims of size 1: left out (squeeze), put in (unsqueeze), and repeated (expand and relatives)."""

from __future__ import annotations

from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.strides import Layout, layout_of, strided_view
from numgrad.ops.arguments.dims import read_dims, require_tensors, wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.core.registry import public
from numgrad.ops.movement.casts import expand_to
from numgrad.ops.movement.shape import reshape
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.kinds import check_storage

__all__ = ["expand", "expanded_size", "squeeze", "unsqueeze"]

Array = np.ndarray[Any, Any]


def _squeeze(array: Array, dims: tuple[int, ...]) -> Array:
    return array.squeeze(_dims_of_one(array, dims))


def _dims_of_one(array: Array, dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([dim for dim in dims if array.ndim and array.shape[dim] == 1])


def _squeeze_sample(**keywords: Any) -> Any:
    return lambda make: (squeeze, [make(1, 3, 1)], keywords)


_SQUEEZE = {
    number: Primitive(
        f"squeeze_{form}",
        f"SqueezeBackward{number}",
        _squeeze,
        ["input"],
        [lambda g, input_shape: reshape(g, input_shape)],
        quick=lambda array, dims: methodcaller("squeeze", _dims_of_one(array, dims)),
        view=True,
        linear=True,
        samples=[_squeeze_sample(**keywords)],
    )
    for number, form, keywords in (
        (0, "all", {}),
        (1, "dim", {"dim": 0}),
        (2, "dims", {"dim": (0, -1)}),
    )
}


@declare(
    "squeeze(Tensor input)",
    "squeeze(Tensor input, int[] dim)",
    "squeeze(Tensor input, int dim)",
    dispatched=True,
)
def squeeze(input: Tensor, dim: Any) -> Tensor:
    """Return a view without the dims of size 1, or without those of them that are named.

    The gradient is g in the input's shape.

    Parameters
    ----------
    dim
        Where to look; by default everywhere.

    Raises
    ------
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.ones(1, 2, 1).squeeze(0).shape
    torch.Size([2, 1])
    """
    shape = input._array.shape
    if dim is None:
        number, dims = 0, tuple(range(len(shape)))
    else:
        number = 2 if isinstance(dim, tuple) else 1
        dims = read_dims(dim, len(shape))
    result: Tensor = _SQUEEZE[number].apply(input, dims=dims)
    return result


def _unsqueeze(array: Array, dim: int) -> Array:
    return strided_view(array, _unsqueezed(array, dim))


def _unsqueeze_quickly(array: Array, dim: int) -> Any:
    layout = shape, strides, _ = _unsqueezed(array, dim)
    if layout_of(array.reshape(shape))[1] == strides:
        return methodcaller("reshape", shape)
    return partial(strided_view, layout=layout)


def _unsqueezed(array: Array, dim: int) -> Layout:
    """Return the layout of an array with one dim more, which goes over all of the one behind it."""
    shape, strides, offset = layout_of(array)
    step = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]), offset


_UNSQUEEZE = Primitive(
    "unsqueeze",
    "UnsqueezeBackward0",
    _unsqueeze,
    ["input"],
    [lambda g, dim: squeeze(g, dim)],
    quick=_unsqueeze_quickly,
    view=True,
    linear=True,
    samples=[
        lambda make: (unsqueeze, [make(2, 3)], {"dim": 1}),
        lambda make: (unsqueeze, [make()], {"dim": -1}),
        lambda make: (unsqueeze, [make(0)], {"dim": 0}),
    ],
)


@declare("unsqueeze(Tensor input, int dim)", dispatched=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return a view with a dim of size 1 put in before `dim`.

    The gradient is g in the input's shape.

    Parameters
    ----------
    dim
        From ``-ndim - 1`` to ``ndim``.

    Raises
    ------
    IndexError
        If there is no such place.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).unsqueeze(1).shape
    torch.Size([2, 1, 3])
    """
    shape = input._array.shape
    result: Tensor = _UNSQUEEZE.apply(input, dim=wrap_dim(dim, len(shape) + 1))
    return result


@declare("expand(Tensor input, int[] size)", function=False, dispatched=True)
def expand(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return a view in which dims of size 1 are repeated, and new ones stand in front.

    The gradient is g, summed over the repetitions.

    Parameters
    ----------
    size
        -1 leaves a dim as it is.

    Raises
    ------
    RuntimeError
        If a dim that is not 1 would have to change.

    >>> import numgrad as ng
    >>> ng.tensor([[1.0], [2.0]]).expand(-1, 3)
    tensor([[1., 1., 1.],
            [2., 2., 2.]])
    """
    shape = expanded_size(input, size)
    check_storage(shape)  # of no bytes, but NumPy counts them
    return expand_to(input, shape)


def expanded_size(input: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a size without -1, or raise what PyTorch raises where it does not fit."""
    own = input._array.shape
    leading = len(shape) - len(own)
    if leading < 0:
        raise RuntimeError(
            f"expand({input.type()}{{{list(own)}}}, size={list(shape)}): the number of sizes "
            f"provided ({len(shape)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(own)})"
        )
    target = list(shape)
    for position in range(len(shape) - 1, -1, -1):
        length = shape[position]
        if position < leading:
            if length < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({length}) isn't allowed in a leading, "
                    f"non-existing dimension {position}"
                )
            continue
        current = own[position - leading]
        if length == -1:
            target[position] = current
        elif length != current and (current != 1 or length < 0):
            raise RuntimeError(
                f"The expanded size of the tensor ({length}) must match the existing size "
                f"({current}) at non-singleton dimension {position}.  Target sizes: "
                f"{list(shape)}.  Tensor sizes: {list(own)}"
            )
    return tuple(target)


@declare("expand_as(Tensor input, Tensor other)", function=False, dispatched=True)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input.expand(other.size())``; see `expand`.

    >>> import numgrad as ng
    >>> ng.ones(3).expand_as(ng.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    return expand(input, other._array.shape)


@declare("broadcast_to(Tensor input, int[] size)", dispatched=True)
def broadcast_to(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return the input, expanded to a size; see `expand`.

    >>> import numgrad as ng
    >>> ng.broadcast_to(ng.ones(3), (2, 3)).shape
    torch.Size([2, 3])
    """
    return expand(input, size)


@public(method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return all tensors expanded to the shape that they broadcast to.

    The gradient of each is g, summed over its repetitions.

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast.

    >>> import numgrad as ng
    >>> [x.shape for x in ng.broadcast_tensors(ng.ones(3), ng.ones(2, 1))]
    [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    found = require_tensors(tensors, "broadcast_tensors")
    if not found:
        return ()
    shape = broadcast_shapes([tensor._array.shape for tensor in found])
    return tuple(
        tensor if tensor._array.shape == shape else expand_to(tensor, shape) for tensor in found
    )
