"""The regularised incomplete gamma functions, with derivatives for both arguments."""

from __future__ import annotations

from typing import Any

from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.declare import NotDifferentiable, binary
from numgrad.ops.core.domains import POSITIVE
from numgrad.ops.pointwise.exponential import log
from numgrad.ops.signatures.declared import declare
from numgrad.ops.special.gamma import digamma

__all__ = ["igamma", "igammac"]


def _rate(input: Any, other: Any) -> Any:
    """Return the derivative of the logarithm of the density for `input`."""
    return log(other) - digamma(input)


_DENSITY = binary(
    "gamma_density",
    (
        lambda g, y, input, other: g * y * _rate(input, other),
        lambda g, y, input, other: g * y * ((input - 1) / other - 1),
    ),
    (POSITIVE, POSITIVE),
    accepts="f",
    listed=False,
    doc="Return other**(input - 1) e**-other / Gamma(input).",
)
# The first two derivatives of igamma for its first argument.
_BEND = NotDifferentiable(
    "igamma_bend",
    ("input", "other"),
    (None, None),
    (POSITIVE, POSITIVE),
    formula=lambda input, other: Symbol.apply("gammainc_slope", input, other, 2.0),
    accepts="f",
    listed=False,
    doc="Return the second derivative of igamma for its first argument.",
)
_SLOPE = binary(
    "igamma_slope",
    (
        lambda g, input, other: g * _BEND(input, other),
        lambda g, input, other: g * _DENSITY(input, other) * _rate(input, other),
    ),
    (POSITIVE, POSITIVE),
    formula=lambda input, other: Symbol.apply("gammainc_slope", input, other, 1.0),
    accepts="f",
    listed=False,
    doc="Return the derivative of igamma for its first argument.",
)


def _declare(name: str, of: str, sign: int, words: str, value: str) -> Any:
    primitive = binary(
        name,
        (
            lambda g, input, other: sign * g * _SLOPE(input, other),
            lambda g, input, other: sign * g * _DENSITY(input, other),
        ),
        (POSITIVE, POSITIVE),
        formula=lambda input, other: Symbol.apply(of, input, other),
        accepts="f",
        doc=f"Return the {words} regularised incomplete gamma function.",
    )

    def rule(input: Tensor, other: Tensor, out: Tensor | None) -> Tensor:
        result: Tensor = primitive(input, other, out=out)
        return result

    rule.__name__ = rule.__qualname__ = name
    rule.__module__ = "numgrad"
    rule.__doc__ = f"""Return the {words} regularised incomplete gamma function of two tensors.

    It is nan where one of them is negative. Derivative: for `other` it is
    {"-" * (sign < 0)}x**(a - 1) e**-x / Gamma(a), where a is `input` and x `other`. That for
    `input`, which PyTorch has not, is computed as the function is; it can be differentiated once
    more.

    >>> import numgrad as ng
    >>> ng.{name}(ng.tensor([1.0]), ng.tensor([2.0]))
    tensor([{value}])
    """
    text = f"{name}(Tensor input, Tensor other, *, Tensor? out=None)"
    return declare(text, inplace=True, dispatched=True)(rule)


igamma = _declare("igamma", "gammainc", 1, "lower", "0.8647")
igammac = _declare("igammac", "gammaincc", -1, "upper", "0.1353")
