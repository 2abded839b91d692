"""Rounding and signs: piecewise constant, so their gradient is 0 wherever it is asked for."""

from __future__ import annotations

from typing import Any


from numgrad.graph.core import Tensor, wrap
from numgrad.kernels.expression import Symbol
from numgrad.ops.complex import zero_of
from numgrad.ops.domains import NONZERO, away_from, number
from numgrad.ops.elementwise import elementwise, unary
from numgrad.ops.functions import make_function, public, publish

__all__ = ["ceil", "floor", "round", "sign", "trunc"]

_BETWEEN_INTEGERS = away_from(-2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5)


def _declare(name: str, doc: str) -> Any:
    """Declare a rounding operation; integers, which are round already, are copied."""
    primitive = unary(
        name,
        lambda g: zero_of(g),
        _BETWEEN_INTEGERS,
        kind="same",
        accepts="f",
        doc=f"{doc}\n\nDerivative: 0.",
    )
    compute = make_function(primitive)

    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if isinstance(input, Tensor) and input._array.dtype.kind in "iu":
            if out is None:
                return wrap(input._array.copy())
            out._array[...] = input._array
            out._counter[0] += 1
            return out
        result: Tensor = compute(input, out=out)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = primitive.doc
    return function


floor = _declare("floor", "Return the largest integer not above x.")
ceil = _declare("ceil", "Return the smallest integer not below x.")
trunc = _declare("trunc", "Return x without its fraction.")
_round = _declare("round", "Return the nearest integer, the even one at ties.")
public("floor", inplace=True)(floor)
public("ceil", inplace=True)(ceil)
public("trunc", "fix", inplace=True)(trunc)

_ROUND_TO = elementwise(
    "round_decimals",
    ("input", "scale"),
    (lambda g: zero_of(g), None),
    (_BETWEEN_INTEGERS, number(10.0)),
    formula=lambda input, scale: Symbol.apply("round", input * scale) / scale,
    accepts="f",
    node="RoundBackward1",
    numbers=("scale",),
    function_name="round",
    doc="Return x rounded to a multiple of 1/scale.",
)


@public(inplace=True)
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Return the nearest number of so many decimals, the even one at ties.

    Derivative: 0.

    >>> import numgrad as ng
    >>> ng.round(ng.tensor([0.5, 1.5, 2.25]))
    tensor([0., 2., 2.])
    """
    if decimals == 0 or input._array.dtype.kind in "iu":
        rounded: Tensor = _round(input, out=out)
        return rounded
    if decimals < 0:
        rounded = _ROUND_TO(input, 1 / 10.0**-decimals, out=out)
    else:
        rounded = _ROUND_TO(input, 10.0**decimals, out=out)
    return rounded


sign = publish(
    unary(
        "sign",
        lambda g: zero_of(g),
        NONZERO,
        kind="same",
        accepts="fiu",
        doc="Return -1, 0 or 1, the sign of x; 0 for nan.\n\nDerivative: 0.",
    )
)
