"""Division: quotients, quotients rounded to integers, and remainders."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.move.loop_order import beside_number
from numgrad.ops.calls.steps import forget_steps
from numgrad.ops.core.declare import NotDifferentiable, binary, elementwise
from numgrad.ops.core.domains import NONZERO, REAL, interval, number
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.pointwise.complex import conj, zero_of
from numgrad.ops.signatures.declared import declare

__all__ = ["div"]

Array = np.ndarray[Any, Any]

_TRUE_DIVIDE = binary(
    "true_divide",
    (
        lambda g, other: g / conj(other),
        lambda g, input, other: -g * conj((input / other) / other),
    ),
    (REAL, NONZERO),
    kind="float",
    node="DivBackward0",
    wide=("other",),
    function_name="div",
    doc="Return the quotient of two operands.",
)
# Quotients rounded to integers are piecewise constant.
_ROUNDED = {
    mode: binary(
        f"{mode}_divide",
        (lambda g: zero_of(g), lambda g: zero_of(g)),
        (REAL, NONZERO),
        accepts="fiu",
        node="DivBackward2",
        wide=("other",),
        function_name="div",
        kernel_name=f"div_{mode}_cpu",
        doc=f"Return the quotient, rounded by {mode}.",
    )
    for mode in ("floor", "trunc")
}


_OPERANDS = "operand input, operand other"


@declare(
    f"div({_OPERANDS}, *, str? rounding_mode=None, Tensor? out=None)",
    inplace=True,
    aliases=("divide",),
    plain=_TRUE_DIVIDE,
)
def div(input: Any, other: Any, rounding_mode: str | None, out: Tensor | None) -> Any:
    """Return the quotient; integers give floating point numbers unless it is rounded.

    Derivative: 1/other for `input`, -input/other**2 for `other`; 0 with a rounding mode.

    Parameters
    ----------
    other
        Broadcasts with `input`.
    rounding_mode : {None, "floor", "trunc"}
        Round the quotient down, or towards 0.

    Raises
    ------
    RuntimeError
        For any other rounding mode, and for an integer division by 0 that is rounded.

    >>> import numgrad as ng
    >>> ng.div(ng.tensor([-7.0, 7.0]), 2, rounding_mode="floor")
    tensor([-4.,  3.])
    """
    if rounding_mode is None:
        return _TRUE_DIVIDE(input, other, out=out)
    if rounding_mode not in _ROUNDED:
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    other = _integer_divisor(input, other)
    return _ROUNDED[rounding_mode](input, other, out=out)


@declare(
    f"true_divide({_OPERANDS}, *, Tensor? out=None)",
    "true_divide(operand input, number other)",
    inplace=True,
    plain=_TRUE_DIVIDE,
)
def true_divide(input: Any, other: Any, out: Tensor | None) -> Any:
    """Return the quotient; the same as `div` without a rounding mode.

    Derivative: 1/other for `input`, -input/other**2 for `other`.

    >>> import numgrad as ng
    >>> ng.true_divide(ng.tensor([1, 2]), 2)
    tensor([0.5000, 1.0000])
    """
    return _TRUE_DIVIDE(input, other, out=out)


def _integer_divisor(input: Any, other: Any) -> Any:
    """Return the divisor; raise if integers would be divided by 0."""
    if isinstance(input, Tensor) and not input._array.size:
        return other  # of no elements, none is divided
    if dtypes.BOOL < result_dtype([input, other]).category < dtypes.FLOATING:
        if isinstance(other, Tensor):
            forget_steps()  # there may be a 0 in it the next time
            given = other._array
        else:
            given = _as_divisor(input, other)
        checked = _check_divisor(given)
        if checked is not given:  # a traced one, which is checked in every call
            return wrap(checked)
    return other


def _as_divisor(input: Any, number: int) -> Array:
    """Return a number as the divisor that it is: PyTorch gives it the dtype of integers first."""
    number = int(number)  # NumPy's compare as integers of their own dtype
    dtype = input._array.dtype if isinstance(input, Tensor) else np.dtype(np.int64)
    if dtype.kind not in "iu" or not -(1 << 63) <= number < 1 << 64:
        return np.asarray(bool(number))  # what is too large is refused when it is converted
    return np.asarray(number % (1 << 8 * dtype.itemsize))


@at_run_time
def _check_divisor(divisor: Array) -> Array:
    if not divisor.all():
        raise RuntimeError("ZeroDivisionError")
    return divisor


@declare(
    f"floor_divide({_OPERANDS}, *, Tensor? out=None)",
    "floor_divide(operand input, number other)",
    inplace=True,
    dispatched=True,
    factors=("other",),
)
def floor_divide(input: Any, other: Any, out: Tensor | None) -> Any:
    """Return the quotient rounded down, what ``//`` computes.

    It is not differentiable: as in PyTorch, the result requires grad, and a backward pass through
    it raises. ``div(input, other, rounding_mode="floor")`` has a derivative, 0.

    Raises
    ------
    RuntimeError
        For an integer division by 0.

    >>> import numgrad as ng
    >>> ng.tensor([-7, 7]) // 2
    tensor([-4,  3])
    """
    other = _integer_divisor(input, other)
    return _FLOOR_DIVIDE(input, other, out=out)


_FLOOR_DIVIDE = NotDifferentiable(
    "floor_divide_",
    ("input", "other"),
    (None, None),
    (REAL, NONZERO),
    formula=lambda input, other: Symbol.apply("floor_divide", input, other),
    accepts="fiu",
    wide=("other",),
    function_name="floor_divide",
    kernel_name="div_floor_cpu",
    doc="Return the quotient rounded down.",
)


def _rest(name: str, node: str, rounding: str, words: str) -> dict[bool, ElementwisePrimitive]:
    """Declare what is left by a division: by a number, and by a tensor."""

    def rule_of_divisor(g: Any, input: Any, other: Any) -> Any:
        return -g * _ROUNDED[rounding](input, other)

    return {
        by_number: elementwise(
            f"{name}_number" if by_number else name,
            ("input", "other"),
            (
                lambda g: g,
                None if by_number else rule_of_divisor,
            ),
            (interval(2.2, 2.8), number(2.0) if by_number else interval(0.9, 1.05)),
            formula=lambda input, other: Symbol.apply(name, input, other),
            accepts="fiu",
            node=f"{node}Backward0" if by_number else f"{node}Backward1",
            numbers=("other",) if by_number else (),
            deciding=beside_number if by_number else None,
            wide=(),
            function_name=name,
            doc=f"Return the remainder of the division {words}.",
        )
        for by_number in (True, False)
    }


_REMAINDER = _rest("remainder", "Remainder", "floor", "rounded down")
_FMOD = _rest("fmod", "Fmod", "trunc", "truncated towards 0")


@declare(
    "remainder(Tensor input, Tensor other, *, Tensor? out=None)",
    "remainder(number input, Tensor other)",
    "remainder(Tensor input, number other, *, Tensor? out=None)",
    inplace=True,
    dispatched=True,
    factors=("other",),
)
def remainder(input: Any, other: Any, out: Tensor | None) -> Any:
    """Return the remainder of the division rounded down, what ``%`` computes; it has other's sign.

    Derivative: 1 for `input`, -floor(input / other) for `other`.

    Raises
    ------
    RuntimeError
        For an integer division by 0.

    >>> import numgrad as ng
    >>> ng.tensor([-3.0, 3.0]) % 2
    tensor([1., 1.])
    """
    other = _integer_divisor(input, other)
    return _REMAINDER[not isinstance(other, Tensor)](input, other, out=out)


@declare(
    "fmod(operand input, Tensor other, *, Tensor? out=None)",
    "fmod(Tensor input, number other, *, Tensor? out=None)",
    inplace=True,
    dispatched=True,
    factors=("other",),
)
def fmod(input: Any, other: Any, out: Tensor | None) -> Any:
    """Return the remainder of the division truncated towards 0; it has the sign of `input`.

    Derivative: 1 for `input`, -trunc(input / other) for `other`.

    Raises
    ------
    RuntimeError
        For an integer division by 0.

    >>> import numgrad as ng
    >>> ng.fmod(ng.tensor([-3.0, 3.0]), 2)
    tensor([-1.,  1.])
    """
    other = _integer_divisor(input, other)
    return _FMOD[not isinstance(other, Tensor)](input, other, out=out)
