"""Losses by margins: what is right is to be ahead of what is wrong by some distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.nn.distances import pairwise_distance
from numgrad.ops.nn.losses.reduced import OLD, reduced, reduction_of
from numgrad.ops.pointwise.activation import logsigmoid
from numgrad.ops.pointwise.exponential import sqrt
from numgrad.ops.pointwise.selection import clamp_min, minimum, where
from numgrad.ops.reduction.reductions import sum as sum_
from numgrad.ops.signatures.declared import declare

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

# --- signs ---------------------------------------------------------------------------------------


@declare(
    f"hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, {OLD})",
    function=False,
    method=False,
    dispatched=True,
)
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
) -> Tensor:
    """Return the mean of x where the target is 1, of margin - x, no less than 0, where it is -1.

    The gradient is 1, and -1 or 0, over the number of elements.

    Parameters
    ----------
    margin
        From where on x is far enough from 0 where the target is -1.

    >>> import numgrad as ng
    >>> ng.nn.functional.hinge_embedding_loss(ng.tensor([2.0, 0.5]), ng.tensor([1.0, -1.0]))
    tensor(1.2500)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    apart = where(target != 1, clamp_min(margin - input, 0), 0.0)
    near = where(target != -1, input, 0.0)
    return reduced(apart + near, reduction)


@declare(
    f"margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, {OLD})",
    function=False,
    method=False,
    dispatched=True,
)
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
) -> Tensor:
    """Return the mean of margin - t (x1 - x2), no less than 0: of which of two is to be first.

    The gradient for x1 is -t where the loss is not 0, over the number of elements.

    Parameters
    ----------
    margin
        How far one is to be in front of the other.

    Raises
    ------
    RuntimeError
        If they have not as many dims.

    >>> import numgrad as ng
    >>> x, y = ng.tensor([1.0, 2.0]), ng.tensor([3.0, 0.0])
    >>> ng.nn.functional.margin_ranking_loss(x, y, ng.ones(2))
    tensor(1.)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if not input1._array.ndim == input2._array.ndim == target._array.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced(clamp_min(-target * (input1 - input2) + margin, 0), reduction)


@declare(
    f"soft_margin_loss(Tensor input, Tensor target, {OLD})",
    function=False,
    method=False,
    dispatched=True,
)
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
) -> Tensor:
    """Return the mean of ln(1 + exp(-t x)), for targets 1 and -1; it does not overflow.

    The gradient is -t sigmoid(-t x), over the number of elements.

    >>> import numgrad as ng
    >>> ng.nn.functional.soft_margin_loss(ng.tensor([0.0, 800.0]), ng.tensor([1.0, -1.0]))
    tensor(400.3466)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    return reduced(-logsigmoid(input * target), reduction)


@declare(
    f"cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, {OLD})",
    function=False,
    method=False,
    dispatched=True,
)
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
) -> Tensor:
    """Return the mean of 1 - cos where the target is 1, of cos - margin, no less than 0, where -1.

    The gradient is that of the cosines of the angles between rows.

    Parameters
    ----------
    input1, input2 : tensors of shape (N, D) or (D,)
    target : tensor of shape (N,) or ()

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> x, y = ng.tensor([[1.0, 0.0]]), ng.tensor([[1.0, 1.0]])
    >>> ng.nn.functional.cosine_embedding_loss(x, y, ng.tensor([1.0]))
    tensor(0.2929)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    ndim, sizes = target._array.ndim, [list(each._array.shape) for each in (input1, input2)]
    if ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if any(len(each) != ndim + 1 for each in sizes):
        raise RuntimeError(
            f"{ndim}D target tensor expects {ndim + 1}D input tensors, but found inputs with sizes "
            f"{sizes[0]} and {sizes[1]}."
        )
    tiny = 1e-12
    squares = (sum_(input1 * input1, ndim) + tiny) * (sum_(input2 * input2, ndim) + tiny)
    cosines = sum_(input1 * input2, ndim) / sqrt(squares)
    near = where(target == 1, 1 - cosines, 0.0)
    apart = where(target == -1, clamp_min(cosines - margin, 0), 0.0)
    return reduced(near + apart, reduction)


# --- triplets ------------------------------------------------------------------------------------


def _triplets(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    dims = [each._array.ndim for each in (anchor, positive, negative)]
    if len({*dims}) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {dims[0]}D, positive {dims[1]}D, and negative "
            f"{dims[2]}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(clamp_min(margin + near - far, 0), reduction)


def _check_margin(margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


@declare(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, number margin=1.0, "
    f"float p=2.0, float eps=1e-6, bool swap=False, {OLD})",
    function=False,
    method=False,
    dispatched=True,
)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: Any,
    p: float,
    eps: float,
    swap: bool,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
) -> Tensor:
    """Return the mean of margin + d(a, p) - d(a, n), no less than 0: p is to be nearer than n.

    The gradient is that of the distances, where the loss is not 0.

    Parameters
    ----------
    p, eps
        The order of the distances, and what is added to differences; see `pairwise_distance`.
    swap
        Whether d(p, n) counts where that is less than d(a, n). Balntas and others, 2016.

    Raises
    ------
    ValueError
        If the margin is not positive.
    RuntimeError
        If they have not as many dims.

    >>> import numgrad as ng
    >>> a, p, n = ng.zeros(1, 2), ng.tensor([[3.0, 4.0]]), ng.tensor([[0.0, 2.0]])
    >>> ng.nn.functional.triplet_margin_loss(a, p, n)
    tensor(4.0000)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    _check_margin(margin)
    return _triplets(
        anchor,
        positive,
        negative,
        lambda first, second: pairwise_distance(first, second, p, eps),
        margin,
        swap,
        reduction,
    )


@declare(
    "triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, Tensor negative, *, "
    "object? distance_function=None, number margin=1.0, bool swap=False, str reduction='mean')",
    function=False,
    method=False,
)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance_function: Any,
    margin: Any,
    swap: bool,
    reduction: str,
) -> Tensor:
    """Return `triplet_margin_loss` by another distance, a function of two tensors.

    The gradient is that of the distances, where the loss is not 0.

    >>> import numgrad as ng
    >>> a, p, n = ng.zeros(2), ng.tensor([3.0, 4.0]), ng.tensor([0.0, 2.0])
    >>> ng.nn.functional.triplet_margin_with_distance_loss(
    ...     a, p, n, distance_function=lambda x, y: (x - y).abs().sum()
    ... )
    tensor(6.)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    _check_margin(margin)
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplets(anchor, positive, negative, distance, margin, swap, reduction)
