"""poisson and binomial: draw counts, by rates and by chances.

Where a generator is decides on two integers, and these on the counts: so the counts of a compiled
function, which takes no generator into what it calls, are those of the function itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.modes.grad_modes import no_grad
from numgrad.graph.recorder import at_hand
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.creation.drawing import integers, random_node
from numgrad.ops.creation.generator import drawn
from numgrad.ops.movement.unit_dims import broadcast_tensors
from numgrad.ops.signatures.declared import declare

__all__ = ["binomial", "poisson"]

Array = np.ndarray[Any, Any]

_MOST_COUNTED = 2.0**62  # NumPy counts in int64


def _source(seed: Array) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed.tolist()))


def _draw_poisson(rate: Array, seed: Array) -> Array:
    if not (rate >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if (rate > _MOST_COUNTED).any():
        raise RuntimeError(
            f"poisson: rates up to {_MOST_COUNTED:g} can be counted, but one is greater"
        )
    return _source(seed).poisson(rate.astype(np.float64)).astype(rate.dtype)


def _draw_binomial(count: Array, prob: Array, seed: Array) -> Array:
    if (count > _MOST_COUNTED).any():
        raise RuntimeError(
            f"binomial: up to {_MOST_COUNTED:g} trials can be counted, but there are more"
        )
    known = ~(np.isnan(count) | np.isnan(prob))
    trials = np.where(known, np.maximum(count, 0), 0).astype(np.int64)
    chances = np.where(known, np.clip(prob, 0, 1), 0).astype(np.float64)
    drawn_counts = _source(seed).binomial(trials, chances)
    return np.where(known, drawn_counts, np.nan).astype(count.dtype)


_POISSON = Primitive(
    "poisson", "NotImplemented", _draw_poisson, ["input", "seed"], [None, None], listed=False
)
_BINOMIAL = Primitive(
    "binomial",
    "NotImplemented",
    _draw_binomial,
    ["count", "prob", "seed"],
    [None, None, None],
    listed=False,
)


def _seed(generator: Any, *beside: Any) -> Tensor:
    """Return two integers, which a generator decides on."""
    return wrap(drawn(integers(0, 2**63 - 1, dtypes.int64), generator, (2,), beside))


@declare("poisson(Tensor input, generator? generator=None)", method=False)
def poisson(input: Tensor, generator: Any) -> Tensor:
    """Return counts of the Poisson distribution, of the rates in `input`.

    No gradient flows to the rates: it is 0, as in PyTorch.

    Parameters
    ----------
    input
        Rates, of a floating point dtype, which is that of the result.
    generator
        What numbers are drawn from; the default generator unless given.

    Raises
    ------
    RuntimeError
        If a rate is negative, nan, or too great to count.

    >>> import numgrad as ng
    >>> ng.poisson(ng.zeros(3))
    tensor([0., 0., 0.])
    """
    if not input.dtype.is_floating_point:
        raise NotImplementedError(
            f"\"poisson_cpu\" not implemented for '{input.dtype.scalar_name}'"
        )
    with no_grad():
        rates = wrap(at_hand(input._array))
        counts = _POISSON.apply(rates, _seed(generator, rates._array))
    return random_node("PoissonBackward0", counts, input)


@declare("binomial(Tensor count, Tensor prob, generator? generator=None)", method=False)
def binomial(count: Tensor, prob: Tensor, generator: Any) -> Tensor:
    """Return counts of the binomial distribution: how many of so many trials succeed.

    It is not differentiable.

    Parameters
    ----------
    count
        How many trials there are, of a floating point dtype.
    prob
        The chance of each to succeed, of the same dtype; shapes are broadcast.
    generator
        What numbers are drawn from; the default generator unless given.

    Raises
    ------
    ValueError
        If a dtype is not a floating point one.
    RuntimeError
        If the dtypes differ, or there are too many trials to count.

    >>> import numgrad as ng
    >>> ng.binomial(ng.tensor([5.0, 3.0]), ng.tensor([0.0, 1.0]))
    tensor([0., 3.])
    """
    for name, tensor in (("count", count), ("prob", prob)):
        if not tensor.dtype.is_floating_point:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: "
                f"{tensor.dtype.scalar_name}"
            )
    if count.dtype is not prob.dtype:
        raise RuntimeError(
            f"Found dtype {prob.dtype.scalar_name} but expected {count.dtype.scalar_name}"
        )
    with no_grad():
        trials, chances = broadcast_tensors(*(wrap(at_hand(t._array)) for t in (count, prob)))
        seed = _seed(generator, trials._array, chances._array)
        counts: Tensor = _BINOMIAL.apply(trials, chances, seed)
    return counts
