"""Modified Bessel functions of orders 0 and 1, of the first and the second kind, plain and scaled.

Sources of the derivatives: DLMF 10.29. PyTorch has those of `i0`, `i0e`, `i1` and `i1e` alone.
"""

from __future__ import annotations

from typing import Any

from numgrad.codegen.expression import Symbol
from numgrad.ops.core.declare import unary
from numgrad.ops.core.domains import POSITIVE, REAL
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.pointwise.complex import absolute
from numgrad.ops.pointwise.rounding import sign
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.published import publish
from numgrad.ops.special.bessel import TINY

__all__ = [
    "i0",
    "special_i0e",
    "special_i1",
    "special_i1e",
    "special_modified_bessel_i0",
    "special_modified_bessel_i1",
    "special_modified_bessel_k0",
    "special_modified_bessel_k1",
    "special_scaled_modified_bessel_k0",
    "special_scaled_modified_bessel_k1",
]


def _declare(
    name: str,
    rule: Any,
    doc: str,
    example: str,
    *,
    of: str = "",
    domain: Any = REAL,
    **options: Any,
) -> ElementwisePrimitive:
    """Declare a function; with `of`, one whose scalar function has that name."""
    if of:
        options |= {"formula": lambda input: Symbol.apply(of, input)}
    options.setdefault("node", f"Special{name.title().replace('_', '')}Backward0")
    options.setdefault("kernel_name", f"{name}_cpu")
    options.setdefault("function_name", f"special_{name}")
    doc += f" Mirrors ``torch.special.{name}``."
    return unary(name, rule, domain, accepts="f", doc=doc, example=example, **options)


def _away_from_0(x: Any) -> Any:
    """Return x, and 1 in the place of nan and near 0, where PyTorch has the slope at 0."""
    return where(absolute(x) > TINY, x, 1.0)


def _i1_slope(g: Any, y: Any, input: Any) -> Any:
    x = _away_from_0(input)
    return g * where(absolute(input) > TINY, _I0(x) - y / x, 0.5)


def _i1e_slope(g: Any, y: Any, input: Any) -> Any:
    x = _away_from_0(input)
    return g * where(absolute(input) > TINY, _I0E(x) - y * (sign(x) + 1 / x), 0.5)


_I0: ElementwisePrimitive = _declare(
    "i0",
    lambda g, input: g * _I1(input),
    "Return the modified Bessel function of the first kind of order 0.\n\n"
    "As PyTorch's it is nan at infinity. Derivative: I1(x).",
    "ng.i0(ng.tensor([0.0, 1.0]))\ntensor([1.0000, 1.2661])",
    node="I0Backward0",
    function_name="i0",
    kernel_name="i0_vml_cpu",
)
i0 = publish(_I0)
_I0E: ElementwisePrimitive = _declare(
    "i0e",
    lambda g, y, input: g * (_I1E(input) - sign(input) * y),
    "Return exp(-abs(x)) I0(x).\n\nDerivative: i1e(x) - sign(x) i0e(x).",
    "ng.special.i0e(ng.tensor([0.0, 1.0]))\ntensor([1.0000, 0.4658])",
    node="SpecialI0EBackward0",
)
special_i0e = publish(_I0E, module=__name__)
_I1: ElementwisePrimitive = _declare(
    "i1",
    _i1_slope,
    "Return the modified Bessel function of the first kind of order 1.\n\n"
    "As PyTorch's it is nan at infinity. Derivative: I0(x) - I1(x)/x, 1/2 at 0.",
    "ng.special.i1(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 0.5652])",
)
special_i1 = publish(_I1, module=__name__)
_I1E: ElementwisePrimitive = _declare(
    "i1e",
    _i1e_slope,
    "Return exp(-abs(x)) I1(x).\n\nDerivative: i0e(x) - i1e(x) (sign(x) + 1/x), 1/2 at 0.",
    "ng.special.i1e(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 0.2079])",
    node="SpecialI1EBackward0",
)
special_i1e = publish(_I1E, module=__name__)
_MODIFIED_I0: ElementwisePrimitive = _declare(
    "modified_bessel_i0",
    lambda g, input: g * _I1(input),
    "Return the modified Bessel function of the first kind of order 0, as `i0`.\n\n"
    "Derivative: I1(x); PyTorch has none.",
    "ng.special.modified_bessel_i0(ng.tensor([0.0, 1.0]))\ntensor([1.0000, 1.2661])",
    of="i0",
)
special_modified_bessel_i0 = publish(_MODIFIED_I0, module=__name__)
_MODIFIED_I1: ElementwisePrimitive = _declare(
    "modified_bessel_i1",
    _i1_slope,
    "Return the modified Bessel function of the first kind of order 1, as `i1`.\n\n"
    "Derivative: I0(x) - I1(x)/x, 1/2 at 0; PyTorch has none.",
    "ng.special.modified_bessel_i1(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 0.5652])",
    of="i1",
)
special_modified_bessel_i1 = publish(_MODIFIED_I1, module=__name__)
_K0: ElementwisePrimitive = _declare(
    "modified_bessel_k0",
    lambda g, input: -g * _K1(input),
    "Return the modified Bessel function of the second kind of order 0.\n\n"
    "inf at 0, nan below. Derivative: -K1(x); PyTorch has none.",
    "ng.special.modified_bessel_k0(ng.tensor([1.0, 2.0]))\ntensor([0.4210, 0.1139])",
    of="k0",
    domain=POSITIVE,
)
special_modified_bessel_k0 = publish(_K0, module=__name__)
_K1: ElementwisePrimitive = _declare(
    "modified_bessel_k1",
    lambda g, y, input: -g * (_K0(input) + y / input),
    "Return the modified Bessel function of the second kind of order 1.\n\n"
    "inf at 0, nan below. Derivative: -K0(x) - K1(x)/x; PyTorch has none.",
    "ng.special.modified_bessel_k1(ng.tensor([1.0, 2.0]))\ntensor([0.6019, 0.1399])",
    of="k1",
    domain=POSITIVE,
)
special_modified_bessel_k1 = publish(_K1, module=__name__)
_K0E: ElementwisePrimitive = _declare(
    "scaled_modified_bessel_k0",
    lambda g, y, input: g * (y - _K1E(input)),
    "Return exp(x) K0(x).\n\n"
    "inf at 0, nan below. Derivative: exp(x) (K0(x) - K1(x)); PyTorch has none.",
    "ng.special.scaled_modified_bessel_k0(ng.tensor([1.0, 2.0]))\ntensor([1.1445, 0.8416])",
    of="k0e",
    domain=POSITIVE,
)
special_scaled_modified_bessel_k0 = publish(_K0E, module=__name__)
_K1E: ElementwisePrimitive = _declare(
    "scaled_modified_bessel_k1",
    lambda g, y, input: g * (y - (_K0E(input) + y / input)),
    "Return exp(x) K1(x).\n\n"
    "inf at 0, nan below. Derivative: exp(x) (K1(x) - K0(x) - K1(x)/x); PyTorch has none.",
    "ng.special.scaled_modified_bessel_k1(ng.tensor([1.0, 2.0]))\ntensor([1.6362, 1.0335])",
    of="k1e",
    domain=POSITIVE,
)
special_scaled_modified_bessel_k1 = publish(_K1E, module=__name__)
