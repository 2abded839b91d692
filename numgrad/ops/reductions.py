"""Sums, means, products, truth and counts over any dims.

The rule of a sum hands its cotangent on as a view that repeats it (`spread`): the backward pass of
a sum costs no memory, and its node keeps nothing but a shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad import dtypes
from numgrad.graph.core import Tensor, wrap
from numgrad.kernels import reductions as kernels
from numgrad.ops.arguments import accept_axis
from numgrad.ops.arithmetic import div, mul
from numgrad.ops.complex import conj
from numgrad.ops.functions import public
from numgrad.ops.primitive import Primitive, PrimitiveNode, make_node_class
from numgrad.ops.reduction_arguments import in_dtype, read_dtype, reduced_dim, reduced_dims
from numgrad.ops.samples import sample
from numgrad.ops.scans import exclusive_product
from numgrad.ops.selection import where

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "mean",
    "nanmean",
    "nansum",
    "prod",
    "spread",
    "sum",
]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _repeat(array: Array, shape: tuple[int, ...], dims: Dims, keepdim: bool) -> Array:
    if array.ndim == 0 and array.flags.c_contiguous:
        # What np.broadcast_to does, in a tenth of its time.
        return np.ndarray(shape, array.dtype, array, 0, (0,) * len(shape))
    if not keepdim and dims:
        array = array[tuple([None if i in dims else slice(None) for i in range(len(shape))])]
    return np.broadcast_to(array, shape)


_SPREAD: Primitive = Primitive(
    "spread",
    "ExpandBackward0",
    _repeat,
    ["input"],
    [lambda g, dims, keepdim: _SUM.apply(g, dims=dims, keepdim=keepdim, dtype=None)],
    view=True,
    linear=True,
    samples=[
        sample("spread", (3,), shape=(3, 2), dims=(1,), keepdim=False),
        sample("spread", (1, 3), shape=(2, 3), dims=(0,), keepdim=True),
        sample("spread", (), shape=(2, 3), dims=(0, 1), keepdim=False),
        sample("spread", (), shape=(0, 3), dims=(0, 1), keepdim=False),
    ],
)


def spread(input: Tensor, shape: Sequence[int], dims: Dims, keepdim: bool) -> Tensor:
    """Return the result of a reduction as a view of the shape before it, repeated over `dims`.

    The gradient is the sum of g over `dims`.
    """
    result: Tensor = _SPREAD.apply(input, shape=tuple(shape), dims=dims, keepdim=keepdim)
    return result


def restore_dims(input: Tensor, shape: Sequence[int], dims: Dims, keepdim: bool) -> Tensor:
    """Return the result of a reduction with the reduced dims, of size 1; then it broadcasts."""
    if keepdim or not dims:
        return input
    return spread(input, [1 if i in dims else n for i, n in enumerate(shape)], dims, keepdim)


class _TotalNode(PrimitiveNode):
    """The node of a sum over everything: the most common root, so it takes a short way."""

    __slots__ = ()

    def run_arrays(self, gradients: Sequence[Any]) -> Sequence[tuple[Any, bool] | None]:
        """Hand on the cotangent as an array whose strides are all 0."""
        gradient = gradients[0]
        shape, dtype = self.shapes[0]
        if gradient is None or gradient.dtype != dtype or gradient.strides:
            return super().run_arrays(gradients)
        return [(np.ndarray(shape, dtype, gradient, 0, (0,) * len(shape)), False)]


def _sum(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    result = kernels.sum(in_dtype(array, dtype), dims, keepdim)
    return result if dtype is None else in_dtype(result, dtype)


_TOTAL: Primitive = Primitive(
    "sum",
    "SumBackward0",
    lambda input, dtype=None: _sum(input, tuple(range(input.ndim)), False, dtype),
    ["input"],
    [lambda g, input_shape: spread(g, input_shape, tuple(range(len(input_shape))), False)],
    linear=True,
    samples=[
        sample("sum", (2, 3)),
        sample("sum", (4,), dtype=dtypes.complex128),
        sample("sum", ()),
        sample("sum", (2, 0)),
    ],
)
_TOTAL.node_class = make_node_class("SumBackward0", _TotalNode, primitive=_TOTAL)
_SUM: Primitive = Primitive(
    "sum_over_dims",
    "SumBackward1",
    _sum,
    ["input"],
    [lambda g, input_shape, dims, keepdim: spread(g, input_shape, dims, keepdim)],
    linear=True,
    samples=[
        sample("sum", (2, 3), dim=1),
        sample("sum", (2, 3, 4), dim=(0, -1)),
        sample("sum", (2, 3), dim=0, keepdim=True),
        sample("sum", (), dim=-1),
        sample("sum", (2, 0), dim=1),
    ],
)


@public()
@accept_axis
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum over all dims, or some.

    The gradient is g, repeated. Mirrors ``torch.sum``.

    Parameters
    ----------
    input : tensor
        Any dtype; bools and integers are added in int64.
    dim : int, sequence of ints, or None
        What to sum over; None or no dims at all: everything.
    keepdim : bool
        Keep the reduced dims, with size 1.
    dtype : dtype, optional
        Cast to this dtype first.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice; if `dtype` is an integer type and the input requires grad.

    >>> import numgrad as ng
    >>> ng.sum(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), 0)
    tensor([4., 6.])
    """
    if dim is None and keepdim is False and type(input) is Tensor:
        if dtype is None:
            return _TOTAL.apply(input)
        return _TOTAL.apply(input, dtype=read_dtype(input, dtype))
    dims = reduced_dims("sum", input, dim, keepdim)
    result: Tensor = _SUM.apply(input, dims=dims, keepdim=keepdim, dtype=read_dtype(input, dtype))
    return result


