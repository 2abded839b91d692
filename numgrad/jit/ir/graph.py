"""The graph of a traced function: values, each an operation on others, and how it prints.

Every operation has one result. Elementwise operations are scalar ones (the functions of
`numgrad.math.scalar` and Python's operators) whose operands broadcast as in NumPy. All dims are
concrete numbers; that a size may differ in the next call is the emitter's concern.

==========  ===================================================================================
operation   meaning, and what `attributes` holds
==========  ===================================================================================
input       an argument of the function: ``position``
array       ``array``: one that the function captured, read anew in every call, or ``made``, whose
            numbers are known
constant    a number, of shape (): ``value``
cast        the operand in another dtype
view        elements of the operand found by index: ``maps``, an `Affine` for each operand dim
reshape     the operand's elements, in row-major order, in another shape
reduce      ``kind`` (sum, prod, max, min, any, all) over ``dims``, which the result lacks
update      the operand with a part replaced by the second: ``offset, strides`` (in elements of the
            flat operand) say where; the part's shape is the second operand's
join        the operands side by side, each a box of the result, which they fill: ``starts``, for
            each of them the index of its first element
gather      elements of the first operand found by index and by positions, the other operands, of
            the result's shape: ``maps`` as of a view, where dims from the rank of the result on
            stand for the positions
scatter     the operand with the elements of the second added (``adds``) or put at positions, in
            row-major order: ``maps`` are those of a gather of the second's shape
check       the operand, whose elements are positions; raises if the second, a truth value, says
            that one is below ``low`` or not below ``size``, of dim ``dim``; ``kind`` says in which
            words
matmul      the product of two matrices
call        a primitive of the catalogue with its parameters, as it stands: ``primitive``; its
            results are had by ``item``
item        one result of a call: ``position``
route       a part of a scatter with its positions: made by schedules, for loops to compute at once
(others)    elementwise, by the name of the scalar operation
==========  ===================================================================================
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["STRUCTURAL", "Affine", "Graph", "Value"]

# Every other operation is elementwise.
STRUCTURAL = frozenset(
    (
        "input",
        "array",
        "constant",
        "view",
        "reshape",
        "reduce",
        "update",
        "join",
        "gather",
        "scatter",
        "check",
        "route",
        "matmul",
        "call",
        "item",
    )
)

_SHORT = {"float": "f", "int": "i", "uint": "u", "complex": "c", "bool": "b"}


_next_number = itertools.count().__next__


class Affine(NamedTuple):
    """An index of the operand of a view: ``offset + sum(step * index[dim] for dim, step)``."""

    offset: int
    terms: tuple[tuple[int, int], ...]  # (dim of the result, step), dims in order

    def __str__(self) -> str:
        parts = [f"i{dim}" if step == 1 else f"{step}*i{dim}" for dim, step in self.terms]
        if self.offset or not parts:
            parts.append(str(self.offset))
        return " + ".join(parts)


class Value:
    """The result of an operation.

    Attributes
    ----------
    operation : str
    operands : tuple of Value
    attributes : mapping
    shape : tuple of int
    dtype : numpy.dtype
    origin : str
        What the user wrote that it came from: ``"exp at model.py:12"``.
    number : int
        Grows with every value made.
    """

    __slots__ = ("attributes", "dtype", "number", "operands", "operation", "origin", "shape")

    def __init__(
        self,
        operation: str,
        operands: Sequence[Value],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        origin: str = "",
        **attributes: Any,
    ) -> None:
        self.operation = operation
        self.operands = tuple(operands)
        self.shape = shape
        self.dtype = dtype
        self.origin = origin
        self.attributes: Mapping[str, Any] = attributes
        self.number = _next_number()

    @property
    def is_elementwise(self) -> bool:
        """Whether each element of the result depends on one element of every operand."""
        return self.operation not in STRUCTURAL

    @property
    def type(self) -> str:
        """The dtype and the shape, as ``f64[3, 4]``."""
        kind = self.dtype.name.rstrip("0123456789")
        bits = "" if kind == "bool" else str(8 * self.dtype.itemsize)
        return f"{_SHORT[kind]}{bits}[{', '.join(map(str, self.shape))}]"


class Graph:
    """Inputs, outputs, and by way of the outputs' operands everything between.

    Attributes
    ----------
    inputs, outputs : tuple of Value
    unread : frozenset of Value
        Operands of joins that nobody reads: anything may stand in their place.
    """

    def __init__(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        unread: frozenset[Value] = frozenset(),
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.unread = unread

    def values(self) -> list[Value]:
        """Return the inputs and all values that the outputs need, operands first."""
        found: dict[Value, None] = dict.fromkeys(self.inputs)
        stack: list[tuple[Value, Iterator[Value]]] = []
        for output in self.outputs:
            if output not in found:
                stack.append((output, iter(output.operands)))
            while stack:
                value, rest = stack[-1]
                operand = next(rest, None)
                if operand is None:
                    found[value] = None
                    stack.pop()
                elif operand not in found:
                    stack.append((operand, iter(operand.operands)))
        return list(found)

    def __reduce__(self) -> Any:
        """Have the values pickled one after the other: within each other they are too deep."""
        values = sorted(self.values(), key=lambda value: value.number)
        at = {value: k for k, value in enumerate(values)}
        rows = [
            (v.operation, [at[o] for o in v.operands], v.shape, v.dtype, v.origin, v.attributes)
            for v in values
        ]
        ends = [[at[value] for value in end] for end in (self.inputs, self.outputs)]
        return _graph_of, (rows, *ends, [at[value] for value in self.unread if value in at])

    def __str__(self) -> str:
        values = self.values()
        names = {value: f"x{k}" for k, value in enumerate(self.inputs)}
        for value in values:
            names.setdefault(value, f"v{len(names) - len(self.inputs)}")
        head = ", ".join(f"{names[value]}: {value.type}" for value in self.inputs)
        lines = [f"function({head}):"]
        for value in values[len(self.inputs) :]:
            arguments = [names[operand] for operand in value.operands]
            arguments += [f"{k}={_show(v)}" for k, v in value.attributes.items()]
            line = f"    {names[value]}: {value.type} = {value.operation}({', '.join(arguments)})"
            lines.append(f"{line}  # {value.origin}" if value.origin else line)
            body = getattr(value.attributes.get("primitive"), "graph", None)
            if body is not None:
                lines += [f"        {each}" for each in str(body).splitlines()]
        lines.append(f"    return {', '.join(names[value] for value in self.outputs)}")
        return "\n".join(lines)


def _graph_of(
    rows: Sequence[Any], inputs: Sequence[int], outputs: Sequence[int], unread: Sequence[int]
) -> Graph:
    """Return the graph that was pickled as these rows."""
    values: list[Value] = []
    for operation, operands, shape, dtype, origin, attributes in rows:
        given = [values[k] for k in operands]
        values.append(Value(operation, given, shape, dtype, origin, **attributes))
    first, last, skipped = ([values[k] for k in end] for end in (inputs, outputs, unread))
    return Graph(first, last, frozenset(skipped))


def _show(attribute: Any) -> str:
    """Return a short form of an attribute."""
    if isinstance(attribute, np.ndarray):
        return f"<{attribute.dtype} {list(attribute.shape)}>"
    if isinstance(attribute, tuple) and attribute and isinstance(attribute[0], Affine):
        return f"[{', '.join(map(str, attribute))}]"
    name = None if hasattr(attribute, "graph") else getattr(attribute, "name", None)
    return name or repr(attribute)
