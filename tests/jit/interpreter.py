"""What a graph means, in NumPy: slow, and plain enough to be right.

What elementwise operations and reductions are may be said otherwise: `evaluate` and `run_graph` do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import scipy.special

from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.kernels.move.bounds import BOUNDS

__all__ = ["UFUNCS", "by_numpy", "fold_by_numpy", "interpret"]

Array = np.ndarray[Any, Any]
Operation = Callable[[Value, list[Array]], Array]

UFUNCS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "true_divide": np.true_divide,
    "complex_divide": np.true_divide,
    "neg": np.negative,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
    "where": np.where,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "abs": np.abs,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sigmoid": scipy.special.expit,
    "floor": np.floor,
    "pow": np.power,
    "logical_not": np.logical_not,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "isnan": np.isnan,
    "real": np.real,
    "imag": np.imag,
    "conj": np.conj,
}
_FOLDS: dict[str, Any] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
}


def by_numpy(value: Value, operands: list[Array]) -> Array:
    """Return the result of an elementwise operation."""
    return np.asarray(UFUNCS[value.operation](*operands)).astype(value.dtype)


def fold_by_numpy(value: Value, operands: list[Array]) -> Array:
    """Return the result of a reduction."""
    kind = value.attributes["kind"]
    options = {"dtype": value.dtype} if kind in ("sum", "prod") else {}
    return np.asarray(_FOLDS[kind](operands[0], axis=tuple(value.attributes["dims"]), **options))


def interpret(
    graph: Graph,
    arrays: Sequence[Array],
    elementwise: Operation = by_numpy,
    fold: Operation = fold_by_numpy,
) -> list[Array]:
    """Return the outputs of a graph, and check that values have the shapes and dtypes they say."""
    known: dict[Value, Any] = dict(zip(graph.inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        for value in graph.values():
            if value in known:
                continue
            operands = [known[operand] for operand in value.operands]
            if value.operation == "call":
                known[value] = _call(value, operands, elementwise, fold)
                continue
            if value.operation == "reduce":
                result = fold(value, operands)
            elif value.is_elementwise and value.operation != "cast":
                result = elementwise(value, operands)
            else:
                result = _structural(value, operands)
            if not _grows(value):  # how many turns a loop makes is not known before
                assert np.shape(result) == value.shape, (value.type, value, np.shape(result))
            assert result.dtype == value.dtype, (value.operation, value.type, result.dtype)
            known[value] = result
    return [np.asarray(known[output]) for output in graph.outputs]


def _grows(value: Value) -> bool:
    """Whether a value is what a loop stacks in turns of which only it knows how many there are."""
    if value.operation != "item":
        return False
    loop = value.operands[0].attributes["primitive"]
    return isinstance(loop, Loop) and loop.grows(value.attributes["position"])


def _call(value: Value, operands: list[Array], elementwise: Operation, fold: Operation) -> Any:
    primitive = value.attributes["primitive"]
    if isinstance(primitive, Loop):
        return _loop(primitive, operands, elementwise, fold)
    if not isinstance(primitive, Rows):
        results = primitive.forward(*map(np.asarray, operands))
        return results if isinstance(results, tuple) else (results,)
    vector = primitive.graph.inputs[0]
    count = prod(vector.shape)
    units = np.eye(count, dtype=vector.dtype).reshape(count, *vector.shape)
    rows = [interpret(primitive.graph, [unit, *operands], elementwise, fold) for unit in units]
    return tuple([np.stack(column) for column in zip(*rows, strict=True)])


def _loop(loop: Loop, operands: list[Any], elementwise: Operation, fold: Operation) -> Any:
    carries, rows = operands[: loop.carries], operands[loop.carries : loop.carries + loop.rows]
    rest = operands[loop.carries + loop.rows :]
    count = int(rest[0]) if loop.counted else loop.length
    stacked: list[list[Array]] = []
    turn = 0
    while bool(carries[0]) if loop.stops else turn < count:
        k = count - 1 - turn if loop.reverse else turn
        found = interpret(
            loop.graph, [*carries, *(row[k] for row in rows), *rest], elementwise, fold
        )
        carries = found[: loop.carries]
        stacked.append(found[loop.carries :])
        turn += 1
    if loop.reverse:
        stacked.reverse()
    stacks = []
    for number, (shape, dtype) in enumerate(loop.metas()[loop.carries :]):
        stack = np.zeros((max(turn, shape[0]), *shape[1:]), dtype)
        if stacked:
            stack[:turn] = [found[number] for found in stacked]
        stacks.append(stack)
    return (*carries, *stacks)


def _places(maps: Any, shape: tuple[int, ...], positions: list[Any]) -> tuple[Any, ...]:
    """Return the index that maps of places in a shape and of positions stand for."""
    known = [*np.indices(shape), *positions]
    start = np.zeros(shape, np.int64)
    return tuple(
        [offset + sum((step * known[dim] for dim, step in terms), start) for offset, terms in maps]
    )


def _structural(value: Value, operands: list[Any]) -> Any:
    attributes, dtype, shape = value.attributes, value.dtype, value.shape
    match value.operation:
        case "array":
            return attributes["array"]
        case "constant":
            return np.array(attributes["value"]).astype(dtype)
        case "cast":
            (operand,) = operands
            if operand.dtype.kind == "c" and dtype.kind not in "cb":
                operand = operand.real
            return operand.astype(dtype)
        case "view":
            if 0 in shape:
                return np.empty(shape, dtype)
            grid = np.indices(shape)
            index = []
            for offset, terms in attributes["maps"]:
                index.append(
                    offset + sum((step * grid[dim] for dim, step in terms), np.zeros(shape, int))
                )
            return operands[0][tuple(index)] if index else np.broadcast_to(operands[0], shape)
        case "reshape":
            return operands[0].reshape(shape)
        case "update":
            flat = np.array(operands[0]).reshape(-1)
            part = operands[1]
            places = attributes["offset"] + sum(
                (s * g for s, g in zip(attributes["strides"], np.indices(part.shape), strict=True)),
                np.zeros(part.shape, int),
            )
            flat[places.reshape(-1)] = part.reshape(-1)
            return flat.reshape(shape)
        case "join":
            result = np.empty(shape, dtype)
            for part, start in zip(operands, attributes["starts"], strict=True):
                box = [slice(s, s + n) for s, n in zip(start, part.shape, strict=True)]
                result[tuple(box)] = part
            return result
        case "gather":
            return operands[0][_places(attributes["maps"], shape, operands[1:])]
        case "scatter":
            result = np.array(operands[0])
            places = _places(attributes["maps"], operands[1].shape, operands[2:])
            if not attributes["adds"]:
                result[places] = operands[1]
            else:
                np.add.at(result, places, operands[1])
            return result
        case "check":
            index, flag = operands
            if flag:
                bad = index[(index < attributes["low"]) | (index >= attributes["size"])]
                error, words = BOUNDS[attributes["kind"]]
                raise error(words.format(bad.flat[0], attributes["dim"], attributes["size"]))
            return index
        case "matmul":  # not by BLAS, whose bits depend on how operands lie in memory
            left, right = operands
            return (left[:, :, None] * right[None]).sum(axis=1, dtype=dtype)
        case "item":
            return operands[0][attributes["position"]]
    raise ValueError(f"what is {value.operation}?")
