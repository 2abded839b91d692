"""The parts of Bessel functions of orders 0 and 1, without branches, so that loops vectorise.

Method: up to 16 a piecewise polynomial; that of order 1 is one of J1(x)/x. Below 3, Y is what the
logarithm (and the pole) leave, a power series, and these. From 16 on, with a = x - pi/4,

    J0(x) = sqrt(2/(pi x)) (P0 cos a - Q0 sin a)    Y0(x) = sqrt(2/(pi x)) (P0 sin a + Q0 cos a)

and likewise for order 1 with a = x - 3 pi/4. P and Q are polynomials of 1/x**2, Q over x. Their sum
is the operation's formula, so that loops compute sines and cosines of blocks.

Next to their zeros the functions are accurate to some units in the last place of their envelope.

Sources: DLMF 10.8 and 10.17 for the shapes; the polynomials were fitted by
benchmarks/accuracy/pieces.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import from_dtype

from numgrad.codegen.llvm.scalar_ir import where
from numgrad.math.real.bits import fma
from numgrad.math.real.formats import Format, for_each
from numgrad.math.real.logarithms import LOG
from numgrad.math.real.pieces import limited, make_locate, make_pieces, make_series

__all__ = ["J0_NEAR", "J1_NEAR", "P0", "P1", "Q0", "Q1", "Y0_NEAR", "Y1_NEAR"]

_WAVES_FROM = 16  # from there on they are waves
_LEAST = 3  # up to there Y has its logarithm apart


def _make_near(format: Format, order: int) -> tuple[Any, Any]:
    """Return J and Y of an order for arguments of a size up to 16."""
    number, log = format.number, LOG[from_dtype(np.dtype(format.number))]
    zero, one, split, least = number(0), number(1), number(_WAVES_FROM), number(_LEAST)
    two_over_pi, infinity = number(2 / math.pi), number(math.inf)
    locate, pieces = make_locate(format, 1), make_pieces(format, f"J{order}_NEAR")
    locate_y, pieces_y = make_locate(format, 1, _LEAST), make_pieces(format, f"Y{order}_NEAR")
    rest = make_series(format, f"Y{order}_OF_SQUARE")

    def j(x):  # type: ignore[no-untyped-def]
        value = pieces(*locate(limited(abs(x), zero, split)))
        return x * value if order else value

    def y(x):  # type: ignore[no-untyped-def]
        small = where(x < least, x, least)
        singular = log(small) * j(small)
        if order:
            singular = singular - one / small
        remainder = rest(small * small)
        value = fma(two_over_pi, singular, small * remainder if order else remainder)
        value = where(x == zero, -infinity, value)
        return where(x < least, value, pieces_y(*locate_y(limited(x, least, split))))

    return j, y


def _make_far(format: Format, order: int) -> tuple[Any, Any]:
    """Return P and Q of an order for positive arguments from 16 on."""
    number = format.number
    zero, one, split = number(0), number(1), number(_WAVES_FROM)
    even, odd = make_series(format, f"P{order}"), make_series(format, f"Q{order}")

    def p(x):  # type: ignore[no-untyped-def]
        u = limited(split / x, zero, one)
        return even(u * u)

    def q(x):  # type: ignore[no-untyped-def]
        u = limited(split / x, zero, one)
        return u * odd(u * u)

    return p, q


# The function for each type, for numgrad.math.scalar.
J0_NEAR, Y0_NEAR, J1_NEAR, Y1_NEAR, P0, Q0, P1, Q1 = for_each(
    lambda f: (*_make_near(f, 0), *_make_near(f, 1), *_make_far(f, 0), *_make_far(f, 1))
)
