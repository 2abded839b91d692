"""Greatest common divisors and least common multiples of integers, which wrap around.

Euclid's algorithm, on what the numbers are without their signs; the size of the least number of a
signed type fits into 64 bits without one.
"""

from __future__ import annotations

import numpy as np

from numgrad.codegen.compile.dispatchers import part
from numgrad.math.by_type import in_type_of, width

__all__ = ["gcd", "lcm"]


@part
def _size(a):  # type: ignore[no-untyped-def]
    return np.uint64(a) if a >= 0 else np.uint64(0) - np.uint64(np.int64(a))


@part
def _divisor(a, b):  # type: ignore[no-untyped-def]
    while b != np.uint64(0):
        a, b = b, a % b
    return a


@part
def gcd(a, b):  # type: ignore[no-untyped-def]
    """Return the greatest common divisor of two integers, 0 of two zeros."""
    return in_type_of(a, _divisor(_size(a), _size(b)))


@part
def lcm(a, b):  # type: ignore[no-untyped-def]
    """Return the least common multiple of two integers, 0 if one is 0."""
    divisor = _divisor(_size(a), _size(b))
    if divisor == np.uint64(0):
        return in_type_of(a, divisor)
    multiple = _size(a) // divisor * _size(b)
    # C computes narrow types in 32 bits, and takes the size of what has wrapped around there.
    if width(a) >= 32:
        return in_type_of(a, abs(in_type_of(a, multiple)))
    return in_type_of(a, multiple)
