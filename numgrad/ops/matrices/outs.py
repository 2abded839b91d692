"""What `out` of functions of matrices has to be, in PyTorch's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.graph.upward import upward
from numgrad.ops.core.out_argument import write_result

__all__ = ["by_rows", "casting", "of_one_dtype"]


def by_rows(function: str, result: Tensor, out: Any) -> Tensor:
    """Write a result to an `out` that lies row by row where it takes new memory."""
    written: Tensor = write_result(function, result, out, by_rows=True)
    return written


def of_one_dtype(name: str) -> Callable[..., Any]:
    """Return what writes results to an `out` of their dtype, and refuses others by a name."""

    def write(function: str, result: Tensor, out: Any) -> Tensor:
        if isinstance(out, Tensor) and out._array.dtype != result._array.dtype:
            raise RuntimeError(
                f"{name} expected out tensor dtype {result.dtype.scalar_name} but got: "
                f"{out.dtype.scalar_name}"
            )
        written: Tensor = write_result(function, result, out)
        return written

    return write


def casting(name: str, by_rows: bool = False, cast_by_rows: bool = False) -> Callable[..., Any]:
    """Return what writes results to an `out` of any dtype that they are cast to unasked.

    New memory of `out` lies row by row if that is said, of all or of what is cast; else as results.
    """

    def write(function: str, result: Tensor, out: Any) -> Tensor:
        rows = by_rows
        if isinstance(out, Tensor) and out._array.dtype != result._array.dtype:
            rows = rows or cast_by_rows
            if not dtypes.can_cast(result.dtype, out.dtype):
                raise RuntimeError(
                    f"{name}: Expected result to be safely castable from "
                    f"{result.dtype.scalar_name} dtype, but got result with dtype "
                    f"{out.dtype.scalar_name}"
                )
            result = upward.cast(result, out._array.dtype)
        written: Tensor = write_result(function, result, out, rows)
        return written

    return write
