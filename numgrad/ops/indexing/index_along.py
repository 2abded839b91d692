"""Index one dim by an index of one dim: index_select, index_add, index_copy and relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.graph.tensor import Tensor, fresh, wrap
from numgrad.kernels.move.indexing import add_indexed, put_indexed, take_indexed
from numgrad.kernels.move.memory_order import in_rows, laid_out_like
from numgrad.kernels.move.scatter import adder_of_rows
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.arguments.scalar_arrays import check_fits, scalar_array
from numgrad.ops.core.places import like_input
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.indexing.gathering import check_bounds, length_of, positions_of, with_dims
from numgrad.ops.indexing.positions_along import (
    check_copied,
    check_ndims_copied,
    check_selected,
    check_shape_copied,
    check_source,
    filled_positions,
    nowhere_like,
    read_vector,
    where_written,
)
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.shape import reshape
from numgrad.ops.mutation.filling import check_number
from numgrad.ops.pointwise.arithmetic import mul
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare

__all__ = [
    "dim_indices",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "read_parts",
]

Array = np.ndarray[Any, Any]
_COMPLEX_FILL = "index_fill_(): Converting complex Scalar to non-complex type is not supported"


def dim_indices(dim: int, positions: Array) -> tuple[Array | None, ...]:
    """Return indices that have positions in one dim."""
    return (*(None,) * dim, positions)


_INDEX_SELECT: Primitive = Primitive(
    "index_select",
    "IndexSelectBackward0",
    lambda array, dim, index: in_rows(
        take_indexed(with_dims(array), dim_indices(dim, index)).reshape(
            (*array.shape[:dim], index.size, *array.shape[dim + 1 :]) if array.ndim else ()
        )
    ),
    ["input"],
    [
        lambda g, input_shape, dim, index: _INDEX_ADD_TO.apply(
            fresh(np.zeros(input_shape, g._array.dtype)), g, dim=dim, index=index
        )
    ],
    linear=True,
    quick=lambda array, dim, index: (
        (lambda array, index: array.take(index, dim))
        if array.ndim and index.ndim and array.size and array.flags.c_contiguous
        else None
    ),
    samples=[
        lambda make: (index_select, [make(2, 3)], {"dim": 1, "index": positions_of(2, 0, 2)}),
        lambda make: (index_select, [make()], {"dim": 0, "index": wrap(np.array(0))}),
        lambda make: (index_select, [make(2)], {"dim": 0, "index": positions_of()}),
    ],
)


def _at(own: Array, dim: int, index: Array) -> Array:
    """Return the elements at positions of a dim."""
    return take_indexed(with_dims(own), dim_indices(dim, index))


def _add_quickly(array: Array, source: Array, dim: int, index: Array) -> Any:
    """Return what adds few rows that lie as these do; None for what is no such case."""
    if dim or not array.ndim or not index.ndim or 0 in (array.size, source.size):
        return None
    if array.size > FEW_ELEMENTS or 1 in array.shape or source.dtype != array.dtype:
        return None
    is_plain = array.flags.c_contiguous and source.flags.c_contiguous
    is_plain = is_plain and source.shape == (index.size, *array.shape[1:])
    if not is_plain:
        return None
    return adder_of_rows(array.shape[0], source.size // index.size, array.dtype)


_INDEX_ADD_TO: Primitive = Primitive(
    "index_add",
    "IndexAddBackward0",
    lambda array, source, dim, index: add_indexed(
        with_dims(array), dim_indices(dim, index), with_dims(source)
    ).reshape(array.shape),
    ["input", "source"],
    [
        lambda g: g,
        lambda g, source_shape, dim, index: reshape(
            _INDEX_SELECT.apply(g, dim=dim, index=index), source_shape
        ),
    ],
    linear=True,
    quick=_add_quickly,
    named=lambda own, source, dim, index: (_at(own, dim, index), with_dims(source), "sum"),
    samples=[
        lambda make: (
            lambda x, s: index_add(x, 0, positions_of(1, 1), s, alpha=2.0),
            [make(2, 3), make(2, 3)],
            {},
        ),
        lambda make: (lambda x, s: index_add(x, 0, wrap(np.array(0)), s), [make(), make()], {}),
    ],
)
_INDEX_COPY: Primitive = Primitive(
    "index_copy",
    "IndexCopyBackward0",
    lambda array, source, dim, index: put_indexed(
        with_dims(array), dim_indices(dim, index), with_dims(source)
    ).reshape(array.shape),
    ["input", "source"],
    [
        lambda g, dim, index: _INDEX_FILL.apply(
            g, fresh(np.zeros((), g._array.dtype)), dim=dim, index=index
        ),
        lambda g, source_shape, dim, index: reshape(
            _INDEX_SELECT.apply(g, dim=dim, index=index), source_shape
        ),
    ],
    linear=True,
    named=lambda own, source, dim, index: (_at(own, dim, index), with_dims(source)),
    samples=[
        lambda make: (
            lambda x, s: index_copy(x, 1, positions_of(2, 0), s),
            [make(2, 3), make(2, 2)],
            {},
        ),
        lambda make: (lambda x, s: index_copy(x, 0, positions_of(), s), [make(2), make(0)], {}),
    ],
)


def _fill(array: Array, value: Array, dim: int, index: Array) -> Array:
    filled = put_indexed(with_dims(array), dim_indices(dim, index), value)
    return laid_out_like(filled.reshape(array.shape), array)


_INDEX_FILL: Primitive = Primitive(
    "index_fill_tensor",
    "IndexFillBackward1",
    _fill,
    ["input", "value"],
    [
        lambda g, dim, index: _INDEX_FILL.apply(
            g, fresh(np.zeros((), g._array.dtype)), dim=dim, index=index
        ),
        lambda g, dim, index: _filled(g, dim, index),
    ],
    linear=True,
    lies=like_input,
    by_numbers=True,
    named=lambda own, value, dim, index: (_at(own, dim, index), value),
    samples=[
        lambda make: (
            lambda x, v: index_fill(x, 1, positions_of(2, 2), v),
            [make(2, 3), make()],
            {},
        ),
        lambda make: (lambda x, v: index_fill(x, 0, positions_of(), v), [make(2), make()], {}),
    ],
)
_INDEX_FILL_NUMBER: Primitive = Primitive(
    "index_fill_number",
    "IndexFillBackward0",
    lambda array, dim, index, value: _fill(array, value, dim, index),
    ["input"],
    [
        lambda g, dim, index: _INDEX_FILL.apply(
            g, fresh(np.zeros((), g._array.dtype)), dim=dim, index=index
        )
    ],
    lies=like_input,
    named=lambda own, dim, index, value: (_at(own, dim, index), value),
    samples=[
        lambda make: (index_fill, [make(2, 3)], {"dim": 1, "index": positions_of(2), "value": 2.0}),
        lambda make: (index_fill, [make()], {"dim": 0, "index": wrap(np.array(0)), "value": 2.0}),
    ],
)


def _filled(g: Tensor, dim: int, index: Array) -> Tensor:
    """Return what of g arrives at positions that were filled, those that are named twice once."""
    if type(index) is np.ndarray:
        return _INDEX_SELECT.apply(g, dim=dim, index=np.unique(index))
    nowhere = fresh(np.zeros(g._array.shape, np.bool_))  # how many there are is not known yet
    there = _INDEX_FILL_NUMBER.apply(nowhere, dim=dim, index=index, value=np.asarray(True))
    return where(there, g, fresh(np.zeros((), g._array.dtype)))


@declare(
    "index_select(Tensor input, int dim, Tensor index, *, Tensor? out=None)",
    dispatched=True,
    apart=("input", "index"),
)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the given positions of a dim, in that order.

    The gradient is g, added up at the positions.

    Parameters
    ----------
    index : int64 tensor
        One dim; positions count from the front only.

    Raises
    ------
    IndexError
        If there is no such dim or position, or the index has more dims.
    RuntimeError
        If the index is not int64 or int32.

    >>> import numgrad as ng
    >>> ng.tensor([1.0, 2.0, 3.0]).index_select(0, ng.tensor([2, 0]))
    tensor([3., 1.])
    """
    at = wrap_dim(dim, input._array.ndim)
    if index._array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index._array.dtype not in (np.int64, np.int32):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    positions = read_vector(index)
    if length_of(input, at) == 0 < positions.size and input._array.ndim > 1:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    positions = check_selected(positions, size=length_of(input, at))
    if not input._array.ndim and positions.size != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {positions.size} value(s)"
        )
    result: Tensor = _INDEX_SELECT.apply(input, dim=at, index=positions, held=(index,))
    return result


