"""Diagonals and triangles: diagonal, diag, diag_embed, tril, triu and relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor, fresh
from numgrad.kernels.move.accumulate import private_copy
from numgrad.kernels.move.memory_order import copy_with_gaps
from numgrad.kernels.move.strides import layout_of, strided_view
from numgrad.kernels.move.triangles import triangle, triangle_of_few
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.places import with_gaps_of_input
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.movement.shape import reshape
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.kinds import check_storage

__all__ = ["diag", "diag_embed", "diagflat", "diagonal", "diagonal_scatter", "tril", "triu"]

Array = np.ndarray[Any, Any]


def nearest(offset: int, rows: int, columns: int) -> int:
    """Return an offset at which a matrix has the same diagonal: no further away than its corners.

    NumPy takes none that C could not hold.
    """
    return min(max(offset, -rows), columns)


def _at(array: Array, offset: int, dim1: int, dim2: int) -> Array:
    return array.diagonal(nearest(offset, array.shape[dim1], array.shape[dim2]), dim1, dim2)


def _diagonal(array: Array, offset: int, dim1: int, dim2: int) -> Array:
    view = _at(array, offset, dim1, dim2)
    if not view.shape[-1]:  # of nothing, it lies where the array does
        return strided_view(array, layout_of(view))
    if array.flags.writeable:
        view.flags.writeable = True  # NumPy returns a view that is not
    return view


def _on_diagonal(whole: Array, part: Array, offset: int, dim1: int, dim2: int) -> Array:
    target = _at(whole, offset, dim1, dim2)
    if target.size:
        target.flags.writeable = True
        target[...] = part
    return whole


def _length(rows: int, columns: int, offset: int) -> int:
    """Return how long a diagonal of a matrix is."""
    return max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)


_DIAGONAL, _DIAGONAL_COPY = (
    Primitive(
        name,
        node,
        forward,
        ["input"],
        [
            lambda g, input_shape, offset, dim1, dim2: _DIAGONAL_BACKWARD.apply(
                g, shape=input_shape, offset=offset, dim1=dim1, dim2=dim2
            )
        ],
        view=view,
        linear=True,
        samples=samples,
    )
    for name, node, view, forward, samples in (
        (
            "diagonal",
            "DiagonalBackward0",
            True,
            _diagonal,
            [
                lambda make: (diagonal, [make(2, 3)], {}),
                lambda make: (diagonal, [make(2, 3, 2)], {"offset": -1, "dim1": 2, "dim2": 1}),
                lambda make: (diagonal, [make(2, 2)], {"offset": 5}),
            ],
        ),
        (
            "diagonal_copy",
            "DiagonalBackward0_copy",
            False,
            lambda array, offset, dim1, dim2: private_copy(_at(array, offset, dim1, dim2)),
            [
                lambda make: (diag, [make(2, 3)], {"diagonal": 1}),
                lambda make: (diag, [make(0, 3)], {}),
            ],
        ),
    )
)
_DIAGONAL_BACKWARD: Primitive = Primitive(
    "diagonal_backward",
    "DiagonalBackwardBackward0",
    lambda array, shape, offset, dim1, dim2: _on_diagonal(
        np.zeros(shape, array.dtype), array, offset, dim1, dim2
    ),
    ["input"],
    [lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2)],
    linear=True,
    samples=[
        lambda make: (
            lambda x: _DIAGONAL_BACKWARD.apply(x, shape=(2, 3), offset=1, dim1=0, dim2=1),
            [make(2)],
            {},
        )
    ],
)


def _embed(array: Array, offset: int, dim1: int, dim2: int) -> Array:
    size = array.shape[-1] + abs(offset)
    shape = list(array.shape[:-1])
    for dim in sorted((dim1, dim2)):
        shape.insert(dim, size)
    check_storage(shape)
    return _on_diagonal(np.zeros(shape, array.dtype), array, offset, dim1, dim2)


_DIAG_EMBED: Primitive = Primitive(
    "diag_embed",
    "DiagEmbedBackward0",
    _embed,
    ["input"],
    [lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2)],
    linear=True,
    samples=[
        lambda make: (diag_embed, [make(2, 3)], {}),
        lambda make: (diag_embed, [make(2, 3)], {"offset": 1, "dim1": 0, "dim2": 2}),
        lambda make: (diag, [make(2)], {"diagonal": -1}),
        lambda make: (diag, [make(0)], {}),
    ],
)
_DIAGONAL_SCATTER: Primitive = Primitive(
    "diagonal_scatter",
    "DiagonalScatterBackward0",
    lambda array, part, offset, dim1, dim2: _on_diagonal(
        copy_with_gaps(array), part, offset, dim1, dim2
    ),
    ["input", "src"],
    [
        lambda g, src_shape, offset, dim1, dim2: _DIAGONAL_SCATTER.apply(
            g, fresh(np.zeros(src_shape, g._array.dtype)), offset=offset, dim1=dim1, dim2=dim2
        ),
        lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2),
    ],
    linear=True,
    lies=with_gaps_of_input,
    gaps=True,
    samples=[
        lambda make: (diagonal_scatter, [make(2, 3), make(2)], {"offset": 1}),
        lambda make: (diagonal_scatter, [make(2, 2), make(0)], {"offset": 4}),
    ],
)


def _declare_triangle(name: str, lower: bool) -> Primitive:
    def forward(array: Array, diagonal: int) -> Array:
        return triangle(array, diagonal, lower)

    def named(own: Array, diagonal: int) -> tuple[Array, Array]:
        kept = triangle(np.ones(own.shape, np.bool_), diagonal, lower)
        return own[~kept], np.zeros((), own.dtype)

    def rule(g: Tensor, diagonal: int) -> Tensor:
        return _triangle(g, name, diagonal)

    return Primitive(
        name,
        f"{name.title()}Backward0",
        forward,
        ["input"],
        [rule],
        linear=True,
        few=lambda array, diagonal: (
            None if 1 in array.shape else triangle_of_few(array.shape, diagonal, lower)
        ),
        named=named,
        samples=[
            lambda make: (_triangle, [make(3, 3)], {"name": name, "diagonal": 0}),
            lambda make: (_triangle, [make(2, 2, 3)], {"name": name, "diagonal": 1}),
            lambda make: (_triangle, [make(0, 3)], {"name": name, "diagonal": -1}),
        ],
    )


_TRIANGLES = {
    "tril": _declare_triangle("tril", lower=True),
    "triu": _declare_triangle("triu", lower=False),
}


def _planes(offset: int, dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    """Return two dims counted from the front, which must differ."""
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


@declare("diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1)", dispatched=True)
def diagonal(input: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """Return a view of the diagonal of two dims, which becomes the last dim.

    The gradient is g on the diagonal, 0 elsewhere.

    Parameters
    ----------
    offset
        Which diagonal: above the main one if positive, below if negative.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If both dims are the same.

    >>> import numgrad as ng
    >>> ng.tensor([[1.0, 2.0], [3.0, 4.0]]).diagonal()
    tensor([1., 4.])
    """
    first, second = _planes(offset, dim1, dim2, input._array.ndim)
    result: Tensor = _DIAGONAL.apply(input, offset=offset, dim1=first, dim2=second)
    return result


@declare("diag_embed(Tensor input, int offset=0, int dim1=-2, int dim2=-1)", dispatched=True)
def diag_embed(input: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """Return zeros with the last dim of the input on the diagonal of two new dims.

    The gradient is the diagonal of g.

    Parameters
    ----------
    offset
        Which diagonal: above the main one if positive, below if negative.
    dim1, dim2
        Where the new dims are.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If both dims are the same.

    >>> import numgrad as ng
    >>> ng.diag_embed(ng.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    ndim = input._array.ndim
    first, second = (wrap_dim(dim, ndim + 1) for dim in (dim1, dim2))
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    result: Tensor = _DIAG_EMBED.apply(input, offset=offset, dim1=first, dim2=second)
    return result


@declare("diag(Tensor input, int diagonal=0, *, Tensor? out=None)", dispatched=True)
def diag(input: Tensor, diagonal: int) -> Tensor:
    """Return a matrix with a vector on its diagonal, or the diagonal of a matrix as a copy.

    The gradient of a vector is the diagonal of g; that of a matrix is g there and 0 elsewhere.

    Parameters
    ----------
    input : tensor of one or two dims
    diagonal
        Which one: above the main one if positive, below if negative.

    Raises
    ------
    RuntimeError
        If the tensor has neither one nor two dims.

    >>> import numgrad as ng
    >>> ng.diag(ng.tensor([1.0, 2.0]), 1)
    tensor([[0., 1., 0.],
            [0., 0., 2.],
            [0., 0., 0.]])
    """
    ndim = input._array.ndim
    result: Tensor
    if ndim == 1:
        result = diag_embed(input, diagonal)
    elif ndim == 2:
        result = _DIAGONAL_COPY.apply(input, offset=diagonal, dim1=0, dim2=1)
    else:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    return result


@declare("diagflat(Tensor input, int offset=0)", dispatched=True)
def diagflat(input: Tensor, offset: int) -> Tensor:
    """Return a matrix with the flattened input on its diagonal.

    The gradient is the diagonal of g, in the input's shape.

    >>> import numgrad as ng
    >>> ng.diagflat(ng.tensor([[1.0], [2.0]]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    return diag_embed(reshape(input, (input._array.size,)), offset)


@declare(
    "diagonal_scatter(Tensor input, Tensor src, int offset=0, int dim1=0, int dim2=1)",
    dispatched=True,
)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """Return a copy of the input in which ``diagonal(offset, dim1, dim2)`` is `src`.

    The gradient of the input is g with zeros there, that of `src` what g has there.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If `src` has another shape.

    >>> import numgrad as ng
    >>> ng.diagonal_scatter(ng.zeros(2, 2), ng.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    shape = input._array.shape
    first, second = _planes(offset, dim1, dim2, len(shape))
    rest = [length for dim, length in enumerate(shape) if dim not in (first, second)]
    place = (*rest, _length(shape[first], shape[second], offset))
    if src._array.shape != place:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(place)}"
        )
    result: Tensor = _DIAGONAL_SCATTER.apply(input, src, offset=offset, dim1=first, dim2=second)
    return result


