"""What functions of numbers ask of types, and which function compiled code calls for which types.

A bare literal in a function of numbers would turn float32 into float64: `like` gives a constant
the type of a value. `for_types` is how functions of `numgrad.math.real` stand in where the types
are theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types
from numba.extending import overload

from numgrad.codegen.compile.dispatchers import part
from numgrad.codegen.llvm.quick_calls import QUICK, Quick
from numgrad.codegen.numba_private import AbstractTemplate, as_dtype, infer_global, type_of_value
from numgrad.math.complex import complex_function

REAL_TYPES = {types.float32: np.float32, types.float64: np.float64}
COMPLEX_TYPES = {types.complex64: np.float32, types.complex128: np.float64}


def like(value: Any, constant: Any) -> Any:
    """Return `constant` in the type of `value` (for a complex value, in its real type)."""
    return type(value)(constant)


@overload(like)
def _like(value, constant):  # type: ignore[no-untyped-def]
    number = types.unliteral(value)
    real_type = REAL_TYPES.get(number) or COMPLEX_TYPES.get(number)
    if real_type is None:
        return lambda value, constant: constant
    return lambda value, constant: real_type(constant)


def _type_of_like(value: Any, constant: Any) -> Any:
    real_type = REAL_TYPES.get(value) or COMPLEX_TYPES.get(value)
    return constant if real_type is None else from_dtype(np.dtype(real_type))


def _written_like(context: Any, builder: Any, values: list[Any], kinds: list[Any]) -> Any:
    return context.cast(builder, values[1], kinds[1], _type_of_like(*kinds))


QUICK[like] = Quick(_type_of_like, _written_like)


def in_type_of(value: Any, number: Any) -> Any:
    """Return `number` in the type of `value`, cut off if that is one of integers."""
    return type(value)(number)


@overload(in_type_of)
def _in_type_of(value, number):  # type: ignore[no-untyped-def]
    of_type = as_dtype(types.unliteral(value)).type
    return lambda value, number: of_type(number)


def is_integer(value: Any) -> bool:
    """Whether a value is of an integer or bool type; a compile-time constant in kernels."""
    return isinstance(value, int)


@overload(is_integer)
def _is_integer(value):  # type: ignore[no-untyped-def]
    answer = isinstance(types.unliteral(value), (types.Integer, types.Boolean))
    return lambda value: answer


def width(value: Any) -> int:
    """Return how many bits a value of an integer type has; a compile-time constant in kernels."""
    return 8 * np.asarray(value).itemsize


@overload(width)
def _width(value):  # type: ignore[no-untyped-def]
    bits = getattr(types.unliteral(value), "bitwidth", 8)
    return lambda value: bits


def stands_in(function: Any, choose: Callable[..., Any], *, loads: bool = False) -> None:
    """Have compiled code call ``choose(*types)`` in the place of a function, where that is one.

    With `loads`, that may load modules which declare functions to Numba.
    """

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            chosen = None if kws else choose(*map(types.unliteral, args))
            if chosen is None:
                return None
            if loads:
                self.context.refresh()
            self.chosen = type_of_value(self.context, chosen)
            return self.chosen.get_call_type(self.context, args, {})

        def get_impl_key(self, sig: Any) -> Any:
            return self.chosen.get_impl_key(sig)

    infer_global(function, types.Function(Template))


def for_types(own: dict[Any, Any], *, is_complex: bool = False) -> Any:
    """Return a decorator for a function of one or two numbers, which has others for some types.

    Kernels call those in its place where all arguments are of one such type. With `is_complex`
    there is one of its name for complex numbers, too.
    """

    def decorate(function: Any) -> Any:
        generic = cache(lambda: part(function))

        def choose(x: Any, *others: Any) -> Any:
            if any(y != x for y in others):
                return generic()
            chosen = own.get(x)
            if chosen is None and is_complex:
                chosen = complex_function(function.__name__, x)
            return generic() if chosen is None else chosen

        stands_in(function, choose)
        return function

    return decorate
