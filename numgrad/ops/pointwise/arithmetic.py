"""Arithmetic: add, sub, mul and their relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.codegen.expression import Symbol, literal
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.loop_order import beside_number
from numgrad.ops.arguments.scalar_arrays import check_fits, number_for
from numgrad.ops.core.declare import binary, elementwise, unary
from numgrad.ops.core.domains import NONZERO, REAL, number
from numgrad.ops.core.out_argument import SAME_DTYPE
from numgrad.ops.core.promotion import in_64_bits, result_dtype
from numgrad.ops.pointwise.complex import absolute, conj
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.published import publish

Array = np.ndarray[Any, Any]

__all__ = ["add", "mul", "neg", "reciprocal", "rsub", "sub"]


def _fma(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c`` as PyTorch computes it: of real numbers, rounded once."""
    symbols = [literal(each) for each in (a, b, c)]
    if any(symbol.is_complex for symbol in symbols):
        return a * b + c
    return Symbol.apply("fma", *symbols)


_PLUS = binary(
    "add",
    (lambda g: g, lambda g: g),
    (REAL, REAL),
    accepts="fciub",
    doc="Return the sum of two operands.",
)
_MINUS = binary(
    "sub",
    (lambda g: g, lambda g: -g),
    (REAL, REAL),
    accepts="fciu",
    check=lambda input, other: _check_not_bool(input, other),
    doc="Return the difference of two operands.",
)
# a + alpha b and a - alpha b: the node's name is that of the plain operation.
_PLUS_SCALED = elementwise(
    "add_scaled",
    ("input", "other", "alpha"),
    (lambda g: g, lambda g, alpha: g * conj(alpha), None),
    (REAL, REAL, number(1.5)),
    formula=lambda input, other, alpha: _fma(other, alpha, input),
    node="AddBackward0",
    numbers=("alpha",),
    wide=(),
    function_name="add",
    doc="Return input + alpha * other.",
)
_MINUS_SCALED = elementwise(
    "sub_scaled",
    ("input", "other", "alpha"),
    (lambda g: g, lambda g, alpha: -g * conj(alpha), None),
    (REAL, REAL, number(1.5)),
    formula=lambda input, other, alpha: _fma(other, -alpha, input),
    node="SubBackward0",
    numbers=("alpha",),
    wide=(),
    function_name="sub",
    doc="Return input - alpha * other.",
)
_RMINUS = elementwise(
    "rsub",
    ("input", "other"),
    (lambda g: -g, None),
    (REAL, number(1.5)),
    formula=lambda input, other: other - input,
    node="RsubBackward1",
    numbers=("other",),
    wide=(),
    deciding=beside_number,
    doc="Return other - input for a number `other`.",
)
_RMINUS_TENSOR = binary(
    "rsub_tensor",
    (lambda g: -g, lambda g: g),
    (REAL, REAL),
    formula=lambda input, other: other - input,
    node="RsubBackward0",
    function_name="rsub",
    deciding=lambda arrays: arrays[::-1],
    doc="Return other - input.",
)
_RMINUS_SCALED, _RMINUS_TENSOR_SCALED = (
    elementwise(
        "rsub_scaled" if by_number else "rsub_tensor_scaled",
        ("input", "other", "alpha"),
        (lambda g, alpha: -g * conj(alpha), None if by_number else lambda g: g, None),
        (REAL, number(2.5) if by_number else REAL, number(1.5)),
        formula=lambda input, other, alpha: _fma(input, -alpha, other),
        node="RsubBackward1" if by_number else "RsubBackward0",
        numbers=("other", "alpha") if by_number else ("alpha",),
        wide=(),
        function_name="rsub",
        deciding=beside_number if by_number else lambda arrays: arrays[::-1],
        doc="Return other - alpha * input.",
    )
    for by_number in (True, False)
)


