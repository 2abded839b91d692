"""cbrt and hypot without branches.

Method of cbrt: write abs(x) = 2**(3 q) m with m from 1/2 to 4; y = m**(-1/3) from a polynomial on
[1, 2] and one step of Newton's method, which divides nothing; then t = m y**2 and its correction
(m - t**3) y**2 / 3, where t**3 is computed to twice the precision.

Method of hypot: the square root of the sum of squares, correctly rounded but for rare cases, and
scaled by a power of two where the squares would overflow or underflow.

Error bounds, measured against mpmath in tests/kernels/vector and, for cbrt, in
benchmarks/accuracy: 1 ulp for both, over the whole range, for float32 and float64.

Sources: the polynomial is minimax (Remez, benchmarks/accuracy), with a relative error of 2**-11
(float32) and 2**-17.
"""

from __future__ import annotations

import math
from typing import Any

from numgrad.codegen.llvm.scalar_ir import sqrt, where
from numgrad.math.real.bits import fma
from numgrad.math.real.double_word import fast_two_sum, two_product
from numgrad.math.real.formats import Format, for_each
from numgrad.math.real.logarithms import make_split

__all__ = ["CBRT", "HYPOT"]

# m**(-1/3) for m from 1 to 2, the highest power first.
_INVERSE_SINGLE = (-0.049937014, 0.31775758, -0.8099609, 1.5418873)
_INVERSE_DOUBLE = (
    -0.017019163601750997,
    0.1560725889952451,
    -0.5978759588192247,
    1.2437902780869605,
    -1.5660321746538952,
    1.7810586813318325,
)


def _make_cbrt(format: Format) -> Any:
    number = format.number
    split, nearest, power_of_two = make_split(format, 1.0), format.nearest(), format.power_of_two()
    inverse_root = format.polynomial(_INVERSE_SINGLE, _INVERSE_DOUBLE)
    zero, half, one, two = number(0), number(0.5), number(1), number(2)
    three, third, infinity = number(3), number(1 / 3), number(math.inf)
    shrink, grow = number(2 ** (-1 / 3)), number(2 ** (1 / 3))

    def cbrt(x):  # type: ignore[no-untyped-def]
        m, exponent = split(abs(x))
        whole, q = nearest(exponent, third)
        left = exponent - three * whole  # -1, 0 or 1
        y = inverse_root(m)
        y = y * where(left > zero, shrink, where(left < zero, grow, one))
        m = m * where(left > zero, two, where(left < zero, half, one))
        square = y * y
        y = fma(y * third, fma(-(m * y), square, one), y)
        square = y * y
        t = m * square
        cube = t * t
        rest = fma(-cube, t, m) - fma(t, t, -cube) * t
        result = fma(rest * third, square, t) * power_of_two(q)
        signed = where(x < zero, -result, result)
        return where((x != zero) & (abs(x) < infinity), signed, x)

    return cbrt


def _make_hypot(format: Format) -> Any:
    number = format.number
    small, large = format.choose((-50, 50), (-400, 400))
    smaller, larger = number(2.0**small), number(2.0**large)
    grow, shrink = format.choose((100, -70), (700, -600))
    up, up_back = number(2.0**grow), number(2.0**-grow)
    down, down_back = number(2.0**shrink), number(2.0**-shrink)
    one, infinity = number(1), number(math.inf)

    def hypot(x, y):  # type: ignore[no-untyped-def]
        x, y = abs(x), abs(y)
        a, b = where(x > y, (x, y), (y, x))
        scale = where(a > larger, down, where(a < smaller, up, one))
        back = where(a > larger, down_back, where(a < smaller, up_back, one))
        a, a_rest = two_product(a * scale, a * scale)
        b, b_rest = two_product(b * scale, b * scale)
        total, rest = fast_two_sum(a, b)
        result = sqrt(total + (rest + (a_rest + b_rest))) * back
        return where((x == infinity) | (y == infinity), infinity, result)

    return hypot


# The function for each type, for the overloads in numgrad.math.scalar.
CBRT, HYPOT = for_each(lambda f: (_make_cbrt(f), _make_hypot(f)))
