"""Permute dims: permute, transpose, T, movedim and relatives."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.registry import public_property
from numgrad.ops.movement.slicing import alias
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.signatures.declared import declare

__all__ = ["adjoint", "movedim", "permute", "t", "transpose"]

_PERMUTE: Primitive = Primitive(
    "permute",
    "PermuteBackward0",
    lambda array, dims: array.transpose(dims),
    ["input"],
    [lambda g, dims: permute(g, tuple(np.argsort(dims).tolist()))],
    quick=lambda array, dims: methodcaller("transpose", dims),
    view=True,
    linear=True,
    samples=[
        lambda make: (permute, [make(2, 3, 4)], {"dims": (2, 0, 1)}),
        lambda make: (permute, [make()], {"dims": ()}),
        lambda make: (permute, [make(0, 2)], {"dims": (1, 0)}),
    ],
)
_TRANSPOSE: Primitive = Primitive(
    "transpose",
    "TransposeBackward0",
    lambda array, dim0, dim1: array.swapaxes(dim0, dim1) if array.ndim else array[...],
    ["input"],
    [lambda g, dim0, dim1: transpose(g, dim0, dim1)],
    quick=lambda array, dim0, dim1: methodcaller("swapaxes", dim0, dim1) if array.ndim else None,
    view=True,
    linear=True,
    samples=[
        lambda make: (transpose, [make(2, 3, 4)], {"dim0": 0, "dim1": -1}),
        lambda make: (transpose, [make()], {"dim0": 0, "dim1": 0}),
        lambda make: (transpose, [make(0, 2)], {"dim0": 0, "dim1": 1}),
    ],
)
_T: Primitive = Primitive(
    "t",
    "TBackward0",
    lambda array: array.transpose(),
    ["input"],
    [lambda g: t(g)],
    quick=lambda array: methodcaller("transpose"),
    view=True,
    linear=True,
    samples=[
        lambda make: (t, [make(2, 3)], {}),
        lambda make: (t, [make(2)], {}),
        lambda make: (t, [make()], {}),
        lambda make: (t, [make(0, 2)], {}),
    ],
)


@declare("permute(Tensor input, int[] dims)", dispatched=True)
def permute(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return a view with the dims in another order.

    The gradient is g with its dims put back.

    Parameters
    ----------
    dims
        Which dim of the input comes first, second, ...

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is missing or named twice.

    >>> import numgrad as ng
    >>> ng.permute(ng.ones(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    ndim = input._array.ndim
    if len(dims) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal "
            f"to len(dims) = {len(dims)}"
        )
    positions = tuple(wrap_dim(dim, ndim) for dim in dims)
    if len(set(positions)) < ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    result: Tensor = _PERMUTE.apply(input, dims=positions)
    return result


@declare("transpose(Tensor input, int dim0, int dim1)", aliases=("swapdims",), dispatched=True)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view with two dims exchanged.

    The gradient is g with the same dims exchanged.

    Parameters
    ----------
    dim0, dim1
        The dims.

    Raises
    ------
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.ones(2, 3, 4).transpose(0, 1).shape
    torch.Size([3, 2, 4])
    """
    ndim = input._array.ndim
    if not 0 <= dim0 < ndim:
        dim0 = wrap_dim(dim0, ndim)
    if not 0 <= dim1 < ndim:
        dim1 = wrap_dim(dim1, ndim)
    result: Tensor = _TRANSPOSE.apply(input, dim0=dim0, dim1=dim1)
    return result


