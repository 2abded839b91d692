"""The bits of floating point numbers, and fused multiply-add, as intrinsics."""

from __future__ import annotations

from typing import Any

from numba import types

from numgrad.codegen.llvm.scalar_ir import Number, Unfit, apply, branch_free

__all__ = ["fma", "from_bits", "to_bits"]

_BITS = {types.float32: types.int32, types.float64: types.int64}
_FLOATS = {bits: number for number, bits in _BITS.items()}


@branch_free
def to_bits(number: Any) -> Any:
    """Return the bits of a floating point number as an integer."""
    return _reinterpret(number, _BITS)


@branch_free
def from_bits(bits: Any) -> Any:
    """Return the floating point number that has the bits of an integer."""
    return _reinterpret(bits, _FLOATS)


@branch_free
def fma(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c``, rounded once; all three of one floating point type.

    A processor without the instruction calls the C library instead: slower, and the same bits.
    """
    return apply("fma", a, b, c)


def _reinterpret(number: Number, into: dict[Any, Any]) -> Number:
    kind = into.get(number.kind)
    if kind is None:
        raise Unfit(f"no such bits as those of {number.kind}")
    return number.of(kind, lambda builder, to: builder.bitcast(number.value, to))
