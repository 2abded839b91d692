"""Algebra on elementwise operations that keeps every bit of every result.

What is "the same" is what IEEE 754 gives in round to nearest, for inf, nan and -0.0 too; only which
nan it is (sign and payload) is left open. The sign of zero decides most cases:

- ``x * 1``, ``x / 1`` are x, ``x * -1`` is -x. ``x * 0`` is not 0: it is nan for inf, -0.0 for -1.
- ``x + (-0.0)`` and ``x - 0.0`` are x for all x. ``x + 0.0`` turns -0.0 into 0.0, so it is x only
  where x is known never to be -0.0 (`_has_no_negative_zero`).
- ``-0.0 - x`` is -x; ``0.0 - x`` is not, at 0.0. Nor is ``-(a - b)`` the same as ``b - a``.
- ``a + (-b)`` is ``a - b`` and ``a - (-b)`` is ``a + b``: so the standard defines them.
- Signs of products and quotients are computed apart from their sizes, so a minus may be moved:
  ``(-a) * b`` is ``-(a * b)``, and ``(-a) * 2`` is ``a * -2``.
- ``x / c`` for a power of two c is ``x * (1/c)``: both round the same real number. And
  ``(x * p) * c`` is ``x * (p * c)`` for a power of two p >= 1 and abs(c) >= 1: the first product
  is exact, or else infinite, and then the second is too.
- ``x - x`` is nan for inf, ``x / x`` for 0; ``x == x`` and ``x <= x`` are not true for nan, but
  ``x < x`` is never true.

Sums are not reordered, products not distributed. Integers are numbers modulo a power of two, and
every identity of a ring holds for them. Complex products and quotients are formulas of several
roundings in which ``0 * inf`` may appear: they are left alone, but complex sums are two real ones.

A rule may return a value that is smaller than asked for but broadcasts to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.scalar_semantics import fold, number_of, wrap
from numgrad.jit.passes.rewriter import BOOL, Builder, broadcast
from numgrad.jit.passes.views import core

__all__ = ["simplify_constant", "simplify_elementwise"]


def simplify_constant(builder: Builder, value: Value) -> Value | None:
    """Make the constant's number the Python number that its dtype rounds it to."""
    given, number = value.attributes["value"], number_of(value)
    if type(given) is type(number) and (given == number or given != given):
        return None
    return builder.constant(number, value.dtype)


def simplify_elementwise(builder: Builder, value: Value) -> Value | None:
    """Compute on operands without dims along which they repeat; fold constants; apply the rules."""
    operands, shape = value.operands, value.shape
    if any(operand.operation == "view" for operand in operands):
        small = tuple([core(builder, operand) for operand in operands])
        if small != operands:
            found = builder.add(
                Value(value.operation, small, broadcast(small), value.dtype, value.origin)
            )
            return builder.expand(found, shape)
    if all(operand.operation == "constant" for operand in operands):
        number = fold(value)
        return None if number is None else builder.constant(number, value.dtype)
    rule = _RULES.get(value.operation)
    result = rule(builder, value) if rule is not None else None
    return None if result is None else builder.expand(result, shape)


# --- what is known of a value -----------------------------------------------------------------


def _is(value: Value, number: Any) -> bool:
    """Whether a value is a constant that equals a number; 0 is any zero."""
    return value.operation == "constant" and value.attributes["value"] == number


def _zero(value: Value, sign: int) -> bool:
    """Whether a value is the constant zero of that sign; a complex one in both parts."""
    if not _is(value, 0):
        return False
    number = complex(value.attributes["value"])
    parts = [number.real, number.imag] if value.dtype.kind == "c" else [number.real]
    return all(math.copysign(1, part) == sign for part in parts)


def _is_power_of_two(number: float) -> bool:
    return abs(math.frexp(number)[0]) == 0.5


_DEPTH = 4  # how far to look; what is farther down is not known


def _has_no_negative_zero(value: Value, depth: int = _DEPTH) -> bool:
    """Whether no element of a real floating point value can be -0.0, as far as one sees."""
    operation, operands = value.operation, value.operands
    if operation == "constant":
        return not _zero(value, -1)
    op = SCALAR_OPS.get(operation)
    if op is not None and op.never_negative:
        return True
    if operation == "reduce" and _adds(value):
        return True
    if depth == 0:
        return False

    def check(operand: Value) -> bool:
        return _has_no_negative_zero(operand, depth - 1)

    if operation == "add":  # -0.0 is the sum of two of them only
        return check(operands[0]) or check(operands[1])
    if operation == "sub":  # -0.0 - 0.0
        return check(operands[0])
    if operation == "mul":
        return operands[0] is operands[1]
    if operation == "update" or (op is not None and op.chooses):
        return all(map(check, operands[-2:]))
    if operation == "join":
        return all(map(check, operands))
    if operation in ("view", "reshape", "reduce", "gather"):
        return value.attributes.get("kind") != "prod" and check(operands[0])
    if operation == "cast":  # from float64 to float32, small negative numbers become -0.0
        kind = operands[0].dtype.kind
        return kind in "biu" or (operands[0].dtype == value.dtype and check(operands[0]))
    return False


