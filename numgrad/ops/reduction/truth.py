"""all, any and count_nonzero."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.kernels.reduce import reductions as kernels
from numgrad.ops.arguments.reductions import reduced_dims
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.signatures.declared import declare

__all__ = ["all", "any", "count_nonzero"]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _truth(name: str) -> Primitive:
    """Declare `all` or `any`; bytes give bytes, as in PyTorch."""
    kernel = getattr(kernels, name)

    def forward(array: Array, dims: Dims, keepdim: bool) -> Array:
        result: Array = kernel(array, dims, keepdim)
        return result.view(np.uint8) if array.dtype == np.uint8 else result

    def quick(array: Array, dims: Dims, keepdim: bool) -> Any:
        if array.dtype == np.uint8:
            return None
        return kernels.specialised(name, array.shape, array.dtype, dims, keepdim)

    return Primitive(name, "NotImplemented", forward, ["input"], [None], few=quick)


_ALL, _ANY = _truth("all"), _truth("any")


def _named_dims(dim: int | Dims | None) -> Dims | None:
    return (dim,) if isinstance(dim, int) else dim


def _call(primitive: Primitive, input: Tensor, dim: int | Dims | None, keepdim: bool) -> Tensor:
    """Reduce over some dims: here no dims at all means none, as in PyTorch."""
    dims = () if dim == () else reduced_dims(input, _named_dims(dim))
    result: Tensor = primitive.apply(input, dims=dims, keepdim=keepdim)
    return result


@declare(
    "all(Tensor input, *, Tensor? out=None)",
    "all(Tensor input, int[]? dim=None, bool keepdim=False, *, Tensor? out=None)",
    "all(Tensor input, int dim, bool keepdim=False, *, Tensor? out=None)",
    dispatched=True,
)
def all(input: Tensor, dim: int | tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """Return whether all elements are nonzero (nan is), over all dims or some.

    No gradient flows. Mirrors ``torch.all``.

    Parameters
    ----------
    input
        Any dtype; the result is bool, and uint8 for uint8.
    dim
        None: all of them. No dims at all reduce nothing.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice.

    >>> import numgrad as ng
    >>> ng.all(ng.tensor([[True, False], [True, True]]), 1)
    tensor([False,  True])
    """
    return _call(_ALL, input, dim, keepdim)


@declare(
    "any(Tensor input, *, Tensor? out=None)",
    "any(Tensor input, int[]? dim=None, bool keepdim=False, *, Tensor? out=None)",
    "any(Tensor input, int dim, bool keepdim=False, *, Tensor? out=None)",
    dispatched=True,
)
def any(input: Tensor, dim: int | tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """Return whether any element is nonzero (nan is), over all dims or some; see `all`.

    No gradient flows. Mirrors ``torch.any``.

    >>> import numgrad as ng
    >>> ng.any(ng.tensor([[False, False], [True, True]]), 1)
    tensor([False,  True])
    """
    return _call(_ANY, input, dim, keepdim)


_COUNT_NONZERO: Primitive = Primitive(
    "count_nonzero", "NotImplemented", kernels.count_nonzero, ["input"], [None]
)


@declare(
    "count_nonzero(Tensor input, int? dim=None)",
    "count_nonzero(Tensor input, int[] dim)",
    dispatched=True,
)
def count_nonzero(input: Tensor, dim: int | tuple[int, ...] | None) -> Tensor:
    """Return how many elements are not zero (nan is not), over all dims or some, as int64.

    No gradient flows. Mirrors ``torch.count_nonzero``.

    Parameters
    ----------
    input
        Any dtype.
    dim
        None or no dims at all: all of them.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice.

    >>> import numgrad as ng
    >>> ng.count_nonzero(ng.tensor([0.0, 3.0, -1.0]))
    tensor(2)
    """
    dims = reduced_dims(input, _named_dims(dim))
    result: Tensor = _COUNT_NONZERO.apply(input, dims=dims)
    return result
