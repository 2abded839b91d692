"""What makes two operations of a trace alike: all but which values they take, and from where on.

Views and numbers are seen as part of the operations that take them: whether one was made for each
of these or once for all says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from numgrad.jit.ir.constructors import reshape, view
from numgrad.jit.ir.graph import Affine, Graph, Value

__all__ = ["Operation", "Tokens", "followed_back", "rebased", "row_of"]

# What leads from an operand to what is computed: views and reshapes, the last one first.
Path = tuple[Value, ...]


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
    offsets : tuple of int
        Where these views begin, and the part that is written.
    """

    value: Value
    token: int
    paths: list[Path]
    bases: list[Value]
    offsets: tuple[int, ...]


class Tokens:
    """Numbers for what operations are alike in."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.facts: dict[Value, tuple[Any, tuple[int, ...]]] = {}  # of views
        self.operations: dict[Value, Operation] = {}

    def operation(self, value: Value) -> Operation:
        """Return what there is to know of a value that is no view, number or input."""
        found = self.operations.get(value)
        if found is None:
            found = self.operations[value] = self._found_out(value)
        return found

    def _found_out(self, value: Value) -> Operation:
        paths, bases, parts = [], [], []
        offsets: list[int] = []
        for operand in value.operands:
            path, base = followed_back(operand)
            paths.append(path)
            bases.append(base)
            for step in path:
                part, found = self._of_view(step)
                parts.append(part)
                offsets += found
            parts += (len(path), base.shape, base.dtype)
        if value.operation == "update":
            offsets.append(value.attributes["offset"])
        told = _attributes(value) if value.attributes else ()
        key = (value.operation, value.shape, value.dtype, value.origin, told, *parts)
        token = self.known.setdefault(key, len(self.known))
        return Operation(value, token, paths, bases, tuple(offsets))

    def _of_view(self, value: Value) -> tuple[Any, tuple[int, ...]]:
        """Return what a view is but for where it begins, and that."""
        found = self.facts.get(value)
        if found is None:
            maps = value.attributes.get("maps", ())
            terms = tuple([each.terms for each in maps])
            offsets = tuple([each.offset for each in maps])
            found = self.facts[value] = ((value.operation, value.shape, terms), offsets)
        return found


def followed_back(value: Value) -> tuple[Path, Value]:
    """Return the views that lead to what a value is a view of, and that."""
    if value.operation not in ("view", "reshape"):
        return (), value
    path = []
    while value.operation in ("view", "reshape"):
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


def row_of(value: Value, row: int) -> Value:
    """Return one element of the first dim."""
    maps = [Affine(row, ()), *(Affine(0, ((dim, 1),)) for dim in range(len(value.shape) - 1))]
    return view(value, maps, value.shape[1:])


def _attributes(value: Value) -> Any:
    """Return the attributes in a form that is equal if they mean the same."""
    if value.operation == "call":
        primitive = value.attributes["primitive"]
        body = getattr(primitive, "graph", None)
        if isinstance(body, Graph):
            return repr(primitive), _meaning(body)
        told = [getattr(primitive, name, None) for name in ("template", "order")]
        return primitive.name, repr(told), repr(value.attributes["parameters"])
    if value.operation == "update":
        return value.attributes["strides"]
    return tuple(sorted(value.attributes.items()))


def _meaning(body: Graph) -> Any:
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
