"""Elementwise calls of few elements, written out as straight lines of Python.

With a few numbers in every operand the loop takes a tenth of what Python takes to get there. What
each operand needs before it is an argument of the loop is known for operands of given shapes,
strides and dtypes, so it is emitted once, and runs without looking at anything again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.kernels.define import define
from numgrad.kernels.flat_calls import ARRAY, ITEM, SAME, FlatCall, Number, converter

__all__ = ["short_call"]

Array = np.ndarray[Any, Any]


def short_call(
    call: FlatCall,
    operands: Sequence[Array | Number],
    dtypes: Sequence[np.dtype[Any]],
    back: tuple[int, ...] | None,
) -> Callable[..., Array]:
    """Return a function of the operands of a flat call of one output, which returns that.

    Parameters
    ----------
    call : FlatCall
        Whose loop to run, on the spot and in one piece.
    operands : sequence of array or number
        Operands like those that the function is for.
    dtypes : sequence of numpy.dtype
        What each operand is cast or converted to.
    back : tuple of int or None
        The order of the dims that the result gets, if the loops have another.
    """
    shape, order = call.shape, call.order
    namespace: dict[str, Any] = {
        "loop": call.loop,
        "empty": np.empty,
        "shape": shape,
        "dtype": call.dtypes[0],
        "order": order,
        "back": back,
    }
    names = [f"operand{position}" for position in range(len(operands))]
    lines: list[str] = []
    arguments: list[str] = []
    for position, (name, operand, dtype) in enumerate(zip(names, operands, dtypes, strict=True)):
        if type(operand) is not np.ndarray:
            namespace[f"convert{position}"] = converter(dtype)
            arguments.append(f"convert{position}({name})")
            continue
        namespace[f"dtype{position}"] = dtype
        cast = name if operand.dtype == dtype else f"{name}.astype(dtype{position})"
        kind = call.kinds[position]
        if kind == ITEM:
            arguments.append(f"{cast}.item()")
        elif kind == SAME:
            arguments.append(f"{cast}[{', '.join('0' * operand.ndim)},].item()")
        elif kind == ARRAY:
            if order is not None:
                arguments.append(f"{cast}.transpose(order).ravel()")
            else:
                is_flat = operand.ndim == 1 and operand.flags.c_contiguous
                arguments.append(cast if is_flat else f"{cast}.ravel()")
        else:
            source = name
            if order is not None and operand.size > 1:
                namespace[f"shape{position}"] = (1,) * (len(order) - operand.ndim) + operand.shape
                source = f"{name}.reshape(shape{position}).transpose(order)"
            lines += [
                f"    full{position} = empty(shape, dtype{position})",
                f"    full{position}[...] = {source}",
            ]
            arguments.append(f"full{position}" if len(shape) == 1 else f"full{position}.ravel()")
    source = "\n".join(
        [
            f"def call({', '.join(names)}):",
            *lines,
            "    result = empty(shape, dtype)",
            f"    loop({', '.join(arguments)}, result{'' if len(shape) == 1 else '.ravel()'})",
            f"    return result{'' if back is None else '.transpose(back)'}",
        ]
    )
    return define("call", source, "short call", namespace)
