"""The meaning of a graph, in NumPy: every operation run by itself, for tests to compare with.

Numbers must not depend on how an array lies in memory, so functions that NumPy computes several
elements at a time are called on one at a time, and reductions fold halves of an array, in which the
order matters for floating point numbers as it does in our kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.jit.ir.graph import Graph, Value
from tests.jit.interpreter import interpret

__all__ = ["evaluate", "same_bits"]

Array = np.ndarray[Any, Any]


def _one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arrays: Array) -> Array:
        operands = np.broadcast_arrays(*arrays)
        results = [
            function(*[np.array([x], a.dtype) for x, a in zip(xs, operands, strict=True)])[0]
            for xs in zip(*(a.ravel().tolist() for a in operands), strict=True)
        ]
        dtype = function(*[np.ones(1, a.dtype) for a in operands]).dtype
        return np.array(results, dtype).reshape(operands[0].shape)

    return run


def _maximum(a: Array, b: Array) -> Array:
    return np.where((a > b) | (a != a), a, b)


def _minimum(a: Array, b: Array) -> Array:
    return np.where((a < b) | (a != a), a, b)


def _complex_of(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    result = np.empty(a.shape, np.result_type(a.dtype, np.complex64))
    result.real, result.imag = a, b
    return result


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pow": np.power,
    "add": np.add,
    "sub": np.subtract,
    "mul": _one_by_one(np.multiply),
    "true_divide": _one_by_one(np.true_divide),
    "neg": np.negative,
    "abs": _one_by_one(np.absolute),
    "sqrt": _one_by_one(np.sqrt),
    "exp": _one_by_one(np.exp),
    "sin": _one_by_one(np.sin),
    "cosh": _one_by_one(np.cosh),
    "maximum": _maximum,
    "minimum": _minimum,
    "where": np.where,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_not": np.logical_not,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "floor_divide": np.floor_divide,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "copysign": np.copysign,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "conj": np.conj,
    "complex_of": _complex_of,
}

_COMBINE: dict[str, tuple[Callable[..., Any], Any]] = {
    "sum": (np.add, 0),
    "prod": (np.multiply, 1),
    "max": (_maximum, None),
    "min": (_minimum, None),
    "any": (np.logical_or, False),
    "all": (np.logical_and, True),
}


def evaluate(graph: Graph, arguments: Sequence[Array]) -> list[Array]:
    """Return the outputs for arguments."""
    return interpret(graph, arguments, _elementwise, _reduce)


def _elementwise(value: Value, operands: list[Array]) -> Array:
    return np.asarray(_FUNCTIONS[value.operation](*map(np.asarray, operands)))


def _reduce(value: Value, operands: list[Array]) -> Array:
    (x,) = operands
    dims = value.attributes["dims"]
    combine, identity = _COMBINE[value.attributes["kind"]]
    rows = np.moveaxis(x, dims, range(len(dims)))
    rows = rows.reshape((-1, *value.shape) if x.size else (0, *value.shape))
    if value.dtype.kind == "b" and value.attributes["kind"] in ("any", "all"):
        rows = rows != 0
    while len(rows) > 1:
        half = (len(rows) + 1) // 2
        rows = np.concatenate(
            [combine(rows[: len(rows) - half], rows[half:]), rows[len(rows) - half : half]]
        )
    if identity is None:
        return np.array(rows[0], value.dtype)
    start = np.full(value.shape, identity, value.dtype)
    return np.asarray(combine(start, rows[0]) if len(rows) else start).astype(value.dtype)


def same_bits(a: Array, b: Array) -> bool:
    """Whether arrays are the same to the bit, but for which nan a nan is."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(np.array_equal(_bits(a), _bits(b)))


def _bits(a: Array) -> Array:
    a = np.array(a, order="C").reshape(-1)
    if a.dtype.kind == "c":
        a = a.view(a.real.dtype)
    if a.dtype.kind == "f":
        a[np.isnan(a)] = np.nan
    return a.view(np.uint8)
