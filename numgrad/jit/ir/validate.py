"""Validate a graph: the rules that tests check between the stages of the compiler."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.llvm.combine_ir import COMBINES
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.graph import Affine, Graph, Value
from numgrad.ops.core.promotion import broadcast_shapes

__all__ = ["InvalidGraph", "validate"]


# operation -> (how many operands, None for any number; the attributes it has)
_FORMS: dict[str, tuple[int | None, frozenset[str]]] = {
    "input": (0, frozenset(("position",))),
    "array": (0, frozenset(("array", "made"))),
    "constant": (0, frozenset(("value",))),
    "view": (1, frozenset(("maps",))),
    "reshape": (1, frozenset()),
    "reduce": (1, frozenset(("kind", "dims"))),
    "update": (2, frozenset(("offset", "strides"))),
    "join": (None, frozenset(("starts",))),
    "gather": (None, frozenset(("maps",))),
    "scatter": (None, frozenset(("maps", "adds"))),
    "check": (2, frozenset(("kind", "low", "size", "dim"))),
    "matmul": (2, frozenset()),
    "call": (None, frozenset(("primitive",))),
    "item": (1, frozenset(("position",))),
}


class InvalidGraph(AssertionError):
    """A graph breaks a rule of the representation: a mistake in the compiler, not the user's."""


def validate(graph: Graph) -> None:
    """Check every rule of the representation.

    Raises
    ------
    InvalidGraph
        With what is wrong and the line of the printed graph where it is.

    Examples
    --------
    >>> x = Value("input", (), (3,), np.dtype("float64"), position=0)
    >>> validate(Graph([x], [Value("exp", [x], (4,), x.dtype)]))
    Traceback (most recent call last):
    numgrad.jit.ir.validate.InvalidGraph: the operands broadcast to (3,), not to (4,):
        v0: f64[4] = exp(x0)
    """
    _check_acyclic(graph)
    values = graph.values()
    for position, value in enumerate(graph.inputs):
        if value.operation != "input":
            raise InvalidGraph(f"input {position} is the result of {value.operation}")
        if value.attributes.get("position") != position:
            raise InvalidGraph(f"input {position} has the attributes {dict(value.attributes)}")
    known = set(graph.inputs)
    for value in values:
        wrong = next(_problems(value, known), None)
        if wrong:
            raise InvalidGraph(f"{wrong}:\n    {_line(graph, values, value)}")


def _check_acyclic(graph: Graph) -> None:
    done: set[Value] = set()
    open_: set[Value] = set()
    for output in graph.outputs:
        stack = [(output, iter(output.operands))]
        open_.add(output)
        while stack:
            value, rest = stack[-1]
            operand = next(rest, None)
            if operand is None:
                done.add(value)
                open_.discard(value)
                stack.pop()
            elif operand in open_:
                raise InvalidGraph(f"{operand.operation}, of type {operand.type}, needs itself")
            elif operand not in done:
                open_.add(operand)
                stack.append((operand, iter(operand.operands)))


def _line(graph: Graph, values: list[Value], value: Value) -> str:
    """Return the line of the printed graph that defines a value."""
    lines = str(graph).splitlines()
    return lines[max(0, values.index(value) - len(graph.inputs) + 1)].strip()


def _problems(value: Value, inputs: set[Value]) -> Iterator[str]:
    """Say what is wrong with a value, the most basic first."""
    operation, shape = value.operation, value.shape
    if type(shape) is not tuple or not all(type(n) is int and n >= 0 for n in shape):
        yield f"the shape {shape!r} is no tuple of sizes"
    if value.is_elementwise:
        yield from _elementwise(value)
        return
    count, attributes = _FORMS[operation]
    if count is not None and len(value.operands) != count:
        yield f"{operation} has {count} operands, not {len(value.operands)}"
    if value.attributes.keys() != attributes:
        yield f"the attributes are {sorted(value.attributes)}, not {sorted(attributes)}"
    if operation == "input" and value not in inputs:
        yield "this input is not among the function's"
    check = _CHECKS.get(operation)
    if check is not None:
        yield from check(value)


def _elementwise(value: Value) -> Iterator[str]:
    operands = value.operands
    signature = SCALAR_OPS.get(value.operation)
    if signature is None:
        yield f"there is no operation {value.operation}"
        return
    if value.attributes:
        yield f"{value.operation} has no attributes"
    if len(operands) != signature.operands:
        yield f"{value.operation} has {signature.operands} operands, not {len(operands)}"
    try:
        shape = broadcast_shapes([(), *(operand.shape for operand in operands)])
    except RuntimeError:
        yield f"the shapes {', '.join(str(o.shape) for o in operands)} do not broadcast"
        return
    if shape != value.shape:
        yield f"the operands broadcast to {shape}, not to {value.shape}"
    if value.operation == "where":
        if operands[0].dtype != np.dtype(bool):
            yield f"the condition is {operands[0].type}, not bool"
        operands = operands[1:]
    dtype = operands[0].dtype
    if any(operand.dtype != dtype for operand in operands):
        yield f"the operands are {', '.join(operand.type for operand in operands)}"
    if dtype.kind not in signature.kinds:
        yield f"{value.operation} does not take {dtype}"
    expected = value.dtype if signature.result == "cast" else signature.result_dtype(dtype)
    if value.dtype != expected:
        yield f"{value.operation} of {dtype} gives {expected}, not {value.dtype}"


