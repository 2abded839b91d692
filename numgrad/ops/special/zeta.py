"""Hurwitz's zeta function, with derivatives for both arguments."""

from __future__ import annotations

from typing import Any

from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.declare import NotDifferentiable, binary, elementwise
from numgrad.ops.core.domains import POSITIVE, interval, number
from numgrad.ops.core.elementwise import ElementwisePrimitive
from numgrad.ops.signatures.declared import declare

__all__ = ["special_zeta"]

_ORDERS = interval(1.5, 6.0)


def _zeta(input: Any, other: Any) -> Any:
    return Symbol.apply("zeta", input, other)


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


def _rule_of_order(g: Any, input: Any, other: Any) -> Any:
    return g * _SLOPE(input, other)


def _rule_of_place(g: Any, input: Any, other: Any) -> Any:
    return -g * input * _ZETA(input + 1, other)


def _declare_form(
    form: str, node: int, rules: Any, domains: Any, numbers: tuple[str, ...] = ()
) -> ElementwisePrimitive:
    is_swapped = numbers == ("input",)  # numbers stand last
    return elementwise(
        f"zeta{form}",
        ("other", "input") if is_swapped else ("input", "other"),
        rules,
        domains,
        formula=(lambda other, input: _zeta(input, other)) if is_swapped else _zeta,
        kind="float",
        accepts="f",
        node=f"SpecialZetaBackward{node}",
        numbers=numbers,
        wide=(),
        function_name="special_zeta",
        kernel_name="zeta_cpu",
        doc="Return the sum of (other + k)**-input over k from 0.",
    )


_ZETA: ElementwisePrimitive = _declare_form(
    "", 0, (_rule_of_order, _rule_of_place), (_ORDERS, POSITIVE)
)
_ZETA_OF_NUMBER = _declare_form(
    "_of_number", 1, (_rule_of_place, None), (POSITIVE, number(2.5)), ("input",)
)
_ZETA_BY_NUMBER = _declare_form(
    "_by_number", 2, (_rule_of_order, None), (_ORDERS, number(1.5)), ("other",)
)


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
    if isinstance(input, Tensor):
        primitive = _ZETA if isinstance(other, Tensor) else _ZETA_BY_NUMBER
        result: Tensor = primitive(input, other, out=out)
    else:
        result = _ZETA_OF_NUMBER(other, input, out=out)
    return result