def _checked_alpha(input: Any, other: Any, alpha: Any) -> Any:
    """Return `alpha` as a number that has no vote on the dtype; raise where PyTorch does."""
    common = result_dtype([input, other])
    if isinstance(alpha, bool) and common is not dtypes.bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and not common.is_complex:
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    if isinstance(alpha, float) and common.category < dtypes.FLOATING:
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if common is dtypes.bool_:
        return bool(alpha)
    check_fits(alpha, common.numpy)
    return alpha


def _subtracted(input: Any, other: Any, alpha: Any) -> Any:
    """Return `alpha`; if it is an int from 2**63 on and the result is one, what its 64 bits are."""
    if dtypes.kind_of_number(alpha) != "unsigned":
        return alpha
    integral = result_dtype([input, other]).category < dtypes.FLOATING
    return in_64_bits([alpha])[0] if integral else alpha


_SCALED = "operand input, operand other, *, number alpha=1, Tensor? out=None"
_SCALED_FIRST = "Tensor input, number alpha, Tensor other, *, Tensor? out=None"


@declare(
    f"add({_SCALED})",
    inplace=True,
    plain=_PLUS,
    dispatched=True,
    factors=("other", "alpha"),
    deprecated=(f"add({_SCALED_FIRST})",),
)
def add(input: Any, other: Any, alpha: Any, out: Tensor | None) -> Any:
    """Return ``input + alpha * other``.

    Derivative: 1 for `input`, `alpha` for `other`.

    Parameters
    ----------
    other
        Broadcasts with `input`.
    alpha
        What `other` is multiplied by.

    >>> import numgrad as ng
    >>> ng.add(ng.tensor([1.0, 2.0]), 10, alpha=2)
    tensor([21., 22.])
    """
    if type(alpha) is int and alpha == 1:
        return _PLUS(input, other, out=out)
    alpha = _checked_alpha(input, other, alpha)
    if isinstance(alpha, bool):
        scaled = mul(other, alpha) if isinstance(other, Tensor) else other and alpha
        return _PLUS(input, scaled, out=out)
    return _PLUS_SCALED(input, other, alpha, out=out)


def _check_not_bool(input: Any, other: Any) -> None:
    """Raise PyTorch's words where a bool would be subtracted."""
    kinds = [
        value._array.dtype.kind == "b" if isinstance(value, Tensor) else isinstance(value, bool)
        for value in (input, other)
    ]
    if all(kinds):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    if any(kinds):
        for value in (input, other):
            dtypes.kind_of_number(value)
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
            "to invert a mask, use the `~` or `logical_not()` operator instead."
        )


@declare(
    f"sub({_SCALED})",
    inplace=True,
    aliases=("subtract",),
    plain=_MINUS,
    dispatched=True,
    factors=("other", "alpha"),
    deprecated=(f"sub({_SCALED_FIRST})",),
)
def sub(input: Any, other: Any, alpha: Any, out: Tensor | None) -> Any:
    """Return ``input - alpha * other``.

    Derivative: 1 for `input`, -`alpha` for `other`.

    Raises
    ------
    RuntimeError
        If an operand is bool.

    >>> import numgrad as ng
    >>> ng.sub(ng.tensor([1.0, 2.0]), 10, alpha=2)
    tensor([-19., -18.])
    """
    if type(alpha) is int and alpha == 1:
        return _MINUS(input, other, out=out)
    _check_not_bool(input, other)
    alpha = _checked_alpha(input, other, _subtracted(input, other, alpha))
    return _MINUS_SCALED(input, other, alpha, out=out)


@declare(
    "rsub(Tensor input, Tensor other, *, number alpha=1)",
    "rsub(Tensor input, number other, number alpha=1)",
    method=False,
    dispatched=True,
    factors=("other", "alpha"),
)
def rsub(input: Tensor, other: Any, alpha: Any) -> Any:
    """Return ``other - alpha * input``, what ``other - input`` computes for a number `other`.

    Derivative: -`alpha` for `input`, 1 for `other`.

    >>> import numgrad as ng
    >>> ng.rsub(ng.tensor([1.0, 2.0]), 10)
    tensor([9., 8.])
    """
    _check_not_bool(input, other)
    by_tensor = isinstance(other, Tensor)
    if type(alpha) is int and alpha == 1:
        return (_RMINUS_TENSOR if by_tensor else _RMINUS)(input, other)
    alpha = _checked_alpha(input, other, _subtracted(input, other, alpha))
    return (_RMINUS_TENSOR_SCALED if by_tensor else _RMINUS_SCALED)(input, other, alpha)


