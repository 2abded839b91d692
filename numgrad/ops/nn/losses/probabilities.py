"""Losses of probabilities: binary_cross_entropy, with logits or without, and kl_div."""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.core.declare import elementwise
from numgrad.ops.core.domains import interval
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.nn.gradient_layouts import gradient_as_input
from numgrad.ops.nn.losses.reduced import OLD, reduced, reduction_of
from numgrad.ops.pointwise.activation import logsigmoid
from numgrad.ops.pointwise.exponential import exp, log, log1p
from numgrad.ops.pointwise.logarithms import xlogy
from numgrad.ops.pointwise.selection import maximum, where
from numgrad.ops.signatures.declared import declare

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "divergences",
    "kl_div",
    "logit_losses",
]

# --- two classes ---------------------------------------------------------------------------------


def _entropy_slope(g: Any, input: Any, target: Any) -> Any:
    # As if the product were no less than this, so that there is no division by 0.
    return g * (input - target) / maximum((1 - input) * input, 1e-12)


_BINARY_CROSS_ENTROPY = elementwise(
    "binary_cross_entropy",
    ("input", "target"),
    (_entropy_slope, lambda g, input: g * (log1p(-input) - log(input))),
    (interval(0.1, 0.9), interval(0.1, 0.9)),
    # nan is neither more than -100 nor less.
    formula=lambda input, target: (
        (target - 1) * where(log1p(-input) < -100, -100, log1p(-input))
        - target * where(log(input) < -100, -100, log(input))
    ),
    accepts="f",
    node="BinaryCrossEntropyBackward0",
    gradients_lie=dict.fromkeys(("input", "target"), lambda input: input * 1),
    kernel_name="binary_cross_entropy",
    listed=False,
    doc="Return -t ln(x) - (1 - t) ln(1 - x), with logarithms no less than -100.",
)


@at_run_time
def _inside_unit(values: Any, name: str) -> Any:
    """Return probabilities; raise if one is none."""
    if not ((values >= 0) & (values <= 1)).all():
        raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    return values


@declare(
    f"binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, {OLD})",
    function=False,
    method=False,
    dispatched=True,
)
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
) -> Tensor:
    """Return the mean of -t ln(x) - (1 - t) ln(1 - x), with logarithms no less than -100.

    The gradient is (x - t) / (x (1 - x)), over the number of elements.

    Parameters
    ----------
    input
        Probabilities.
    target
        Those that there should be, of the same shape.
    weight
        What each element counts, of a shape that expands to that.
    reduction
        ``"mean"``, ``"sum"``, or ``"none"`` for the elements.

    Raises
    ------
    RuntimeError
        If an element of the input is no probability.
    ValueError
        If the shapes differ.

    >>> import numgrad as ng
    >>> ng.nn.functional.binary_cross_entropy(ng.tensor([0.5, 0.25]), ng.tensor([1.0, 0.0]))
    tensor(0.4904)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    if target._array.dtype != input._array.dtype:
        raise RuntimeError(
            f"Found dtype {target.dtype.scalar_name} but expected {input.dtype.scalar_name}"
        )
    _BINARY_CROSS_ENTROPY.check_dtype(input.dtype)
    _inside_unit(input._array, name="input")
    _inside_unit(target._array, name="target")
    loss: Tensor = _BINARY_CROSS_ENTROPY(input, target)
    if weight is not None:
        loss = loss * weight.to(input.dtype)
    return reduced(loss, reduction)


def logit_losses(
    input: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None
) -> Tensor:
    """Return the elements of the loss of `binary_cross_entropy_with_logits`."""
    rest = -logsigmoid(input)
    if pos_weight is not None:
        rest = ((pos_weight - 1) * target + 1) * rest
    loss = (1 - target) * input + rest
    return loss if weight is None else loss * weight


@declare(
    f"binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, {OLD}, "
    "Tensor? pos_weight=None)",
    function=False,
    method=False,
    dispatched=True,
)
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
    pos_weight: Tensor | None,
) -> Tensor:
    """Return `binary_cross_entropy` of sigmoid(x), exact where that is all but 0 or 1.

    The gradient is sigmoid(x) - t, over the number of elements.

    Parameters
    ----------
    target, weight
        As of that.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.
    pos_weight
        What the term of t counts, so that it can outweigh the other.

    Raises
    ------
    ValueError
        If the shapes differ.

    >>> import numgrad as ng
    >>> ng.nn.functional.binary_cross_entropy_with_logits(ng.tensor([0.0, 800.0]), ng.ones(2))
    tensor(0.3466)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    input = gradient_as_input(input, reduction == "none" or not target.is_contiguous())
    return reduced(logit_losses(input, target, weight, pos_weight), reduction)


# --- distributions -------------------------------------------------------------------------------


def divergences(input: Tensor, target: Tensor, log_target: bool) -> Tensor:
    """Return the elements of the divergence of `kl_div`."""
    if input._array.dtype.kind in "iub" or target._array.dtype.kind in "iub":
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        return exp(target) * (target - input)
    return xlogy(target, target) - target * input


@declare(
    f"kl_div(Tensor input, Tensor target, {OLD}, bool log_target=False)",
    function=False,
    method=False,
    dispatched=True,
)
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
    log_target: bool,
) -> Tensor:
    """Return the mean of t (ln t - x), the divergence of exp(x) from t.

    The gradient is -t, over the number of elements.

    Parameters
    ----------
    input
        Logarithms of probabilities.
    target
        Probabilities; with `log_target` their logarithms.
    reduction
        ``"batchmean"`` for the sum over the length of the first dim, which is what is called the
        divergence; ``"mean"``, ``"sum"`` or ``"none"``.

    Raises
    ------
    RuntimeError
        If one of them is of integers.

    >>> import numgrad as ng
    >>> logs, target = ng.tensor([[0.5, 0.5]]).log(), ng.tensor([[0.25, 0.75]])
    >>> ng.nn.functional.kl_div(logs, target, reduction="batchmean")
    tensor(0.1308)
    """
    by_rows = False
    if size_average is None and reduce is None:
        if reduction == "mean":
            warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support "
                "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
                "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
                "major release."
            )
        by_rows = reduction == "batchmean"
    reduction = "sum" if by_rows else reduction_of(reduction, size_average, reduce)
    result = reduced(divergences(input, target, log_target), reduction)
    if by_rows and input._array.ndim:
        result = result / input._array.shape[0]
    return result