def read_parts(
    input: Tensor, dim: int, index: Tensor, source: Tensor, function: str
) -> tuple[int, Array]:
    """Return a dim and positions in it for the parts of a source, all checked but for bounds."""
    at = wrap_dim(dim, input._array.ndim)
    if index._array.ndim > 1:
        raise IndexError(
            f"{function}(): Index is supposed to be a vector, but got dim: {index._array.ndim} "
            f"with type: {index.dtype.scalar_name} and size: {list(index.shape)}"
        )
    if index._array.dtype not in (np.int64, np.int32):
        raise RuntimeError(
            f"{function}(): Expected dtype int32/int64 for index but got: {index.dtype.scalar_name}"
        )
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            f"{function}(): self ({input.dtype.scalar_name}) and source "
            f"({source.dtype.scalar_name}) must have the same scalar type"
        )
    if at and at >= source._array.ndim:
        raise RuntimeError(
            f"{function}(): Indexing dim {at} is out of bounds of the source tensor with dim "
            f"{source._array.ndim}"
        )
    positions = read_vector(index)
    check_source(input, at, positions, source, function)
    return at, positions


@declare(
    "index_add(Tensor input, int dim, Tensor index, Tensor source, *, number alpha=1, "
    "Tensor? out=None)",
    inplace=True,
    dispatched=True,
    apart=("index", "source"),
    in_step=("input",),
)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any) -> Tensor:
    """Return the input with parts of `source`, times `alpha`, added at positions of a dim.

    The gradient of the input is g, that of `source` is g at the positions, times `alpha`.

    Parameters
    ----------
    index : int64 tensor
        One dim, a position for each position of `source` in `dim`.
    source
        Of the input's shape but for `dim`, and of its dtype.

    Raises
    ------
    IndexError
        If there is no such dim or, of a vector, position; or the index has more dims.
    RuntimeError
        If there is no such position, or `source` does not fit.

    >>> import numgrad as ng
    >>> ng.zeros(3).index_add(0, ng.tensor([2, 2]), ng.tensor([1.0, 2.0]))
    tensor([0., 0., 3.])
    """
    at, positions = read_parts(input, dim, index, source, "index_add_")
    if input._array.ndim > 1 and not input._array.size:
        positions = nowhere_like(positions)
    elif input._array.ndim < 2:
        positions = check_selected(positions, size=length_of(input, at))
    else:
        positions = check_bounds(positions, size=length_of(input, at), dim=at)
    check_fits(alpha, input._array.dtype)
    kind = input._array.dtype.kind
    if kind in "iub":  # the number becomes one of the tensor's
        alpha = bool(alpha) if kind == "b" else int(alpha)
    scaled = source if alpha == 1 else mul(source, alpha)
    result: Tensor = _INDEX_ADD_TO.apply(input, scaled, dim=at, index=positions, held=(index,))
    return result


