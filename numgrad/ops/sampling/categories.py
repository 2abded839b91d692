"""multinomial: draw categories by their weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.recorder import at_hand
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.creation.drawing import checked, exponential, uniform
from numgrad.ops.creation.generator import drawn
from numgrad.ops.movement.casts import cast
from numgrad.ops.movement.slicing import slice_of
from numgrad.ops.pointwise.arithmetic import mul
from numgrad.ops.pointwise.division import div
from numgrad.ops.reduction.argreduce import argmax
from numgrad.ops.reduction.scans import cumsum
from numgrad.ops.reduction.sorting import topk
from numgrad.ops.searching.sorted_rows import searchsorted
from numgrad.ops.signatures.declared import declare

__all__ = ["multinomial"]

Array = np.ndarray[Any, Any]


@at_run_time
def _check_weights(faults: Array, size: int) -> Array:
    if faults.any():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    return faults


@at_run_time
def _check_sums(faults: Array, size: int) -> Array:
    if faults.any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    return faults


@declare(
    "multinomial(Tensor input, int num_samples, bool replacement=False, *, "
    "generator? generator=None, Tensor? out=None)"
)
def multinomial(
    input: Tensor, num_samples: int, replacement: bool, generator: Any, out: Tensor | None
) -> Tensor:
    """Return categories, drawn with chances in proportion to weights; one row for each of these.

    Without replacement they are the places of the greatest quotients of weights and exponentially
    distributed numbers (Efraimidis and Spirakis, 2006); with it, places found in sums of weights.
    It is not differentiable.

    Parameters
    ----------
    input
        Weights, of shape (n,) or (rows, n), floating point; they need not add up to 1.
    num_samples
        How many are drawn from each row.
    replacement
        Whether a category can be drawn more than once.
    generator
        What numbers are drawn from; the default generator unless given.

    Returns
    -------
    Tensor
        int64, of shape (num_samples,) or (rows, num_samples).

    Raises
    ------
    RuntimeError
        If a weight is negative or not finite, the weights of a row are all 0, or there are not
        enough categories.

    >>> import numgrad as ng
    >>> ng.multinomial(ng.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    shape, dtype = input._array.shape, input.dtype
    if out is not None and out._array.dtype != np.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.scalar_name}")
    if len(shape) not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not dtype.is_floating_point:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {dtype.scalar_name}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    with no_grad():
        weights = _valid(wrap(at_hand(input._array)))
        if dtype.itemsize == 2:  # their sums and quotients need more digits
            weights = cast(weights, np.dtype(np.float32))
        if replacement and num_samples > 1:
            found = _with_replacement(weights, num_samples, generator)
        else:
            found = _without_replacement(weights, num_samples, generator)
    drawn_ones: Tensor = write_result("multinomial", found, out)
    return drawn_ones


def _valid(weights: Tensor) -> Tensor:
    """Return weights, or raise, at run time, if these are none."""
    if not weights._array.size:
        return weights
    compare, both = FUNCTIONS["lt"], FUNCTIONS["logical_and"]
    is_weight = both(FUNCTIONS["ge"](weights, 0), compare(weights, float("inf")))
    weights = checked(weights, is_weight, _check_weights)
    some = FUNCTIONS["gt"](FUNCTIONS["amax"](weights, -1, True), 0)
    return checked(weights, some, _check_sums)


def _without_replacement(weights: Tensor, count: int, generator: Any) -> Tensor:
    shape = weights._array.shape
    noise = wrap(drawn(exponential(weights.dtype), generator, shape, [weights._array]))
    quotients = div(weights, noise)
    found: Tensor
    if count == 1:
        found = argmax(quotients, -1, True)
    else:
        found = topk(quotients, count)[1]
    return found


def _with_replacement(weights: Tensor, count: int, generator: Any) -> Tensor:
    shape = weights._array.shape
    sums = cumsum(weights, -1)
    total = slice_of(sums, len(shape) - 1, shape[-1] - 1, shape[-1], 1)
    places = (*shape[:-1], count)
    chances = wrap(drawn(uniform(weights.dtype), generator, places, [weights._array]))
    found: Tensor = searchsorted(sums, mul(chances, total), right=True)
    return found
