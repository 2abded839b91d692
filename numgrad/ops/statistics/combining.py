"""Combinations and products of sets, and matrices from blocks: combinations, block_diag."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.arguments.dims import require_tensors
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.core.registry import public
from numgrad.ops.indexing.index_along import index_select
from numgrad.ops.indexing.rearranging import meshgrid
from numgrad.ops.movement.joining import stack
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.slicing import slice_of
from numgrad.ops.signatures.declared import declare
from numgrad.runtime.memory import empty

__all__ = ["block_diag", "cartesian_prod", "combinations"]

_BEYOND_LISTS = 2**60  # tensors, of which PyTorch would make a list

Array = np.ndarray[Any, Any]


def _check_vector(tensor: Tensor) -> None:
    if tensor._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor._array.shape)}")


@declare(
    "combinations(Tensor input, int r=2, bool with_replacement=False)",
    method=False,
)
def combinations(input: Tensor, r: int, with_replacement: bool) -> Tensor:
    """Return all combinations of `r` elements, one a row, in the order of `itertools`.

    The gradient of an element is the sum of g over the places where it is.

    Parameters
    ----------
    input : tensor of one dim
    r
        How many elements each has.
    with_replacement
        Whether an element may be in one several times.

    Raises
    ------
    RuntimeError
        If the input has not one dim, or `r` is negative.

    >>> import numgrad as ng
    >>> ng.combinations(ng.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 2.],
            [1., 3.],
            [2., 3.]])
    """
    _check_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r >= _BEYOND_LISTS:
        raise RuntimeError("cannot create std::vector larger than max_size()")
    if not r:
        return fresh(empty(0, input._array.dtype))
    choose: Any = itertools.combinations
    if with_replacement:
        choose = itertools.combinations_with_replacement
    count = input._array.shape[0]
    rows = math.comb(count + r - 1 if with_replacement and count else count, r)
    flat = itertools.chain.from_iterable(choose(range(count), r))
    places = np.fromiter(flat, np.int64, rows * r).reshape(rows, r)
    columns = [index_select(input, 0, fresh(places[:, k].copy())) for k in range(r)]
    result: Tensor = stack(columns, 1)
    return result


@public(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all choices of one element from each tensor, one a row, in the order of `itertools`.

    The gradient of an element is the sum of g over the places where it is.

    Parameters
    ----------
    *tensors : tensors of one dim
        All of one dtype. A single one is returned as it is.

    Raises
    ------
    RuntimeError
        If there are no tensors, they have not one dim, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.cartesian_prod(ng.tensor([1, 2]), ng.tensor([5, 6]))
    tensor([[1, 5],
            [1, 6],
            [2, 5],
            [2, 6]])
    """
    found = require_tensors(tensors, "cartesian_prod")
    for tensor in found:
        _check_vector(tensor)
    if len(found) == 1:
        return found[0]
    grids = meshgrid(*found)
    result: Tensor = stack([reshape(grid, (-1,)) for grid in grids], 1)
    return result


# --- blocks --------------------------------------------------------------------------------------


def _matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the shape that a block has as a matrix: a vector is a row."""
    return (1,) * (2 - len(shape)) + shape  # type: ignore[return-value]


def _block_diag(*arrays: Array, dtype: np.dtype[Any]) -> Array:
    shapes = [_matrix_shape(array.shape) for array in arrays]
    result = empty((sum(rows for rows, _ in shapes), sum(width for _, width in shapes)), dtype)
    result[...] = 0
    row = column = 0
    for array, (rows, width) in zip(arrays, shapes, strict=True):
        result[row : row + rows, column : column + width] = array
        row, column = row + rows, column + width
    return result


def _block_rule(g: Tensor, position: int, shapes: Sequence[tuple[int, ...]]) -> Tensor:
    own = shapes[position]
    before = [_matrix_shape(shape) for shape in shapes[:position]]
    for dim, size in enumerate(_matrix_shape(own)):
        start = sum(shape[dim] for shape in before)
        g = slice_of(g, dim, start, start + size, 1)
    return g if len(own) == 2 else reshape(g, own)


_BLOCK_DIAG = Primitive(
    "block_diag",
    "BlockDiagBackward0",
    _block_diag,
    ["*tensors"],
    [_block_rule],
    linear=True,
    samples=[
        lambda make: (block_diag, [make(2, 3), make(2), make()], {}),
        lambda make: (block_diag, [make(1, 2), make(0)], {}),
    ],
)


@public(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with the given ones along its diagonal, and zeros elsewhere.

    The gradient of each is its part of g.

    Parameters
    ----------
    *tensors : tensors of at most two dims
        A vector is a row. They promote to one dtype.

    Raises
    ------
    RuntimeError
        If a tensor has more dims.

    >>> import numgrad as ng
    >>> ng.block_diag(ng.tensor([[1, 2], [3, 4]]), ng.tensor(5))
    tensor([[1, 2, 0],
            [3, 4, 0],
            [0, 0, 5]])
    """
    found = require_tensors(tensors, "block_diag")
    for position, tensor in enumerate(found):
        if tensor._array.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{position} has {tensor._array.ndim} dimensions"
            )
    if not found:
        return fresh(empty((1, 0), np.float32))
    result: Tensor = _BLOCK_DIAG.apply(*found, dtype=result_dtype(found).numpy)
    return result
