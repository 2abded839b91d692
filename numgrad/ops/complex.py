"""Complex numbers: conj, and what the rules of other families need of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.core import Tensor, wrap
from numgrad.kernels.expression import Symbol, literal
from numgrad.ops.domains import NONZERO, REAL
from numgrad.ops.elementwise import ElementwisePrimitive, unary
from numgrad.ops.functions import public, publish
from numgrad.ops.primitive import Primitive
from numgrad.ops.selection import where

__all__ = ["absolute", "conj", "imag", "real", "sgn", "zero_of"]

_conj: ElementwisePrimitive = unary(
    "conj_physical",
    lambda g: conj(g),
    REAL,
    formula=lambda input: Symbol.apply("conj", input),
    kind="same",
    accepts="c",
    node="ConjBackward0",
    doc="Return the complex conjugate in new memory. The cotangent is conjugated.",
)


@public("conj", "conj_physical")
def conj(input: Any) -> Any:
    """Return the complex conjugate; a real tensor is returned as it is.

    The cotangent is conjugated.

    >>> import numgrad as ng
    >>> ng.conj(ng.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if isinstance(input, Symbol):
        return Symbol.apply("conj", input) if input.is_complex else input
    if isinstance(input, Tensor):
        return _conj(input) if input._array.dtype.kind == "c" else input
    return input.conjugate()


def zero_of(g: Any) -> Any:
    """Return 0 in the shape and dtype of `g`: the gradient of a piecewise constant operation."""
    if isinstance(g, Symbol):
        return literal(0.0)
    return wrap(np.zeros(g._array.shape, g._array.dtype))


def _is_complex(value: Any) -> bool:
    return value.is_complex if isinstance(value, Symbol) else value._array.dtype.kind == "c"


def _samples(function: str) -> list[Any]:
    """Return where tests differentiate the parts: complex numbers made from real ones."""
    part = {"real": lambda x: real(x * (1 + 2j)), "imag": lambda x: imag(x * (1 + 2j))}[function]
    return [
        lambda make: (part, [make(2, 3)], {}),
        lambda make: (part, [make()], {}),
        lambda make: (part, [make(0)], {}),
    ]


_real = Primitive(
    "real",
    "RealBackward0",
    lambda input: input.real,
    ["input"],
    [lambda g: g],
    view=True,
    samples=_samples("real"),
)
_imag = Primitive(
    "imag",
    "ImagBackward0",
    lambda input: input.imag,
    ["input"],
    [lambda g: g * 1j],
    view=True,
    samples=_samples("imag"),
)


@public(method=False)
def real(input: Any) -> Any:
    """Return the real part as a view; a real tensor is returned as it is.

    The gradient of the input is g.

    >>> import numgrad as ng
    >>> ng.real(ng.tensor([1 + 2j]))
    tensor([1.])
    """
    if isinstance(input, Symbol):
        return Symbol.apply("real", input) if input.is_complex else input
    return _real.apply(input) if input._array.dtype.kind == "c" else input


@public(method=False)
def imag(input: Tensor) -> Tensor:
    """Return the imaginary part of a complex tensor as a view.

    The gradient of the input is i g.

    Raises
    ------
    RuntimeError
        If the tensor is real.

    >>> import numgrad as ng
    >>> ng.imag(ng.tensor([1 + 2j]))
    tensor([2.])
    """
    if input._array.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    result: Tensor = _imag.apply(input)
    return result


def _sgn_rule(g: Any, y: Any, input: Any) -> Any:
    if not _is_complex(input):
        return zero_of(g)
    size = absolute(input)
    tangential = (g - real(g * conj(y)) * y) / where(size == 0, 1, size)
    return where(size == 0, zero_of(g), tangential)


sgn = publish(
    unary(
        "sgn",
        _sgn_rule,
        NONZERO,
        kind="same",
        accepts="fciu",
        doc="Return x / abs(x), 0 at 0: the sign, and for complex numbers the direction.\n\n"
        "Derivative: 0 for real x; (g - Re(conj(y) g) y) / abs(x) for complex x, 0 at 0.",
    )
)

absolute = publish(
    unary(
        "abs",
        lambda g, input: g * sgn(input),
        NONZERO,
        kind="real",
        accepts="fciu",
        doc="Return the absolute value, real for complex x.\n\nDerivative: sgn(x), 0 at 0.",
    ),
    "absolute",
)
