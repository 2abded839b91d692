"""What makes two operations of a trace alike: all but which values they take, and from where on.

Views and numbers are seen as part of the operations that take them: whether one was made for each
of these or once for all says nothing. By which views an operand is had says nothing either: what a
first turn is given need not be made as what later ones hand on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from numgrad.jit.ir.constructors import reshape, view
from numgrad.jit.ir.graph import Affine, Graph, Value

__all__ = [
    "Operation",
    "Tokens",
    "are_alike",
    "followed_back",
    "had_by",
    "is_alike",
    "is_same_view",
    "meaning_of",
    "rebased",
    "row_number",
    "row_of",
    "rows_of",
    "viewed",
    "with_operand",
]

# What leads from an operand to what is computed: views and reshapes, the last one first.
Path = tuple[Value, ...]
_VIEWS = frozenset(("view", "reshape"))


class Operation(NamedTuple):
    """An operation of a trace.

    Attributes
    ----------
    value : Value
    token : int
        Equal for operations that are alike.
    paths : list of tuple of Value
        What leads from each operand to what it is a view of.
    bases : list of Value
        Of what each operand is a view.
    ways : list of int
        By what views each operand is had; equal where they differ at most in where they begin.
    offsets : tuple of tuple of int
        Where these views begin, for each operand, and last of all a part that is written.
    """

    value: Value
    token: int
    paths: list[Path]
    bases: list[Value]
    ways: list[int]
    offsets: tuple[tuple[int, ...], ...]


class Tokens:
    """Numbers for what operations are alike in."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.facts: dict[Value, tuple[int, tuple[int, ...]]] = {}  # of views
        self.operations: dict[Value, Operation] = {}
        # What loops stack of a carry: what they were handed on, stacked, and what they began with.
        self.handed_on: dict[Value, tuple[Value, Value]] = {}

    def operation(self, value: Value) -> Operation:
        """Return what there is to know of a value that is no view, number or input."""
        found = self.operations.get(value)
        if found is None:
            found = self.operations[value] = self._found_out(value)
        return found

    def _found_out(self, value: Value) -> Operation:
        paths: list[Path] = []
        bases: list[Value] = []
        ways: list[int] = []
        parts: list[Any] = [value.operation, value.shape, value.dtype, value.origin]
        offsets: list[tuple[int, ...]] = []
        known = self.known
        for operand in value.operands:
            parts += (operand.shape, operand.dtype)
            if operand.operation not in _VIEWS:
                paths.append(())
                bases.append(operand)
                ways.append(0)
                offsets.append(())
                continue
            path, base = followed_back(operand)
            paths.append(path)
            bases.append(base)
            way = 0
            starts: tuple[int, ...] = ()
            for step in path:
                kind, found = self._of_view(step)
                way = known.setdefault((way, kind), len(known) + 1)
                starts += found
            ways.append(way)
            offsets.append(starts)
        if value.operation == "update":
            offsets.append((value.attributes["offset"],))
        if value.attributes:
            parts.append(_attributes(value))
        token = known.setdefault(tuple(parts), len(known) + 1)
        return Operation(value, token, paths, bases, ways, tuple(offsets))

    def _of_view(self, value: Value) -> tuple[int, tuple[int, ...]]:
        """Return what a view is but for where it begins, and that."""
        found = self.facts.get(value)
        if found is None:
            maps = value.attributes.get("maps", ())
            key = (value.operation, value.operands[0].shape, value.shape, *[m.terms for m in maps])
            kind = self.known.setdefault(key, len(self.known) + 1)
            found = self.facts[value] = (kind, tuple([each.offset for each in maps]))
        return found


def followed_back(value: Value) -> tuple[Path, Value]:
    """Return the views that lead to what a value is a view of, and that."""
    if value.operation not in _VIEWS:
        return (), value
    path = []
    while value.operation in _VIEWS:
        path.append(value)
        value = value.operands[0]
    return tuple(path), value


def rebased(path: Sequence[Value], base: Value) -> Value:
    """Return the views of a path, of something else."""
    for step in reversed(path):
        if step.operands[0] is base:
            base = step
        elif step.operation == "view":
            base = view(base, step.attributes["maps"], step.shape)
        else:
            base = reshape(base, step.shape)
    return base


