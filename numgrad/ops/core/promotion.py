"""Promotion and broadcasting: the dtype and the shape that operands have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor

__all__ = ["broadcast_shapes", "in_64_bits", "refuse_wide", "result_dtype"]


def result_dtype(operands: Sequence[Any]) -> dtypes.dtype:
    """Return the dtype that tensors and Python scalars promote to.

    Tensors with dimensions count most; 0-d tensors, then Python scalars, only raise the category.
    """
    ranked: list[dtypes.dtype | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, Tensor):
            rank = 0 if operand._array.ndim else 1
            dtype = dtypes.of_numpy(operand._array.dtype)
        else:
            rank, dtype = 2, dtypes.scalar_dtype(operand)
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
    """Return operands of which ints beyond int64 are what their 64 bits are as int64.

    Raises
    ------
    OverflowError
        If an int has more bits.
    RuntimeError
        If it meets bools alone, which would have to become unsigned.

    Examples
    --------
    >>> import numpy as np
    >>> in_64_bits([np.arange(2), 2**64 - 1])
    [array([0, 1]), -1]
    """
    return [_in_64_bits(each, operands) if type(each) is int else each for each in operands]


def _in_64_bits(value: int, operands: Sequence[Any]) -> int:
    if -(2**63) <= value < 2**63:
        return value
    refuse_wide(value)
    arrays = [each._array if isinstance(each, Tensor) else each for each in operands]
    if all(isinstance(each, int) or each.dtype.kind == "b" for each in arrays):
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            "Bool and UInt64"
        )
    return value - 2**64


def refuse_wide(value: int) -> None:
    """Raise PyTorch's error for an int that no dtype holds.

    Raises
    ------
    OverflowError
    """
    if not -(2**63) <= value < 2**64:
        raise OverflowError(
            "int too big to convert" if value > 0 else "can't convert negative int to unsigned"
        )
