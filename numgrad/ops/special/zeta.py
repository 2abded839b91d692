"""Hurwitz's zeta function, with derivatives for both arguments."""

from __future__ import annotations

from typing import Any

from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.declare import NotDifferentiable, binary
from numgrad.ops.core.domains import POSITIVE, interval
from numgrad.ops.core.elementwise.number_operands import NumberForms, number_forms
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.signatures.declared import declare

__all__ = ["special_zeta"]

_ORDERS = interval(1.5, 6.0)


# The first two derivatives for the exponent.
_BEND = NotDifferentiable(
    "zeta_bend",
    ("input", "other"),
    (None, None),
    (_ORDERS, POSITIVE),
    formula=lambda input, other: Symbol.apply("zeta_slope", input, other, 2.0),
    accepts="f",
    kind="float",
    listed=False,
    doc="Return the second derivative of zeta for its first argument.",
)
_SLOPE: ElementwisePrimitive = binary(
    "zeta_slope",
    (
        lambda g, input, other: g * _BEND(input, other),
        lambda g, input, other: -g * (_ZETA(input + 1, other) + input * _SLOPE(input + 1, other)),
    ),
    (_ORDERS, POSITIVE),
    formula=lambda input, other: Symbol.apply("zeta_slope", input, other, 1.0),
    accepts="f",
    kind="float",
    listed=False,
    doc="Return the derivative of zeta for its first argument.",
)


_FORMS: NumberForms = number_forms(
    "zeta",
    "SpecialZetaBackward",
    lambda input, other: Symbol.apply("zeta", input, other),
    (
        lambda g, input, other: g * _SLOPE(input, other),
        lambda g, input, other: -g * input * _ZETA(input + 1, other),
    ),
    (_ORDERS, POSITIVE),
    (2.5, 1.5),
    function_name="special_zeta",
    kernel_name="zeta_cpu",
    doc="Return the sum of (other + k)**-input over k from 0.",
)
_ZETA: ElementwisePrimitive = _FORMS.of_tensors


@declare(
    "special_zeta(Tensor input, Tensor other, *, Tensor? out=None)",
    "special_zeta(number input, Tensor other, *, Tensor? out=None)",
    "special_zeta(Tensor input, number other, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    factors=("input", "other"),
)
def special_zeta(input: Any, other: Any, out: Tensor | None) -> Tensor:
    """Return Hurwitz's zeta function, the sum of ``(other + k)**-input`` over k from 0.

    inf where `input` is 1, nan below. Derivative: -s zeta(s + 1, q) for `other`, where s is `input`
    and q `other`; that for `input`, which PyTorch has not, is the sum of the terms' for positive q,
    and can be differentiated once more. Mirrors ``torch.special.zeta``.

    Parameters
    ----------
    input, other : tensor or number
        One of them is a tensor; they broadcast.

    >>> import numgrad as ng
    >>> ng.special.zeta(ng.tensor([2.0, 3.0]), 1.0)
    tensor([1.6449, 1.2021])
    """
    return _FORMS(input, other, out)
