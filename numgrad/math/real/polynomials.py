"""Polynomials with constant coefficients, evaluated by fused multiply-adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.math.real.bits import fma

__all__ = ["make_polynomial"]


def make_polynomial(
    number: Any, coefficients: Sequence[float], *, chains: int = 1
) -> Callable[[Any], Any]:
    """Return a branch-free function of one number, the polynomial with these coefficients.

    Parameters
    ----------
    number : numpy scalar type
        The type of the argument and of the value.
    coefficients : sequence of float
        At least one, from that of the highest power down.
    chains : int
        Two compute the even and the odd powers apart, which a processor works on side by side: one
        more product, and half the time where nothing else is there to be done meanwhile.
    """
    numbers = [number(coefficient) for coefficient in coefficients]

    def horner(x: Any, powers: Sequence[Any]) -> Any:
        value = powers[0]
        for power in powers[1:]:
            value = fma(value, x, power)
        return value

    def polynomial(x: Any) -> Any:
        if chains == 1 or len(numbers) < 2:
            return horner(x, numbers)
        square = x * x
        even = horner(square, numbers[-1::-2][::-1])
        odd = horner(square, numbers[-2::-2][::-1])
        return fma(odd, x, even)

    return polynomial
