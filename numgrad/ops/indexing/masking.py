"""Masks: masked_select, masked_scatter, nonzero and relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.recorder import refuse_shape_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.graph.warned import warn
from numgrad.kernels.move.accumulate import private_copy
from numgrad.ops.calls.steps import read_array
from numgrad.ops.core.places import like_original
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.movement.unit_dims import expand
from numgrad.ops.mutation.filling import frozen, masked_fill
from numgrad.ops.pointwise.selection import nonzero_by_dim
from numgrad.ops.signatures.declared import declare

__all__ = ["argwhere", "masked_scatter", "masked_select", "nonzero"]

Array = np.ndarray[Any, Any]


def _mask(*values: Any) -> Tensor:
    """Return a mask for a sample."""
    return wrap(np.array(values, bool))


def _select(array: Array, mask: Array) -> Array:
    shape = broadcast_shapes([array.shape, mask.shape])
    return np.broadcast_to(array, shape)[np.broadcast_to(mask, shape)]


def _spread(array: Array, mask: Array) -> Array:
    """Return zeros with the first elements of `array` where the mask is True, in order."""
    result = np.zeros(mask.shape, array.dtype)
    result[mask] = array.reshape(-1)[: np.count_nonzero(mask)]
    return result


def _spread_to(g: Tensor, mask: Array, shape: tuple[int, ...]) -> Tensor:
    common = broadcast_shapes([shape, mask.shape])
    whole = read_array(np.broadcast_to, mask, shape=common)
    result: Tensor = _SPREAD.apply(g, mask=whole)
    return result


_MASKED_SELECT: Primitive = Primitive(
    "masked_select",
    "MaskedSelectBackward0",
    _select,
    ["input"],
    [
        lambda g, input_shape, mask, input_lies: like_original(
            _spread_to(g, mask, input_shape), input_lies
        )
    ],
    linear=True,
    counts=True,
    samples=[
        lambda make: (masked_select, [make(2, 3)], {"mask": _mask([1, 0, 1], [0, 0, 1])}),
        lambda make: (masked_select, [make(2, 1)], {"mask": _mask(1, 0, 1)}),
        lambda make: (masked_select, [make()], {"mask": wrap(np.array(True))}),
        lambda make: (masked_select, [make(2)], {"mask": _mask(0, 0)}),
    ],
)
_SPREAD: Primitive = Primitive(
    "masked_select_backward",
    "MaskedScatterBackward0",
    _spread,
    ["input"],
    [lambda g, input_shape, mask: _first_selected(g, mask, input_shape)],
    linear=True,
    samples=[
        lambda make: (
            lambda x: _SPREAD.apply(x, mask=np.array([True, False, True])),
            [make(2)],
            {},
        ),
        lambda make: (lambda x: _SPREAD.apply(x, mask=np.array([True, False])), [make(2, 2)], {}),
    ],
)


def _gathered(array: Array, mask: Array, shape: tuple[int, ...]) -> Array:
    """Return what is where the mask is True, in order, with zeros behind it, in a shape."""
    result = np.zeros(int(np.prod(shape, dtype=np.int64)), array.dtype)
    chosen = array[mask]
    result[: chosen.size] = chosen
    return result.reshape(shape)


_FIRST_SELECTED: Primitive = Primitive(
    "masked_scatter_backward",
    "MaskedScatterBackward0",
    _gathered,
    ["input"],
    [lambda g, mask: _SPREAD.apply(g, mask=mask)],
    linear=True,
    samples=[
        lambda make: (
            lambda x: _FIRST_SELECTED.apply(x, mask=np.array([True, False, True]), shape=(2, 2)),
            [make(3)],
            {},
        )
    ],
)


def _first_selected(g: Tensor, mask: Array, shape: tuple[int, ...]) -> Tensor:
    result: Tensor = _FIRST_SELECTED.apply(g, mask=mask, shape=shape)
    return result


def _masked_scatter(array: Array, source: Array, mask: Array) -> Array:
    result = private_copy(np.broadcast_to(array, mask.shape))
    result[mask] = source.reshape(-1)[: np.count_nonzero(mask)]
    return result


_MASKED_SCATTER: Primitive = Primitive(
    "masked_scatter",
    "MaskedScatterBackward0",
    _masked_scatter,
    ["input", "source"],
    [
        lambda g, mask: masked_fill(g, wrap(mask), 0),
        lambda g, mask, source_shape: _first_selected(g, mask, source_shape),
    ],
    linear=True,
    named=lambda own, source, mask: (own[mask], source.reshape(-1)[: np.count_nonzero(mask)]),
    samples=[
        lambda make: (lambda x, s: masked_scatter(x, _mask(1, 0, 1), s), [make(2, 3), make(5)], {}),
        lambda make: (lambda x, s: masked_scatter(x, _mask(0), s), [make(1), make(0)], {}),
    ],
)


@declare(
    "masked_select(Tensor input, Tensor mask, *, Tensor? out=None)",
    dispatched=True,
    apart=("input", "mask"),
)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements where the mask is True, in one dim; input and mask broadcast.

    The gradient is g where the mask is True, else 0.

    Parameters
    ----------
    mask : bool tensor

    Raises
    ------
    RuntimeError
        If the mask is not bool, or the shapes do not broadcast.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, -2.0, 3.0])
    >>> x.masked_select(x > 0)
    tensor([1., 3.])
    """
    if mask._array.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    broadcast_shapes([mask._array.shape, input._array.shape])
    result: Tensor = _MASKED_SELECT.apply(
        input, mask=frozen(mask._array, input, counts=True), held=(mask,)
    )
    return result


