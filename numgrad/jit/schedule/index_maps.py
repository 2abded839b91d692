"""Index maps: which elements of its operands an element of a value is computed from.

An *index* says which element, by the indices of the loops around: for every dim of the value a
tuple with the place along each of the dim's atoms, or, where a view made one number of them, that
place. `Flat` is the place in row-major order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from typing import NamedTuple

from numgrad.codegen import scalar_ops
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.ir.symbolic_sizes import ONE, ZERO, Place, Size, number, symbol
from numgrad.jit.schedule.dim_classes import Dims, broadcast_dims

__all__ = [
    "ANYWHERE",
    "LEAVES",
    "Element",
    "Elements",
    "Flat",
    "Index",
    "Strided",
    "weight",
]


class Flat(NamedTuple):
    """The place of an element in row-major order."""

    place: Place


class Strided(NamedTuple):
    """A view: of which value, where it starts, and its strides, in elements."""

    base: Value
    start: Size
    strides: tuple[Size, ...]


Index = tuple[tuple[Place, ...] | Place, ...] | Flat
Element = tuple[Value, Index]

# The index of what is read at places that only positions tell.
ANYWHERE = Flat(Place(symbol("anywhere"), {}))
LEAVES = frozenset(("input", "array"))


def weight(value: Value) -> int:
    """Return about what an operation costs for each element, where an addition is 1."""
    if not value.is_elementwise:
        return 4 if value.operation == "gather" else 0
    return scalar_ops.weight(value.operation, value.dtype)


class Elements:
    """Finds elements of operands.

    Parameters
    ----------
    graph : Graph
    """

    def __init__(self, graph: Graph) -> None:
        self.dims = Dims(graph)
        self.numbers: dict[str, int] = {}  # offsets and steps of views, by name
        self._names: dict[tuple[Value, str, Hashable], Size] = {}
        self._operands: dict[Element, list[Element]] = {}
        self._routed: dict[Value, Value] = {}

    def number_of(self, value: Value, what: str, at: Hashable, amount: int) -> Size:
        """Return a number of a view or update that other sizes of arrays may change.

        `at` tells it from others of the same kind: its dim, or whatever there is one of for each.
        """
        key = (value, what, at)
        found = self._names.get(key)
        if found is None:
            name = f"{what}{len(self.numbers)}"
            self.numbers[name] = amount
            found = self._names[key] = symbol(name)
        return found

    def start_of(self, value: Value, at: Hashable, start: int) -> Size:
        """Return where a view or a part begins; small ones stay numbers, to show what is equal."""
        return number(start) if abs(start) <= 2 else self.number_of(value, "start", at, start)

    def step_of(self, value: Value, at: Hashable, step: int) -> Size:
        """Return a step of a view or update; small ones stay numbers, for LLVM to know."""
        return number(step) if abs(step) <= 2 else self.number_of(value, "step", at, step)

    def domain(self, value: Value) -> tuple[str, ...]:
        """Return the names of the sizes of the loops over all elements of a value."""
        return tuple(name for atoms in self.dims.atoms(value) for name in atoms)

    def index(self, value: Value, axes: list[int] | None = None) -> Index:
        """Return the index of the element that loops with these axes are at."""
        index, position = [], 0
        for atoms in self.dims.atoms(value):
            places = []
            for _ in atoms:
                places.append(Place.axis(position if axes is None else axes[position]))
                position += 1
            index.append(tuple(places))
        return tuple(index)

    def whole(self, value: Value, dim: int, entry: tuple[Place, ...] | Place) -> Place:
        """Return the place along a dim, from those along its atoms."""
        if isinstance(entry, Place):
            return entry
        atoms = self.dims.atoms(value)[dim]
        place, stride = Place(ZERO, {}), ONE
        for name, part in zip(reversed(atoms), reversed(entry), strict=True):
            place = place + part.times(stride)
            stride = stride * symbol(name)
        return place

    def place(self, value: Value, index: Index) -> Place:
        """Return the place of an element in the contiguous memory of its value."""
        if isinstance(index, Flat):
            return index.place
        place = Place(ZERO, {})
        strides = self.dims.strides(value)
        for dim, entry in enumerate(index):
            place = place + self.whole(value, dim, entry).times(strides[dim])
        return place

    def operands(self, value: Value, index: Index) -> list[Element]:
        """Return the elements that an element is computed of.

        Of an update this is the element as it was before.
        """
        found = self._operands.get((value, index))
        if found is None:
            found = self._operands[value, index] = self._find_operands(value, index)
        return found

    def _find_operands(self, value: Value, index: Index) -> list[Element]:
        if value.is_elementwise:
            assert not isinstance(index, Flat)
            return [(o, self._broadcast(o, value, index)) for o in value.operands]
        operand = value.operands[0]
        if value.operation == "view":
            assert not isinstance(index, Flat)
            return [(operand, self._viewed(value, operand, index))]
        if value.operation == "reshape":
            return [(operand, self._reshaped(value, operand, index))]
        if value.operation == "gather":
            return [(positions, index) for positions in value.operands[1:]]
        if value.operation == "route":
            return [(each, index) for each in value.operands]
        assert value.operation in ("update", "scatter")
        return [(operand, index)]

    def routed(self, scatter: Value) -> Value:
        """Return the part that is added or put, together with its positions, as one value."""
        found = self._routed.get(scatter)
        if found is None:
            _, part, *positions = scatter.operands
            found = Value("route", (part, *positions), part.shape, part.dtype, scatter.origin)
            self.dims.share(found, part)
            self._routed[scatter] = found
        return found

    def place_in(self, value: Value, index: Index, strides: Sequence[Size]) -> Place:
        """Return the place that a gather reads or a scatter writes, but for the positions.

        Parameters
        ----------
        value : Value
        index : Index
            Of an element of the gather, or of the part of a scatter.
        strides : sequence of Size
            Of what is read or written.
        """
        like = value if value.operation == "gather" else value.operands[1]
        assert not isinstance(index, Flat)
        place = Place(ZERO, {})
        for dim, (offset, terms) in enumerate(value.attributes["maps"]):
            along = Place(self.start_of(value, dim, offset), {})
            for target, step in terms:
                if target < len(like.shape) and like.shape[target] != 1:
                    by = self.step_of(value, (dim, target), step)
                    along = along + self.whole(like, target, index[target]).times(by)
            place = place + along.times(strides[dim])
        return place

    def steps_of_positions(self, value: Value, strides: Sequence[Size]) -> list[Size]:
        """Return how far a step of each of the positions goes."""
        like = value if value.operation == "gather" else value.operands[1]
        rank = len(like.shape)
        first = 1 if value.operation == "gather" else 2
        steps = [ZERO] * (len(value.operands) - first)
        for dim, (_, terms) in enumerate(value.attributes["maps"]):
            for target, step in terms:
                if target >= rank:
                    by = self.step_of(value, (dim, target), step)
                    steps[target - rank] = steps[target - rank] + by * strides[dim]
        return steps

    def _broadcast(
        self, operand: Value, value: Value, index: tuple[tuple[Place, ...] | Place, ...]
    ) -> Index:
        if operand.shape == value.shape and 1 not in operand.shape:
            return index
        targets = broadcast_dims(operand, value)
        return tuple(
            () if operand.shape[dim] == 1 else index[target] for dim, target in enumerate(targets)
        )

    def _viewed(
        self, value: Value, operand: Value, index: tuple[tuple[Place, ...] | Place, ...]
    ) -> Index:
        found: list[tuple[Place, ...] | Place] = []
        for dim, (offset, terms) in enumerate(value.attributes["maps"]):
            if operand.shape[dim] == 1:
                found.append(())
                continue
            if offset == 0 and len(terms) == 1 and terms[0][1] == 1:
                target = terms[0][0]
                if self.dims.same((operand, dim), (value, target)):
                    found.append(index[target])
                    continue
            place = Place(self.start_of(value, dim, offset), {})
            for target, step in terms:
                if value.shape[target] != 1:
                    along = self.whole(value, target, index[target])
                    by = self.step_of(value, (dim, target), step)
                    place = place + along.times(by)
            found.append((place,) if len(self.dims.atoms(operand)[dim]) == 1 else place)
        return tuple(found)

    def _reshaped(self, value: Value, operand: Value, index: Index) -> Index:
        if value not in self.dims.folded or isinstance(index, Flat):
            return Flat(self.place(value, index))
        places = [place for entry in index if not isinstance(entry, Place) for place in entry]
        found, position = [], 0
        for atoms in self.dims.atoms(operand):
            found.append(tuple(places[position : position + len(atoms)]))
            position += len(atoms)
        return tuple(found)

    def strided(self, value: Value, kept: Set[Value]) -> Strided | None:
        """Return a value as a strided view of one that is in memory or has to be; None if it isn't.

        Parameters
        ----------
        value : Value
        kept : set of Value
            What is in memory.
        """
        base, index = value, self.index(value)
        while base not in kept and base.operation in ("view", "reshape"):
            ((base, index),) = self.operands(base, index)
        if base.operation == "constant":
            return None
        place = self.place(base, index)
        strides, axis = [], 0
        for atoms in self.dims.atoms(value):
            stride = ZERO
            for position, name in enumerate(reversed(atoms)):
                step = place.steps.get(axis + len(atoms) - 1 - position, ZERO)
                if position == 0:
                    stride, expected = step, step * symbol(name)
                elif step != expected:
                    return None
                else:
                    expected = step * symbol(name)
            axis += len(atoms)
            strides.append(stride)
        return Strided(base, place.start, tuple(strides))

    def needs_memory(self, value: Value) -> list[Value]:
        """Return the operands of a view or reshape that have to be in memory to be found there."""
        operand = value.operands[0] if value.operands else value
        if value.operation == "reshape" and value not in self.dims.folded:
            return [operand]
        if value.operation == "view":
            for dim, (offset, terms) in enumerate(value.attributes["maps"]):
                if len(self.dims.atoms(operand)[dim]) < 2:
                    continue
                if offset or len(terms) != 1 or terms[0][1] != 1:
                    return [operand]
                if not self.dims.same((operand, dim), (value, terms[0][0])):
                    return [operand]
        return []
