"""argmax, argmin, cummax, cummin: positions of extreme elements."""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.kernels.reduce import argextrema, scans
from numgrad.kernels.reduce.reductions import require_elements
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.arguments.reductions import reduced_dims
from numgrad.ops.core import return_types
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.samples import sample
from numgrad.ops.reduction.take_along import place_along
from numgrad.ops.signatures.declared import declare

__all__ = ["argmax", "argmin", "cummax", "cummin"]


def _declare(name: str) -> Primitive:
    """Declare `argmax` or `argmin`."""
    return Primitive(
        name,
        "NotImplemented",
        getattr(argextrema, name),
        ["input"],
        [None],
        few=lambda array, dims, keepdim: argextrema.specialised(
            name, array.shape, array.dtype, dims, keepdim
        ),
    )


_ARGMAX, _ARGMIN = _declare("argmax"), _declare("argmin")


def _require_numbers(name: str, input: Tensor) -> None:
    kind = {"b": "bool", "c": "complex"}.get(input._array.dtype.kind)
    if kind is not None:
        raise RuntimeError(f"{name}(): does not support {kind} input")


def _position(primitive: Primitive, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    name = primitive.name
    if dim is None:
        dims = reduced_dims(input, None)
        require_elements(name, input._array, dims, all_dims=True)
    else:
        _require_numbers(name, input)
        position = wrap_dim(dim, input._array.ndim)
        dims = (position,) if input._array.ndim else ()
        require_elements(name, input._array, dims)
    result: Tensor = primitive.apply(input, dims=dims, keepdim=keepdim)
    return result


@declare(
    "argmax(Tensor input, int? dim=None, bool keepdim=False, *, Tensor? out=None)", dispatched=True
)
def argmax(input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """Return the position of the greatest element along one dim, or among all in C order, as int64.

    The first of equal elements, and the first nan, is found. No gradient flows. Mirrors
    ``torch.argmax``.

    Parameters
    ----------
    input
        Real numbers.
    dim
        Without it: the position in the flattened tensor.

    Raises
    ------
    IndexError
        If there is no such dim, or it has size 0; if none is named and there are no elements.
    RuntimeError
        If the elements are bools or complex.

    >>> import numgrad as ng
    >>> ng.argmax(ng.tensor([[1.0, 2.0], [4.0, 3.0]]), 1)
    tensor([1, 0])
    """
    return _position(_ARGMAX, input, dim, keepdim)


@declare(
    "argmin(Tensor input, int? dim=None, bool keepdim=False, *, Tensor? out=None)", dispatched=True
)
def argmin(input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """Return the position of the least element along one dim, or among all; see `argmax`.

    No gradient flows. Mirrors ``torch.argmin``.

    >>> import numgrad as ng
    >>> ng.argmin(ng.tensor([[1.0, 2.0], [4.0, 3.0]]))
    tensor(0)
    """
    return _position(_ARGMIN, input, dim, keepdim)


def _extreme(name: str) -> Primitive:
    """Declare a cumulative extreme: the gradient of each result goes to the element it is."""
    scan = getattr(scans, name)

    return Primitive(
        name,
        f"{name.title()}Backward0",
        scan,
        ["input"],
        [
            lambda g0, indices, input_shape, dim: place_along(
                g0, indices, dim=dim, keepdim=True, shape=input_shape
            )
        ],
        outputs=("values", "indices"),
        samples=[
            sample(name, (5,), distinct=True, dim=0),
            sample(name, (3, 2), distinct=True, dim=-2),
            sample(name, (), dim=0),
            sample(name, (2, 0), dim=1),
        ],
    )


def _extreme_dim(name: str, input: Tensor, dim: int) -> int:
    """Return the dim; PyTorch does not look at it if there are no elements."""
    array = input._array
    if array.size == 0:
        return 0
    if array.ndim == 0 and dim not in (0, -1):
        raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    return wrap_dim(dim, array.ndim)


_CUMMAX, _CUMMIN = _extreme("cummax"), _extreme("cummin")


@declare("cummax(Tensor input, int dim, *, Tensor[]? out=None)", dispatched=True)
def cummax(input: Tensor, dim: int) -> Any:
    """Return the greatest element so far along `dim`, and its position.

    The last of equal elements counts, and nan is greater than anything. The gradient of each value
    goes to the element that it is. Mirrors ``torch.cummax``.

    Parameters
    ----------
    input
        Real.

    Returns
    -------
    values, indices : tensor
        A named tuple; both have the input's shape, the indices are int64.

    Raises
    ------
    NotImplementedError
        If the elements are complex.
    IndexError
        If there is no such dim.

    >>> import numgrad as ng
    >>> ng.cummax(ng.tensor([3.0, 1.0, 4.0]), 0).values
    tensor([3., 3., 4.])
    """
    return return_types.cummax(*_CUMMAX.apply(input, dim=_extreme_dim("cummax", input, dim)))


@declare("cummin(Tensor input, int dim, *, Tensor[]? out=None)", dispatched=True)
def cummin(input: Tensor, dim: int) -> Any:
    """Return the least element so far along `dim`, and its position; see `cummax`.

    The gradient of each value goes to the element that it is.

    >>> import numgrad as ng
    >>> ng.cummin(ng.tensor([3.0, 1.0, 4.0]), 0).indices
    tensor([0, 1, 1])
    """
    return return_types.cummin(*_CUMMIN.apply(input, dim=_extreme_dim("cummin", input, dim)))
