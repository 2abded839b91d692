"""Trigonometric and hyperbolic functions; a rule a line."""

from __future__ import annotations

import math
from typing import Any

from numgrad.codegen.expression import Symbol
from numgrad.kernels.move.loop_order import beside_number, copy_order
from numgrad.ops.core.declare import binary, unary
from numgrad.ops.core.domains import NONZERO, REAL, UNIT, away_from, interval
from numgrad.ops.pointwise.complex import absolute, conj, is_complex
from numgrad.ops.pointwise.exponential import rsqrt
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.published import publish

__all__ = ["cos", "cosh", "sin", "sinh", "tanh"]

PI, DEGREE = 3.141592653589793, 0.017453292519943295


# The derivative of each of these stands below it.
def _cos(x: Any) -> Any:
    return cos(x)


def _cosh(x: Any) -> Any:
    return cosh(x)


sin = publish(
    unary(
        "sin",
        lambda g, input: g * conj(_cos(input)),
        REAL,
        doc="Return the sine of an angle in radians.\n\nDerivative: cos x.",
        example="ng.sin(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 0.8415])",
    )
)
cos = publish(
    unary(
        "cos",
        lambda g, input: g * -conj(sin(input)),
        REAL,
        doc="Return the cosine of an angle in radians.\n\nDerivative: -sin x.",
        example="ng.cos(ng.tensor([0.0, 1.0]))\ntensor([1.0000, 0.5403])",
    )
)
tan = publish(
    unary(
        "tan",
        lambda g, y: g * conj(1 + y * y),
        interval(-1.2, 1.2),
        doc="Return the tangent of an angle in radians.\n\nDerivative: 1 + tan(x)**2.",
        example="ng.tan(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 1.5574])",
    )
)
asin = publish(
    unary(
        "asin",
        lambda g, input: g * conj(rsqrt(1 - input * input)),
        UNIT,
        doc="Return the angle whose sine is x, nan outside [-1, 1].\n\n"
        "Derivative: 1/sqrt(1 - x**2).",
        example="ng.asin(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 1.5708])",
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
        example="ng.acos(ng.tensor([0.0, 1.0]))\ntensor([1.5708, 0.0000])",
    ),
    "arccos",
)
atan = publish(
    unary(
        "atan",
        lambda g, input: g / conj(input * input + 1),
        REAL,
        doc="Return the angle whose tangent is x.\n\nDerivative: 1/(1 + x**2).",
        example="ng.atan(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 0.7854])",
    ),
    "arctan",
)


def _inverse_square(input: Any, other: Any) -> Any:
    """Return 1 / (input**2 + other**2), and 0 at the origin: the angle has no derivative there."""
    square = input * input + other * other
    return where(square == 0, 0, 1 / square)


atan2 = publish(
    binary(
        "atan2",
        (
            lambda g, input, other: g * (other * _inverse_square(input, other)),
            lambda g, input, other: g * (-input * _inverse_square(input, other)),
        ),
        (NONZERO, away_from(0.0, gap=0.3)),
        gradients_lie={
            "input": lambda g, input, other: g * other * (input * input + other * other),
            "other": lambda g, input, other: g * -input * (input * input + other * other),
        },
        kind="float",
        accepts="f",
        doc="Return the angle of the point with ordinate `input` and abscissa `other`.\n\n"
        "Derivative: other/(input**2 + other**2) and -input/(input**2 + other**2), 0 at the "
        "origin.",
        example="ng.atan2(ng.tensor([1.0]), ng.tensor([-1.0]))\ntensor([2.3562])",
    ),
    "arctan2",
)
hypot = publish(
    binary(
        "hypot",
        (
            lambda g, y, input: g * (input / y),
            lambda g, y, other: g * (other / y),
        ),
        (NONZERO, NONZERO),
        gradients_lie={
            "input": lambda g, y, input: g * input * y,
            "other": lambda g, y, other: g * other * y,
        },
        accepts="f",
        doc="Return sqrt(input**2 + other**2), without overflow on the way.\n\n"
        "Derivative: input / y and other / y.",
        example="ng.hypot(ng.tensor([3.0]), ng.tensor([4.0]))\ntensor([5.])",
    )
)
sinh = publish(
    unary(
        "sinh",
        lambda g, input: g * conj(_cosh(input)),
        REAL,
        doc="Return the hyperbolic sine.\n\nDerivative: cosh x.",
        example="ng.sinh(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 1.1752])",
    )
)
cosh = publish(
    unary(
        "cosh",
        lambda g, input: g * conj(sinh(input)),
        REAL,
        doc="Return the hyperbolic cosine.\n\nDerivative: sinh x.",
        example="ng.cosh(ng.tensor([0.0, 1.0]))\ntensor([1.0000, 1.5431])",
    )
)
tanh = publish(
    unary(
        "tanh",
        lambda g, y: g * conj(1 - y * y),
        REAL,
        doc="Return the hyperbolic tangent.\n\nDerivative: 1 - tanh(x)**2.",
        example="ng.tanh(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 0.7616])",
    )
)


