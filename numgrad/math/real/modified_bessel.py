"""Modified Bessel functions of orders 0 and 1, without branches, so that loops of them vectorise.

Method, I: e**-x I(x) (for order 1 over x) is a piecewise polynomial of x up to 8, and sqrt(x)
e**-x I(x) one of 1/x from there on. I itself is that times e**x, of which a factor is split off
where e**x alone would overflow.

Method, K: up to 1 it is -ln(x) I0(x), or 1/x + ln(x) I1(x), and a power series; from 1 on
sqrt(x) e**x K(x) is a piecewise polynomial of 1/x.

Error bounds are those of `numgrad.codegen.scalar_ops`, measured in tests/math/real and in
benchmarks/accuracy.

Sources: DLMF 10.31 and 10.40 for the shapes; the polynomials were fitted by
benchmarks/accuracy/pieces.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import from_dtype

from numgrad.codegen.llvm.scalar_ir import sqrt, where
from numgrad.math.real.exponentials import EXP
from numgrad.math.real.formats import Format, for_each
from numgrad.math.real.logarithms import LOG
from numgrad.math.real.pieces import limited, make_locate, make_pieces, make_series

__all__ = ["I0", "I0E", "I1", "I1E", "K0", "K0E", "K1", "K1E"]

_SPLIT = 8  # of the functions I
_SHIFT = 16  # what the exponent of e**x is lowered by


def _make_first_kind(format: Format, order: int) -> tuple[Any, Any]:
    """Return I and e**-abs(x) I of an order."""
    number, exp = format.number, EXP[from_dtype(np.dtype(format.number))]
    near, far = make_locate(format, 1), make_locate(format, 1 / 64)
    pieces = make_pieces(format, f"I{order}E_NEAR", f"I{order}E_FAR")
    first_far, split, lowest = format.integer(_SPLIT + 1), number(_SPLIT), number(1 / _SPLIT)
    zero, one = number(0), number(1)
    shift, factor = number(_SHIFT), number(math.exp(_SHIFT))

    def scaled(size):  # type: ignore[no-untyped-def]
        is_near = size < split
        index, distance = far(limited(one / size, zero, lowest))
        index, distance = where(
            is_near, near(limited(size, zero, split)), (index + first_far, distance)
        )
        value = pieces(index, distance)
        return where(is_near, value * size if order else value, value / sqrt(size))

    def signed(x, value):  # type: ignore[no-untyped-def]
        return where(x < zero, -value, value) if order else value

    def exponentially_scaled(x):  # type: ignore[no-untyped-def]
        return signed(x, scaled(abs(x)))

    def plain(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        is_large = size > shift
        power = exp(where(is_large, size - shift, size))
        return signed(x, power * scaled(size) * where(is_large, factor, one))

    return plain, exponentially_scaled


def _make_second_kind(format: Format, order: int) -> tuple[Any, Any]:
    """Return K and e**x K of an order."""
    number, kind = format.number, from_dtype(np.dtype(format.number))
    exp, log = EXP[kind], LOG[kind]
    zero, one, infinity = number(0), number(1), number(math.inf)
    locate, pieces = make_locate(format, 1 / 16), make_pieces(format, f"K{order}E_FAR")
    first_kind = make_series(format, f"I{order}_OF_SQUARE")
    rest = make_series(format, f"K{order}_OF_SQUARE")

    def near(x):  # type: ignore[no-untyped-def]
        x = where(x < one, x, one)
        square, logarithm = x * x, log(x)
        if order == 0:
            return rest(square) - logarithm * first_kind(square)
        value = one / x + x * (logarithm * first_kind(square) + rest(square))
        return where(x == zero, infinity, value)

    def far(x):  # type: ignore[no-untyped-def]
        return pieces(*locate(limited(one / x, zero, one))) / sqrt(x)

    def plain(x):  # type: ignore[no-untyped-def]
        return where(x < one, near(x), exp(-x) * far(x))

    def exponentially_scaled(x):  # type: ignore[no-untyped-def]
        return where(x < one, near(x) * exp(x), far(x))

    return plain, exponentially_scaled


# The function for each type, for numgrad.math.scalar.
I0, I0E, I1, I1E, K0, K0E, K1, K1E = for_each(
    lambda f: (
        *_make_first_kind(f, 0),
        *_make_first_kind(f, 1),
        *_make_second_kind(f, 0),
        *_make_second_kind(f, 1),
    )
)
