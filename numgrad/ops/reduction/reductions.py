"""Sums, means, products, truth and counts over any dims.

The rule of a sum hands its cotangent on as a view that repeats it (`spread`): the backward pass of
a sum costs no memory, and its node keeps nothing but a shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.codegen.expression import Symbol
from numgrad.graph.backward.accumulate import AccumulateGrad
from numgrad.graph.recorder import place_of
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.memory_order import empty_like
from numgrad.kernels.move.strides import strided_view
from numgrad.kernels.pointwise.elementwise import Elementwise
from numgrad.kernels.reduce import reductions as kernels
from numgrad.ops.arguments.reductions import in_dtype, read_dtype, reduced_dims
from numgrad.ops.core.nodes import PrimitiveNode, make_node_class
from numgrad.ops.core.places import relaid
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.samples import sample
from numgrad.ops.movement.copies import clone
from numgrad.ops.pointwise.division import div
from numgrad.ops.signatures.declared import declare

__all__ = ["mean", "restore_dims", "spread", "sum"]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _repeat(array: Array, shape: tuple[int, ...], dims: Dims, keepdim: bool) -> Array:
    if array.ndim == 0 and array.flags.c_contiguous:
        # What np.broadcast_to does, in a tenth of its time.
        return np.ndarray(shape, array.dtype, array, 0, (0,) * len(shape))
    itemsize, steps = array.itemsize, _steps_of_repeated(array, shape, dims, keepdim)
    if array.flags.c_contiguous and array.size:
        return np.ndarray(shape, array.dtype, array, 0, steps)
    return strided_view(array, (tuple(shape), tuple([step // itemsize for step in steps]), 0))


def _steps_of_repeated(array: Array, shape: tuple[int, ...], dims: Dims, keepdim: bool) -> Dims:
    """Return how far elements lie apart in the result of a reduction, repeated."""
    steps, lengths = list(array.strides), list(array.shape)
    if keepdim or not dims:
        pairs = zip(lengths, shape, steps, strict=True)
        return tuple([step if length == new else 0 for length, new, step in pairs])
    for dim in sorted(dims):
        # A dim of length 1 leads past what is behind it, and so has its place in the order of dims.
        step = lengths[dim] * steps[dim] if dim < len(lengths) else array.itemsize
        lengths.insert(dim, shape[dim])
        steps.insert(dim, step if shape[dim] == 1 else 0)
    return tuple(steps)


def _repeat_quickly(array: Array, shape: tuple[int, ...], dims: Dims, keepdim: bool) -> Any:
    if not (array.flags.c_contiguous and array.size):
        return None
    dtype, strides = array.dtype, _repeat(array, shape, dims, keepdim).strides
    return lambda array: np.ndarray(shape, dtype, array, 0, strides)


_SPREAD: Primitive = Primitive(
    "spread",
    "ExpandBackward0",
    _repeat,
    ["input"],
    [lambda g, dims, keepdim: _SUM.apply(g, dims=dims, keepdim=keepdim, dtype=None)],
    view=True,
    linear=True,
    quick=_repeat_quickly,
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


# PyTorch divides what it has repeated; here nodes get a view that repeats the quotient, of which
# their loops read less. A leaf gets all of it.


def _is_for_leaf(node: PrimitiveNode) -> bool:
    return type(node.targets[0]) is AccumulateGrad and node.primitive in (_AVERAGE, _MEAN)


def _whole(node: PrimitiveNode, gradient: Any) -> Array:
    """Return memory for what is computed of a cotangent once it is repeated."""
    shape, dtype = node.shapes[0]
    dims = node.parameters.get("dims", tuple(range(len(shape))))
    keepdim = node.parameters.get("keepdim", False)
    return empty_like(_repeat(place_of(gradient), shape, dims, keepdim), dtype)


def _copied_to_leaf(
    node: PrimitiveNode, gradient: Tensor | None, results: Sequence[Tensor | None]
) -> Sequence[Tensor | None]:
    if results[0] is None or gradient is None or not _is_for_leaf(node):
        return results
    array = gradient._array
    return (relaid(clone(results[0]), _whole(node, array), [array]),)


class _MeanNode(PrimitiveNode):
    """The node of a mean over some dims."""

    __slots__ = ()

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the rule."""
        return _copied_to_leaf(self, gradients[0], super().run_tensors(gradients))


