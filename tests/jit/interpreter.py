"""What a graph means, in NumPy: slow, and plain enough to be right."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from numgrad.jit.graph import Graph, Value

_UFUNCS: dict[str, Any] = {
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


def interpret(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of a graph."""
    known: dict[Value, Any] = dict(zip(graph.inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        for value in graph.values():
            if value not in known:
                known[value] = _compute(value, [known[operand] for operand in value.operands])
    return [np.asarray(known[output]) for output in graph.outputs]


def _compute(value: Value, operands: list[Any]) -> Any:
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
            grid = np.indices(shape)
            index = []
            for offset, terms in attributes["maps"]:
                index.append(
                    offset + sum((step * grid[dim] for dim, step in terms), np.zeros(shape, int))
                )
            return operands[0][tuple(index)] if index else np.broadcast_to(operands[0], shape)
        case "reshape":
            return operands[0].reshape(shape)
        case "reduce":
            fold = _FOLDS[attributes["kind"]]
            options = {"dtype": dtype} if attributes["kind"] in ("sum", "prod") else {}
            return np.asarray(fold(operands[0], axis=tuple(attributes["dims"]), **options))
        case "update":
            flat = np.array(operands[0]).reshape(-1)
            part = operands[1]
            places = attributes["offset"] + sum(
                (s * g for s, g in zip(attributes["strides"], np.indices(part.shape), strict=True)),
                np.zeros(part.shape, int),
            )
            flat[places.reshape(-1)] = part.reshape(-1)
            return flat.reshape(shape)
        case "matmul":
            return operands[0] @ operands[1]
        case "call":
            results = attributes["primitive"].forward(*operands, **attributes["parameters"])
            return results if isinstance(results, tuple) else (results,)
        case "item":
            return operands[0][attributes["position"]]
        case _:
            result = _UFUNCS[value.operation](*operands)
            return np.asarray(result).astype(dtype)
