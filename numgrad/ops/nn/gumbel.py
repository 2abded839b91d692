"""Softmax of drawn numbers: samples of a categorical distribution that have a gradient."""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.creation.creation import empty_like, zeros_like
from numgrad.ops.pointwise.arithmetic import add, neg, sub
from numgrad.ops.pointwise.division import div
from numgrad.ops.pointwise.exponential import log
from numgrad.ops.reduction.argreduce import argmax
from numgrad.ops.reduction.softmax import softmax
from numgrad.ops.signatures.declared import declare

__all__ = ["gumbel_softmax"]


@declare(
    "gumbel_softmax(Tensor logits, number tau=1, bool hard=False, float eps=1e-10, int dim=-1)",
    function=False,
    method=False,
)
def gumbel_softmax(logits: Tensor, tau: Any, hard: bool, eps: float, dim: int) -> Tensor:
    """Return softmax of (logits + Gumbel's noise) / tau, a relaxed sample of classes.

    Jang, Gu and Poole, arXiv 1611.01144. The gradient is that of softmax, for `hard` ones, too.

    Parameters
    ----------
    tau
        The lower, the nearer to 1 is one of the numbers.
    hard
        Return 1 for the greatest and 0 for the others.
    eps
        Deprecated, and without effect.

    >>> import numgrad as ng
    >>> ng.nn.functional.gumbel_softmax(ng.zeros(3, 4), hard=True).sum(1)
    tensor([1., 1., 1.])
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    noise = neg(log(empty_like(logits).detach().exponential_()))
    soft = softmax(div(add(logits, noise), tau), dim)
    if not hard:
        return soft
    chosen = argmax(soft, dim, True)
    ones = zeros_like(soft).detach().scatter_(dim, chosen, 1.0)
    return add(sub(ones, soft.detach()), soft)
