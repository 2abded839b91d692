"""Sorting: sort, argsort, msort, topk, kthvalue."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from numgrad.base.tuning import TOPK_PART
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.along import along
from numgrad.kernels.move.memory_order import empty_like, in_rows, laid_out_like
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.return_types import return_type
from numgrad.ops.indexing.gathering import spread_along
from numgrad.ops.movement.unit_dims import unsqueeze
from numgrad.ops.signatures.declared import declare

__all__ = ["argsort", "by_rows", "kth_rule", "kthvalue", "msort", "sort", "topk"]

Array = np.ndarray[Any, Any]


_sort_type = return_type("sort", "values", "indices")
_topk_type = return_type("topk", "values", "indices")
_kthvalue_type = return_type("kthvalue", "values", "indices")


def by_rows(function: Any) -> Any:
    """Let a forward along a dim take as many dims as there may be; a decorator.

    NumPy sorts arrays of up to 32. Of more, those before the dim and those behind count as one.
    """

    @functools.wraps(function)
    def run(array: Array, dim: int, **parameters: Any) -> tuple[Array, ...]:
        if array.ndim <= 32:
            found: tuple[Array, ...] = function(array, dim, **parameters)
            return found
        before, behind = array.shape[:dim], array.shape[dim + 1 :]
        flat = array.reshape(math.prod(before), array.shape[dim], math.prod(behind))
        results = function(flat, 1, **parameters)
        return tuple([part.reshape(*before, *part.shape[1:-1], *behind) for part in results])

    return run


def _order(array: Array, dim: int, descending: bool) -> Array:
    """Return the positions in order; equal elements keep theirs, and nan counts as the greatest."""
    if not array.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return array.argsort(dim, kind="stable")
    # Sorted from the back to the front, so that equal elements are still in their order.
    back = (*(slice(None),) * dim, slice(None, None, -1))
    backwards = array[back].argsort(dim, kind="stable")[back]
    return array.shape[dim] - 1 - backwards


def _at(array: Array, order: Array, dim: int) -> tuple[Array, Array]:
    if not array.ndim:
        return array.copy(), order
    return in_rows(along(array, order, dim)), in_rows(order)


@by_rows
def _sort(array: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    values, order = _at(array, _order(array, dim, descending), dim)
    return laid_out_like(values, array), laid_out_like(order, array)


def _quick_sort(array: Array, dim: int, descending: bool, k: int | None = None) -> Any:
    """Return what sorts few elements that lie as these do, and keeps `k` along the dim."""
    ndim, shape = array.ndim, array.shape
    if not 0 < ndim <= 32 or 1 in shape:
        return None
    kept: Any = (*(slice(None),) * dim, slice(k))
    first = np.arange(array.size).reshape(shape).take([0], dim)  # elements that are first there
    step = math.prod(shape[dim + 1 :])

    def run(array: Array) -> tuple[Array, Array]:
        order = _order(array, dim, descending)
        if k is not None:
            order = order[kept]
        order = in_rows(order)
        return array.take(order if ndim == 1 else first + order * step), order

    return run


def _quick_topk(array: Array, dim: int, k: int, largest: bool) -> Any:
    if array.ndim and 0 < k <= array.shape[dim] // TOPK_PART:
        return None
    return _quick_sort(array, dim, largest, k)


@by_rows
def _topk(array: Array, dim: int, k: int, largest: bool) -> tuple[Array, Array]:
    if array.ndim and 0 < k <= array.shape[dim] // TOPK_PART:
        return _few(array, dim, k, largest)
    order = _order(array, dim, largest)
    if array.ndim:
        order = order[(*(slice(None),) * dim, slice(k))]
    return _at(array, order, dim)


def _few(array: Array, dim: int, k: int, largest: bool) -> tuple[Array, Array]:
    """Return the first k in order: they are found without sorting the others."""
    before = (slice(None),) * dim
    places = np.argpartition(array, -k if largest else k - 1, dim)
    chosen = np.sort(places[(*before, slice(-k, None) if largest else slice(k))], dim)
    order = _order(along(array, chosen, dim), dim, largest)
    return _at(array, along(chosen, order, dim), dim)


@by_rows
def _kthvalue(array: Array, dim: int, k: int, keepdim: bool) -> tuple[Array, Array]:
    if not array.ndim:
        return _at(array, _order(array, dim, False), dim)
    order = np.argpartition(array, k - 1, dim)
    values, indices = _at(array, order[(*(slice(None),) * dim, slice(k - 1, k))], dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def _rule(g0: Tensor, indices: Tensor, input_shape: tuple[int, ...], dim: int) -> Any:
    return spread_along(g0, indices._array, input_shape, dim)


def kth_rule(
    g0: Tensor, indices: Tensor, input_shape: tuple[int, ...], dim: int, keepdim: bool
) -> Any:
    """Return g, put back to where the only elements along a dim came from."""
    places = indices._array
    if input_shape and not keepdim:
        g0, places = unsqueeze(g0, dim), places[(*(slice(None),) * dim, None)]
    return spread_along(g0, places, input_shape, dim)


def _declare(
    name: str, node: str, forward: Any, samples: Any, rule: Any = _rule, few: Any = None
) -> Primitive:
    return Primitive(
        name,
        node,
        forward,
        ["input"],
        [rule],
        outputs=("values", "indices"),
        lies=(lambda input: empty_like(input)) if forward is _sort else None,
        few=few,
        samples=samples,
    )


_SORT, _SORT_STABLE = (
    _declare(
        name,
        node,
        _sort,
        [
            lambda make, stable=stable: (
                _values(sort),
                [make(2, 3, distinct=True)],
                {"dim": 0, "stable": stable},
            ),
            lambda make, stable=stable: (
                _values(sort),
                [make(3, distinct=True)],
                {"descending": True, "stable": stable},
            ),
            lambda make, stable=stable: (_values(sort), [make()], {"stable": stable}),
            lambda make, stable=stable: (_values(sort), [make(0)], {"stable": stable}),
        ],
        few=_quick_sort,
    )
    for name, node, stable in (
        ("sort", "SortBackward0", None),
        ("sort_stable", "SortBackward1", True),
    )
)
_TOPK = _declare(
    "topk",
    "TopkBackward0",
    _topk,
    [
        lambda make: (_values(topk), [make(2, 4, distinct=True)], {"k": 2}),
        lambda make: (
            _values(topk),
            [make(3, 2, distinct=True)],
            {"k": 1, "dim": 0, "largest": False},
        ),
        lambda make: (_values(topk), [make()], {"k": 1}),
    ],
    few=_quick_topk,
)
_KTHVALUE = _declare(
    "kthvalue",
    "KthvalueBackward0",
    _kthvalue,
    [
        lambda make: (_values(kthvalue), [make(2, 4, distinct=True)], {"k": 3}),
        lambda make: (
            _values(kthvalue),
            [make(2, 3, distinct=True)],
            {"k": 1, "dim": 0, "keepdim": True},
        ),
        lambda make: (_values(kthvalue), [make()], {"k": 1}),
    ],
    kth_rule,
)


def _values(function: Any) -> Any:
    """Return a function that gives only the values; the positions have no derivative."""

    def values(input: Tensor, **keywords: Any) -> Tensor:
        result: Tensor = function(input, **keywords).values
        return result

    return values


def _check_real(input: Tensor, function: str) -> None:
    """Raise if the elements have no order; the words begin with a blank in PyTorch, too."""
    if input._array.dtype.kind == "c":
        raise RuntimeError(f" {function} does not support complex dtypes on CPU")


@declare(
    "sort(Tensor input, *, bool? stable, int dim=-1, bool descending=False, Tensor[]? out=None)",
    "sort(Tensor input, int dim=-1, bool descending=False, *, Tensor[]? out=None)",
    dispatched=True,
    in_step=("input",),
)
def sort(input: Tensor, dim: int, descending: bool, stable: bool | None) -> Any:
    """Return the elements in order along a dim, and the positions they came from.

    nan counts as the greatest. Equal elements keep their order. The gradient is g, put back to
    where the elements came from.

    Parameters
    ----------
    descending
        The greatest first.
    stable
        Changes nothing: the order of equal elements is kept anyway.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If the elements are complex.

    >>> import numgrad as ng
    >>> ng.sort(ng.tensor([3.0, 1.0, 2.0])).values
    tensor([1., 2., 3.])
    """
    at = wrap_dim(dim, input._array.ndim)
    _check_real(input, "Sort")
    primitive = _SORT if stable is None else _SORT_STABLE
    return _sort_type(*primitive.apply(input, dim=at, descending=descending))


@declare(
    "argsort(Tensor input, *, bool stable, int dim=-1, bool descending=False, Tensor? out=None)",
    "argsort(Tensor input, int dim=-1, bool descending=False)",
    dispatched=True,
)
def argsort(input: Tensor, dim: int, descending: bool, stable: bool | None) -> Tensor:
    """Return the positions that put the elements in order along a dim; see `sort`.

    No gradient flows.

    >>> import numgrad as ng
    >>> ng.argsort(ng.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    how = {} if stable is None else {"stable": stable}
    result: Tensor = sort(input, dim=dim, descending=descending, **how).indices
    return result


@declare("msort(Tensor input, *, Tensor? out=None)", dispatched=True, in_step=("input",))
def msort(input: Tensor) -> Tensor:
    """Return the elements in ascending order along the first dim; see `sort`.

    >>> import numgrad as ng
    >>> ng.msort(ng.tensor([3.0, 1.0, 2.0]))
    tensor([1., 2., 3.])
    """
    result: Tensor = sort(input, 0).values
    return result


@declare(
    "topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True, *, "
    "Tensor[]? out=None)",
    dispatched=True,
    in_step=("input",),
)
def topk(input: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    """Return the k greatest (or smallest) elements along a dim, and where they came from.

    nan counts as the greatest. The gradient is g, put back to where the elements came from.

    Parameters
    ----------
    largest
        The greatest; otherwise the smallest.
    sorted
        Changes nothing: they always are.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If there are fewer than k, or the elements are complex.

    >>> import numgrad as ng
    >>> ng.topk(ng.tensor([3.0, 1.0, 2.0]), 2).values
    tensor([3., 2.])
    """
    shape = input._array.shape
    at = wrap_dim(dim, len(shape))
    if not 0 <= k <= (shape[at] if shape else 1):
        raise RuntimeError("selected index k out of range")
    _check_real(input, "topk")
    return _topk_type(*_TOPK.apply(input, dim=at, k=k, largest=largest))


@declare(
    "kthvalue(Tensor input, int k, int dim=-1, bool keepdim=False, *, Tensor[]? out=None)",
    dispatched=True,
    apart=("input",),
)
def kthvalue(input: Tensor, k: int, dim: int, keepdim: bool) -> Any:
    """Return the k-th smallest element along a dim, and where it came from; k counts from 1.

    nan counts as the greatest. The gradient is g, put back to where the element came from.

    Parameters
    ----------
    keepdim
        Keep the dim, with size 1.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If there are fewer than k, or the elements are complex.

    >>> import numgrad as ng
    >>> ng.kthvalue(ng.tensor([3.0, 1.0, 2.0]), 2).values
    tensor(2.)
    """
    shape = input._array.shape
    at = wrap_dim(dim, len(shape))
    if not 1 <= k <= (shape[at] if shape else 1):
        raise RuntimeError("kthvalue(): selected number k out of range for dimension " + str(at))
    if input._array.dtype.kind == "c":
        raise NotImplementedError(
            f"\"kthvalue_cpu\" not implemented for '{input.dtype.scalar_name}'"
        )
    return _kthvalue_type(*_KTHVALUE.apply(input, dim=at, k=k, keepdim=keepdim))
