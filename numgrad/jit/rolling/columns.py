"""Columns: one operation of a turn, in all turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.jit.ir.graph import Value
from numgrad.jit.rolling.tokens import Operation

__all__ = [
    "added_to",
    "are_zeros",
    "is_same_number",
    "moves_in",
    "scale_of",
    "where_written",
]

Column = Sequence[Operation]


def added_to(value: Value) -> Value:
    """Return to what numbers were added at positions; zeros may be put, and what was read of it."""
    found, reads = value, []
    while found.operation == "scatter":
        part = found.operands[1]
        while part.operation in ("view", "reshape"):
            part = part.operands[0]
        if not found.attributes["adds"] and not _is_zero(part):
            if part.operation != "gather":
                return value
            reads.append(part.operands[0])
        found = found.operands[0]
    return found if all(added_to(each) is found for each in reads) else value


def where_written(column: Column) -> tuple[np.ndarray[Any, Any], tuple[int, ...]]:
    """Return where updates write, in elements of the flat array, and with which strides."""
    offsets = np.array([each.offsets[-1][0] for each in column], np.int64)
    return offsets, column[0].value.attributes["strides"]


def scale_of(column: Column) -> int | None:
    """Return how far apart an update writes what follow each other in what it writes.

    None if that is not the same everywhere, or not all of the operand is written.
    """
    value = column[0].value
    if any(step.operation != "reshape" for step in column[0].paths[1]):
        return None
    scale, size = None, 1
    shape, strides = value.operands[1].shape, value.attributes["strides"]
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length > 1:
            scale = stride if scale is None else scale
            if stride != scale * size:
                return None
            size *= length
    return scale


def are_zeros(column: Column) -> bool:
    """Whether what updates write to is zeros."""
    bases = [each.bases[0] for each in column]
    return is_same_number(bases) and _is_zero(bases[0])


def _is_zero(value: Value) -> bool:
    return value.operation == "constant" and repr(value.attributes["value"]) in ("0", "0.0", "0j")


def moves_in(column: Column, slot: int) -> bool:
    """Whether the views that lead to an operand begin elsewhere in each turn."""
    return len({each.offsets[slot] for each in column}) > 1


def is_same_number(values: Sequence[Value]) -> bool:
    """Whether values are all the same number."""
    if any(value.operation != "constant" for value in values):
        return False
    first = repr(values[0].attributes["value"])
    return all(repr(value.attributes["value"]) == first for value in values)
