"""Products over everything or along one dim."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.halves import HALF, narrowed
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.kernels.reduce import reductions as kernels
from numgrad.kernels.reduce.halves import prod_of_halves
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.arguments.reductions import in_dtype, read_dtype, reduced_dims
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.samples import sample
from numgrad.ops.pointwise.arithmetic import add, mul
from numgrad.ops.pointwise.complex import conj, zero_of
from numgrad.ops.pointwise.division import div
from numgrad.ops.pointwise.selection import where
from numgrad.ops.reduction.reductions import restore_dims
from numgrad.ops.reduction.reductions import sum as sum_
from numgrad.ops.reduction.scans import exclusive_product
from numgrad.ops.reduction.truth import all as all_
from numgrad.ops.signatures.declared import declare

__all__ = ["prod"]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _prod(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    return in_dtype(kernels.prod(in_dtype(array, dtype), dims, keepdim), dtype)


# What a product is differentiated by, when its gradient is: there zeros are sums of zeros of both
# signs, whichever way the others are multiplied.
_OPERAND: Primitive = Primitive(
    "prod_operand",
    "AliasBackward0",
    lambda input: input[...],
    ["input"],
    [lambda g: add(g, 0.0)],
    view=True,
    linear=True,
    listed=False,
)


def _prod_rule(
    g: Tensor, y: Tensor, input: Tensor, dims: Dims, keepdim: bool, dtype: Any
) -> Tensor:
    """Return g y / x; if there is an element that is 0, g times the product of the others."""
    divides = modes.trace is None and bool(input._array.all())
    return _gradient(g, y, input, dims, keepdim, dtype, divides)


def _gradient(
    g: Tensor, y: Tensor, input: Tensor, dims: Dims, keepdim: bool, dtype: Any, divides: Any
) -> Tensor:
    """Return what `_prod_rule` does: `divides` if no element is 0, which a trace can't tell yet."""
    if dtype is not None:
        input = upward.cast(input, dtype)
    if modes.grad:
        input = _OPERAND.apply(input)
    shape = input._array.shape
    g = restore_dims(g, shape, dims, keepdim)
    y = restore_dims(y, shape, dims, keepdim)
    if modes.trace is not None:
        # There are no numbers to look at: both ways, each at ones where the other one is taken.
        divides = all_(input)
        others = _product_of_others(where(divides, 1, input), dims)
        others = where(divides, div(y, where(divides, input, 1)), others)
    elif divides:
        others = div(y, input)
    else:
        others = _product_of_others(input, dims)
    return mul(g, conj(others))


def _total_rule(
    g: Tensor, y: Tensor, input: Tensor, dims: Dims, keepdim: bool, dtype: Any
) -> Tensor:
    """Return what `_prod_rule` does; zeros, as PyTorch, where two are 0 and no graph is made."""
    if modes.grad:
        return _prod_rule(g, y, input, dims, keepdim, dtype)
    if modes.trace is None:
        array = input._array
        divides = bool(array.all())
        if not divides and array.size - np.count_nonzero(array) > 1:  # which takes much longer
            return zero_of(input if dtype is None else upward.cast(input, dtype))
        return _gradient(g, y, input, dims, keepdim, dtype, divides)
    zeros = sum_((input == 0).reshape(-1), (0,))
    return where(zeros > 1, 0, _prod_rule(g, y, input, dims, keepdim, dtype))


def _product_of_others(input: Tensor, dims: Dims) -> Tensor:
    if len(dims) == 1:
        return exclusive_product(input, dims[0])
    # All of them: along one dim, in C order.
    others: Tensor = exclusive_product(input.reshape(-1), 0).reshape(input._array.shape)
    return others


def _prod_of_halves(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    if array.dtype != HALF:  # complex numbers, as float16
        return narrowed(_prod(array, dims, keepdim, dtype))
    return prod_of_halves(array, dims, keepdim)


def _quick_prod(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        return None
    return kernels.specialised("prod", array.shape, array.dtype, dims, keepdim)


_PRODUCTS: list[Primitive] = [
    Primitive(
        name,
        node,
        _prod,
        ["input"],
        [rule],
        by_numbers=True,
        few=_quick_prod,
        of_halves=_prod_of_halves,
        samples=samples,
    )
    for name, node, rule, samples in (
        (
            "prod",
            "ProdBackward0",
            _total_rule,
            [
                sample("prod", (2, 3)),
                sample("prod", ()),
                sample("prod", (0,)),
                sample("prod", (4,), dtype=dtypes.complex128),
                sample("prod", (2, 3), zeros=[4]),
                sample("prod", (2, 3), zeros=[3, 5]),
            ],
        ),
        (
            "prod_over_dim",
            "ProdBackward1",
            _prod_rule,
            [
                sample("prod", (2, 3), dim=1),
                sample("prod", (2, 3), dim=0, keepdim=True),
                sample("prod", (), dim=-1),
                sample("prod", (0, 2), dim=0),
                sample("prod", (2, 3), zeros=[4], dim=1),
                sample("prod", (2, 3), zeros=[3, 5], dim=1, keepdim=True),
            ],
        ),
    )
]


@declare(
    "prod(Tensor input, *, dtype? dtype=None)",
    "prod(Tensor input, int dim, bool keepdim=False, *, dtype? dtype=None, Tensor? out=None)",
    casts=True,
    dispatched=True,
)
def prod(input: Tensor, dim: int | None, keepdim: bool, dtype: dtypes.dtype | None) -> Tensor:
    """Return the product of all elements, or along one dim.

    The gradient of an element is g times the product of the others. Mirrors ``torch.prod``.

    Parameters
    ----------
    input
        Any dtype; bools and integers are multiplied in int64.
    dim
        Without it, everything is multiplied.
    dtype
        Cast to this dtype first.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If `dtype` is an integer type and the input requires grad.

    >>> import numgrad as ng
    >>> ng.prod(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), 1)
    tensor([ 2., 12.])
    """
    if dim is None:
        dims = reduced_dims(input, None)
    else:
        position = wrap_dim(dim, input._array.ndim)
        dims = (position,) if input._array.ndim else ()
    primitive = _PRODUCTS[dim is not None]
    chosen = read_dtype(input, dtype)
    result: Tensor = primitive.apply(input, dims=dims, keepdim=keepdim, dtype=chosen)
    return result
