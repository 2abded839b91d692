"""Terms of entropies: -x ln x, and x ln(1 + y), with their limits where x is 0."""

from __future__ import annotations

import math
from typing import Any

from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.declare import unary
from numgrad.ops.core.domains import NONZERO, POSITIVE
from numgrad.ops.core.elementwise.number_operands import number_forms
from numgrad.ops.pointwise.exponential import log, log1p
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.published import publish

__all__ = ["special_entr", "special_xlog1py"]

special_entr = publish(
    unary(
        "entr",
        lambda g, input: g * -(1 + log(input)),
        POSITIVE,
        formula=lambda input: where(
            input > 0, -input * log(input), where(input < 0, -math.inf, where(input == 0, 0, input))
        ),
        accepts="f",
        node="SpecialEntrBackward0",
        function_name="special_entr",
        kernel_name="entr_cpu",
        doc="Return -x ln x: 0 at 0, -inf for negative x.\n\nDerivative: -(1 + ln x).",
        example="ng.special.entr(ng.tensor([0.0, 0.5]))\ntensor([0.0000, 0.3466])",
    ),
    module=__name__,
)


def _weight_rule(g: Any, input: Any, other: Any) -> Any:
    """Return g ln(1 + other), and 0 where `input` is 0 and the logarithm undefined or infinite."""
    return where((input == 0) & (other <= -1), 0, g * _log1p(other))


def _weight_rule_of_number(g: Any, input: Any, other: Any) -> Any:
    """Return the same for a number `other`: where it is nan, PyTorch has 0 as well."""
    defined = other > -1
    is_free = ~defined if isinstance(defined, Symbol) else not defined
    return where((input == 0) & is_free, 0, g * _log1p(other))


def _log1p(value: Any) -> Any:
    """Return the logarithm of a tensor or a symbol, or of a number."""
    if not isinstance(value, int | float):
        return log1p(value)
    return math.log1p(value) if value > -1 else (-math.inf if value == -1 else math.nan)


_FORMS = number_forms(
    "xlog1py",
    "SpecialXlog1PyBackward",
    lambda input, other: where((input == 0) & (other == other), 0, input * _log1p(other)),
    (_weight_rule, lambda g, input, other: g * input / (other + 1)),
    (NONZERO, POSITIVE),
    (1.5, 1.5),
    by_number=_weight_rule_of_number,
    gradients_lie={"input": lambda g: 0},
    function_name="special_xlog1py",
    kernel_name="xlog1py_cpu",
    doc="Return input * ln(1 + other), 0 where input is 0.",
)


@declare(
    "special_xlog1py(Tensor input, Tensor other, *, Tensor? out=None)",
    "special_xlog1py(number input, Tensor other, *, Tensor? out=None)",
    "special_xlog1py(Tensor input, number other, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
    factors=("input", "other"),
)
def special_xlog1py(input: Any, other: Any, out: Tensor | None) -> Tensor:
    """Return ``input * ln(1 + other)``, 0 where `input` is 0 (and `other` is not nan).

    Derivative: ln(1 + other) for `input`, 0 where `input` is 0 and `other` at most -1;
    input / (1 + other) for `other`. Mirrors ``torch.special.xlog1py``.

    Parameters
    ----------
    input, other : tensor or number
        One of them is a tensor; they broadcast.

    >>> import numgrad as ng
    >>> ng.special.xlog1py(ng.tensor([0.0, 2.0]), ng.tensor([-1.0, 0.0]))
    tensor([0., 0.])
    """
    return _FORMS(input, other, out)