def had_by(operation: Operation, slot: int, like: Operation) -> Operation | None:
    """Return an operation one of whose operands is had by the views of that of another.

    What these are views of may be a view itself then. None if the operand is had by other views.
    """
    if operation.ways[slot] == like.ways[slot]:
        return operation
    path = like.paths[slot]
    base = viewed(operation.value.operands[slot], path)
    if base is None:
        return None
    return with_operand(operation, slot, operation.paths[slot][: len(path)], base, like)


def viewed(value: Value, path: Path) -> Value | None:
    """Return of what a value is a view, as a path says but for where it begins; or None."""
    for step in path:
        if value.operation not in _VIEWS or not is_alike(value, step):
            return None
        value = value.operands[0]
    return value


def is_same_view(one: Value, other: Value) -> bool:
    """Whether two values are the same elements of one value."""
    first, second = followed_back(one), followed_back(other)
    return (
        first[1] is second[1]
        and len(first[0]) == len(second[0])
        and all(
            is_alike(a, b) and a.attributes.get("maps") == b.attributes.get("maps")
            for a, b in zip(first[0], second[0], strict=True)
        )
    )


def with_operand(
    operation: Operation, slot: int, path: Path, base: Value, like: Operation
) -> Operation:
    """Return an operation that takes something else, had by the same views as that of another."""
    paths, bases, ways = list(operation.paths), list(operation.bases), list(operation.ways)
    paths[slot], bases[slot], ways[slot] = path, base, like.ways[slot]
    offsets = list(operation.offsets)
    offsets[slot] = tuple([m.offset for step in path for m in step.attributes.get("maps", ())])
    return Operation(operation.value, operation.token, paths, bases, ways, tuple(offsets))


def is_alike(one: Value, other: Value) -> bool:
    """Whether two views differ at most in where they begin."""
    if one.operation != other.operation or one.shape != other.shape:
        return False
    first, second = (each.attributes.get("maps", ()) for each in (one, other))
    return one.operands[0].shape == other.operands[0].shape and all(
        a.terms == b.terms for a, b in zip(first, second, strict=True)
    )


def are_alike(path: Path, other: Path) -> bool:
    """Whether the views of two paths differ at most in where they begin."""
    return len(path) == len(other) and all(map(is_alike, path, other))


def row_of(value: Value, row: int) -> Value:
    """Return one element of the first dim."""
    maps = [Affine(row, ()), *(Affine(0, ((dim, 1),)) for dim in range(len(value.shape) - 1))]
    return view(value, maps, value.shape[1:])


def rows_of(value: Value, start: int, stop: int) -> Value:
    """Return some elements of the first dim."""
    if start == 0 and stop == value.shape[0]:
        return value
    maps = [Affine(start, ((0, 1),)), *(Affine(0, ((d, 1),)) for d in range(1, len(value.shape)))]
    return view(value, maps, (stop - start, *value.shape[1:]))


def row_number(path: Path) -> int | None:
    """Return which element of the first dim views are; None if they are something else."""
    if len(path) != 1 or path[0].operation != "view":
        return None
    first, *rest = path[0].attributes["maps"]
    is_row = not first.terms and rest == [
        Affine(0, ((dim, 1),)) for dim in range(len(path[0].shape))
    ]
    return first.offset if is_row else None


def _attributes(value: Value) -> Any:
    """Return the attributes in a form that is equal if they mean the same."""
    if value.operation == "call":
        primitive = value.attributes["primitive"]
        body = getattr(primitive, "graph", None)
        if isinstance(body, Graph):
            return repr(primitive), meaning_of(body)
        told = [getattr(primitive, name, None) for name in ("template", "order")]
        return primitive.name, repr(told)
    if value.operation == "update":
        return value.attributes["strides"]
    return tuple(sorted(value.attributes.items()))


def meaning_of(body: Graph) -> Any:
    """Return what is equal for bodies that compute the same."""
    values = body.values()
    place = {value: k for k, value in enumerate(values)}
    lines = []
    for value in values:
        own: Any = _attributes(value)
        if value.operation == "constant":
            own = repr(value.attributes["value"])  # which tells -0.0 from 0.0
        elif value.operation == "update":
            own = (own, value.attributes["offset"])
        operands = tuple([place[operand] for operand in value.operands])
        lines.append((value.operation, value.shape, value.dtype, value.origin, own, operands))
    return tuple(lines), tuple([place[output] for output in body.outputs])
