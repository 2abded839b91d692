"""Derive the piecewise polynomials of special functions: ``python benchmarks/accuracy/pieces.py``.

Each function that `TABLES` lists is smooth on an interval, which is cut into pieces about the
multiples of a power of two. On each piece it is interpolated at the zeros of a Chebyshev polynomial
in mpmath, and the series is cut off where what is left out is below the type's precision. The
coefficients are those of powers of the distance from the middle of the piece. Writes
``numgrad/math/real/special_tables.py``.

Sources of the shapes: DLMF 10.17 and 10.40 (Bessel functions of large arguments), 10.8 and 10.31
(of small ones), 9.7 (Airy functions).
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

Function = Callable[[Any], Any]
mp.dps = 60
SPARE_BITS = {np.float32: 5, np.float64: 4}  # by which what is left out is below half an ulp
MOST = 40  # coefficients that are looked at
TARGET = Path(__file__).parents[2] / "numgrad/math/real/special_tables.py"


@dataclass(frozen=True)
class Table:
    """What is approximated: a function from ``first * width`` to ``last * width``.

    With `width` 0, it is one polynomial of powers of the argument from 0 to `last`.
    """

    function: Function
    width: float
    first: int
    last: float

    def pieces(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the middle of each piece, and its ends."""
        if self.width == 0:
            yield mpf(0), mpf(0), mpf(self.last)
            return
        width = mpf(self.width)
        for k in range(self.first, int(self.last) + 1):
            low = (k - mpf(0.5)) * width if k > self.first else k * width
            high = (k + mpf(0.5)) * width if k < self.last else k * width
            yield k * width, low, high


def chebyshev(function: Function, low: Any, high: Any) -> list[Any]:
    """Return the coefficients of the Chebyshev series of a function from `low` to `high`."""
    angles = [mpmath.pi * (i + mpf(0.5)) / MOST for i in range(MOST)]
    middle, half = (low + high) / 2, (high - low) / 2
    values = [function(middle + half * mpmath.cos(angle)) for angle in angles]
    return [
        (1 if k == 0 else 2)
        * mpmath.fsum(v * mpmath.cos(k * a) for v, a in zip(values, angles, strict=True))
        / MOST
        for k in range(MOST)
    ]


def powers(series: list[Any], low: Any, high: Any, centre: Any) -> list[Any]:
    """Return a Chebyshev series as coefficients of powers of x - centre, the lowest first."""
    # t = scale (x - centre) + shift goes from -1 to 1.
    scale, shift = 2 / (high - low), (2 * centre - low - high) / (high - low)
    size = len(series)

    def times_t(p: list[Any]) -> list[Any]:
        return [
            shift * (p[i] if i < len(p) else 0) + scale * (p[i - 1] if i else 0)
            for i in range(len(p) + 1)
        ]

    total = [mpf(0)] * size
    before, current = [mpf(1)], times_t([mpf(1)])
    for coefficient in series:
        for i, c in enumerate(before):
            total[i] += coefficient * c
        following = [2 * c for c in times_t(current)]
        for i, c in enumerate(before):
            following[i] -= c
        before, current = current, following
    return total


@cache
def series_of(name: str) -> list[tuple[Any, Any, Any, list[Any]]]:
    """Return centre, ends and Chebyshev series of each piece of a table."""
    table = TABLES[name]
    return [
        (centre, low, high, chebyshev(table.function, low, high))
        for centre, low, high in table.pieces()
    ]


def derive(name: str, number: Any) -> tuple[np.ndarray[Any, Any], float]:
    """Return coefficients (a row for each power, the highest first), and log2 of the error."""
    found = series_of(name)
    bits = np.finfo(number).nmant + 1 + SPARE_BITS[number]
    size, worst = 2, mpf(0)
    for _, _, _, series in found:
        scale = abs(series[0]) + abs(series[1])
        for k in range(MOST, size, -1):
            if mpmath.fsum(map(abs, series[k - 1 :])) > scale * mpf(2) ** -bits:
                size = k
                break
    rows = np.zeros((size, len(found)), number)
    for position, (centre, low, high, series) in enumerate(found):
        exact = powers(series[:size], low, high, centre)
        rows[:, position] = [number(float(c)) for c in exact[::-1]]
        worst = max(worst, mpmath.fsum(map(abs, series[size:])) / abs(series[0]))
    return rows, float(mpmath.log(worst, 2))


def _phase(order: int, x: Any) -> tuple[Any, Any]:
    """Return P and Q of DLMF 10.17.3: J = sqrt(2/(pi x)) (P cos a - Q sin a)."""
    a = x - (mpf(order) / 2 + mpf(1) / 4) * mpmath.pi
    j, y, scale = mpmath.besselj(order, x), mpmath.bessely(order, x), mpmath.sqrt(mpmath.pi * x / 2)
    c, s = mpmath.cos(a), mpmath.sin(a)
    return scale * (j * c + y * s), scale * (y * c - j * s)


def _of_inverse(function: Function, at_0: Any) -> Function:
    """Return a function of 1/x, whose limit at 0 is known."""
    return lambda u: mpf(at_0) if u == 0 else function(1 / u)


def _of_square(function: Function) -> Function:
    """Return an even function as one of x**2; limits at 0 are its values nearby."""
    return lambda w: function(mpmath.sqrt(w) if w > mpf(10) ** -30 else mpf(10) ** -15)


_ROOT = mpmath.sqrt
_I_AT_INFINITY = 1 / _ROOT(2 * mpmath.pi)
_K_AT_INFINITY = _ROOT(mpmath.pi / 2)
_SPLIT_J = 16  # from there on the functions of the first and second kind are waves


