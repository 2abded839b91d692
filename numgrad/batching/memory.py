"""The memory of tensors inside of a mapped function: what the world outside knows it as.

Inside, a tensor has an example's shape, strides and dtype; its array is a
`numgrad.graph.recorder.Traced`. The storage of that holds a tensor of the world outside, in which
the examples lie along a first dim, or, where all have the same, one for all of them. So a view
inside is a view outside, at the same place of every example, and a write is one outside.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.recorder import Storage, Traced, address_of, place_of
from numgrad.graph.tensor import Tensor
from numgrad.ops.movement.casts import expand_to
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.view_geometry import geometry_between, strided

__all__ = ["Memory", "Part", "Stacked"]


class Part(NamedTuple):
    """What a tensor or an array inside is outside."""

    tensor: Tensor
    batched: bool  # whether the examples lie along its first dim; if not, it is one for all

    @property
    def ndim(self) -> int:
        """The number of dims that it has inside."""
        return self.tensor._array.ndim - self.batched

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that it has inside."""
        shape: tuple[int, ...] = tuple(self.tensor._array.shape)
        return shape[1:] if self.batched else shape

    def aligned(self, ndim: int) -> Tensor:
        """Return the tensor such that, behind the examples' dim, it broadcasts to so many dims."""
        missing = ndim - self.ndim
        if not self.batched or missing <= 0:
            return self.tensor
        size, *shape = self.tensor._array.shape
        return reshape(self.tensor, (size, *([1] * missing), *shape))

    def every(self, size: int) -> Tensor:
        """Return the tensor with the examples' dim in any case."""
        if self.batched:
            return self.tensor
        return expand_to(self.tensor, (size, *self.tensor._array.shape))


class Stacked(Part):
    """What a loop stacked of which only it knows how many turns it made.

    The turns lie along the first dim, the examples along the second; nobody takes a view of that.
    """

    __slots__ = ()

    def aligned(self, ndim: int) -> Tensor:
        """Return the tensor, which goes with others like it."""
        return self.tensor


class Memory(Storage):
    """The storage of arrays inside.

    Attributes
    ----------
    value : Part
        What it is outside.
    made : bool
        Whether the mapped function made it, as a constant: then examples may come to differ in it.
    number : int
        The how manyeth of its recorder it is.
    """

    __slots__ = ("_views", "made", "number")

    def __init__(self, recorder: Any, value: Part, made: bool = False) -> None:
        place = place_of(value.tensor._array)
        if type(value) is Stacked:
            place = np.empty((len(place), *place.shape[2:]), place.dtype)
        elif value.batched:
            # An example lies as the first one does.
            place = place[0, ...] if len(place) else np.empty(place.shape[1:], place.dtype)
        super().__init__(recorder, place, value)
        self.made = made
        recorder.made = self.number = recorder.made + 1
        # What was asked for before, by where it lies.
        self._views: dict[Any, Tensor] = {}

    def array(self) -> Traced:
        """Return the array over all of it."""
        return Traced(self, self.whole)

    def replace(self, value: Part) -> None:
        """Give it another value, of the same shape."""
        self.value = value
        self._views.clear()

    def part(self, place: Any) -> Part:
        """Return what lies at a place, as a view of the value."""
        whole, value = self.whole, self.value
        if place is whole:
            return value
        key = self._key(place)
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = self._view(place)
        return Part(found, value.batched)

    def _key(self, place: Any) -> Any:
        offset = address_of(place) - address_of(self.whole)
        # What a body of a loop that is recorded outside looked at is of that body.
        batcher: Any = self.recorder
        return offset, place.shape, place.strides, place.dtype, batcher.run

    def _view(self, place: Any) -> Tensor:
        tensor, batched = self.value
        own = place_of(tensor._array)
        between = address_of(place) - address_of(self.whole) if place.size else 0
        shape, strides = place.shape, place.strides
        if batched:
            shape, strides = (own.shape[0], *shape), (own.strides[0], *strides)
        geometry = geometry_between(
            own.shape, own.strides, own.dtype, shape, strides, place.dtype, between
        )
        return strided(tensor, geometry)
