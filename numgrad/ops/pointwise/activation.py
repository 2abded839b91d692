"""Activations and the error function."""

from __future__ import annotations

from typing import Any

from numgrad.codegen.expression import Symbol
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.declare import elementwise, unary
from numgrad.ops.core.domains import NONZERO, REAL, UNIT, number
from numgrad.ops.pointwise.complex import absolute, conj, is_complex, zero_of
from numgrad.ops.pointwise.exponential import exp
from numgrad.ops.pointwise.logarithms import logit
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.published import publish

__all__ = ["erf", "erfc", "erfinv", "logit", "logsigmoid", "relu", "sigmoid", "softplus"]

TWO_OVER_SQRT_PI = 1.1283791670955126

# y (1 - y), where 1 - y would have lost the digits of e**-x. The smaller of the two is the larger
# one times e**-abs(x).
_SIGMOID_SLOPE = elementwise(
    "sigmoid_slope",
    ("output", "input"),
    (lambda g, output: g * (1 - 2 * output), None),
    (UNIT, NONZERO),
    formula=lambda output, input: _product_of_parts(output, input),
    accepts="f",
    node="SigmoidBackwardBackward0",
    listed=False,
    doc="Return the derivative of sigmoid at `input`, where it is `output`.",
)


def _product_of_parts(output: Any, input: Any) -> Any:
    larger = where(input > 0, output, 1 - output)
    return larger * larger * exp(-absolute(input))


def _sigmoid_rule(g: Any, y: Any, input: Any) -> Any:
    if is_complex(y):
        return g * conj((1 - y) * y)
    return g * _SIGMOID_SLOPE(y, input)


sigmoid = publish(
    unary(
        "sigmoid",
        lambda g, y: g * conj((1 - y) * y),
        REAL,
        closer=_sigmoid_rule,
        doc="Return 1/(1 + e**-x).\n\nDerivative: y (1 - y).",
        example="ng.sigmoid(ng.tensor([0.0, 2.0]))\ntensor([0.5000, 0.8808])",
    )
)
# What the derivatives of softplus and logsigmoid are made of. Its own rule takes the input, not the
# output: 1 - y has lost the digits of e**-x where y is near 1.
_LOGISTIC = unary(
    "logistic",
    lambda g, input: g * (_logistic(input) * _logistic(-input)),
    REAL,
    formula=lambda input: Symbol.apply("sigmoid", input),
    accepts="f",
    node="LogSigmoidBackwardBackward0",
    function_name="sigmoid",
    doc="Return 1/(1 + e**-x).",
)


def _logistic(x: Any) -> Any:
    return _LOGISTIC(x)


# The rule of relu is an operation of its own: of the output it is constant, yet depends on it, so
# that under create_graph the gradient hangs in the graph as PyTorch's does.
_THRESHOLD = elementwise(
    "threshold_backward",
    ("input", "other"),
    (lambda g, other: _threshold(g, other), lambda g: zero_of(g)),
    (REAL, NONZERO),
    formula=lambda input, other: where(other <= 0, 0, input),
    accepts="fiu",
    node="ThresholdBackwardBackward0",
    kernel_name="threshold_cpu",
    doc="Return `input` where `other` is positive, else 0.",
)


def _threshold(g: Any, y: Any) -> Any:
    return _THRESHOLD(g, y)


relu = publish(
    unary(
        "relu",
        lambda g, y: _threshold(g, y),
        NONZERO,
        formula=lambda input: where(input < 0, 0, input),
        kind="same",
        accepts="fiu",
        refuses={
            "b": RuntimeError("Boolean inputs not supported for relu"),
            "c": NotImplementedError("clamp is not supported for complex types"),
        },
        doc="Return x where it is positive, else 0.\n\nDerivative: 1 for positive x, else 0.",
        example="ng.relu(ng.tensor([-1.0, 2.0]))\ntensor([0., 2.])",
    ),
    out=False,
)
erf = publish(
    unary(
        "erf",
        lambda g, input: TWO_OVER_SQRT_PI * exp(-(input * input)) * g,
        REAL,
        accepts="f",
        kernel_name="erf_vml_cpu",
        doc="Return the error function.\n\nDerivative: 2/sqrt(pi) e**(-x**2).",
        example="ng.erf(ng.tensor([0.0, 1.0]))\ntensor([0.0000, 0.8427])",
    )
)
erfc = publish(
    unary(
        "erfc",
        lambda g, input: -TWO_OVER_SQRT_PI * exp(-(input * input)) * g,
        REAL,
        accepts="f",
        kernel_name="erfc_vml_cpu",
        doc="Return 1 - erf(x), exact for large x.\n\nDerivative: -2/sqrt(pi) e**(-x**2).",
        example="ng.erfc(ng.tensor([0.0, 1.0]))\ntensor([1.0000, 0.1573])",
    )
)
erfinv = publish(
    unary(
        "erfinv",
        lambda g, y: (1 / TWO_OVER_SQRT_PI) * exp(y * y) * g,
        UNIT,
        accepts="f",
        kernel_name="erfinv_vml_cpu",
        doc="Return the number whose error function is x, nan outside [-1, 1].\n\n"
        "Derivative: sqrt(pi)/2 e**(y**2).",
        example="ng.erfinv(ng.tensor([0.0, 0.5]))\ntensor([0.0000, 0.4769])",
    )
)

_SOFTPLUS = elementwise(
    "softplus",
    ("input", "beta", "threshold"),
    (
        lambda g, input, beta, threshold: where(
            input * beta > threshold, g, g * _logistic(input * beta)
        ),
        None,
        None,
    ),
    (REAL, number(1.5), number(20.0)),
    gradients_lie={"input": lambda g, input: g * input},
    formula=lambda input, beta, threshold: where(
        input * beta > threshold, input, Symbol.apply("softplus", input * beta) / beta
    ),
    accepts="f",
    node="SoftplusBackward0",
    numbers=("beta", "threshold"),
    doc="Return ln(1 + e**(beta x)) / beta, a smooth relu.",
)


@declare(
    "softplus(Tensor input, number beta=1, number threshold=20, *, Tensor? out=None)",
    method=False,
)
def softplus(input: Tensor, beta: float, threshold: float) -> Tensor:
    """Return ``ln(1 + exp(beta * input)) / beta``, and `input` where ``beta * input > threshold``.

    Derivative: sigmoid(beta x), 1 above the threshold. PyTorch has it in ``nn.functional``.

    >>> import numgrad as ng
    >>> ng.softplus(ng.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    _SOFTPLUS.check_dtype(input.dtype)
    result: Tensor = _SOFTPLUS(input, beta, threshold)
    return result


_LOGSIGMOID = unary(
    "logsigmoid",
    lambda g, input: g * _logistic(-input),
    REAL,
    kind="same",
    accepts="f",
    node="LogSigmoidBackward0",
    kernel_name="log_sigmoid_cpu",
    deciding=lambda arrays: [],
    gradients_lie={"input": lambda g: g * 1},
    doc="Return ln(sigmoid(x)).",
)


@declare("logsigmoid(Tensor input, *, Tensor? out=None)", method=False, plain=_LOGSIGMOID)
def logsigmoid(input: Tensor) -> Tensor:
    """Return ``ln(1 / (1 + exp(-input)))``, without overflow or loss of digits on the way.

    Derivative: sigmoid(-x). PyTorch has it in ``nn.functional``.

    >>> import numgrad as ng
    >>> ng.logsigmoid(ng.tensor([0.0, -100.0]))
    tensor([  -0.6931, -100.0000])
    """
    result: Tensor = _LOGSIGMOID(input)
    return result
