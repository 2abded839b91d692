"""Exponentials, logarithms, powers and roots; a rule a line."""

from __future__ import annotations

import cmath
import math
from typing import Any

from numgrad.base import dtypes
from numgrad.base.halves import HALVES
from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.ops.arguments.scalar_arrays import check_fits, scalar_array
from numgrad.ops.core.declare import elementwise, unary
from numgrad.ops.core.domains import MASK, POSITIVE, REAL, number
from numgrad.ops.core.out_argument import check_out_dtype
from numgrad.ops.pointwise.complex import conj, is_complex, real, zero_of
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.published import publish

__all__ = ["LN_2", "exp", "exp2", "log", "log1p", "pow", "rsqrt", "sqrt"]

LN_2, LN_10 = 0.6931471805599453, 2.302585092994046


def sqrt_of(value: Any) -> Any:
    """Return the square root of a symbol."""
    return Symbol.apply("sqrt", value)


exp = publish(
    unary(
        "exp",
        lambda g, y: g * conj(y),
        REAL,
        doc="Return e**x.\n\nDerivative: e**x.",
        example="ng.exp(ng.tensor([0.0, 1.0]))\ntensor([1.0000, 2.7183])",
    )
)
exp2 = publish(
    unary(
        "exp2",
        lambda g, y: g * conj(y * LN_2),
        REAL,
        doc="Return 2**x.\n\nDerivative: 2**x ln 2.",
        example="ng.exp2(ng.tensor([0.0, 3.0]))\ntensor([1., 8.])",
    )
)
# y + 1, which has lost the digits of e**x where y is near -1.
_EXPM1_SLOPE = elementwise(
    "expm1_slope",
    ("output", "input"),
    (lambda g: g, None),
    (REAL, REAL),
    formula=lambda output, input: exp(input),
    accepts="f",
    node="AddBackward0",
    listed=False,
    doc="Return the derivative of expm1 at `input`, where it is `output`.",
)


def _expm1_rule(g: Any, y: Any, input: Any) -> Any:
    return g * (conj(y) + 1) if is_complex(y) else g * _EXPM1_SLOPE(y, input)


expm1 = publish(
    unary(
        "expm1",
        lambda g, y: g * (conj(y) + 1),
        REAL,
        closer=_expm1_rule,
        doc="Return e**x - 1, exact near 0.\n\nDerivative: e**x.",
        example="ng.expm1(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 1.7183])",
    )
)
log = publish(
    unary(
        "log",
        lambda g, input: g / conj(input),
        POSITIVE,
        doc="Return ln x.\n\nDerivative: 1/x.",
        example="ng.log(ng.tensor([1.0, 10.0]))\ntensor([0.0000, 2.3026])",
    )
)
log1p = publish(
    unary(
        "log1p",
        lambda g, input: g / (conj(input) + 1),
        POSITIVE,
        doc="Return ln(1 + x), exact near 0.\n\nDerivative: 1/(1 + x).",
        example="ng.log1p(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 0.6931])",
    )
)
log2 = publish(
    unary(
        "log2",
        lambda g, input: g / (conj(input) * LN_2),
        POSITIVE,
        doc="Return the logarithm to base 2.\n\nDerivative: 1/(x ln 2).",
        example="ng.log2(ng.tensor([1.0, 8.0]))\ntensor([0., 3.])",
    )
)
log10 = publish(
    unary(
        "log10",
        lambda g, input: g / (conj(input) * LN_10),
        POSITIVE,
        doc="Return the logarithm to base 10.\n\nDerivative: 1/(x ln 10).",
        example="ng.log10(ng.tensor([1.0, 100.0]))\ntensor([0., 2.])",
    )
)
sqrt = publish(
    unary(
        "sqrt",
        lambda g, y: g / (2 * conj(y)),
        POSITIVE,
        doc="Return the square root, nan for negative x.\n\nDerivative: 1/(2 sqrt x).",
        example="ng.sqrt(ng.tensor([4.0, 2.0]))\ntensor([2.0000, 1.4142])",
    )
)
rsqrt = publish(
    unary(
        "rsqrt",
        lambda g, y: -0.5 * g * conj(y * y * y),
        POSITIVE,
        formula=lambda input: 1 / sqrt_of(input),
        doc="Return 1/sqrt x.\n\nDerivative: -1/2 x**(-3/2), computed as -y**3/2.",
        example="ng.rsqrt(ng.tensor([4.0, 1.0]))\ntensor([0.5000, 1.0000])",
    )
)


# Exponents whose power needs no call of pow; the results are those of the operations named here.
_EASY_POWERS: dict[complex, Any] = {
    1: lambda base: base,
    2: lambda base: base * base,
    3: lambda base: base * base * base,
    1.5: lambda base: Symbol.apply("pow", base, 1.5),  # it is its derivative that is a root
    0.5: sqrt_of,
    -0.5: lambda base: 1 / sqrt_of(base),
    -1: lambda base: 1 / base,
    -2: lambda base: 1 / (base * base),
}


