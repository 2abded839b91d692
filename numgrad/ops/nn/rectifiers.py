"""Rectifiers: relu and its like, as in ``nn.functional``."""

from __future__ import annotations

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.pointwise.activation import relu as plain_relu
from numgrad.ops.signatures.declared import declare

__all__ = ["relu", "relu_"]

relu_ = FUNCTIONS["relu_"]


@declare("relu(Tensor input, bool inplace=False)", function=False, method=False)
def relu(input: Tensor, inplace: bool) -> Tensor:
    """Return x where it is positive, else 0; with `inplace`, in the memory of the input.

    Derivative: 1 for positive x, else 0.

    >>> import numgrad as ng
    >>> x = ng.tensor([-1.0, 2.0])
    >>> ng.nn.functional.relu(x, inplace=True) is x
    True
    """
    result: Tensor = (relu_ if inplace else plain_relu)(input)
    return result
