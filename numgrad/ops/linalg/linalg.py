"""Products of tensors of any rank: matmul, outer, inner, tensordot, kron, trace.

They are made of `mm` and its relatives and of views, in the order in which PyTorch's are, so that
the graph has the same nodes.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.float_errors import silent
from numgrad.graph.recorder import place_of
from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.arguments.factories import Array
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.primitive import Primitive, require_tensor
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.core.registry import public
from numgrad.ops.linalg.permuting import permute, t, transpose
from numgrad.ops.linalg.products import bmm, dot, mm, mv, outer_product
from numgrad.ops.movement.casts import expand_to
from numgrad.ops.movement.copies import contiguous
from numgrad.ops.movement.shape import flatten, reshape, unsafe_view
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.pointwise.arithmetic import mul
from numgrad.ops.signatures.declared import declare

__all__ = ["inner", "kron", "matmul", "outer", "tensordot", "trace"]

# A row vector's product with a matrix loses its first dim in place, so the result is no view.
_DROP_FIRST = Primitive(
    "drop_first_dim",
    "SqueezeBackward4",
    lambda input: input[0],
    ["input"],
    [lambda g: unsqueeze(g, 0)],
    linear=True,
    samples=[
        lambda make: (matmul, [make(3), make(3, 2)], {}),
        lambda make: (matmul, [make(0), make(0, 2)], {}),
    ],
)


@declare("matmul(Tensor input, Tensor other, *, Tensor? out=None)", dispatched=True)
def matmul(input: Tensor, other: Tensor, out: Tensor | None) -> Tensor:
    """Return the matrix product, what ``input @ other`` computes.

    A vector on the left is a row, one on the right a column, and the dim so added is dropped
    again. Of tensors with more dims the last two are matrices, and those before are broadcast.

    Derivative: that of `mm`, summed over what was broadcast.

    Parameters
    ----------
    input : tensor of shape (n,), (m, n) or (..., m, n)
    other : tensor of shape (n,), (n, p) or (..., n, p)
        Of the same dtype, not bool.
    out
        Where to put the result.

    Raises
    ------
    RuntimeError
        If a tensor has no dims, the shapes do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.matmul(ng.ones(5, 2, 3), ng.ones(3, 4)).shape
    torch.Size([5, 2, 4])
    """
    ndims = (input._array.ndim, other._array.ndim)
    if ndims == (2, 2):
        return mm(input, other, out=out)
    if 0 in ndims:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {ndims[0]}D and "
            f"{ndims[1]}D"
        )
    elif ndims == (1, 1):
        result = dot(input, other)
    elif ndims == (2, 1):
        result = mv(input, other)
    elif ndims == (1, 2):
        result = _DROP_FIRST.apply(mm(unsqueeze(input, 0), other))
    elif _folds(input, other):
        result = _folded(input, other)
    else:
        result = _batched(input, other)
    return write_result("matmul", result, out)


def _folds(input: Tensor, other: Tensor) -> bool:
    """Return whether a batch times one matrix or vector is computed as one tall product.

    If the small operand needs a gradient, this saves one of the size of the batch. If not, it is
    done where it needs no copy.
    """
    first_is_larger = input._array.ndim >= other._array.ndim
    large, small = (input, other) if first_is_larger else (other, input)
    if large._array.ndim < 3 or small._array.ndim > 2:
        return False
    if small.requires_grad:
        return True
    if input._array.ndim == 2:
        return False
    array = place_of(large._array)
    array = array if first_is_larger else array.swapaxes(-2, -1)
    if array.size == 0:
        return True
    return all(
        array.strides[dim] == array.strides[dim + 1] * array.shape[dim + 1]
        for dim in range(array.ndim - 2)
    )


def _folded(input: Tensor, other: Tensor) -> Tensor:
    """Return a batch times one matrix or vector, as one tall product."""
    flipped = other._array.ndim > input._array.ndim
    if flipped:  # (A B)^T = B^T A^T
        large, small = transpose(other, -2, -1), t(input) if input._array.ndim == 2 else input
    else:
        large, small = input, other
    *shape, inner_length = large._array.shape
    tall = reshape(large, (prod(shape), inner_length))
    if small._array.ndim == 1:
        return unsafe_view(mv(tall, small), tuple(shape))
    result = unsafe_view(mm(tall, small), (*shape, small._array.shape[1]))
    return transpose(result, -2, -1).contiguous() if flipped else result


def _batched(input: Tensor, other: Tensor) -> Tensor:
    """Return the products of matrices whose batches are broadcast."""
    left, right = input._array.shape, other._array.shape
    if len(left) == len(right) == 3 and left[0] != right[0]:
        if left[0] == 1 and input.requires_grad:
            return matmul(squeeze(input, 0), other)
        if right[0] == 1 and other.requires_grad:
            return matmul(input, squeeze(other, 0))
    batch = tuple(broadcast_shapes([left[:-2], right[:-2]]))
    rows = left[-2:] if len(left) > 1 else (1, *left)
    columns = right[-2:]
    first = reshape(expand_to(input, (*batch, *rows)), (prod(batch), *rows))
    second = reshape(expand_to(other, (*batch, *columns)), (prod(batch), *columns))
    if len(right) == 1:
        second = unsqueeze(second, 2)
    product = bmm(first, second)
    shape = (*batch, *(left[-2:-1]), *(right[-1:] if len(right) > 1 else ()))
    if len(right) == 1:
        product = squeeze(product, -1)
    return unsafe_view(product, shape)


@declare(
    "outer(Tensor input, Tensor vec2, *, Tensor? out=None)",
    aliases=("ger",),
    dispatched=True,
    apart=("input",),
    in_step=("vec2",),
)
def outer(input: Tensor, vec2: Tensor, out: Tensor | None) -> Tensor:
    """Return the matrix of the products of two vectors' elements.

    Derivative: g @ conj(vec2), and g.T @ conj(input).

    Parameters
    ----------
    input : tensor of shape (n,)
    vec2 : tensor of shape (m,)
    out
        Where to put the result, of shape (n, m).

    Raises
    ------
    RuntimeError
        If they are no vectors.

    >>> import numgrad as ng
    >>> ng.outer(ng.tensor([1, 2]), ng.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    for name, tensor in (("self", input), ("vec2", vec2)):
        if tensor._array.ndim != 1:
            raise RuntimeError(
                f"outer: Expected 1-D argument {name}, but got {tensor._array.ndim}-D"
            )
    return write_result("outer", outer_product(input, vec2), out)


@declare("inner(Tensor input, Tensor other, *, Tensor? out=None)", dispatched=True)
def inner(input: Tensor, other: Tensor, out: Tensor | None) -> Tensor:
    """Return the sums of products over the last dims of two tensors; neither is conjugated.

    Derivative: that of `tensordot`.

    Parameters
    ----------
    input : tensor of shape (..., n)
    other : tensor of shape (..., n)
        Of the same dtype. A tensor without dims is a factor.
    out
        Where to put the result.

    Raises
    ------
    RuntimeError
        If the last dims or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.inner(ng.ones(2, 3), ng.ones(4, 3)).shape
    torch.Size([2, 4])
    """
    left, right = input._array.shape, other._array.shape
    if not left or not right:
        return write_result("inner", mul(input, other), out)
    if left[-1] != right[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(left)} and {list(right)}"
        )
    return write_result("inner", tensordot(input, other, ([-1], [-1])), out)


