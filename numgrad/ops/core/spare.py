"""Inputs saved beside outputs, for gradients more accurate than the output allows.

PyTorch differentiates some operations from their output alone, such as sigmoid: y (1 - y). Where y
is near 1, that has lost the digits which the input still has. What it saves can be seen (its hooks
get it, writing to it is an error), and the input may be overwritten before the backward pass. So
the input is kept beside, as long as nobody wrote to it: if somebody did, or hooks packed what was
saved, the output alone has to do.
"""

from __future__ import annotations

from typing import Any

__all__ = ["WithSpare", "spare_of", "with_spare"]


class WithSpare(tuple[Any, ...]):
    """What a node saved, with the spare operand: (array, version counter, version)."""

    spare: tuple[Any, Any, int]


def with_spare(saved: tuple[Any, ...], spare: tuple[Any, Any, int]) -> tuple[Any, ...]:
    """Return what a node saved, with an operand beside it."""
    kept = WithSpare(saved)
    kept.spare = spare
    return kept


def spare_of(saved: Any) -> Any:
    """Return the array of the operand beside what a node saved; None if it is not what it was."""
    if type(saved) is not WithSpare:
        return None
    array, counter, version = saved.spare
    return array if counter[0] == version else None
