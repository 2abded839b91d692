"""Reduce elements to positions that are given for each of them: scatter_reduce."""

from __future__ import annotations

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.dims import refuse_complex_gradient
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.indexing.gathering import positions_of, scatter_into
from numgrad.ops.indexing.scattering import corner_of, fitted, named_along, read_scatter
from numgrad.ops.scattering.reduce_rules import (
    REDUCTIONS,
    Moves,
    input_gradient,
    samples_of,
    source_gradient,
)
from numgrad.ops.signatures.declared import declare

__all__ = ["scatter_reduce"]

# Reductions, with the kinds of dtypes that have none.
_REFUSED = {"mean": "b", "amax": "c", "amin": "c"}


_MOVES = Moves("scatter_reduce", "src", "gather", "scatter_add", "scatter_number")


_SCATTER_REDUCE: Primitive = Primitive(
    "scatter_reduce",
    "ScatterReduceBackward0",
    silent(
        lambda array, src, dim, index, reduce, include_self: scatter_into(
            array, src, dim, index, reduce, include_self
        )
    ),
    ["input", "src"],
    [
        lambda g, y, input, src, dim, index, reduce, include_self: input_gradient(
            _MOVES, g, y, input, corner_of(src, index), (dim, index), reduce, include_self
        ),
        lambda g, y, input, src, dim, index, reduce, include_self: fitted(
            source_gradient(
                _MOVES, g, y, input, corner_of(src, index), (dim, index), reduce, include_self
            ),
            src._array.shape,
        ),
    ],
    named=lambda own, src, dim, index, reduce, include_self: named_along(
        own, src, dim, index, reduce, include_self
    ),
    samples=[
        *samples_of(
            lambda *given, **options: scatter_reduce(*given, **options),
            lambda: positions_of([0, 0, 2], [1, 1, 1]),
            *REDUCTIONS,
        ),
        lambda make: (
            lambda x, s: scatter_reduce(x, 0, positions_of([1, 1]), s, "prod"),
            [make(2, 2), make(2, 3)],
            {},
        ),
    ],
)


@declare(
    "scatter_reduce(Tensor input, int dim, Tensor index, Tensor src, str reduce, *, "
    "bool include_self=True, Tensor? out=None)",
    inplace=True,
    dispatched=True,
    apart=("index", "src"),
    in_step=("input",),
)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> Tensor:
    """Return a copy of the input with elements of `src` combined by position in a dim.

    For dim 0, ``src[i, j]`` is one of the elements that ``y[index[i, j], j]`` is the sum, product,
    mean, maximum or minimum of. The gradient of an element is g of its position for a sum, that
    over the count for a mean, and that times the product of the other elements for a product; where
    several are the maximum, g is shared evenly between them.

    Parameters
    ----------
    index : int64 tensor
        As many dims as the input, none longer but `dim`.
    src
        Not smaller than the index in any dim, and of the input's dtype.
    reduce : {"sum", "prod", "mean", "amax", "amin"}
        Means of integers are rounded down.
    include_self
        Whether elements of the input that are written to are combined with the others; otherwise
        they are replaced.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If the index does not fit or leads outside, `src` has another dtype, or there is no such
        reduction; if a gradient of complex numbers is wanted; in the second derivative of a
        product, if two zeros are for one position.
    NotImplementedError
        For the mean of bools, and extrema of complex numbers.

    >>> import numgrad as ng
    >>> x, index = ng.tensor([1.0, 2.0]), ng.tensor([0, 0, 1])
    >>> x.scatter_reduce(0, index, ng.tensor([3.0, 5.0, 4.0]), "mean")
    tensor([3., 3.])
    """
    at, positions = read_scatter(input, dim, index, src, "scatter")
    if reduce not in REDUCTIONS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    kind = input._array.dtype.kind
    if kind in _REFUSED.get(reduce, ""):
        raise NotImplementedError(
            f'"scatter_gather_tensor_cpu_reduce_{reduce}" not implemented for '
            f"'{input.dtype.scalar_name}'"
        )
    refuse_complex_gradient("scatter_reduce", input, src)
    result: Tensor = _SCATTER_REDUCE.apply(
        input,
        src,
        dim=at,
        index=positions,
        reduce=reduce,
        include_self=include_self,
        held=(index,),
    )
    return result
