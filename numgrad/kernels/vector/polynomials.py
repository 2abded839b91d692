"""Polynomials with constant coefficients, evaluated by fused multiply-adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

__all__ = ["make_polynomial"]


def make_polynomial(number: Any, coefficients: Sequence[float], *, chains: int = 1) -> Any:
    """Return a function of one number for compiled code, the polynomial with these coefficients.

    It is instructions, not a function in Python: a loop over constants would be unrolled again by
    everybody who calls it.

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
    numbers = [float(number(coefficient)) for coefficient in coefficients]
    kind = from_dtype(number)

    def horner(context: Any, builder: Any, x: Any, powers: Sequence[float]) -> Any:
        first, *others = (context.get_constant(kind, power) for power in powers)
        for other in others:
            first = builder.fma(first, x, other)
        return first

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (x,) = arguments
        if chains == 1 or len(numbers) < 2:
            return horner(context, builder, x, numbers)
        square = builder.fmul(x, x)
        even = horner(context, builder, square, numbers[-1::-2][::-1])
        odd = horner(context, builder, square, numbers[-2::-2][::-1])
        return builder.fma(odd, x, even)

    def polynomial(typing_context: Any, x: Any) -> Any:
        """Return the value of the polynomial at a number of its type."""
        return (kind(kind), lower) if x == kind else None

    return intrinsic(polynomial)
