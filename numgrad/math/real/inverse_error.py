"""erfinv without branches.

Method: Winitzki's estimate, whose relative error is 0.002, then steps of Halley's method, each of
which cubes the error: two for float32, three for float64. Where erf is flat the equation that is
solved is erfc(t) = 1 - abs(x), which has all the digits there.

Error bound, measured in tests/kernels: 2 ulp over the whole range, for float32 and float64.

Source: S. Winitzki, "A handy approximation for the error function and its inverse" (2008), with
a = 0.147.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import from_dtype

from numgrad.codegen.llvm.scalar_ir import copysign, sqrt, where
from numgrad.math.real.bits import fma
from numgrad.math.real.error_functions import ERF, ERFC
from numgrad.math.real.exponentials import EXP
from numgrad.math.real.formats import Format, for_each
from numgrad.math.real.logarithms import LOG

__all__ = ["ERFINV"]

_A = 0.147


def _make_erfinv(format: Format) -> Any:
    number = format.number
    kind = from_dtype(np.dtype(number))
    erf, erfc, exp, log = (functions[kind] for functions in (ERF, ERFC, EXP, LOG))
    zero, half, one, infinity = number(0), number(0.5), number(1), number(math.inf)
    shift, scale = number(2 / (math.pi * _A)), number(1 / _A)
    slope = number(math.sqrt(math.pi) / 2)
    steps = format.choose(2, 3)

    def erfinv(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        rest = one - size
        logarithm = log(rest * (one + size))
        middle = fma(half, logarithm, shift)
        t = sqrt(sqrt(fma(middle, middle, -logarithm * scale)) - middle)
        for _ in range(steps):
            excess = where(size < half, erf(t) - size, rest - erfc(t))
            step = excess * slope * exp(t * t)
            t = t - step / fma(t, step, one)
        return where(x == zero, x, copysign(where(size == one, infinity, t), x))

    return erfinv


# The function for each type, for the overloads in numgrad.math.scalar.
(ERFINV,) = for_each(lambda f: (_make_erfinv(f),))
