"""Running a graph operation by operation, each by the kernel that eager mode has for it.

So what differs from eager mode differs in the graph, and nothing needs to be compiled for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from numgrad.jit.graph import Graph, Value
from numgrad.kernels.elementwise import Elementwise
from numgrad.kernels.expression import Symbol
from tests.jit.interpreter import _compute

__all__ = ["run_graph"]

_BY_NUMPY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "true_divide": np.true_divide,
    "neg": np.negative,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_not": np.logical_not,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "where": np.where,
    "isnan": np.isnan,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "conj": np.conj,
    "real": np.real,
    "imag": np.imag,
}


def run_graph(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs for arguments."""
    known: dict[Value, Any] = dict(zip(graph.inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        for value in graph.values():
            if value in known:
                continue
            operands = [known[operand] for operand in value.operands]
            if value.operation == "cast" or not value.is_elementwise:
                result = _compute(value, operands)
            else:
                result = _elementwise(value, operands)
            if value.operation != "call":
                assert np.shape(result) == value.shape, (value.operation, value.type)
                assert result.dtype == value.dtype, (value.operation, value.type, result.dtype)
            known[value] = result
    return [np.asarray(known[output]) for output in graph.outputs]


def _elementwise(value: Value, operands: list[Any]) -> np.ndarray:
    function = _BY_NUMPY.get(value.operation)
    if function is not None and (value.dtype.kind != "c" or value.operation == "where"):
        return np.asarray(function(*operands))
    arrays = [np.array(np.broadcast_to(operand, value.shape)) for operand in operands]
    (result,) = _kernel(value.operation, len(operands))(value.shape, arrays, [value.dtype])
    return result


@lru_cache(None)
def _kernel(operation: str, count: int) -> Elementwise:
    names = [f"operand{k}" for k in range(count)]
    return Elementwise(
        f"graph_{operation}",
        names,
        lambda symbols: [Symbol.apply(operation, *[symbols[name] for name in names])],
    )
