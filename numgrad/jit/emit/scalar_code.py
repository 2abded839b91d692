"""Scalar operations of a graph as expressions, in the dtypes that they have there.

Operators and functions are those of eager kernels (`numgrad.codegen.scalar_ops`), so the bits are
the same. Numba computes small integers and bools as int64; they are brought back to their dtype.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from numgrad.codegen.expression import operation, scalar
from numgrad.codegen.loops import (
    ZERO,
    Assign,
    Attribute,
    Expression,
    Name,
    Number,
    Prefix,
    Statement,
    call,
    combine,
    literal,
    names,
    plus,
    times,
    type_code,
)
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.symbolic_sizes import Size

__all__ = [
    "FINISHES",
    "PART",
    "SPAN",
    "cast_code",
    "is_plain",
    "new_array",
    "operation_code",
    "plain_code",
    "size_code",
]

_PLAIN = frozenset((0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, 4.0))
_EXACT = frozenset(("int64", "float32", "float64", "complex64", "complex128"))
PART, SPAN, FINISHES = names("numgrad.codegen.loop_runtime", "part", "span", "finishes")
(_EMPTY,) = names("numpy", "empty")


def new_array(name: str, shape: Any, dtype: np.dtype[Any]) -> Statement:
    """Return what makes an array, of undefined values."""
    return Assign(name, call(_EMPTY, shape, type_code(dtype)))


def is_plain(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a constant is written into the source; others are arguments."""
    if dtype.kind == "b":
        return True
    if dtype.kind == "c":
        return False
    number = float(value)
    return number in _PLAIN or math.isinf(number) or math.isnan(number)


def plain_code(value: Any, dtype: np.dtype[Any]) -> Expression:
    """Return a constant."""
    if dtype.kind == "b":
        return Number(bool(value))
    if dtype.kind in "iu":
        return call(type_code(dtype), int(value))
    if dtype.kind == "c":
        parts = literal(float(value.real)), literal(float(value.imag))
        return call(type_code(dtype), call(Name("complex"), *parts))
    return call(type_code(dtype), literal(float(value)))


def cast_code(number: Expression, source: np.dtype[Any], target: np.dtype[Any]) -> Expression:
    """Return a number in another dtype."""
    if source == target:
        return number
    if target.kind == "b":
        return combine("!=", number, ZERO)
    if source.kind == "c" and target.kind != "c":
        number = Attribute(number, "real")
    if source.kind in "fc" and target.kind in "iu":
        kind = target.name if target.itemsize >= 4 else "int32"
        number = call(scalar(f"to_{kind}"), number)
    if source.kind == "b":
        number = call(type_code(np.dtype(np.uint8)), number)
    return call(type_code(target), number)


def operation_code(value: Value, arguments: Sequence[Expression]) -> Expression:
    """Return an elementwise operation on its operands."""
    name, dtype = value.operation, value.dtype
    if name == "cast":
        return cast_code(arguments[0], value.operands[0].dtype, dtype)
    if name == "bitwise_not" and dtype.kind == "b":
        name = "logical_not"
    code = operation(name, arguments, dtype.kind == "c")
    if dtype.name in _EXACT or SCALAR_OPS[name].is_truth:
        return code
    return combine("!=", code, ZERO) if dtype.kind == "b" else call(type_code(dtype), code)


@lru_cache(1 << 12)
def size_code(size: Size) -> Expression:
    """Return a size as the sum of products that it is."""
    terms = []
    for of_product, factor in sorted(size.terms.items()):
        first = of_product[:1]
        if factor == -1 and first:
            terms.append(times(Prefix("-", Name(first[0])), *of_product[1:]))
        else:
            terms.append(times(factor, *of_product))
    return plus(*terms)
