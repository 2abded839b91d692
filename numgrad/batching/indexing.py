"""Batching rules of indexing: where examples have indices of their own, one for the example first.

``input[indices]`` puts the dims of the indices where the first of them stood, if they stand beside
each other, and else in front. So with an example's index in front of all, or a slice over the
examples, these dims may come to stand elsewhere, and are moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.batching.memory import Part
from numgrad.graph.tensor import Tensor, fresh
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.unit_dims import expand

__all__ = ["INDEXING"]

Indices = tuple[Part | None, ...]


class _Moved:
    """How indices of an example become those of all examples.

    Attributes
    ----------
    indices : tuple of array or None
        Those of the whole batch.
    order : list of int
        The dims of what these pick, such that it becomes the examples' dim, and then what each
        example picks.
    """

    def __init__(self, size: int, ndim: int, indices: Indices, whole: bool = True) -> None:
        given = [(at, part) for at, part in enumerate(indices) if part is not None]
        count = max(part.ndim for _, part in given)
        first, last = given[0][0], given[-1][0]
        beside = last - first + 1 == len(given)
        start = first if beside else 0  # where the dims of an example's indices stand
        rest = ndim - len(given)
        self.ndim = count + rest
        shared = not any(part.batched for _, part in given)
        found = [None if part is None else part.aligned(count)._array for part in indices]
        if shared and not whole:
            raise ValueError("nothing here is a batch")
        if shared:
            self.indices = (None, *found)
            # Not beside each other: their dims stand in front of the examples', too.
            self.order = list(range(1 + self.ndim))
            if not beside:
                self.order = [count, *range(count), *range(count + 1, 1 + self.ndim)]
            return
        if whole:
            number = fresh(np.arange(size).reshape(size, *([1] * count)))
            self.indices = (number._array, *found)
            # All of them stand in front, if they are not beside that of the example anyway.
            at = 1
        else:
            self.indices = tuple(found)
            at = 1 + start  # behind the examples' dim, which stands where theirs do
        behind = [dim for dim in range(1 + self.ndim) if not at - 1 <= dim < at + count]
        own = list(range(at, at + count))
        self.order = [at - 1, *behind[:start], *own, *behind[start:]]

    def back(self) -> list[int]:
        """Return the dims that undo the order."""
        return sorted(range(len(self.order)), key=self.order.__getitem__)


def _permuted(tensor: Tensor, order: Sequence[int]) -> Tensor:
    if list(order) == list(range(len(order))):
        return tensor
    result: Tensor = CATALOGUE["permute"].apply(tensor, dims=tuple(order))
    return result


def _index(size: int, input: Part, indices: Indices) -> Tensor:
    moved = _Moved(size, input.ndim, indices, input.batched)
    found = CATALOGUE["index"].apply(input.tensor, indices=moved.indices)
    return _permuted(found, moved.order)


def _index_backward(size: int, input: Part, shape: tuple[int, ...], indices: Indices) -> Tensor:
    moved = _Moved(size, len(shape), indices)
    picked = _permuted(input.every(size), moved.back())
    result: Tensor = CATALOGUE["index_backward"].apply(
        picked, shape=(size, *shape), indices=moved.indices
    )
    return result


def _index_put(name: str) -> Callable[..., Tensor]:
    def rule(size: int, input: Part, values: Part, indices: Indices) -> Tensor:
        moved = _Moved(size, input.ndim, indices)
        tensor = values.tensor if values.batched else reshape(values.tensor, (1, *values.shape))
        aligned = Part(tensor, True).aligned(moved.ndim)
        written = _permuted(aligned, moved.back())
        result: Tensor = CATALOGUE[name].apply(input.every(size), written, indices=moved.indices)
        return result

    return rule


def _along(name: str, scatters: bool = False) -> Callable[..., Tensor]:
    """Return the rule of what has an index of an example's dims."""

    def rule(size: int, *parts: Part, dim: int, index: Part, **parameters: Any) -> Tensor:
        shape = parameters.pop("shape", None)
        scalar = not parts[0].ndim and not shape
        operands = [part.every(size) for part in parts]
        every = index.every(size)
        if scalar:
            operands = [reshape(operand, (size, 1)) for operand in operands]
            every = reshape(every, (size, -1 if index.ndim else 1))
        if shape is not None:
            parameters["shape"] = (size, *shape) if shape else (size, 1)
        if "value" in parameters and type(parameters["value"]) is Part:
            parameters["value"] = parameters["value"].tensor._array
        found = CATALOGUE[name].apply(*operands, dim=dim + 1, index=every._array, **parameters)
        return (
            reshape(found, (size, *index.shape))
            if scalar and not scatters
            else (reshape(found, (size,)) if scalar else found)
        )

    return rule


def _along_dim(name: str, otherwise: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the rule of what has one index for a dim; `otherwise` is for one of each example."""

    def rule(size: int, *parts: Part, dim: int, index: Part, **parameters: Any) -> Tensor:
        scalar = not parts[0].ndim
        operands = [part.every(size) for part in parts]
        if scalar:
            operands = [reshape(operand, (size, -1)) for operand in operands]
        if index.batched:
            every = [Part(operand, True) for operand in operands]
            found = otherwise(size, *every, (*[None] * dim, index), **parameters)
        else:
            known = {
                name: value.tensor._array if type(value) is Part else value
                for name, value in parameters.items()
            }
            found = CATALOGUE[name].apply(
                *operands, dim=dim + 1, index=index.tensor._array, **known
            )
        return reshape(found, (size,)) if scalar else found

    return rule


def _put_number(size: int, input: Part, indices: Indices, value: Part) -> Tensor:
    return _index_put("index_put")(size, input, value, indices)


def _put(size: int, input: Part, source: Part, index: Part, accumulate: bool) -> Tensor:
    count = math.prod(input.shape)  # of an example's elements, behind those of the ones before it
    first = np.arange(size).reshape(size, *[1] * index.ndim) * count
    positions = index.every(size) + fresh(first)
    result: Tensor = CATALOGUE["put"].apply(
        input.every(size), source.every(size), index=positions._array, accumulate=accumulate
    )
    return result


def _index_reduce(size: int, *parts: Part, dim: int, index: Part, **parameters: Any) -> Tensor:
    if not index.batched:
        return _along_dim("index_reduce", _put_number)(
            size, *parts, dim=dim, index=index, **parameters
        )
    # Each example has positions of its own: one for every element then.
    shape = parts[1].shape or (1,)
    wide = [size, *[1] * len(shape)]
    wide[1 + dim] = shape[dim]
    every = expand(reshape(index.every(size), wide), (size, *shape))
    return _along("scatter_reduce", scatters=True)(
        size, *parts, dim=dim, index=Part(every, True), **parameters
    )


INDEXING: dict[str, Callable[..., Any]] = {
    "index": _index,
    "index_backward": _index_backward,
    "index_put": _index_put("index_put"),
    "index_put_accumulate": _index_put("index_put_accumulate"),
    "put": _put,
    "gather": _along("gather"),
    **{
        name: _along(name, scatters=True)
        for name in (
            *("gather_backward", "scatter", "scatter_number", "scatter_add", "scatter_reduce"),
        )
    },
    "index_select": _along_dim("index_select", _index),
    "index_add": _along_dim("index_add", _index_put("index_put_accumulate")),
    "index_reduce": _index_reduce,
    "index_copy": _along_dim("index_copy", _index_put("index_put")),
    "index_fill_number": _along_dim("index_fill_number", _put_number),
}