mul = publish(
    binary(
        "mul",
        (lambda g, other: g * conj(other), lambda g, input: g * conj(input)),
        (REAL, REAL),
        accepts="fciub",
        wide=("other",),
        doc="Return the product of two operands.\n\n"
        "Derivative: the other operand; its conjugate, if it is complex.",
        example="ng.mul(ng.tensor([1.0, 2.0]), 3)\ntensor([3., 6.])",
    ),
    "multiply",
)

_NEG = unary(
    "neg",
    lambda g: -g,
    REAL,
    kind="same",
    accepts="fciu",
    out_differs=SAME_DTYPE,
    refuses={
        "b": RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )
    },
    doc="Return the negative.",
)


@declare("neg(Tensor input, *, Tensor? out=None)", inplace=True, aliases=("negative",), plain=_NEG)
def neg(input: Tensor, out: Tensor | None) -> Any:
    """Return the negative.

    Derivative: -1.

    Raises
    ------
    RuntimeError
        If the tensor is bool.

    >>> import numgrad as ng
    >>> ng.neg(ng.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """
    return _NEG(input, out=out)


@declare("positive(Tensor input)")
def positive(input: Tensor) -> Tensor:
    """Return the tensor itself, what ``+input`` gives.

    Raises
    ------
    RuntimeError
        If the tensor is bool.

    >>> import numgrad as ng
    >>> ng.positive(ng.tensor([1.0, -2.0]))
    tensor([ 1., -2.])
    """
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


reciprocal = publish(
    unary(
        "reciprocal",
        lambda g, y: -g * conj(y * y),
        NONZERO,
        formula=lambda input: 1 / input,
        doc="Return 1 / x.\n\nDerivative: -1 / x**2, computed as -y**2.",
        example="ng.reciprocal(ng.tensor([1.0, 4.0]))\ntensor([1.0000, 0.2500])",
    )
)

_ADDCMUL = elementwise(
    "addcmul",
    ("input", "tensor1", "tensor2", "value"),
    (
        lambda g: g,
        lambda g, tensor2, value: g * conj(tensor2 * value),
        lambda g, tensor1, value: g * conj(tensor1 * value),
        None,
    ),
    (REAL, REAL, REAL, number(1.5)),
    formula=lambda input, tensor1, tensor2, value: _fma(value * tensor1, tensor2, input),
    node="AddcmulBackward0",
    numbers=("value",),
    kernel_name="addcmul_cpu_out",
    doc="Return input + value * tensor1 * tensor2.",
)
_ADDCDIV = elementwise(
    "addcdiv",
    ("input", "tensor1", "tensor2", "value"),
    (
        lambda g: g,
        lambda g, tensor2, value: g * conj(value / tensor2),
        lambda g, tensor1, tensor2, value: -g * conj(value * tensor1 / (tensor2 * tensor2)),
        None,
    ),
    (REAL, REAL, NONZERO, number(1.5)),
    formula=lambda input, tensor1, tensor2, value: input + value * tensor1 / tensor2,
    accepts="fc",
    node="AddcdivBackward0",
    numbers=("value",),
    doc="Return input + value * tensor1 / tensor2.",
)


_FACTORS = "Tensor input, Tensor tensor1, Tensor tensor2, *, number value=1, Tensor? out=None"
_FACTOR_FIRST = "Tensor input, number value, Tensor tensor1, Tensor tensor2, *, Tensor? out=None"