def _asinh_rule(g: Any, input: Any) -> Any:
    if is_complex(input):
        return g * conj(rsqrt(input * input + 1))
    return g / hypot(input, 1.0)  # whose square does not overflow


asinh = publish(
    unary(
        "asinh",
        _asinh_rule,
        REAL,
        doc="Return the inverse hyperbolic sine.\n\nDerivative: 1/sqrt(x**2 + 1).",
        example="ng.asinh(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 0.8814])",
    ),
    "arcsinh",
)


def _acosh_rule(g: Any, input: Any) -> Any:
    if is_complex(input):  # the root of a product is not the product of the roots
        # Subtracting -1 keeps the sign of an imaginary part that is 0, which tells the side of the
        # branch cut; adding 1 does not.
        return g * conj(rsqrt(input - 1) * rsqrt(input - -1))
    size = absolute(input)  # the square of a large number overflows
    return g * (rsqrt(size - 1) * rsqrt(size + 1))


acosh = publish(
    unary(
        "acosh",
        _acosh_rule,
        interval(1.2, 4.0),
        doc="Return the inverse hyperbolic cosine, nan below 1.\n\nDerivative: 1/sqrt(x**2 - 1).",
        example="ng.acosh(ng.tensor([1.0, 2.0]))\ntensor([0.0000, 1.3170])",
    ),
    "arccosh",
)
atanh = publish(
    unary(
        "atanh",
        lambda g, input: g / conj(1 - input * input),
        UNIT,
        gradients_lie={"input": lambda g: g * 1},
        doc="Return the inverse hyperbolic tangent, nan outside [-1, 1].\n\n"
        "Derivative: 1/(1 - x**2).",
        example="ng.atanh(ng.tensor([0.0, 0.5]))\ntensor([0.0000, 0.5493])",
    ),
    "arctanh",
)


def _sinc_rule(g: Any, input: Any) -> Any:
    """Return g times cos(pi x)/x - sin(pi x)/(pi x**2); near 0, where those cancel, its series."""
    half = Symbol.apply("real", 0.5) if isinstance(input, Symbol) else 0.5
    near = absolute(input) < half
    # Each is computed away from where it overflows or divides by 0, whose nan a choice keeps.
    distant, close = where(near, 1, input), where(near, input, 0)
    angle, square = PI * distant, (PI * PI) * close * close
    slope = (cos(angle) - sin(angle) / angle) / distant
    series = _SINC_SERIES[-1]
    for coefficient in _SINC_SERIES[-2::-1]:
        series = coefficient + square * series
    return g * conj(where(near, 0.0 - (PI * PI) * close * series, slope))


# The derivative of sin(u)/u is -(u/3 - u**3/30 + ...): (-1)**k 2 k / (2 k + 1)! for u**(2 k - 1).
_SINC_SERIES = [(-1) ** (k + 1) * 2 * k / math.factorial(2 * k + 1) for k in range(1, 13)]

sinc = publish(
    unary(
        "sinc",
        _sinc_rule,
        NONZERO,
        gradients_lie={"input": lambda g, input: input * 1},
        formula=lambda input: where(input == 0, 1, sin(PI * input) / (PI * input)),
        doc="Return sin(pi x)/(pi x), 1 at 0.\n\n"
        "Derivative: (pi x cos(pi x) - sin(pi x))/(pi x**2), 0 at 0.",
        example="ng.sinc(ng.tensor([0.0, 0.5]))\ntensor([1.0000, 0.6366])",
    )
)
_REAL_ONLY = "{} is not supported for complex tensors."
deg2rad = publish(
    unary(
        "deg2rad",
        lambda g: g * DEGREE,
        REAL,
        formula=lambda input: input * DEGREE,
        deciding=lambda arrays: copy_order(arrays[0]),
        deciding_out=beside_number,
        accepts="f",
        refuses={"c": RuntimeError(_REAL_ONLY.format("deg2rad"))},
        doc="Return an angle in degrees as radians.\n\nDerivative: pi/180.",
        example="ng.deg2rad(ng.tensor([0.0, 180.0]))\ntensor([0.0000, 3.1416])",
    )
)
rad2deg = publish(
    unary(
        "rad2deg",
        lambda g: g * (180 / PI),
        REAL,
        formula=lambda input: input * (180 / PI),
        deciding=lambda arrays: copy_order(arrays[0]),
        deciding_out=beside_number,
        accepts="f",
        refuses={"c": RuntimeError(_REAL_ONLY.format("rad2deg"))},
        doc="Return an angle in radians as degrees.\n\nDerivative: 180/pi.",
        example="ng.rad2deg(ng.tensor([0.0, 1.0]))\ntensor([ 0.0000, 57.2958])",
    )
)
