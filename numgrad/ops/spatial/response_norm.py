"""Normalisation by what neighbouring channels have: local_response_norm."""

from __future__ import annotations

import math
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.movement.padding import constant_pad_nd
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.pooling import POOLS

__all__ = ["local_response_norm"]


@declare(
    "local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0)",
    function=False,
    method=False,
    dispatched=True,
)
def local_response_norm(input: Tensor, size: int, alpha: float, beta: float, k: float) -> Tensor:
    """Return the input over (k + alpha m)^beta, m being the mean of squares of channels around.

    A. Krizhevsky, I. Sutskever and G. Hinton, "ImageNet classification with deep convolutional
    neural networks" (2012). The gradient follows from what it is made of.

    Parameters
    ----------
    input : tensor of shape (n, channels, ...)
    size
        How many channels a mean is over.
    alpha, beta, k
        See above.

    Raises
    ------
    ValueError
        If the input has fewer than three dims.

    >>> import numgrad as ng
    >>> ng.nn.functional.local_response_norm(ng.ones(1, 2, 1), 1, alpha=3.0, beta=0.5)
    tensor([[[0.5000],
             [0.5000]]])
    """
    shape = input._array.shape
    if len(shape) < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality                          input (got "
            f"{len(shape)} dimensions)"
        )
    if not input._array.size:
        return input
    squares: Any = unsqueeze(input * input, 1)
    before, behind = size // 2, (size - 1) // 2
    if len(shape) == 3:
        padded = constant_pad_nd(squares, (0, 0, before, behind))
        means = squeeze(POOLS["avg_pool2d"](padded, (size, 1), stride=1), 1)
    else:
        squares = reshape(squares, (shape[0], 1, shape[1], shape[2], math.prod(shape[3:])))
        padded = constant_pad_nd(squares, (0, 0, 0, 0, before, behind))
        means = squeeze(POOLS["avg_pool3d"](padded, (size, 1, 1), stride=1), 1)
        means = reshape(means, shape)
    result: Tensor = input / (means * alpha + k) ** beta
    return result