def _read_contraction(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    """Return the dims of both tensors that `tensordot` contracts."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int) and not isinstance(dims, bool):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(-dims, 0)), list(range(dims))
    if isinstance(dims, (tuple, list)) and len(dims) == 2:
        pair = [[part] if isinstance(part, int) else list(part) for part in dims]
        return pair[0], pair[1]
    raise RuntimeError(
        "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
        f"containing two lists, but got dims={dims}"
    )


@public(method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Return the sums of products over some dims of two tensors; neither is conjugated.

    Derivative: the contraction of g with the conjugate of the other tensor over its free dims.

    Parameters
    ----------
    a, b : tensor
        Of one dtype.
    dims : int, or two lists of int
        How many last dims of `a` and first dims of `b` to contract; or which of each. A dim of
        length 1 goes with any length.
    out : tensor, optional
        Where to put the result: the free dims of `a`, then those of `b`.

    Raises
    ------
    RuntimeError
        If the dims do not fit, or the dtypes differ.

    >>> import numgrad as ng
    >>> ng.tensordot(ng.ones(2, 3, 4), ng.ones(3, 4, 5)).shape
    torch.Size([2, 5])
    """
    require_tensor(a, "tensordot", "a", 1)
    require_tensor(b, "tensordot", "b", 2)
    first, second = _read_contraction(a, b, dims)
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    if a._array.dtype != b._array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    for position, (dim_a, dim_b) in enumerate(zip(first, second, strict=True)):
        at_a, at_b = wrap_dim(dim_a, a._array.ndim), wrap_dim(dim_b, b._array.ndim)
        length_a, length_b = a._array.shape[at_a], b._array.shape[at_b]
        if length_b == 1 and length_a != 1:
            a = a.sum(at_a, keepdim=True)
        elif length_a == 1 and length_b != 1:
            b = b.sum(at_b, keepdim=True)
        elif length_a != length_b:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {length_a} in dim "
                f"{dim_a} and second has size {length_b} in dim {dim_b}"
            )
        for at, before, ndim in ((at_a, first, a._array.ndim), (at_b, second, b._array.ndim)):
            if at in (wrap_dim(dim, ndim) for dim in before[:position]):
                raise RuntimeError(f"dim {at} appears multiple times in the list of dims")
    first = [wrap_dim(dim, a._array.ndim) for dim in first]
    second = [wrap_dim(dim, b._array.ndim) for dim in second]
    return write_result("tensordot", _contract(a, b, first, second), out)


