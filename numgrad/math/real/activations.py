"""sigmoid, softplus and logsigmoid without branches.

Method: all three from e = e**-abs(x), which does not overflow:

    sigmoid x = (e if x < 0 else 1) / (1 + e),
    softplus x = max(x, 0) + log1p e,    logsigmoid x = min(x, 0) - log1p e.

Error bounds, measured in tests/kernels/vector and in benchmarks/accuracy: 2
ulp for each over the whole range, for float32 and float64. Where logsigmoid is below 0 by less
than the type can tell it is 0, not -0, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

from numgrad.codegen.llvm.scalar_ir import where
from numgrad.math.real.bits import fma
from numgrad.math.real.double_word import fast_two_sum
from numgrad.math.real.exponentials import make_exp
from numgrad.math.real.formats import Format, for_each
from numgrad.math.real.logarithms import make_log_of_sum

__all__ = ["LOGSIGMOID", "SIGMOID", "SOFTPLUS"]


def _make(format: Format) -> tuple[Any, Any, Any]:
    exp, log_of_sum = make_exp(format), make_log_of_sum(format)
    zero, one = format.number(0), format.number(1)

    def sigmoid(x):  # type: ignore[no-untyped-def]
        e = exp(-abs(x))
        above = where(x < zero, e, one)
        below, rest = fast_two_sum(one, e)
        inverse = one / below
        quotient = above * inverse
        remainder = fma(-quotient, rest, fma(-quotient, below, above))
        return fma(remainder, inverse, quotient)

    def log1p_exp(x):  # type: ignore[no-untyped-def]
        """Return log(1 + e**-abs(x)); 0 and subnormal numbers need no care: there it is e."""
        u, rest = fast_two_sum(one, exp(-abs(x)))
        return log_of_sum(u, rest, zero)

    def softplus(x):  # type: ignore[no-untyped-def]
        return where(x > zero, x, zero) + log1p_exp(x)

    def logsigmoid(x):  # type: ignore[no-untyped-def]
        return where(x < zero, x, zero) - log1p_exp(x)

    return sigmoid, softplus, logsigmoid


# The function for each type, for the overloads in numgrad.math.scalar.
SIGMOID, SOFTPLUS, LOGSIGMOID = for_each(_make)
