"""The normal distribution, its logarithm and quantile, and the scaled complementary error function.

Sources of the derivatives: DLMF 7.10; that of the quantile is the inverse of the density.
"""

from __future__ import annotations

import math
from typing import Any

from numgrad.codegen.expression import Symbol
from numgrad.ops.core.declare import unary
from numgrad.ops.core.domains import REAL, interval
from numgrad.ops.pointwise.exponential import exp
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.published import publish

__all__ = ["special_erfcx", "special_log_ndtr", "special_ndtr", "special_ndtri"]

_ROOT_2_PI = math.sqrt(2 * math.pi)
_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)
_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _declare(name: str, rule: Any, domain: Any, doc: str, example: str, **options: Any) -> Any:
    """Declare a function of real numbers."""
    return unary(
        name,
        rule,
        domain,
        accepts="f",
        node=f"Special{name.title().replace('_', '')}Backward0",
        function_name=f"special_{name}",
        kernel_name=options.pop("kernel_name", f"{name}_cpu"),
        doc=doc,
        example=example,
        **options,
    )


_ERFCX = _declare(
    "erfcx",
    lambda g, y, input: g * (2 * input * y - _TWO_OVER_ROOT_PI),
    REAL,
    "Return exp(x**2) erfc(x), which falls as 1/x where erfc(x) is 0.\n\n"
    "Derivative: 2 x erfcx(x) - 2/sqrt(pi) (DLMF 7.10). Mirrors ``torch.special.erfcx``.",
    "ng.special.erfcx(ng.tensor([0.0, 1.0, 10.0]))\ntensor([1.0000, 0.4276, 0.0561])",
)
special_erfcx = publish(_ERFCX, module=__name__)
_NDTR = _declare(
    "ndtr",
    lambda g, input: g * (exp(-0.5 * (input * input)) * (1 / _ROOT_2_PI)),
    REAL,
    "Return the probability that a standard normal number is below x.\n\n"
    "It keeps its digits in the lower tail, where PyTorch's, (1 + erf(x/sqrt(2)))/2, loses all of\n"
    "them; PyTorch records what it is made of, and not one node.\n\n"
    "Derivative: the density, exp(-x**2/2)/sqrt(2 pi). Mirrors ``torch.special.ndtr``.",
    "ng.special.ndtr(ng.tensor([0.0, 1.0, -10.0], dtype=ng.float64))[:2]\n"
    "tensor([0.5000, 0.8413], dtype=torch.float64)",
    kernel_name="erf_vml_cpu",
)
special_ndtr = publish(_NDTR, module=__name__)


# What the gap of `_gap` is, over 1/t, in powers of 1/t**2.
_ASYMPTOTIC = (1.0, -2.0, 10.0, -74.0, 706.0, -8162.0, 110410.0)
_SERIES_BELOW = 30.0


def _gap(input: Any, ratio: Any) -> Any:
    """Return the sum of x and density over `ndtr` at x, which cancel far below 0 but for 1/t.

    Far above 0 the second is 0, and of x no more is needed than that it is a number.
    """
    inverse = 1 / where(input < -_SERIES_BELOW, -input, _SERIES_BELOW)
    square, series = inverse * inverse, 0.0
    for coefficient in reversed(_ASYMPTOTIC):
        series = series * square + coefficient
    near = where(input > 2 * _SERIES_BELOW, 2 * _SERIES_BELOW, input) + ratio
    return where(input < -_SERIES_BELOW, inverse * series, near)


# The derivative of log_ndtr, with a rule of its own: that of a quotient is inf/inf above 0.
_DENSITY_RATIO = unary(
    "density_over_ndtr",
    lambda g, y, input: -g * y * _gap(input, y),
    REAL,
    formula=lambda input: _ROOT_2_OVER_PI / Symbol.apply("erfcx", input * -math.sqrt(0.5)),
    accepts="f",
    node="SpecialLogNdtrBackwardBackward0",
    function_name="special_log_ndtr",
    doc="Return the density of the standard normal distribution over `ndtr`.",
)
_LOG_NDTR = _declare(
    "log_ndtr",
    lambda g, input: g * _DENSITY_RATIO(input),
    REAL,
    "Return the logarithm of `ndtr`, also where that is 0.\n\n"
    "Derivative: density over `ndtr`, sqrt(2/pi)/erfcx(-x/sqrt(2)). Mirrors\n"
    "``torch.special.log_ndtr``.",
    "ng.special.log_ndtr(ng.tensor([0.0, 1.0]))\ntensor([-0.6931, -0.1728])",
)
special_log_ndtr = publish(_LOG_NDTR, module=__name__)
_NDTRI = _declare(
    "ndtri",
    lambda g, y: g * (_ROOT_2_PI * exp(0.5 * (y * y))),
    interval(0.05, 0.95),
    "Return the quantile of the standard normal distribution, the inverse of `ndtr`.\n\n"
    "-inf at 0, inf at 1, nan outside of [0, 1].\n\n"
    "Derivative: one over the density at the result. Mirrors ``torch.special.ndtri``.",
    "ng.special.ndtri(ng.tensor([0.5, 0.975]))\ntensor([0.0000, 1.9600])",
)
special_ndtri = publish(_NDTRI, module=__name__)
