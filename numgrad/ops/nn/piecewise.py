"""Piecewise linear and quadratic activations: threshold, hardtanh, leaky_relu, shrinkage.

What they are at a kink, and which slope counts there, is PyTorch's choice. A gradient is an
operation of its own: it depends on the input, if only by 0, so that under ``create_graph`` it hangs
in the graph as PyTorch's does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from numgrad.kernels.move.loop_order import copy_order
from numgrad.ops.core.declare import elementwise
from numgrad.ops.core.domains import NONZERO, REAL, Domain, away_from, number
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.out_argument import SAME_DTYPE
from numgrad.ops.core.promotion import broadcast_shapes
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


# What PyTorch's kernels of gradients take first: the cotangent, or the input.
_LIES = {"input": lambda g, input: g * input}
_INPUT_LIES = {"input": lambda g, input: input * g}
_PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _activation(
    name: str,
    node: str,
    domains: Sequence[Domain],
    formula: Callable[..., Any],
    slope: Callable[..., Any],
    *,
    bend: Callable[..., Any] = zero_of,
    accepts: str = "f",
    lies: dict[str, Callable[..., Any]] = _LIES,
    **options: Any,
) -> ElementwisePrimitive:
    """Declare an activation whose gradient is a primitive of its own.

    Parameters
    ----------
    name, node : str
        The node's name without what all such end with.
    domains : sequence of Domain
        Of the input, and of the numbers.
    formula : callable
        Of the input, and of numbers by their names.
    slope : callable
        The gradient: of the cotangent, the input, and of some of the numbers.
    bend : callable
        The gradient of the slope's input: 0 where there are but lines.
    accepts : str
    lies : dict
        What the gradient lies as.
    **options
        What else `elementwise` takes.
    """
    inputs = tuple(inspect.signature(formula).parameters)
    _, *of_slope = names = tuple(inspect.signature(slope).parameters)

    gradient: ElementwisePrimitive

    def rule(g: Any, *given: Any) -> Any:
        return gradient(g, *given)

    named = [inspect.Parameter(each, _PLAIN) for each in ("g", *of_slope)]
    rule.__dict__["__signature__"] = inspect.Signature(named)
    rest = len(names) - 2
    gradient = elementwise(
        f"{name}_slope",
        names,
        (rule, bend, *[None] * rest),
        (REAL, NONZERO, *[number(1.0)] * rest),
        formula=slope,
        accepts="f",
        node=f"{node}BackwardBackward0",
        numbers=names[2:],
        listed=False,
        doc=f"Return the gradient of {name}.",
    )
    return elementwise(
        name,
        inputs,
        (rule, *[None] * (len(inputs) - 1)),
        domains,
        formula=formula,
        node=f"{node}Backward0",
        gradients_lie=lies,
        numbers=inputs[1:],
        accepts=accepts,
        **options,
    )


THRESHOLD = _activation(
    "threshold",
    "Threshold",
    (away_from(0.1), number(0.1), number(0.2)),
    lambda input, threshold, value: where(input <= threshold, value, input),
    lambda cotangent, input, threshold: where(input <= threshold, 0, cotangent),
    wide=("threshold",),
    accepts="fiu",
    lies=_INPUT_LIES,
    doc="Return the input where it is above a threshold, else a value.",
)
HARDTANH = _activation(
    "hardtanh",
    "Hardtanh",
    (away_from(-1.0, 1.5), number(-1.0), number(1.5)),
    lambda input, min_val, max_val: where(
        input < min_val, min_val, where(input > max_val, max_val, input)
    ),
    lambda cotangent, input, min_val, max_val: where(
        (input <= min_val) | (input >= max_val), 0, cotangent
    ),
    accepts="fiu",
    refuses={
        "b": RuntimeError("Bool inputs not supported for hardtanh"),
        "c": NotImplementedError("clamp is not supported for complex types"),
    },
    deciding=lambda given: copy_order(given[0]),  # as it lies, down to its dims of length 1
    doc="Return the input, between two bounds.",
)
LEAKY_RELU = _activation(
    "leaky_relu",
    "LeakyRelu",
    (NONZERO, number(0.1)),
    lambda input, negative_slope: where(input > 0, input, input * negative_slope),
    lambda cotangent, input, negative_slope: where(
        input > 0, cotangent, cotangent * negative_slope
    ),
    lies=_INPUT_LIES,
    doc="Return the input where it is positive, else a part of it.",
)


def _far_from_zero(cotangent: Any, input: Any, lambd: Any) -> Any:
    """Return the gradient of what gives 0 for numbers near 0."""
    return where((input >= -lambd) & (input <= lambd), 0, cotangent)


HARDSHRINK = _activation(
    "hardshrink",
    "Hardshrink",
    (away_from(-0.5, 0.5), number(0.5)),
    lambda input, lambd: where((input >= -lambd) & (input <= lambd), 0, input),
    _far_from_zero,
    wide=(),
    out_differs=SAME_DTYPE,
    doc="Return the input where it is far from 0, else 0.",
)
SOFTSHRINK = _activation(
    "softshrink",
    "Softshrink",
    (away_from(-0.5, 0.5), number(0.5)),
    lambda input, lambd: where(
        input > lambd, input - lambd, where(input < -lambd, input + lambd, input * 0)
    ),
    _far_from_zero,
    kernel_name="softshrink_check",
    doc="Return the input, nearer to 0.",
)
HARDSIGMOID = _activation(
    "hardsigmoid",
    "Hardsigmoid",
    (away_from(-3.0, 3.0, within=5.0),),
    lambda input: where(input < -3, 0, where(input > 3, 6, input + 3)) / 6,
    lambda cotangent, input: where((input > -3) & (input < 3), cotangent * (1 / 6), 0),
    doc="Return x/6 + 1/2, between 0 and 1.",
)
HARDSWISH = _activation(
    "hardswish",
    "Hardswish",
    (away_from(-3.0, 3.0, within=5.0),),
    lambda input: input * where(input < -3, 0, where(input > 3, 6, input + 3)) / 6,
    lambda cotangent, input: where(
        input <= -3, 0, where(input < 3, cotangent * (input / 3 + 0.5), cotangent)
    ),
    bend=lambda g, cotangent, input: where((input > -3) & (input < 3), g * cotangent * (1 / 3), 0),
    doc="Return x hardsigmoid(x).",
)


def _as_the_input(arrays: list[Any]) -> Any:
    """Return how a result lies that is made like the input, which has its shape."""
    input, weight = arrays
    whole = input.shape == broadcast_shapes([input.shape, weight.shape])
    return copy_order(input) if whole else arrays


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
    deciding=_as_the_input,
    kernel_name="prelu_cpu",
    function_name="prelu",
    doc="Return the input where it is positive, else a part of it that can be learned.",
)
