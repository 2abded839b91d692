"""Moving joins behind elementwise operations: ``exp(cat([a, b]))`` is ``cat([exp(a), exp(b)])``.

Zeros with a part replaced, the derivative of a slice, are a join too: zeros, the part, zeros. A sum
of several is a join of sums, and of all that only the last join is in memory: each part of it is
written once, by a loop without conditions. No element is computed twice for it.

While that is done, a value is kept apart in a `Split`: parts along one dim, each a value or split
along another dim in turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from numgrad.base.tuning import JOINED_PARTS
from numgrad.jit.ir.graph import Affine, Graph, Value
from numgrad.jit.passes.rewriter import Builder, Shape
from numgrad.jit.passes.view_motion import rebuild
from numgrad.jit.passes.views import box_of

__all__ = ["move_joins"]

CHAIN = 8  # updates, one of the other, of which more are done in place, where they are cheap
CODE = 1024  # operations on parts in a graph, about: then what is left stays as it is


class Split(NamedTuple):
    """A value in parts, along one dim.

    Attributes
    ----------
    dim : int
    bounds : tuple of int
        Where each part begins along the dim, and where the last one ends.
    parts : tuple of Value and Split
    """

    dim: int
    bounds: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def shape(self) -> Shape:
        """The shape of the whole."""
        shape = self.parts[0].shape
        return _with_length(shape, self.dim, self.bounds[-1])

    @property
    def values(self) -> int:
        """How many values it consists of."""
        return sum(part.values if isinstance(part, Split) else 1 for part in self.parts)


Part = Value | Split


def move_joins(builder: Builder, graph: Graph) -> Graph | None:
    """Return the graph with joins behind elementwise operations; None if there are none."""
    values = graph.values()
    if not any(value.operation in ("update", "join") for value in values):
        return None
    mover = _Mover(builder, graph, values)
    for value in values:
        mover.enter(value)
    return Graph(graph.inputs, [mover.whole(output) for output in graph.outputs])


def _with_length(shape: Shape, dim: int, length: int) -> Shape:
    return (*shape[:dim], length, *shape[dim + 1 :])


class _Mover:
    """Builds values anew, and keeps those apart that are split."""

    def __init__(self, builder: Builder, graph: Graph, values: Sequence[Value]) -> None:
        self.builder = builder
        self.read = _read_whole(graph, values)
        self.new: dict[Value, Value] = {}
        self.splits: dict[Value, Split] = {}
        self.operations = 0
        self.root: dict[Value, Value] = {}  # what the first of a chain of updates was done to
        self.length: dict[Value, int] = {}  # of the longest chain that an update is in
        updates = [value for value in values if value.operation == "update"]
        for value in updates:
            whole = value.operands[0]
            self.root[value] = self.root.get(whole, whole)
            self.length[value] = self.length.get(whole, 0) + 1
        for value in reversed(updates):
            whole = value.operands[0]
            if whole in self.length:
                self.length[whole] = max(self.length[whole], self.length[value])

    def enter(self, value: Value) -> None:
        """Find a value of the new graph, or split it."""
        self.builder.origin = value.origin
        found: Part | None = None
        if value.operation in ("update", "join") and self.operations < CODE:
            is_update = value.operation == "update"
            found = self._update(value) if is_update else self._join(value)
        elif any(operand in self.splits for operand in value.operands):
            if value.is_elementwise:
                found = self._elementwise(value)
            elif value.operation == "view":
                shape, maps = value.shape, value.attributes["maps"]
                found = self._view(self.splits[value.operands[0]], shape, maps)
        if isinstance(found, Split):
            self.splits[value] = found
        elif found is not None:
            self.new[value] = found
        else:
            operands = tuple([self.whole(operand) for operand in value.operands])
            same = operands == value.operands
            self.new[value] = value if same else rebuild(self.builder, value, operands)

    # --- from parts to a whole ---

    def whole(self, value: Value) -> Value:
        """Return the value of the new graph for one of the old."""
        found = self.new.get(value)
        if found is None:
            self.builder.origin = value.origin
            if value.operation == "update" and _in_memory(self.root[value]):
                operands = tuple([self.whole(operand) for operand in value.operands])
                found = rebuild(self.builder, value, operands)
            else:
                found = self._joined(self.splits[value], value.shape, value.origin)
            self.new[value] = found
        return found

    def _joined(self, split: Split, shape: Shape, origin: str) -> Value:
        parts: list[Value] = []
        starts: list[tuple[int, ...]] = []

        def collect(part: Part, start: tuple[int, ...]) -> None:
            if isinstance(part, Value):
                parts.append(part)
                starts.append(start)
                return
            for first, inner in zip(part.bounds, part.parts, strict=False):
                collect(inner, _with_length(start, part.dim, start[part.dim] + first))

        collect(split, (0,) * len(shape))
        dtype = parts[0].dtype
        return self.builder.add(Value("join", parts, shape, dtype, origin, starts=tuple(starts)))

    # --- from wholes to parts ---

    def _part(self, value: Value) -> Part:
        return self.splits.get(value) or self.new[value]

    def _join(self, value: Value) -> Part | None:
        """Split a join of parts that lie one after the other along a dim."""
        starts = value.attributes["starts"]
        dims = {dim for start in starts for dim, first in enumerate(start) if first}
        if len(dims) != 1 or len(starts) > JOINED_PARTS:
            return None
        (dim,) = dims
        order = sorted(range(len(starts)), key=lambda k: starts[k][dim])
        parts = [self._part(value.operands[k]) for k in order]
        return self._limited(_split(dim, [starts[k][dim] for k in order], parts, value.shape))

    def _update(self, value: Value) -> Part | None:
        """Split an update of a box."""
        whole, part = value.operands
        if self.length[value] > CHAIN:
            return None
        attributes = value.attributes
        box = box_of(value.shape, attributes["offset"], attributes["strides"], part.shape)
        if box is None:
            return None
        shape = tuple([stop - start for start, stop in box])
        given = self._part(part)
        if part.shape != shape:
            given = self.builder.reshape(self.whole(part), shape)
        return self._limited(self._replaced(self._part(whole), given, box, 0))

    def _replaced(self, whole: Part, part: Part, box: list[tuple[int, int]], dim: int) -> Part:
        """Return a part in a box of a whole, which it fills along the dims before this one."""
        shape = whole.shape
        while dim < len(shape) and box[dim] == (0, shape[dim]):
            dim += 1
        if dim == len(shape):
            return part
        start, stop = box[dim]
        parts, bounds = [], []
        if start:
            bounds.append(0)
            parts.append(self._cut(whole, dim, 0, start))
        bounds.append(start)
        parts.append(self._replaced(self._cut(whole, dim, start, stop), part, box, dim + 1))
        if stop < shape[dim]:
            bounds.append(stop)
            parts.append(self._cut(whole, dim, stop, shape[dim]))
        return _split(dim, bounds, parts, shape)

    def _cut(self, part: Part, dim: int, start: int, stop: int) -> Part:
        """Return what lies between two places along a dim."""
        if start == 0 and stop == part.shape[dim]:
            return part
        if isinstance(part, Value):
            maps = [Affine(0, ((d, 1),) if n != 1 else ()) for d, n in enumerate(part.shape)]
            maps[dim] = Affine(start, ((dim, 1),) if stop - start > 1 else ())
            return self.builder.view(part, _with_length(part.shape, dim, stop - start), maps)
        if part.dim != dim:
            parts = [self._cut(inner, dim, start, stop) for inner in part.parts]
            return Split(part.dim, part.bounds, tuple(parts))
        bounds, parts = [], []
        for k, inner in enumerate(part.parts):
            first, last = max(start, part.bounds[k]), min(stop, part.bounds[k + 1])
            if first < last:
                bounds.append(first - start)
                own = part.bounds[k]
                parts.append(self._cut(inner, dim, first - own, last - own))
        return _split(dim, bounds, parts, _with_length(part.shape, dim, stop - start))

    def _elementwise(self, value: Value) -> Split | None:
        """Do an elementwise operation on each part, unless a whole is needed anyway.

        If the result is read whole, by a reduction say, operands that are in memory serve as well,
        and are fewer than what is computed of them; but for one result of several operands.
        """
        operands = [self._part(operand) for operand in value.operands]
        splits = {operand for operand in value.operands if operand in self.splits}
        if len(splits) == 1 and value in self.read:
            return None
        if max([prod(operand.shape) for operand in splits]) < prod(value.shape):
            return None
        count = self._count(operands, value.shape)
        if count > JOINED_PARTS or self.operations >= CODE:
            return None
        found = self._apply(value, operands, value.shape)
        assert isinstance(found, Split)
        return found

    def _count(self, operands: Sequence[Part], shape: Shape) -> int:
        """Return how many parts a result has."""
        bounds: dict[int, set[int]] = {}

        def collect(part: Part, lead: int, at: dict[int, int]) -> None:
            if isinstance(part, Value):
                return
            dim = lead + part.dim
            start = at.get(dim, 0)
            bounds.setdefault(dim, {0, shape[dim]}).update(start + n for n in part.bounds)
            for first, inner in zip(part.bounds, part.parts, strict=False):
                collect(inner, lead, {**at, dim: start + first})

        for operand in operands:
            collect(operand, len(shape) - len(operand.shape), {})
        return prod([len(each) - 1 for each in bounds.values()])

    def _apply(self, value: Value, operands: Sequence[Part], shape: Shape) -> Part:
        """Return the operation of a value, on operands that broadcast to a shape."""
        first = next((part for part in operands if isinstance(part, Split)), None)
        if first is None:
            values = [part for part in operands if isinstance(part, Value)]
            found = self.builder.elementwise(value.operation, *values, dtype=value.dtype)
            self.operations += found not in values and found.operation != "constant"
            return self.builder.expand(found, shape)
        dim = len(shape) - len(first.shape) + first.dim
        places = {0, shape[dim]}
        for part in operands:
            lead = len(shape) - len(part.shape)
            if isinstance(part, Split) and lead + part.dim == dim:
                places.update(part.bounds)
        bounds = sorted(places)
        parts = []
        for start, stop in pairwise(bounds):
            cut = []
            for part in operands:
                own = dim - len(shape) + len(part.shape)
                whole = own < 0 or part.shape[own] == 1 != shape[dim]
                cut.append(part if whole else self._cut(part, own, start, stop))
            parts.append(self._apply(value, cut, _with_length(shape, dim, stop - start)))
        return _split(dim, bounds[:-1], parts, shape)

    def _view(self, part: Part, shape: Shape, maps: Sequence[Affine]) -> Part | None:
        """Return a view of a value in parts, where it is in parts along a dim, or of one part."""
        if isinstance(part, Value):
            return self.builder.view(part, shape, maps)
        dim = part.dim
        offset, terms = maps[dim]
        if not terms or 0 in shape:
            k = bisect_right(part.bounds, offset) - 1
            own = [*maps]
            own[dim] = Affine(offset - part.bounds[k], ())
            return self._view(part.parts[k], shape, own)
        if len(terms) > 1 or terms[0][1] != 1:
            return None
        target = terms[0][0]
        if any(target == d for k, each in enumerate(maps) if k != dim for d, _ in each.terms):
            return None
        bounds, parts = [], []
        for k, inner in enumerate(part.parts):
            first = max(offset, part.bounds[k])
            last = min(offset + shape[target], part.bounds[k + 1])
            if first >= last:
                continue
            own = [*maps]
            rest = ((target, 1),) if inner.shape[dim] != 1 else ()
            own[dim] = Affine(first - part.bounds[k], rest)
            found = self._view(inner, _with_length(shape, target, last - first), own)
            if found is None:
                return None
            bounds.append(first - offset)
            parts.append(found)
        return _split(target, bounds, parts, shape)

    def _limited(self, part: Part) -> Part | None:
        return None if isinstance(part, Split) and part.values > JOINED_PARTS else part


def _in_memory(value: Value) -> bool:
    """Whether a value is in memory anyway, so that writing a part of it takes no more than that."""
    return value.operation in ("reduce", "matmul", "item")


def _read_whole(graph: Graph, values: Sequence[Value]) -> set[Value]:
    """Return what is wanted only for operations that take a whole, or for these as well."""
    outputs, found = set(graph.outputs), set[Value]()
    for value in reversed(values):
        is_moved = value.is_elementwise or value.operation in ("view", "update", "join")
        if not is_moved or value in found:
            found.update([operand for operand in value.operands if operand not in outputs])
    return found


def _split(dim: int, starts: Sequence[int], parts: Sequence[Part], shape: Shape) -> Part:
    """Return parts that begin at these places along a dim; those split along it are taken apart."""
    if len(parts) == 1:
        return parts[0]
    bounds: list[int] = []
    found: list[Part] = []
    for start, part in zip(starts, parts, strict=True):
        if isinstance(part, Split) and part.dim == dim:
            bounds += [start + first for first in part.bounds[:-1]]
            found += part.parts
        else:
            bounds.append(start)
            found.append(part)
    return Split(dim, (*bounds, shape[dim]), tuple(found))
