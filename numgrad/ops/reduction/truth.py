"""all, any and count_nonzero."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.kernels.reduce import reductions as kernels
from numgrad.ops.arguments.dims import accept_axis
from numgrad.ops.arguments.reductions import reduced_dims
from numgrad.ops.core.dispatch import dispatched
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.registry import public

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
        return kernels.short(name, array.shape, array.dtype, dims, keepdim)

    return Primitive(name, "NotImplemented", forward, ["input"], [None], few=quick)


_ALL, _ANY = _truth("all"), _truth("any")


def _truth_dims(function: str, input: Any, dim: Any, keepdim: Any) -> Dims:
    """Return the dims to reduce: here no dims at all means none, as in PyTorch."""
    dims = reduced_dims(function, input, dim, keepdim)
    return () if isinstance(dim, (tuple, list)) and not dim else dims


@public()
@dispatched("input")
@accept_axis
def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return whether all elements are nonzero (nan is), over all dims or some.

    No gradient flows. Mirrors ``torch.all``.

    Parameters
    ----------
    input : tensor
        Any dtype; the result is bool, and uint8 for uint8.
    dim : int, sequence of ints, or None
        None: all of them. No dims at all reduce nothing.
    keepdim : bool
        Keep the reduced dims, with size 1.

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
    result: Tensor = _ALL.apply(
        input, dims=_truth_dims("all", input, dim, keepdim), keepdim=keepdim
    )
    return result


@public()
@dispatched("input")
@accept_axis
def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return whether any element is nonzero (nan is), over all dims or some; see `all`.

    No gradient flows. Mirrors ``torch.any``.

    >>> import numgrad as ng
    >>> ng.any(ng.tensor([[False, False], [True, True]]), 1)
    tensor([False,  True])
    """
    result: Tensor = _ANY.apply(
        input, dims=_truth_dims("any", input, dim, keepdim), keepdim=keepdim
    )
    return result


_COUNT_NONZERO: Primitive = Primitive(
    "count_nonzero", "NotImplemented", kernels.count_nonzero, ["input"], [None]
)


@public()
@accept_axis
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """Return how many elements are not zero (nan is not), over all dims or some, as int64.

    No gradient flows. Mirrors ``torch.count_nonzero``.

    Parameters
    ----------
    input : tensor
        Any dtype.
    dim : int, sequence of ints, or None
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
    dims = reduced_dims("count_nonzero", input, dim)
    result: Tensor = _COUNT_NONZERO.apply(input, dims=dims)
    return result