def _adds(value: Value) -> bool:
    """Whether this is a sum: it begins with 0.0, so it is not -0.0."""
    return bool(value.attributes["kind"] == "sum")


# --- arithmetic -------------------------------------------------------------------------------


def _add(builder: Builder, value: Value) -> Value | None:
    a, b = value.operands
    kind = value.dtype.kind
    for x, other in ((a, b), (b, a)):
        if other.operation == "constant":
            if kind == "b":
                return other if other.attributes["value"] else x
            if kind in "iu":
                if _is(other, 0):
                    return x
                if x.operation == "add" and x.operands[1].operation == "constant":
                    return _with_integer(builder, "add", x, other, int.__add__)
            elif _zero(other, -1) or (_zero(other, 1) and kind == "f" and _has_no_negative_zero(x)):
                return x
        if other.operation == "neg":
            return builder.elementwise("sub", x, other.operands[0])
    if kind in "iu" and a.operation == "constant":  # constants stand second, to be found there
        return builder.elementwise("add", b, a)
    if kind == "b" and a is b:
        return a
    return None


def _with_integer(
    builder: Builder, operation: str, inner: Value, outer: Value, combine: Callable[[int, int], int]
) -> Value:
    """Return an operation on an integer constant and the result of the same with another one."""
    x, constant = inner.operands
    number = wrap(combine(number_of(constant), number_of(outer)), constant.dtype)
    return builder.elementwise(operation, x, builder.constant(number, constant.dtype))


def _sub(builder: Builder, value: Value) -> Value | None:
    a, b = value.operands
    kind = value.dtype.kind
    if kind in "iu":
        if a is b:
            return builder.constant(0, value.dtype)
        if _is(a, 0):
            return builder.elementwise("neg", b)
        if b.operation == "constant":
            number = wrap(-number_of(b), b.dtype)
            return builder.elementwise("add", a, builder.constant(number, b.dtype))
    elif _zero(b, 1) or (_zero(b, -1) and kind == "f" and _has_no_negative_zero(a)):
        return a
    elif _zero(a, -1):
        return builder.elementwise("neg", b)
    if b.operation == "neg":
        return builder.elementwise("add", a, b.operands[0])
    return None


def _neg(builder: Builder, value: Value) -> Value | None:
    (x,) = value.operands
    kind = value.dtype.kind
    if x.operation == "neg":
        return x.operands[0]
    if kind in "iu" and x.operation == "sub":
        return builder.elementwise("sub", x.operands[1], x.operands[0])
    if kind != "c" and x.operation in ("mul", "true_divide"):
        a, b = x.operands
        if a.operation == "constant":
            return builder.elementwise(x.operation, builder.elementwise("neg", a), b)
        if b.operation == "constant":
            return builder.elementwise(x.operation, a, builder.elementwise("neg", b))
    return None


def _mul(builder: Builder, value: Value) -> Value | None:
    a, b = value.operands
    kind = value.dtype.kind
    if kind == "c":
        return None
    for x, other in ((a, b), (b, a)):
        if other.operation != "constant":
            continue
        if kind == "b":
            return x if other.attributes["value"] else other
        if _is(other, 1):
            return x
        if kind in "iu" and _is(other, 0):
            return other
        if _is(other, -1) or (kind == "u" and _is(other, np.iinfo(value.dtype).max)):
            return builder.elementwise("neg", x)
        if x.operation == "neg":
            return builder.elementwise("mul", x.operands[0], builder.elementwise("neg", other))
        if x.operation == "mul":
            found = _product_with_constant(builder, x, other)
            if found is not None:
                return found
    if kind == "b":
        return a if a is b else None
    if kind in "iu" and a.operation == "constant":
        return builder.elementwise("mul", b, a)
    return _without_minus(builder, value)


def _product_with_constant(builder: Builder, inner: Value, outer: Value) -> Value | None:
    """Return (x * p) * c as one product, where that is exact."""
    x, constant = inner.operands
    if constant.operation != "constant":
        x, constant = constant, x
    if constant.operation != "constant":
        return None
    if inner.dtype.kind in "iu":
        return _with_integer(builder, "mul", inner, outer, int.__mul__)
    p, c = abs(number_of(constant)), abs(number_of(outer))
    if not (p >= 1 and c >= 1 and math.isfinite(p) and _is_power_of_two(p)):
        return None
    if not p * c <= float(np.finfo(inner.dtype).max):
        return None
    return builder.elementwise("mul", x, builder.elementwise("mul", constant, outer))


