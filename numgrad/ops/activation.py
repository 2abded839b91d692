"""Activations and the error function."""

from __future__ import annotations

from typing import Any

from numgrad.graph.core import Tensor
from numgrad.ops.complex import conj
from numgrad.ops.domains import NONZERO, REAL, number
from numgrad.ops.elementwise import elementwise, unary
from numgrad.ops.exponential import exp, log1p
from numgrad.ops.functions import public, publish
from numgrad.ops.selection import where

__all__ = ["erf", "relu", "sigmoid", "softplus"]

TWO_OVER_SQRT_PI = 1.1283791670955126

sigmoid = publish(
    unary(
        "sigmoid",
        lambda g, y: g * conj((1 - y) * y),
        REAL,
        formula=lambda input: 1 / (1 + exp(-input)),
        doc="Return 1/(1 + e**-x).\n\nDerivative: y (1 - y).",
    )
)
relu = publish(
    unary(
        "relu",
        lambda g, y: where(y <= 0, 0, g),
        NONZERO,
        formula=lambda input: where(input < 0, 0, input),
        kind="same",
        accepts="fiu",
        doc="Return x where it is positive, else 0.\n\nDerivative: 1 for positive x, else 0.",
    )
)
erf = publish(
    unary(
        "erf",
        lambda g, input: TWO_OVER_SQRT_PI * exp(-(input * input)) * g,
        REAL,
        accepts="f",
        doc="Return the error function.\n\nDerivative: 2/sqrt(pi) e**(-x**2).",
    )
)
erfc = publish(
    unary(
        "erfc",
        lambda g, input: -TWO_OVER_SQRT_PI * exp(-(input * input)) * g,
        REAL,
        accepts="f",
        doc="Return 1 - erf(x), exact for large x.\n\nDerivative: -2/sqrt(pi) e**(-x**2).",
    )
)
_SOFTPLUS = elementwise(
    "softplus",
    ("input", "beta", "threshold"),
    (
        lambda g, input, beta, threshold: where(
            input * beta > threshold, g, g * (1 - 1 / (1 + exp(input * beta)))
        ),
        None,
        None,
    ),
    (REAL, number(1.5), number(20.0)),
    formula=lambda input, beta, threshold: where(
        input * beta > threshold, input, log1p(exp(input * beta)) / beta
    ),
    accepts="f",
    node="SoftplusBackward0",
    numbers=("beta", "threshold"),
    doc="Return ln(1 + e**(beta x)) / beta, a smooth relu.",
)


@public(method=False)
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Any:
    """Return ``ln(1 + exp(beta * input)) / beta``, and `input` where ``beta * input > threshold``.

    Derivative: sigmoid(beta x), 1 above the threshold.

    >>> import numgrad as ng
    >>> ng.softplus(ng.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    return _SOFTPLUS(input, beta, threshold)
