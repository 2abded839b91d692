"""Distances and angles of rows: pairwise_distance, cosine_similarity, normalize."""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.movement.unit_dims import broadcast_tensors, expand_as
from numgrad.ops.pointwise.division import div
from numgrad.ops.pointwise.selection import clamp_min
from numgrad.ops.reduction.norms import norm
from numgrad.ops.reduction.reductions import sum as sum_
from numgrad.ops.signatures.declared import declare

__all__ = ["cosine_similarity", "normalize", "pairwise_distance"]


@declare(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-6, bool keepdim=False)",
    method=False,
    dispatched=True,
)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    """Return the norms of x1 - x2 + eps along the last dim.

    The gradient is that of `norm`.

    Parameters
    ----------
    p
        The order of the norm.
    eps
        What is added so that there is a gradient where the two are equal.

    >>> import numgrad as ng
    >>> ng.pairwise_distance(ng.tensor([[3.0, 4.0]]), ng.zeros(1, 2))
    tensor([5.0000])
    """
    result: Tensor = norm(x1 - x2 + eps, p, max(x1._array.ndim, x2._array.ndim) - 1, keepdim)
    return result


@declare(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-8)",
    method=False,
    dispatched=True,
)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    """Return the cosines of the angles between two tensors along a dim.

    They are the products divided by both norms, none of which counts as less than `eps`. The
    gradient for x1 is x2/(norms) minus the part of it along x1.

    Raises
    ------
    RuntimeError
        If neither is floating point, or `eps` is negative or nan.

    >>> import numgrad as ng
    >>> ng.cosine_similarity(ng.tensor([[1.0, 1.0]]), ng.tensor([[0.0, 2.0]]))
    tensor([0.7071])
    """
    if not eps >= 0:  # or nan
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    common = result_dtype([x1, x2])
    if not common.is_floating_point:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {common.scalar_name}"
        )
    x1, x2 = broadcast_tensors(x1.to(common), x2.to(common))
    rows = []
    for each in (x1, x2):
        length = norm(each, 2.0, dim, True)
        # No less than eps, with the gradient of what it was.
        held = length + (clamp_min(length.detach(), eps) - length.detach())
        rows.append(each / held)
    result: Tensor = sum_(rows[0] * rows[1], dim)
    return result


@declare(
    "normalize(Tensor input, float p=2.0, int dim=1, float eps=1e-12, Tensor? out=None)",
    dispatched=True,
    function=False,
    method=False,
)
def normalize(input: Tensor, p: float, dim: int, eps: float, out: Any) -> Tensor:
    """Return the input divided by its norms along a dim, none of which counts as less than `eps`.

    The gradient is (g - y sum(g y)) over the norm, for norms of order 2.

    Parameters
    ----------
    p
        The order of the norm.
    out
        Where to write the result.

    >>> import numgrad as ng
    >>> ng.nn.functional.normalize(ng.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    lengths = expand_as(clamp_min(norm(input, p, dim, True), eps), input)
    result: Tensor = div(input, lengths, out=out)
    return result
