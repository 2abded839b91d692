"""Joins of rows that a loop stacks, as joins of few parts.

What the operations of all turns are put side by side to is what the loop stacks, or some of it: as
so many operands it would take each row out of that, and copy it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from numgrad.jit.ir.constructors import join
from numgrad.jit.ir.graph import Value
from numgrad.jit.rolling.tokens import rows_of

__all__ = ["Places", "joined_rows"]

PARTS = 4  # of a join: of more it stays as it is

# By the result of a turn: what stacks those of all turns, and which of its rows that one is.
Places = Mapping[Value, tuple[Value, int]]


class _Rows(NamedTuple):
    """Rows of what a loop stacks, one behind the other."""

    of: Value
    start: int
    stop: int


def joined_rows(
    value: Value,
    places: Places,
    unread: frozenset[Value],
    handed_on: Mapping[Value, tuple[Value, Value]],
    entered: Callable[[Value], Value],
) -> Value | None:
    """Return a join as one of few parts; None if it is no such.

    Parameters
    ----------
    value : Value
    places : mapping
        The results of turns that a loop stacks.
    unread : frozenset of Value
        Operands that nobody reads: anything may stand in their place, and the rows beside do.
    handed_on : mapping
        By what stacks a carry: what the turns were handed on, stacked, and what the first was.
    entered : callable
        Gives what stands in the place of any other operand.
    """
    parts = _parts(value.operands, places, unread)
    if len(parts) > PARTS or not any(isinstance(part, _Rows) for part in parts):
        return None
    if len(parts) == 2 and isinstance(parts[0], Value) and isinstance(parts[1], _Rows):
        found, init = handed_on.get(parts[1].of, (None, None))
        is_whole = found is not None and found.shape == value.shape and parts[1].start == 0
        if is_whole and _is_row(parts[0]) and parts[0].operands[0] is init:
            return found
    return join([rows_of(*part) if isinstance(part, _Rows) else entered(part) for part in parts], 0)


def _parts(
    operands: Sequence[Value], places: Places, unread: frozenset[Value]
) -> list[Value | _Rows]:
    """Return operands, with rows that follow each other as one."""
    first, *rest = operands
    parts: list[Value | _Rows] = []
    for operand in rest if first in unread else operands:
        last = parts[-1] if parts else None
        of, row = places.get(operand.operands[0], (None, 0)) if _is_row(operand) else (None, 0)
        if isinstance(last, _Rows):
            is_any = operand in unread and last.stop < last.of.shape[0]
            if is_any or (of is last.of and row == last.stop):
                parts[-1] = last._replace(stop=last.stop + 1)
                continue
        parts.append(operand if of is None else _Rows(of, row, row + 1))
    if first in unread:
        second = parts[0] if parts else None
        if isinstance(second, _Rows) and second.start > 0:
            parts[0] = second._replace(start=second.start - 1)
        else:
            parts.insert(0, first)
    return parts


def _is_row(operand: Value) -> bool:
    """Whether an operand of a join is a value with a first dim of length 1."""
    return operand.operation == "reshape" and operand.shape == (1, *operand.operands[0].shape)
