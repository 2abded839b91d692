"""Numbers times powers of two, and the numbers beside a number.

Method, ldexp: products with powers of two. All but the last are exact unless the result is 0 or
infinite, so that it is rounded once, where it is subnormal.
"""

from __future__ import annotations

import math
from typing import Any

from numgrad.codegen.llvm.scalar_ir import copysign, where
from numgrad.math.by_type import for_types
from numgrad.math.real.bits import from_bits, to_bits
from numgrad.math.real.formats import Format, for_each

__all__ = ["ldexp", "nextafter", "nextafter_half"]


def _make_ldexp(format: Format) -> Any:
    number, integer = format.number, format.integer
    power, nearest = format.power_of_two(), format.nearest()
    most = number(format.limits.maxexp - 2)
    end = number(2 * format.limits.maxexp + 2 * format.mantissa)
    one, two, three = number(1), integer(2), integer(3)
    zero = integer(0)

    def ldexp(x, exponent):  # type: ignore[no-untyped-def]
        n = where(exponent > end, end, where(exponent < -end, -end, exponent))
        _, k = nearest(n, one)
        quarter = where((n > most) | (n < -most), k >> two, zero)
        factor = power(quarter)
        return x * factor * factor * factor * power(k - three * quarter)

    return ldexp


def _make_nextafter(format: Format) -> Any:
    number, one = format.number, format.integer(1)
    zero, least = number(0), number(format.limits.smallest_subnormal)

    def nextafter(x, y):  # type: ignore[no-untyped-def]
        grows = ((y > x) & (x > zero)) | ((y < x) & (x < zero))
        bits = to_bits(x)
        moved = from_bits(where(grows, bits + one, bits - one))
        moved = where(x == zero, copysign(least, y), moved)
        moved = where(x == y, y, moved)
        return where((x == x) & (y == y), moved, x + y)

    return nextafter


def _make_nextafter_half(format: Format) -> Any:
    """Return the same for numbers of float16, which are numbers of this type as well."""
    number, step = format.number, format.integer(1 << (format.mantissa - 10))
    zero, least, normal = number(0), number(2.0**-24), number(2.0**-14)
    most, infinity = number(65504), number(math.inf)

    def nextafter_half(x, y):  # type: ignore[no-untyped-def]
        grows = ((y > x) & (x > zero)) | ((y < x) & (x < zero))
        size = abs(x)
        bits = to_bits(size)
        up = where(size < normal, size + least, from_bits(bits + step))
        down = where(size > normal, from_bits(bits - step), size - least)
        up = where(size == most, infinity, up)
        down = where(size == infinity, most, down)
        moved = copysign(where(grows, up, down), x)
        moved = where(x == zero, copysign(least, y), moved)
        moved = where(x == y, y, moved)
        return where((x == x) & (y == y), moved, x + y)

    return nextafter_half


def _make(format: Format) -> tuple[Any, ...]:
    return _make_ldexp(format), _make_nextafter(format), _make_nextafter_half(format)


_LDEXP, _NEXTAFTER, _NEXTAFTER_HALF = for_each(_make)


@for_types(_LDEXP)
def ldexp(x, exponent):  # type: ignore[no-untyped-def]
    """Return x times two to the power of a whole number."""
    return math.ldexp(x, int(exponent))


@for_types(_NEXTAFTER)
def nextafter(x, y):  # type: ignore[no-untyped-def]
    """Return the number beside x, towards y."""
    return x + y


@for_types(_NEXTAFTER_HALF)
def nextafter_half(x, y):  # type: ignore[no-untyped-def]
    """Return the number of float16 beside x, towards y."""
    return x + y
