"""Activations of single elements, as in ``nn.functional``: most may write to their input."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.creation.creation import empty_like
from numgrad.ops.creation.generator import Generator
from numgrad.ops.movement.slicing import narrow
from numgrad.ops.mutation.inplace import perform
from numgrad.ops.nn.activated import activated
from numgrad.ops.nn.piecewise import (
    HARDSIGMOID,
    HARDSWISH,
    HARDTANH,
    LEAKY_RELU,
    SOFTSHRINK,
    THRESHOLD,
)
from numgrad.ops.nn.smooth import CELU, ELU, GELU, GELU_TANH, MISH, SILU
from numgrad.ops.nn.twice import declare_in_place
from numgrad.ops.pointwise.activation import relu as plain_relu
from numgrad.ops.pointwise.activation import sigmoid
from numgrad.ops.pointwise.arithmetic import add, mul, sub
from numgrad.ops.pointwise.complex import absolute
from numgrad.ops.pointwise.division import div
from numgrad.ops.pointwise.selection import where
from numgrad.ops.pointwise.trigonometric import tanh
from numgrad.ops.signatures.declared import declare

__all__ = [
    "celu",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "mish",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "selu",
    "silu",
    "softshrink",
    "softsign",
    "tanhshrink",
    "threshold",
]

relu_ = FUNCTIONS["relu_"]
# Klambauer and others, "Self-normalizing neural networks", 2017: with these, outputs keep mean 0
# and variance 1.
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


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


@declare("relu6(Tensor input, bool inplace=False)", function=False, method=False, dispatched=True)
def relu6(input: Tensor, inplace: bool) -> Tensor:
    """Return x, but no less than 0 and no more than 6.

    Derivative: 1 between them, 0 elsewhere and at both.

    >>> import numgrad as ng
    >>> ng.nn.functional.relu6(ng.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """
    return activated(HARDTANH, input, 0.0, 6.0, inplace=inplace)


@declare(
    "hardtanh(Tensor input, number min_val=-1.0, number max_val=1.0, bool inplace=False)",
    function=False,
    method=False,
    dispatched=True,
)
def hardtanh(input: Tensor, min_val: Any, max_val: Any, inplace: bool) -> Tensor:
    """Return x, but no less than `min_val` and no more than `max_val`.

    Derivative: 1 between them, 0 elsewhere and at both.

    Raises
    ------
    ValueError
        If `min_val` is greater than `max_val`.

    >>> import numgrad as ng
    >>> ng.nn.functional.hardtanh(ng.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if input._array.dtype.kind == "u" and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return activated(HARDTANH, input, min_val, max_val, inplace=inplace)


hardtanh_ = declare_in_place(
    hardtanh,
    "hardtanh_(Tensor input, number min_val=-1.0, number max_val=1.0)",
    """
    >>> ng.nn.functional.hardtanh_(ng.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])""",
)


@declare(
    "leaky_relu(Tensor input, number negative_slope=0.01, bool inplace=False)",
    function=False,
    method=False,
    dispatched=True,
)
def leaky_relu(input: Tensor, negative_slope: Any, inplace: bool) -> Tensor:
    """Return x where it is positive, else `negative_slope` times x.

    Derivative: 1 for positive x, else the slope.

    >>> import numgrad as ng
    >>> ng.nn.functional.leaky_relu(ng.tensor([-4.0, 2.0]), 0.25)
    tensor([-1.,  2.])
    """
    return activated(LEAKY_RELU, input, negative_slope, inplace=inplace)


leaky_relu_ = declare_in_place(
    leaky_relu,
    "leaky_relu_(Tensor input, number negative_slope=0.01)",
    """
    >>> ng.nn.functional.leaky_relu_(ng.tensor([-4.0, 2.0]), 0.25)
    tensor([-1.,  2.])""",
)


@declare(
    "elu(Tensor input, number alpha=1.0, bool inplace=False)",
    function=False,
    method=False,
    dispatched=True,
)
def elu(input: Tensor, alpha: Any, inplace: bool) -> Tensor:
    """Return x where it is positive, else alpha (e**x - 1).

    Derivative: 1 for positive x, else alpha e**x.

    >>> import numgrad as ng
    >>> ng.nn.functional.elu(ng.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return activated(ELU, input, alpha, 1.0, 1.0, inplace=inplace)


elu_ = declare_in_place(
    elu,
    "elu_(Tensor input, number alpha=1.0)",
    """
    >>> ng.nn.functional.elu_(ng.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])""",
)


@declare("selu(Tensor input, bool inplace=False)", function=False, method=False, dispatched=True)
def selu(input: Tensor, inplace: bool) -> Tensor:
    """Return 1.0507 x where x is positive, else 1.0507 * 1.6733 (e**x - 1).

    Derivative: 1.0507 for positive x, else 1.0507 * 1.6733 e**x.

    >>> import numgrad as ng
    >>> ng.nn.functional.selu(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.1113,  0.0000,  1.0507])
    """
    return activated(ELU, input, _SELU_ALPHA, _SELU_SCALE, 1.0, inplace=inplace)


@declare(
    "celu(Tensor input, number alpha=1.0, bool inplace=False)",
    function=False,
    method=False,
    dispatched=True,
)
def celu(input: Tensor, alpha: Any, inplace: bool) -> Tensor:
    """Return x where it is positive, else alpha (e**(x / alpha) - 1): smooth, as elu need not be.

    Derivative: 1 for positive x, else e**(x / alpha).

    >>> import numgrad as ng
    >>> ng.nn.functional.celu(ng.tensor([-1.0, 1.0]), 2.0)
    tensor([-0.7869,  1.0000])
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return activated(CELU, input, alpha, inplace=inplace)


