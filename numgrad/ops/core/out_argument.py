"""Results written to `out`: what it has to be for each kind of function, and the one writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.backward.accumulate import OVERLAPS_ITSELF
from numgrad.graph.inplace import check_counted, write_elements
from numgrad.graph.modes.state import modes
from numgrad.graph.overlap import OVERLAPS_PARTLY, check_overlap, overlaps
from numgrad.graph.recorder import Traced
from numgrad.graph.tensor import NO_EDGE, Tensor, set_array
from numgrad.graph.warned import warn
from numgrad.kernels.move.loop_order import ResultOrder, copy_order, result_order
from numgrad.kernels.move.memory_order import empty_by
from numgrad.kernels.move.strides import repeats_elements
from numgrad.ops.core.type_names import type_name

__all__ = [
    "SAME_DTYPE",
    "arrays_among",
    "check_out",
    "check_out_dtype",
    "check_out_overlap",
    "check_outs",
    "refuse_gradients",
    "warn_of_resizing",
    "write",
    "write_elementwise",
    "write_result",
]

Array = np.ndarray[Any, Any]

# What PyTorch says of most operations that do not cast to the dtype of `out`.
SAME_DTYPE = "Found dtype {out} but expected {result}"


def write(
    array: Any,
    out: Tensor,
    deciding: Sequence[Array] | ResultOrder | None = None,
    warns: bool = True,
) -> Tensor:
    """Write an array to `out`, which takes its shape, and keeps its own dtype.

    Parameters
    ----------
    array : array
    out : Tensor
    deciding : sequence of array or ResultOrder, optional
        By which it is decided how new memory lies, if not by the array itself; or how it does.
    warns : bool
        Whether to warn where `out` takes another shape and was not empty.

    Raises
    ------
    RuntimeError
        If elements of `out` share memory, or its writes can't be counted.
    """
    target: Any = out._array
    if target.shape != array.shape:
        if target.size and warns:
            warn_of_resizing(target.shape, array.shape)
        if type(out._counter) is not list:
            check_counted(out)
        node, number = out._edge or NO_EDGE
        if node is not None:
            node.attach().recorded_shapes.setdefault(number, target.shape)
        if type(target) is Traced:
            target = array.astype(target.dtype)
        else:
            known = arrays_among([array]) if deciding is None else deciding
            order = known if isinstance(known, ResultOrder) else result_order(array.shape, known)
            target = empty_by(order, array.shape, target.dtype)
        set_array(out, target)
    elif repeats_elements(target):
        raise RuntimeError(OVERLAPS_ITSELF)
    write_elements(out, ..., array)
    return out


def warn_of_resizing(shape: Sequence[int], wanted: Sequence[int]) -> None:
    """Warn, as PyTorch does, that an `out` which is not empty takes another shape."""
    warn(
        f"An output with one or more elements was resized since it had shape {list(shape)}, which "
        f"does not match the required output shape {list(wanted)}. This behavior is deprecated, "
        "and in a future PyTorch release outputs will not be resized unless they have zero "
        "elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
        "elements with t.resize_(0)."
    )


def refuse_gradients(function: str, flow: bool) -> None:
    """Raise if gradients would flow to what a function writes, or to what it is written to."""
    if flow:
        raise RuntimeError(
            f"{function}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )


def check_out(function: str, out: Any) -> None:
    """Raise unless `out` can be written to: a tensor that gradients do not flow to."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {type_name(out)}")
    refuse_gradients(function, modes.grad and out.requires_grad)


def check_out_dtype(words: str, out: Tensor | None, dtype: dtypes.dtype) -> None:
    """Raise, in these words of `out` and `result`, if `out` is of another dtype than the result."""
    if isinstance(out, Tensor) and out.dtype is not dtype:
        raise RuntimeError(words.format(out=out.dtype.scalar_name, result=dtype.scalar_name))


