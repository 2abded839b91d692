"""Rounding and signs: piecewise constant, so their gradient is 0 wherever it is asked for."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.loop_order import beside_number, copy_order
from numgrad.ops.arguments.dims import refuse_complex_gradient
from numgrad.ops.arguments.factories import finish
from numgrad.ops.core.declare import elementwise, unary
from numgrad.ops.core.domains import NONZERO, REAL, away_from, number
from numgrad.ops.core.out_argument import SAME_DTYPE, check_out_dtype, check_out_overlap
from numgrad.ops.core.places import laid_out
from numgrad.ops.movement.copies import clone
from numgrad.ops.pointwise.comparison import isfinite, isnan
from numgrad.ops.pointwise.complex import zero_of
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.published import publish

__all__ = ["ceil", "copysign", "floor", "frac", "nan_to_num", "round", "sign", "trunc"]

_BETWEEN_INTEGERS = away_from(-2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5)


def _copy_to(input: Tensor, out: Tensor | None) -> Tensor:
    """Return integers, which are round already, in new memory or in `out`."""
    check_out_dtype(SAME_DTYPE, out, input.dtype)
    if out is None:
        return laid_out(clone(input), input)
    check_out_overlap(out, (), (input,))
    return finish("round", input._array, out=out)


def _declare(name: str, words: str, values: str, *aliases: str) -> Any:
    """Declare a rounding operation; integers are copied."""
    primitive = unary(
        name,
        lambda g: zero_of(g),
        _BETWEEN_INTEGERS,
        kind="same",
        accepts="f",
        kernel_name=f"{name}_vml_cpu",
        out_differs=SAME_DTYPE,
        refuses={"c": NotImplementedError(f"{name} is not supported for complex inputs")},
        doc=f"Return {words}; integers are returned as they are.\n\nDerivative: 0.",
        example=f"ng.{name}(ng.tensor([-1.5, 2.7]))\ntensor([{values}])",
    )

    def rule(input: Any, out: Tensor | None) -> Tensor:
        if isinstance(input, Tensor) and input._array.dtype.kind in "iu":
            return _copy_to(input, out)
        result: Tensor = primitive(input, out=out)
        return result

    return publish(primitive, *aliases, rule=rule)


floor = _declare("floor", "the largest integer not above x", "-2.,  2.")
ceil = _declare("ceil", "the smallest integer not below x", "-1.,  3.")
trunc = _declare("trunc", "x without its fraction", "-1.,  2.", "fix")

_ROUND = unary(
    "round",
    lambda g: zero_of(g),
    _BETWEEN_INTEGERS,
    kind="same",
    accepts="f",
    kernel_name="round_vml_cpu",
    out_differs=SAME_DTYPE,
    doc="Return the nearest integer, the even one at ties.",
)
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
    out_differs=SAME_DTYPE,
    doc="Return x rounded to a multiple of 1/scale.",
)


@declare(
    "round(Tensor input, *, int decimals=0, Tensor? out=None)",
    inplace=True,
    plain=_ROUND,
    direct=False,
)
def round(input: Tensor, decimals: int, out: Tensor | None) -> Tensor:
    """Return the nearest number of so many decimals, the even one at ties.

    Derivative: 0.

    >>> import numgrad as ng
    >>> ng.round(ng.tensor([0.5, 1.5, 2.25]))
    tensor([0., 2., 2.])
    """
    if decimals == 0:
        if isinstance(input, Tensor) and input._array.dtype.kind in "iu":
            return _copy_to(input, out)
        result: Tensor = _ROUND(input, out=out)
        return result
    _ROUND_TO.check_dtype(input.dtype)
    power = 10.0 ** abs(decimals) if abs(decimals) <= sys.float_info.max_10_exp else math.inf
    scale = power if decimals > 0 else 1 / power
    result = _ROUND_TO(input, scale, out=out)
    return result


frac = publish(
    unary(
        "frac",
        lambda g: g,
        _BETWEEN_INTEGERS,
        formula=lambda input: input - Symbol.apply("trunc", input),
        kind="same",
        accepts="f",
        out_differs=SAME_DTYPE,
        doc="Return the fraction of x, with its sign.\n\nDerivative: 1.",
        example="ng.frac(ng.tensor([-1.5, 2.25]))\ntensor([-0.5000,  0.2500])",
    )
)
sign = publish(
    unary(
        "sign",
        lambda g: zero_of(g),
        NONZERO,
        kind="same",
        accepts="fiub",
        refuses={
            "c": NotImplementedError(
                "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
                "torch.sgn instead."
            )
        },
        out_differs=SAME_DTYPE,
        doc="Return -1, 0 or 1, the sign of x; 0 for nan.\n\nDerivative: 0.",
        example="ng.sign(ng.tensor([-1.5, 0.0, 2.0]))\ntensor([-1.,  0.,  1.])",
    )
)


def _copysign_rule(g: Any, y: Any, input: Any) -> Any:
    zero = input == 0
    return where(zero, 0, g * (y / where(zero, 1, input)))


_COPYSIGN = {
    by_number: elementwise(
        "copysign_number" if by_number else "copysign",
        ("input", "other"),
        (_copysign_rule, None if by_number else lambda g: zero_of(g)),
        (NONZERO, number(-1.5) if by_number else NONZERO),
        formula=lambda input, other: Symbol.apply("copysign", input, other),
        kind="float",
        accepts="f",
        gradients_lie={
            "input": lambda g, y, input: g * (y / input),
            **({} if by_number else {"other": lambda g: 0}),
        },
        node="CopysignBackward1" if by_number else "CopysignBackward0",
        numbers=("other",) if by_number else (),
        deciding=beside_number if by_number else None,
        function_name="copysign",
        doc="Return the size of `input` with the sign of `other`.",
    )
    for by_number in (True, False)
}


@declare(
    "copysign(operand input, Tensor other, *, Tensor? out=None)",
    "copysign(Tensor input, number other, *, Tensor? out=None)",
    inplace=True,
    dispatched=True,
    factors=("other",),
)
def copysign(input: Tensor, other: Any, out: Tensor | None) -> Tensor:
    """Return the size of `input` with the sign of `other`, a tensor or a number.

    Derivative: 1 or -1 for `input`, 0 where it is 0; 0 for `other`.

    >>> import numgrad as ng
    >>> ng.copysign(ng.tensor([1.0, -2.0]), -0.0)
    tensor([-1., -2.])
    """
    result: Tensor = _COPYSIGN[not isinstance(other, Tensor)](input, other, out=out)
    return result


def _replaced(input: Any, nan: Any, posinf: Any, neginf: Any, zero: Any = 0) -> Any:
    infinite = where(input > zero, posinf, neginf)
    return where(isnan(input), nan, where(isfinite(input), input, infinite))


def _parts_replaced(input: Symbol, *replacements: Symbol) -> Symbol:
    numbers = [Symbol.apply("real", each) for each in (*replacements, 0.0)]
    parts = [_replaced(Symbol.apply(part, input), *numbers) for part in ("real", "imag")]
    return Symbol("complex_of", tuple(parts), is_complex=True)


_NAN_TO_NUM = elementwise(
    "nan_to_num",
    ("input", "nan", "posinf", "neginf"),
    (lambda g, input: where(isfinite(input), g, 0), None, None, None),
    (REAL, number(0.0), number(1e30), number(-1e30)),
    gradients_lie={"input": lambda g, input: g * input},
    formula=_replaced,
    accepts="f",
    node="NanToNumBackward0",
    numbers=("nan", "posinf", "neginf"),
    deciding=lambda arrays: copy_order(arrays[0]),
    deciding_out=lambda arrays: arrays,
    doc="Return x with its nans and infinities replaced.",
)
_NAN_TO_NUM_OF_PARTS = elementwise(
    "nan_to_num_of_parts",
    ("input", "nan", "posinf", "neginf"),
    (None, None, None, None),
    (REAL, number(0.0), number(1e30), number(-1e30)),
    formula=_parts_replaced,
    accepts="c",
    numbers=("nan", "posinf", "neginf"),
    deciding=lambda arrays: copy_order(arrays[0]),
    deciding_out=lambda arrays: arrays,
    function_name="nan_to_num",
    listed=False,
    doc="Return complex x with the nans and infinities in its parts replaced.",
)


@declare(
    "nan_to_num(Tensor input, float? nan=None, float? posinf=None, float? neginf=None, *, "
    "Tensor? out=None)",
    inplace=True,
    dispatched=True,
)
def nan_to_num(
    input: Tensor, nan: float | None, posinf: float | None, neginf: float | None, out: Tensor | None
) -> Tensor:
    """Return x with nan replaced by `nan` and the infinities by `posinf` and `neginf`.

    Derivative: 1 for finite x, else 0.

    Parameters
    ----------
    input
        Integers and bools are copied. Of complex numbers both parts are replaced, without a
        gradient.
    nan : float, optional
        Default 0.
    posinf, neginf : float, optional
        Default the largest and the lowest number of the dtype.

    Raises
    ------
    RuntimeError
        For a complex tensor that requires grad.

    >>> import numgrad as ng
    >>> ng.nan_to_num(ng.tensor([1.0, ng.nan, ng.inf]), posinf=9.0)
    tensor([1., 0., 9.])
    """
    kind = input._array.dtype.kind
    check_out_dtype(
        "nan_to_num: dtype of out: {out} should be same as input: {result}", out, input.dtype
    )
    if kind in "iub":
        return clone(input) if out is None else _copy_to(input, out)
    limits = np.finfo(input._array.dtype)
    replacements = (
        0.0 if nan is None else nan,
        float(limits.max) if posinf is None else posinf,
        float(limits.min) if neginf is None else neginf,
    )
    if kind == "f":
        result: Tensor = _NAN_TO_NUM(input, *replacements, out=out)
        return result
    refuse_complex_gradient("nan_to_num", input)
    result = _NAN_TO_NUM_OF_PARTS(input, *replacements, out=out)
    return result