def _true_divide(builder: Builder, value: Value) -> Value | None:
    a, b = value.operands
    if value.dtype.kind == "c":
        return None
    if b.operation == "constant":
        divisor = number_of(b)
        if math.isfinite(divisor) and _is_power_of_two(divisor):
            info = np.finfo(value.dtype)
            if min(abs(divisor), 1 / abs(divisor)) >= info.tiny:
                factor = builder.constant(1 / divisor, value.dtype)
                return builder.elementwise("mul", a, factor)
        if a.operation == "neg":
            return builder.elementwise("true_divide", a.operands[0], _minus(builder, b))
    if a.operation == "constant" and b.operation == "neg":
        return builder.elementwise("true_divide", _minus(builder, a), b.operands[0])
    return _without_minus(builder, value)


def _pow(builder: Builder, value: Value) -> Value | None:
    """x**0 is 1 for every real x, nan included (IEEE 754-2019, 9.2.1), and x**1 is x."""
    base, exponent = value.operands
    if value.dtype.kind != "f":
        return None
    if _is(exponent, 0):
        return builder.fill(1.0, value.dtype, value.shape)
    if _is(exponent, 1):
        return builder.expand(base, value.shape)
    return None


def _minus(builder: Builder, value: Value) -> Value:
    return builder.elementwise("neg", value)


def _without_minus(builder: Builder, value: Value) -> Value | None:
    """Move the minus of a factor before the product, if it does not get larger by that."""
    a, b = value.operands
    if a.operation == b.operation == "neg":
        return builder.elementwise(value.operation, a.operands[0], b.operands[0])
    if a.operation == "neg" and a.shape == value.shape:
        return _minus(builder, builder.elementwise(value.operation, a.operands[0], b))
    if b.operation == "neg" and b.shape == value.shape:
        return _minus(builder, builder.elementwise(value.operation, a, b.operands[0]))
    return None


def _abs(builder: Builder, value: Value) -> Value | None:
    (x,) = value.operands
    if x.operation == "neg" and x.dtype.kind != "c":
        return builder.elementwise("abs", x.operands[0])
    return x if x.operation == "abs" or x.dtype.kind in "bu" else None


def _extremum(builder: Builder, value: Value) -> Value | None:
    # max(max(x, c), c): the inner is c, or larger, or nan; max gives its first operand if equal.
    a, b = value.operands
    if a is b or (a.operation == value.operation and a.operands[1] is b):
        return a
    return None


def _rounding(builder: Builder, value: Value) -> Value | None:
    (x,) = value.operands
    op = SCALAR_OPS.get(x.operation)
    return x if x.dtype.kind in "biu" or (op is not None and op.rounds) else None


def _floor_divide(builder: Builder, value: Value) -> Value | None:
    a, b = value.operands
    return a if value.dtype.kind in "iu" and _is(b, 1) else None


# --- truth and choice -------------------------------------------------------------------------


def _compare(builder: Builder, value: Value) -> Value | None:
    a, b = value.operands
    operation = value.operation
    if a is b:
        if operation in ("lt", "gt"):
            return builder.constant(False, BOOL)
        if a.dtype.kind in "biu":
            return builder.constant(operation != "ne", BOOL)
    if a.dtype.kind == "b" and operation in ("eq", "ne"):
        for x, other in ((a, b), (b, a)):
            if other.operation == "constant":
                same = other.attributes["value"] == (operation == "eq")
                return x if same else builder.elementwise("logical_not", x)
    return None


def _logical_not(builder: Builder, value: Value) -> Value | None:
    (x,) = value.operands
    if x.operation == "logical_not" and x.operands[0].dtype.kind == "b":
        return x.operands[0]
    op = SCALAR_OPS.get(x.operation)
    if op is None or op.opposite is None or x.operands[0].dtype.kind not in op.opposite_kinds:
        return None
    return builder.elementwise(op.opposite, *x.operands)


def _bits(builder: Builder, value: Value) -> Value | None:
    """Simplify and, or, xor: of bools, or of the bits of integers."""
    a, b = value.operands
    name = value.operation.rpartition("_")[2]
    if a.dtype.kind not in "biu" or (value.operation[0] == "l" and a.dtype.kind != "b"):
        return None
    if a is b:
        return builder.constant(0, value.dtype) if name == "xor" else a
    ones = True if a.dtype.kind == "b" else wrap(-1, a.dtype)
    for x, other in ((a, b), (b, a)):
        if _is(other, 0):
            return other if name == "and" else x
        if _is(other, ones):
            if name != "xor":
                return x if name == "and" else other
            if a.dtype.kind == "b":
                return builder.elementwise("logical_not", x)
    return None


