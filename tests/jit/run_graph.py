"""Running a graph operation by operation, each by the kernel that eager mode has for it.

So what differs from eager mode differs in the graph, and nothing needs to be compiled for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.base.pytree import flatten, unflatten
from numgrad.codegen.expression import Symbol
from numgrad.jit.front.trace_function import trace_function
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.ir.validate import validate
from numgrad.jit.passes.simplify import simplify
from numgrad.kernels.pointwise.elementwise import Elementwise
from tests.jit.interpreter import UFUNCS, interpret

__all__ = ["run_graph", "run_traced"]

# Of which NumPy's function gives the same bits: what IEEE 754 says, or no arithmetic at all.
_BY_NUMPY = frozenset(
    [
        "add",
        "sub",
        "mul",
        "true_divide",
        "neg",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_not",
        "logical_and",
        "logical_or",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "where",
        "isnan",
        "sqrt",
        "floor",
        "conj",
        "real",
        "imag",
    ]
)


def run_graph(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs for arguments."""
    return interpret(graph, arrays, _elementwise)


def _elementwise(value: Value, operands: list[Any]) -> np.ndarray:
    if value.operation in _BY_NUMPY and (value.dtype.kind != "c" or value.operation == "where"):
        return np.asarray(UFUNCS[value.operation](*operands))
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


def run_traced(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns: what its trace means, simplified, with nothing compiled."""
    leaves, spec = flatten((arguments, {}))
    traced = trace_function(function, spec, leaves)
    validate(traced.graph)
    graph = simplify(traced.graph)
    validate(graph)
    computed = run_graph(graph, [leaves[k]._array for k in traced.traced])
    found = {
        "computed": lambda which: ng.from_numpy(np.array(computed[which])),
        "argument": lambda which: leaves[which],
        "static": lambda which: which,
    }
    results = [found[kind](which) for kind, which, *_ in traced.outputs]
    return unflatten(traced.spec, results)
