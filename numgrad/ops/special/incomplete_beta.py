"""The regularised incomplete beta function, with derivatives for all arguments."""

from __future__ import annotations

from typing import Any

from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.declare import NotDifferentiable, elementwise
from numgrad.ops.core.domains import POSITIVE, interval
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.pointwise.exponential import log, log1p
from numgrad.ops.signatures.declared import declare
from numgrad.ops.special.gamma import digamma

__all__ = ["special_betainc"]

_INPUTS = ("a", "b", "x")
_DOMAINS = (POSITIVE, POSITIVE, interval(0.05, 0.95))


def _rate_of_a(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of the logarithm of the density for a."""
    return log(x) - (digamma(a) - digamma(a + b))


def _rate_of_b(a: Any, b: Any, x: Any) -> Any:
    return log1p(-x) - (digamma(b) - digamma(a + b))


_DENSITY: ElementwisePrimitive = elementwise(
    "beta_density",
    _INPUTS,
    (
        lambda g, y, a, b, x: g * y * _rate_of_a(a, b, x),
        lambda g, y, a, b, x: g * y * _rate_of_b(a, b, x),
        lambda g, y, a, b, x: g * y * ((a - 1) / x - (b - 1) / (1 - x)),
    ),
    _DOMAINS,
    accepts="f",
    kind="float",
    listed=False,
    doc="Return x**(a - 1) (1 - x)**(b - 1) / B(a, b).",
)


def _derivative(by_a: int, by_b: int) -> Any:
    return lambda a, b, x: Symbol.apply("betainc_slope", a, b, x, float(by_a), float(by_b))


def _bend(by_a: int, by_b: int) -> ElementwisePrimitive:
    """Declare a second derivative, which has none itself."""
    return NotDifferentiable(
        f"betainc_bend_{by_a}{by_b}",
        _INPUTS,
        (None, None, None),
        _DOMAINS,
        formula=_derivative(by_a, by_b),
        accepts="f",
        kind="float",
        listed=False,
        doc="Return a second derivative of betainc.",
    )


def _slope(by_a: int, by_b: int, bends: Any, rate: Any) -> ElementwisePrimitive:
    return elementwise(
        f"betainc_slope_{by_a}{by_b}",
        _INPUTS,
        (
            lambda g, a, b, x: g * bends[0](a, b, x),
            lambda g, a, b, x: g * bends[1](a, b, x),
            lambda g, a, b, x: g * _DENSITY(a, b, x) * rate(a, b, x),
        ),
        _DOMAINS,
        formula=_derivative(by_a, by_b),
        accepts="f",
        kind="float",
        listed=False,
        doc="Return a first derivative of betainc.",
    )


_MIXED = _bend(1, 1)
_SLOPE_OF_A = _slope(1, 0, (_bend(2, 0), _MIXED), _rate_of_a)
_SLOPE_OF_B = _slope(0, 1, (_MIXED, _bend(0, 2)), _rate_of_b)
_BETAINC: ElementwisePrimitive = elementwise(
    "betainc",
    _INPUTS,
    (
        lambda g, a, b, x: g * _SLOPE_OF_A(a, b, x),
        lambda g, a, b, x: g * _SLOPE_OF_B(a, b, x),
        lambda g, a, b, x: g * _DENSITY(a, b, x),
    ),
    _DOMAINS,
    accepts="f",
    kind="float",
    node="SpecialBetaincBackward0",
    function_name="special_betainc",
    doc="Return the regularised incomplete beta function.",
)


@declare(
    "special_betainc(operand a, operand b, operand x, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def special_betainc(a: Any, b: Any, x: Any, out: Tensor | None) -> Tensor:
    """Return the regularised incomplete beta function of x, from 0 to 1, which PyTorch has not.

    It is the probability that a variable of the beta distribution with parameters a and b is below
    x; nan where one of these is negative, or x outside of [0, 1].

    Derivative: x**(a - 1) (1 - x)**(b - 1) / B(a, b) for x; those for a and b are computed as the
    function is, and can be differentiated once more. Mirrors ``scipy.special.betainc``.

    Parameters
    ----------
    a, b, x : tensor or number
        One of them is a tensor; they broadcast.

    >>> import numgrad as ng
    >>> ng.special.betainc(2.0, 3.0, ng.tensor([0.25, 0.5]))
    tensor([0.2617, 0.6875])
    """
    result: Tensor = _BETAINC(a, b, x, out=out)
    return result
