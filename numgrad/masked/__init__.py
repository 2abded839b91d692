"""Reductions, scans and softmax of the elements that a mask names, as ``torch.masked``.

The mask is True where an element counts. It expands to the input's shape, and gradients are 0
where it is False.

>>> import numgrad as ng
>>> x = ng.tensor([[3.0, 9.0], [4.0, 5.0]], requires_grad=True)
>>> mean = ng.masked.mean(x, 1, mask=ng.tensor([[True, False], [True, True]]))
>>> mean.detach()
tensor([3.0000, 4.5000])
>>> mean.sum().backward()
>>> x.grad
tensor([[1.0000, 0.0000],
        [0.5000, 0.5000]])
"""

from numgrad.ops.masked.moments import mean, std, var
from numgrad.ops.masked.reductions import (
    amax,
    amin,
    argmax,
    argmin,
    logsumexp,
    median,
    norm,
    prod,
    sum,
)
from numgrad.ops.masked.rows import (
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    normalize,
    softmax,
    softmin,
)

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]