def _make_easy_power(power: Any, formula: Any) -> Any:
    """Declare the primitive of one easy exponent; PyTorch's node is the same for all of them."""

    def rule(g: Any, input: Any) -> Any:
        return g * conj(power * pow(input, power - 1))

    easy = elementwise(
        f"pow_{power}",
        ("input", "exponent"),
        (rule, None),
        (POSITIVE, number(power)),
        formula=lambda input, exponent: formula(input),
        accepts="fciu" if power in (1, 2, 3) else "fc",
        node="PowBackward0",
        numbers=("exponent",),
        function_name="pow",
        doc=f"Return input ** {power}.",
    )
    easy.node_class._saved_exponent = power  # what its node would have saved
    return easy


_EASY = {power: _make_easy_power(power, formula) for power, formula in _EASY_POWERS.items()}
_POW_NUMBER = elementwise(
    "pow",
    ("input", "exponent"),
    (
        lambda g, input, exponent: where(
            exponent == 0, zero_of(g), g * conj(exponent * pow(input, exponent - 1))
        ),
        None,
    ),
    (POSITIVE, number(2.5)),
    node="PowBackward0",
    numbers=("exponent",),
    wide=(),
    doc="Return input ** exponent for a number `exponent`.",
)


def _exponent_rule(g: Any, y: Any, base: Any, exponent: Any) -> Any:
    """Return g y ln(base); 0 where base is 0 and the power is constant 0 or 1 to its right."""
    if isinstance(base, Tensor) and base._array.dtype != y._array.dtype:
        base = upward.cast(base, y._array.dtype)  # as PyTorch does, before the logarithm
    slope = conj(y * log(base))
    vanishes = (base == 0) & _is_not_negative(exponent)
    return where(vanishes, zero_of(g), g * slope)


def _is_not_negative(exponent: Any) -> Any:
    """Return where the real part of an exponent is at least 0."""
    if isinstance(exponent, Symbol):
        return real(exponent) >= Symbol.apply("real", 0.0)
    return real(exponent) >= 0


_POW_TENSORS = elementwise(
    "pow_tensors",
    ("input", "exponent"),
    (
        lambda g, input, exponent: where(
            exponent == 0, zero_of(g), g * conj(exponent * pow(input, exponent - 1))
        ),
        lambda g, y, input, exponent: _exponent_rule(g, y, input, exponent),
    ),
    (POSITIVE, REAL),
    formula=lambda input, exponent: Symbol.apply("pow", input, exponent),
    node="PowBackward1",
    gradients_lie={
        "exponent": lambda g, y, input, exponent: g * where((input == 0) & (exponent == 0), 0, y)
    },
    function_name="pow",
    kernel_name="pow",
    doc="Return input ** exponent for a tensor `exponent`.",
)
_POW_OF_BOOLS = elementwise(
    "pow_of_bools",
    ("input", "exponent"),
    (None, None),
    (MASK, number(1.0)),
    formula=lambda input, exponent: input | Symbol.apply("logical_not", exponent),
    accepts="b",
    numbers=("exponent",),
    function_name="pow",
    listed=False,
    doc="Return input ** exponent for a bool `exponent`.",
)
_POW_OF_NUMBER = elementwise(
    "pow_of_number",
    ("exponent", "base"),
    (
        lambda g, y, exponent, base: where(
            (base == 0) & _is_not_negative(exponent), zero_of(g), g * conj(y * log_of(base))
        ),
        None,
    ),
    (REAL, number(1.7)),
    formula=lambda exponent, base: Symbol.apply("pow", base, exponent),
    node="PowBackward2",
    numbers=("base",),
    wide=(),
    function_name="pow",
    deciding=lambda arrays: [],  # PyTorch's lies row by row, whatever the exponent does
    gradients_lie={"exponent": lambda g: g * 1},
    kernel_name="pow",
    doc="Return base ** exponent for a number `base`.",
)


def log_of(base: Any) -> Any:
    """Return the natural logarithm of a symbol or of a number."""
    if isinstance(base, Symbol):
        return Symbol.apply("log", base)
    if isinstance(base, complex):
        return cmath.log(base)
    return math.log(base) if base > 0 else (-math.inf if base == 0 else math.nan)


_POWER = (
    "(Tensor input, Tensor exponent, *, Tensor? out=None)",
    "(number input, Tensor exponent, *, Tensor? out=None)",
    "(Tensor input, number exponent, *, Tensor? out=None)",
)


