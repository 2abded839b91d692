"""Functions of NumPy's parameters, where those of tensors' operations are others.

`numgrad.ops.numpy.names` has which of NumPy's each is. They are made of tensors' operations, so
that gradients flow and `jit` traces them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import zip_longest
from operator import index
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.numpy.reductions import axes_of, axis_of, put

__all__ = [
    "alike",
    "angle",
    "argsort",
    "array_equal",
    "clip",
    "compared",
    "dot",
    "expand_dims",
    "flip",
    "full_like",
    "imag",
    "inner",
    "lengths",
    "like",
    "norm",
    "outer",
    "parts",
    "product",
    "repeat",
    "roll",
    "round_",
    "sort",
    "split",
    "squeeze",
    "take",
    "trace",
    "transpose",
    "vdot",
    "where",
]


def alike(*operands: Any) -> list[Tensor]:
    """Return operands as tensors of one dtype."""
    dtype = result_dtype(list(operands))
    return [
        operand.to(dtype)
        if isinstance(operand, Tensor)
        else FUNCTIONS["scalar_tensor"](operand, dtype=dtype)
        for operand in operands
    ]


def compared(name: str) -> Callable[..., Any]:
    """Return a comparison of tensors of one dtype as one of any operands."""
    return lambda a, b, **options: FUNCTIONS[name](*alike(a, b), **options)


def lengths(shape: Any) -> tuple[int, ...]:
    """Return a shape, which in NumPy may be one number."""
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


# --- products -------------------------------------------------------------------------------------


def product(name: str) -> Callable[..., Any]:
    """Return a product of tensors of one dtype as one of any operands."""
    return lambda a, b, **options: FUNCTIONS[name](*alike(a, b), **options)


def dot(a: Any, b: Any, **options: Any) -> Any:
    """Return ``numpy.dot``: a sum over the last axis of `a` and the last but one of `b`."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor) and a.ndim and b.ndim):
        return FUNCTIONS["mul"](a, b, **options)
    a, b = alike(a, b)
    if b.ndim <= 2:
        return FUNCTIONS["matmul"](a, b, **options)
    return FUNCTIONS["tensordot"](a, b, dims=([a.ndim - 1], [b.ndim - 2]), **options)


def vdot(a: Any, b: Any) -> Any:
    """Return ``numpy.vdot``, of all elements in one row."""
    return FUNCTIONS["vdot"](*[each.reshape(-1) for each in alike(a, b)])


def inner(a: Any, b: Any) -> Any:
    """Return ``numpy.inner``: a sum over the last axis of both."""
    a, b = alike(a, b)
    return FUNCTIONS["inner"](a, b) if a.ndim and b.ndim else a * b


def outer(a: Any, b: Any, **options: Any) -> Any:
    """Return ``numpy.outer``, of all elements in one row."""
    return FUNCTIONS["outer"](*[each.reshape(-1) for each in alike(a, b)], **options)


