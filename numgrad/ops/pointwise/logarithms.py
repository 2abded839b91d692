"""Logarithms of sums and products that would overflow or be undefined: logaddexp, xlogy, logit."""

from __future__ import annotations

from typing import Any

from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.declare import binary, elementwise
from numgrad.ops.core.domains import NONZERO, POSITIVE, REAL, interval, number
from numgrad.ops.core.elementwise.number_operands import number_forms
from numgrad.ops.pointwise.complex import conj, real
from numgrad.ops.pointwise.exponential import LN_2, exp, exp2, log, log1p
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.published import publish

NAN = float("nan")

__all__ = ["logaddexp", "logit", "xlogy"]


def _log_add(
    name: str, base: str, ln_base: float, power: Any, accepts: str, lie: Any = None
) -> Any:
    """Declare the logarithm of a sum of two powers of one base, without overflow on the way."""

    def formula(input: Any, other: Any) -> Any:
        first = real(input) >= real(other)
        larger, smaller = where(first, input, other), where(first, other, input)
        exact = larger + log1p(power(smaller - larger)) / ln_base
        # The difference of two equal infinities is nan.
        return where(input == other, input + LN_2 / ln_base, exact)

    return publish(
        binary(
            name,
            (
                lambda g, input, other: g / conj(1 + power(other - input)),
                lambda g, input, other: g / conj(1 + power(input - other)),
            ),
            (REAL, REAL),
            formula=formula,
            accepts=accepts,
            gradients_lie=lie,
            doc=f"Return the logarithm to base {base} of {base}**input + {base}**other.\n\n"
            f"Derivative: {base}**input / ({base}**input + {base}**other), and likewise for "
            "`other`.",
            example=f"ng.{name}(ng.tensor([1.0]), ng.tensor([2.0]))\n"
            f"tensor([{'2.3133' if base == 'e' else '2.5850'}])",
        ),
        inplace=False,
    )


logaddexp = _log_add("logaddexp", "e", 1.0, exp, "fc")
logaddexp2 = _log_add(
    "logaddexp2", "2", LN_2, exp2, "f", dict.fromkeys(("input", "other"), lambda g: g * 1)
)


def _weight_rule(g: Any, input: Any, other: Any) -> Any:
    """Return g ln(other), and 0 where g is, or `input` where the logarithm is not finite."""
    is_number = not isinstance(other, (Tensor, Symbol))
    weighted = _XLOGY.by_number if is_number else _XLOGY.of_tensors
    return where((input == 0) & (other <= 0), 0, weighted(g, other))


_XLOGY = number_forms(
    "xlogy",
    "XlogyBackward",
    lambda input, other: where((input == 0) & (other == other), 0, input * log(other)),
    (_weight_rule, lambda g, input, other: g * input / other),
    (NONZERO, POSITIVE),
    (1.5, 1.5),
    gradients_lie={"input": lambda g: 0},
    function_name="xlogy",
    doc="Return input * ln(other), 0 where input is 0.",
)


@declare(
    "xlogy(Tensor input, Tensor other, *, Tensor? out=None)",
    "xlogy(number input, Tensor other, *, Tensor? out=None)",
    "xlogy(Tensor input, number other, *, Tensor? out=None)",
    inplace=True,
    dispatched=True,
    factors=("input", "other"),
)
def xlogy(input: Any, other: Any, out: Tensor | None) -> Tensor:
    """Return ``input * ln(other)``, 0 where `input` is 0 (and `other` is not nan).

    Derivative: ln(other) for `input`, 0 where `input` is 0 and `other` not positive; input / other
    for `other`.

    Parameters
    ----------
    input, other : tensor or number
        One of them is a tensor; they broadcast.

    >>> import numgrad as ng
    >>> ng.xlogy(ng.tensor([0.0, 2.0]), ng.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    return _XLOGY(input, other, out)


_LOGIT = elementwise(
    "logit",
    ("input",),
    (lambda g, input: where((input >= 0) & (input <= 1), g / (input * (1 - input) + 0.0), NAN),),
    (interval(0.1, 0.9),),
    gradients_lie={"input": lambda g, input: g * input},
    formula=lambda input: log(input / (1 - input)),
    kind="float",
    accepts="f",
    node="LogitBackward0",
    doc="Return ln(x / (1 - x)).",
)
_LOGIT_CLAMPED = elementwise(
    "logit_clamped",
    ("input", "eps"),
    (
        lambda g, input, eps: where(
            (input < eps) | (input > 1 - eps), 0, g / (input * (1 - input))
        ),
        None,
    ),
    (interval(0.1, 0.9), number(0.05)),
    formula=lambda input, eps: _logit_of(
        where(input < eps, eps, where(input > 1 - eps, 1 - eps, input))
    ),
    kind="float",
    accepts="f",
    node="LogitBackward0",
    gradients_lie={"input": lambda g, input: g * input},
    numbers=("eps",),
    function_name="logit",
    doc="Return ln(x / (1 - x)) of x limited to [eps, 1 - eps].",
)


def _logit_of(x: Any) -> Any:
    return log(x / (1 - x))


@declare("logit(Tensor input, float? eps=None, *, Tensor? out=None)", inplace=True, dispatched=True)
def logit(input: Tensor, eps: float | None, out: Tensor | None) -> Tensor:
    """Return ``ln(x / (1 - x))``, the inverse of `sigmoid`; nan outside [0, 1].

    Derivative: 1/(x (1 - x)); with `eps`, 0 where x was limited.

    Parameters
    ----------
    eps : float, optional
        Limit x to the range from `eps` to ``1 - eps`` first.

    >>> import numgrad as ng
    >>> ng.logit(ng.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """
    if eps is None:
        result: Tensor = _LOGIT(input, out=out)
    else:
        result = _LOGIT_CLAMPED(input, eps, out=out)
    return result
