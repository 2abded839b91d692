"""The cross entropy of a linear map: linear_cross_entropy."""

from __future__ import annotations

import math

from numgrad.graph.tensor import Tensor
from numgrad.ops.movement.shape import reshape
from numgrad.ops.nn.layers import linear
from numgrad.ops.nn.losses.classes import cross_entropy
from numgrad.ops.signatures.declared import declare

__all__ = ["linear_cross_entropy"]


def _check(input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> tuple[int, ...]:
    """Return the shape of the logits; raise unless the map fits the input."""
    rows, weights = input._array.shape, linear_weight._array.shape
    if not 1 <= len(rows) <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {len(rows)}")
    if len(weights) < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {len(weights)}"
        )
    if rows[-1] != weights[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{rows[-1]} and {weights[-1]}, respectively"
        )
    outputs = weights[:-1]
    if linear_bias is not None and linear_bias._array.shape != outputs:
        raise RuntimeError(f"expected linear_bias shape {outputs}, got {linear_bias._array.shape}")
    if len(outputs) > 1 and len(rows) == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {weights} requires batched input, "
            f"(N, {rows[-1]}), got unbatched input with shape {rows}"
        )
    return (*rows[:-1], *outputs)


@declare(
    "linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, *, "
    "Tensor? linear_bias=None, Tensor? weight=None, str reduction='mean', "
    "int? ignore_index=None, float label_smoothing=0.0)",
    function=False,
    method=False,
)
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int | None,
    label_smoothing: float,
) -> Tensor:
    """Return the `cross_entropy` of ``linear(input, linear_weight, linear_bias)``.

    The gradients are those of the two, one after the other. PyTorch's `options`, which say in how
    many parts it computes the loss, are not here: the logits are made in one piece.

    Parameters
    ----------
    input : tensor of shape (N, m) or (m,)
    linear_weight : tensor of shape (C, m), or (C, d1, ..., m) for a loss of several dims
    target
        As of `cross_entropy`: classes, of shape (N,), () or (N, d1, ...), or probabilities of the
        logits' shape.
    linear_bias : tensor of shape (C,) or (C, d1, ...), optional
    weight, reduction, label_smoothing
        As of `cross_entropy`.
    ignore_index
        What stands for no class, and counts nothing: -100 unless given.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or there is an `ignore_index` for probabilities.
    IndexError, ValueError
        As `cross_entropy` does.

    >>> import numgrad as ng
    >>> x, weight = ng.tensor([[1.0, 2.0]]), ng.tensor([[1.0, 0.0], [0.0, 0.5]])
    >>> ng.nn.functional.linear_cross_entropy(x, weight, ng.tensor([0]))
    tensor(0.6931)
    """
    shape = _check(input, linear_weight, linear_bias)
    if target._array.shape == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    outputs = linear_weight._array.shape[:-1]
    if len(outputs) > 1:
        count = math.prod(outputs)
        linear_weight = reshape(linear_weight, (count, linear_weight._array.shape[-1]))
        linear_bias = None if linear_bias is None else reshape(linear_bias, (count,))
    logits = reshape(linear(input, linear_weight, linear_bias), shape)
    return cross_entropy(
        logits,
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
