"""Operations that reductions repeat: how two numbers or two vectors of them are combined."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

from numgrad.codegen.scalar_ops import SCALAR_OPS

__all__ = ["ADD", "COMBINES", "GREATEST", "REDUCTIONS", "Combine", "is_float"]


class Combine(NamedTuple):
    """An associative and commutative operation.

    Attributes
    ----------
    emit : callable
        ``emit(builder, dtype, x, y)`` returns it for two numbers or two vectors of a Numba type.
    operation : str
        The scalar operation that it is (`numgrad.codegen.scalar_ops`).
    of_bools : str
        The kind that it is of truth values.
    name : str
        What the reduction is called in public.
    extreme : callable, optional
        ``extreme(dtype)`` is the number that it leaves alone, where that depends on the dtype.
    idempotent : bool
        Whether it gives x for any number of elements x, but none.
    """

    emit: Callable[[Any, Any, Any, Any], Any]
    operation: str
    of_bools: str
    name: str
    extreme: Callable[[np.dtype[Any]], float] | None = None
    idempotent: bool = False

    @property
    def of_nothing(self) -> int | None:
        """What it gives where there is nothing to combine; None where that is an error."""
        return SCALAR_OPS[self.operation].identity

    def identity(self, dtype: np.dtype[Any]) -> float:
        """Return the number that it leaves alone, for a NumPy dtype."""
        return self.extreme(dtype) if self.extreme is not None else int(self.of_nothing or 0)


def is_float(dtype: Any) -> bool:
    """Whether a Numba type is one of real floating point numbers."""
    return isinstance(dtype, types.Float)


def emit_sum(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
    return builder.fadd(x, y) if is_float(dtype) else builder.add(x, y)


def emit_product(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
    if isinstance(dtype, types.Complex):
        (a, b), (c, d) = ([builder.extract_value(z, part) for part in (0, 1)] for z in (x, y))
        real = builder.fsub(builder.fmul(a, c), builder.fmul(b, d))
        imag = builder.fadd(builder.fmul(a, d), builder.fmul(b, c))
        return builder.insert_value(builder.insert_value(x, real, 0), imag, 1)
    return builder.fmul(x, y) if is_float(dtype) else builder.mul(x, y)


def emit_both(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
    return builder.and_(x, y)


def emit_either(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
    return builder.or_(x, y)


def emit_greatest(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
    return _emit_extreme(builder, dtype, ">=", x, y)


def emit_least(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
    return _emit_extreme(builder, dtype, "<=", x, y)


def _emit_extreme(builder: Any, dtype: Any, relation: str, x: Any, y: Any) -> Any:
    """Return x if it is greater (or less), equal or nan, else y: a blend of two registers."""
    if is_float(dtype):
        better = builder.fcmp_ordered(relation, x, y)
        better = builder.or_(better, builder.fcmp_unordered("uno", x, x))
    elif dtype.signed:
        better = builder.icmp_signed(relation, x, y)
    else:
        better = builder.icmp_unsigned(relation, x, y)
    return builder.select(better, x, y)


def lowest(dtype: np.dtype[Any]) -> float:
    """Return the first of all values of a real dtype, in order."""
    return -math.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def highest(dtype: np.dtype[Any]) -> float:
    """Return the last of all values of a real dtype, in order."""
    return math.inf if dtype.kind == "f" else int(np.iinfo(dtype).max)


ADD = Combine(emit_sum, "add", "any", "sum")
GREATEST = Combine(emit_greatest, "maximum", "any", "amax", lowest, idempotent=True)
#: The kinds of reductions.
COMBINES = {
    "sum": ADD,
    "prod": Combine(emit_product, "mul", "all", "prod"),
    "max": GREATEST,
    "min": Combine(emit_least, "minimum", "all", "amin", highest, idempotent=True),
    "all": Combine(emit_both, "logical_and", "all", "all", idempotent=True),
    "any": Combine(emit_either, "logical_or", "any", "any", idempotent=True),
}
#: The same by their public names.
REDUCTIONS = {combine.name: combine for combine in COMBINES.values()}
