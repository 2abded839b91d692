"""Smooth activations: gelu, silu, mish, elu.

Digits: of gelu where x is negative they are those of erfc, since 1 + erf would have lost them.
"""

from __future__ import annotations

import math
from typing import Any

from numgrad.ops.core.declare import elementwise
from numgrad.ops.core.domains import NONZERO, REAL, number
from numgrad.ops.pointwise.activation import erfc, logsigmoid, sigmoid
from numgrad.ops.pointwise.complex import conj
from numgrad.ops.pointwise.exponential import exp, expm1
from numgrad.ops.pointwise.selection import where
from numgrad.ops.pointwise.trigonometric import tanh

__all__ = ["CELU", "ELU", "GELU", "GELU_TANH", "MISH", "SILU"]

_ROOT_HALF = math.sqrt(0.5)
_DENSITY = 1 / math.sqrt(2 * math.pi)  # of the normal distribution, at 0
_CUBIC = 0.044715  # of Hendrycks and Gimpel, arXiv 1606.08415


# --- gelu ----------------------------------------------------------------------------------------


def _gelu_slope(g: Any, input: Any) -> Any:
    """Return g (Phi(x) + x phi(x)), of the normal distribution."""
    below = erfc(input * -_ROOT_HALF) * 0.5
    return g * (below + input * (exp(input * input * -0.5) * _DENSITY))


GELU = elementwise(
    "gelu",
    ("input",),
    (_gelu_slope,),
    (REAL,),
    formula=lambda input: input * (erfc(input * -_ROOT_HALF) * 0.5),
    accepts="f",
    node="GeluBackward0",
    kernel_name="GeluKernelImpl",
    doc="Return x Phi(x), of the normal distribution.",
)


def _inner(input: Any) -> Any:
    return (input + input * input * input * _CUBIC) * (2 * _DENSITY)


def _gelu_tanh_slope(g: Any, input: Any) -> Any:
    """Return the derivative of x (1 + tanh u) / 2, where u is a cubic polynomial of x."""
    bent = tanh(_inner(input))
    steep = (1 + input * input * (3 * _CUBIC)) * (2 * _DENSITY)
    return g * ((1 + bent) * 0.5 + input * 0.5 * (1 - bent * bent) * steep)


GELU_TANH = elementwise(
    "gelu_tanh",
    ("input",),
    (_gelu_tanh_slope,),
    (REAL,),
    formula=lambda input: input * 0.5 * (1 + tanh(_inner(input))),
    accepts="f",
    node="GeluBackward0",
    function_name="gelu",
    kernel_name="GeluKernelImpl",
    doc="Return x Phi(x), nearly.",
)

# --- silu and mish -------------------------------------------------------------------------------


def _silu_slope(g: Any, input: Any) -> Any:
    part = sigmoid(input)
    return g * conj(part * (1 + input * (1 - part)))


SILU = elementwise(
    "silu",
    ("input",),
    (_silu_slope,),
    (REAL,),
    formula=lambda input: input / (1 + exp(-input)),
    accepts="fc",
    node="SiluBackward0",
    doc="Return x sigmoid(x).",
)


def _softplus(input: Any) -> Any:
    return -logsigmoid(-input)


def _mish_slope(g: Any, input: Any) -> Any:
    bent = tanh(_softplus(input))
    return g * (bent + input * sigmoid(input) * (1 - bent * bent))


MISH = elementwise(
    "mish",
    ("input",),
    (_mish_slope,),
    (REAL,),
    formula=lambda input: input * tanh(_softplus(input)),
    accepts="f",
    node="MishBackward0",
    doc="Return x tanh(softplus(x)).",
)

# --- elu -----------------------------------------------------------------------------------------


def _elu(input: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    return where(input <= 0, expm1(input * input_scale) * (alpha * scale), input * scale)


def _elu_slope(g: Any, input: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    # Of 0 where x is positive: its exponential could overflow, and 0 times that is no gradient.
    grown = exp(where(input < 0, input, 0) * input_scale)
    return where(input <= 0, g * (grown * (input_scale * alpha * scale)), g * scale)


ELU = elementwise(
    "elu",
    ("input", "alpha", "scale", "input_scale"),
    (_elu_slope, None, None, None),
    (NONZERO, number(1.5), number(0.75), number(2.0)),
    formula=_elu,
    accepts="f",
    node="EluBackward0",
    gradients_lie={"input": lambda g, input: g * input},
    numbers=("alpha", "scale", "input_scale"),
    doc="Return scale x where x is positive, else scale alpha (e**(input_scale x) - 1).",
)
CELU = elementwise(
    "celu",
    ("input", "alpha"),
    (lambda g, input, alpha: _elu_slope(g, input, alpha, 1, 1 / alpha), None),
    (NONZERO, number(1.5)),
    formula=lambda input, alpha: _elu(input, alpha, 1, 1 / alpha),
    accepts="f",
    node="CeluBackward0",
    gradients_lie={"input": lambda g, input: g * input},
    numbers=("alpha",),
    kernel_name="elu_cpu",
    doc="Return x where it is positive, else alpha (e**(x / alpha) - 1).",
)