@declare(
    f"addcmul({_FACTORS})",
    inplace=True,
    dispatched=True,
    factors=("value",),
    deprecated=(f"addcmul({_FACTOR_FIRST})",),
)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any, out: Tensor | None) -> Any:
    """Return ``input + value * tensor1 * tensor2``.

    Derivative: 1, value * tensor2 and value * tensor1.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0])
    >>> ng.addcmul(x, x, x, value=10)
    tensor([11., 42.])
    """
    common = result_dtype([input, tensor1, tensor2])
    _ADDCMUL.check_dtype(common)
    return _ADDCMUL(input, tensor1, tensor2, number_for(value, common), out=out)


@declare(
    f"addcdiv({_FACTORS})",
    inplace=True,
    dispatched=True,
    factors=("value",),
    deprecated=(f"addcdiv({_FACTOR_FIRST})",),
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any, out: Tensor | None) -> Any:
    """Return ``input + value * tensor1 / tensor2``.

    Derivative: 1, value / tensor2 and -value * tensor1 / tensor2**2.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0])
    >>> ng.addcdiv(x, x, x, value=10)
    tensor([11., 12.])
    """
    if result_dtype([tensor1, tensor2]).category < dtypes.FLOATING:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release "
            "addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv "
            "behavior can be implemented as (input + value * torch.trunc(tensor1 / "
            "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter "
            "implementation: (input + value * tensor1 / tensor2), for all dtypes."
        )
    common = result_dtype([input, tensor1, tensor2])
    return _ADDCDIV(input, tensor1, tensor2, number_for(value, common), out=out)


def _between(input: Any, end: Any, weight: Any) -> Any:
    """Return the point between two ends, from the nearer one, so that both are met exactly."""
    small = absolute(weight) < Symbol.apply("real", 0.5)
    return _fma(where(small, weight, weight - 1), end - input, where(small, input, end))


_LERP = {
    by_number: elementwise(
        "lerp_number" if by_number else "lerp",
        ("input", "end", "weight"),
        (
            lambda g, weight: g * (1 - conj(weight)),
            lambda g, weight: g * conj(weight),
            None if by_number else lambda g, input, end: g * conj(end - input),
        ),
        (REAL, REAL, number(0.3) if by_number else REAL),
        formula=lambda input, end, weight: _between(input, end, weight),
        accepts="fc",
        node="LerpBackward0" if by_number else "LerpBackward1",
        numbers=("weight",) if by_number else (),
        function_name="lerp",
        out_differs=SAME_DTYPE,
        kernel_name=f"lerp_kernel_{'scalar' if by_number else 'tensor'}",
        doc="Return input + weight * (end - input).",
    )
    for by_number in (True, False)
}


@declare(
    "lerp(Tensor input, Tensor end, Tensor weight, *, Tensor? out=None)",
    "lerp(Tensor input, Tensor end, number weight, *, Tensor? out=None)",
    inplace=True,
    dispatched=True,
    factors=("weight",),
)
def lerp(input: Tensor, end: Tensor, weight: Any, out: Tensor | None) -> Any:
    """Return ``input + weight * (end - input)``, the point between two ends.

    Derivative: 1 - weight, weight, and end - input.

    Raises
    ------
    RuntimeError
        If the tensors differ in dtype.

    >>> import numgrad as ng
    >>> ng.lerp(ng.tensor([0.0, 10.0]), ng.tensor([1.0, 20.0]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    for name, operand in (("end", end), ("weight", weight)):
        # A weight without dimensions promotes like a number; nothing else does.
        if not isinstance(operand, Tensor) or (name == "weight" and operand._array.ndim == 0):
            continue
        if operand.dtype is not input.dtype:
            raise RuntimeError(
                f"expected dtype {input.dtype.cpp_name} for `{name}` but got dtype "
                f"{operand.dtype.cpp_name}"
            )
    primitive = _LERP[not isinstance(weight, Tensor)]
    primitive.check_dtype(input.dtype)
    if not isinstance(weight, Tensor):
        weight = number_for(weight, input.dtype)
    return primitive(input, end, weight, out=out)