@declare(*[f"pow{each}" for each in _POWER])
def pow(input: Any, exponent: Any, out: Tensor | None) -> Any:
    """Return ``input ** exponent``; one of them may be a number.

    Derivative: exponent * input**(exponent - 1), 0 where the exponent is 0; and y ln(input) for
    the exponent, 0 where the input is 0 and the exponent is not negative.

    Raises
    ------
    RuntimeError
        For an integer tensor raised to a negative integer number.

    >>> import numgrad as ng
    >>> ng.pow(ng.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    """
    if not isinstance(input, Tensor):
        if isinstance(input, Symbol) and isinstance(exponent, (int, float, complex)):
            easy = _EASY_POWERS.get(exponent)
            return Symbol.apply("pow", input, exponent) if easy is None else easy(input)
        if isinstance(input, Symbol) or isinstance(exponent, Symbol):
            return Symbol.apply("pow", input, exponent)
        return _POW_OF_NUMBER(exponent, input, out=out)
    if isinstance(exponent, Tensor):
        return _POW_TENSORS.call((input, exponent), out)
    kind = input._array.dtype.kind
    if kind in "iub" and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if kind in "iub" and dtypes.kind_of_number(exponent) == "unsigned":
        check_fits(exponent, dtypes.int64.numpy)  # raises: the words are of int64 for all integers
    power = _POW_NUMBER
    if kind in "fc" or (kind in "iu" and type(exponent) is int):
        power = _EASY.get(exponent, _POW_NUMBER)
    elif kind == "b" and isinstance(exponent, bool):
        power = _POW_OF_BOOLS
    if power is _POW_NUMBER and not isinstance(exponent, complex):
        dtype = input._array.dtype
        if dtype in HALVES or (kind in "iu" and type(exponent) is int):
            scalar_array(exponent, dtype)  # raises if it does not fit
    return power.call((input, exponent), out)


@declare(
    *[f"pow{each}" for each in _POWER if each.startswith("(Tensor")],
    function=False,
    method=False,
    inplace=True,
    dispatched=True,
)
def pow_in_place(input: Tensor, exponent: Any, out: Tensor | None) -> Any:
    """Return what ``input.pow_(exponent)`` writes; see `pow`.

    >>> import numgrad as ng
    >>> ng.tensor([1.0, 3.0]).pow_(2)
    tensor([1., 9.])
    """
    return pow(input, exponent, out=out)


@declare("square(Tensor input, *, Tensor? out=None)", inplace=True, dispatched=True)
def square(input: Tensor, out: Tensor | None) -> Any:
    """Return ``input * input``.

    Derivative: 2 x.

    >>> import numgrad as ng
    >>> ng.square(ng.tensor([1.0, -2.0]))
    tensor([1., 4.])
    """
    return pow(input, 2, out=out)


_OTHER_THAN_WIDEST = (
    "the output given to float_power has dtype {out} but the operation's result requires dtype "
    "{result}"
)


@declare(*[f"float_power{each}" for each in _POWER])
def float_power(input: Any, exponent: Any, out: Tensor | None) -> Any:
    """Return ``input ** exponent`` computed in float64, or in complex128 for a complex operand.

    Derivative: that of `pow`.

    >>> import numgrad as ng
    >>> ng.float_power(ng.tensor([1, 2]), -1)
    tensor([1.0000, 0.5000], dtype=torch.float64)
    """
    dtype = _widest(input, exponent)
    check_out_dtype(_OTHER_THAN_WIDEST, out, dtype)
    is_complex = dtype.is_complex

    def widened(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return complex(value) if is_complex else float(value)
        return value if value.dtype is dtype else upward.cast(value, dtype.numpy)

    power = widened(exponent)  # first, as in PyTorch: gradients are added up in the reverse order
    return pow(widened(input), power, out=out)


def _widest(*operands: Any) -> dtypes.dtype:
    """Return the dtype that powers of such operands are computed in."""
    for each in operands:
        if each._array.dtype.kind == "c" if isinstance(each, Tensor) else isinstance(each, complex):
            return dtypes.complex128
    return dtypes.float64


@declare(
    *[f"float_power{each}" for each in _POWER if each.startswith("(Tensor")],
    function=False,
    method=False,
    inplace=True,
    dispatched=True,
)
def float_power_in_place(input: Tensor, exponent: Any, out: Tensor | None) -> Any:
    """Return what ``input.float_power_(exponent)`` writes; see `float_power`.

    Raises
    ------
    RuntimeError
        If the tensor is of another dtype than the result.

    >>> import numgrad as ng
    >>> ng.tensor([1.0, 4.0], dtype=ng.float64).float_power_(0.5)
    tensor([1., 2.], dtype=torch.float64)
    """
    dtype = _widest(input, exponent)
    if input.dtype is not dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {input.dtype.scalar_name} but the "
            f"operation's result requires dtype {dtype.scalar_name}"
        )
    return float_power(input, exponent, out=out)
