"""Medians, and the elements that occur most often: median, nanmedian, mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.memory_order import in_rows
from numgrad.kernels.reduce import middles
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.core.return_types import return_type
from numgrad.ops.core.samples import sample
from numgrad.ops.reduction.extrema import shared_with_nan
from numgrad.ops.reduction.sorting import by_rows, kth_rule
from numgrad.ops.signatures.declared import declare

__all__ = ["median", "mode", "nanmedian"]

Array = np.ndarray[Any, Any]

_ORDERED = frozenset(
    map(
        np.dtype,
        ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    )
)
_BOOL = frozenset([np.dtype(np.bool_)])


def _along(find: Any, array: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    if not array.ndim:
        return array.copy(), np.zeros((), np.int64)
    values, places = map(in_rows, find(array, dim))
    if keepdim:
        return np.expand_dims(values, dim), np.expand_dims(places, dim)
    return values, places


def _declare(name: str, node: str, find: Any) -> Primitive:
    """Declare what finds one element along a dim, and where it is."""

    @by_rows
    def forward(array: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
        return _along(find, array, dim, keepdim)

    forward.__module__ = __name__

    def values(input: Tensor, **keywords: Any) -> Tensor:
        result: Tensor = FUNCTIONS[name.removesuffix("_along")](input, **keywords).values
        return result

    return Primitive(
        name,
        node,
        forward,
        ["input"],
        [kth_rule],
        outputs=("values", "indices"),
        samples=[
            lambda make: (values, [make(2, 5, distinct=True)], {"dim": 1}),
            lambda make: (values, [make(4, 2, distinct=True)], {"dim": 0, "keepdim": True}),
            lambda make: (values, [make()], {"dim": 0}),
        ],
    )


def _of_all(name: str, node: str, skips_nan: bool) -> Primitive:
    return Primitive(
        name,
        node,
        lambda array: middles.median_of_all(array, skips_nan),
        ["input"],
        [shared_with_nan],
        by_numbers=True,
        samples=[
            sample(name, (2, 3), distinct=True),
            sample(name, (4,), distinct=True),
            sample(name, ()),
        ],
    )


_MEDIAN = _of_all("median", "MedianBackward0", False)
_NANMEDIAN = _of_all("nanmedian", "NanmedianBackward0", True)
_MEDIAN_ALONG = _declare(
    "median_along", "MedianBackward1", lambda array, dim: middles.median(array, dim, False)
)
_NANMEDIAN_ALONG = _declare(
    "nanmedian_along", "NanmedianBackward1", lambda array, dim: middles.median(array, dim, True)
)
_MEDIANS = {"median": (_MEDIAN, _MEDIAN_ALONG), "nanmedian": (_NANMEDIAN, _NANMEDIAN_ALONG)}
_MODE = _declare("mode", "ModeBackward0", middles.mode)
_TYPES = {name: return_type(name, "values", "indices") for name in ("median", "nanmedian", "mode")}


def _check(name: str, kernel: str, input: Tensor, dim: int | None, taken: Any) -> int | None:
    """Return the dim, counted from the front; raise if there is none, or no order."""
    array = input._array
    at = None if dim is None else wrap_dim(dim, array.ndim)
    if at is not None and array.ndim and not array.shape[at]:
        own = name.removeprefix("nan")  # one kernel has both
        raise IndexError(f"{own}(): Expected reduction dim {at} to have non-zero size.")
    if array.dtype not in taken and (array.size or kernel == "median_out"):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")
    return at


def _median(name: str, input: Tensor, dim: int | None, keepdim: bool) -> Any:
    whole, along = _MEDIANS[name]
    at = _check(name, "median_cpu" if dim is None else "median_out", input, dim, _ORDERED)
    if at is None:
        return whole.apply(input)
    return _TYPES[name](*along.apply(input, dim=at, keepdim=keepdim))


@declare(
    "median(Tensor input)",
    "median(Tensor input, int dim, bool keepdim=False, *, Tensor[]? out=None)",
    dispatched=True,
    in_step=("input",),
)
def median(input: Tensor, dim: int | None, keepdim: bool) -> Any:
    """Return the median of all elements, or those along a dim with positions.

    Of an even number of elements it is the lower one of the two in the middle (`quantile` has what
    is between them). nan where there is one, of no elements, too. Over everything the gradient is
    shared out evenly between the elements that are equal to the median; along a dim it goes to the
    one at the position that is returned.

    Parameters
    ----------
    keepdim
        Keep the dim, with size 1.

    Raises
    ------
    IndexError
        If there is no such dim, or it has size 0.
    NotImplementedError
        If the elements are bools or complex.

    >>> import numgrad as ng
    >>> ng.median(ng.tensor([[1.0, 5.0, 2.0, 4.0], [3.0, 9.0, 7.0, 8.0]]), 1)
    torch.return_types.median(
    values=tensor([2., 7.]),
    indices=tensor([2, 2]))
    """
    return _median("median", input, dim, keepdim)


@declare(
    "nanmedian(Tensor input)",
    "nanmedian(Tensor input, int dim, bool keepdim=False, *, Tensor[]? out=None)",
    dispatched=True,
    in_step=("input",),
)
def nanmedian(input: Tensor, dim: int | None, keepdim: bool) -> Any:
    """Return the median of the elements that are numbers, nan only where none is; see `median`.

    >>> import numgrad as ng
    >>> ng.nanmedian(ng.tensor([3.0, float("nan"), 1.0]))
    tensor(1.)
    """
    return _median("nanmedian", input, dim, keepdim)


@declare(
    "mode(Tensor input, int dim=-1, bool keepdim=False, *, Tensor[]? out=None)",
    dispatched=True,
    in_step=("input",),
)
def mode(input: Tensor, dim: int, keepdim: bool) -> Any:
    """Return the elements that occur most often along a dim, and where each does so last.

    It is the least of several. nan is equal to nothing. The gradient goes to the element at the
    position that is returned.

    Parameters
    ----------
    keepdim
        Keep the dim, with size 1.

    Raises
    ------
    IndexError
        If there is no such dim, or it has size 0.
    NotImplementedError
        If the elements are complex.

    >>> import numgrad as ng
    >>> ng.mode(ng.tensor([3, 1, 2, 3, 1, 3]))
    torch.return_types.mode(
    values=tensor(3),
    indices=tensor(5))
    """
    at = _check("mode", "mode_cpu", input, dim, _ORDERED | _BOOL)
    return _TYPES["mode"](*_MODE.apply(input, dim=at, keepdim=keepdim))
