"""Lower reductions to the graph's, where these combine in the order of the kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from numgrad.jit.ir.constructors import (
    apply,
    cast,
    constant,
    permute,
    reduce,
    reshape,
    restore_dims,
    view,
)
from numgrad.jit.ir.graph import Affine, Value
from numgrad.jit.ir.memory_order import Order
from numgrad.kernels.reduce.moments import MOST_ADDED, exponential_rows

__all__ = ["IN_MEMORY_ORDER", "REDUCTIONS"]

Lowering = Callable[..., Any]
Dims = tuple[int, ...]
REDUCTIONS: dict[str, Lowering] = {}
# Reductions that go by memory. Their lowerings are told the order of the operand in it;
# those that have none get it as it lies there.
IN_MEMORY_ORDER = {"nansum", "prod", "prod_over_dim"}


def lowering(*names: str) -> Callable[[Lowering], Lowering]:
    """Enter a function as the lowering of primitives."""

    def enter(function: Lowering) -> Lowering:
        REDUCTIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def reduction(*names: str) -> Callable[[Lowering], Lowering]:
    """Enter a function as the lowering of primitives that reduce in the order of memory."""
    IN_MEMORY_ORDER.update(names)
    return lowering(*names)


def _all_dims(value: Value) -> Dims:
    return tuple(range(len(value.shape)))


def _in_dtype(value: Value, dtype: Any) -> Value:
    return value if dtype is None else cast(value, np.dtype(dtype))


def _kept(result: Value, value: Value, dims: Sequence[int], keepdim: bool) -> Value:
    return restore_dims(result, value.shape, dims) if keepdim and dims else result


def _reduced(kind: str, value: Value, dims: Sequence[int], order: Order | None) -> Value:
    """Reduce dims of what lies in memory in an order."""
    if order is None:
        return reduce(kind, value, dims)
    places = [place for place, dim in enumerate(order.dims) if dim in dims]
    kept = [dim for dim in order.dims if dim not in dims]
    forwards = order._replace(backwards=order.backwards.intersection(dims))
    result = reduce(kind, forwards.in_memory(value), places)
    return permute(result, [kept.index(dim) for dim in sorted(kept)])


@reduction("sum")
def _sum(value: Value, dtype: Any = None, order: Order | None = None) -> Value:
    value = _summable(_in_dtype(value, dtype))
    return _in_dtype(_reduced("sum", value, _all_dims(value), order), dtype)


@reduction("sum_over_dims")
def _sum_over_dims(
    value: Value, dims: Dims, keepdim: bool, dtype: Any, order: Order | None = None
) -> Value:
    value = _summable(_in_dtype(value, dtype))
    return _in_dtype(_kept(_reduced("sum", value, dims, order), value, dims, keepdim), dtype)


def _summable(value: Value) -> Value:
    """Return what is added up: integers and truth values in int64."""
    return cast(value, np.dtype(np.int64)) if value.dtype.kind in "biu" else value


@reduction("sum_to_size")
def _sum_to_size(value: Value, shape: Dims, order: Order | None = None) -> Value:
    lead = len(value.shape) - len(shape)
    dims = tuple(range(lead)) + tuple(
        lead + dim for dim, n in enumerate(shape) if n == 1 and value.shape[lead + dim] != 1
    )
    return reshape(_reduced("sum", value, dims, order), shape)


@reduction("mean")
def _mean(value: Value, dtype: Any = None, order: Order | None = None) -> Value:
    return _mean_over_dims(value, _all_dims(value), False, dtype, order)


@reduction("mean_over_dims")
def _mean_over_dims(
    value: Value, dims: Dims, keepdim: bool, dtype: Any, order: Order | None = None
) -> Value:
    value = _in_dtype(value, dtype)
    count = math.prod([value.shape[dim] for dim in dims])
    total = _kept(_reduced("sum", value, dims, order), value, dims, keepdim)
    return apply("true_divide", total, constant(count, value.dtype))


def _refuse_complex(value: Value) -> None:
    """Leave complex numbers, which have no order, to the kernel: it says so."""
    if value.dtype.kind == "c":
        raise NotImplementedError


@reduction("amax")
def _amax(value: Value, dims: Dims, keepdim: bool = False, order: Order | None = None) -> Value:
    _refuse_complex(value)
    return _kept(_reduced("max", value, dims, order), value, dims, keepdim)


@reduction("amin")
def _amin(value: Value, dims: Dims, keepdim: bool = False, order: Order | None = None) -> Value:
    _refuse_complex(value)
    return _kept(_reduced("min", value, dims, order), value, dims, keepdim)


@reduction("max")
def _max(value: Value, order: Order | None = None) -> Value:
    _refuse_complex(value)
    return _reduced("max", value, _all_dims(value), order)


@reduction("min")
def _min(value: Value, order: Order | None = None) -> Value:
    _refuse_complex(value)
    return _reduced("min", value, _all_dims(value), order)


@lowering("any")
def _any(value: Value, dims: Dims, keepdim: bool) -> Value:
    return _as_given(_kept(reduce("any", _truth(value), dims), value, dims, keepdim), value)


@lowering("all")
def _all(value: Value, dims: Dims, keepdim: bool) -> Value:
    return _as_given(_kept(reduce("all", _truth(value), dims), value, dims, keepdim), value)


def _as_given(result: Value, value: Value) -> Value:
    """Return truth values, of bytes as bytes."""
    return cast(result, value.dtype) if value.dtype == np.uint8 else result


def _truth(value: Value) -> Value:
    return cast(value, np.dtype(bool))


@lowering("softmax")
def _softmax(value: Value, dim: int, dtype: Any) -> Value:
    if 0 in value.shape or not value.shape:
        raise NotImplementedError
    exponentials, total = _exponentials(_in_dtype(value, dtype), dim)
    return apply("true_divide", exponentials, total)


@lowering("log_softmax")
def _log_softmax(value: Value, dim: int, dtype: Any) -> Value:
    value = _in_dtype(value, dtype)
    if 0 in value.shape or not value.shape:
        raise NotImplementedError
    highest = restore_dims(reduce("max", value, (dim,)), value.shape, (dim,))
    shifted = apply("sub", value, highest)
    total = reduce("sum", apply("exp", shifted), (dim,))
    return apply("sub", shifted, restore_dims(apply("log", total), value.shape, (dim,)))


@reduction("logsumexp")
def _logsumexp(
    value: Value, dims: Dims, keepdim: bool = False, order: Order | None = None
) -> Value:
    if value.dtype.kind != "f" or not _is_one_part(value.shape, dims, order):
        raise NotImplementedError
    top = _reduced("max", value, dims, order)
    top = apply("where", apply("isinf", top), constant(0, value.dtype), top)
    exponentials = apply("exp", apply("sub", value, restore_dims(top, value.shape, dims)))
    total = apply("log", _reduced("sum", exponentials, dims, order))
    return _kept(apply("add", total, top), value, dims, keepdim)


def _is_one_part(shape: Dims, dims: Dims, order: Order | None) -> bool:
    """Whether sums about a number of their own are not joined of parts, each about its own.

    What lies apart is no part either: the kernels put it side by side.
    """
    present = [dim for dim in (order.dims if order else range(len(shape))) if shape[dim] != 1]
    places = [place for place, dim in enumerate(present) if dim in dims]
    n = math.prod([shape[dim] for dim in dims])
    if not n or not places or len(places) <= places[-1] - places[0]:
        return False
    inner = math.prod([shape[dim] for dim in present[places[-1] + 1 :]])
    return n <= exponential_rows(inner)


def _squares(value: Value, dims: Dims, order: Order | None) -> tuple[Value, Value]:
    """Return the sum of squared distances from the mean, and the mean."""
    if value.dtype.kind != "f" or not _is_one_part(value.shape, dims, order):
        raise NotImplementedError
    count = math.prod([value.shape[dim] for dim in dims])
    total = _reduced("sum", value, dims, order)
    mean = apply("true_divide", total, constant(count, value.dtype))
    mean = _unrounded(mean, value, dims, order)
    distance = apply("sub", value, restore_dims(mean, value.shape, dims))
    return _reduced("sum", apply("mul", distance, distance), dims, order), mean


def _unrounded(mean: Value, value: Value, dims: Dims, order: Order | None) -> Value:
    """Return the mean; of equal numbers that number: see `numgrad.kernels.reduce.moments`."""
    backwards = order.backwards if order else frozenset()
    first, last = (
        _corner(value, dims, [dim for dim in dims if (dim in backwards) is is_last])
        for is_last in (False, True)
    )
    rounding = float(np.finfo(value.dtype).eps) / 2
    share = min(float(math.prod([value.shape[dim] for dim in dims])), MOST_ADDED) * rounding
    error = apply("mul", apply("abs", first), constant(share, value.dtype))
    is_near = apply("le", apply("abs", apply("sub", mean, first)), error)
    return apply("where", apply("logical_and", apply("eq", first, last), is_near), first, mean)


def _corner(value: Value, dims: Dims, at_first: Collection[int]) -> Value:
    """Return the elements with the first index of some of the dims and the last one of the rest."""
    kept = [dim for dim in range(len(value.shape)) if dim not in dims]
    maps = [
        Affine(0 if dim in at_first else n - 1, ())
        if dim in dims
        else Affine(0, ((kept.index(dim), 1),))
        for dim, n in enumerate(value.shape)
    ]
    return view(value, maps, tuple([value.shape[dim] for dim in kept]))


def _moments(
    value: Value, dims: Dims, keepdim: bool, correction: float, order: Order | None, root: bool
) -> tuple[Value, Value]:
    squares, mean = _squares(value, dims, order)
    count = math.prod([value.shape[dim] for dim in dims])
    degrees = constant(max(0.0, float(count - correction)), value.dtype)
    variance = apply("true_divide", squares, degrees)
    spread = apply("sqrt", variance) if root else variance
    return _kept(spread, value, dims, keepdim), _kept(mean, value, dims, keepdim)


def _lower_moments(name: str, root: bool) -> None:
    """Enter the lowerings of a variance or its root, and of that with the mean."""

    @reduction(name)
    def lowered(
        value: Value, dims: Dims, keepdim: bool, correction: float, named: Any, order: Order | None
    ) -> Value:
        return _moments(value, dims, keepdim, correction, order, root)[0]

    @reduction(f"{name}_mean")
    def lowered_both(
        value: Value, dims: Dims, keepdim: bool, correction: float, named: Any, order: Order | None
    ) -> tuple[Value, Value]:
        return _moments(value, dims, keepdim, correction, order, root)


_lower_moments("var", root=False)
_lower_moments("std", root=True)


@reduction("vector_norm")
def _vector_norm(
    value: Value, dims: Dims, keepdim: bool, p: float, dtype: Any, order: Order | None
) -> Value:
    value = _in_dtype(value, dtype)
    if value.dtype.kind != "f" or p not in (1, 2) or not dims or 0 in value.shape:
        raise NotImplementedError
    parts = apply("mul", value, value) if p == 2 else apply("abs", value)
    total = _kept(_reduced("sum", parts, dims, order), value, dims, keepdim)
    return apply("sqrt", total) if p == 2 else total


@lowering("logsumexp_backward")
def _logsumexp_backward(
    cotangent: Value, value: Value, output: Value, dims: Dims, keepdim: bool
) -> Value:
    if not keepdim:
        cotangent, output = (restore_dims(x, value.shape, dims) for x in (cotangent, output))
    return apply("mul", cotangent, apply("exp", apply("sub", value, output)))


def _exponentials(value: Value, dim: int) -> tuple[Value, Value]:
    highest = restore_dims(reduce("max", value, (dim,)), value.shape, (dim,))
    exponentials = apply("exp", apply("sub", value, highest))
    return exponentials, restore_dims(reduce("sum", exponentials, (dim,)), value.shape, (dim,))


@lowering("softmax_backward")
def _softmax_backward(cotangent: Value, output: Value, dim: int) -> Value:
    if not output.shape:
        raise NotImplementedError
    product = apply("mul", cotangent, output)
    total = restore_dims(reduce("sum", product, (dim,)), output.shape, (dim,))
    return apply("mul", output, apply("sub", cotangent, total))


@lowering("log_softmax_backward")
def _log_softmax_backward(cotangent: Value, output: Value, dim: int) -> Value:
    if not output.shape:
        raise NotImplementedError
    total = restore_dims(reduce("sum", cotangent, (dim,)), output.shape, (dim,))
    return apply("sub", cotangent, apply("mul", apply("exp", output), total))
