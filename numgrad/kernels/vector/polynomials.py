"""Polynomials with constant coefficients, evaluated by fused multiply-adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import njit

from numgrad.kernels.vector.bits import fma

__all__ = ["make_polynomial"]


def make_polynomial(number: Any, coefficients: Sequence[float]) -> Any:
    """Return a compiled function of one number, the polynomial with these coefficients.

    Odd and even powers are two chains of Horner's, which a processor works on side by side: one
    chain would leave it waiting for the end of each step.

    Parameters
    ----------
    number : numpy scalar type
        The type of the argument and of the value.
    coefficients : sequence of float
        At least two, from that of the highest power down.
    """
    upward = [number(coefficient) for coefficient in reversed(coefficients)]
    even, odd = tuple(upward[0::2][::-1]), tuple(upward[1::2][::-1])

    @njit(nogil=True, error_model="numpy", forceinline=True)
    def polynomial(x):  # type: ignore[no-untyped-def]
        square = x * x
        of_even = even[0]
        for coefficient in even[1:]:
            of_even = fma(of_even, square, coefficient)
        of_odd = odd[0]
        for coefficient in odd[1:]:
            of_odd = fma(of_odd, square, coefficient)
        return fma(of_odd, x, of_even)

    return polynomial
