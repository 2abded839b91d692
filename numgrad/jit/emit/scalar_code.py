"""Generate the source of one scalar operation, in the dtypes that it has in the graph.

Operators and functions are those of eager kernels (`numgrad.codegen.scalar_ops`), so the bits are
the same. Numba computes small integers and bools as int64; they are brought back to their dtype.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.graph import Value

__all__ = ["cast_code", "identity_code", "is_plain", "operation_code", "plain_code", "type_code"]

_PLAIN = frozenset((0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, 4.0))
_EXACT = frozenset(("int64", "float32", "float64", "complex64", "complex128"))


def type_code(dtype: np.dtype[Any]) -> str:
    """Return the source of a dtype's type."""
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def is_plain(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a constant is written into the source; others are arguments."""
    if dtype.kind == "b":
        return True
    if dtype.kind == "c":
        return False
    number = float(value)
    return number in _PLAIN or math.isinf(number) or math.isnan(number)


def plain_code(value: Any, dtype: np.dtype[Any]) -> str:
    """Return the source of a constant."""
    if dtype.kind == "b":
        return repr(bool(value))
    if dtype.kind in "iu":
        return f"{type_code(dtype)}({int(value)})"
    text = repr(float(value)).replace("inf", "np.inf").replace("nan", "np.nan")
    return f"{type_code(dtype)}({text})"


def identity_code(kind: str, dtype: np.dtype[Any]) -> str:
    """Return the source of what a reduction of nothing gives (for extremes: of what yields)."""
    if dtype.kind == "b":
        return "True" if kind in ("all", "min", "prod") else "False"
    if kind in ("max", "min"):
        lowest = kind == "max"
        if dtype.kind == "f":
            return f"{type_code(dtype)}({'-' if lowest else ''}np.inf)"
        limits = np.iinfo(dtype)
        return f"{type_code(dtype)}({int(limits.min if lowest else limits.max)})"
    return f"{type_code(dtype)}({int(kind == 'prod')})"


def cast_code(name: str, source: np.dtype[Any], target: np.dtype[Any]) -> str:
    """Return the source of a number in another dtype."""
    if source == target:
        return name
    if target.kind == "b":
        return f"({name} != 0)"
    if source.kind == "c" and target.kind != "c":
        name = f"{name}.real"
    if source.kind in "fc" and target.kind in "iu":
        kind = target.name if target.itemsize >= 4 else "int32"
        name = f"scalar.to_{kind}({name})"
    if source.kind == "b":
        name = f"np.uint8({name})"
    return f"{type_code(target)}({name})"


def operation_code(value: Value, arguments: list[str]) -> str:
    """Return the source of an elementwise operation on named operands."""
    operation, dtype = value.operation, value.dtype
    sources = [operand.dtype for operand in value.operands]
    if operation == "cast":
        return cast_code(arguments[0], sources[0], dtype)
    if operation == "true_divide" and dtype.kind == "c":
        operation = "complex_divide"
    if operation == "bitwise_not" and dtype.kind == "b":
        operation = "logical_not"
    op = SCALAR_OPS[operation]
    if op.symbol is not None:
        code = f" {op.symbol} ".join(arguments) if len(arguments) == 2 else op.symbol + arguments[0]
    else:
        code = f"scalar.{operation}({', '.join(arguments)})"
    if dtype.name in _EXACT or op.is_truth:
        return code
    return f"({code}) != 0" if dtype.kind == "b" else f"{type_code(dtype)}({code})"
