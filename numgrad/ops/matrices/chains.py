"""Products of several matrices, and tensors taken for matrices: multi_dot, tensorinv, tensorsolve.

The order of products is that of the least work, by the dynamic programme of T. H. Cormen et al.,
"Introduction to Algorithms", section 15.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.dims import require_tensors, wrap_dim
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.registry import public
from numgrad.ops.linalg import linalg
from numgrad.ops.linalg.permuting import movedim
from numgrad.ops.linalg.products import mm
from numgrad.ops.matrices.outs import casting
from numgrad.ops.matrices.systems.solving import inverted, linalg_solve
from numgrad.ops.movement import diagonals
from numgrad.ops.movement.shape import reshape, view
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.signatures.declared import declare

__all__ = [
    "chain_matmul",
    "linalg_diagonal",
    "linalg_matmul",
    "linalg_multi_dot",
    "linalg_tensorinv",
    "linalg_tensorsolve",
]


# --- products ------------------------------------------------------------------------------------


def _cuts(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return where to part each product of neighbours, for the fewest multiplications.

    Matrix k is of ``sizes[k]`` x ``sizes[k + 1]``.
    """
    count = len(sizes) - 1
    cost = {(k, k): 0 for k in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            ways = [
                cost[first, cut]
                + cost[cut + 1, last]
                + sizes[first] * sizes[cut + 1] * sizes[last + 1]
                for cut in range(first, last)
            ]
            cost[first, last] = min(ways)
            cuts[first, last] = first + ways.index(cost[first, last])
    return cuts


def _check_chain(tensors: Sequence[Tensor]) -> None:
    """Raise unless these are matrices that follow on each other, with vectors only at the ends."""
    last = len(tensors) - 1
    for number, tensor in enumerate(tensors):
        ndim = tensor._array.ndim
        if number in (0, last):
            if ndim not in (1, 2):
                which = "last" if number else "first"
                raise RuntimeError(
                    f"multi_dot(): the {which} tensor must be 1D or 2D but got {ndim}D"
                )
        elif ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {number} must be 2D but got {ndim}D")


def _check_pairs(tensors: Sequence[Tensor], matrices: Sequence[Tensor]) -> None:
    first = tensors[0]
    for number, tensor in enumerate(tensors[1:], 1):
        if tensor._array.dtype != first._array.dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{first.dtype.cpp_name} and tensor {number} {tensor.dtype.cpp_name}"
            )
    for number in range(len(tensors) - 1):
        one, other = matrices[number]._array.shape, matrices[number + 1]._array.shape
        if one[1] != other[0]:
            shapes = (list(each._array.shape) for each in matrices[number : number + 2])
            raise RuntimeError(
                "multi_dot(): tensors {} and {} with shapes {} and {} cannot be multiplied".format(
                    number, number + 1, *shapes
                )
            )


def _multiplied(tensors: Sequence[Tensor]) -> Tensor:
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    _check_chain(tensors)
    matrices, ends = list(tensors), (tensors[0]._array.ndim, tensors[-1]._array.ndim)
    if ends[0] == 1:
        matrices[0] = unsqueeze(matrices[0], 0)
    if ends[1] == 1:
        matrices[-1] = unsqueeze(matrices[-1], -1)
    _check_pairs(tensors, matrices)
    sizes = [matrices[0]._array.shape[0], *[each._array.shape[1] for each in matrices]]
    cuts = _cuts(sizes)

    def product(first: int, last: int) -> Tensor:
        if first == last:
            return matrices[first]
        cut = cuts[first, last]
        result: Tensor = mm(product(first, cut), product(cut + 1, last))
        return result

    found = product(0, len(matrices) - 1)
    shape = tuple(
        [size for size, ndim in zip((sizes[0], sizes[-1]), ends, strict=True) if ndim == 2]
    )
    return view(found, shape)


def _written(function: str, result: Tensor, out: Any) -> Tensor:
    if isinstance(out, Tensor) and out._array.dtype != result._array.dtype:
        raise RuntimeError(
            f"multi_dot(): expected out tensor to have dtype {result.dtype.cpp_name} but got "
            f"{out.dtype.cpp_name}"
        )
    written: Tensor = write_result(function, result, out)
    return written