def _nansum(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(0), array)
    return _sum(array, dims, keepdim, dtype)


_NANSUM: Primitive = Primitive(
    "nansum",
    "NansumBackward0",
    _nansum,
    ["input"],
    [
        lambda g, input, input_shape, dims, keepdim: where(
            input != input, 0, spread(g, input_shape, dims, keepdim)
        )
    ],
    samples=[
        sample("nansum", (2, 3)),
        sample("nansum", (2, 3), dim=1, keepdim=True),
        sample("nansum", (), dim=0),
        sample("nansum", (0, 2), dim=0),
    ],
)


@public()
@accept_axis
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum of the elements that are not nan; see `sum`.

    The gradient is g where the element is a number, 0 where it is nan. Mirrors ``torch.nansum``.

    Raises
    ------
    RuntimeError
        If the elements are complex; and as `sum` does.

    >>> import numgrad as ng
    >>> ng.nansum(ng.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    dims = reduced_dims("nansum", input, dim, keepdim)
    if input._array.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    result: Tensor = _NANSUM.apply(
        input, dims=dims, keepdim=keepdim, dtype=read_dtype(input, dtype)
    )
    return result


def _mean(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    return kernels.mean(in_dtype(array, dtype), dims, keepdim)


def _count(shape: Sequence[int], dims: Sequence[int]) -> int:
    return math.prod([shape[dim] for dim in dims])


def _mean_rule(g: Tensor, input_shape: tuple[int, ...], dims: Dims, keepdim: bool) -> Tensor:
    count = _count(input_shape, dims)
    return spread(div(g, count) if count else g, input_shape, dims, keepdim)


_MEANS: list[Primitive] = [
    Primitive(
        name,
        node,
        _mean,
        ["input"],
        [_mean_rule],
        linear=True,
        samples=samples,
    )
    for name, node, samples in (
        (
            "mean",
            "MeanBackward0",
            [
                sample("mean", (2, 3)),
                sample("mean", ()),
                sample("mean", (4,), dtype=dtypes.complex128),
            ],
        ),
        (
            "mean_over_dims",
            "MeanBackward1",
            [
                sample("mean", (2, 3), dim=1),
                sample("mean", (2, 3, 4), dim=(0, -1)),
                sample("mean", (2, 3), dim=0, keepdim=True),
                sample("mean", (), dim=-1),
                sample("mean", (0, 2), dim=1),
            ],
        ),
    )
]


@public()
@accept_axis
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean over all dims, or some; nan over no elements.

    The gradient is g / n, repeated. Mirrors ``torch.mean``.

    Parameters
    ----------
    input : tensor
        Floating point or complex, unless `dtype` is.
    dim : int, sequence of ints, or None
        What to average over; None or no dims at all: everything.
    keepdim : bool
        Keep the reduced dims, with size 1.
    dtype : dtype, optional
        Cast to this dtype first.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice; if the mean would be an integer.

    >>> import numgrad as ng
    >>> ng.mean(ng.tensor([[1.0, 2.0], [3.0, 6.0]]), 0)
    tensor([2., 4.])
    """
    dims = reduced_dims("mean", input, dim, keepdim)
    computed = input.dtype if dtype is None else dtypes.to_dtype(dtype)
    if computed.category < dtypes.FLOATING:
        raise RuntimeError(
            f"mean(): could not infer output dtype. {'Input' if dtype is None else 'Optional'} "
            "dtype must be either a floating point or complex dtype. Got: "
            f"{computed.scalar_name}"
        )
    primitive = _MEANS[dim is not None or keepdim]
    result: Tensor = primitive.apply(
        input, dims=dims, keepdim=keepdim, dtype=None if dtype is None else computed.numpy
    )
    return result


@public()
@accept_axis
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean of the elements that are not nan; nan where there are none.

    The gradient is g / n where the element is a number, 0 where it is nan. Mirrors
    ``torch.nanmean``.

    Parameters
    ----------
    input : tensor
        Floating point.
    dim, keepdim, dtype
        As for `mean`.

    Raises
    ------
    RuntimeError
        If the elements are not real floating point numbers; and as `mean` does.

    >>> import numgrad as ng
    >>> ng.nanmean(ng.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    dims = reduced_dims("nanmean", input, dim, keepdim)
    if input._array.dtype.kind not in "fc":
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{input.dtype.scalar_name}"
        )
    numbers = wrap(kernels.sum(~np.isnan(input._array), dims, keepdim))
    return div(nansum(input, dim, keepdim, dtype=dtype), numbers)


def _prod(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    result = kernels.prod(in_dtype(array, dtype), dims, keepdim)
    return result if dtype is None else in_dtype(result, dtype)


def _prod_rule(
    g: Tensor, y: Tensor, input: Tensor, dims: Dims, keepdim: bool, dtype: Any
) -> Tensor:
    """Return g y / x; where an element is 0, g times the product of the other elements."""
    if dtype is not None:
        input = Primitive.cast(input, dtype)
    shape = input._array.shape
    g = restore_dims(g, shape, dims, keepdim)
    if input._array.all():
        return mul(g, conj(div(restore_dims(y, shape, dims, keepdim), input)))
    if len(dims) == 1:
        return mul(g, conj(exclusive_product(input, dims[0])))
    # All of them: along one dim, in C order.
    others = exclusive_product(input.reshape(-1), 0).reshape(shape)
    return mul(g, conj(others))


_PRODUCTS: list[Primitive] = [
    Primitive(name, node, _prod, ["input"], [_prod_rule], samples=samples)
    for name, node, samples in (
        (
            "prod",
            "ProdBackward0",
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


@public()
@accept_axis
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Return the product of all elements, or along one dim.

    The gradient of an element is g times the product of the others. Mirrors ``torch.prod``.

    Parameters
    ----------
    input : tensor
        Any dtype; bools and integers are multiplied in int64.
    dim : int, optional
        Without it, everything is multiplied.
    keepdim : bool
        Keep the reduced dim, with size 1.
    dtype : dtype, optional
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
        dims = reduced_dims("prod", input, None, keepdim)
    else:
        dims = (reduced_dim("prod", input, dim, keepdim),) if input._array.ndim else ()
    result: Tensor = _PRODUCTS[dim is not None].apply(
        input, dims=dims, keepdim=keepdim, dtype=read_dtype(input, dtype)
    )
    return result


def _truth(name: str) -> Primitive:
    """Declare `all` or `any`; bytes give bytes, as in PyTorch."""
    kernel = getattr(kernels, name)

    def forward(array: Array, dims: Dims, keepdim: bool) -> Array:
        result: Array = kernel(array, dims, keepdim)
        return result.view(np.uint8) if array.dtype == np.uint8 else result

    return Primitive(name, "NotImplemented", forward, ["input"], [None])


_ALL, _ANY = _truth("all"), _truth("any")


def _truth_dims(function: str, input: Any, dim: Any, keepdim: Any) -> Dims:
    """Return the dims to reduce: here no dims at all means none, as in PyTorch."""
    dims = reduced_dims(function, input, dim, keepdim)
    return () if isinstance(dim, (tuple, list)) and not dim else dims


@public()
@accept_axis
def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return whether all elements are nonzero (nan is), over all dims or some.

    No gradient flows. Mirrors ``torch.all``.

    Parameters
    ----------
    input : tensor
        Any dtype; the result is bool, and uint8 for uint8.
    dim : int, sequence of ints, or None
        None: all of them. No dims at all reduce nothing.
    keepdim : bool
        Keep the reduced dims, with size 1.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice.

    >>> import numgrad as ng
    >>> ng.all(ng.tensor([[True, False], [True, True]]), 1)
    tensor([False,  True])
    """
    dims = _truth_dims("all", input, dim, keepdim)
    result: Tensor = _ALL.apply(input, dims=dims, keepdim=keepdim)
    return result


@public()
@accept_axis
def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return whether any element is nonzero (nan is), over all dims or some; see `all`.

    No gradient flows. Mirrors ``torch.any``.

    >>> import numgrad as ng
    >>> ng.any(ng.tensor([[False, False], [True, True]]), 1)
    tensor([False,  True])
    """
    dims = _truth_dims("any", input, dim, keepdim)
    result: Tensor = _ANY.apply(input, dims=dims, keepdim=keepdim)
    return result


_COUNT_NONZERO: Primitive = Primitive(
    "count_nonzero", "NotImplemented", kernels.count_nonzero, ["input"], [None]
)


@public()
@accept_axis
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """Return how many elements are not zero (nan is not), over all dims or some, as int64.

    No gradient flows. Mirrors ``torch.count_nonzero``.

    Parameters
    ----------
    input : tensor
        Any dtype.
    dim : int, sequence of ints, or None
        None or no dims at all: all of them.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice.

    >>> import numgrad as ng
    >>> ng.count_nonzero(ng.tensor([0.0, 3.0, -1.0]))
    tensor(2)
    """
    dims = reduced_dims("count_nonzero", input, dim)
    result: Tensor = _COUNT_NONZERO.apply(input, dims=dims)
    return result
