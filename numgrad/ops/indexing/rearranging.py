"""Rearrange elements: flip, roll, rot90, meshgrid and relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.accumulate import private_copy
from numgrad.kernels.move.memory_order import empty_like
from numgrad.ops.arguments.dims import read_dims, require_tensors, wrap_dim
from numgrad.ops.arguments.factories import empty_in_order
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.registry import public
from numgrad.ops.movement.joining import common_format
from numgrad.ops.movement.shape import view
from numgrad.ops.movement.unit_dims import expand
from numgrad.ops.signatures.declared import declare

__all__ = ["flip", "meshgrid", "roll", "rot90"]

Array = np.ndarray[Any, Any]


_FORWARDS, _BACKWARDS = slice(None), slice(None, None, -1)


def _flipped(array: Array, dims: tuple[int, ...]) -> Array:
    flipped = empty_like(array)
    key = [_FORWARDS] * array.ndim
    for dim in dims if key else ():
        key[dim] = _BACKWARDS
    flipped[...] = array[tuple(key)]
    return flipped


def _turned(array: Array, k: int, dims: tuple[int, int]) -> Array:
    """Return an array turned, laid out as PyTorch does: by flips, and by exchanging the dims."""
    if k % 4 == 0:
        return private_copy(array)
    if k % 4 == 2:
        return _flipped(array, dims)
    return _flipped(array, dims[1:] if k % 4 == 1 else dims[:1]).swapaxes(*dims)


def _memory_of_turned(input: Array, k: int, dims: tuple[int, int]) -> Any:
    if k % 4 == 0:
        return None
    memory = empty_like(input)
    return memory if k % 4 == 2 else memory.swapaxes(*dims)


def _rolled(array: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    """Return an array with its elements moved, laid out as what PyTorch joins of two parts."""
    rolled = np.roll(np.asarray(array, order="C"), shifts, dims or None)
    joined = _memory_of_rolled(array, shifts, dims)
    if joined is None:
        return rolled
    joined[...] = rolled
    return joined


def _quick_roll(array: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """Return what moves elements along one dim by two copies."""
    if len(shifts) > 1 or array.ndim > 3 or (not dims and array.ndim != 1):
        return None
    (dim,) = dims or (0,)
    length = array.shape[dim]
    by = shifts[0] % length
    before = (slice(None),) * dim
    first, last = (*before, slice(0, length - by)), (*before, slice(length - by, length))
    return lambda array: np.concatenate((array[last], array[first]), dim)


def _memory_of_rolled(input: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    if not input.size or not dims or input.ndim < 4:
        return None
    if not all(shift % input.shape[dim] for shift, dim in zip(shifts, dims, strict=True)):
        return None
    return empty_in_order(input.shape, dtypes.of_numpy(input.dtype), common_format([input]))


_FLIP: Primitive = Primitive(
    "flip",
    "FlipBackward0",
    _flipped,
    ["input"],
    [lambda g, dims: _FLIP.apply(g, dims=dims)],
    linear=True,
    lies=lambda input: empty_like(input),
    samples=[
        lambda make: (flip, [make(2, 3)], {"dims": (0, 1)}),
        lambda make: (flip, [make()], {"dims": (-1,)}),
        lambda make: (flip, [make(0)], {"dims": (0,)}),
    ],
)
_ROLL: Primitive = Primitive(
    "roll",
    "RollBackward0",
    _rolled,
    ["input"],
    [lambda g, shifts, dims: _ROLL.apply(g, shifts=tuple([-shift for shift in shifts]), dims=dims)],
    linear=True,
    few=_quick_roll,
    lies=_memory_of_rolled,
    samples=[
        lambda make: (roll, [make(2, 3)], {"shifts": (1, -2), "dims": (0, 1)}),
        lambda make: (roll, [make(2, 3)], {"shifts": 2}),
        lambda make: (roll, [make()], {"shifts": 1}),
        lambda make: (roll, [make(0)], {"shifts": 1}),
    ],
)
_ROT90: Primitive = Primitive(
    "rot90",
    "Rot90Backward0",
    _turned,
    ["input"],
    [lambda g, k, dims: _ROT90.apply(g, k=-k, dims=dims)],
    linear=True,
    lies=_memory_of_turned,
    samples=[
        lambda make: (rot90, [make(2, 3)], {}),
        lambda make: (rot90, [make(2, 3, 1)], {"k": 3, "dims": (0, 2)}),
        lambda make: (rot90, [make(0, 2)], {"k": 2}),
    ],
)


@declare("flip(Tensor input, int[] dims)", dispatched=True)
def flip(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return a copy with the order of some dims reversed.

    The gradient is g with the same dims reversed.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice.

    >>> import numgrad as ng
    >>> ng.flip(ng.arange(3.0), (0,))
    tensor([2., 1., 0.])
    """
    result: Tensor = _FLIP.apply(input, dims=read_dims(dims, input._array.ndim))
    return result


