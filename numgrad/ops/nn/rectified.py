"""Activations that PyTorch has in its own namespace, too: selu, celu, prelu, rrelu, threshold.

Those of ``nn.functional`` by these names take ``inplace``, too.
"""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.creation.creation import empty_like
from numgrad.ops.creation.generator import Generator
from numgrad.ops.mutation.inplace import perform
from numgrad.ops.nn.activated import activated
from numgrad.ops.nn.piecewise import HARDSHRINK, LEAKY_RELU, PRELU, THRESHOLD
from numgrad.ops.nn.smooth import CELU, ELU
from numgrad.ops.pointwise.arithmetic import mul
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare

__all__ = [
    "celu",
    "celu_",
    "hardshrink",
    "noisy",
    "prelu",
    "rrelu",
    "rrelu_",
    "scaled",
    "selu",
    "selu_",
    "threshold",
    "threshold_",
]

# Klambauer and others, "Self-normalizing neural networks", 2017: with these, outputs keep mean 0
# and variance 1.
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def scaled(input: Tensor, inplace: bool = False) -> Tensor:
    """Return selu of a tensor."""
    return activated(ELU, input, _SELU_ALPHA, _SELU_SCALE, 1.0, inplace=inplace)


@declare("selu(Tensor input)", method=False)
def selu(input: Tensor) -> Tensor:
    """Return 1.0507 x where x is positive, else 1.0507 * 1.6733 (e**x - 1).

    Derivative: 1.0507 for positive x, else 1.0507 * 1.6733 e**x.

    >>> import numgrad as ng
    >>> ng.selu(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.1113,  0.0000,  1.0507])
    """
    return scaled(input)


@declare("selu_(Tensor input)", method=False)
def selu_(input: Tensor) -> Tensor:
    """Write `selu` of the input into it, and return it.

    >>> import numgrad as ng
    >>> ng.selu_(ng.tensor([-1.0, 1.0]))
    tensor([-1.1113,  1.0507])
    """
    return scaled(input, True)


def _check_alpha(alpha: Any) -> None:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")


@declare("celu(Tensor input, number alpha=1.0)", method=False)
def celu(input: Tensor, alpha: Any) -> Tensor:
    """Return x where it is positive, else alpha (e**(x / alpha) - 1): smooth, as elu need not be.

    Derivative: 1 for positive x, else e**(x / alpha).

    >>> import numgrad as ng
    >>> ng.celu(ng.tensor([-1.0, 1.0]), 2.0)
    tensor([-0.7869,  1.0000])
    """
    _check_alpha(alpha)
    return activated(CELU, input, alpha)


@declare("celu_(Tensor input, number alpha=1.0)", method=False)
def celu_(input: Tensor, alpha: Any) -> Tensor:
    """Write `celu` of the input into it, and return it.

    >>> import numgrad as ng
    >>> ng.celu_(ng.tensor([-1.0, 1.0]))
    tensor([-0.6321,  1.0000])
    """
    _check_alpha(alpha)
    return activated(CELU, input, alpha, inplace=True)


@declare(
    "threshold(Tensor input, number threshold, number value, *, Tensor? out=None)", method=False
)
def threshold(input: Tensor, threshold: Any, value: Any, out: Tensor | None) -> Tensor:
    """Return x where it is above a threshold, else a value.

    Derivative: 1 above the threshold, else 0.

    >>> import numgrad as ng
    >>> ng.threshold(ng.tensor([-1.0, 0.5, 1.0]), 0.5, 9.0)
    tensor([9., 9., 1.])
    """
    return activated(THRESHOLD, input, threshold, value, out=out)


@declare("threshold_(Tensor input, number threshold, number value)", method=False)
def threshold_(input: Tensor, threshold: Any, value: Any) -> Tensor:
    """Write `threshold` of the input into it, and return it.

    >>> import numgrad as ng
    >>> ng.threshold_(ng.tensor([-1.0, 1.0]), 0.5, 9.0)
    tensor([9., 1.])
    """
    return activated(THRESHOLD, input, threshold, value, inplace=True)


@declare("hardshrink(Tensor input, number lambd=0.5, *, Tensor? out=None)")
def hardshrink(input: Tensor, lambd: Any, out: Tensor | None) -> Tensor:
    """Return x where it is further than `lambd` from 0, else 0.

    Derivative: 1 there, else 0.

    >>> import numgrad as ng
    >>> ng.hardshrink(ng.tensor([-1.0, 0.5, 0.75]))
    tensor([-1.0000,  0.0000,  0.7500])
    """
    return activated(HARDSHRINK, input, lambd, out=out)


@declare("prelu(Tensor input, Tensor weight)")
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


# --- rrelu ---------------------------------------------------------------------------------------


def noisy(
    input: Tensor,
    lower: Any,
    upper: Any,
    training: bool,
    generator: Generator | None,
    inplace: bool = False,
) -> Tensor:
    """Return rrelu of a tensor."""
    lower, upper = lower.real, upper.real
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return activated(LEAKY_RELU, input, (lower + upper) / 2, inplace=inplace)
    if not input.dtype.is_floating_point:
        raise NotImplementedError(
            f"\"rrelu_with_noise_out_cpu\" not implemented for '{input.dtype.scalar_name}'"
        )
    slopes = empty_like(input).detach().uniform_(lower, upper, generator=generator)

    def function(stand_in: Tensor) -> Tensor:
        return mul(stand_in, where(stand_in.detach() <= 0, slopes, 1.0))

    return perform(function, "rrelu", input) if inplace else function(input)


_RRELU = (
    "(Tensor input, number lower=0.125, number upper=0.3333333333333333, bool training=False, "
    "generator? generator=None)"
)


@declare(f"rrelu{_RRELU}", method=False)
def rrelu(
    input: Tensor, lower: Any, upper: Any, training: bool, generator: Generator | None
) -> Tensor:
    """Return x where it is positive, else a part of it that is drawn between `lower` and `upper`.

    Not in training that part is the mean of the two. Derivative: 1 for positive x, else that part.

    Raises
    ------
    RuntimeError
        If `lower` is greater than `upper`.

    >>> import numgrad as ng
    >>> ng.rrelu(ng.tensor([-8.0, 2.0]), 0.25, 0.5)
    tensor([-3.,  2.])
    """
    return noisy(input, lower, upper, training, generator)


@declare(f"rrelu_{_RRELU}", method=False)
def rrelu_(
    input: Tensor, lower: Any, upper: Any, training: bool, generator: Generator | None
) -> Tensor:
    """Write `rrelu` of the input into it, and return it.

    >>> import numgrad as ng
    >>> ng.rrelu_(ng.tensor([-8.0, 2.0]), 0.25, 0.5)
    tensor([-3.,  2.])
    """
    return noisy(input, lower, upper, training, generator, True)
