"""erfinv without branches.

Method: the quantile of the normal distribution at p = (1 + x)/2, over the root of 2. What that is
made of (`numgrad.math.real.normal`) is p - 1/2 = x/2 and 4 p (1 - p) = (1 - x)(1 + x), without a
loss.

The error bound is that of `numgrad.codegen.scalar_ops`, measured in tests/math.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from numgrad.codegen.llvm.scalar_ir import copysign, where
from numgrad.math.real.bits import fma
from numgrad.math.real.formats import Format, for_each
from numgrad.math.real.normal import make_quantile

__all__ = ["ERFINV"]


def _make_erfinv(format: Format) -> Any:
    number = format.number
    zero, one, infinity, nan = (number(v) for v in (0, 1, math.inf, math.nan))
    # The root of 1/8, as two numbers: what is left of the square gives the second.
    scale = number(math.sqrt(0.125))
    near = Fraction(float(scale))
    scale_rest = number(float((Fraction(1, 8) - near * near) / (2 * near)))
    quantile = make_quantile(format)

    def erfinv(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        smaller = one - size
        whole = quantile(smaller * (one + size))
        value = x * fma(whole, scale, whole * scale_rest)
        value = where(smaller > zero, value, copysign(infinity, x))
        return where(smaller >= zero, value, nan)

    return erfinv


# The function for each type, for the overloads in numgrad.math.scalar.
(ERFINV,) = for_each(lambda f: (_make_erfinv(f),))
