"""Losses of real numbers beside what they should be: squares, absolute values, likelihoods.

All are compositions: a traced function fuses one with its reduction into a single loop.
"""

from __future__ import annotations

import math
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.creation.creation import full_like
from numgrad.ops.movement.unit_dims import broadcast_tensors, unsqueeze
from numgrad.ops.nn.gradient_layouts import all_by_rows
from numgrad.ops.nn.losses.reduced import OLD, reduced, reduction_of
from numgrad.ops.pointwise.complex import absolute
from numgrad.ops.pointwise.exponential import exp, log
from numgrad.ops.pointwise.rounding import sign
from numgrad.ops.pointwise.selection import clamp_min, where
from numgrad.ops.reduction.reductions import sum as sum_
from numgrad.ops.signatures.declared import declare

__all__ = [
    "gaussian_nll_loss",
    "huber_loss",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]


def _expanded(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return both in one shape, with a warning if they had two."""
    if target.shape != input.shape:
        warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size."
        )
        input, target = broadcast_tensors(input, target)
    return input, target


def _weighted(
    loss: Tensor, input: Tensor, weight: Tensor | None, reduction: str, by_weight: bool = True
) -> Tensor:
    """Return a loss times weights, reduced; a mean is divided by their sum if `by_weight`."""
    if weight is None:
        return reduced(loss, reduction)
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if reduction == "mean" and by_weight:
        result: Tensor = sum_(loss) / sum_(weight)
        return result
    return reduced(loss, reduction)


@declare(
    f"mse_loss(Tensor input, Tensor target, {OLD}, Tensor? weight=None)",
    function=False,
    method=False,
    dispatched=True,
)
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
    weight: Tensor | None,
) -> Tensor:
    """Return the mean of the squared differences, (x - t)**2.

    The gradient is 2 (x - t), over the number of elements.

    Parameters
    ----------
    target
        Of the shape of the input.
    reduction
        ``"mean"``, ``"sum"``, or ``"none"`` for the elements.
    weight
        What each element counts; the mean is divided by the sum of these.

    Raises
    ------
    ValueError
        If the weight has another shape, or the reduction another name.

    >>> import numgrad as ng
    >>> ng.nn.functional.mse_loss(ng.tensor([1.0, 3.0]), ng.tensor([0.0, 0.0]))
    tensor(5.)
    """
    whole, target = _expanded(input, target)
    reduction = reduction_of(reduction, size_average, reduce)
    whole, target = all_by_rows(whole, target, reduction == "none")
    difference = whole - target
    return _weighted(difference * difference, input, weight, reduction)


@declare(
    f"l1_loss(Tensor input, Tensor target, {OLD}, Tensor? weight=None)",
    function=False,
    method=False,
    dispatched=True,
)
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
    weight: Tensor | None,
) -> Tensor:
    """Return the mean of the absolute differences, ``abs(x - t)``.

    The gradient is the sign of x - t, 0 where they are equal, over the number of elements.

    Parameters
    ----------
    target, reduction, weight
        As of `mse_loss`.

    >>> import numgrad as ng
    >>> ng.nn.functional.l1_loss(ng.tensor([1.0, -3.0]), ng.tensor([0.0, 0.0]))
    tensor(2.)
    """
    whole, target = _expanded(input, target)
    reduction = reduction_of(reduction, size_average, reduce)
    return _weighted(absolute(whole - target), input, weight, reduction)


def _shortened(difference: Tensor, limit: float) -> tuple[Tensor, Tensor]:
    """Return differences of at most a length, and what is left of them without half of that.

    Their product is half a square up to there, and goes on in a line: no infinite square is
    computed, whose gradient 0 would be nan.
    """
    short = where(absolute(difference) >= limit, sign(difference) * limit, difference)
    return short, difference - 0.5 * short


@declare(
    f"smooth_l1_loss(Tensor input, Tensor target, {OLD}, float beta=1.0)",
    function=False,
    method=False,
    dispatched=True,
)
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
    beta: float,
) -> Tensor:
    """Return the mean of d**2 / (2 beta) where d = abs(x - t) is less than `beta`, else d - beta/2.

    The gradient is (x - t) / beta there, else the sign of x - t.

    Parameters
    ----------
    target, reduction
        As of `mse_loss`.
    beta
        With 0 it is `l1_loss`.

    Raises
    ------
    RuntimeError
        If `beta` is negative.

    >>> import numgrad as ng
    >>> ng.nn.functional.smooth_l1_loss(ng.tensor([1.0, 4.0]), ng.zeros(2), beta=2.0)
    tensor(1.6250)
    """
    input, target = _expanded(input, target)
    reduction = reduction_of(reduction, size_average, reduce)
    if beta == 0:
        return reduced(absolute(input - target), reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    input, target = all_by_rows(input, target, reduction == "none")
    short, rest = _shortened(input - target, beta)
    return reduced(short / beta * rest, reduction)


@declare(
    "huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0, "
    "Tensor? weight=None)",
    function=False,
    method=False,
    dispatched=True,
)
def huber_loss(
    input: Tensor, target: Tensor, reduction: str, delta: float, weight: Tensor | None
) -> Tensor:
    """Return the mean of d**2 / 2 where d = abs(x - t) is up to `delta`, else delta (d - delta/2).

    The gradient is x - t there, else delta times the sign of that. Huber, 1964.

    Parameters
    ----------
    target, reduction
        As of `mse_loss`.
    weight
        What each element counts.

    Raises
    ------
    RuntimeError
        If `delta` is not positive.

    >>> import numgrad as ng
    >>> ng.nn.functional.huber_loss(ng.tensor([1.0, 4.0]), ng.zeros(2), delta=2.0)
    tensor(3.2500)
    """
    whole, target = _expanded(input, target)
    reduction = reduction_of(reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    whole, target = all_by_rows(whole, target, reduction == "none")
    short, rest = _shortened(whole - target, delta)
    return _weighted(short * rest, input, weight, reduction, by_weight=False)


@at_run_time
def _check_variances(variances: Any) -> Any:
    """Return variances; raise if one is negative."""
    if (variances < 0).any():
        raise ValueError("var has negative entry/entries")
    return variances


@declare(
    "gaussian_nll_loss(Tensor input, Tensor target, operand var, bool full=False, "
    "float eps=1e-6, str reduction='mean')",
    function=False,
    method=False,
)
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool, eps: float, reduction: str
) -> Tensor:
    """Return the mean of (ln var + (x - t)**2 / var) / 2, a normal variable's likelihood.

    The gradient is (x - t) / var for the input, and (1 - (x - t)**2 / var) / (2 var) for the
    variance.

    Parameters
    ----------
    var
        Variances: of the shape of the input, of one dim less or with a dim of length 1, or one
        number. Those less than `eps` count as `eps`, with the gradient that they would have.
    full
        Whether to add the constant, ln(2 pi) / 2.

    Raises
    ------
    ValueError
        If a variance is negative, or their shape does not fit.

    >>> import numgrad as ng
    >>> ng.nn.functional.gaussian_nll_loss(ng.tensor([2.0]), ng.tensor([0.0]), ng.tensor([4.0]))
    tensor(1.1931)
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = full_like(input, var).detach()
    else:
        _check_variances(var._array)
    if var.shape != input.shape:
        sizes, own = tuple(input.shape), tuple(var.shape)
        if sizes[:-1] == own:
            var = unsqueeze(var, -1)
        elif (
            len(sizes) != len(own) or sum(b for a, b in zip(sizes, own, strict=True) if a != b) != 1
        ):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    # As much as it is, and with the gradient of what it was.
    held = var + (clamp_min(var.detach(), eps) - var.detach())
    difference = input - target
    loss = 0.5 * (log(held) + difference * difference / held)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


@declare(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, "
    "bool? size_average=None, float eps=1e-8, bool? reduce=None, str reduction='mean')",
    function=False,
    method=False,
    dispatched=True,
)
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool,
    full: bool,
    size_average: bool | None,
    eps: float,
    reduce: bool | None,
    reduction: str,
) -> Tensor:
    """Return the mean of exp(x) - t x, the likelihood of counts whose mean is exp(x).

    The gradient is exp(x) - t.

    Parameters
    ----------
    log_input
        If not, the mean is x, and the loss x - t ln(x + eps).
    full
        Whether to add Stirling's approximation of ln t!, where t is greater than 1.

    >>> import numgrad as ng
    >>> ng.nn.functional.poisson_nll_loss(ng.tensor([0.0]), ng.tensor([3.0]))
    tensor(1.)
    """
    if size_average is not None or reduce is not None or reduction == "elementwise_mean":
        reduction = reduction_of(reduction, size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        stirling = target * log(target) - target + 0.5 * log(2 * math.pi * target)
        loss = loss + where(target <= 1, 0.0, stirling)
    return reduced(loss, reduction)