def _array(value: Value) -> Iterator[str]:
    array = value.attributes["array"]
    if array.shape != value.shape or array.dtype != value.dtype:
        yield f"the array is {array.dtype}{list(array.shape)}"


def _constant(value: Value) -> Iterator[str]:
    if value.shape != ():
        yield "the shape of a constant is ()"
    number = value.attributes["value"]
    if not isinstance(number, (bool, int, float, complex, np.number, np.bool_)):
        yield f"the value of the constant is {number!r}"
    elif isinstance(number, complex) and value.dtype.kind != "c":
        yield f"{number} is not of dtype {value.dtype}"


def _view(value: Value) -> Iterator[str]:
    (operand,), maps = value.operands, value.attributes["maps"]
    if operand.dtype != value.dtype:
        yield f"a view of {operand.dtype} is not {value.dtype}"
    if len(maps) != len(operand.shape):
        yield f"{len(maps)} maps for {len(operand.shape)} dims"
        return
    for dim, (each, size) in enumerate(zip(maps, operand.shape, strict=True)):
        if not isinstance(each, Affine):
            yield f"the map of dim {dim} is {each!r}"
            return
        dims = [term[0] for term in each.terms]
        if dims != sorted(set(dims)) or any(not 0 <= d < len(value.shape) for d in dims):
            yield f"the terms of the map of dim {dim} are {each.terms}"
            return
        reaches = [(step * (value.shape[d] - 1)) for d, step in each.terms]
        low = each.offset + sum(min(reach, 0) for reach in reaches)
        high = each.offset + sum(max(reach, 0) for reach in reaches)
        if prod(value.shape) and not 0 <= low <= high < size:
            yield f"the view reads from {low} to {high} in dim {dim}, which has the size {size}"


def _reshape(value: Value) -> Iterator[str]:
    (operand,) = value.operands
    if operand.dtype != value.dtype:
        yield f"{operand.dtype} is not reshaped to {value.dtype}"
    if prod(operand.shape) != prod(value.shape):
        yield f"{prod(operand.shape)} elements are not reshaped to {prod(value.shape)}"


def _reduce(value: Value) -> Iterator[str]:
    (operand,), kind, dims = value.operands, value.attributes["kind"], value.attributes["dims"]
    if kind not in COMBINES:
        yield f"there is no reduction {kind!r}"
    rank = len(operand.shape)
    if not isinstance(dims, tuple) or list(dims) != sorted(set(dims)):
        yield f"the dims {dims} are not sorted"
    if any(not 0 <= dim < rank for dim in dims):
        yield f"the dims {dims} are not among {rank}"
        return
    shape = tuple([n for dim, n in enumerate(operand.shape) if dim not in dims])
    if shape != value.shape:
        yield f"the reduction leaves {shape}, not {value.shape}"
    if kind in ("max", "min") and 0 in operand.shape and 0 not in value.shape:
        yield f"nothing has no {kind}"
    if value.dtype != (np.dtype(bool) if kind in ("any", "all") else operand.dtype):
        yield f"the {kind} of {operand.dtype} is not {value.dtype}"
    if kind in ("max", "min") and operand.dtype.kind == "c":
        yield f"complex numbers have no {kind}"


def _update(value: Value) -> Iterator[str]:
    whole, part = value.operands
    offset, strides = value.attributes["offset"], value.attributes["strides"]
    if not whole.dtype == part.dtype == value.dtype:
        yield f"{whole.dtype} with a part of {part.dtype} is not {value.dtype}"
    if whole.shape != value.shape:
        yield f"the update of {whole.shape} is not {value.shape}"
    if len(strides) != len(part.shape):
        yield f"the strides {strides} are not those of {part.shape}"
        return
    if 0 in part.shape:
        return
    reaches = [stride * (n - 1) for stride, n in zip(strides, part.shape, strict=True)]
    low = offset + sum(min(reach, 0) for reach in reaches)
    high = offset + sum(max(reach, 0) for reach in reaches)
    size: int = prod(whole.shape)
    if not 0 <= low <= high < size:
        yield f"the window reaches from {low} to {high}, of {size} elements"
    if any(stride == 0 and n > 1 for stride, n in zip(strides, part.shape, strict=True)):
        yield "the window has elements that are written more than once"