@declare(
    "index_copy(Tensor input, int dim, Tensor index, Tensor source, *, Tensor? out=None)",
    inplace=True,
    dispatched=True,
    apart=("index", "source"),
    in_step=("input",),
)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy of the input with parts of `source` put at positions of a dim.

    The gradient of the input is g with zeros at the positions, that of `source` is g there.

    Parameters
    ----------
    input, dim, index, source
        As of `index_add`.

    Raises
    ------
    IndexError
        If there is no such dim or position.
    RuntimeError
        If `source` does not fit.

    >>> import numgrad as ng
    >>> ng.zeros(3).index_copy(0, ng.tensor([2, 0]), ng.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    at = wrap_dim(dim, input._array.ndim)
    check_ndims_copied(input, index, source)
    if index._array.dtype != np.int64:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {index.dtype.scalar_name}"
        )
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{input.dtype.scalar_name} and (source) {source.dtype.scalar_name}"
        )
    positions = read_vector(index)
    check_shape_copied(input, at, positions, source)
    positions = where_written(input, at, positions, check_copied)
    result: Tensor = _INDEX_COPY.apply(input, source, dim=at, index=positions, held=(index,))
    return result


@declare(
    "index_fill(Tensor input, int dim, Tensor index, Tensor value)",
    "index_fill(Tensor input, int dim, Tensor index, number value)",
    inplace=True,
    dispatched=True,
)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return a copy of the input with one value at positions of a dim.

    The gradient of the input is g with zeros at the positions; that of a tensor `value` is the sum
    of g there.

    Parameters
    ----------
    index : int64 tensor
        Negative positions count from the end.
    value : number or 0-d tensor

    Raises
    ------
    IndexError
        If there is no such dim or position.
    RuntimeError
        If `value` has dims or does not fit the dtype.

    >>> import numgrad as ng
    >>> ng.zeros(3).index_fill(0, ng.tensor([2, 0]), 1)
    tensor([1., 0., 1.])
    """
    if isinstance(value, Tensor) and value._array.ndim:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value._array.ndim} dimension(s)."
        )
    if index._array.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    at, positions = wrap_dim(dim, input._array.ndim), read_vector(index)
    if index._array.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    positions = where_written(input, at, positions, filled_positions)
    result: Tensor
    if isinstance(value, Tensor):
        if value.dtype.is_complex and not input.dtype.is_complex:
            raise RuntimeError(_COMPLEX_FILL)
        check_number(value, input._array.dtype)
        value = cast(value, input._array.dtype)
        result = _INDEX_FILL.apply(input, value, dim=at, index=positions, held=(index,))
    else:
        if isinstance(value, complex) and not input.dtype.is_complex:
            raise RuntimeError(_COMPLEX_FILL)
        number = scalar_array(value, input._array.dtype)
        result = _INDEX_FILL_NUMBER.apply(
            input, dim=at, index=positions, value=number, held=(index,)
        )
    return result