@declare(
    "linalg_multi_dot(Tensor[] tensors, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    write=_written,
)
def linalg_multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of two or more matrices, multiplied in the order of the least work.

    The gradient is that of `mm`.

    Parameters
    ----------
    tensors
        Matrices of one dtype; the first one may be a row and the last one a column of one dim.

    Raises
    ------
    RuntimeError
        If there are fewer than two, the shapes do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.linalg.multi_dot([ng.ones(2), ng.ones(2, 3), ng.ones(3, 2)])
    tensor([6., 6.])
    """
    return _multiplied(tensors)


@public(method=False)
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the product of matrices, multiplied in the order of the least work: see multi_dot.

    PyTorch deprecates this name. The gradient is that of `mm`.

    Parameters
    ----------
    *matrices : tensors of two dims
    out
        Where to put the result.

    Raises
    ------
    RuntimeError
        If there are none, the shapes do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.chain_matmul(ng.ones(2, 3), ng.ones(3, 2), ng.ones(2, 1))
    tensor([[6.],
            [6.]])
    """
    found = require_tensors(matrices, "chain_matmul")
    for matrix in found:
        if matrix._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix._array.ndim}, expected 2 instead.")
    if not found:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    result = found[0] if len(found) == 1 else _multiplied(found)
    return _written("chain_matmul", result, out)


@declare(
    "linalg_matmul(Tensor input, Tensor other, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the matrix product: `matmul`.

    The gradient is the same.

    Parameters
    ----------
    input : tensor of shape (n,), (m, n) or (..., m, n)
    other : tensor of shape (n,), (n, p) or (..., n, p)

    >>> import numgrad as ng
    >>> ng.linalg.matmul(ng.ones(2, 3), ng.ones(3))
    tensor([3., 3.])
    """
    result: Tensor = linalg.matmul(input, other)
    return result


@declare(
    "linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1)",
    function=False,
    method=False,
    dispatched=True,
)
def linalg_diagonal(A: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """Return a view of the diagonals of matrices: `diagonal`, by default of the last two dims.

    The gradient is g on the diagonals of zeros.

    Parameters
    ----------
    A : tensor of two dims or more
    offset
        How far above the main diagonal.
    dim1, dim2
        The dims of the matrices.

    >>> import numgrad as ng
    >>> ng.linalg.diagonal(ng.ones(5, 2, 3)).shape
    torch.Size([5, 2])
    """
    result: Tensor = diagonals.diagonal(A, offset, dim1, dim2)
    return result


# --- tensors as matrices -------------------------------------------------------------------------


@declare(
    "linalg_tensorinv(Tensor input, int ind=2, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    write=casting("linalg.tensorinv", by_rows=True),
)
def linalg_tensorinv(input: Tensor, ind: int) -> Tensor:
    """Return the inverse of a tensor whose first dims count as rows, and the rest as columns.

    The gradient is that of `linalg.inv`.

    Parameters
    ----------
    input : tensor
    ind
        How many dims are rows.

    Raises
    ------
    numgrad.linalg.LinAlgError
        If the matrix is singular.
    RuntimeError
        If it is not square.

    >>> import numgrad as ng
    >>> ng.linalg.tensorinv(2 * ng.eye(4).reshape(4, 2, 2), ind=1).shape
    torch.Size([2, 2, 4])
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = input._array.shape
    if ind > len(shape):
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {len(shape)}")
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    found, _ = inverted(reshape(input, (rows, columns)), "inv")
    return reshape(found, (*shape[ind:], *shape[:ind]))


@declare(
    "linalg_tensorsolve(Tensor input, Tensor other, int[]? dims=None, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    write=casting("linalg.tensorsolve"),
)
def linalg_tensorsolve(input: Tensor, other: Tensor, dims: tuple[int, ...] | None) -> Tensor:
    """Return X of tensordot(A, X, X.ndim) = B, a system whose matrix is a tensor.

    The gradient is that of `linalg.solve`.

    Parameters
    ----------
    input : tensor of shape (*b, *x)
        A.
    other : tensor of shape b
        The right side B.
    dims
        Which dims of A to move to its end, before.

    Raises
    ------
    numgrad.linalg.LinAlgError
        If the matrix is singular.
    RuntimeError
        If it is not square.

    >>> import numgrad as ng
    >>> ng.linalg.tensorsolve(2 * ng.eye(4).reshape(2, 2, 4), ng.ones(2, 2))
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    if dims is not None:
        count, ndim = len(dims), input._array.ndim
        for dim in dims:
            wrap_dim(dim, ndim)
        input = movedim(input, dims, tuple(range(ndim - count, ndim)))
    split, shape = other._array.ndim, input._array.shape
    rows, columns = other._array.size, math.prod(shape[split:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {columns} != {rows}"
        )
    solved = linalg_solve(reshape(input, (rows, rows)), reshape(other, (-1,)))
    return reshape(solved, shape[split:])
