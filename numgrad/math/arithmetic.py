"""Scalar functions that take no longer than arithmetic: casts, choices, rounding, truth, bits.

Each works for all types of numbers for which it makes sense, and returns the type it was given.
"""

from __future__ import annotations

import math

import numpy as np

from numgrad.codegen.compile.dispatchers import part
from numgrad.math.by_type import in_type_of, is_integer, like, width

# --- casts ----------------------------------------------------------------------------------------


@part
def to_int32(x):  # type: ignore[no-untyped-def]
    """Return a floating point number as an int32: the least one if it does not fit, or is nan.

    That is what x86's instructions give; LLVM's own conversion may give anything.
    """
    fits = (x > like(x, -2147483649.0)) & (x < like(x, 2147483648.0))
    return np.int32(x if fits else like(x, -2147483648.0))


@part
def to_int64(x):  # type: ignore[no-untyped-def]
    """Return a floating point number as an int64: the least one if it does not fit, or is nan."""
    fits = (x >= like(x, -9223372036854775808.0)) & (x < like(x, 9223372036854775808.0))
    return np.int64(x if fits else like(x, -9223372036854775808.0))


@part
def to_uint32(x):  # type: ignore[no-untyped-def]
    """Return a floating point number as a uint32, as C does on x86: negative ones wrap around."""
    half = like(x, 2147483648.0)
    if x >= half:
        return np.uint32(to_int32(x - half)) ^ np.uint32(1 << 31)
    return np.uint32(to_int32(x))


@part
def to_uint64(x):  # type: ignore[no-untyped-def]
    """Return a floating point number as a uint64, as C does on x86: negative ones wrap around."""
    half = like(x, 9223372036854775808.0)
    if x >= half:
        return np.uint64(to_int64(x - half)) ^ np.uint64(1 << 63)
    return np.uint64(to_int64(x))


# --- choosing ---------------------------------------------------------------------------------


@part
def where(condition, a, b):  # type: ignore[no-untyped-def]
    """Return `a` if `condition` holds, else `b`; both are computed."""
    return a if condition else b


@part
def maximum(a, b):  # type: ignore[no-untyped-def]
    """Return the larger number, `a` of equal ones (0.0 and -0.0), nan if either is nan."""
    return a if (a >= b) | (a != a) else b


@part
def minimum(a, b):  # type: ignore[no-untyped-def]
    """Return the smaller number, `a` of equal ones (0.0 and -0.0), nan if either is nan."""
    return a if (a <= b) | (a != a) else b


# --- sign, rounding, division -----------------------------------------------------------------


@part
def abs(x):  # type: ignore[no-untyped-def]
    """Return the absolute value, a real number for complex `x`."""
    return np.abs(x)


@part
def sign(x):  # type: ignore[no-untyped-def]
    """Return -1, 0 or 1; 0 for nan, as PyTorch does."""
    return like(x, x > like(x, 0)) - like(x, x < like(x, 0))


@part
def sgn(x):  # type: ignore[no-untyped-def]
    """Return x / abs(x) for complex `x`, 0 at 0."""
    size, zero = np.abs(x), like(x, 0)
    return complex(zero, zero) if size == zero else complex(x.real / size, x.imag / size)


@part
def signbit(x):  # type: ignore[no-untyped-def]
    """Whether the sign of `x` is a minus, that of -0.0 too."""
    if is_integer(x):
        return x < 0
    return math.copysign(like(x, 1), x) < like(x, 0)


@part
def copysign(x, sign):  # type: ignore[no-untyped-def]
    """Return the size of `x` with the sign of `sign`."""
    return math.copysign(x, sign)


@part
def conj(x):  # type: ignore[no-untyped-def]
    """Return the complex conjugate."""
    return np.conj(x)


@part
def real(x):  # type: ignore[no-untyped-def]
    """Return the real part."""
    return x.real


@part
def imag(x):  # type: ignore[no-untyped-def]
    """Return the imaginary part."""
    return x.imag


@part
def complex_of(real_part, imaginary_part):  # type: ignore[no-untyped-def]
    """Return the complex number of two real ones."""
    return complex(real_part, imaginary_part)


