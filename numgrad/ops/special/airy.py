"""Airy's function of the first kind."""

from __future__ import annotations

from numgrad.ops.core.declare import unary
from numgrad.ops.core.domains import REAL
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.signatures.published import publish

__all__ = ["special_airy_ai"]

_SLOPE: ElementwisePrimitive = unary(
    "airy_ai_slope",
    lambda g, input: g * input * _AIRY_AI(input),
    REAL,
    accepts="f",
    listed=False,
    doc="Return the derivative of Airy's function.",
)
_AIRY_AI: ElementwisePrimitive = unary(
    "airy_ai",
    lambda g, input: g * _SLOPE(input),
    REAL,
    accepts="f",
    node="SpecialAiryAiBackward0",
    function_name="special_airy_ai",
    kernel_name="airy_ai_cpu",
    doc="Return Airy's function Ai, the solution of y'' = x y that falls for positive x.\n\n"
    "As PyTorch's it is nan at infinity. Derivative: Ai', of which the derivative is x Ai(x), by\n"
    "that equation (DLMF 9.2.1); PyTorch has none. Mirrors ``torch.special.airy_ai``.",
    example="ng.special.airy_ai(ng.tensor([0.0, 1.0]))\ntensor([0.3550, 0.1353])",
)
special_airy_ai = publish(_AIRY_AI, module=__name__)
