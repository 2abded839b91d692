"""Logarithms of the gamma function, and their derivatives: lgamma, digamma, polygamma, mvlgamma."""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.declare import elementwise, unary
from numgrad.ops.core.domains import POSITIVE, interval, number
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.published import publish

__all__ = [
    "digamma",
    "lgamma",
    "mvlgamma",
    "polygamma",
    "special_multigammaln",
    "special_polygamma",
    "trigamma",
]


_LAST_ORDER = 2**20  # that is a float32, as is the next one


def _derivative_of_digamma(input: Tensor, n: int, out: Tensor | None) -> Tensor:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    # n! is infinite long before; what is left of greater orders is which sign they give.
    result: Tensor = _POLYGAMMA(input, min(n, _LAST_ORDER + (n - _LAST_ORDER) % 2), out=out)
    return result


_POLYGAMMA: ElementwisePrimitive = elementwise(
    "polygamma",
    ("input", "n"),
    (lambda g, input, n: g * _POLYGAMMA(input, n + 1), None),
    (POSITIVE, number(2)),
    kind="float",
    accepts="f",
    numbers=("n",),
    kernel_name="polygamma",
    doc="Return the n-th derivative of digamma.",
)
digamma = publish(
    unary(
        "digamma",
        lambda g, input: g * trigamma(input),
        POSITIVE,
        accepts="f",
        kernel_name="digamma",
        doc="Return the derivative of `lgamma`, Gamma'(x)/Gamma(x).\n\n"
        "At 0 it is -inf, at -0.0 inf, and nan at negative integers. Derivative: polygamma(1, x).",
        example="ng.digamma(ng.tensor([1.0, 2.0]))\ntensor([-0.5772,  0.4228])",
    )
)


def trigamma(input: Any) -> Any:
    """Return the derivative of digamma, of a tensor or a symbol."""
    return _POLYGAMMA(input, 1)


lgamma = publish(
    unary(
        "lgamma",
        lambda g, input: g * digamma(input),
        POSITIVE,
        accepts="f",
        kernel_name="lgamma_vml_cpu",
        doc="Return ln abs(Gamma(x)), inf at 0 and at negative integers.\n\n"
        "Derivative: digamma(x).",
        example="ng.lgamma(ng.tensor([4.0, 0.5]))\ntensor([1.7918, 0.5724])",
    )
)


@declare("polygamma(int n, Tensor input, *, Tensor? out=None)", method=False)
def polygamma(n: int, input: Tensor, out: Tensor | None) -> Tensor:
    """Return the n-th derivative of `digamma`: (-1)**(n + 1) n! zeta(n + 1, x).

    Derivative: polygamma(n + 1, x).

    Parameters
    ----------
    n : int
        At least 0, for which it is digamma.

    Raises
    ------
    RuntimeError
        If `n` is negative.

    >>> import numgrad as ng
    >>> ng.polygamma(1, ng.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    return _derivative_of_digamma(input, n, out)


@declare("polygamma(Tensor input, int n)", function=False, inplace=True, dispatched=True)
def polygamma_of(input: Tensor, n: int) -> Tensor:
    """Return the n-th derivative of `digamma` of a tensor; see `numgrad.polygamma`.

    >>> import numgrad as ng
    >>> ng.tensor([1.0, 2.0]).polygamma(1)
    tensor([1.6449, 0.6449])
    """
    return _derivative_of_digamma(input, n, None)


_MVPOLYGAMMA: ElementwisePrimitive = elementwise(
    "mvpolygamma",
    ("input", "n", "p"),
    (lambda g, input, n, p: g * _MVPOLYGAMMA(input, n + 1, p), None, None),
    (interval(1.5, 5.0), number(1), number(3)),
    kind="float",
    accepts="f",
    numbers=("n", "p"),
    listed=False,
    doc="Return the derivative of order n + 1 of `mvlgamma`.",
)


_MVLGAMMA = elementwise(
    "mvlgamma",
    ("input", "p"),
    (lambda g, input, p: g * _MVPOLYGAMMA(input, 0, p), None),
    (interval(1.5, 5.0), number(3)),
    kind="float",
    accepts="f",
    numbers=("p",),
    kernel_name="arange_cpu",  # with which PyTorch begins
    deciding=lambda arrays: [],  # PyTorch's is a sum of a new dim, and lies row by row
    gradients_lie={"input": lambda g: g * 1},
    doc="Return the logarithm of the multivariate gamma function of dimension p.",
)


def _multivariate(input: Tensor, p: int, out: Tensor | None) -> Tensor:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input._array.dtype.kind == "b":
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    result: Tensor = _MVLGAMMA(input, p, out=out)
    return result


@declare("mvlgamma(Tensor input, int p, *, Tensor? out=None)", inplace=True, dispatched=True)
def mvlgamma(input: Tensor, p: int, out: Tensor | None) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension `p`.

    It is p (p - 1)/4 ln pi plus the sum of lgamma(x - j/2) for j from 0 to p - 1, meant for x above
    (p - 1)/2. Derivative: the sum of digamma(x - j/2).

    Raises
    ------
    RuntimeError
        If `p` is below 1.

    >>> import numgrad as ng
    >>> ng.mvlgamma(ng.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    return _multivariate(input, p, out)


@declare(
    "special_polygamma(int n, Tensor input, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def special_polygamma(n: int, input: Tensor, out: Tensor | None) -> Tensor:
    """Return the n-th derivative of `digamma`: `numgrad.polygamma`.

    >>> import numgrad as ng
    >>> ng.special.polygamma(1, ng.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    return _derivative_of_digamma(input, n, out)


@declare(
    "special_multigammaln(Tensor input, int p, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def special_multigammaln(input: Tensor, p: int, out: Tensor | None) -> Tensor:
    """Return the logarithm of the multivariate gamma function: `numgrad.mvlgamma`.

    >>> import numgrad as ng
    >>> ng.special.multigammaln(ng.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    return _multivariate(input, p, out)
