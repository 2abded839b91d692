"""Variances and standard deviations, with their means."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.graph.warned import warn
from numgrad.kernels.reduce import moments as kernels
from numgrad.ops.arguments.factories import checked_number
from numgrad.ops.arguments.reductions import reduced_dims
from numgrad.ops.calls.steps import forget_steps
from numgrad.ops.core.places import laid_out
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.samples import sample
from numgrad.ops.pointwise.arithmetic import add, mul, sub
from numgrad.ops.pointwise.comparison import eq
from numgrad.ops.pointwise.division import div
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction.reductions import mean, restore_dims, spread
from numgrad.ops.signatures.declared import declare

__all__ = ["std", "std_mean", "var", "var_mean"]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _var_rule(
    g: Tensor, input: Tensor, dims: Dims, keepdim: bool, correction: float, named: bool
) -> Tensor:
    """Return 2 g (x - mean) / (n - correction).

    Without degrees of freedom, PyTorch's gradient is infinite where no dims were named (nan at the
    mean), and is what the formula gives where they were.
    """
    shape = input._array.shape
    degrees = math.prod([shape[dim] for dim in dims]) - correction
    g = restore_dims(g, shape, dims, keepdim)
    average = mean(input, dims or None, True)
    if degrees <= 0 and not named:
        return mul(g, where(eq(input, average), math.nan, math.inf))
    factor = math.inf if degrees == 0 else 2.0 / degrees
    return mul(mul(g, factor), sub(input, average))


def _std_cotangent(g: Tensor, y: Tensor) -> Tensor:
    """Return the cotangent of the variance: g / (2 y), 0 where y is."""
    ratio = div(g, mul(y, 2))
    return laid_out(where(eq(y, 0), 0, ratio), ratio)


def _std_rule(
    g: Tensor, y: Tensor, input: Tensor, dims: Dims, keepdim: bool, correction: float, named: bool
) -> Tensor:
    return _var_rule(_std_cotangent(g, y), input, dims, keepdim, correction, named)


def _add_mean(
    part: Tensor | None, g: Tensor | None, shape: tuple[int, ...], dims: Dims, keepdim: bool
) -> Tensor | None:
    """Return the gradient through the variance plus that through the mean; None where none came."""
    if g is None:
        return part
    count = math.prod([shape[dim] for dim in dims])
    through_mean = spread(div(g, count) if count else g, shape, dims, keepdim)
    return through_mean if part is None else add(part, through_mean)


def _var_mean_rule(
    g: list[Tensor | None], input: Tensor, dims: Dims, keepdim: bool, correction: float, named: bool
) -> Tensor | None:
    part = None if g[0] is None else _var_rule(g[0], input, dims, keepdim, correction, named)
    return _add_mean(part, g[1], input._array.shape, dims, keepdim)


def _std_mean_rule(
    g: list[Tensor | None],
    deviation: Tensor,
    input: Tensor,
    dims: Dims,
    keepdim: bool,
    correction: float,
    named: bool,
) -> Tensor | None:
    cotangent = None if g[0] is None else _std_cotangent(g[0], deviation)
    return _var_mean_rule([cotangent, g[1]], input, dims, keepdim, correction, named)


def _std_mean(array: Array, dims: Dims, keepdim: bool, correction: float) -> tuple[Array, Array]:
    variance, average = kernels.var_mean(array, dims, keepdim, correction)
    return np.sqrt(variance, out=variance), average


def _quick_var(
    array: Array,
    dims: Dims,
    keepdim: bool,
    correction: float,
    named: bool,
    *,
    root: bool,
    mean: bool,
) -> Any:
    return kernels.specialised_var(
        array.shape, array.dtype, dims, keepdim, correction, root=root, mean=mean
    )


def _declare(name: str, kernel: Any, rule: Any, outputs: tuple[str, ...] = ("y",)) -> Primitive:
    def forward(array: Array, dims: Dims, keepdim: bool, correction: float, named: bool) -> Any:
        return kernel(array, dims, keepdim, correction)  # `named` matters to the rule alone

    return Primitive(
        name,
        f"{name.title().replace('_', '')}Backward0",
        forward,
        ["input"],
        [rule],
        outputs=outputs,
        few=partial(_quick_var, root=name.startswith("std"), mean=len(outputs) > 1),
        samples=[
            sample(name, (2, 3)),
            sample(name, (2, 3), dim=1),
            sample(name, (2, 3, 4), dim=(0, -1), correction=0, keepdim=True),
            sample(name, (4,), correction=1.5),
            sample(name, (3, 0), dim=0, correction=-1),
        ],
    )


_VAR = _declare("var", kernels.var, _var_rule)
_STD = _declare("std", kernels.std, _std_rule)
_VAR_MEAN = _declare("var_mean", kernels.var_mean, _var_mean_rule, ("variance", "average"))
_STD_MEAN = _declare("std_mean", _std_mean, _std_mean_rule, ("deviation", "average"))


def _call(
    primitive: Primitive,
    input: Tensor,
    dim: tuple[int, ...] | None,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
) -> Any:
    if correction is None:
        correction = 0 if unbiased is False else 1
    name, array, dims = primitive.name, input._array, reduced_dims(input, dim)
    if array.dtype.kind not in "fc":
        names = name if name.endswith("mean") else "std and var"
        raise RuntimeError(f"{names} only support floating point and complex dtypes")
    if isinstance(correction, complex):
        correction = float(checked_number(correction, dtypes.float64))
    count = math.prod([array.shape[i] for i in dims]) if array.size else 0
    if count <= correction:
        forget_steps()
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "reduction factor (input numel divided by output numel)."
        )
    parameters: dict[str, Any] = {
        "dims": dims,
        "keepdim": keepdim,
        "correction": correction,
        "named": bool(dim) and array.ndim > 0,
    }
    return primitive.apply(input, **parameters)


@declare(
    "var(Tensor input, int[1]? dim, bool unbiased=ABSENT, bool keepdim=False, *, Tensor? out=None)",
    "var(Tensor input, int[1]? dim=None, *, number? correction=None, bool keepdim=False, "
    "Tensor? out=None)",
    "var(Tensor input, bool unbiased=ABSENT)",
    dispatched=True,
)
def var(
    input: Tensor,
    dim: tuple[int, ...] | None,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
) -> Tensor:
    """Return the variance over all dims, or some.

    It is the sum of squared distances from the mean over ``n - correction``. The gradient is
    2 g (x - mean) / (n - correction). Mirrors ``torch.var``.

    Parameters
    ----------
    input
        Floating point or complex; the result is real.
    dim
        What to reduce; None or no dims at all: everything.
    unbiased
        True stands for a correction of 1, False for 0; it may stand in the place of `dim`.
    correction
        What to take off the number of elements; 1 unless given.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice; if the elements are integers or bools.
    TypeError
        If both `unbiased` and `correction` are given.

    >>> import numgrad as ng
    >>> ng.var(ng.tensor([[1.0, 3.0], [2.0, 2.0]]), 1)
    tensor([2., 0.])
    """
    result: Tensor = _call(_VAR, input, dim, unbiased, keepdim, correction)
    return result


@declare(
    "std(Tensor input, int[1]? dim, bool unbiased=ABSENT, bool keepdim=False, *, Tensor? out=None)",
    "std(Tensor input, int[1]? dim=None, *, number? correction=None, bool keepdim=False, "
    "Tensor? out=None)",
    "std(Tensor input, bool unbiased=ABSENT)",
    dispatched=True,
)
def std(
    input: Tensor,
    dim: tuple[int, ...] | None,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
) -> Tensor:
    """Return the standard deviation, the square root of the variance; see `var`.

    The gradient is g (x - mean) / (std (n - correction)), 0 where the deviation is 0. Mirrors
    ``torch.std``.

    >>> import numgrad as ng
    >>> ng.std(ng.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    result: Tensor = _call(_STD, input, dim, unbiased, keepdim, correction)
    return result


@declare(
    "var_mean(Tensor input, int[1]? dim, bool unbiased=ABSENT, bool keepdim=False)",
    "var_mean(Tensor input, int[1]? dim=None, *, number? correction=None, bool keepdim=False)",
    "var_mean(Tensor input, bool unbiased=ABSENT)",
    method=False,
    dispatched=True,
)
def var_mean(
    input: Tensor,
    dim: tuple[int, ...] | None,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean, from one pass over memory; see `var`.

    The gradients are those of `var` and of `mean`, added up. Mirrors ``torch.var_mean``.

    >>> import numgrad as ng
    >>> ng.var_mean(ng.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    result: tuple[Tensor, Tensor] = _call(_VAR_MEAN, input, dim, unbiased, keepdim, correction)
    return result


@declare(
    "std_mean(Tensor input, int[1]? dim, bool unbiased=ABSENT, bool keepdim=False)",
    "std_mean(Tensor input, int[1]? dim=None, *, number? correction=None, bool keepdim=False)",
    "std_mean(Tensor input, bool unbiased=ABSENT)",
    method=False,
    dispatched=True,
)
def std_mean(
    input: Tensor,
    dim: tuple[int, ...] | None,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean, from one pass over memory; see `std`.

    The gradients are those of `std` and of `mean`, added up. Mirrors ``torch.std_mean``.

    >>> import numgrad as ng
    >>> ng.std_mean(ng.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    result: tuple[Tensor, Tensor] = _call(_STD_MEAN, input, dim, unbiased, keepdim, correction)
    return result