def norm(x: Tensor, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return a norm of vectors, or Frobenius' of matrices."""
    if axis is not None and not isinstance(axis, tuple):
        try:
            axis = index(axis)
        except TypeError:
            raise TypeError("'axis' must be None, an integer or a tuple of integers") from None
    if x._array.dtype.kind not in "fc":
        x = x.to(dtypes.float64)
    of_matrices = len(axis) == 2 if isinstance(axis, tuple) else axis is None and x.ndim == 2
    if ord == "fro" and not of_matrices:
        raise ValueError("Invalid norm order 'fro' for vectors")
    if ord not in (None, "fro") and (of_matrices or (axis is None and x.ndim != 1)):
        raise TypeError(
            f"numpy.linalg.norm: numgrad has norms of vectors (give one axis) and, of matrices, "
            f"Frobenius', not ord={ord!r}"
        )
    found: Tensor = FUNCTIONS["norm"](x, 2 if ord in (None, "fro") else ord, axis, bool(keepdims))
    return found


def trace(
    a: Tensor,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return ``numpy.trace``, of the matrices of two axes."""
    return put("trace", a.diagonal(offset, dim1, dim2).sum(-1, dtype=dtype), out)


# --- shapes ---------------------------------------------------------------------------------------


def expand_dims(a: Tensor, axis: Any) -> Tensor:
    """Return ``numpy.expand_dims``, whose axes are those of the result."""
    axis = tuple(axis) if isinstance(axis, list) else axis
    count = len(axis) if isinstance(axis, tuple) else 1
    for place in axes_of(axis, a.ndim + count):
        a = a.unsqueeze(place)
    return a


def flip(m: Tensor, axis: Any = None) -> Tensor:
    """Return ``numpy.flip``, along all axes if none is given."""
    axes = axes_of(tuple(axis) if isinstance(axis, list) else axis, m.ndim)
    flipped: Tensor = FUNCTIONS["flip"](m, axes)
    return flipped


def repeat(a: Tensor, repeats: Any, axis: Any = None) -> Tensor:
    """Return ``numpy.repeat``, whose counts are one number, or one for each element."""
    if axis is None:
        a, axis = a.reshape(-1), 0
    if isinstance(repeats, (list, tuple)):
        repeats = upward.as_tensor(repeats)
    if isinstance(repeats, Tensor):
        if repeats._array.dtype.kind not in "iub":
            raise TypeError(f"numpy.repeat: repeats are integers, not of {repeats.dtype!r}")
        repeats = repeats.to(dtypes.int64)
        length = a.shape[axis_of(axis, a.ndim)]
        if repeats.numel() == 1:
            repeats = repeats.reshape(-1).expand(length)
        elif repeats.shape != (length,):
            raise ValueError(
                f"operands could not be broadcast together with shape ({length},) "
                f"{tuple(repeats.shape)}"
            )
    repeated: Tensor = FUNCTIONS["repeat_interleave"](a, repeats, dim=axis)
    return repeated


def roll(a: Tensor, shift: Any, axis: Any = None) -> Tensor:
    """Return ``numpy.roll``, where one shift or axis goes with several of the other."""
    if axis is None:
        rolled: Tensor = FUNCTIONS["roll"](a, sum(lengths(shift)))
        return rolled
    shifts, axes = lengths(shift), lengths(axis)
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    filler = shifts[-1] if len(shifts) < len(axes) else axes[-1]
    for each, dim in zip_longest(shifts, axes, fillvalue=filler):
        a = FUNCTIONS["roll"](a, each, axis_of(dim, a.ndim))
    return a


def split(ary: Tensor, indices_or_sections: Any, dim: int = 0) -> Any:
    """Return ``numpy.split``, whose sections are of one length."""
    if isinstance(indices_or_sections, int) and ary.shape[dim] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return FUNCTIONS["tensor_split"](ary, indices_or_sections, dim=dim)


def parts(name: str) -> Callable[..., Any]:
    """Return ours of a function whose one argument, by whatever name, says where to cut."""

    def cut(ary: Tensor, indices_or_sections: Any, **options: Any) -> Any:
        return FUNCTIONS[name](ary, indices_or_sections, **options)

    return cut


def squeeze(a: Tensor, axis: Any = None) -> Tensor:
    """Return ``numpy.squeeze``, which drops only axes of length 1."""
    if axis is None:
        return a.squeeze()
    axes = axes_of(axis, a.ndim)
    if any(a.shape[each] != 1 for each in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return a.squeeze(axes)


def transpose(a: Tensor, axes: Any = None) -> Tensor:
    """Return ``numpy.transpose``, the axes reversed if none are given."""
    return a.permute(tuple(reversed(range(a.ndim))) if axes is None else tuple(axes))


# --- elements -------------------------------------------------------------------------------------


def where(condition: Any, *branches: Any) -> Any:
    """Return ``numpy.where``, whose condition may be numbers: those that are not 0 hold."""
    if not isinstance(condition, Tensor):
        condition = upward.as_tensor(condition)
    if condition._array.dtype.kind != "b":
        condition = condition != 0
    return FUNCTIONS["where"](condition, *branches)


def clip(a: Tensor, min: Any = None, max: Any = None, out: Tensor | None = None) -> Tensor:
    """Return ``numpy.clip``, whose bounds are numbers or broadcast, or missing."""
    bounds = [
        upward.as_tensor(each) if isinstance(each, (list, tuple)) else each for each in (min, max)
    ]
    if any(isinstance(each, Tensor) for each in bounds):
        for name, bound in zip(("maximum", "minimum"), bounds, strict=True):
            if bound is not None:
                a = FUNCTIONS[name](*alike(a, bound))
        return put("clip", a, out)
    if min is None and max is None:
        return put("clip", a.clone(), out)
    return put("clip", a.clamp(min, max), out)


def imag(val: Tensor) -> Tensor:
    """Return ``numpy.imag``: zeros of what is real."""
    return val.imag if val.is_complex() else like(0)(val)


def angle(z: Tensor, deg: bool = False) -> Tensor:
    """Return ``numpy.angle``, in radians or degrees."""
    found: Tensor = FUNCTIONS["angle"](z)
    return found * (180 / math.pi) if deg else found


def round_(a: Tensor, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Return ``numpy.round``; integers have no decimals to lose."""
    if a._array.dtype.kind not in "biu" or decimals == 0:
        found: Tensor = FUNCTIONS["round"](a, decimals=decimals, out=out)
        return found
    if decimals < 0 or a._array.dtype.kind == "b":
        raise TypeError(
            f"numgrad has no numpy.round(decimals={decimals}) for tensors of {a.dtype!r}. For "
            "NumPy's, give it np.asarray(tensor)"
        )
    found = FUNCTIONS["clone"](a) if out is None else out.copy_(a)
    return found


def array_equal(a: Any, b: Any, equal_nan: bool = False) -> bool:
    """Return ``numpy.array_equal``."""
    one, other = alike(a, b)
    if one.shape != other.shape:
        return False
    same = one == other
    return bool((same | (one.isnan() & other.isnan()) if equal_nan else same).all())


def take(
    a: Tensor, indices: Any, axis: Any = None, out: Tensor | None = None, mode: str = "raise"
) -> Tensor:
    """Return ``numpy.take``: positions count from the last where they are negative."""
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = axis_of(axis, a.ndim)
    length = a.shape[axis]
    positions = upward.as_tensor(indices)
    if positions._array.dtype.kind not in "iu":
        raise TypeError(f"numpy.take: positions are integers, not of {positions.dtype!r}")
    if mode == "clip":
        positions = positions.clamp(0, length - 1)
    elif mode == "wrap":
        positions = positions % length
    elif mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    taken: Tensor = a[(*[slice(None)] * axis, positions)]
    return put("take", taken, out)


def _is_stable(kind: str | None, stable: bool | None) -> bool:
    if kind is not None and stable is not None:
        raise ValueError(
            "`kind` and `stable` parameters can't be provided at the same time. Use only one of "
            "them."
        )
    if kind is not None and kind not in ("quicksort", "mergesort", "heapsort", "stable"):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    return bool(stable) or kind in ("mergesort", "stable")


def sort(a: Tensor, dim: int, kind: str | None = None, stable: bool | None = None) -> Tensor:
    """Return ``numpy.sort``."""
    found: Tensor = a.sort(stable=_is_stable(kind, stable), dim=dim).values
    return found


def argsort(a: Tensor, dim: int, kind: str | None = None, stable: bool | None = None) -> Tensor:
    """Return ``numpy.argsort``."""
    found: Tensor = a.sort(stable=_is_stable(kind, stable), dim=dim).indices
    return found


# --- new tensors ----------------------------------------------------------------------------------


def full_like(a: Tensor, fill_value: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Return ``numpy.full_like``, filled with a number or with what is broadcast."""
    size = tuple(a.shape) if shape is None else lengths(shape)
    if not isinstance(fill_value, (Tensor, list, tuple, np.ndarray)):
        return a.new_full(size, fill_value, dtype=dtype)
    value = upward.as_tensor(fill_value)
    filled: Tensor = value.to(a.dtype if dtype is None else dtype).expand(size).clone()
    return filled


def like(value: int) -> Callable[..., Tensor]:
    """Return the function that makes a tensor like another one, of one number."""
    return lambda a, **options: full_like(a, value, **options)
