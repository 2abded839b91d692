"""Orthogonal polynomials: of Chebyshev (four kinds, and shifted), Hermite, Laguerre and Legendre.

Their derivatives are polynomials of the same families, those of Chebyshev and Legendre
ultraspherical ones, so that there is one of any order. Sources: DLMF 18.9(iii); PyTorch has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.declare import elementwise
from numgrad.ops.core.domains import UNIT, Domain, interval, number
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.pointwise.rounding import trunc
from numgrad.ops.signatures.published import publish

__all__ = ["POLYNOMIALS"]


def _whole(n: Any) -> Any:
    """Return a degree without its fraction."""
    return trunc(n) if isinstance(n, Tensor | Symbol) else float(np.trunc(n))


_DEGREES = interval(0.5, 5.5)
_FORMS = ("Tensor input, Tensor n", "number input, Tensor n", "Tensor input, number n")


def _family(name: str, rule: Any, order: float) -> ElementwisePrimitive:
    """Declare polynomials with a parameter, that derivatives are made of."""
    return elementwise(
        name,
        ("input", "n", "order"),
        (rule, None, None),
        (UNIT, _DEGREES, number(order)),
        kind="float",
        accepts="f",
        numbers=("order",),
        listed=False,
        doc=f"Return the {name} polynomial of a degree, with a parameter.",
    )


_GEGENBAUER: ElementwisePrimitive = _family(
    "gegenbauer",
    lambda g, input, n, order: g * (2 * order * _GEGENBAUER(input, _whole(n) - 1, order + 1)),
    1.5,
)
_LAGUERRE: ElementwisePrimitive = _family(
    "laguerre",
    lambda g, input, n, order: -g * _LAGUERRE(input, _whole(n) - 1, order + 1),
    1.0,
)


def _slope_t(x: Any, n: Any) -> Any:
    return _whole(n) * _GEGENBAUER(x, _whole(n) - 1, 1.0)


def _slope_u(x: Any, n: Any) -> Any:
    return 2 * _GEGENBAUER(x, _whole(n) - 1, 2.0)


def _slope_v(x: Any, n: Any) -> Any:
    return 2 * (_GEGENBAUER(x, _whole(n) - 1, 2.0) - _GEGENBAUER(x, _whole(n) - 2, 2.0))


def _slope_w(x: Any, n: Any) -> Any:
    return 2 * (_GEGENBAUER(x, _whole(n) - 1, 2.0) + _GEGENBAUER(x, _whole(n) - 2, 2.0))


def _slope_h(x: Any, n: Any) -> Any:
    return 2 * _whole(n) * _HERMITE_H(x, _whole(n) - 1)


def _slope_he(x: Any, n: Any) -> Any:
    return _whole(n) * _HERMITE_HE(x, _whole(n) - 1)


def _slope_l(x: Any, n: Any) -> Any:
    return -_LAGUERRE(x, _whole(n) - 1, 1.0)


def _slope_p(x: Any, n: Any) -> Any:
    return _GEGENBAUER(x, _whole(n) - 1, 1.5)


# The slope, what kind it is, and words for the slope; of others the scalar function first.
_CHEBYSHEV = {
    "t": (_slope_t, "first", "n U(n - 1)"),
    "u": (_slope_u, "second", "2 C(n - 1) with C the ultraspherical ones of order 2"),
    "v": (_slope_v, "third", "2 (C(n - 1) - C(n - 2)) with C those of order 2"),
    "w": (_slope_w, "fourth", "2 (C(n - 1) + C(n - 2)) with C those of order 2"),
}
_OTHERS = {
    "hermite_polynomial_h": ("hermite_h", _slope_h, "Hermite polynomial H", "2 n H(n - 1)"),
    "hermite_polynomial_he": ("hermite_he", _slope_he, "Hermite polynomial He", "n He(n - 1)"),
    "laguerre_polynomial_l": (
        "laguerre",
        _slope_l,
        "Laguerre polynomial",
        "minus the associated one of degree n - 1 and order 1",
    ),
    "legendre_polynomial_p": (
        "legendre",
        _slope_p,
        "Legendre polynomial",
        "the ultraspherical one of degree n - 1 and order 3/2",
    ),
}

_PRIMITIVES: dict[str, ElementwisePrimitive] = {}
POLYNOMIALS: dict[str, Callable[..., Any]] = {}


def _declare(name: str, formula: Any, rule: Any, what: str, slope: str, domain: Domain) -> None:
    """Declare a polynomial of a degree, the primitive and the function."""
    primitive = _PRIMITIVES[name] = elementwise(
        name,
        ("input", "n"),
        (rule, None),
        (domain, _DEGREES),
        formula=formula,
        kind="float",
        accepts="f",
        node=f"Special{name.title().replace('_', '')}Backward0",
        function_name=f"special_{name}",
        kernel_name=f"{name}_cpu",
        doc=f"Return the {what} of degree n at x.\n\n"
        "The degree may be a number or a tensor; its fraction is cut off, and polynomials of a\n"
        f"negative degree are 0.\n\nDerivative: {slope} (DLMF 18.9(iii)); none for the degree.\n"
        "PyTorch has none at all.\n\n"
        f"Mirrors ``torch.special.{name}``.",
        example=f"ng.special.{name}(ng.tensor([1.0]), ng.tensor([0]))\ntensor([1.])",
    )

    def polynomial(input: Any, n: Any, out: Tensor | None) -> Tensor:
        result: Tensor = primitive(input, n, out=out)
        return result

    POLYNOMIALS[name] = globals()[f"special_{name}"] = publish(
        primitive, signatures=_FORMS, rule=polynomial, module=__name__
    )


def _declare_chebyshev(kind: str) -> None:
    """Declare a kind of Chebyshev polynomials, and the same shifted to [0, 1]."""
    slope, ordinal, words = _CHEBYSHEV[kind]
    operation = f"chebyshev_{kind}"
    what = f"Chebyshev polynomial of the {ordinal} kind"
    _declare(
        f"chebyshev_polynomial_{kind}",
        lambda input, n: Symbol.apply(operation, input, n),
        lambda g, input, n: g * slope(input, n),
        what,
        words,
        UNIT,
    )
    _declare(
        f"shifted_chebyshev_polynomial_{kind}",
        lambda input, n: Symbol.apply(operation, input + input - 1, n),
        lambda g, input, n: 2 * g * slope(input + input - 1, n),
        f"{what}, of 2 x - 1,",
        f"twice that of the {ordinal} kind at 2 x - 1",
        interval(0.05, 0.95),
    )


def _declare_other(name: str) -> None:
    """Declare polynomials of another family."""
    operation, slope, what, words = _OTHERS[name]
    more = (0.0,) if operation == "laguerre" else ()
    _declare(
        name,
        lambda input, n: Symbol.apply(operation, input, n, *more),
        lambda g, input, n: g * slope(input, n),
        what,
        words,
        UNIT,
    )


for _kind in _CHEBYSHEV:
    _declare_chebyshev(_kind)
for _name in _OTHERS:
    _declare_other(_name)
_HERMITE_H = _PRIMITIVES["hermite_polynomial_h"]
_HERMITE_HE = _PRIMITIVES["hermite_polynomial_he"]
