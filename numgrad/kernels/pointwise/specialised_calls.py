"""Elementwise calls specialised to few elements, in one thread: generated straight-line Python.

With a few numbers in every operand the loop takes a tenth of what Python takes to get there. What
each operand needs before it is an argument of the loop is known for operands of given shapes,
strides and dtypes, so it is emitted once, and runs without looking at anything again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.base.tuning import RECYCLED_BYTES
from numgrad.codegen.define import define
from numgrad.kernels.move.loop_order import ResultOrder
from numgrad.kernels.move.memory_order import caster
from numgrad.kernels.pointwise.flat_calls import ARRAY, ITEM, SAME, FlatCall, Number, converter
from numgrad.kernels.pointwise.strided_calls import StridedCall, anchor_of
from numgrad.runtime.memory import empty

__all__ = ["specialised_call"]

Array = np.ndarray[Any, Any]


def specialised_call(
    call: FlatCall | StridedCall,
    operands: Sequence[Array | Number],
    dtypes: Sequence[np.dtype[Any]],
    shape: tuple[int, ...],
    order: ResultOrder,
    *,
    several: bool = False,
) -> Callable[..., Any]:
    """Return a function of the operands of a call of one output, which returns that.

    Parameters
    ----------
    call : FlatCall or StridedCall
        Whose loop to run, on the spot and in one piece.
    operands : sequence of array or number
        Operands like those that the function is for.
    dtypes : sequence of numpy.dtype
        What each operand is cast or converted to.
    shape : tuple of int
        Of the result.
    order : ResultOrder
        How it lies; the loops have its dims in the order of memory.
    several : bool
        Whether there may be more than one output, and the function returns a list.
    """
    namespace: dict[str, Any] = {
        "loop": call.loop,
        "empty": np.empty if _is_small(call) else empty,
        "shape": call.shape,
        "place": order.placer(shape),
    }
    names = [f"operand{position}" for position in range(len(operands))]
    casts: list[str | None] = []  # of the operands that are arrays
    for position, (operand, dtype) in enumerate(zip(operands, dtypes, strict=True)):
        if type(operand) is not np.ndarray:
            namespace[f"convert{position}"] = converter(dtype)
            casts.append(None)
            continue
        namespace[f"dtype{position}"] = dtype
        if operand.dtype == dtype:
            casts.append(names[position])
        else:
            namespace[f"cast{position}"] = caster(operand, dtype)
            casts.append(f"cast{position}({names[position]})")
    found = []
    results = [f"result{number}" for number in range(len(call.dtypes))]
    if isinstance(call, FlatCall):
        lines, arguments = _flat(call, operands, casts, namespace)
        found = [_raveled(each, len(call.shape), True) for each in results]
    else:
        lines, arguments = _strided(call, operands, casts, namespace)
        found = [_first(len(call.shape), each) for each in results]
    for result, dtype in zip(results, call.dtypes, strict=True):
        namespace[f"dtype_of_{result}"] = dtype
        lines.append(f"    {result} = empty(shape, dtype_of_{result})")
    if order.strides is None and order.dims is not None:
        namespace["back"] = tuple(np.argsort(order.dims).tolist())
        results = [f"{result}.transpose(back)" for result in results]
    elif order.strides is not None:
        results = [f"place({result})" for result in results]
    returned = ", ".join(results)
    source = "\n".join(
        [
            f"def call({', '.join(names)}):",
            *lines,
            f"    loop({', '.join([*arguments, *found])})",
            f"    return {f'[{returned}]' if several else returned}",
        ]
    )
    return define("call", source, "specialised call", namespace)


def _is_small(call: FlatCall | StridedCall) -> bool:
    """Whether no memory that a call takes comes from the pool."""
    widest = max([dtype.itemsize for dtype in call.dtypes])
    return prod(call.shape) * max(widest, 16) < RECYCLED_BYTES


def _flat(
    call: FlatCall,
    operands: Sequence[Array | Number],
    casts: Sequence[str | None],
    namespace: dict[str, Any],
) -> tuple[list[str], list[str]]:
    """Return the lines before the loop, and its arguments but for the result."""
    shape, order = call.shape, call.order
    namespace["order"] = order
    lines: list[str] = []
    arguments: list[str] = []
    for position, (operand, cast) in enumerate(zip(operands, casts, strict=True)):
        kind = call.kinds[position]
        if cast is None or type(operand) is not np.ndarray:
            arguments.append(f"convert{position}(operand{position})")
        elif kind == ITEM:
            arguments.append(f"{cast}.item()")
        elif kind == SAME:
            arguments.append(f"{cast}[{'0, ' * operand.ndim}].item()")
        elif kind == ARRAY:
            ordered = operand if order is None else operand.transpose(order)
            turned = cast if order is None else f"{cast}.transpose(order)"
            arguments.append(_raveled(turned, ordered.ndim, ordered.flags.c_contiguous))
        else:
            source = f"operand{position}"
            if order is not None and operand.size > 1:
                namespace[f"shape{position}"] = (1,) * (len(order) - operand.ndim) + operand.shape
                source += f".reshape(shape{position}).transpose(order)"
            lines += [
                f"    full{position} = empty(shape, dtype{position})",
                f"    full{position}[...] = {source}",
            ]
            arguments.append(_raveled(f"full{position}", len(shape), True))
    return lines, arguments


def _raveled(array: str, ndim: int, lies_in_rows: bool) -> str:
    """Return the source of an array's elements in one row.

    NumPy's ``ravel`` of an array that does not lie in rows takes .4 us longer than its ``copy``.
    """
    copied = "" if lies_in_rows else ".copy()"
    return f"{array}{copied}{'' if ndim == 1 else '.ravel()'}"


def _strided(
    call: StridedCall,
    operands: Sequence[Array | Number],
    casts: Sequence[str | None],
    namespace: dict[str, Any],
) -> tuple[list[str], list[str]]:
    """Return the lines before the loop, and its arguments but for the result."""
    namespace |= {
        "lengths": call.lengths,
        "steps": call.steps,
        "int64": np.dtype(np.int64),
        "anchors": call.anchors,
    }
    head = f"lengths, steps, empty({call.lengths.size}, int64)"
    arguments = [head, f"0, {call.rows}, 0, {call.width}, {call.column}"]
    for position, (operand, cast) in enumerate(zip(operands, casts, strict=True)):
        if cast is None or type(operand) is not np.ndarray:
            arguments.append(f"convert{position}(operand{position})")
        elif operand.size == 1:
            arguments.append(f"{cast}.item()")
        elif call.anchors[position] is anchor_of:
            arguments.append(_first(operand.ndim, cast))
        else:
            arguments.append(f"anchors[{position}]({cast})")
    return [], arguments


def _first(ndim: int, array: str) -> str:
    """Return the source of a row of an array that starts at its first element."""
    return array if ndim == 1 else f"{array}[{'0, ' * (ndim - 1)}]"
