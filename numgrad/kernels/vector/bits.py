"""The bits of floating point numbers, their signs, and the fused multiply-add.

Numba has no words for them, or leads to a function of the C library.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

__all__ = ["copysign", "fma", "from_bits", "to_bits"]

_BITS = {types.float32: types.int32, types.float64: types.int64}
_FLOATS = {bits: number for number, bits in _BITS.items()}


def _to_bits(typing_context: Any, number: Any) -> Any:
    """Return the bits of a floating point number as an integer."""
    return _reinterpret(number, _BITS[number])


def _from_bits(typing_context: Any, bits: Any) -> Any:
    """Return the floating point number that has the bits of an integer."""
    return _reinterpret(bits, _FLOATS[bits])


def _fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c``, rounded once; all three of one floating point type.

    A processor without the instruction calls the C library instead: slower, and the same bits.
    """

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.fma(*arguments)

    return (a(a, b, c), lower) if a in _BITS and a == b == c else None


def _copysign(typing_context: Any, size: Any, sign: Any) -> Any:
    """Return the first number with the sign of the second; both of one floating point type."""

    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = context.get_value_type(size)
        takes = ir.FunctionType(kind, [kind, kind])
        function = builder.module.declare_intrinsic("llvm.copysign", [kind], takes)
        return builder.call(function, arguments)

    return (size(size, sign), lower) if size in _BITS and size == sign else None


copysign: Any = intrinsic(_copysign)
to_bits: Any = intrinsic(_to_bits)
from_bits: Any = intrinsic(_from_bits)
fma: Any = intrinsic(_fma)


def _reinterpret(source: Any, target: Any) -> Any:
    def lower(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], context.get_value_type(target))

    return target(source), lower