def check_out_overlap(out: Any, apart: Sequence[Any], in_step: Sequence[Any]) -> None:
    """Raise, as PyTorch does, if a tensor is read whose memory `out`, or one of several, shares.

    Parameters
    ----------
    out : tensor, or sequence of some
    apart : sequence
        What may share none.
    in_step : sequence
        What may share that of the same elements.
    """
    for each in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(each, Tensor):
            check_overlap(each, apart, apart=True, repeats=True)
            check_overlap(each, in_step, repeats=True)


def check_outs(function: str, out: Any, count: int) -> None:
    """Raise unless `out` are so many tensors."""
    if not isinstance(out, (tuple, list)):
        raise TypeError(
            f"{function}(): argument 'out' must be tuple of Tensors, not {type_name(out)}"
        )
    if len(out) != count:
        raise TypeError(f"expected tuple of {count} elements but got {len(out)}")


def write_result(
    function: str, result: Any, out: Any, by_rows: bool = False, like: Tensor | None = None
) -> Any:
    """Return a computed tensor, or each of several; or write it to `out`, which takes its shape.

    Where `out` takes new memory it lies as the result does, as what it is made `like`, or row by
    row.

    Raises
    ------
    RuntimeError
        If gradients flow to either, or the dtypes differ.
    """
    if out is None:
        return result
    if isinstance(result, tuple):
        check_outs(function, out, len(result))
        written = [write_result(function, *each) for each in zip(result, out, strict=True)]
        return tuple(written) if type(result) is tuple else type(result)(*written)
    refuse_gradients(function, modes.grad and result.requires_grad)
    check_out(function, out)
    if out._array.dtype != result._array.dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {result.dtype.cpp_name}, but got "
            f"{out.dtype.cpp_name} instead"
        )
    deciding = None if like is None else [like._array]
    return write(result._array, out, [] if by_rows else deciding)


def write_elementwise(
    primitive: Any, operands: Sequence[Any], array: Any, out: Tensor, records: bool
) -> Tensor:
    """Write what an elementwise operation computed to `out`, whose dtype may be another one.

    An operand that is written to keeps its shape; an output that is none takes another one.
    """
    if (records and primitive.kind != "bool") or (modes.grad and out._edge is not NO_EDGE):
        refuse_gradients(primitive.function_name, True)
    target = out._array
    if type(target) is np.ndarray and any(
        overlaps(target, each) == (True, False)
        for each in arrays_among(operands)
        if each is not target and np.may_share_memory(each, target)
    ):
        raise RuntimeError(OVERLAPS_PARTLY)
    if primitive.out_differs and not _becomes_real(array, operands):
        check_out_dtype(primitive.out_differs, out, dtypes.of_numpy(array.dtype))
    if array.dtype is not target.dtype and not dtypes.can_cast(
        dtypes.of_numpy(array.dtype), dtypes.of_numpy(target.dtype)
    ):
        raise RuntimeError(
            f"result type {dtypes.of_numpy(array.dtype).scalar_name} can't be cast to the desired "
            f"output type {out.dtype.scalar_name}"
        )
    if target.shape == array.shape:
        return write(array, out)
    if any(operand is target for operand in operands):
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape "
            f"{list(array.shape)}"
        )
    known = arrays_among(operands)
    makes_room_first = primitive.kind == "real" and any(each.dtype.kind == "c" for each in known)
    if primitive.deciding_out is not None:
        return write(array, out, primitive.deciding_out(known))
    if makes_room_first or type(array) is Traced:
        return write(array, out, [])
    return write(array, out, copy_order(array))


def _becomes_real(array: Any, operands: Sequence[Any]) -> bool:
    """Whether complex numbers gave real ones, which PyTorch casts like any."""
    return array.dtype.kind == "f" and any(
        operand.dtype.kind == "c"
        for operand in operands
        if isinstance(operand, (np.ndarray, Traced))
    )


def arrays_among(values: Sequence[Any]) -> list[Array]:
    """Return what is an array, and not a number."""
    return [value for value in values if type(value) is np.ndarray]