@part
def floor(x):  # type: ignore[no-untyped-def]
    """Return the largest integer not above `x`."""
    return np.floor(x)


@part
def ceil(x):  # type: ignore[no-untyped-def]
    """Return the smallest integer not below `x`."""
    return np.ceil(x)


@part
def round(x):  # type: ignore[no-untyped-def]
    """Return the nearest integer, the even one at ties."""
    return np.rint(x)


@part
def trunc(x):  # type: ignore[no-untyped-def]
    """Return `x` without its fraction."""
    return np.trunc(x)


@part
def fmod(a, b):  # type: ignore[no-untyped-def]
    """Return the remainder of the division truncated towards 0; it has the sign of `a`."""
    if is_integer(a):
        remainder_ = a % b
        return remainder_ - b if (remainder_ != 0) & ((a < 0) != (b < 0)) else remainder_
    return np.fmod(a, b)


@part
def remainder(a, b):  # type: ignore[no-untyped-def]
    """Return the remainder of the division rounded down; it has the sign of `b`."""
    if is_integer(a):
        return a % b
    zero = like(a, 0)
    left = np.fmod(a, b)
    return left + b if (left != zero) & ((b < zero) != (left < zero)) else left


@part
def floor_divide(a, b):  # type: ignore[no-untyped-def]
    """Return the quotient rounded down, Python's ``//`` (the nearest integer to exact division)."""
    if is_integer(a):
        # The quotient of the least number by -1 does not fit; it wraps around as others do.
        return like(a, 0) - a if b == -1 else a // b
    zero, half, one = like(a, 0), like(a, 0.5), like(a, 1)
    # Numba gives one type to all that a function returns, for integers as well.
    if b == zero:
        return in_type_of(a, a / b)
    left = np.fmod(a, b)
    quotient = (a - left) / b
    if (left != zero) & ((b < zero) != (left < zero)):
        quotient -= one
    if quotient == zero:
        return in_type_of(a, math.copysign(zero, a / b))
    down = np.floor(quotient)
    return in_type_of(a, down + one if quotient - down > half else down)


@part
def trunc_divide(a, b):  # type: ignore[no-untyped-def]
    """Return the quotient truncated towards 0."""
    if is_integer(a):
        quotient = floor_divide(a, b)
        return quotient + 1 if (quotient < 0) & (quotient * b != a) else quotient
    return in_type_of(a, np.trunc(a / b))


# --- truth ------------------------------------------------------------------------------------


@part
def isnan(x):  # type: ignore[no-untyped-def]
    """Whether `x` is not a number."""
    return x != x


@part
def isinf(x):  # type: ignore[no-untyped-def]
    """Whether `x`, or a part of it, is infinite."""
    return np.isinf(x)


@part
def isfinite(x):  # type: ignore[no-untyped-def]
    """Whether `x`, in both parts, is neither infinite nor nan."""
    return np.isfinite(x)


@part
def logical_not(x):  # type: ignore[no-untyped-def]
    """Whether `x` is 0."""
    return not x


@part
def logical_and(a, b):  # type: ignore[no-untyped-def]
    """Whether neither is 0."""
    return bool(a) & bool(b)


@part
def logical_or(a, b):  # type: ignore[no-untyped-def]
    """Whether not both are 0."""
    return bool(a) | bool(b)


@part
def logical_xor(a, b):  # type: ignore[no-untyped-def]
    """Whether exactly one is 0."""
    return bool(a) ^ bool(b)


@part
def bitwise_not(x):  # type: ignore[no-untyped-def]
    """Return the bits of `x` inverted."""
    return ~x


@part
def bitwise_left_shift(a, b):  # type: ignore[no-untyped-def]
    """Return the bits of `a` moved up by `b`; 0 where `b` is negative or leaves none of them."""
    return a << b if (b >= 0) & (b < width(a)) else a ^ a


@part
def bitwise_right_shift(a, b):  # type: ignore[no-untyped-def]
    """Return the bits of `a` moved down by `b`, the sign kept.

    Where `b` is negative or leaves no bit, only the sign is left: -1 or 0.
    """
    return a >> b if (b >= 0) & (b < width(a)) else (a >> (width(a) - 1)) >> 1
