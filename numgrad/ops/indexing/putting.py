"""Write elements by their position in the flattened tensor: put."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.recorder import at_hand
from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.move.indexing import add_indexed, put_indexed
from numgrad.ops.core.places import like_input
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.indexing.gathering import flat_index, take
from numgrad.ops.movement.shape import reshape
from numgrad.ops.signatures.declared import declare

__all__ = ["put"]

Array = np.ndarray[Any, Any]


def _put(array: Array, source: Array, index: Array, accumulate: bool) -> Array:
    run = add_indexed if accumulate else put_indexed
    flat = run(array.reshape(-1), (index.reshape(-1),), source.reshape(-1))
    memory = like_input(array)
    memory[...] = flat.reshape(array.shape)
    return memory


def _rest(g: Tensor, index: Array, accumulate: bool) -> Tensor:
    """Return the gradient of the input: g but for the places that were written to."""
    if accumulate:
        return g
    zeros = wrap(np.zeros(index.shape, g._array.dtype))
    result: Tensor = _PUT.apply(g, zeros, index=index, accumulate=False)
    return result


_PUT: Primitive = Primitive(
    "put",
    "PutBackward0",
    _put,
    ["input", "source"],
    [
        _rest,
        lambda g, source_shape, index: reshape(take(g, wrap(index)), source_shape),
    ],
    linear=True,
    lies=lambda input, source: like_input(input),
    named=lambda own, source, index, accumulate: (
        own.reshape(-1)[index.reshape(-1)],
        source.reshape(-1),
        "sum" if accumulate else "put",
    ),
    samples=[
        lambda make: (lambda x, s: put(x, _at(0, 5), s), [make(2, 3), make(2)], {}),
        lambda make: (lambda x, s: put(x, _at(1, 1), s, True), [make(2, 3), make(2)], {}),
        lambda make: (lambda x, s: put(x, _at(0), s), [make(), make(1)], {}),
        lambda make: (lambda x, s: put(x, _at(), s), [make(3), make(0)], {}),
    ],
)


def _at(*positions: int) -> Tensor:
    return wrap(np.array(positions, np.int64))


@declare("put(Tensor input, Tensor index, Tensor source, bool accumulate=False)", inplace=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    """Return a copy of the input with elements put by their position in it, flattened.

    The gradient of the input is g, with zeros in those places unless elements are added; that of
    `source` is what g has there.

    Parameters
    ----------
    index : int64 tensor
        Negative positions count from the end.
    source
        As many elements as the index has, of the input's dtype.
    accumulate
        Add to what is there, for every time a place is named.

    Raises
    ------
    IndexError
        If there is no such position, or there are not as many elements as positions.
    RuntimeError
        If the index is not int64, or `source` has another dtype.

    >>> import numgrad as ng
    >>> ng.zeros(2, 2).put(ng.tensor([0, -1]), ng.tensor([5.0, 7.0]))
    tensor([[5., 0.],
            [0., 7.]])
    """
    if index._array.dtype != np.int64:
        raise RuntimeError(
            f"put_(): Expected a long tensor for index, but got {index.dtype.scalar_name}"
        )
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{input.dtype.scalar_name} and source.dtype = {source.dtype.scalar_name}"
        )
    size = index._array.size
    if source._array.size != size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source._array.size}, index.numel() = {size}"
        )
    if size and not input._array.size:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    positions = flat_index(at_hand(index._array), size=input._array.size)
    result: Tensor = _PUT.apply(
        input, source, index=positions, accumulate=accumulate, held=(index,)
    )
    return result
