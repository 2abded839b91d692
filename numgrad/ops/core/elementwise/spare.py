"""Inputs saved beside outputs, for gradients more accurate than the output allows.

PyTorch differentiates some operations from their output alone, such as sigmoid: y (1 - y). Where y
is near 1, that has lost the digits which the input still has. What it saves can be seen (its hooks
get it, writing to it is an error), and the input may be overwritten before the backward pass. So
the input is kept beside, as long as nobody wrote to it: if somebody did, or hooks packed what was
saved, the output alone has to do. It stands behind what is saved, in the same tuple; nobody but the
node's own rule looks there.
"""

from __future__ import annotations

from typing import Any

__all__ = ["spare_of"]


def spare_of(saved: Any, count: int) -> Any:
    """Return the array of the operand behind `count` saved values.

    None if there is none, or it is not what it was.
    """
    if len(saved) == 3 * count:
        return None
    array, counter, version = saved[3 * count :]
    return array if counter[0] == version else None
