"""How arrays without numbers lie in memory, and what a compiled function's results make of it.

The values of a graph have no strides; the arrays of a trace have. An argument is traced as it lies,
a result as eager mode would lay it out, and a program's results, which are contiguous, are put in
memory as those of the trace lay there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.recorder import Traced, place_of
from numgrad.jit.ir.constructors import permute, view
from numgrad.jit.ir.graph import Affine, Value
from numgrad.kernels.move.strides import extent, is_dense, layout_of
from numgrad.ops.core.primitive import Primitive

__all__ = [
    "Laid",
    "Order",
    "by_stride",
    "deciding",
    "flipped",
    "followed",
    "laid",
    "memory_of",
    "numberless",
    "order_of",
    "place_like",
]

Array = np.ndarray[Any, Any]


def numberless(place: Array) -> Array:
    """Return zeros that lie in memory of their own as a place does."""
    if place.flags.c_contiguous:  # though along dims of length 1 the strides may be any
        zeros = np.zeros(place.shape, place.dtype)
        return np.ndarray(place.shape, place.dtype, zeros, 0, place.strides)
    return _zeros(place.shape, place.dtype, place.strides)


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...]) -> Array:
    """Return zeros that lie in memory of their own with some strides, in bytes."""
    size = dtype.itemsize
    low, high = extent((shape, tuple([step // size for step in strides]), 0))
    return np.ndarray(shape, dtype, np.zeros(high - low, dtype), -low * size, strides)


def place_like(
    primitive: Primitive, arrays: Sequence[Any], parameters: dict[str, Any]
) -> tuple[Array | None, frozenset[int]]:
    """Return how the result of a primitive lies, and the arguments that decide that.

    It is memory for the result, which nobody reads, or None for one in C order.
    """
    if primitive.lies is None:
        return None, frozenset()
    given = {
        **parameters,
        "inputs": arrays,
        **dict(zip(primitive.input_names(len(arrays)), arrays, strict=True)),
    }
    named = [given[name] for name in primitive.lies.parameters]
    memory = primitive.lies.function(*[_placed(value) for value in named])
    return memory, frozenset() if memory is None else followed(list(_arrays_in(named)))


def _arrays_in(parameter: Any) -> Iterator[Any]:
    """Yield the arrays in a parameter."""
    if isinstance(parameter, (Traced, np.ndarray)):
        yield parameter
    elif isinstance(parameter, (tuple, list)):
        for item in parameter:
            yield from _arrays_in(item)


def _placed(parameter: Any) -> Any:
    """Return a parameter with places where there are traced arrays."""
    if type(parameter) is Traced:
        return parameter.place
    if type(parameter) in (tuple, list):
        return type(parameter)([_placed(item) for item in parameter])
    return parameter


def followed(arrays: Sequence[Any]) -> frozenset[int]:
    """Return the arguments whose strides decide how these arrays lie."""
    return frozenset().union(*[a.storage.follows for a in arrays if type(a) is Traced])


def deciding(shape: tuple[int, ...], arrays: Sequence[Any]) -> frozenset[int]:
    """Return the arguments whose strides decide in which order an elementwise result lies.

    Operands decide one after the other, until one tells all dims apart
    (`numgrad.kernels.move.loop_order`). The strides of dims of length 1 follow from all of them.
    """
    if 1 in shape:
        return followed(arrays)
    found: frozenset[int] = frozenset()
    for array in arrays:
        place = place_of(array)
        own = zip(place.strides, place.shape, shape[len(shape) - place.ndim :], strict=True)
        steps = [abs(step) for step, length, wanted in own if length == wanted]
        if len(steps) > 1 and type(array) is Traced:
            found |= array.storage.follows
        if len(steps) == len(shape) and 0 not in steps and len(set(steps)) == len(steps):
            break
    return found


def by_stride(place: Array) -> list[int]:
    """Return the dims of an array in the order in which memory has them, the outermost first."""
    return sorted(range(place.ndim), key=lambda dim: (-abs(place.strides[dim]), dim))


class Order(NamedTuple):
    """In which order a reduction takes the elements of an array.

    Attributes
    ----------
    dims : list of int
        Its dims as memory has them, the outermost first.
    backwards : frozenset of int
        Those that memory has from their last index to the first. They are read as memory has them
        if they are reduced.
    strides : tuple of int
        In bytes: products go by what lies side by side, too.
    """

    dims: list[int]
    backwards: frozenset[int]
    strides: tuple[int, ...]

    def in_memory(self, value: Value) -> Value:
        """Return what there is in memory of a value."""
        return permute(flipped(value, self.backwards), self.dims)

    def out_of_memory(self, array: Array) -> Array:
        """Return the array of which `in_memory` gives this one, with such strides."""
        flips = [-1 if dim in self.backwards else 1 for dim in range(len(self.dims))]
        there = np.ascontiguousarray(array).transpose(np.argsort(self.dims).tolist())
        there = there[tuple([slice(None, None, step) for step in flips])]
        if there.strides == self.strides:
            return there
        found = _zeros(there.shape, there.dtype, self.strides)
        found[...] = there
        return found


def order_of(place: Array) -> Order | None:
    """Return in which order a reduction takes the elements of a place; None if row by row."""
    if place.flags.c_contiguous:
        return None
    backwards = frozenset([dim for dim, step in enumerate(place.strides) if step < 0])
    return Order(by_stride(place), backwards, place.strides)


def flipped(value: Value, dims: Collection[int]) -> Value:
    """Return a value with the elements along some dims from the last one to the first."""
    if not dims:
        return value
    maps = [
        Affine(n - 1 if dim in dims else 0, ((dim, -1 if dim in dims else 1),) if n > 1 else ())
        for dim, n in enumerate(value.shape)
    ]
    return view(value, maps, value.shape)


def memory_of(place: Array, value: Value) -> tuple[Array, Array, Value]:
    """Return memory in which an array lies as a place does, that array, and the memory's value.

    The memory is an array whose strides are positive and descend. In it are all elements of the
    place, each once, though there may be others between them.

    Parameters
    ----------
    place : numpy.ndarray
        Of any strides; what is in it does not matter.
    value : Value
        That of the array, of the place's shape.
    """
    if place.flags.c_contiguous or not place.size:
        here = _like(place)
        return here, here, value
    place = _in_whole_steps(place)
    order = by_stride(place)
    maps = [Affine(0, ((dim, 1),) if n > 1 else ()) for dim, n in enumerate(place.shape)]
    shape = list(place.shape)
    for dim, step in enumerate(place.strides):
        if step == 0:
            maps[dim], shape[dim] = Affine(0, ()), 1
        elif step < 0:
            maps[dim] = Affine(shape[dim] - 1, ((dim, -1),))
    once = view(value, maps, tuple(shape)) if any(s <= 0 for s in place.strides) else value
    low, high = extent(layout_of(place))
    memory = np.empty(high - low, place.dtype)
    strides = tuple([abs(place.strides[dim]) for dim in order])
    whole = np.ndarray([shape[dim] for dim in order], place.dtype, memory, 0, strides)
    here = np.ndarray(place.shape, place.dtype, memory, -low * place.itemsize, place.strides)
    return whole, here, permute(once, order)


def _in_whole_steps(place: Array) -> Array:
    """Return an array in that order, in steps of whole elements: fields of records have others.

    Nothing is read of it.
    """
    size = place.itemsize
    if not any(step % size for step in place.strides):
        return place
    steps = [step * size for step in place.strides]
    return np.lib.stride_tricks.as_strided(np.empty(1, place.dtype), place.shape, steps)


def _like(place: Array) -> Array:
    """Return memory for a contiguous array, yet to be set."""
    here = np.empty(place.shape, place.dtype)
    if here.strides == place.strides:
        return here
    return np.ndarray(place.shape, place.dtype, here, 0, place.strides)  # of dims of length 1


class Laid(NamedTuple):
    """How a result lies in memory, where that is not row by row.

    Attributes
    ----------
    shape : tuple of int
    strides : tuple of int
        In bytes.
    order : list of int
        The dims as memory has them, the outermost first.
    is_dense : bool
        Whether the elements fill their memory, each place once.
    itemsize : int
        Bytes of an element.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    order: list[int]
    is_dense: bool
    itemsize: int

    def in_memory(self, value: Value) -> Value:
        """Return what a program is to compute for a result of a value."""
        maps = [
            Affine(0, ((dim, 1),) if step and n > 1 else ())
            for dim, (n, step) in enumerate(zip(self.shape, self.strides, strict=True))
        ]
        once = tuple([n if s else 1 for n, s in zip(self.shape, self.strides, strict=True)])
        if once != self.shape:
            value = view(value, maps, once)
        return permute(value, self.order)

    def transposition(self) -> tuple[int, ...] | None:
        """Return the dims of what the program computed as `place` has them, if that is all."""
        places = [self.order.index(dim) for dim in range(len(self.shape))]
        there = np.empty([self.shape[dim] for dim in self.order], np.uint8).transpose(places)
        same = tuple([step * self.itemsize for step in there.strides]) == self.strides
        return tuple(places) if self.is_dense and same and there.shape == self.shape else None

    def place(self, array: Array) -> Array:
        """Return the result, of the array that the program computed."""
        if self.is_dense:
            return np.ndarray(self.shape, array.dtype, array, 0, self.strides)
        found = _zeros(self.shape, array.dtype, self.strides)
        once = found[tuple([slice(None if step else 1) for step in self.strides])]
        once.transpose(self.order)[...] = array
        return found


def laid(place: Array) -> Laid | None:
    """Return how a result lies in memory that the trace has at a place; None if row by row."""
    shape, strides = place.shape, place.strides
    if strides == np.empty(shape, place.dtype).strides:
        return None
    once = place[tuple([slice(None if step else 1) for step in strides])]
    fills = is_dense(once) or not place.size
    return Laid(shape, strides, by_stride(place), fills, place.itemsize)
