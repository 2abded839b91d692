"""Elements or parts without their repetitions: unique, unique_consecutive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.graph.recorder import refuse_shape_of
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.along import dim_first
from numgrad.kernels.search.runs import order_of_rows, runs
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.declare import RefusedPrimitive
from numgrad.ops.signatures.declared import declare

__all__ = ["unique", "unique_consecutive"]

Array = np.ndarray[Any, Any]
Results = tuple[Array, Array, Array]


def _declare(name: str, node: str, forward: Callable[..., Results]) -> RefusedPrimitive:
    return RefusedPrimitive(name, node, forward, name, outputs=("values", "inverse", "counts"))


def _unique(array: Array, positions: bool) -> Results:
    """Return the different elements; unless positions are asked for, too, nothing else."""
    flat = array.reshape(-1)
    if not positions and array.dtype.kind != "f":  # of -0.0 and 0.0 the first one is returned
        flat = np.sort(flat)
        first, _, _ = runs(flat[:, None], np.arange(flat.size))
        return flat[first], first[:0], first[:0]
    first, number, lengths = runs(flat[:, None], flat.argsort(kind="stable"))
    return flat[first], number.reshape(array.shape), lengths


def _unique_consecutive(array: Array) -> Results:
    flat = array.reshape(-1)
    first, number, lengths = runs(flat[:, None], np.arange(flat.size))
    return flat[first], number.reshape(array.shape), lengths


def _parts(array: Array, dim: int) -> tuple[Array, Array]:
    """Return the array with a dim first, and its parts along that as rows."""
    moved = dim_first(array, dim)
    return moved, moved.reshape(moved.shape[0], int(np.prod(moved.shape[1:], dtype=np.int64)))


def _unique_parts(array: Array, dim: int) -> Results:
    moved, rows = _parts(array, dim)
    first, number, lengths = runs(rows, order_of_rows(rows))
    return np.moveaxis(moved[first].copy("C"), 0, dim), number, lengths


def _unique_consecutive_parts(array: Array, dim: int) -> Results:
    moved, rows = _parts(array, dim)
    first, number, lengths = runs(rows, np.arange(rows.shape[0]))
    return np.moveaxis(moved[first].copy("C"), 0, dim), number, lengths


_UNIQUE = _declare("_unique2", "Unique2Backward0", _unique)
_UNIQUE_PARTS = _declare("unique_dim", "UniqueDimBackward0", _unique_parts)
_UNIQUE_CONSECUTIVE = _declare(
    "unique_consecutive", "UniqueConsecutiveBackward0", _unique_consecutive
)
_UNIQUE_CONSECUTIVE_PARTS = _declare(
    "unique_consecutive", "UniqueConsecutiveBackward0", _unique_consecutive_parts
)


def _part_dim(input: Tensor, dim: int) -> int:
    """Return a dim along which there are parts to compare."""
    shape = input._array.shape
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = wrap_dim(dim, len(shape))
    empty = shape.count(0)
    if shape[at] == 0 and empty > 1:
        raise RuntimeError(
            "Number of zero sized dimensions is more than one, so unique cannot be applied "
        )
    if shape[at] and empty:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )
    return at


def _chosen(results: tuple[Tensor, ...], inverse: bool, counts: bool) -> Any:
    """Return what was asked for: the values, and perhaps what belongs to them."""
    if not inverse and not counts:
        return results[0]
    return (results[0], *results[1 : 2 if inverse else 1], *results[2 : 3 if counts else 2])


def _require_real(kernel: str, input: Tensor) -> None:
    if input._array.dtype.kind == "c":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")


@declare(
    "unique(Tensor input, bool sorted=True, bool return_inverse=False, "
    "bool return_counts=False, int? dim=None)"
)
def unique(
    input: Tensor, sorted: bool, return_inverse: bool, return_counts: bool, dim: int | None
) -> Any:
    """Return the different elements, or the different parts along a dim, in ascending order.

    Each nan counts as different from any other. There is no derivative, as in PyTorch.

    Parameters
    ----------
    sorted
        Changes nothing: they always are.
    return_inverse
        Also return the position of each element of the input in the result, in the input's shape;
        of each part, with a dim.
    return_counts
        Also return how often each occurs.
    dim
        Compare the parts along it, whose order is lexicographic. Without it, all elements.

    Raises
    ------
    IndexError
        If there is no such dim.
    NotImplementedError
        If the elements are complex, and in the backward pass.
    numgrad.TraceError
        Under `jit`: the number of results follows from numbers.

    >>> import numgrad as ng
    >>> ng.unique(ng.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    refuse_shape_of("unique", input._array)
    if dim is None:
        _require_real("unique", input)
        results = _UNIQUE.apply(input, positions=return_inverse or return_counts)
    else:
        _require_real("unique_dim", input)
        at = _part_dim(input, dim)
        results = _UNIQUE_PARTS.apply(input, dim=at)
    return _chosen(results, return_inverse, return_counts)


@declare(
    "unique_consecutive(Tensor input, bool return_inverse=False, bool return_counts=False, "
    "int? dim=None)"
)
def unique_consecutive(
    input: Tensor, return_inverse: bool, return_counts: bool, dim: int | None
) -> Any:
    """Return the elements, or the parts along a dim, that differ from the one before; see `unique`.

    Parameters
    ----------
    return_inverse
        Also return the position of each element of the input in the result.
    return_counts
        Also return how long each run of equal ones is.
    dim
        Compare the parts along it. Without it, all elements.

    >>> import numgrad as ng
    >>> ng.unique_consecutive(ng.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    refuse_shape_of("unique_consecutive", input._array)
    if dim is None or (dim == 0 and input._array.ndim == 1):
        _require_real("unique", input)
        results = _UNIQUE_CONSECUTIVE.apply(input)
    else:
        _require_real("unique_dim", input)
        at = _part_dim(input, dim)
        results = _UNIQUE_CONSECUTIVE_PARTS.apply(input, dim=at)
    return _chosen(results, return_inverse, return_counts)
