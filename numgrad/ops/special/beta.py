"""The beta function and its logarithm, which PyTorch has not."""

from __future__ import annotations

from typing import Any

from numgrad.ops.core.declare import binary
from numgrad.ops.core.domains import POSITIVE
from numgrad.ops.signatures.published import publish
from numgrad.ops.special.gamma import digamma

__all__ = ["special_beta", "special_betaln"]


def _difference(one: Any, other: Any) -> Any:
    return digamma(one) - digamma(one + other)


special_betaln = publish(
    binary(
        "betaln",
        (
            lambda g, input, other: g * _difference(input, other),
            lambda g, input, other: g * _difference(other, input),
        ),
        (POSITIVE, POSITIVE),
        kind="float",
        accepts="f",
        function_name="special_betaln",
        doc="Return ln abs(B(a, b)), where B is the beta function of `input` and `other`.\n\n"
        "Derivative: digamma(a) - digamma(a + b), and likewise for `other`. Mirrors "
        "``scipy.special.betaln``.",
        example="ng.special.betaln(ng.tensor([2.0]), ng.tensor([3.0]))\ntensor([-2.4849])",
    ),
    module=__name__,
)
special_beta = publish(
    binary(
        "beta",
        (
            lambda g, y, input, other: g * y * _difference(input, other),
            lambda g, y, input, other: g * y * _difference(other, input),
        ),
        (POSITIVE, POSITIVE),
        kind="float",
        accepts="f",
        function_name="special_beta",
        doc="Return the beta function, Gamma(a) Gamma(b) / Gamma(a + b).\n\n"
        "Derivative: y (digamma(a) - digamma(a + b)), and likewise for `other`. Mirrors "
        "``scipy.special.beta``.",
        example="ng.special.beta(ng.tensor([2.0]), ng.tensor([3.0]))\ntensor([0.0833])",
    ),
    module=__name__,
)