def _join(value: Value) -> Iterator[str]:
    starts, shape = value.attributes["starts"], value.shape
    if len(starts) != len(value.operands):
        yield f"there are {len(starts)} starts for {len(value.operands)} parts"
        return
    boxes = []
    for part, start in zip(value.operands, starts, strict=True):
        if part.dtype != value.dtype:
            yield f"a part of {part.dtype} is not {value.dtype}"
        if len(part.shape) != len(shape) or len(start) != len(shape):
            yield f"a part of shape {part.shape} at {start} is no box in {shape}"
            return
        ends = [first + n for first, n in zip(start, part.shape, strict=True)]
        if min(start, default=0) < 0 or any(e > n for e, n in zip(ends, shape, strict=True)):
            yield f"a part reaches from {start} to {tuple(ends)}, of {shape}"
        boxes.append(list(zip(start, ends, strict=True)))
    for k, box in enumerate(boxes):
        for other in boxes[:k]:
            if all(a < d and c < b for (a, b), (c, d) in zip(box, other, strict=True)):
                yield f"two parts have elements in common: {other} and {box}"
    if sum(prod(part.shape) for part in value.operands) != prod(shape):
        yield f"the parts do not fill {shape}"


def _gather(value: Value) -> Iterator[str]:
    source, *positions = value.operands
    if source.dtype != value.dtype:
        yield f"a gather from {source.dtype} is not {value.dtype}"
    yield from _positions(value.attributes["maps"], source.shape, value.shape, positions)


def _scatter(value: Value) -> Iterator[str]:
    base, part, *positions = value.operands
    if not base.dtype == part.dtype == value.dtype:
        yield f"{base.dtype} with a part of {part.dtype} is not {value.dtype}"
    if base.shape != value.shape:
        yield f"the scatter into {base.shape} is not {value.shape}"
    yield from _positions(value.attributes["maps"], base.shape, part.shape, positions)


def _positions(
    maps: Any, own: tuple[int, ...], shape: tuple[int, ...], positions: list[Value]
) -> Iterator[str]:
    """Check maps of an index in a shape and of positions to an array of shape `own`."""
    for each in positions:
        if each.dtype.kind != "i":
            yield f"positions are not {each.dtype}"
        if each.shape != shape:
            yield f"positions of shape {each.shape} are not of {shape}"
    if len(maps) != len(own):
        yield f"{len(maps)} maps for {len(own)} dims"
        return
    used = []
    for dim, ((offset, terms), size) in enumerate(zip(maps, own, strict=True)):
        if any(not 0 <= d < len(shape) + len(positions) for d, _ in terms):
            yield f"the terms of the map of dim {dim} are {terms}"
            return
        used += [d for d, _ in terms if d >= len(shape)]
        if any(d >= len(shape) for d, _ in terms):
            continue
        reaches = [step * (shape[d] - 1) for d, step in terms]
        low = offset + sum(min(reach, 0) for reach in reaches)
        high = offset + sum(max(reach, 0) for reach in reaches)
        if 0 not in shape and not 0 <= low <= high < size:
            yield f"it reads from {low} to {high} in dim {dim} of size {size}"
    if sorted(set(used)) != [len(shape) + k for k in range(len(positions))]:
        yield "not all positions are used"


def _check(value: Value) -> Iterator[str]:
    index, flag = value.operands
    if (index.shape, index.dtype) != (value.shape, value.dtype):
        yield f"the check of {index.type} is not {value.type}"
    if flag.shape or flag.dtype != np.dtype(bool):
        yield f"what a check goes by is b[], not {flag.type}"


def _matmul(value: Value) -> Iterator[str]:
    a, b = value.operands
    if len(a.shape) != 2 or len(b.shape) != 2:
        yield f"{a.shape} and {b.shape} are not matrices"
        return
    if a.shape[1] != b.shape[0] or value.shape != (a.shape[0], b.shape[1]):
        yield f"{a.shape} times {b.shape} is not {value.shape}"
    if not a.dtype == b.dtype == value.dtype:
        yield f"{a.dtype} times {b.dtype} is not {value.dtype}"


def _item(value: Value) -> Iterator[str]:
    (operand,), position = value.operands, value.attributes["position"]
    if operand.operation != "call":
        yield f"an item is of a call, not of {operand.operation}"
    if type(position) is not int or position < 0:
        yield f"there is no item {position!r}"


_CHECKS: dict[str, Any] = {
    "array": _array,
    "constant": _constant,
    "view": _view,
    "reshape": _reshape,
    "reduce": _reduce,
    "update": _update,
    "join": _join,
    "gather": _gather,
    "scatter": _scatter,
    "check": _check,
    "matmul": _matmul,
    "item": _item,
}