def _near_y1(x: Any) -> Any:
    """Return what is left of Y1 without its logarithm and its pole, over x."""
    singular = 2 / mpmath.pi * (mpmath.log(x) * mpmath.besselj(1, x) - 1 / x)
    return (mpmath.bessely(1, x) - singular) / x


def _normal_quantile(s: Any) -> Any:
    """Return what the quantile of p is over p - 1/2, where 4 p (1 - p) is e**(-s*s)."""
    rest = mpmath.exp(-s * s)
    x = _ROOT(1 - rest)  # 1 - 2 p
    if x < mpf(0.5):
        return 2 * _ROOT(2) * (mpmath.erfinv(x) / x if x else _ROOT(mpmath.pi) / 2)
    p = rest / (2 * (1 + x))
    target = mpmath.log(p)
    z = _ROOT(-2 * target)
    for _ in range(60):
        tail = mpmath.erfc(z / _ROOT(2)) / 2
        step = (mpmath.log(tail) - target) * tail * _ROOT(2 * mpmath.pi) * mpmath.exp(z * z / 2)
        z += step
        if abs(step) < mpf(10) ** -50:
            break
    return 2 * z / x


TABLES = {
    # Modified functions of the first kind, times e**-x: near 0, and for 1/x up to 1/8.
    "I0E_NEAR": Table(lambda x: mpmath.exp(-x) * mpmath.besseli(0, x), 1, 0, 8),
    "I0E_FAR": Table(
        _of_inverse(lambda x: mpmath.exp(-x) * mpmath.besseli(0, x) * _ROOT(x), _I_AT_INFINITY),
        1 / 64,
        0,
        8,
    ),
    "I1E_NEAR": Table(
        lambda x: mpmath.exp(-x) * mpmath.besseli(1, x) / x if x else mpf(0.5), 1, 0, 8
    ),
    "I1E_FAR": Table(
        _of_inverse(lambda x: mpmath.exp(-x) * mpmath.besseli(1, x) * _ROOT(x), _I_AT_INFINITY),
        1 / 64,
        0,
        8,
    ),
    # And of the second kind, times e**x, for 1/x up to 1; below 1 what a logarithm leaves.
    "K0E_FAR": Table(
        _of_inverse(lambda x: mpmath.exp(x) * mpmath.besselk(0, x) * _ROOT(x), _K_AT_INFINITY),
        1 / 16,
        0,
        16,
    ),
    "K1E_FAR": Table(
        _of_inverse(lambda x: mpmath.exp(x) * mpmath.besselk(1, x) * _ROOT(x), _K_AT_INFINITY),
        1 / 16,
        0,
        16,
    ),
    "I0_OF_SQUARE": Table(_of_square(lambda x: mpmath.besseli(0, x)), 0, 0, 1),
    "I1_OF_SQUARE": Table(_of_square(lambda x: mpmath.besseli(1, x) / x), 0, 0, 1),
    "K0_OF_SQUARE": Table(
        _of_square(lambda x: mpmath.besselk(0, x) + mpmath.log(x) * mpmath.besseli(0, x)), 0, 0, 1
    ),
    "K1_OF_SQUARE": Table(
        _of_square(
            lambda x: (mpmath.besselk(1, x) - 1 / x - mpmath.log(x) * mpmath.besseli(1, x)) / x
        ),
        0,
        0,
        1,
    ),
    # Functions of the first and second kind.
    "J0_NEAR": Table(lambda x: mpmath.besselj(0, x), 1, 0, _SPLIT_J),
    "J1_NEAR": Table(lambda x: mpmath.besselj(1, x) / x if x else mpf(0.5), 1, 0, _SPLIT_J),
    "Y0_NEAR": Table(lambda x: mpmath.bessely(0, x), 1, 3, _SPLIT_J),
    "Y1_NEAR": Table(lambda x: mpmath.bessely(1, x), 1, 3, _SPLIT_J),
    "Y0_OF_SQUARE": Table(
        _of_square(
            lambda x: mpmath.bessely(0, x) - 2 / mpmath.pi * mpmath.log(x) * mpmath.besselj(0, x)
        ),
        0,
        0,
        9,
    ),
    "Y1_OF_SQUARE": Table(_of_square(_near_y1), 0, 0, 9),
    # Their amplitudes, by powers of 256/x**2.
    **{
        f"{'PQ'[part]}{order}": Table(
            _of_square(
                lambda u, order=order, part=part: (
                    _phase(order, _SPLIT_J / u)[part] / (u if part else 1)
                    if u > mpf(10) ** -10
                    else ((1, mpf(-1) / 8)[part] if order == 0 else (1, mpf(3) / 8)[part])
                    / (_SPLIT_J if part else 1)
                )
            ),
            0,
            0,
            1,
        )
        for order in (0, 1)
        for part in (0, 1)
    },
    # Quantiles of the normal distribution.
    "QUANTILE": Table(_normal_quantile, 0.125, 0, 220),
}


def main() -> None:
    lines = [
        '"""Coefficients of special functions, written by benchmarks/accuracy/pieces.py.',
        "",
        "Of each function those for float32 and for float64: a line for each power, the highest",
        "first, and in it a number for each piece.",
        '"""',
        "",
        "# fmt: off",
        "TABLES = {",
    ]
    names = sys.argv[1:] or list(TABLES)
    for name in names:
        lines.append(f'    "{name}": (')
        for number in (np.float32, np.float64):
            rows, error = derive(name, number)
            print(f"{name} {number.__name__}: degree {len(rows) - 1}, error 2**{error:.1f}")
            lines.append('        """')
            for row in rows:
                lines += textwrap.wrap(" ".join(map(str, row)) + " ;", 99)
            lines.append('        """,')
        lines.append("    ),")
    lines.append("}")
    if not sys.argv[1:]:
        TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
