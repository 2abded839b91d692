"""Promotion and broadcasting: the dtype and the shape that operands have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor

__all__ = ["broadcast_shapes", "in_64_bits", "result_dtype"]


def result_dtype(operands: Sequence[Any]) -> dtypes.dtype:
    """Return the dtype that tensors and Python scalars promote to.

    Tensors with dimensions count most; 0-d tensors, then Python scalars, only raise the category.

    Raises
    ------
    OverflowError
        If an int has more than 64 bits.
    RuntimeError
        If one that has all 64 of an unsigned one meets bools alone: there are no such tensors.
    """
    ranked: list[dtypes.dtype | None] = [None, None, None]
    unsigned = False
    for operand in operands:
        if isinstance(operand, Tensor):
            rank = 0 if operand._array.ndim else 1
            dtype = dtypes.of_numpy(operand._array.dtype)
        else:
            rank, dtype = 2, dtypes.scalar_dtype(operand)
            unsigned = unsigned or dtypes.kind_of_number(operand) == "unsigned"
        present = ranked[rank]
        ranked[rank] = dtype if present is None else dtypes.promote_types(present, dtype)
    result: dtypes.dtype | None = None
    for candidate in ranked:
        if candidate is None:
            continue
        if result is None:
            result = candidate
        elif candidate.category > result.category:
            result = _raise_category(result, candidate)
    if result is None:
        raise ValueError("result_dtype needs at least one operand")
    if unsigned and set(ranked[:2]) in ({None, dtypes.bool_}, {dtypes.bool_}):
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            "Bool and UInt64"
        )
    return result


def _raise_category(result: dtypes.dtype, dtype: dtypes.dtype) -> dtypes.dtype:
    if result.is_floating_point:
        return result.to_complex()
    return dtypes.promote_types(result, dtype) if result.category == dtypes.BOOL else dtype


def broadcast_shapes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that all shapes broadcast to.

    Raises
    ------
    RuntimeError
        In PyTorch's words, if two lengths differ and neither is 1.
    """
    result = shapes[0]
    for shape in shapes[1:]:
        if shape == result:
            continue
        if len(shape) > len(result):
            long, short = shape, result
        else:
            long, short = result, shape
        offset = len(long) - len(short)
        merged = list(long)
        for position in range(len(short) - 1, -1, -1):  # the last that differ are named
            length = short[position]
            other = long[offset + position]
            if length == other or length == 1:
                continue
            if other != 1:
                a, b = (other, length) if long is result else (length, other)
                raise RuntimeError(
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at "
                    f"non-singleton dimension {offset + position}"
                )
            merged[offset + position] = length
        result = tuple(merged)
    return result


def in_64_bits(operands: Sequence[Any]) -> list[Any]:
    """Return operands of which ints from 2**63 on are what their 64 bits are as int64.

    Examples
    --------
    >>> import numpy as np
    >>> in_64_bits([np.arange(2), 2**64 - 1])
    [array([0, 1]), -1]
    """
    return [
        value - 2**64 if dtypes.kind_of_number(value) == "unsigned" else value for value in operands
    ]