@declare("masked_scatter(Tensor input, Tensor mask, Tensor source)", inplace=True, dispatched=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return the input with the elements of `source`, in order, where the mask is True.

    The gradient of the input is g where the mask is False, else 0; the elements of `source` that
    were used get what g has in their places.

    Parameters
    ----------
    mask : bool tensor
        Broadcasts with the input.
    source
        At least as many elements as are True, of the input's dtype.

    Raises
    ------
    RuntimeError
        If the mask is not bool, the shapes do not broadcast, or `source` does not fit.

    >>> import numgrad as ng
    >>> ng.zeros(3).masked_scatter(ng.tensor([True, False, True]), ng.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    shape = broadcast_shapes([mask._array.shape, input._array.shape])
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{input.dtype.scalar_name} and {source.dtype.scalar_name}"
        )
    if mask._array.dtype.kind != "b":
        if mask._array.dtype == np.uint8:
            warn(
                "masked_scatter_ received a mask with dtype torch.uint8, this behavior is now "
                "deprecated,please use a mask with dtype torch.bool instead."
            )
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{mask.dtype.scalar_name}"
        )
    wide = mask if mask._array.shape == shape else expand(mask, shape)
    whole = frozen(wide._array, input, source)
    whole = _check_count(whole, size=source._array.size, ndim=len(shape))
    result: Tensor = _MASKED_SCATTER.apply(input, source, mask=whole, held=(mask,))
    return result


@at_run_time
def _check_count(mask: Array, size: int, ndim: int) -> Array:
    """Return a mask; raise if it has more elements that are True than there are to put there.

    Dims in front of its `ndim` are of masks for examples of a batch, each for itself.
    """
    if size < np.count_nonzero(mask, axis=tuple(range(-ndim, 0))).max(initial=0):
        raise RuntimeError("Number of elements of source < number of ones in mask")
    return mask


@declare("nonzero(Tensor input, *, bool as_tuple=False, Tensor? out=None)", apart=("input",))
def nonzero(input: Tensor, as_tuple: bool) -> Any:
    """Return the positions of the elements that are not 0, a row for each. No gradient flows.

    Parameters
    ----------
    as_tuple
        Return one tensor for each dim instead, with which the input can be indexed.

    >>> import numgrad as ng
    >>> ng.nonzero(ng.tensor([0.0, 2.0, 3.0]))
    tensor([[1],
            [2]])
    """
    array = input._array
    refuse_shape_of("nonzero", array)
    if as_tuple:
        return nonzero_by_dim(array)
    return wrap(np.argwhere(array).astype(np.int64, copy=False))


@declare("argwhere(Tensor input)")
def argwhere(input: Tensor) -> Any:
    """Return the positions of the elements that are not 0, a row for each; see `nonzero`.

    >>> import numgrad as ng
    >>> ng.argwhere(ng.tensor([0.0, 2.0]))
    tensor([[1]])
    """
    return nonzero(input)
