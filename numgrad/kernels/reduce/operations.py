"""Compiled reductions (sum, prod, max, all ...): which operation each repeats, and over what.

`order` has the loop. ``bool`` arrays come here as ``uint8``. Each transformation is a scalar
function, which says what it does, and, where that is a few instructions, the same on vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]

from numgrad.codegen.compile.dispatchers import inline
from numgrad.codegen.llvm.combine_ir import COMBINES, is_float
from numgrad.codegen.llvm.fold_ir import Transform
from numgrad.codegen.llvm.scalar_ir import Number
from numgrad.kernels.reduce.driver import Fold
from numgrad.kernels.reduce.order import make_fold
from numgrad.math import scalar
from numgrad.math.real.exponentials import EXP

__all__ = [
    "ALL",
    "ANY",
    "COUNT",
    "MAX",
    "MAX_ABS",
    "MIN",
    "MIN_ABS",
    "PROD",
    "PROD_INTEGERS",
    "SUM",
    "SUM_ABS",
    "SUM_EXPONENTIALS",
    "SUM_INTEGERS",
    "SUM_NUMBERS",
    "SUM_POWERS",
    "SUM_SQUARED_MODULI",
    "SUM_SQUARES",
]


# --- what is combined ----------------------------------------------------------------------------


@inline
def itself(x, _):  # type: ignore[no-untyped-def]
    return x


def emit_itself(builder: Any, dtype: Any, target: Any, x: Any, _: Any) -> Any:
    return x


@inline
def as_int64(x, _):  # type: ignore[no-untyped-def]
    return np.int64(x)


def emit_as_int64(builder: Any, dtype: Any, target: Any, x: Any, _: Any) -> Any:
    if dtype.bitwidth == 64:
        return x
    return (builder.sext if dtype.signed else builder.zext)(x, _like(x, ir.IntType(64)))


@inline
def one_if_nonzero(x, _):  # type: ignore[no-untyped-def]
    return np.int64(x != 0)


def emit_one_if_nonzero(builder: Any, dtype: Any, target: Any, x: Any, _: Any) -> Any:
    zero = ir.Constant(x.type, None)
    compare = builder.fcmp_unordered if is_float(dtype) else builder.icmp_unsigned
    return builder.zext(compare("!=", x, zero), _like(x, ir.IntType(target.bitwidth)))


@inline
def number_or_0(x, _):  # type: ignore[no-untyped-def]
    return x if x == x else type(x)(0)


def emit_number_or_0(builder: Any, dtype: Any, target: Any, x: Any, _: Any) -> Any:
    return builder.select(builder.fcmp_ordered("ord", x, x), x, ir.Constant(x.type, None))


@inline
def magnitude(x, _):  # type: ignore[no-untyped-def]
    return abs(x)


def emit_magnitude(builder: Any, dtype: Any, target: Any, x: Any, _: Any) -> Any:
    many = f"v{x.type.count}" if isinstance(x.type, ir.VectorType) else ""
    name, kind = f"llvm.fabs.{many}f{dtype.bitwidth}", ir.FunctionType(x.type, [x.type])
    return builder.call(builder.module.declare_intrinsic(name, fnty=kind), [x])


@inline
def squared(x, _):  # type: ignore[no-untyped-def]
    return x * x


def emit_squared(builder: Any, dtype: Any, target: Any, x: Any, _: Any) -> Any:
    return builder.fmul(x, x)


@inline
def squared_distance(x, centre):  # type: ignore[no-untyped-def]
    return (x - centre) * (x - centre)


def emit_squared_distance(builder: Any, dtype: Any, target: Any, x: Any, centre: Any) -> Any:
    distance = builder.fsub(x, centre)
    return builder.fmul(distance, distance)


@inline
def squared_modulus(x, _):  # type: ignore[no-untyped-def]
    return x.real * x.real + x.imag * x.imag


@inline
def power_of_magnitude(x, p):  # type: ignore[no-untyped-def]
    return abs(x) ** p


@inline
def shifted_exp(x, centre):  # type: ignore[no-untyped-def]
    return scalar.exp(x - centre)


def emit_shifted_exp(builder: Any, dtype: Any, target: Any, x: Any, centre: Any) -> Any:
    return EXP[target](Number(builder, dtype, x) - Number(builder, target, centre)).value


def _like(x: Any, number: Any) -> Any:
    """Return a type of numbers, or of vectors as long as x."""
    return ir.VectorType(number, x.type.count) if isinstance(x.type, ir.VectorType) else number


ITSELF = Transform(itself, emit_itself)
AS_INT64 = Transform(as_int64, emit_as_int64)
ONE_IF_NONZERO = Transform(one_if_nonzero, emit_one_if_nonzero)
NUMBER_OR_0 = Transform(number_or_0, emit_number_or_0)
MAGNITUDE = Transform(magnitude, emit_magnitude)
SQUARED = Transform(squared, emit_squared)
SQUARED_DISTANCE = Transform(squared_distance, emit_squared_distance)
SQUARED_MODULUS = Transform(squared_modulus, None)
POWER_OF_MAGNITUDE = Transform(power_of_magnitude, None)
SHIFTED_EXP = Transform(shifted_exp, emit_shifted_exp, is_dear=True)


# --- the folds -----------------------------------------------------------------------------------


def _fold(name: str, transform: Transform, kind: str, merge: Fold | None = None) -> Fold:
    combine = COMBINES[kind]
    return Fold(make_fold(name, transform, combine), combine.identity, merge)


SUM = _fold("sum", ITSELF, "sum")
SUM_INTEGERS = _fold("sum_integers", AS_INT64, "sum")
# In turn, of which `numgrad.kernels.reduce.products` makes its order.
PROD = _fold("prod", ITSELF, "prod")
PROD_INTEGERS = _fold("prod_integers", AS_INT64, "prod")
MAX = _fold("max", ITSELF, "max")
MIN = _fold("min", ITSELF, "min")
ALL = _fold("all", ONE_IF_NONZERO, "all")
ANY = _fold("any", ONE_IF_NONZERO, "any")
# The last argument reduces what the parts give, which is not transformed again.
COUNT = _fold("count", ONE_IF_NONZERO, "sum", SUM_INTEGERS)
SUM_NUMBERS = _fold("sum_numbers", NUMBER_OR_0, "sum", SUM)
SUM_ABS = _fold("sum_abs", MAGNITUDE, "sum", SUM)
SUM_SQUARES = _fold("sum_squares", SQUARED, "sum", SUM)
SUM_SQUARED_MODULI = _fold("sum_squared_moduli", SQUARED_MODULUS, "sum", SUM)
SUM_POWERS = _fold("sum_powers", POWER_OF_MAGNITUDE, "sum", SUM)
SUM_EXPONENTIALS = _fold("sum_exponentials", SHIFTED_EXP, "sum", SUM)
MAX_ABS = _fold("max_abs", MAGNITUDE, "max", MAX)
MIN_ABS = _fold("min_abs", MAGNITUDE, "min", MIN)
