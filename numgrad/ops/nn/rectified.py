"""Activations that PyTorch has in its own namespace, too: selu, celu, prelu, rrelu, threshold.

Those of ``nn.functional`` by these names take ``inplace``, too.
"""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.nn import activations
from numgrad.ops.nn.activated import activated
from numgrad.ops.nn.piecewise import HARDSHRINK, PRELU
from numgrad.ops.nn.twice import declare_again, declare_in_place
from numgrad.ops.signatures.declared import declare

__all__ = [
    "celu",
    "celu_",
    "hardshrink",
    "prelu",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "threshold",
    "threshold_",
]

selu = declare_again(
    activations.selu,
    "selu(Tensor input)",
    dispatched=False,
    example="""
    >>> ng.selu(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.1113,  0.0000,  1.0507])""",
)
selu_ = declare_in_place(
    activations.selu,
    "selu_(Tensor input)",
    """
    >>> ng.selu_(ng.tensor([-1.0, 1.0]))
    tensor([-1.1113,  1.0507])""",
    public=True,
)
celu = declare_again(
    activations.celu,
    "celu(Tensor input, number alpha=1.0)",
    dispatched=False,
    example="""
    >>> ng.celu(ng.tensor([-1.0, 1.0]), 2.0)
    tensor([-0.7869,  1.0000])""",
)
celu_ = declare_in_place(
    activations.celu,
    "celu_(Tensor input, number alpha=1.0)",
    """
    >>> ng.celu_(ng.tensor([-1.0, 1.0]))
    tensor([-0.6321,  1.0000])""",
    public=True,
)
threshold = declare_again(
    activations.threshold,
    "threshold(Tensor input, number threshold, number value, *, Tensor? out=None)",
    dispatched=False,
    example="""
    >>> ng.threshold(ng.tensor([-1.0, 0.5, 1.0]), 0.5, 9.0)
    tensor([9., 9., 1.])""",
)
threshold_ = declare_in_place(
    activations.threshold,
    "threshold_(Tensor input, number threshold, number value)",
    """
    >>> ng.threshold_(ng.tensor([-1.0, 1.0]), 0.5, 9.0)
    tensor([9., 1.])""",
    public=True,
)
_RRELU = (
    "(Tensor input, number lower=0.125, number upper=0.3333333333333333, bool training=False, "
    "generator? generator=None)"
)
rrelu = declare_again(
    activations.rrelu,
    f"rrelu{_RRELU}",
    dispatched=False,
    example="""
    >>> ng.rrelu(ng.tensor([-8.0, 2.0]), 0.25, 0.5)
    tensor([-3.,  2.])""",
)
rrelu_ = declare_in_place(
    activations.rrelu,
    f"rrelu_{_RRELU}",
    """
    >>> ng.rrelu_(ng.tensor([-8.0, 2.0]), 0.25, 0.5)
    tensor([-3.,  2.])""",
    public=True,
)


@declare("hardshrink(Tensor input, number lambd=0.5, *, Tensor? out=None)", dispatched=True)
def hardshrink(input: Tensor, lambd: Any, out: Tensor | None) -> Tensor:
    """Return x where it is further than `lambd` from 0, else 0.

    Derivative: 1 there, else 0.

    >>> import numgrad as ng
    >>> ng.hardshrink(ng.tensor([-1.0, 0.5, 0.75]))
    tensor([-1.0000,  0.0000,  0.7500])
    """
    return activated(HARDSHRINK, input, lambd, out=out)


@declare("prelu(Tensor input, Tensor weight)", dispatched=True)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x where it is positive, else a part of it that is learned.

    Derivative: for x, g where it is positive, else g times the weight; for the weight, the sum of
    g x where x is not positive.

    Parameters
    ----------
    weight
        Of one element, or of one for each channel, which the second dim of the input counts.

    Raises
    ------
    RuntimeError
        If the weight is of another dtype than the input, or not of that length.

    >>> import numgrad as ng
    >>> ng.prelu(ng.tensor([[-4.0, -4.0]]), ng.tensor([0.25, 0.5]))
    tensor([[-1., -2.]])
    """
    if input._array.dtype != weight._array.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.scalar_name} and "
            f"{weight.dtype.scalar_name}"
        )
    shape, count = input._array.shape, weight._array.size
    if count != 1:
        if not shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = shape[1] if len(shape) > 1 else 1
        if channels != count:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{count} and channel size = {channels}."
            )
    if weight._array.ndim > 1:
        raise RuntimeError(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
            f"{weight._array.ndim}"
        )
    if len(shape) != weight._array.ndim:
        weight = weight.reshape((1, count, *[1] * len(shape))[: len(shape)])
    PRELU.check_dtype(input.dtype)
    result: Tensor = PRELU(input, weight)
    return result