def _contract(a: Tensor, b: Tensor, first: list[int], second: list[int]) -> Tensor:
    """Contract known dims by one product of matrices, or of vectors if no dim is free."""
    free_a = [dim for dim in range(a._array.ndim) if dim not in first]
    free_b = [dim for dim in range(b._array.ndim) if dim not in second]
    rows = tuple(a._array.shape[dim] for dim in free_a)
    columns = tuple(b._array.shape[dim] for dim in free_b)
    contracted = prod(a._array.shape[dim] for dim in first)
    left, right = permute(a, (*free_a, *first)), permute(b, (*second, *free_b))
    if first and not free_a and not free_b:
        if all(place_of(each._array).flags.c_contiguous for each in (left, right)):
            product = dot(flatten(left), flatten(right))
        else:
            product = mul(squeeze(left), squeeze(right)).sum()
    else:
        product = mm(
            reshape(left, (prod(rows), contracted)), reshape(right, (contracted, prod(columns)))
        )
    return reshape(product, (*rows, *columns))


@declare(
    "kron(Tensor input, Tensor other, *, Tensor? out=None)",
    dispatched=True,
    apart=("input", "other"),
)
def kron(input: Tensor, other: Tensor, out: Tensor | None) -> Tensor:
    """Return the Kronecker product: every element of `input` times the whole of `other`.

    Derivative: that of a product, summed over what was repeated.

    Parameters
    ----------
    input, other
        The one with fewer dims gets dims of length 1 in front.
    out
        Where to put the result, whose lengths are the products of theirs.

    >>> import numgrad as ng
    >>> ng.kron(ng.tensor([1, 10]), ng.tensor([1, 2, 3]))
    tensor([ 1,  2,  3, 10, 20, 30])
    """
    ndim = max(input._array.ndim, other._array.ndim)
    left = (1,) * (ndim - input._array.ndim) + input._array.shape
    right = (1,) * (ndim - other._array.ndim) + other._array.shape
    spread = unsafe_view(input, tuple(n for length in left for n in (length, 1)))
    repeated = unsafe_view(other, tuple(n for length in right for n in (1, length)))
    shape = tuple(m * n for m, n in zip(left, right, strict=True))
    result = unsafe_view(mul(spread, repeated), shape)
    return result if out is None else write_result("kron", contiguous(result), out)


def _diagonal_of(g: Tensor, input_shape: tuple[int, int]) -> Tensor:
    """Return a number on the diagonal of a matrix of zeros."""
    eye = fresh(np.eye(*input_shape, dtype=g._array.dtype))
    spread: Tensor = mul(g, eye)
    return spread


@silent
def _trace(input: Array) -> Array:
    return np.asarray(np.trace(input, dtype=np.int64 if input.dtype.kind in "iu" else None))


_TRACE = Primitive(
    "trace",
    "TraceBackward0",
    _trace,
    ["input"],
    [_diagonal_of],
    linear=True,
    samples=[
        lambda make: (trace, [make(3, 3)], {}),
        lambda make: (trace, [make(2, 3)], {}),
        lambda make: (trace, [make(0, 0)], {}),
    ],
)


@declare("trace(Tensor input)", dispatched=True)
def trace(input: Tensor) -> Tensor:
    """Return the sum of the elements on the diagonal of a matrix.

    The gradient of the matrix is g on the diagonal.

    Parameters
    ----------
    input : tensor of shape (n, m)
        Not bool; integers give int64.

    Raises
    ------
    RuntimeError
        If it is no matrix.

    >>> import numgrad as ng
    >>> ng.trace(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    if input._array.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input._array.ndim}")
    if input.dtype is dtypes.bool_:
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    result: Tensor = _TRACE.apply(input)
    return result
