"""What losses have in common: the mean or the sum of their elements, or neither."""

from __future__ import annotations

from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.ops.reduction.reductions import mean
from numgrad.ops.reduction.reductions import sum as sum_

__all__ = ["OLD", "reduced", "reduction_of"]

# What said it before `reduction` did.
OLD = "bool? size_average=None, bool? reduce=None, str reduction='mean'"


def reduction_of(
    reduction: str, size_average: bool | None = None, reduce: bool | None = None
) -> str:
    """Return ``none``, ``mean`` or ``sum``; the old arguments, if given, decide and are warned of.

    Raises
    ------
    ValueError
        If it is another word.
    """
    if size_average is not None or reduce is not None:
        if reduce is False:
            reduction = "none"
        else:
            reduction = "sum" if size_average is False else "mean"
        warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead."
        )
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
        reduction = "mean"
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """Return the mean or the sum of all elements, or the elements."""
    if reduction == "none":
        return loss
    result: Tensor = mean(loss) if reduction == "mean" else sum_(loss)
    return result
