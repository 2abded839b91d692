"""How arrays without numbers lie in memory, and what a compiled function's results make of it.

The values of a graph have no strides; the arrays of a trace have. An argument is traced as it lies,
a result as eager mode would lay it out, and a program's results, which are contiguous, are put in
memory as those of the trace lay there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.graph.recorder import Traced, place_of
from numgrad.jit.ir.constructors import permute, view
from numgrad.jit.ir.graph import Affine, Value
from numgrad.kernels.move.strides import extent, is_dense, layout_of, repeats_elements
from numgrad.ops.core.primitive import Primitive

__all__ = [
    "WITH_GAPS",
    "Laid",
    "cast_place",
    "deciding",
    "followed",
    "laid",
    "memory_of",
    "numberless",
    "place_like",
]

Array = np.ndarray[Any, Any]

# The primitives whose result lies by how their operands lie, but for elementwise ones. The results
# of all others are contiguous.
FOLLOWS = frozenset(
    (
        "addr",
        "as_strided_scatter",
        "clone",
        "complex",
        "copy",
        "diagonal_scatter",
        "fill_number",
        "fill_number_in_place",
        "fill_tensor",
        "fill_tensor_in_place",
        "flip",
        "index",
        "index_fill_number",
        "index_fill_tensor",
        "index_put",
        "index_put_accumulate",
        "polar",
        "roll",
        "rot90",
        "select_scatter",
        "slice_scatter",
        "sort",
        "sort_stable",
        "to_copy",
        "tril",
        "triu",
        "zero",
    )
)
# Of these, those whose result need not be contiguous if their operands are.
BY_PARAMETERS = frozenset(("as_strided_scatter",))
# And those whose result has gaps where an operand has them, so that one of one dim follows, too.
WITH_GAPS = frozenset(("as_strided_scatter", "diagonal_scatter", "select_scatter", "slice_scatter"))


def numberless(place: Array) -> Array:
    """Return zeros that lie in memory of their own as a place does."""
    if place.flags.c_contiguous:
        return np.zeros(place.shape, place.dtype)
    low, high = extent(layout_of(place))
    memory = np.zeros(high - low, place.dtype)
    return np.ndarray(place.shape, place.dtype, memory, -low * place.itemsize, place.strides)


def cast_place(place: Array, dtype: np.dtype[Any], order: str) -> Array:
    """Return an array that lies as a copy of a place in one of NumPy's orders."""
    repeated = order == "K" and repeats_elements(place)  # such a copy lies in C order
    return np.empty_like(place, dtype, order="C" if repeated else order)  # type: ignore[call-overload]


def place_like(
    primitive: Primitive, arrays: Sequence[Any], parameters: dict[str, Any]
) -> tuple[Array | None, frozenset[int]]:
    """Return how the result of a lowered primitive lies, and the arguments that decide that.

    It is an array that lies as the result does, or None for one in C order.
    """
    if primitive.name not in FOLLOWS:
        return None, frozenset()
    operands = [*arrays, *_arrays_in(tuple(parameters.values()))]
    order = parameters.get("contiguous", False)  # asked for: row by row, or an order of the dims
    follows = frozenset() if order else followed(operands)
    in_order = not order and all(place_of(array).flags.c_contiguous for array in operands)
    if order is True or (in_order and primitive.name not in BY_PARAMETERS):
        return None, follows
    known = {name: _known(value) for name, value in parameters.items()}
    given = [numberless(place_of(array)) for array in arrays]
    return primitive.forward(*given, **known), follows


def _arrays_in(parameter: Any) -> Iterator[Any]:
    """Yield the arrays in a parameter."""
    if isinstance(parameter, (Traced, np.ndarray)):
        yield parameter
    elif isinstance(parameter, (tuple, list)):
        for item in parameter:
            yield from _arrays_in(item)


def _known(parameter: Any) -> Any:
    """Return a parameter with zeros in the place of traced arrays."""
    if type(parameter) is Traced:
        return numberless(parameter.place)
    if type(parameter) in (tuple, list):
        return type(parameter)([_known(item) for item in parameter])
    return parameter


def followed(arrays: Sequence[Any]) -> frozenset[int]:
    """Return the arguments whose strides decide how these arrays lie."""
    return frozenset().union(*[a.storage.follows for a in arrays if type(a) is Traced])


def deciding(shape: tuple[int, ...], arrays: Sequence[Any]) -> frozenset[int]:
    """Return the arguments whose strides decide in which order an elementwise result lies.

    Operands decide one after the other, until one tells all dims apart
    (`numgrad.kernels.pointwise.loop_order`).
    """
    found: frozenset[int] = frozenset()
    for array in arrays:
        place = place_of(array)
        steps = [s for s, n in zip(place.strides, place.shape, strict=True) if n > 1]
        if len(steps) > 1 and type(array) is Traced:
            found |= array.storage.follows
        if place.shape == shape and 0 not in steps and len({abs(s) for s in steps}) == len(steps):
            break
    return found


def by_stride(place: Array) -> list[int]:
    """Return the dims of an array in the order in which memory has them, the outermost first."""
    return sorted(range(place.ndim), key=lambda dim: (-abs(place.strides[dim]), dim))


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
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    order: list[int]
    is_dense: bool

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

    def place(self, array: Array) -> Array:
        """Return the result, of the array that the program computed."""
        dtype = array.dtype
        if self.is_dense:
            return np.ndarray(self.shape, dtype, array, 0, self.strides)
        steps = tuple([step // dtype.itemsize for step in self.strides])
        low, high = extent((self.shape, steps, 0))
        memory = np.zeros(high - low, dtype)
        found = np.ndarray(self.shape, dtype, memory, -low * dtype.itemsize, self.strides)
        once = found[tuple([slice(None if step else 1) for step in self.strides])]
        once.transpose(self.order)[...] = array
        return found


def laid(place: Array) -> Laid | None:
    """Return how a result lies in memory that the trace has at a place; None if row by row."""
    shape, strides = place.shape, place.strides
    if strides == np.empty(shape, place.dtype).strides:
        return None
    once = place[tuple([slice(None if step else 1) for step in strides])]
    return Laid(shape, strides, by_stride(place), is_dense(once) or not place.size)
