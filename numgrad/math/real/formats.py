"""Constants of float32 and float64, and steps that functions of this folder share.

A function is written once, in a `make` that takes a `Format`; `for_each` makes it for both types.
Its steps are branch-free functions as well (`numgrad.codegen.llvm.scalar_ir`), which need no mark:
they are called by it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numba import types

from numgrad.codegen.llvm.scalar_ir import branch_free
from numgrad.math.real.bits import fma, from_bits, to_bits
from numgrad.math.real.polynomials import make_polynomial

__all__ = ["DOUBLE", "LN_2", "SINGLE", "Format", "for_each"]

LN_2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680")


@dataclass(frozen=True)
class Format:
    """A floating point type.

    Attributes
    ----------
    number, integer : numpy scalar types
        The type, and the integer of its size.
    mantissa : int
        Stored bits of the significand.
    """

    number: Any
    integer: Any
    mantissa: int

    @property
    def limits(self) -> Any:
        """The extreme exponents and numbers."""
        return np.finfo(self.number)

    def choose(self, single: Any, double: Any) -> Any:
        """Return what is meant for this format."""
        return single if self.number is np.float32 else double

    def pair(self, value: Fraction) -> tuple[Any, Any]:
        """Return a constant to twice the precision: the nearest number, and that to the rest."""
        high = self.number(float(value))
        return high, self.number(float(value - Fraction(float(high))))

    def bits(self, value: float) -> Any:
        """Return the bits of a number as an integer."""
        return np.asarray(self.number(value)).view(self.integer)[()]

    def polynomial(
        self, single: Sequence[float], double: Sequence[float], *, chains: int = 1
    ) -> Any:
        """Return a polynomial for compiled code, computed by Horner's rule.

        Parameters
        ----------
        single, double : sequence of float
            The coefficients for either format, that of the highest power first.
        chains : int
            As in `make_polynomial`; fewer than six coefficients make one chain.
        """
        coefficients = self.choose(single, double)
        return make_polynomial(
            self.number, coefficients, chains=1 if len(coefficients) < 6 else chains
        )

    @cache  # noqa: B019
    def nearest(self) -> Any:
        """Return a function that gives the integer nearest to x * scale, as number and integer.

        Adding 1.5 * 2**mantissa leaves it in the low bits; AVX2 has no instruction that makes an
        integer of a float64. abs(x * scale) must be below 2**(mantissa - 2).
        """
        magic = self.number(1.5 * 2.0**self.mantissa)
        magic_bits = self.bits(magic)

        def nearest(x, scale):  # type: ignore[no-untyped-def]
            shifted = fma(x, scale, magic)
            return shifted - magic, to_bits(shifted) - magic_bits

        return nearest

    @cache  # noqa: B019
    def power_of_two(self) -> Any:
        """Return a function that gives 2**k for an integer k of normal numbers' exponents."""
        integer, bias = self.integer, self.integer(self.limits.maxexp - 1)
        shift = integer(self.mantissa)

        def power_of_two(k):  # type: ignore[no-untyped-def]
            return from_bits((k + bias) << shift)

        return power_of_two

    @cache  # noqa: B019
    def scaled(self) -> Any:
        """Return a function that gives x * 2**k, in two steps: 2**k alone may be no number."""
        one, power_of_two = self.integer(1), self.power_of_two()

        def scaled(x, k):  # type: ignore[no-untyped-def]
            half = k >> one
            return (x * power_of_two(half)) * power_of_two(k - half)

        return scaled


SINGLE = Format(np.float32, np.int32, 23)
DOUBLE = Format(np.float64, np.int64, 52)


def for_each(make: Callable[[Format], Sequence[Any]]) -> tuple[dict[Any, Any], ...]:
    """Return, for each function that `make` returns, the Numba types and the function for each."""
    return tuple(
        {types.float32: branch_free(single), types.float64: branch_free(double)}
        for single, double in zip(make(SINGLE), make(DOUBLE), strict=True)
    )