def _triangle(input: Tensor, name: str, diagonal: int) -> Tensor:
    """Return matrices with zeros on one side of a diagonal."""
    if input._array.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    result: Tensor = _TRIANGLES[name].apply(input, diagonal=diagonal)
    return result


@declare("tril(Tensor input, int diagonal=0, *, Tensor? out=None)", inplace=True, dispatched=True)
def tril(input: Tensor, diagonal: int) -> Tensor:
    """Return matrices with zeros above a diagonal.

    The gradient is g with zeros above the diagonal.

    Parameters
    ----------
    input : tensor of at least two dims
    diagonal
        The last one that is kept: above the main one if positive, below if negative.

    Raises
    ------
    RuntimeError
        If the tensor has fewer than two dims.

    >>> import numgrad as ng
    >>> ng.tril(ng.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _triangle(input, "tril", diagonal)


@declare("triu(Tensor input, int diagonal=0, *, Tensor? out=None)", inplace=True, dispatched=True)
def triu(input: Tensor, diagonal: int) -> Tensor:
    """Return matrices with zeros below a diagonal.

    The gradient is g with zeros below the diagonal.

    Parameters
    ----------
    input : tensor of at least two dims
    diagonal
        The first one that is kept: above the main one if positive, below if negative.

    Raises
    ------
    RuntimeError
        If the tensor has fewer than two dims.

    >>> import numgrad as ng
    >>> ng.triu(ng.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _triangle(input, "triu", diagonal)
