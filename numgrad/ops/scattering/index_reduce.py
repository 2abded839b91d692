"""Reduce the parts of a tensor to positions of a dim: index_reduce."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.indexing import reduce_indexed, take_indexed
from numgrad.ops.arguments.dims import refuse_complex_gradient
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.indexing.gathering import length_of, positions_of, with_dims
from numgrad.ops.indexing.index_along import dim_indices, read_parts
from numgrad.ops.indexing.positions_along import check_selected
from numgrad.ops.movement.shape import reshape
from numgrad.ops.scattering.reduce_rules import (
    REDUCTIONS,
    Moves,
    input_gradient,
    samples_of,
    source_gradient,
)
from numgrad.ops.signatures.declared import declare

__all__ = ["index_reduce"]

Array = np.ndarray[Any, Any]
_REDUCTIONS = tuple([each for each in REDUCTIONS if each != "sum"])  # that is `index_add`


@silent
def _index_reduce(
    array: Array, source: Array, dim: int, index: Array, reduce: str, include_self: bool
) -> Array:
    places = dim_indices(dim, index)
    found = reduce_indexed(with_dims(array), places, with_dims(source), reduce, include_self)
    return found.reshape(array.shape)


_MOVES = Moves("index_reduce", "source", "index_select", "index_add", "index_fill_number")


_INDEX_REDUCE: Primitive = Primitive(
    "index_reduce",
    "IndexReduceBackward0",
    _index_reduce,
    ["input", "source"],
    [
        lambda g, y, input, source, dim, index, reduce, include_self: input_gradient(
            _MOVES, g, y, input, source, (dim, index), reduce, include_self
        ),
        lambda g, y, input, source, dim, index, reduce, include_self: reshape(
            source_gradient(_MOVES, g, y, input, source, (dim, index), reduce, include_self),
            source._array.shape,
        ),
    ],
    named=lambda own, source, dim, index, reduce, include_self: (
        take_indexed(with_dims(own), dim_indices(dim, index)),
        with_dims(source),
        reduce,
        include_self,
    ),
    samples=samples_of(
        lambda *given, **options: index_reduce(*given, **options),
        lambda: positions_of(0, 0, 2),
        *_REDUCTIONS,
    ),
)


# The kernels that PyTorch lacks for bools and complex numbers in several dims.
_MISSING = {
    ("c", "amax"): "maximum_cpu",
    ("c", "amin"): "minimum_cpu",
    ("b", "mean"): "div_floor_cpu",
}


def _check_kind(input: Tensor, reduce: str, include_self: bool) -> None:
    """Raise where PyTorch has no kernel for bools or complex numbers."""
    kind = input._array.dtype.kind
    if kind not in "cb":
        return
    kernel = _MISSING.get((kind, reduce)) if input._array.ndim > 1 else "index_func_"
    if not include_self:
        kernel = "index_reduce_func_exclude_input_init"
    if kernel is not None:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")


@declare(
    "index_reduce(Tensor input, int dim, Tensor index, Tensor source, str reduce, *, "
    "bool include_self=True, Tensor? out=None)",
    inplace=True,
    dispatched=True,
    apart=("index", "source"),
    in_step=("input",),
)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool
) -> Tensor:
    """Return a copy of the input with parts of `source` combined at positions of a dim.

    For dim 0, ``source[i]`` is one of those that ``y[index[i]]`` is the product, mean, maximum or
    minimum of; `index_add` has the sum. Gradients are those of `scatter_reduce`.

    Parameters
    ----------
    index : int64 tensor
        One dim, a position for each position of `source` in `dim`.
    source
        Of the input's shape but for `dim`, and of its dtype.
    reduce : {"prod", "mean", "amax", "amin"}
        Means of integers are rounded down.
    include_self
        Whether parts of the input that are written to are combined with the others; otherwise they
        are replaced.

    Raises
    ------
    IndexError
        If there is no such dim or position, or the index has more dims.
    RuntimeError
        If `source` does not fit, or there is no such reduction; if a gradient of complex numbers
        is wanted; in the second derivative of a product, if two zeros are for one position.
    NotImplementedError
        For bools and complex numbers, unless `include_self` and there are several dims; for their
        mean, and extrema of complex numbers, always.

    >>> import numgrad as ng
    >>> x, index = ng.tensor([1.0, 2.0]), ng.tensor([0, 0])
    >>> x.index_reduce(0, index, ng.tensor([3.0, 5.0]), "prod")
    tensor([15.,  2.])
    """
    if reduce not in _REDUCTIONS:
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    at, positions = read_parts(input, dim, index, source, "index_reduce_")
    _check_kind(input, reduce, include_self)
    refuse_complex_gradient("index_reduce", input, source)
    positions = check_selected(positions, size=length_of(input, at))
    result: Tensor = _INDEX_REDUCE.apply(
        input,
        source,
        dim=at,
        index=positions,
        reduce=reduce,
        include_self=include_self,
        held=(index,),
    )
    return result