@declare(
    "threshold(Tensor input, number threshold, number value, bool inplace=False)",
    function=False,
    method=False,
    dispatched=True,
)
def threshold(
    input: Tensor, threshold: Any, value: Any, inplace: bool, out: Tensor | None
) -> Tensor:
    """Return x where it is above a threshold, else a value.

    Derivative: 1 above the threshold, else 0.

    >>> import numgrad as ng
    >>> ng.nn.functional.threshold(ng.tensor([-1.0, 0.5, 1.0]), 0.5, 9.0)
    tensor([9., 9., 1.])
    """
    return activated(THRESHOLD, input, threshold, value, inplace=inplace, out=out)


@declare(
    "rrelu(Tensor input, number lower=0.125, number upper=0.3333333333333333, "
    "bool training=False, bool inplace=False)",
    function=False,
    method=False,
)
def rrelu(
    input: Tensor,
    lower: Any,
    upper: Any,
    training: bool,
    inplace: bool,
    generator: Generator | None,
) -> Tensor:
    """Return x where it is positive, else a part of it that is drawn between `lower` and `upper`.

    Not in training that part is the mean of the two. Derivative: 1 for positive x, else that part.

    Raises
    ------
    RuntimeError
        If `lower` is greater than `upper`.

    >>> import numgrad as ng
    >>> ng.nn.functional.rrelu(ng.tensor([-8.0, 2.0]), 0.25, 0.5)
    tensor([-3.,  2.])
    """
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