@declare("fliplr(Tensor input)", dispatched=True)
def fliplr(input: Tensor) -> Tensor:
    """Return a copy with the order of the second dim reversed.

    Raises
    ------
    RuntimeError
        If the tensor has fewer than two dims.

    >>> import numgrad as ng
    >>> ng.fliplr(ng.tensor([[1.0, 2.0]]))
    tensor([[2., 1.]])
    """
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@declare("flipud(Tensor input)", dispatched=True)
def flipud(input: Tensor) -> Tensor:
    """Return a copy with the order of the first dim reversed.

    Raises
    ------
    RuntimeError
        If the tensor has no dims.

    >>> import numgrad as ng
    >>> ng.flipud(ng.tensor([1.0, 2.0]))
    tensor([2., 1.])
    """
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


@declare("roll(Tensor input, int[1] shifts, int[1]? dims=())", dispatched=True)
def roll(input: Tensor, shifts: tuple[int, ...], dims: tuple[int, ...] | None) -> Tensor:
    """Return a copy with elements moved along dims; what leaves at the end comes in at the front.

    The gradient is g, moved back.

    Parameters
    ----------
    shifts
        How far, for each of `dims`.
    dims
        Without them, the elements move through the flattened tensor.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If there are not as many shifts as dims, or none at all.

    >>> import numgrad as ng
    >>> ng.roll(ng.arange(3.0), 1)
    tensor([2., 0., 1.])
    """
    dims = dims or ()
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and not (len(shifts) == 1 and not dims):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    ndim = input._array.ndim
    if dims and not ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    positions = tuple(wrap_dim(dim, ndim) for dim in dims)
    result: Tensor = _ROLL.apply(input, shifts=shifts, dims=positions)
    return result


@declare("rot90(Tensor input, int k=1, int[] dims=(0, 1))", dispatched=True)
def rot90(input: Tensor, k: int, dims: tuple[int, ...]) -> Tensor:
    """Return a copy turned by quarter turns in the plane of two dims, from the first to the second.

    The gradient is g, turned back.

    Parameters
    ----------
    k
        How many quarter turns.
    dims : two ints

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If there are not two different dims.

    >>> import numgrad as ng
    >>> ng.rot90(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[2., 4.],
            [1., 3.]])
    """
    plane = dims
    ndim = input._array.ndim
    if len(plane) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(plane)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    if plane[0] == plane[1] or abs(plane[0] - plane[1]) == ndim:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {plane[0]} and dim1 = "
            f"{plane[1]}"
        )
    positions = tuple(wrap_dim(dim, ndim) for dim in plane)
    result: Tensor = _ROT90.apply(input, k=k, dims=positions)
    return result


@public(method=False)
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid: each vector expanded over the dims of the others.

    The gradient of each is g, summed over the other dims.

    Parameters
    ----------
    *tensors : tensors of at most one dim
        All of one dtype; also as one sequence.
    indexing : {"ij", "xy"}
        ``"xy"`` exchanges the first two dims.

    Raises
    ------
    RuntimeError
        If there are no tensors, they have more dims, or the dtypes differ.

    >>> import numgrad as ng
    >>> [each.shape for each in ng.meshgrid(ng.ones(2), ng.ones(3))]
    [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    found = list(require_tensors(tensors, "meshgrid"))
    if not found:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if any(tensor.dtype is not found[0].dtype for tensor in found):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    for tensor in found:
        if tensor._array.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                f"{tensor._array}"
            )
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    # Which dim each vector runs along.
    dims = list(range(len(found)))
    if indexing == "xy" and len(found) > 1:
        dims[0], dims[1] = 1, 0
    shape = tuple(found[dims.index(dim)]._array.size for dim in range(len(found)))
    grids = []
    for tensor, dim in zip(found, dims, strict=True):
        own = (1,) * dim + (shape[dim],) + (1,) * (len(found) - dim - 1)
        grids.append(expand(view(tensor, own), shape))
    return tuple(grids)