def _where(builder: Builder, value: Value) -> Value | None:
    condition, a, b = value.operands
    if a is b:
        return a
    if condition.operation == "constant":
        return a if condition.attributes["value"] else b
    if condition.operation == "logical_not" and condition.operands[0].dtype.kind == "b":
        return builder.elementwise("where", condition.operands[0], b, a)
    if a.operation == "where" and a.operands[0] is condition:
        return builder.elementwise("where", condition, a.operands[1], b)
    if b.operation == "where" and b.operands[0] is condition:
        return builder.elementwise("where", condition, a, b.operands[2])
    if value.dtype.kind == "b" and a.operation == b.operation == "constant":
        if a.attributes["value"]:
            return condition
        return builder.elementwise("logical_not", condition)
    return None


# --- dtypes and complex numbers ---------------------------------------------------------------

_DIGITS = {np.dtype("float32"): 24, np.dtype("float64"): 53}
_DIGITS |= {np.dtype("complex64"): 24, np.dtype("complex128"): 53}


def _holds(dtype: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether every number of dtype `other` is one of `dtype`."""
    if other == dtype or other.kind == "b":
        return True
    bits = 8 * other.itemsize
    if dtype.kind in "iu":
        if other.kind == dtype.kind:
            return other.itemsize <= dtype.itemsize
        return other.kind == "u" and other.itemsize < dtype.itemsize
    if dtype.kind not in "fc":
        return False
    if other.kind in "iu":
        return bits - (other.kind == "i") <= _DIGITS[dtype]
    return (other.kind == "f" or dtype.kind == "c") and _DIGITS[other] <= _DIGITS[dtype]


def _cast(builder: Builder, value: Value) -> Value | None:
    (x,) = value.operands
    if x.dtype == value.dtype:
        return x
    if x.operation != "cast":
        return None
    (first,) = x.operands
    narrow = first.dtype.kind in "iu" and x.dtype.kind in "iu" and value.dtype.kind in "iu"
    # A floating point number that does not fit an integer is cast as the processor does it, which
    # may depend on where it comes from.
    unsafe = first.dtype.kind in "fc" and value.dtype.kind in "iu"
    if (_holds(x.dtype, first.dtype) and not unsafe) or (
        narrow and value.dtype.itemsize <= min(x.dtype.itemsize, first.dtype.itemsize)
    ):
        return builder.elementwise("cast", first, dtype=value.dtype)
    return None


def _part(builder: Builder, value: Value) -> Value | None:
    (x,) = value.operands
    is_real = value.operation == "real"
    if x.dtype.kind != "c":
        return x if is_real else None
    if x.operation == "complex_of":
        return x.operands[0 if is_real else 1]
    if x.operation == "conj":
        part = builder.elementwise(value.operation, x.operands[0])
        return part if is_real else _minus(builder, part)
    if x.operation == "cast" and x.operands[0].dtype.kind != "c":
        if is_real:
            return builder.elementwise("cast", x.operands[0], dtype=value.dtype)
        return builder.constant(0.0, value.dtype)
    return None


def _conj(builder: Builder, value: Value) -> Value | None:
    (x,) = value.operands
    if x.dtype.kind != "c":
        return x
    return x.operands[0] if x.operation == "conj" else None


def _complex_of(builder: Builder, value: Value) -> Value | None:
    a, b = value.operands
    if a.operation == "real" and b.operation == "imag" and a.operands == b.operands:
        return a.operands[0] if a.operands[0].dtype.kind == "c" else None
    return None


_RULES: dict[str, Callable[[Builder, Value], Value | None]] = {
    "add": _add,
    "sub": _sub,
    "neg": _neg,
    "mul": _mul,
    "true_divide": _true_divide,
    "pow": _pow,
    "abs": _abs,
    "where": _where,
    "cast": _cast,
    "logical_not": _logical_not,
    "floor_divide": _floor_divide,
    "real": _part,
    "imag": _part,
    "conj": _conj,
    "complex_of": _complex_of,
    **{name: _compare for name, op in SCALAR_OPS.items() if op.opposite is not None},
    **dict.fromkeys(("maximum", "minimum"), _extremum),
    **{name: _rounding for name, op in SCALAR_OPS.items() if op.rounds},
    **dict.fromkeys((f"bitwise_{name}" for name in ("and", "or", "xor")), _bits),
    **dict.fromkeys((f"logical_{name}" for name in ("and", "or", "xor")), _bits),
}