@declare("silu(Tensor input, bool inplace=False)", function=False, method=False, dispatched=True)
def silu(input: Tensor, inplace: bool) -> Tensor:
    """Return x sigmoid(x), also known as swish.

    Derivative: s (1 + x (1 - s)), where s is sigmoid(x).

    Raises
    ------
    RuntimeError
        If a gradient of complex numbers is wanted, for which PyTorch has none.

    >>> import numgrad as ng
    >>> ng.nn.functional.silu(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    if input.dtype.is_complex and modes.grad and input.requires_grad and not inplace:
        raise RuntimeError(
            "silu does not support automatic differentiation for outputs with complex dtype."
        )
    return activated(SILU, input, inplace=inplace)


@declare("mish(Tensor input, bool inplace=False)", function=False, method=False, dispatched=True)
def mish(input: Tensor, inplace: bool) -> Tensor:
    """Return x tanh(softplus(x)).

    Derivative: t + x sigmoid(x) (1 - t**2), where t is that tanh. Misra, arXiv 1908.08681.

    >>> import numgrad as ng
    >>> ng.nn.functional.mish(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.3034,  0.0000,  0.8651])
    """
    return activated(MISH, input, inplace=inplace)


@declare(
    "hardswish(Tensor input, bool inplace=False)", function=False, method=False, dispatched=True
)
def hardswish(input: Tensor, inplace: bool) -> Tensor:
    """Return x `hardsigmoid`(x).

    Derivative: x/3 + 1/2 between -3 and 3, 0 below, 1 above. Howard and others, arXiv 1905.02244.

    >>> import numgrad as ng
    >>> ng.nn.functional.hardswish(ng.tensor([0.0, 1.5, 4.0]))
    tensor([0.0000, 1.1250, 4.0000])
    """
    return activated(HARDSWISH, input, inplace=inplace)


@declare(
    "hardsigmoid(Tensor input, bool inplace=False)", function=False, method=False, dispatched=True
)
def hardsigmoid(input: Tensor, inplace: bool) -> Tensor:
    """Return x/6 + 1/2, but no less than 0 and no more than 1.

    Derivative: 1/6 between -3 and 3, 0 elsewhere and at both.

    >>> import numgrad as ng
    >>> ng.nn.functional.hardsigmoid(ng.tensor([-3.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    return activated(HARDSIGMOID, input, inplace=inplace)


@declare(
    "gelu(Tensor input, *, str approximate='none', Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def gelu(input: Tensor, approximate: str) -> Tensor:
    """Return x Phi(x), Phi being the distribution function of the standard normal one.

    Derivative: Phi(x) + x phi(x), phi being its density. Hendrycks and Gimpel, arXiv 1606.08415.

    Parameters
    ----------
    approximate
        With ``"tanh"`` it is x (1 + tanh(sqrt(2/pi) (x + 0.044715 x**3))) / 2.

    >>> import numgrad as ng
    >>> ng.nn.functional.gelu(ng.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return activated(GELU if approximate == "none" else GELU_TANH, input)


@declare(
    "softshrink(Tensor input, number lambd=0.5, *, Tensor? out=None)",
    function=False,
    method=False,
    dispatched=True,
)
def softshrink(input: Tensor, lambd: Any) -> Tensor:
    """Return x moved towards 0 by `lambd`, and 0 where it would be beyond.

    Derivative: 1 further than that from 0, else 0.

    Raises
    ------
    RuntimeError
        If `lambd` is negative.

    >>> import numgrad as ng
    >>> ng.nn.functional.softshrink(ng.tensor([-1.0, 0.25, 1.0]))
    tensor([-0.5000,  0.0000,  0.5000])
    """
    SOFTSHRINK.check_dtype(input.dtype)
    limit = float(np.finfo(input._array.dtype).max)
    if not 0 <= lambd <= limit:
        raise RuntimeError(
            f"lambda must be in range [0, {limit:g}] for input dtype {input.dtype.scalar_name}, "
            f"but found {lambd:g}"
        )
    return activated(SOFTSHRINK, input, lambd)


@declare("tanhshrink(Tensor input)", function=False, method=False, dispatched=True)
def tanhshrink(input: Tensor) -> Tensor:
    """Return x - tanh(x).

    Derivative: tanh(x)**2.

    >>> import numgrad as ng
    >>> ng.nn.functional.tanhshrink(ng.tensor([-1.0, 1.0]))
    tensor([-0.2384,  0.2384])
    """
    return sub(input, tanh(input))


@declare("softsign(Tensor input)", function=False, method=False, dispatched=True)
def softsign(input: Tensor) -> Tensor:
    """Return x / (1 + |x|).

    Derivative: 1 / (1 + |x|)**2.

    >>> import numgrad as ng
    >>> ng.nn.functional.softsign(ng.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return div(input, add(absolute(input), 1))


@declare("glu(Tensor input, int dim=-1)", function=False, method=False, dispatched=True)
def glu(input: Tensor, dim: int) -> Tensor:
    """Return the first half of the input times sigmoid of the second, along a dim.

    Derivatives: g s, and g a s (1 - s), where a is the first half and s that sigmoid.

    Raises
    ------
    RuntimeError
        If the length of the dim is odd, or there is none.

    >>> import numgrad as ng
    >>> ng.nn.functional.glu(ng.tensor([1.0, 4.0, 0.0, 0.0]))
    tensor([0.5000, 2.0000])
    """
    if not input._array.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    position = wrap_dim(dim, input._array.ndim)
    length = input._array.shape[position]
    if length % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {position} is size {length}"
        )
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"glu_cpu\" not implemented for '{input.dtype.scalar_name}'")
    half = length // 2
    return mul(narrow(input, position, 0, half), sigmoid(narrow(input, position, half, half)))