def _sum(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    return in_dtype(kernels.sum(in_dtype(array, dtype), dims, keepdim), dtype)


def _sum_of_few(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        return None
    return kernels.specialised("sum", array.shape, array.dtype, dims, keepdim)


def _quick_sum(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        return None
    few, total = kernels.specialised_as_it_lies("sum", array, dims, keepdim), kernels.sum
    return few or (lambda array: total(array, dims, keepdim))


_TOTAL: Primitive = Primitive(
    "sum",
    "SumBackward0",
    lambda input, dtype=None: _sum(input, tuple(range(input.ndim)), False, dtype),
    ["input"],
    [lambda g, input_shape: spread(g, input_shape, tuple(range(len(input_shape))), False)],
    linear=True,
    few=lambda input, dtype=None: _sum_of_few(input, tuple(range(input.ndim)), False, dtype),
    quick=lambda input, dtype=None: _quick_sum(input, tuple(range(input.ndim)), False, dtype),
    samples=[
        sample("sum", (2, 3)),
        sample("sum", (4,), dtype=dtypes.complex128),
        sample("sum", ()),
        sample("sum", (2, 0)),
    ],
)
_TOTAL.node_class = make_node_class("SumBackward0", _MeanNode, primitive=_TOTAL)
_SUM: Primitive = Primitive(
    "sum_over_dims",
    "SumBackward1",
    _sum,
    ["input"],
    [lambda g, input_shape, dims, keepdim: spread(g, input_shape, dims, keepdim)],
    linear=True,
    few=_sum_of_few,
    quick=_quick_sum,
    samples=[
        sample("sum", (2, 3), dim=1),
        sample("sum", (2, 3, 4), dim=(0, -1)),
        sample("sum", (2, 3), dim=0, keepdim=True),
        sample("sum", (), dim=-1),
        sample("sum", (2, 0), dim=1),
    ],
)


@declare(
    "sum(Tensor input, *, dtype? dtype=None)",
    "sum(Tensor input, int[1]? dim, bool keepdim=False, *, dtype? dtype=None, Tensor? out=None)",
    casts=True,
    dispatched=True,
)
def sum(
    input: Tensor, dim: tuple[int, ...] | None, keepdim: bool, dtype: dtypes.dtype | None
) -> Tensor:
    """Return the sum over all dims, or some.

    The gradient is g, repeated. Mirrors ``torch.sum``.

    Parameters
    ----------
    input
        Any dtype; bools and integers are added in int64.
    dim
        What to sum over; None or no dims at all: everything.
    dtype
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
    result: Tensor
    if dim is None and not keepdim:
        result = _TOTAL.apply(input, dtype=read_dtype(input, dtype))
    else:
        dims = reduced_dims(input, dim)
        chosen = read_dtype(input, dtype)
        result = _SUM.apply(input, dims=dims, keepdim=keepdim, dtype=chosen)
    return result


def _average(
    array: Array,
    dims: Dims,
    keepdim: bool = False,
    quotient: Callable[..., list[Array]] | None = None,
) -> Array:
    """Return the mean; of complex numbers the sum over a complex number, as in PyTorch."""
    if array.dtype.kind != "c":
        return kernels.mean(array, dims, keepdim)
    count = math.prod([array.shape[dim] for dim in dims])
    if not count:
        return kernels.mean(array, dims, keepdim)
    total = kernels.sum(array, dims, keepdim)
    divide = _QUOTIENT if quotient is None else quotient
    (found,) = divide(total.shape, [total, complex(count)], [total.dtype])
    return found


_QUOTIENT = Elementwise(
    "complex mean",
    ["total", "count"],
    lambda s: [Symbol.apply("true_divide", s["total"], s["count"])],
)


def _mean(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Array:
    return _average(in_dtype(array, dtype), dims, keepdim)


def _mean_rule(g: Tensor, input_shape: tuple[int, ...], dims: Dims, keepdim: bool) -> Tensor:
    count = math.prod([input_shape[dim] for dim in dims])
    return spread(div(g, count) if count else g, input_shape, dims, keepdim)


def _quick_mean(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None and dtype != array.dtype:
        return None
    return kernels.specialised_mean(array.shape, array.dtype, dims, keepdim)


def _prepared_mean(array: Array, dims: Dims, keepdim: bool, dtype: Any) -> Any:
    if array.dtype.kind != "c" or (dtype is not None and dtype != array.dtype):
        return None
    return partial(_average, dims=dims, keepdim=keepdim, quotient=_QUOTIENT.prepared_once())


_AVERAGE: Primitive = Primitive(
    "mean",
    "MeanBackward0",
    lambda input, dtype=None: _mean(input, tuple(range(input.ndim)), False, dtype),
    ["input"],
    [lambda g, input_shape: _mean_rule(g, input_shape, tuple(range(len(input_shape))), False)],
    linear=True,
    rounds_first=False,  # PyTorch adds in float32 what it is given
    few=lambda input, dtype=None: _quick_mean(input, tuple(range(input.ndim)), False, dtype),
    quick=lambda input, dtype=None: _prepared_mean(input, tuple(range(input.ndim)), False, dtype),
    samples=[
        sample("mean", (2, 3)),
        sample("mean", ()),
        sample("mean", (4,), dtype=dtypes.complex128),
    ],
)
_AVERAGE.node_class = make_node_class("MeanBackward0", _MeanNode, primitive=_AVERAGE)
_MEAN: Primitive = Primitive(
    "mean_over_dims",
    "MeanBackward1",
    _mean,
    ["input"],
    [_mean_rule],
    linear=True,
    rounds_first=False,  # PyTorch adds in float32 what it is given
    few=_quick_mean,
    quick=_prepared_mean,
    samples=[
        sample("mean", (2, 3), dim=1),
        sample("mean", (2, 3, 4), dim=(0, -1)),
        sample("mean", (2, 3), dim=0, keepdim=True),
        sample("mean", (), dim=-1),
        sample("mean", (0, 2), dim=1),
    ],
)
_MEAN.node_class = make_node_class("MeanBackward1", _MeanNode, primitive=_MEAN)


@declare(
    "mean(Tensor input, *, dtype? dtype=None, Tensor? out=None)",
    "mean(Tensor input, int[1]? dim, bool keepdim=False, *, dtype? dtype=None, Tensor? out=None)",
    casts=True,
    dispatched=True,
)
def mean(
    input: Tensor, dim: tuple[int, ...] | None, keepdim: bool, dtype: dtypes.dtype | None
) -> Tensor:
    """Return the mean over all dims, or some; nan over no elements.

    The gradient is g / n, repeated. Mirrors ``torch.mean``.

    Parameters
    ----------
    input
        Floating point or complex, unless `dtype` is.
    dim
        What to average over; None or no dims at all: everything.
    dtype
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
    dims = reduced_dims(input, dim)
    computed = dtype or input.dtype
    if computed.category < dtypes.FLOATING:
        raise RuntimeError(
            f"mean(): could not infer output dtype. {'Input' if dtype is None else 'Optional'} "
            "dtype must be either a floating point or complex dtype. Got: "
            f"{computed.scalar_name}"
        )
    chosen = None if dtype is None else computed.numpy
    result: Tensor
    if dim is None and not keepdim:
        result = _AVERAGE.apply(input, dtype=chosen)
    else:
        result = _MEAN.apply(input, dims=dims, keepdim=keepdim, dtype=chosen)
    return result
