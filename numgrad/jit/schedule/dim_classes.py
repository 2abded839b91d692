"""Classes of dims of equal size, by how they are used, and dims that are made of others.

Dims of elementwise operands are matched with those of the result. A reshape that merges or splits
dims makes one dim the product of others: all loops then run over those others, the *atoms*, so that
a reshape in the middle of a computation costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.ir.symbolic_sizes import ONE, Size, product, symbol

__all__ = ["Dims", "broadcast_dims"]

Dim = tuple[Value, int]


class _Conflict(Exception):
    """Two dims that would have to be the same are made of different ones."""


def broadcast_dims(operand: Value, result: Value) -> list[int]:
    """Return the dim of the result that each dim of an elementwise operand runs along."""
    leading = len(result.shape) - len(operand.shape)
    return [leading + dim for dim in range(len(operand.shape))]


class Dims:
    """The atoms of every dim of a graph's values.

    Parameters
    ----------
    graph : Graph
    """

    def __init__(self, graph: Graph) -> None:
        self._parent: dict[Dim, Dim] = {}
        self._factors: dict[Dim, tuple[Dim, ...]] = {}
        self._names: dict[Dim, str] = {}
        self._log: list[tuple[dict[Dim, object], Dim]] = []
        self._atoms: dict[Value, tuple[tuple[str, ...], ...]] = {}
        self.values: dict[str, int] = {}  # the size that each name stands for
        self.folded: set[Value] = set()  # reshapes that have atoms in common with their operands
        values = graph.values()
        for value in values:
            self._match(value)
        for value in values:
            if value.operation == "reshape":
                self._reshape(value)

    # --- what others ask ---

    def atoms(self, value: Value) -> tuple[tuple[str, ...], ...]:
        """Return for every dim of a value the names of the sizes whose product it is."""
        found = self._atoms.get(value)
        if found is None:
            found = tuple(self._expand((value, dim)) for dim in range(len(value.shape)))
            self._atoms[value] = found
        return found

    def share(self, value: Value, other: Value) -> None:
        """Let a value that is not in the graph have the atoms of one of the same shape."""
        self._atoms[value] = self.atoms(other)

    def size(self, value: Value, dim: int) -> Size:
        """Return the size of a dim."""
        return product([symbol(name) for name in self.atoms(value)[dim]])

    def strides(self, value: Value) -> list[Size]:
        """Return the strides of a contiguous array of a value's shape."""
        strides, stride = [], ONE
        for dim in reversed(range(len(value.shape))):
            strides.append(stride)
            stride = stride * self.size(value, dim)
        return strides[::-1]

    def same(self, a: Dim, b: Dim) -> bool:
        """Whether two dims are known to have the same size."""
        return self._find(a) == self._find(b)

    # --- finding out ---

    def _match(self, value: Value) -> None:
        """Match the dims of a value with those of its operands."""
        operands = value.operands
        if value.is_elementwise:
            for operand in operands:
                for dim, target in enumerate(broadcast_dims(operand, value)):
                    self._union((operand, dim), (value, target))
        elif value.operation == "view":
            (operand,) = operands
            for dim, (_, terms) in enumerate(value.attributes["maps"]):
                if len(terms) == 1:
                    ((target, step),) = terms
                    if abs(step) == 1 and operand.shape[dim] == value.shape[target]:
                        self._union((operand, dim), (value, target))
        elif value.operation == "reduce":
            (operand,) = operands
            kept = [d for d in range(len(operand.shape)) if d not in value.attributes["dims"]]
            for target, dim in enumerate(kept):
                self._union((operand, dim), (value, target))
        elif value.operation == "update":
            for dim in range(len(value.shape)):
                self._union((operands[0], dim), (value, dim))
        elif value.operation == "join":
            for part in operands:
                for dim, n in enumerate(part.shape):
                    if n == value.shape[dim]:
                        self._union((part, dim), (value, dim))
        elif value.operation in ("gather", "scatter"):
            base, *others = operands
            like = value if value.operation == "gather" else others[0]
            for other in others:
                for dim in range(len(like.shape)):
                    self._union((other, dim), (like, dim))
            for dim, (_, terms) in enumerate(value.attributes["maps"]):
                if value.operation == "scatter":
                    self._union((base, dim), (value, dim))
                if len(terms) == 1:
                    ((target, step),) = terms
                    is_along = step == 1 and target < len(like.shape)
                    if is_along and base.shape[dim] == like.shape[target]:
                        self._union((base, dim), (like, target))
        elif value.operation == "check":
            for dim in range(len(value.shape)):
                self._union((operands[0], dim), (value, dim))
        elif value.operation == "matmul":
            a, b = operands
            self._union((a, 1), (b, 0))
            self._union((a, 0), (value, 0))
            self._union((b, 1), (value, 1))

    def _reshape(self, value: Value) -> None:
        """Find common atoms of a reshape's dims and its operand's, if there are any."""
        (operand,) = value.operands
        if 0 in value.shape:
            return
        start = len(self._log)
        try:
            for inner, outer in _groups(operand.shape, value.shape):
                before = tuple((operand, dim) for dim in inner)
                after = tuple((value, dim) for dim in outer)
                match before, after:
                    case (one,), (other,):
                        self._union(one, other)
                    case (one,), _:
                        self._factor(one, after)
                    case _, (one,):
                        self._factor(one, before)
                    case _:
                        raise _Conflict
            self.folded.add(value)
        except _Conflict:
            while len(self._log) > start:
                table, dim = self._log.pop()
                del table[dim]

    def _find(self, dim: Dim) -> Dim:
        while dim in self._parent:
            dim = self._parent[dim]
        return dim

    def _set(self, table: dict[Dim, object], dim: Dim, value: object) -> None:
        table[dim] = value
        self._log.append((table, dim))

    def _union(self, a: Dim, b: Dim) -> None:
        """Let two dims be of one size, unless one is 1."""
        a, b = self._find(a), self._find(b)
        if a == b or a[0].shape[a[1]] == 1 or b[0].shape[b[1]] == 1:
            return
        other = self._factors.get(b)
        self._set(self._parent, b, a)  # type: ignore[arg-type]
        if other is not None:
            self._factor(a, other)

    def _factor(self, dim: Dim, factors: Sequence[Dim]) -> None:
        """Let a dim be the product of others, of which none has size 1."""
        dim = self._find(dim)
        known = self._factors.get(dim)
        if known is None:
            self._set(self._factors, dim, tuple(factors))  # type: ignore[arg-type]
            return
        if [_size(f) for f in known] != [_size(f) for f in factors]:
            raise _Conflict
        for a, b in zip(known, factors, strict=True):
            self._union(a, b)

    def _expand(self, dim: Dim) -> tuple[str, ...]:
        if _size(dim) == 1:
            return ()
        root = self._find(dim)
        factors = self._factors.get(root)
        if factors is not None:
            return tuple(name for factor in factors for name in self._expand(factor))
        name = self._names.get(root)
        if name is None:
            name = self._names[root] = f"n{len(self._names)}"
            self.values[name] = _size(root)
        return (name,)


def _size(dim: Dim) -> int:
    return dim[0].shape[dim[1]]


def _groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Split the dims of two shapes into the shortest groups with the same number of elements."""
    left = [dim for dim, size in enumerate(before) if size != 1]
    right = [dim for dim, size in enumerate(after) if size != 1]
    groups = []
    while left:
        inner, outer = [left.pop(0)], [right.pop(0)]
        a, b = before[inner[0]], after[outer[0]]
        while a != b:
            if a < b:
                inner.append(left.pop(0))
                a *= before[inner[-1]]
            else:
                outer.append(right.pop(0))
                b *= after[outer[-1]]
        groups.append((inner, outer))
    return groups
