"""The result of an elementwise operation written to ``out``, which keeps its dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.accumulate import OVERLAPS_ITSELF
from numgrad.graph.anomaly import note_write
from numgrad.graph.inplace import before_write, check_counted, write_elements
from numgrad.graph.modes import interceptors, modes
from numgrad.graph.overlap import OVERLAPS_PARTLY, overlaps
from numgrad.graph.tensor import NO_EDGE, Tensor
from numgrad.kernels.move.memory_order import empty_for
from numgrad.kernels.move.strides import repeats_elements

__all__ = ["arrays_among", "write_out"]

Array = np.ndarray[Any, Any]


def write_out(
    primitive: Any,
    out: Tensor,
    shape: tuple[int, ...],
    arrays: list[Any],
    result: np.dtype[Any],
    records: bool,
    values: Array | None = None,
) -> Tensor:
    """Write the result to `out`, which keeps its dtype; `values` are it, if known already."""
    if (records and primitive.kind != "bool") or (modes.grad and out._edge is not NO_EDGE):
        raise RuntimeError(
            f"{primitive.function_name}(): functions with out=... arguments don't support "
            "automatic differentiation, but one of the arguments requires grad."
        )
    if type(out._counter) is not list:
        check_counted(out)
    target = out._array
    if result is not target.dtype and not dtypes.can_cast(
        dtypes.of_numpy(result), dtypes.of_numpy(target.dtype)
    ):
        raise RuntimeError(
            f"result type {dtypes.of_numpy(result).scalar_name} can't be cast to the desired "
            f"output type {out.dtype.scalar_name}"
        )
    if target.shape != shape:
        # An operand that is written to keeps its shape; an output that is no operand may grow.
        if target.size or any(array is target for array in arrays):
            raise RuntimeError(
                f"output with shape {list(target.shape)} doesn't match the broadcast shape "
                f"{list(shape)}"
            )
        deciding = arrays_among(arrays if values is None else [values])
        if primitive.deciding is not None and values is None:
            deciding = primitive.deciding(deciding)
        if primitive.kind == "real" and any(
            array.dtype.kind == "c" for array in arrays_among(arrays)
        ):
            deciding = []  # PyTorch makes room for the numbers before it computes
        out._array = target = empty_for(shape, target.dtype, deciding)
    if repeats_elements(target):
        raise RuntimeError(OVERLAPS_ITSELF)
    if modes.trace is not None:
        write_elements(out, ..., modes.trace.elementwise(primitive, shape, arrays, result))
        return out
    sharing = [
        array
        for array in arrays_among(arrays)
        if array is not target and np.may_share_memory(array, target)
    ]
    if any(overlaps(target, array) == (True, False) for array in sharing):
        raise RuntimeError(OVERLAPS_PARTLY)
    if interceptors:
        before_write(out)
    if values is not None:
        _assign(target, values)
        out._counter[0] += 1
        return out
    if target.dtype == result and target.flags.c_contiguous and not sharing:
        primitive.kernel(shape, arrays, [result], [target])
    else:
        _assign(target, primitive.kernel(shape, arrays, [result])[0])
    out._counter[0] += 1
    if interceptors:
        note_write(out._counter)
    return out


def _assign(target: Array, values: Array) -> None:
    """Write values of any dtype; what `target` can't hold is infinite there, without a word."""
    if values.dtype is target.dtype:
        target[...] = values
        return
    with np.errstate(over="ignore", invalid="ignore"):
        target[...] = values


def arrays_among(values: Sequence[Any]) -> list[Array]:
    """Return what is an array, and not a number."""
    return [value for value in values if type(value) is np.ndarray]
