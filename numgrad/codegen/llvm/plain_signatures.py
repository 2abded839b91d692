"""What operations on numbers give, without Numba being asked.

Numba looks it up in tables of all that it knows, which it fills as it first compiles in a process:
.07 s, most of what is left of a first call. Kernels mostly compute with numbers of one type, where
there is nothing to look up. What is said here is what Numba says; the rest it is asked.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from numba import NumbaError, types

from numgrad.codegen.numba_private import Intrinsic, signature

__all__ = ["Written", "plain_attribute", "plain_signature", "plain_type", "signature_of_intrinsic"]

_NUMBERS = types.int64, types.float32, types.float64
_ARITHMETIC = operator.add, operator.sub, operator.mul
_DIVISIONS = {
    types.int64: operator.floordiv,
    types.float32: operator.truediv,
    types.float64: operator.truediv,
}
_COMPARISONS = operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge
_CLASSES: dict[Any, Any] = {
    np.int64: types.int64,
    np.float32: types.float32,
    np.float64: types.float64,
}


class Written(NamedTuple):
    """In the place of a function's type: what writes its instructions."""

    write: Any


def signature_of_intrinsic(
    typing_context: Any, function: Intrinsic, operands: tuple[Any, ...]
) -> tuple[Written, Any] | None:
    """Return what an intrinsic declares for operands of some types; None if it is for others.

    Numba would enter it into its tables first. It tries types of numbers before it tries the
    numbers that are written out, as Numba does.
    """
    ways = [tuple(map(types.unliteral, operands)), operands]
    for kinds in reversed(ways) if function._prefer_literal else ways:
        try:
            found = function._defn(typing_context, *kinds)
        except NumbaError:
            found = None
        if found is not None:
            return Written(found[1]), found[0]
    return None


def plain_type(value: Any) -> Any:
    """Return the type of a class of numbers; None of any other value."""
    kind = _CLASSES.get(value) if isinstance(value, type) else None
    return None if kind is None else types.NumberClass(kind)


def plain_attribute(kind: Any, name: str) -> Any:
    """Return the type of an attribute of an array, or of its dtype; None if Numba has to say."""
    if isinstance(kind, types.DType) and kind.dtype in _NUMBERS:
        return {"type": types.NumberClass(kind.dtype)}.get(name)
    if not isinstance(kind, types.Array):
        return None
    known = {"size": types.intp, "shape": types.UniTuple(types.intp, kind.ndim)}
    return {**known, "dtype": types.DType(kind.dtype)}.get(name)


def plain_signature(function: Any, operands: tuple[Any, ...]) -> Any:
    """Return the signature of a function for operands of some types; None if Numba has to say.

    Parameters
    ----------
    function : callable
        An operator, or a class of numbers.
    operands : tuple of numba.types.Type

    Examples
    --------
    >>> plain_signature(operator.lt, (types.float64, types.int64))
    (float64, float64) -> bool
    """
    match operands:
        case (left, right):
            return _of_two(function, left, right)
        case (operand,):
            return _of_one(function, operand)
    return None


def _of_two(function: Any, left: Any, right: Any) -> Any:
    if left == right == types.boolean and function in (operator.and_, operator.or_):
        return signature(left, left, left)
    if left not in _NUMBERS or right not in _NUMBERS:
        return None
    if left == right:
        common = left
    elif types.float64 in (left, right):
        common = types.float64
    else:
        return None
    if function in _ARITHMETIC or (function is _DIVISIONS.get(common)):
        return signature(common, common, common)
    if function in _COMPARISONS:
        return signature(types.boolean, common, common)
    return None


def _of_one(function: Any, operand: Any) -> Any:
    if function is operator.neg and operand in _NUMBERS:
        return signature(operand, operand)
    if isinstance(function, types.NumberClass) and function.dtype in _NUMBERS:
        number = types.unliteral(operand)
        return signature(function.dtype, number) if number in _NUMBERS else None
    return None
