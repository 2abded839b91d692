"""Write results where `out` says."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.accumulate import OVERLAPS_ITSELF
from numgrad.graph.inplace import bump_version, write_elements
from numgrad.graph.modes import modes
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.memory_order import laid_out_like
from numgrad.kernels.move.strides import repeats_elements
from numgrad.ops.signatures.kinds import type_name

__all__ = ["check_out", "write_array", "write_result"]

Array = np.ndarray[Any, Any]


def check_out(function: str, out: Any) -> None:
    """Raise unless `out` can be written to: a tensor that gradients do not flow to."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {type_name(out)}")
    if modes.grad and out.requires_grad:
        raise RuntimeError(
            f"{function}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )


def write_result(function: str, result: Any, out: Any) -> Any:
    """Return a computed tensor, or each of several; or write it to `out`, which takes its shape.

    Raises
    ------
    RuntimeError
        If gradients flow to either, or the dtypes differ.
    """
    if out is None:
        return result
    if isinstance(result, tuple):
        if len(out) != len(result):
            raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
        written = [write_result(function, *each) for each in zip(result, out, strict=True)]
        return type(result)(*written)
    if modes.grad and result.requires_grad:
        check_out(function, result)
    check_out(function, out)
    if out._array.dtype != result._array.dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {result.dtype.cpp_name}, but got "
            f"{out.dtype.cpp_name} instead"
        )
    return write_array(function, result._array, out, None)


def write_array(function: str, array: Array, out: Tensor, dtype: Any) -> Tensor:
    """Write an array to `out`, which takes its shape.

    Raises
    ------
    RuntimeError
        If a dtype is asked for, and it is not that of `out`; if elements of `out` share memory.
    """
    if dtype is not None and array.dtype != out._array.dtype:
        raise RuntimeError(
            f"dtype {dtypes.of_numpy(array.dtype).scalar_name} does not match dtype of out "
            f"parameter ({out.dtype.scalar_name})"
        )
    if out._array.shape == array.shape:
        if repeats_elements(out._array):
            raise RuntimeError(OVERLAPS_ITSELF)
        write_elements(out, ..., array)
    else:
        out._array = array.astype(out._array.dtype)
        if type(array) is np.ndarray:
            out._array = laid_out_like(out._array, array)
        bump_version(out)
    return out
