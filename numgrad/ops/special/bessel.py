"""Bessel functions of orders 0 and 1, of the first and the second kind, and the spherical one.

Up to 16 they are piecewise polynomials, from there on waves of a slowly changing amplitude and
phase (`numgrad.math.real.bessel`). Sources of the derivatives: DLMF 10.6 and 10.51; PyTorch has
none.
"""

from __future__ import annotations

import math
from typing import Any

from numgrad.codegen.expression import Symbol
from numgrad.ops.core.declare import unary
from numgrad.ops.core.domains import POSITIVE, REAL
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.pointwise.complex import absolute
from numgrad.ops.pointwise.exponential import sqrt
from numgrad.ops.pointwise.selection import where
from numgrad.ops.pointwise.trigonometric import cos, sin
from numgrad.ops.signatures.published import publish

__all__ = [
    "TINY",
    "special_bessel_j0",
    "special_bessel_j1",
    "special_bessel_y0",
    "special_bessel_y1",
    "special_spherical_bessel_j0",
]

_NEAR = 16.0  # as in numgrad.math.real.bessel
TINY = 1e-16  # up to there J1(x) and I1(x) are x/2 to all digits
_SERIES_UP_TO = 0.5  # up to there the slope of sin(x)/x is its power series
_TERMS = 7


def _wave(order: int, of_second_kind: bool, x: Any) -> Any:
    """Return J or Y of a positive argument from 16 on (DLMF 10.17.3 and 10.17.4)."""
    s, c = sin(x), cos(x)
    # sqrt(2) times the cosine and the sine of x - pi/4; a quarter of a turn less for order 1.
    cosine, sine = (s - c, -s - c) if order else (c + s, s - c)
    p, q = Symbol.apply(f"p{order}", x), Symbol.apply(f"q{order}", x)
    value = p * sine + q * cosine if of_second_kind else p * cosine - q * sine
    return value * (1 / math.sqrt(math.pi)) / sqrt(x)


def _first_kind(order: int) -> Any:
    def formula(input: Any) -> Any:
        size = absolute(input)
        far = _wave(order, False, size)
        if order:
            far = where(input < 0, -far, far)
        return where(size < _NEAR, Symbol.apply(f"j{order}_near", input), far)

    return formula


def _second_kind(order: int) -> Any:
    def formula(input: Any) -> Any:
        far = _wave(order, True, input)
        return where(input < _NEAR, Symbol.apply(f"y{order}_near", input), far)

    return formula


def _declare(
    name: str, rule: Any, formula: Any, doc: str, example: str, domain: Any = REAL
) -> ElementwisePrimitive:
    """Declare a function of real numbers."""
    return unary(
        name,
        rule,
        domain,
        formula=formula,
        accepts="f",
        node=f"Special{name.title().replace('_', '')}Backward0",
        function_name=f"special_{name}",
        kernel_name=f"{name}_cpu",
        doc=f"{doc}; PyTorch has none. Mirrors ``torch.special.{name}``.",
        example=example,
    )


def _away_from_0(x: Any) -> Any:
    """Return x, and 1 in the place of what is near 0: what is divided by it is not used there."""
    return where(absolute(x) <= TINY, 1.0, x)


def _j1_slope(g: Any, y: Any, input: Any) -> Any:
    x = _away_from_0(input)
    return g * where(absolute(input) <= TINY, 0.5, _J0(x) - y / x)


_J0: ElementwisePrimitive = _declare(
    "bessel_j0",
    lambda g, input: -g * _J1(input),
    _first_kind(0),
    "Return the Bessel function of the first kind of order 0.\n\nDerivative: -J1(x)",
    "ng.special.bessel_j0(ng.tensor([0.0, 1.0, 20.0]))\ntensor([1.0000, 0.7652, 0.1670])",
)
special_bessel_j0 = publish(_J0, module=__name__)
_J1: ElementwisePrimitive = _declare(
    "bessel_j1",
    _j1_slope,
    _first_kind(1),
    "Return the Bessel function of the first kind of order 1.\n\n"
    "Derivative: J0(x) - J1(x)/x, 1/2 at 0",
    "ng.special.bessel_j1(ng.tensor([0.0, 1.0, 20.0]))\ntensor([0.0000, 0.4401, 0.0668])",
)
special_bessel_j1 = publish(_J1, module=__name__)
_Y0: ElementwisePrimitive = _declare(
    "bessel_y0",
    lambda g, input: -g * _Y1(input),
    _second_kind(0),
    "Return the Bessel function of the second kind of order 0.\n\n"
    "-inf at 0, nan below. Derivative: -Y1(x)",
    "ng.special.bessel_y0(ng.tensor([1.0, 20.0]))\ntensor([0.0883, 0.0626])",
    POSITIVE,
)
special_bessel_y0 = publish(_Y0, module=__name__)
_Y1: ElementwisePrimitive = _declare(
    "bessel_y1",
    lambda g, y, input: g * (_Y0(input) - y / input),
    _second_kind(1),
    "Return the Bessel function of the second kind of order 1.\n\n"
    "-inf at 0, nan below. Derivative: Y0(x) - Y1(x)/x",
    "ng.special.bessel_y1(ng.tensor([1.0, 20.0]))\ntensor([-0.7812, -0.1655])",
    POSITIVE,
)
special_bessel_y1 = publish(_Y1, module=__name__)


def _spherical(input: Any) -> Any:
    quotient = sin(input) / _away_from_0(input)
    return where(absolute(input) <= TINY, 1.0, where(absolute(input) == math.inf, 0.0, quotient))


def _spherical_slope(g: Any, y: Any, input: Any) -> Any:
    """Return g times (cos x - y)/x, by its power series where the two are nearly equal."""
    is_small = absolute(input) < _SERIES_UP_TO
    near = where(is_small, input, 0.0)
    square, series = near * near, 1.0
    for k in range(_TERMS, 0, -1):
        series = 1 - square / (2 * k * (2 * k + 3)) * series
    far = where(is_small, 1.0, input)
    return g * where(is_small, near * series * (-1 / 3), (cos(far) - y) / far)


_SPHERICAL_J0: ElementwisePrimitive = _declare(
    "spherical_bessel_j0",
    _spherical_slope,
    _spherical,
    "Return the spherical Bessel function of order 0, sin(x)/x.\n\nDerivative: (cos x - y)/x",
    "ng.special.spherical_bessel_j0(ng.tensor([0.0, 1.0]))\ntensor([1.0000, 0.8415])",
)
special_spherical_bessel_j0 = publish(_SPHERICAL_J0, module=__name__)
