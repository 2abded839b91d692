"""The arguments of reductions and scans: dims, `keepdim` and `dtype`, and PyTorch's errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.float_errors import silent
from numgrad.graph.modes import modes
from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.dims import read_dims, wrap_dim
from numgrad.ops.core.primitive import require_tensor

__all__ = [
    "NO_DIM",
    "check_dim",
    "check_dims",
    "check_keepdim",
    "in_dtype",
    "named_dims",
    "read_dtype",
    "reduced_dim",
    "reduced_dims",
    "scanned_dim",
]

Array = np.ndarray[Any, Any]
_astype = silent(np.ndarray.astype)
NO_DIM: Any = object()  # what a required dim is until it is given


def check_keepdim(function: str, keepdim: Any) -> None:
    """Raise unless `keepdim` is a bool: ``x.sum(0, 1)`` may be meant to name two dims."""
    if type(keepdim) is not bool:
        raise TypeError(
            f"{function}(): argument 'keepdim' (position 2) must be bool, not "
            f"{type(keepdim).__name__}"
        )


def _is_int(dim: Any) -> bool:
    return hasattr(dim, "__index__") and not isinstance(dim, (bool, np.bool_))


def check_dim(function: str, dim: Any) -> None:
    """Raise unless `dim` is an int."""
    if not _is_int(dim):
        raise TypeError(
            f"{function}(): argument 'dim' (position 1) must be int, not {type(dim).__name__}"
        )


def check_dims(function: str, dim: Any) -> None:
    """Raise unless `dim` is an int, a sequence of ints, or None."""
    if isinstance(dim, (tuple, list)):
        for position, item in enumerate(dim):
            if not _is_int(item):
                raise TypeError(
                    f"{function}(): argument 'dim' (position 1) must be tuple of ints, but found "
                    f"element of type {type(item).__name__} at pos {position}"
                )
    elif dim is not None and not _is_int(dim):
        raise TypeError(
            f"{function}(): argument 'dim' (position 1) must be tuple of ints, not "
            f"{type(dim).__name__}"
        )


def named_dims(dim: Any) -> tuple[Any, ...]:
    """Return the dims that a call names, as they were written; none if all of them are meant."""
    if dim is None:
        return ()
    return tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)


def reduced_dims(function: str, input: Any, dim: Any, keepdim: Any = False) -> tuple[int, ...]:
    """Return the dims to reduce, counted from the front; None and no dims at all mean all of them.

    Parameters
    ----------
    function : str
        The caller's name, for messages.
    input : tensor
    dim : int, sequence of ints, or None
    keepdim : bool

    Raises
    ------
    TypeError
        If an argument is of another type.
    IndexError
        If there is no such dim.
    RuntimeError
        If a dim is named twice.
    """
    ndim = require_tensor(input, function, "input", 1)._array.ndim
    if keepdim is not False:
        check_keepdim(function, keepdim)
    if dim is None:
        return tuple(range(ndim))
    if type(dim) is int and -ndim <= dim < ndim:
        return (dim % ndim,)
    check_dims(function, dim)
    dims = tuple([wrap_dim(item, ndim) for item in named_dims(dim)])
    if len(set(dims)) < len(dims):
        read_dims(dims, ndim)  # says which one is named twice
    if ndim == 0:
        return ()
    return dims or tuple(range(ndim))


def reduced_dim(function: str, input: Any, dim: Any, keepdim: Any = False) -> int:
    """Return one dim, counted from the front; 0 for a tensor without dims.

    Raises
    ------
    TypeError
        If `dim` is no int.
    IndexError
        If there is no such dim.
    """
    ndim = require_tensor(input, function, "input", 1)._array.ndim
    if keepdim is not False:
        check_keepdim(function, keepdim)
    if type(dim) is int and -ndim <= dim < ndim:
        return dim % ndim
    check_dim(function, dim)
    return wrap_dim(dim, ndim)


def scanned_dim(function: str, input: Any, dim: Any) -> int:
    """Return the dim of a function that needs one; see `reduced_dim`."""
    if dim is NO_DIM:
        raise TypeError(f'{function}() missing 1 required positional arguments: "dim"')
    return reduced_dim(function, input, dim)


def read_dtype(input: Tensor, dtype: Any) -> np.dtype[Any] | None:
    """Return the NumPy dtype to compute in, or None for the input's own.

    Raises
    ------
    RuntimeError
        If a gradient would have to pass through integers.
    """
    if dtype is None:
        return None
    chosen = dtypes.to_dtype(dtype)
    if chosen.category < dtypes.FLOATING and modes.grad and input.requires_grad:
        raise RuntimeError(f"Autograd not support dtype: {chosen.scalar_name}")
    if chosen.numpy == input._array.dtype and chosen.category >= dtypes.FLOATING:
        return None  # integers and bools would be added in int64
    return chosen.numpy


def in_dtype(array: Array, dtype: np.dtype[Any] | None) -> Array:
    """Return an array in a dtype; of complex numbers that become real, the real part."""
    if dtype is None or array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        warnings.warn(
            "Casting complex values to real discards the imaginary part", UserWarning, stacklevel=5
        )
        array = array.real
    return _astype(array, dtype)