@declare("swapaxes(Tensor input, int axis0, int axis1)", dispatched=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Return a view with two dims exchanged; `transpose` by NumPy's name.

    >>> import numgrad as ng
    >>> ng.ones(2, 3, 4).swapaxes(0, 1).shape
    torch.Size([3, 2, 4])
    """
    return transpose(input, axis0, axis1)


@declare("t(Tensor input)", dispatched=True)
def t(input: Tensor) -> Tensor:
    """Return the transpose of a matrix as a view; a tensor of fewer dims as it is.

    The gradient is the transpose of g.

    Raises
    ------
    RuntimeError
        If the tensor has more than two dims.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).t().shape
    torch.Size([3, 2])
    """
    if input._array.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D"
        )
    result: Tensor = _T.apply(input)
    return result


def _reversed(input: Tensor) -> Tensor:
    """Return a view with all dims in reverse order: ``input.T``.

    >>> import numgrad as ng
    >>> ng.ones(2, 3).T.shape
    torch.Size([3, 2])
    """
    ndim = input._array.ndim
    if ndim == 0:
        warn("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    elif ndim != 2:
        warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
            "deprecated and it will throw an error in a future release. Consider `x.mT` to "
            "transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to "
            "reverse the dimensions of a tensor."
        )
    return _all_reversed(input)


@declare("_all_reversed(Tensor input)", function=False, method=False, dispatched=True)
def _all_reversed(input: Tensor) -> Tensor:
    """Return a view with all dims in the opposite order."""
    return permute(input, tuple(range(input._array.ndim - 1, -1, -1)))


def _matrices(input: Tensor, name: str) -> None:
    """Raise unless the last two dims are those of matrices."""
    if input._array.ndim == 1:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor."
        )


@declare("_matrix_transpose(Tensor input)", function=False, method=False, dispatched=True)
def _matrix_transpose(input: Tensor) -> Tensor:
    """Return a view with the last two dims exchanged: ``input.mT``.

    >>> import numgrad as ng
    >>> ng.ones(2, 3, 4).mT.shape
    torch.Size([2, 4, 3])
    """
    _matrices(input, "mT")
    return transpose(input, -2, -1) if input._array.ndim else input


def _conjugate_transpose(input: Tensor) -> Tensor:
    """Return a matrix transposed and conjugated: ``input.H``.

    >>> import numgrad as ng
    >>> ng.tensor([[1j, 2.0]]).H.shape
    torch.Size([2, 1])
    """
    if input._array.ndim not in (0, 2):
        advice = (
            "" if input._array.ndim < 2 else (" For batches of matrices, consider using tensor.mH")
        )
        raise RuntimeError(
            "tensor.H is only supported on matrices (2-D tensors). Got "
            f"{input._array.ndim}-D tensor.{advice}"
        )
    return _adjoint(input, "H")


def _adjoint(input: Tensor, name: str) -> Tensor:
    """Return matrices transposed and conjugated."""
    _matrices(input, name)
    result: Tensor = conj(transpose(input, -2, -1)) if input._array.ndim else conj(input)
    return result


@declare("adjoint(Tensor input)", dispatched=True)
def adjoint(input: Tensor) -> Tensor:
    """Return matrices transposed and conjugated; a view if they are real.

    The gradient is the adjoint of g.

    Raises
    ------
    RuntimeError
        If the tensor has one dim.

    >>> import numgrad as ng
    >>> ng.ones(2, 3, 4).adjoint().shape
    torch.Size([2, 4, 3])
    """
    return _adjoint(input, "adjoint()")


public_property("T", _reversed)
public_property("mT", _matrix_transpose)
public_property("H", _conjugate_transpose)
public_property("mH", lambda input: _adjoint(input, "mH"))


@declare(
    "movedim(Tensor input, int[] source, int[] destination)",
    "movedim(Tensor input, int source, int destination)",
    aliases=("moveaxis",),
    dispatched=True,
)
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Return a view with some dims moved; the others keep their order.

    The gradient is g with the dims moved back.

    Parameters
    ----------
    source, destination
        Which dims to move, and to where.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice, or there are more dims than places.

    >>> import numgrad as ng
    >>> ng.ones(2, 3, 4).movedim(0, -1).shape
    torch.Size([3, 4, 2])
    """
    ndim = input._array.ndim
    given_from = list(source) if isinstance(source, tuple) else [source]
    given_to = list(destination) if isinstance(destination, tuple) else [destination]
    if len(given_from) != len(given_to):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({given_from} dims) should "
            f"contain the same number of dims as destination ({given_to} dims)"
        )
    sources = [wrap_dim(dim, ndim) for dim in given_from]
    targets = [wrap_dim(dim, ndim) for dim in given_to]
    for name, dims, given in (
        ("source", sources, given_from),
        ("destination", targets, given_to),
    ):
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({given})")
    if not ndim:
        return alias(input)
    order = [dim for dim in range(ndim) if dim not in sources]
    for target, dim in sorted(zip(targets, sources, strict=True)):
        order.insert(target, dim)
    return permute(input, tuple(order))
