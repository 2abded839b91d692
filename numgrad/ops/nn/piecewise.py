"""Piecewise linear and quadratic activations: threshold, hardtanh, leaky_relu, shrinkage.

What they are at a kink, and which slope counts there, is PyTorch's choice. A gradient is an
operation of its own: it depends on the input, if only by 0, so that under ``create_graph`` it hangs
in the graph as PyTorch's does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.ops.core.declare import elementwise
from numgrad.ops.core.domains import NONZERO, REAL, away_from, number
from numgrad.ops.core.elementwise import ElementwisePrimitive
from numgrad.ops.pointwise.complex import zero_of
from numgrad.ops.pointwise.selection import where

__all__ = [
    "HARDSHRINK",
    "HARDSIGMOID",
    "HARDSWISH",
    "HARDTANH",
    "LEAKY_RELU",
    "PRELU",
    "SOFTSHRINK",
    "THRESHOLD",
]


def _slope(
    name: str,
    node: str,
    formula: Callable[..., Any],
    rules: tuple[Any, Any],
    numbers: tuple[str, ...] = (),
) -> ElementwisePrimitive:
    """Declare the gradient of an activation, of the cotangent, the input and some numbers."""
    return elementwise(
        f"{name}_slope",
        ("cotangent", "input", *numbers),
        (*rules, *[None] * len(numbers)),
        (REAL, NONZERO, *[number(1.0) for _ in numbers]),
        formula=formula,
        accepts="f",
        node=f"{node}BackwardBackward0",
        numbers=numbers,
        listed=False,
        doc=f"Return the gradient of {name}.",
    )


# PyTorch's kernels of gradients take the cotangent first.
_LIES = {"input": lambda g, input: g * input}


def _zero(g: Any) -> Any:
    return zero_of(g)


_THRESHOLD_SLOPE = _slope(
    "threshold",
    "Threshold",
    lambda cotangent, input, threshold: where(input <= threshold, 0, cotangent),
    (lambda g, input, threshold: _threshold_slope(g, input, threshold), _zero),
    ("threshold",),
)


def _threshold_slope(g: Any, input: Any, threshold: Any) -> Any:
    return _THRESHOLD_SLOPE(g, input, threshold)


THRESHOLD = elementwise(
    "threshold",
    (
        "input",
        "threshold",
        "value",
    ),
    (
        lambda g, input, threshold: _threshold_slope(g, input, threshold),
        None,
        None,
    ),
    (
        away_from(0.1),
        number(0.1),
        number(0.2),
    ),
    formula=lambda input, threshold, value: where(input <= threshold, value, input),
    node="ThresholdBackward0",
    gradients_lie=_LIES,
    numbers=("threshold", "value"),
    wide=("threshold",),
    accepts="fiu",
    doc="Return the input where it is above a threshold, else a value.",
)
_HARDTANH_SLOPE = _slope(
    "hardtanh",
    "Hardtanh",
    lambda cotangent, input, min_val, max_val: where(
        (input <= min_val) | (input >= max_val), 0, cotangent
    ),
    (lambda g, input, min_val, max_val: _hardtanh_slope(g, input, min_val, max_val), _zero),
    ("min_val", "max_val"),
)


def _hardtanh_slope(g: Any, input: Any, min_val: Any, max_val: Any) -> Any:
    return _HARDTANH_SLOPE(g, input, min_val, max_val)


HARDTANH = elementwise(
    "hardtanh",
    (
        "input",
        "min_val",
        "max_val",
    ),
    (
        lambda g, input, min_val, max_val: _hardtanh_slope(g, input, min_val, max_val),
        None,
        None,
    ),
    (
        away_from(-1.0, 1.5),
        number(-1.0),
        number(1.5),
    ),
    formula=lambda input, min_val, max_val: where(
        input < min_val, min_val, where(input > max_val, max_val, input)
    ),
    node="HardtanhBackward0",
    gradients_lie=_LIES,
    numbers=("min_val", "max_val"),
    accepts="fiu",
    refuses={
        "b": RuntimeError("Bool inputs not supported for hardtanh"),
        "c": NotImplementedError("clamp is not supported for complex types"),
    },
    doc="Return the input, between two bounds.",
)
_LEAKY_RELU_SLOPE = _slope(
    "leaky_relu",
    "LeakyRelu",
    lambda cotangent, input, negative_slope: where(
        input > 0, cotangent, cotangent * negative_slope
    ),
    (lambda g, input, negative_slope: _leaky_relu_slope(g, input, negative_slope), _zero),
    ("negative_slope",),
)


def _leaky_relu_slope(g: Any, input: Any, negative_slope: Any) -> Any:
    return _LEAKY_RELU_SLOPE(g, input, negative_slope)


LEAKY_RELU = elementwise(
    "leaky_relu",
    (
        "input",
        "negative_slope",
    ),
    (
        lambda g, input, negative_slope: _leaky_relu_slope(g, input, negative_slope),
        None,
    ),
    (
        NONZERO,
        number(0.1),
    ),
    formula=lambda input, negative_slope: where(input > 0, input, input * negative_slope),
    node="LeakyReluBackward0",
    gradients_lie=_LIES,
    numbers=("negative_slope",),
    accepts="f",
    doc="Return the input where it is positive, else a part of it.",
)
_HARDSHRINK_SLOPE = _slope(
    "hardshrink",
    "Hardshrink",
    lambda cotangent, input, lambd: where((input >= -lambd) & (input <= lambd), 0, cotangent),
    (lambda g, input, lambd: _hardshrink_slope(g, input, lambd), _zero),
    ("lambd",),
)


def _hardshrink_slope(g: Any, input: Any, lambd: Any) -> Any:
    return _HARDSHRINK_SLOPE(g, input, lambd)


HARDSHRINK = elementwise(
    "hardshrink",
    (
        "input",
        "lambd",
    ),
    (
        lambda g, input, lambd: _hardshrink_slope(g, input, lambd),
        None,
    ),
    (
        away_from(-0.5, 0.5),
        number(0.5),
    ),
    formula=lambda input, lambd: where((input >= -lambd) & (input <= lambd), 0, input),
    node="HardshrinkBackward0",
    gradients_lie=_LIES,
    numbers=("lambd",),
    wide=(),
    accepts="f",
    doc="Return the input where it is far from 0, else 0.",
)
_SOFTSHRINK_SLOPE = _slope(
    "softshrink",
    "Softshrink",
    lambda cotangent, input, lambd: where((input >= -lambd) & (input <= lambd), 0, cotangent),
    (lambda g, input, lambd: _softshrink_slope(g, input, lambd), _zero),
    ("lambd",),
)


def _softshrink_slope(g: Any, input: Any, lambd: Any) -> Any:
    return _SOFTSHRINK_SLOPE(g, input, lambd)


SOFTSHRINK = elementwise(
    "softshrink",
    (
        "input",
        "lambd",
    ),
    (
        lambda g, input, lambd: _softshrink_slope(g, input, lambd),
        None,
    ),
    (
        away_from(-0.5, 0.5),
        number(0.5),
    ),
    formula=lambda input, lambd: where(
        input > lambd, input - lambd, where(input < -lambd, input + lambd, input * 0)
    ),
    node="SoftshrinkBackward0",
    gradients_lie=_LIES,
    numbers=("lambd",),
    accepts="f",
    kernel_name="softshrink_check",
    doc="Return the input, nearer to 0.",
)
_HARDSIGMOID_SLOPE = _slope(
    "hardsigmoid",
    "Hardsigmoid",
    lambda cotangent, input: where((input > -3) & (input < 3), cotangent * (1 / 6), 0),
    (lambda g, input: _hardsigmoid_slope(g, input), _zero),
)


def _hardsigmoid_slope(g: Any, input: Any) -> Any:
    return _HARDSIGMOID_SLOPE(g, input)


HARDSIGMOID = elementwise(
    "hardsigmoid",
    ("input",),
    (lambda g, input: _hardsigmoid_slope(g, input),),
    (away_from(-3.0, 3.0, within=5.0),),
    formula=lambda input: where(input < -3, 0, where(input > 3, 6, input + 3)) / 6,
    node="HardsigmoidBackward0",
    gradients_lie=_LIES,
    accepts="f",
    doc="Return x/6 + 1/2, between 0 and 1.",
)


def _hardswish_bend(g: Any, cotangent: Any, input: Any) -> Any:
    return where((input > -3) & (input < 3), g * cotangent * (1 / 3), 0)


_HARDSWISH_SLOPE = _slope(
    "hardswish",
    "Hardswish",
    lambda cotangent, input: where(
        input <= -3, 0, where(input < 3, cotangent * (input / 3 + 0.5), cotangent)
    ),
    (lambda g, input: _hardswish_slope(g, input), _hardswish_bend),
)


def _hardswish_slope(g: Any, input: Any) -> Any:
    return _HARDSWISH_SLOPE(g, input)


HARDSWISH = elementwise(
    "hardswish",
    ("input",),
    (lambda g, input: _hardswish_slope(g, input),),
    (away_from(-3.0, 3.0, within=5.0),),
    formula=lambda input: input * where(input < -3, 0, where(input > 3, 6, input + 3)) / 6,
    node="HardswishBackward0",
    gradients_lie=_LIES,
    accepts="f",
    doc="Return x hardsigmoid(x).",
)
PRELU = elementwise(
    "prelu_kernel",
    ("input", "weight"),
    (
        lambda g, input, weight: where(input > 0, g, g * weight),
        lambda g, input: where(input > 0, 0, g * input),
    ),
    (NONZERO, REAL),
    formula=lambda input, weight: where(input > 0, input, input * weight),
    accepts="f",
    node="PreluKernelBackward0",
    kernel_name="prelu_cpu",
    function_name="prelu",
    doc="Return the input where it is positive, else a part of it that can be learned.",
)
