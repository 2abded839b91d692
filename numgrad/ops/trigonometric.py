"""Trigonometric and hyperbolic functions; a rule a line."""

from __future__ import annotations

from numgrad.ops.complex import conj
from numgrad.ops.domains import NONZERO, REAL, UNIT, away_from, interval
from numgrad.ops.elementwise import binary, unary
from numgrad.ops.exponential import rsqrt, sqrt
from numgrad.ops.functions import publish

__all__ = ["cos", "cosh", "sin", "sinh", "tanh"]

sin = publish(
    unary(
        "sin",
        lambda g, input: g * conj(cos(input)),
        REAL,
        doc="Return the sine of an angle in radians.\n\nDerivative: cos x.",
    )
)
cos = publish(
    unary(
        "cos",
        lambda g, input: g * -conj(sin(input)),
        REAL,
        doc="Return the cosine of an angle in radians.\n\nDerivative: -sin x.",
    )
)
tan = publish(
    unary(
        "tan",
        lambda g, y: g * conj(1 + y * y),
        interval(-1.2, 1.2),
        doc="Return the tangent of an angle in radians.\n\nDerivative: 1 + tan(x)**2.",
    )
)
asin = publish(
    unary(
        "asin",
        lambda g, input: g * conj(rsqrt(1 - input * input)),
        UNIT,
        doc="Return the angle whose sine is x, nan outside [-1, 1].\n\n"
        "Derivative: 1/sqrt(1 - x**2).",
    ),
    "arcsin",
)
acos = publish(
    unary(
        "acos",
        lambda g, input: g * -conj(rsqrt(1 - input * input)),
        UNIT,
        doc="Return the angle whose cosine is x, nan outside [-1, 1].\n\n"
        "Derivative: -1/sqrt(1 - x**2).",
    ),
    "arccos",
)
atan = publish(
    unary(
        "atan",
        lambda g, input: g / conj(input * input + 1),
        REAL,
        doc="Return the angle whose tangent is x.\n\nDerivative: 1/(1 + x**2).",
    ),
    "arctan",
)
atan2 = publish(
    binary(
        "atan2",
        (
            lambda g, input, other: g * other / (input * input + other * other),
            lambda g, input, other: g * -input / (input * input + other * other),
        ),
        (NONZERO, away_from(0.0, gap=0.3)),
        kind="float",
        accepts="f",
        doc="Return the angle of the point with ordinate `input` and abscissa `other`.\n\n"
        "Derivative: other/(input**2 + other**2) and -input/(input**2 + other**2).",
    ),
    "arctan2",
)
sinh = publish(
    unary(
        "sinh",
        lambda g, input: g * conj(cosh(input)),
        REAL,
        doc="Return the hyperbolic sine.\n\nDerivative: cosh x.",
    )
)
cosh = publish(
    unary(
        "cosh",
        lambda g, input: g * conj(sinh(input)),
        REAL,
        doc="Return the hyperbolic cosine.\n\nDerivative: sinh x.",
    )
)
tanh = publish(
    unary(
        "tanh",
        lambda g, y: g * conj(1 - y * y),
        REAL,
        doc="Return the hyperbolic tangent.\n\nDerivative: 1 - tanh(x)**2.",
    )
)
