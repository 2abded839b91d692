"""Reductions as NumPy calls them: with its `axis`, `dtype`, `out`, `initial`, `where` and `ddof`.

`REDUCED` has a function for each name of NumPy's. They are made of tensors' operations, so that
gradients flow and `jit` traces them. Where NumPy computes in uint64, which tensors don't have, it
is int64.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.codegen.llvm.combine_ir import REDUCTIONS
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.core.registry import FUNCTIONS

__all__ = ["REDUCED", "axes_of", "axis_of", "put"]


def axis_of(axis: Any, ndim: int) -> int:
    """Return an axis counted from the first.

    Raises
    ------
    TypeError, numpy.exceptions.AxisError
        In NumPy's words, if it is no integer, or there is no such axis.
    """
    place = index(axis)
    if not -ndim <= place < ndim:
        raise np.exceptions.AxisError(place, ndim)
    return place % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes that one of NumPy's arguments names: all for None; in order, from the first.

    Raises
    ------
    TypeError, ValueError
        In NumPy's words, if one is no integer, does not exist, or is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    found = [axis_of(each, ndim) for each in (axis if isinstance(axis, tuple) else (axis,))]
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(found))


def _of_number(a: Tensor, axis: Any) -> Any:
    """Return an axis; of a tensor without axes NumPy takes the first one for all of them."""
    if a.ndim or axis is None or isinstance(axis, tuple) or index(axis) not in (0, -1):
        return axis
    return None


def put(name: str, result: Tensor, out: Tensor | None) -> Tensor:
    """Return a result, or write it to `out`, cast as NumPy does."""
    if out is None:
        return result
    own, its = result._array.dtype, out._array.dtype
    if not np.can_cast(own, its, "same_kind"):
        raise TypeError(
            f"Cannot cast numpy.{name} output from {own!r} to {its!r} with casting rule 'same_kind'"
        )
    if result.shape != out.shape:
        raise ValueError(
            f"output parameter for reduction operation {name} has the wrong shape: it has "
            f"{tuple(out.shape)}, and the result {tuple(result.shape)}"
        )
    return write_result(name, result.to(out.dtype), out)


def _reduce(target: str, a: Tensor, axis: Any, keepdims: bool, **options: Any) -> Tensor:
    """Reduce along any axes; along none, every element alone."""
    axes = axes_of(axis, a.ndim)
    if not axes:
        reduced: Tensor = FUNCTIONS[target](a.unsqueeze(-1), dim=-1, **options)
        return reduced
    if target == "prod" and len(axes) > 1:  # takes one dim: lay them in one row
        shape = [1 if dim in axes else length for dim, length in enumerate(a.shape)]
        rest = [dim for dim in range(a.ndim) if dim not in axes]
        row = a.permute((*rest, *axes)).reshape(*[a.shape[dim] for dim in rest], -1)
        reduced = FUNCTIONS[target](row, dim=-1, **options)
        return reduced.reshape(shape) if keepdims else reduced
    if axis is None and not keepdims:
        return FUNCTIONS[target](a, **options)
    dims = axes[0] if len(axes) == 1 else axes
    return FUNCTIONS[target](a, dim=dims, keepdim=bool(keepdims), **options)


def _mask(where: Any, a: Tensor) -> Tensor | None:
    """Return a mask in the shape of what it says of, None where it leaves nothing out."""
    if where is True:
        return None
    made: Tensor = upward.as_tensor(where)
    if made._array.dtype.kind != "b":
        raise TypeError(f"where= must be an array of bools, not of {made._array.dtype}")
    return made.expand(a.shape)


def _plain(name: str) -> Callable[..., Tensor]:
    """Return a reduction whose result is one of, or of the kind of, the elements."""
    join = REDUCTIONS[name].operation
    # What an element counts as where a mask leaves it out. None: NumPy wants an initial value, and
    # counts it as that.
    neutral = REDUCTIONS[name].of_nothing

    def reduced(
        a: Tensor,
        axis: Any = None,
        dtype: Any = None,
        out: Tensor | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Tensor:
        axis = _of_number(a, axis)
        if type(neutral) is bool:
            a = a.to(dtypes.bool_)
        options = {} if dtype is None else {"dtype": dtype}
        if dtype is not None and name not in ("sum", "prod"):
            a, options = a.to(dtype), {}
        mask = _mask(where, a)
        if mask is not None:
            other = initial if neutral is None else neutral
            if other is None:
                raise ValueError(
                    f"reduction operation '{join}' does not have an identity, so to use a "
                    "where mask one has to specify 'initial'"
                )
            a = FUNCTIONS["where"](mask, a, _number(other, a))
        if a.numel() == 0 and neutral is None and initial is not None:
            # Of no elements there is no largest one: then it is the initial value alone.
            axes = axes_of(axis, a.ndim)
            shape = [1 if dim in axes else length for dim, length in enumerate(a.shape)]
            shape = shape if keepdims else [n for d, n in enumerate(a.shape) if d not in axes]
            result = a.new_full(shape, _number(initial, a))
        else:
            result = _reduce(name, a, axis, keepdims, **options)
            if initial is not None:
                start = upward.as_tensor(_number(initial, result), dtype=result.dtype)
                result = FUNCTIONS[join](result, start)
        return put(name, result, out)

    return reduced


def _number(value: Any, like: Tensor) -> Any:
    """Return a number of Python's in the kind of a tensor's dtype, as NumPy casts it."""
    value = value.item() if isinstance(value, (Tensor, np.generic, np.ndarray)) else value
    kind = like._array.dtype.kind
    if kind == "b":
        return bool(value)
    return int(value) if kind in "iu" and isinstance(value, float) else value


def _inexact(name: str, a: Tensor, dtype: dtypes.dtype | None) -> Tensor:
    """Return what a mean is computed of: integers and bools as float64."""
    if dtype is None:
        return a if a._array.dtype.kind in "fc" else a.to(dtypes.float64)
    if dtype.category < dtypes.FLOATING:
        raise TypeError(
            f"numgrad has no numpy.{name}(dtype={dtype!r}) for tensors: it is floating point or "
            "complex"
        )
    return a.to(dtype)


def _count(a: Tensor, mask: Tensor | None, axis: Any, keepdims: bool) -> Any:
    """Return how many elements each result is made of."""
    if mask is not None:
        return _reduce("sum", mask, axis, keepdims).to(a.real.dtype if a.is_complex() else a.dtype)
    return int(np.prod([a.shape[each] for each in axes_of(axis, a.ndim)], dtype=np.int64))


def _zero_outside(a: Tensor, mask: Tensor | None) -> Tensor:
    return a if mask is None else FUNCTIONS["where"](mask, a, 0)


def _mean(
    a: Tensor,
    axis: Any = None,
    dtype: Any = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    where: Any = True,
) -> Tensor:
    a = _inexact("mean", a, dtype)
    mask = _mask(where, a)
    if mask is None:
        return put("mean", _reduce("mean", a, axis, keepdims), out)
    total = _reduce("sum", _zero_outside(a, mask), axis, keepdims)
    return put("mean", total / _count(a, mask, axis, keepdims), out)


def _nanmean(
    a: Tensor,
    axis: Any = None,
    dtype: Any = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    where: Any = True,
) -> Tensor:
    counts_all = a._array.dtype.kind not in "fc"  # as of `mean`, which has other words for axes
    a = _inexact("nanmean", a, dtype)
    if counts_all:
        return _mean(a, axis, None, out, keepdims, where)
    axis = _of_number(a, axis)
    if where is True and not a.is_complex():
        return put("nanmean", _reduce("nanmean", a, axis, keepdims), out)
    known = ~a.isnan()
    mask = _mask(where, a)
    if mask is not None:
        known = known & mask
    return _mean(a, axis, None, out, keepdims, known)


def _variance(name: str) -> Callable[..., Tensor]:
    def reduced(
        a: Tensor,
        axis: Any = None,
        dtype: Any = None,
        out: Tensor | None = None,
        ddof: Any = 0,
        keepdims: bool = False,
        where: Any = True,
        correction: Any = None,
    ) -> Tensor:
        if correction is not None:
            if ddof != 0:
                raise ValueError("ddof and correction can't be provided simultaneously.")
            ddof = correction
        if a.is_complex() and dtype is not None and not dtype.is_complex:
            raise TypeError(f"numpy.{name}(dtype=): that of a complex tensor is complex")
        a = _inexact(name, a, dtype)
        mask = _mask(where, a)
        if mask is None and axes_of(axis, a.ndim):
            found = _reduce(name, a, axis, keepdims, correction=ddof)
            return put(name, found if dtype is None else found.to(dtype), out)
        # Of single elements, and of what a mask leaves.
        count = _count(a, mask, axis, True)
        middle = _reduce("sum", _zero_outside(a, mask), axis, True) / count
        away = _zero_outside(a - middle, mask)
        squares = _reduce("sum", (away * away.conj()).real, axis, keepdims)
        left = _count(a, mask, axis, keepdims) - ddof
        left = left.clamp(min=0) if isinstance(left, Tensor) else max(left, 0)
        result = squares / left
        result = result.sqrt() if name == "std" else result
        return put(name, result if dtype is None else result.to(dtype), out)

    return reduced


def _peak_to_peak(
    a: Tensor, axis: Any = None, out: Tensor | None = None, keepdims: bool = False
) -> Tensor:
    axis = _of_number(a, axis)
    high, low = (_reduce(name, a, axis, keepdims) for name in ("amax", "amin"))
    return put("ptp", high - low, out)


def _position(name: str) -> Callable[..., Tensor]:
    def found(
        a: Tensor, axis: Any = None, out: Tensor | None = None, keepdims: bool = False
    ) -> Tensor:
        if a._array.dtype.kind == "b":
            a = a.to(dtypes.uint8)
        ndim, axis = a.ndim, _of_number(a, axis)
        if axis is not None:
            return put(name, FUNCTIONS[name](a, axis_of(axis, ndim), bool(keepdims)), out)
        result: Tensor = FUNCTIONS[name](a.reshape(-1), 0)
        return put(name, result.reshape([1] * ndim) if keepdims else result, out)

    return found


def _count_nonzero(a: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    axis = _of_number(a, axis)
    return _reduce("sum", a != 0 if a._array.dtype.kind != "b" else a, axis, keepdims)


def _scan(name: str) -> Callable[..., Tensor]:
    def scanned(
        a: Tensor, axis: Any = None, dtype: Any = None, out: Tensor | None = None
    ) -> Tensor:
        axis = _of_number(a, axis)
        if axis is None:
            a, axis = a.reshape(-1), 0
        return put(name, FUNCTIONS[name](a, axis_of(axis, a.ndim), dtype=dtype), out)

    return scanned


REDUCED: dict[str, Callable[..., Tensor]] = {
    **{name: _plain(name) for name in REDUCTIONS},
    **{name: _variance(name) for name in ("std", "var")},
    **{name: _position(name) for name in ("argmax", "argmin")},
    **{name: _scan(name) for name in ("cumsum", "cumprod")},
    "mean": _mean,
    "nanmean": _nanmean,
    "ptp": _peak_to_peak,
    "count_nonzero": _count_nonzero,
}
