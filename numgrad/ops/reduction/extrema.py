"""max, min, amax, amin, aminmax: extreme elements, and where they are.

At ties the rules do what PyTorch's do: `amax` and a `max` over everything share the gradient out
evenly, `max` along a dim gives it to the element whose position it returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor
from numgrad.kernels.reduce import argextrema
from numgrad.kernels.reduce import reductions as kernels
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.arguments.reductions import reduced_dims
from numgrad.ops.core import return_types
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.places import laid_out
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.samples import sample
from numgrad.ops.pointwise.arithmetic import add, mul
from numgrad.ops.pointwise.comparison import eq, isnan
from numgrad.ops.pointwise.division import div
from numgrad.ops.pointwise.selection import maximum, minimum, where
from numgrad.ops.reduction.reductions import restore_dims
from numgrad.ops.reduction.reductions import sum as sum_
from numgrad.ops.reduction.take_along import place_along
from numgrad.ops.signatures.declared import declare

__all__ = ["amax", "amin", "aminmax", "max", "min", "shared_with_nan"]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _shared_evenly(g: Tensor, y: Tensor, input: Tensor, dims: Dims, keepdim: bool) -> Tensor:
    """Return the cotangent of an extreme, shared out between all elements that are equal to it."""
    shape = input._array.shape
    mask = eq(restore_dims(y, shape, dims, keepdim), input)
    numbers = sum_(mask, dims, True) if dims else mask
    return div(mul(restore_dims(g, shape, dims, keepdim), mask), numbers)


def shared_with_nan(g: Tensor, y: Tensor, input: Tensor) -> Tensor:
    """Return the cotangent of the extreme of all elements, shared out; nan is equal to nan here."""
    value, mask = y._array, eq(input, y)
    if modes.trace is not None or value != value:  # a trace has no number to look at
        mask = mask | isnan(input)
    return laid_out(where(mask, div(g, sum_(mask)), 0))


def _over_dims(name: str) -> Primitive:
    """Declare `amax` or `amin`."""
    return Primitive(
        name,
        f"{name.title()}Backward0",
        getattr(kernels, name),
        ["input"],
        [_shared_evenly],
        few=lambda array, dims, keepdim: kernels.specialised(
            name, array.shape, array.dtype, dims, keepdim
        ),
        samples=[
            sample(name, (2, 3), distinct=True),
            sample(name, (2, 3, 2), distinct=True, dim=(0, -1)),
            sample(name, (2, 3), distinct=True, dim=1, keepdim=True),
            sample(name, (), dim=0),
            sample(name, (0, 2), dim=1),
        ],
    )


_AMAX, _AMIN = _over_dims("amax"), _over_dims("amin")


def _call_over_dims(
    primitive: Primitive, input: Tensor, dim: tuple[int, ...] | None, keepdim: bool
) -> Tensor:
    array = input._array
    if not array.size:
        for each in dim or ():
            wrap_dim(each, array.ndim)
        kernels.require_elements(primitive.name, array, dim or (), all_dims=not dim)
    dims = reduced_dims(input, dim)
    result: Tensor = primitive.apply(input, dims=dims, keepdim=keepdim)
    return result


def _written(function: str, result: Tensor, out: Tensor | None) -> Any:
    """Write extremes to `out`, which has to be of their dtype."""
    if isinstance(out, Tensor) and out._array.dtype != result._array.dtype:
        raise RuntimeError(
            f"Expected the dtype for input and out to match, but got {result.dtype.scalar_name} "
            f"for input's dtype and {out.dtype.scalar_name} for out's dtype."
        )
    return write_result(function, result, out)


@declare(
    "amax(Tensor input, int[1]? dim=None, bool keepdim=False, *, Tensor? out=None)",
    dispatched=True,
    write=_written,
)
def amax(input: Tensor, dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """Return the greatest elements over all dims, or some; nan where there is one.

    The gradient is shared out evenly between the elements that are equal to the greatest. Mirrors
    ``torch.amax``.

    Parameters
    ----------
    input
        Real.
    dim
        What to reduce; None or no dims at all: everything.

    Raises
    ------
    IndexError
        If there is no such dim, or it has size 0.
    RuntimeError
        If a dim is named twice; if none is named and there are no elements.
    NotImplementedError
        If the elements are complex.

    >>> import numgrad as ng
    >>> ng.amax(ng.tensor([[1.0, 2.0], [4.0, 3.0]]), 1)
    tensor([2., 4.])
    """
    return _call_over_dims(_AMAX, input, dim, keepdim)


@declare(
    "amin(Tensor input, int[1]? dim=None, bool keepdim=False, *, Tensor? out=None)",
    dispatched=True,
    write=_written,
)
def amin(input: Tensor, dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """Return the least elements over all dims, or some; see `amax`.

    The gradient is shared out evenly between the elements that are equal to the least. Mirrors
    ``torch.amin``.

    >>> import numgrad as ng
    >>> ng.amin(ng.tensor([[1.0, 2.0], [4.0, 3.0]]), 1)
    tensor([1., 3.])
    """
    return _call_over_dims(_AMIN, input, dim, keepdim)


def _of_all(name: str) -> Primitive:
    """Declare `max` or `min` of everything."""
    extreme = getattr(kernels, f"a{name}")

    def forward(array: Array) -> Array:
        if array.dtype.kind == "c":
            kernels.require_ordered(f"{name}_all", array)
        result: Array = extreme(array, tuple(range(array.ndim)), False)
        return result

    return Primitive(
        name,
        f"{name.title()}Backward1",
        forward,
        ["input"],
        [shared_with_nan],
        by_numbers=True,
        few=lambda array: kernels.specialised(
            f"a{name}", array.shape, array.dtype, tuple(range(array.ndim))
        ),
        samples=[
            sample(name, (2, 3), distinct=True),
            sample(name, ()),
        ],
    )


def _along_dim(name: str) -> Primitive:
    """Declare `max` or `min` along a dim."""
    return Primitive(
        f"{name}_along_dim",
        f"{name.title()}Backward0",
        getattr(argextrema, f"{name}_with_index"),
        ["input"],
        [
            lambda g0, indices, input_shape, dim, keepdim: place_along(
                g0, indices, dim=dim, keepdim=keepdim, shape=input_shape
            )
        ],
        outputs=("values", "indices"),
        few=lambda array, dim, keepdim: argextrema.specialised(
            name, array.shape, array.dtype, (dim,) if array.ndim else (), keepdim
        ),
        samples=[
            sample(name, (4,), distinct=True, dim=0),
            sample(name, (2, 3), distinct=True, dim=1),
            sample(name, (3, 2), distinct=True, dim=-2, keepdim=True),
            sample(name, (), dim=0),
            sample(name, (0, 2), dim=1),
        ],
    )


_ALL = {name: _of_all(name) for name in ("max", "min")}
_ALONG = {name: _along_dim(name) for name in ("max", "min")}
_RETURNED = {"max": return_types.max, "min": return_types.min}


def _extreme(name: str, input: Tensor, dim: int | None, keepdim: bool, other: Tensor | None) -> Any:
    """Run `max` or `min` in one of the three forms that share the name."""
    if other is not None:
        return (maximum if name == "max" else minimum)(input, other)
    if dim is None:
        kernels.require_elements(name, input._array, (), all_dims=True)
        return _ALL[name].apply(input)
    position = wrap_dim(dim, input._array.ndim)
    array = input._array
    if array.dtype.kind == "c":
        raise RuntimeError(f"{name}(): does not support complex input")
    if array.ndim:
        kernels.require_elements(name, array, (position,))
    result = _ALONG[name].apply(input, dim=position, keepdim=keepdim)
    return _RETURNED[name](*result)


@declare(
    "max(Tensor input, *, Tensor? out=None)",
    "max(Tensor input, Tensor other, *, Tensor? out=None)",
    "max(Tensor input, int dim, bool keepdim=False, *, Tensor[]? out=None)",
    dispatched=True,
    in_step=("other", ("input", "other"), ("input", "dim")),
)
def max(input: Tensor, dim: int | None, keepdim: bool, other: Tensor | None) -> Any:
    """Return the greatest element, or those along a dim with positions, or those of two tensors.

    Over everything the gradient is shared out evenly between equal elements; along a dim it goes to
    the element at the position that is returned; for two tensors see `maximum`. Mirrors
    ``torch.max``.

    Parameters
    ----------
    input
        Real.
    dim
        Without it, and without another tensor: the greatest of all elements.
    other
        A tensor to compare with, elementwise; it may stand in the place of `dim`.

    Returns
    -------
    tensor, or a named tuple of values and int64 indices where there is a dim
        The first of equal elements, and the first nan, is found.

    Raises
    ------
    IndexError
        If there is no such dim, or it has size 0.
    RuntimeError
        If there are no elements and no dim; if there is a dim and the elements are complex.
    NotImplementedError
        If there is no dim and the elements are complex.

    >>> import numgrad as ng
    >>> x = ng.tensor([[1.0, 2.0], [4.0, 3.0]])
    >>> x.max()
    tensor(4.)
    >>> x.max(1).indices
    tensor([1, 0])
    """
    return _extreme("max", input, dim, keepdim, other)


@declare(
    "min(Tensor input, *, Tensor? out=None)",
    "min(Tensor input, Tensor other, *, Tensor? out=None)",
    "min(Tensor input, int dim, bool keepdim=False, *, Tensor[]? out=None)",
    dispatched=True,
    in_step=("other", ("input", "other"), ("input", "dim")),
)
def min(input: Tensor, dim: int | None, keepdim: bool, other: Tensor | None) -> Any:
    """Return the least element, or those along a dim with positions, or those of two tensors.

    As `max` in all that it takes, returns and raises; for two tensors see `minimum`. The gradient
    is shared out as that of `max`. Mirrors ``torch.min``.

    >>> import numgrad as ng
    >>> ng.min(ng.tensor([[1.0, 2.0], [4.0, 3.0]]), 1).values
    tensor([1., 3.])
    """
    return _extreme("min", input, dim, keepdim, other)


def _both(array: Array, dims: Dims, keepdim: bool) -> tuple[Array, Array]:
    if array.dtype.kind == "c":
        kernels.require_ordered("aminmax_cpu", array)
    return kernels.amin(array, dims, keepdim), kernels.amax(array, dims, keepdim)


def _both_rule(
    g: list[Tensor | None], min: Tensor, max: Tensor, input: Tensor, dims: Dims, keepdim: bool
) -> Tensor:
    shape, parts = input._array.shape, []
    for cotangent, y in zip(g, (min, max), strict=True):
        if cotangent is not None:  # as `_shared_evenly`, in PyTorch's other order
            mask = eq(input, restore_dims(y, shape, dims, keepdim))
            numbers = sum_(mask, dims, True) if dims else mask
            part = div(restore_dims(cotangent, shape, dims, keepdim), numbers)
            parts.append(mul(part, mask))
    return parts[0] if len(parts) == 1 else add(*parts)


_AMINMAX: Primitive = Primitive(
    "aminmax",
    "AminmaxBackward0",
    _both,
    ["input"],
    [_both_rule],
    outputs=("min", "max"),
    samples=[
        sample("aminmax", (2, 3), distinct=True),
        sample("aminmax", (2, 3), distinct=True, dim=1, keepdim=True),
        sample("aminmax", (), dim=0),
    ],
)


@declare(
    "aminmax(Tensor input, *, int? dim=None, bool keepdim=False, Tensor[]? out=None)",
    dispatched=True,
)
def aminmax(input: Tensor, dim: int | None, keepdim: bool) -> Any:
    """Return the least and the greatest elements over all dims, or along one.

    The gradients are shared out evenly between equal elements. Mirrors ``torch.aminmax``.

    Parameters
    ----------
    input
        Real.
    dim
        Without it: over everything.

    Returns
    -------
    min, max : tensor
        A named tuple.

    Raises
    ------
    IndexError
        If there is no such dim, or it has size 0.
    RuntimeError
        If none is named and there are no elements.
    NotImplementedError
        If the elements are complex.

    >>> import numgrad as ng
    >>> ng.aminmax(ng.tensor([[1.0, 2.0], [4.0, 3.0]]), dim=1).max
    tensor([2., 4.])
    """
    if dim is None:
        dims = reduced_dims(input, None)
        if not input._array.size:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
                "identity."
            )
    else:
        dim = wrap_dim(dim, input._array.ndim)
        dims = (dim,) if input._array.ndim else ()
        if dims and not input._array.shape[dim]:
            raise IndexError(f"aminmax: Expected reduction dim {dim} to have non-zero size.")
    return return_types.aminmax(*_AMINMAX.apply(input, dims=dims, keepdim=keepdim))
